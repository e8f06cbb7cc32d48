"""How throughput grows with workers: 1, 2 and 4 processes, ours beside the same client's pass-through, and on paper.

    python -m tests.benchmarks.scale [--records 200000] [--rounds 3] [--processes 1,2,4]

All processes of a run share one group and one stream of four partitions, written beforehand; ours also
follow each other's updates. Measured from the outside, on the group's committed offsets, between a tenth
of the stream and its end, so that starting and joining are not in it.

On a machine with few cores more workers only show what sharing costs. So their processor time is measured, too, and
compared with what a model on paper says: each example costs its own worker s, and each update costs every *other* worker
f, so that W workers spend s + m (W - 1) f an example, where a share m of the examples makes an update. s is taken from
one worker and f from a fold in this process; the rest follows from them, and so does what W workers could do that had
a core each. `python -m tests.benchmarks.scale` in a compiled checkout (`python -m tests.compiled`) measures that.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from mistakebound.commands.topics.rules import wanted_config
from mistakebound.log import open_log
from mistakebound.log.protocol import Log, LogError
from mistakebound.settings import Settings
from tests.benchmarks.offline import fold_us
from tests.benchmarks.throughput import cpu_seconds, send
from tests.benchmarks.workload import Workload
from tests.log.support.broker import Broker
from tests.support.project import ROOT, python_path

PATIENCE_S = 600
SINCE = 0.1
PAPER = (1, 2, 4, 8, 16, 32, 64)
SHARES = (0.2, 0.05, 0.01)
"""Updates for each labelled example."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Microseconds of a processor; see above."""

    own_us: float
    fold_us: float

    def of_example(self, workers: int, share: float) -> float:
        """What all workers together spend on one labelled example, where a `share` of the examples makes an update."""
        return self.own_us + share * (workers - 1) * self.fold_us

    def most(self, workers: int, share: float) -> float:
        """Labelled examples a second of workers that have a core each, and are never idle."""
        return workers * 1e6 / self.of_example(workers, share)


@dataclass(frozen=True, slots=True)
class Run:
    """Between a tenth of the stream and its end."""

    rate: float
    """Labelled examples a second."""
    own_us: float
    """Processor time of all workers, for each of them."""
    broker_us: float
    updates: float
    """For each labelled example; 0 of the pass-through."""


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--processes", default="1,2,4")
    given = parser.parse_args()
    counts = [int(each) for each in given.processes.split(",")]
    work = Workload(given.records)
    found: dict[tuple[str, int], list[Run]] = {}
    with tempfile.TemporaryDirectory() as folder, Broker(Path(folder)) as broker:
        inputs = send(broker.bootstrap, work, "in.")
        for _ in range(given.rounds):
            for count in counts:
                for program in ("limit", "ours"):
                    run = _run(program, count, broker, inputs, work)
                    found.setdefault((program, count), []).append(run)
                    print(
                        f"  {program}, {count}: {run.rate:,.0f}/s, {run.own_us:.1f} us, {run.updates:.3f} updates",
                        flush=True,
                    )
    print("| workers | mistakebound, labelled examples/s | spread | pass-through | ratio | spread |")
    print("|---|---|---|---|---|---|")
    for count in counts:
        ours, limit = ([each.rate for each in found[program, count]] for program in ("ours", "limit"))
        ratios = [mine / theirs for mine, theirs in zip(ours, limit, strict=True)]
        print(
            f"| {count} | {statistics.median(ours):,.0f} | {min(ours):,.0f} to {max(ours):,.0f} "
            f"| {statistics.median(limit):,.0f} "
            f"| {statistics.median(ratios):.2f} | {min(ratios):.2f} to {max(ratios):.2f} |"
        )
    if 1 in counts:
        _paper({count: found["ours", count] for count in counts})


def _paper(found: dict[int, list[Run]]) -> None:
    """Print what the model says of these runs, and of others."""

    def middle(count: int, name: str) -> float:
        return statistics.median(getattr(each, name) for each in found[count])

    costs, share = Costs(middle(1, "own_us"), fold_us()), middle(1, "updates")
    print(f"\nown {costs.own_us:.1f} us, fold {costs.fold_us:.1f} us, {share:.3f} updates an example\n")
    print("| workers | CPU us/example of all | on paper | broker's CPU us/example |")
    print("|---|---|---|---|")
    for count in found:
        measured, paper = middle(count, "own_us"), costs.of_example(count, share)
        print(f"| {count} | {measured:.1f} | {paper:.1f} | {middle(count, 'broker_us'):.1f} |")
    print(f"\n| workers, a core each | {' | '.join(f'{each:.0%} updates' for each in SHARES)} |")
    print("|---" * (1 + len(SHARES)) + "|")
    for count in PAPER:
        print(f"| {count} | {' | '.join(f'{costs.most(count, each):,.0f}' for each in SHARES)} |")
    print(f"| ceiling | {' | '.join(f'{1e6 / each / costs.fold_us:,.0f}' for each in SHARES)} |")


def _run(program: str, count: int, broker: Broker, inputs: Settings, work: Workload) -> Run:
    """`count` processes together."""
    bootstrap = broker.bootstrap
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
        processes = []
        for number in range(count):
            command = (
                ["-m", "tests.benchmarks.contenders.limit", json.dumps(task | {"options": {"slot": number}})]
                if program == "limit"
                else ["-m", "mistakebound", "run", *_options(settings, number)]
            )
            processes.append(_start(command, Path(folder) / f"{number}.err"))
            held.callback(_end, processes[-1])
        rate, spent = _watch(log, work, [each.pid for each in processes], broker.pid)
        updates = [] if program == "limit" else [log.read("updates", p, 0) for p in range(work.partitions)]
        share = sum(1 for read in updates for _ in read) / work.records
        return Run(rate, *spent, share)


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
        env = os.environ | {"PYTHONPATH": python_path()}
        return subprocess.Popen(
            [sys.executable, *command], cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=err
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait(30)


def _watch(log: Log, work: Workload, pids: list[int], broker: int) -> tuple[float, tuple[float, float]]:
    """Labelled examples a second between a tenth of the stream and its end, and what these processes, and the broker,
    spent on each meanwhile, in us."""

    def spent() -> tuple[float, float]:
        return sum(map(cpu_seconds, pids)), cpu_seconds(broker)

    total, began, end = 2 * work.records, None, time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            positions = log.group_positions().values()
        except LogError:  # offsets of one input only: the pass-through commits what it has
            positions = ()
        consumed = sum(0 if each is None else each.examples + each.labels for each in positions)
        now = time.monotonic()
        if began is None and consumed >= SINCE * total:
            began = now, consumed, spent()
        if consumed >= total and began is not None:
            if began[0] == now:
                raise RuntimeError("the stream was worked off in one step; take more --records")
            labelled = (consumed - began[1]) / 2
            own, of_broker = (b - a for a, b in zip(began[2], spent(), strict=True))
            return labelled / (now - began[0]), (own / labelled * 1e6, of_broker / labelled * 1e6)
        time.sleep(0.02)
    raise RuntimeError(f"the stream was not worked off within {PATIENCE_S} s")


if __name__ == "__main__":
    main()
