"""The fault suite in its full form: minutes to half an hour, on real brokers.

    python -m tests.faults [B1 B2 ...] [--seed N] [--short] [--client confluent] [--workers N] [--rounds N]

Without names everything runs. Seeds, and what each test has to report (throughput, times, kills), are
printed as it goes; wall times come at the end. `--short` runs the form that is part of the test command.
"""

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.faults.support.chance import CLIENT, ROUNDS, WORKERS

HERE = Path(__file__).parent

BAR: Mapping[str, tuple[str, ...]] = {
    "B1": ("test_killed_fleet.py",),
    "B2": ("test_zombie.py", "test_stopped_takeover.py"),
    "B3": ("test_open_transaction.py",),
    "B5": ("test_data_faults.py", "test_lost_positions.py"),
    "B6": ("test_broker_away.py", "test_leader_change.py"),
    "B7": ("test_producer_faults.py",),
    "B8": ("test_signals.py", "test_broker_away.py"),
    "B9": ("test_soak.py",),
    "B10": ("test_scaling.py",),
    "B11": ("test_late_requests.py", "test_torn_steps.py"),
    "B12": ("test_network.py",),
}
"""What the service must withstand, and the tests of it in this folder."""


def main() -> int:
    """Run the tests asked for; pytest's exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BAR)}; default all")
    parser.add_argument("--seed", help="repeat the random choices of a run")
    parser.add_argument("--short", action="store_true", help="seconds instead of minutes")
    parser.add_argument("--client", choices=("kafka-python", "confluent"), help="of the workers")
    parser.add_argument("--workers", type=int, choices=(2, 3), help="in B2's stops amid a takeover")
    parser.add_argument("--rounds", type=int, help="the same")
    asked = parser.parse_args()
    unknown = sorted(set(asked.names) - set(BAR))
    if unknown:
        parser.error(f"{', '.join(unknown)}: no such test; there are {', '.join(BAR)}")
    if asked.seed:
        os.environ["MISTAKEBOUND_SEED"] = asked.seed
    if asked.client:
        os.environ[CLIENT] = asked.client
    for variable, number in ((WORKERS, asked.workers), (ROUNDS, asked.rounds)):
        if number:
            os.environ[variable] = str(number)
    os.environ["MISTAKEBOUND_FAULTS_SIZE"] = "short" if asked.short else "full"
    tests = [str(HERE / test) for name in asked.names or BAR for test in BAR[name]]
    limit = "timeout=300" if asked.short else "timeout=7200"
    return pytest.main(["--long", "-v", "-s", "--durations=0", "-o", limit, *tests])


if __name__ == "__main__":
    sys.exit(main())
