"""How throughput grows with workers: 1, 2 and 4 processes, ours beside the same client's pass-through.

    python -m tests.benchmarks.scale [--records 40000] [--rounds 3] [--processes 1,2,4]

All processes of a run share one group and one stream of four partitions, written beforehand; ours also
follow each other's updates. Measured from the outside, on the group's committed offsets, between a tenth
of the stream and its end, so that starting and joining are not in it.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import ExitStack
from pathlib import Path

from mistakebound.commands.topics.rules import wanted_config
from mistakebound.log import open_log
from mistakebound.log.protocol import Log, LogError
from mistakebound.settings import Settings
from tests.benchmarks.throughput import ROOT, send
from tests.benchmarks.workload import Workload
from tests.log.support.broker import Broker

PATIENCE_S = 600
SINCE = 0.1


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--records", type=int, default=40_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--processes", default="1,2,4")
    given = parser.parse_args()
    counts = [int(each) for each in given.processes.split(",")]
    work = Workload(given.records)
    found: dict[tuple[str, int], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, Broker(Path(folder)) as broker:
        inputs = send(broker.bootstrap, work, "in.")
        for _ in range(given.rounds):
            for count in counts:
                for program in ("limit", "ours"):
                    rate = _rate(program, count, broker.bootstrap, inputs, work)
                    found.setdefault((program, count), []).append(rate)
    print("| workers | mistakebound, labelled examples/s | spread | pass-through | ratio | spread |")
    print("|---|---|---|---|---|---|")
    for count in counts:
        ours, limit = found["ours", count], found["limit", count]
        ratios = [mine / theirs for mine, theirs in zip(ours, limit, strict=True)]
        print(
            f"| {count} | {statistics.median(ours):,.0f} | {min(ours):,.0f} to {max(ours):,.0f} "
            f"| {statistics.median(limit):,.0f} "
            f"| {statistics.median(ratios):.2f} | {min(ratios):.2f} to {max(ratios):.2f} |"
        )


def _rate(program: str, count: int, bootstrap: str, inputs: Settings, work: Workload) -> float:
    """Labelled examples a second of `count` processes together."""
    prefix = f"run-{uuid.uuid4().hex[:8]}."
    names = {"examples": inputs.topic_name("examples"), "labels": inputs.topic_name("labels")}
    group = f"{prefix}group"
    settings = Settings.model_validate(
        {
            "log": {"url": f"kafka://{bootstrap}", "prefix": prefix},
            "topics": names,
            "worker": {"group": group},
        }
    )
    task = {"bootstrap": bootstrap, "prefix": prefix, **names, "records": 10**12}
    with ExitStack() as held:
        folder = held.enter_context(tempfile.TemporaryDirectory())
        log = held.enter_context(open_log(settings))
        log.create_topics(work.partitions, wanted_config(settings))
        for number in range(count):
            command = (
                ["-m", "tests.benchmarks.contenders.limit", json.dumps(task | {"options": {"slot": number}})]
                if program == "limit"
                else ["-m", "mistakebound", "run", *_options(settings, number)]
            )
            held.callback(_end, _start(command, Path(folder) / f"{number}.err"))
        return _watch(log, work)


def _options(settings: Settings, number: int) -> list[str]:
    sets = {
        "log.prefix": settings.log.prefix,
        "topics.examples": settings.topics.examples,
        "topics.labels": settings.topics.labels,
        "worker.group": settings.group,
        "worker.slot": f"slot-{number}",
        "labels.max_delay": "P7D",
        "learner.kind": "perceptron",
        "http.address": "",
        "checkpoint.url": "",
    }
    flags = [each for name, value in sets.items() for each in ("--set", f"{name}={value}")]
    return ["--log", str(settings.log.url), *flags]


def _start(command: list[str], errors: Path) -> subprocess.Popen[bytes]:
    with errors.open("wb") as err:
        return subprocess.Popen([sys.executable, *command], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=err)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait(30)


def _watch(log: Log, work: Workload) -> float:
    """Labelled examples a second between a tenth of the stream and its end."""
    total, began, end = 2 * work.records, None, time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            positions = log.group_positions().values()
        except LogError:  # offsets of one input only: the pass-through commits what it has
            positions = ()
        consumed = sum(0 if each is None else each.examples + each.labels for each in positions)
        now = time.monotonic()
        if began is None and consumed >= SINCE * total:
            began = now, consumed
        if consumed >= total and began is not None:
            if began[0] == now:
                raise RuntimeError("the stream was worked off in one step; take more --records")
            return (consumed - began[1]) / 2 / (now - began[0])
        time.sleep(0.02)
    raise RuntimeError(f"the stream was not worked off within {PATIENCE_S} s")


if __name__ == "__main__":
    main()
