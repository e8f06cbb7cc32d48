"""`python -m tests.benchmarks [throughput | offline]`: measure, print tables as Markdown."""

import argparse
import sys
import tempfile
import warnings
from pathlib import Path

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka  # noqa: F401

from tests.benchmarks import offline, throughput
from tests.benchmarks.workload import Workload
from tests.kafka.broker import Broker


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("what", nargs="?", default="throughput", choices=("throughput", "offline"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--records", type=int, default=40_000)
    parser.add_argument("--features", type=int, default=10)
    parser.add_argument("--sparse", action="store_true", help="tokens of a vocabulary")
    parser.add_argument("--delay", type=int, default=1_000)
    parser.add_argument("--noise", type=float, default=0.05, help="share of labels drawn by chance")
    parser.add_argument("--classes", type=int, default=2)
    parser.add_argument("--only", default="", help="contenders whose program is in this list, by commas")
    parser.add_argument("--bootstrap", help="a running broker; default: one of its own")
    given = parser.parse_args()
    if given.what == "offline":
        print(offline.replays(10, 3_000, given.rounds))
        print(offline.replays(1_000, 100, given.rounds))
        print(offline.recovery(10_000, given.rounds))
        return 0
    work = Workload(given.records, given.features, given.delay, 4, given.noise, given.classes, given.sparse)
    chosen = [
        each for each in throughput.CONTENDERS if not given.only or each.program in given.only.split(",")
    ]
    with tempfile.TemporaryDirectory() as folder:
        if given.bootstrap:
            found = throughput.interleaved(chosen, given.bootstrap, work, given.rounds)
        else:
            with Broker(Path(folder)) as broker:
                found = throughput.interleaved(chosen, broker.bootstrap, work, given.rounds)
    print(throughput.table(found, "mistakebound, perceptron"))
    return 0


sys.exit(main())
