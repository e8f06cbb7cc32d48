"""Signals: the open step is finished and kept, the process ends well, and a second signal ends it at once.

Where it cannot end well, because the broker hangs: `test_broker_away.py`.
"""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kafka import KafkaConsumer
from kafka.coordinator.assignors.range import RangePartitionAssignor

from mistakebound.core.records import INPUTS
from tests.faults.conftest import Deploy
from tests.faults.support.chance import chance_of
from tests.faults.support.children import ENVIRON, Child, until
from tests.faults.support.deployment import PATIENCE_S, Deployment, address_of, assigned
from tests.faults.support.fleet import members, taken_over
from tests.faults.support.open_transactions import open_below
from tests.faults.support.recount import recount
from tests.faults.support.stream import SETTINGS, stream
from tests.faults.test_open_transaction import open_transaction

pytestmark = pytest.mark.long

SMALL_STEPS = "batch.max_records=20"
DRAIN_S = 10.0
"""What the worker promises; the waits below allow for a busy machine on top."""


def stopped_at_work(place: Deployment, number: signal.Signals, examples: int) -> Child:
    """A worker that was told to stop in the middle of a backlog, and did."""
    place.send(stream(examples, chance_of("stopped at work").randrange(2**32)))
    worker = place.worker()
    place.works(worker)
    worker.signal(number)
    assert worker.ends(DRAIN_S + 5) == 0, worker.last_words()
    return worker


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_worker_well_between_two_steps(on_sqlite: Deploy, number: signal.Signals) -> None:
    """What it had committed is in a checkpoint, to the record; the next worker does the rest, once."""
    place = on_sqlite(*SETTINGS, SMALL_STEPS)
    stopped_at_work(place, number, 2_000)
    assert place.consumed() < place.sent(), "it was stopped too late to tell"
    assert checkpointed(place) == place.positions()
    place.finish(place.worker())
    assert len(place.prove().predictions) == 2_000


def test_a_signal_leaves_no_transaction_open_on_kafka(
    on_kafka: Deploy, kafka_bootstrap: str, prefix: str
) -> None:
    """Neither readers nor the next worker have to wait for a time-out."""
    place = on_kafka(*SETTINGS, SMALL_STEPS)
    stopped_at_work(place, signal.SIGTERM, 1_000)
    assert open_below(kafka_bootstrap, prefix) == {}
    with members(kafka_bootstrap, place.settings.group) as count:
        assert count() == 0, "it left the group"
    assert place.consumed() < place.sent(), "it was stopped too late to tell"
    assert checkpointed(place) == place.positions()
    place.finish(place.worker())
    assert len(place.prove().predictions) == 1_000


def test_a_signal_ends_an_idle_worker(deploy: Deploy) -> None:
    """A worker that waits for input does not wait any longer."""
    place = deploy(*SETTINGS)
    worker = assigned(place.worker())
    worker.signal(signal.SIGTERM)
    assert worker.ends(DRAIN_S + 5) == 0, worker.last_words()


@pytest.mark.kafka
@pytest.mark.usefixtures("by_each_client")
def test_a_signal_amid_a_rebalance_ends_a_worker(on_kafka: Deploy, kafka_bootstrap: str, prefix: str) -> None:
    """The group waits for a member that does not answer: the one that is told to stop waits no longer, and is
    gone from the group at once."""
    place = on_kafka(*SETTINGS)
    group = place.settings.group
    silent = KafkaConsumer(
        *(prefix + topic for topic in INPUTS),
        bootstrap_servers=kafka_bootstrap,
        group_id=group,
        partition_assignment_strategy=(RangePartitionAssignor,),
    )
    try:
        for topic in INPUTS:
            silent.partitions_for_topic(
                prefix + topic
            )  # it leads the group: what it has not heard of, nobody gets
        until(lambda: silent.poll(timeout_ms=100) or silent.assignment(), PATIENCE_S, "a member is there")
        with members(kafka_bootstrap, group) as count:
            worker = place.worker()
            until(lambda: count() == 2, PATIENCE_S, "the worker asks to join", worker)
            worker.signal(signal.SIGTERM)
            assert worker.ends(DRAIN_S + 5) == 0, worker.last_words()
            assert count() == 1, "it left the group"
        assert taken_over(worker) == [], "the rebalance had not ended"
    finally:
        silent.close(autocommit=False)
    assert open_below(kafka_bootstrap, prefix) == {}


