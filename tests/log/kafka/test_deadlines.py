"""Waits that must end: each in an error with a name.

Brokers that go away under a whole worker: `tests/faults/test_broker_away.py`; answers that never come:
`tests/faults/test_producer_faults.py`; topics that change: `tests/faults/test_lost_positions.py`.
"""

import subprocess
import sys
import threading

import pytest

from mistakebound.log.kafka.watchdog import Watchdog
from mistakebound.log.protocol import Unreachable
from tests.log.support.worker import PATIENCE_S


def test_an_open_transaction_is_waited_for_and_named(make_log, start) -> None:
    """A read up to the high watermark does not end below it: it fails, naming topic and partition."""
    log = make_log()
    producer = log._cluster.connection.transactional("someone-else")
    try:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(log._cluster.names.to_broker["updates"], b"open", partition=1)
        producer.flush()

        with pytest.raises(Unreachable, match=r"updates-1.*a transaction is open"):
            list(log.read("updates", 1, 0, wait_s=0.5))

        producer.abort_transaction()
        assert list(log.read("updates", 1, 0)) == []
    finally:
        producer.close()


def test_the_watchdog_barks_once_at_what_does_not_return() -> None:
    """It names the call; one that returned in time is left alone."""
    heard, barked = [], threading.Event()

    def bark(what: str) -> None:
        heard.append(what)
        barked.set()

    watchdog = Watchdog(bark)
    with watchdog.limit(60, "quick"):
        pass
    with watchdog.limit(0, "stuck"):
        assert barked.wait(PATIENCE_S)
    watchdog.close()

    assert heard == ["stuck"]


def test_a_process_that_hangs_ends_and_says_where() -> None:
    """What to look for, and at which line each of its threads stood."""
    program = (
        "import time\n"
        "from mistakebound.log.kafka.watchdog import Watchdog\n"
        "def nap(): time.sleep(60)\n"
        "with Watchdog().limit(0.1, 'a nap'):\n"
        "    nap()\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )

    assert done.returncode == 7
    assert done.stderr.startswith("mistakebound: a nap did not return in time")
    assert "line 3 in nap" in done.stderr


STANDS_STILL = """
import ctypes, sys, time
from mistakebound.log.kafka import watchdog
watchdog.FROZEN_S, watchdog.REARM_S, watchdog.TICK_S = 3.0, 0.1, 0.05
def stand_still(seconds): ctypes.PyDLL(None).sleep(seconds)  # a call that holds the interpreter's lock
dog = watchdog.Watchdog()
dog.guard_interpreter()
time.sleep(1.5 * watchdog.FROZEN_S)
print("works", flush=True)
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("then", "code"), [("stand_still(60)", 1), ("dog.close(); stand_still(5); print('closed')", 0)]
)
def test_an_interpreter_that_stands_still_ends_and_says_where(then: str, code: int) -> None:
    """librdkafka's calls may hold it, and the watchdog's thread with it. What works goes on, for however long, and a log that
    was closed guards no longer."""
    done = subprocess.run(
        [sys.executable, "-c", STANDS_STILL + then],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )

    assert (done.returncode, done.stdout.split()) == (code, ["works"] if code else ["works", "closed"])
    assert ("line 5 in stand_still" in done.stderr) == bool(code)
