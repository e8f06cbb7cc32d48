"""Where a round of the worker spends its time while examples come steadily: what an example's latency is made of.

    python -m tests.benchmarks.round_times [--rate 1000] [--seconds 10]

The worker runs in this process, on kafka-python, with its parts timed. One thread at a time uses the session, so the
parts of a round add up: it waits for records, asks the log whether the empty inputs are drained, makes a step, and commits
it: sends and flushes, sends the positions, and ends the transaction.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mistakebound.commands.topics.rules import wanted_config
from mistakebound.log import open_log
from mistakebound.log.kafka.kafka_python.send import KafkaPythonSender
from mistakebound.log.kafka.kafka_python.session import KafkaPythonSession
from mistakebound.settings import Settings
from mistakebound.worker import stepping
from mistakebound.worker.memory import share_heaps, spare_the_collector
from mistakebound.worker.process import work
from tests.benchmarks.latency import PARTITIONS, create_inputs
from tests.log.support.broker import Broker
from tests.support.project import ROOT

PARTS: tuple[tuple[str, Any, str], ...] = (
    ("wait for records (poll)", KafkaPythonSession, "poll"),
    ("ask whether empty inputs are drained", KafkaPythonSession, "undelivered"),
    ("make the step", stepping, "step"),
    ("begin the transaction", KafkaPythonSender, "begin"),
    ("hand the records over", KafkaPythonSender, "send"),
    ("wait until they are acknowledged (flush)", KafkaPythonSender, "flush"),
    ("send the positions", KafkaPythonSender, "send_positions"),
    ("end the transaction (commit)", KafkaPythonSender, "commit"),
)
SETTLING_S = 2.0


def main() -> None:
    """Measure, and print the table."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    asked.add_argument("--rate", type=int, default=1_000)
    asked.add_argument("--seconds", type=int, default=10)
    given = asked.parse_args()
    spent: dict[str, list[float]] = defaultdict(list)
    ends: list[float] = []
    with tempfile.TemporaryDirectory() as folder, Broker(Path(folder)) as broker:
        _run(broker.bootstrap, given.rate, given.seconds, spent, ends)
    rounds = len(ends)
    whole_ms = 1e3 * (ends[-1] - ends[0]) / (rounds - 1)
    print(
        f"{rounds} transactions, one each {whole_ms:.1f} ms\n\n| part | ms a transaction | median of a call |"
    )
    print("|---|---|---|")
    for name, _, _ in PARTS:
        each = spent[name]
        print(f"| {name} | {1e3 * sum(each) / rounds:.2f} | {1e3 * statistics.median(each):.2f} |")


def _run(bootstrap: str, rate: int, seconds: int, spent: dict[str, list[float]], ends: list[float]) -> None:
    create_inputs(bootstrap, "timed.")
    settings = Settings.model_validate(
        {
            "log": {"url": f"kafka://{bootstrap}", "prefix": "timed."},
            "labels": {"max_delay": "P7D"},
            "http": {"address": ""},
            "checkpoint": {"url": ""},
            "worker": {"slot": "slot"},
        }
    )
    arrivals = {
        "bootstrap": bootstrap,
        "examples": "timed.examples",
        "labels": "timed.labels",
        "partitions": PARTITIONS,
        "rate": rate,
        "seconds": seconds,
        "delay_s": 1.0,
    }
    began = time.monotonic()

    def timed(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def measured(*arguments: Any, **named: Any) -> Any:
            start = time.monotonic()
            try:
                return call(*arguments, **named)
            finally:
                now = time.monotonic()
                if began + SETTLING_S < start < began + seconds:
                    spent[name].append(now - start)
                    if call.__name__ == "commit":
                        ends.append(now)

        return measured

    for name, holder, attribute in PARTS:
        setattr(holder, attribute, timed(name, getattr(holder, attribute)))
    share_heaps()  # as the command does
    with open_log(settings) as log:
        log.create_topics(PARTITIONS, wanted_config(settings))
        command = [sys.executable, "-m", "tests.benchmarks.contenders.arrivals", json.dumps(arrivals)]
        spare_the_collector()
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL):
            work(
                log,
                settings,
                lambda _: time.monotonic() > began + seconds,
                log_format="json",
                log_level="error",
            )


if __name__ == "__main__":
    main()