@pytest.mark.kafka
def test_a_signal_ends_a_worker_whose_recovery_waits(
    on_kafka: Deploy, kafka_bootstrap: str, prefix: str
) -> None:
    """It waits for somebody's open transaction, for longer than it may take to stop; it has taken nothing over,
    and is gone from the group at once."""
    place = on_kafka(*SETTINGS, "checkpoint.url=")
    place.finish(place.worker())  # the epoch is begun
    with (
        open_transaction(kafka_bootstrap, f"{prefix}updates", 0),
        members(kafka_bootstrap, place.settings.group) as count,
    ):
        worker = place.worker()
        until(lambda: count() == 1, PATIENCE_S, "it has joined", worker)
        time.sleep(1)  # it reads the log by now
        assert taken_over(worker) == []
        worker.signal(signal.SIGTERM)
        assert worker.ends(DRAIN_S + 5) == 0, worker.last_words()
        assert count() == 0, "it left the group"
    assert taken_over(worker) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_restoring_worker(on_sqlite: Deploy, number: signal.Signals) -> None:
    """A worker that has not yet restored what it needs ends well too, and nothing is lost by it."""
    place = on_sqlite(*SETTINGS, "checkpoint.url=")
    place.send(stream(3_000, chance_of("stopped while restoring").randrange(2**32)))
    first = place.worker()
    place.works_off(first)
    first.kill()
    worker = place.worker()
    address_of(worker)  # it handles signals from before this on; the log is read next
    worker.signal(number)
    assert worker.ends(DRAIN_S + 5) == 0, worker.last_words()
    assert place.consumed() == place.sent()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_at_any_moment_of_the_start_ends_the_worker_well(
    on_sqlite: Deploy, number: signal.Signals
) -> None:
    """From the moment on at which the process catches it, while modules load, settings are read and the log opens."""
    place = on_sqlite(*SETTINGS, "checkpoint.url=")
    place.send(stream(200, chance_of("stopped at the start").randrange(2**32)))
    for moment in range(16):
        worker = place.worker()
        until(lambda worker=worker: catches_sigterm(worker.pid), PATIENCE_S, "it catches signals", worker)
        time.sleep(moment * 0.1)
        worker.signal(number)
        assert worker.ends(DRAIN_S + 5) == 0, worker.last_words()
    place.finish(place.worker())
    assert len(recount(place.log).predictions) == 200


MEANWHILE = {
    "a class is built": """
class Late:
    def __set_name__(self, owner, name):
        signal.raise_signal(number)

class Owner:
    late = Late()
""",
    "all exceptions are kept": """
try:
    signal.raise_signal(number)
except BaseException:
    pass
""",
}
"""What modules do while they are imported, to an exception that comes amid it."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("module", MEANWHILE.values(), ids=MEANWHILE)
def test_a_signal_amid_an_import_ends_the_process_well_whatever_the_module_does(
    module: str, number: signal.Signals
) -> None:
    code = f"import signal\nfrom mistakebound.worker import early_stop\nearly_stop.install()\nnumber = {number:d}\n{module}"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nraise SystemExit('it went on')"],
        env=ENVIRON,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def catches_sigterm(pid: int) -> bool:
    """Whether the process has a handler for it; Python itself has one for SIGINT from its beginning."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"^SigCgt:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return found is not None and bool(int(found[1], 16) >> (signal.SIGTERM - 1) & 1)


def test_nothing_that_takes_time_comes_before_the_handlers() -> None:
    """What is loaded until then: nothing of others, and of ours the handlers alone."""
    code = "import sys, mistakebound.__main__; print(*sys.modules)"
    said = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=ENVIRON
    )
    loaded = said.stdout.split()
    assert {each for each in loaded if each.startswith("mistakebound")} == {
        "mistakebound",
        "mistakebound.__main__",
        "mistakebound.worker",
        "mistakebound.exit_codes",
        "mistakebound.worker.early_stop",
    }
    assert not {"typer", "structlog", "msgspec", "pydantic", "kafka", "numpy"} & set(loaded)


def test_a_second_signal_ends_the_worker_at_once(on_sqlite: Deploy) -> None:
    """Two signals before it could end: 130, and everything committed is there for the next worker."""
    place = on_sqlite(*SETTINGS, SMALL_STEPS)
    place.send(stream(2_000, chance_of("signalled twice").randrange(2**32)))
    worker = place.worker()
    place.works(worker)
    worker.signal(signal.SIGSTOP)  # so that both are there when it looks
    worker.signal(signal.SIGTERM)
    worker.signal(signal.SIGINT)
    worker.signal(signal.SIGCONT)
    assert worker.ends(5) == 130, worker.last_words()
    place.finish(place.worker())
    assert len(place.prove().predictions) == 2_000


def checkpointed(place: Deployment) -> dict[int, tuple[int, int]]:
    """Next offsets of each partition in the newest checkpoint."""
    told = place.newest_checkpoint()["partitions"]
    return {int(p): (one["examples_next"], one["labels_next"]) for p, one in told.items()}
