"""Measure side by side, and print tables as Markdown.

    python -m tests.benchmarks [throughput]   ours beside the limit, the users' loop, Quix or Faust + River
    python -m tests.benchmarks confluent      ours on confluent-kafka beside its own limit and Quix + River
    python -m tests.benchmarks jvm            both clients, interpreted and compiled, beside Kafka Streams
    python -m tests.benchmarks workloads      ours beside the limit: features, tokens, mistakes, classes
    python -m tests.benchmarks short          in two minutes: ours beside the limit and the users' loop
    python -m tests.benchmarks offline        replay beside River, scikit-learn, Vowpal Wabbit; recovery
    python -m tests.benchmarks drift          windows, restarts at proved changes and ADWIN on streams that drift

Each of these is a program of its own: python -m tests.benchmarks.latency, .growth, .takeover, .scale, .interpreters, .pieces.
What contenders need beyond the extra `test` is installed when it is first needed: pinned, in environments of its own.
"""

import argparse
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka  # noqa: F401

from tests.benchmarks import drift, offline, throughput, workloads
from tests.benchmarks.throughput import Contender
from tests.benchmarks.workload import Workload
from tests.log.support.broker import Broker

SHORT = (throughput.LIMIT, throughput.OURS, throughput.USERS)
COMPARED = {
    "throughput": (throughput.CONTENDERS, (throughput.OURS, throughput.COMPILED), throughput.GOALS),
    "short": (SHORT, (throughput.OURS,), throughput.GOALS),
    "confluent": (
        throughput.CONFLUENT_CONTENDERS,
        (throughput.CONFLUENT, throughput.CONFLUENT_COMPILED),
        throughput.CONFLUENT_GOALS,
    ),
    "jvm": (
        throughput.JVM_CONTENDERS,
        (throughput.COMPILED, throughput.CONFLUENT_COMPILED),
        throughput.JVM_GOALS,
    ),
}
ROUNDS = {"workloads": 3, "short": 3}
RECORDS = {"confluent": 100_000, "short": 20_000, "jvm": 200_000}


def main() -> int:
    """The exit code."""
    given = _arguments()
    rounds = given.rounds or ROUNDS.get(given.what, 5)
    if given.what == "offline":
        print(offline.table(rounds))
        return 0
    if given.what == "drift":
        print("\n" + drift.table(_tell))
        return 0
    work = Workload(
        given.records or RECORDS.get(given.what, 40_000),
        given.features,
        given.delay,
        4,
        given.noise,
        given.classes,
        given.sparse,
        hash_bits=given.hash_bits,
        margin=given.margin,
    )
    with _broker(given.bootstrap) as (bootstrap, pid):
        if given.what == "workloads":
            print("\n" + workloads.table(bootstrap, work, rounds, report=_tell))
            return 0
        contenders, ours, goals = COMPARED[given.what]
        chosen = _chosen(contenders, work, given.only)
        found = throughput.interleaved(chosen, bootstrap, work, rounds, pid)
        for each in ours:
            print(f"\n{throughput.table(found, each.name)}")
            print(f"\n{throughput.against(found, each.name, goals)}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = (*COMPARED, "workloads", "offline", "drift")
    parser.add_argument("what", nargs="?", default="throughput", choices=commands)
    parser.add_argument("--rounds", type=int, help="default 5; of workloads and short 3")
    parser.add_argument(
        "--records", type=int, help="default 40,000; of confluent 100,000, of short 20,000, of jvm 200,000"
    )
    parser.add_argument("--features", type=int, default=10)
    parser.add_argument("--sparse", action="store_true", help="tokens of a vocabulary")
    parser.add_argument("--hash-bits", type=int, default=0, help="names are numbers of so many bits")
    parser.add_argument("--delay", type=int, default=1_000)
    parser.add_argument("--noise", type=float, default=0.05, help="share of labels drawn by chance")
    parser.add_argument("--margin", type=float, default=0.0, help="no example is nearer to the boundary")
    parser.add_argument("--classes", type=int, default=2)
    parser.add_argument("--only", default="", help="contenders whose program is in this list, by commas")
    parser.add_argument("--bootstrap", help="a running broker; default: one of its own")
    return parser.parse_args()


@contextmanager
def _broker(given: str | None) -> Iterator[tuple[str, int | None]]:
    """Its address, and its process where it is ours."""
    if given:
        yield given, None
        return
    with tempfile.TemporaryDirectory() as folder, Broker(Path(folder)) as broker:
        yield broker.bootstrap, broker.pid


def _chosen(contenders: Sequence[Contender], work: Workload, only: str) -> list[Contender]:
    named = [each for each in contenders if not only or each.program in only.split(",")]
    return [each for one in named if (each := throughput.suited(one, work)) is not None]


def _tell(row: str) -> None:
    print(row, flush=True)


sys.exit(main())
