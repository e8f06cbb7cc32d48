"""Two workers of one group on a real broker: each owns a part of the partitions, both hold one model."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from mistakebound.core.theorems.changes import proved_changes
from mistakebound.log import open_log
from mistakebound.settings import Settings
from mistakebound.worker.checkpoints import restore
from mistakebound.worker.checkpoints.schedule import CheckpointSchedule
from mistakebound.worker.events import show_all
from mistakebound.worker.loop import Worker
from mistakebound.worker.metrics.metrics import Metrics
from mistakebound.worker.takeover import fold_updates
from tests.worker.support.working import Recount, opened, settings_for, stream

PATIENCE_S = 60.0


@contextmanager
def working(settings: Settings, slot: str) -> Iterator[Worker]:
    """A worker in a thread, with a connection of its own."""
    stop = threading.Event()
    metrics = Metrics(["true", "false"], settings.learner.kind, "digest")
    with open_log(settings) as log:
        checkpoints = CheckpointSchedule(log, settings, slot, metrics)
        worker = Worker(
            log,
            settings,
            slot,
            observe=show_all(metrics.observe, checkpoints.observe),
            checkpoints=checkpoints,
            stopping=lambda idle: stop.is_set(),
        )
        thread = threading.Thread(target=worker.run, name=slot)
        thread.start()
        try:
            yield worker
        finally:
            stop.set()
            thread.join(PATIENCE_S)
        assert not thread.is_alive()


def until(holds: Any, what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, f"still not: {what}"
        time.sleep(0.05)


def owned(worker: Worker) -> list[int]:
    return [] if worker.held is None else list(worker.held.state.ledgers)


def test_two_workers_share_one_model_and_nothing_is_doubled(
    kafka_bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One starts, another joins under load and leaves: predictions stay one per example, and the replicas meet.

    Checkpoints lie where both can read them: who takes a partition over goes on from the other's.
    """
    monkeypatch.setattr(restore, "WORTH_RECORDS", 0)
    settings = settings_for(
        f"kafka://{kafka_bootstrap}",
        batch={"max_records": 50},
        labels={"max_delay": 100_000},
        checkpoint={"url": str(tmp_path), "every_updates": 50},
    )
    begun_ms = round(time.time() * 1000) - 3_600_000
    inputs = [
        each._replace(timestamp_ms=begun_ms + (each.timestamp_ms or 0))
        for each in stream(2_000, partitions=4, delay=50)
    ]
    with capture_logs() as said, opened(settings, 4) as log:
        log.append(inputs[:2_000])
        with working(settings, "one") as one:
            until(lambda: sum(owned(one)) == 6, "the first worker owns all")
            with working(settings, "two") as two:
                until(lambda: len(owned(one)) == len(owned(two)) == 2, "each owns two")
                log.append(inputs[2_000:])

                def counted() -> list[int]:
                    return fold_updates(log, settings, None).model.updates

                def whole() -> bool:
                    positions = log.group_positions()
                    return all(
                        position is not None
                        and position.examples == log.high_watermark("examples", p)
                        and position.labels == log.high_watermark("labels", p)
                        for p, position in positions.items()
                    )

                until(whole, "all inputs are consumed")
                total = counted()
                for worker in (one, two):
                    until(lambda: worker.held.state.model.updates == total, "a replica has all updates")  # noqa: B023
                assert sorted(owned(one) + owned(two)) == [0, 1, 2, 3]
                digests = {
                    worker.held.state.model.digest() for worker in (one, two) if worker.held is not None
                }
                theirs = owned(two)
            until(lambda: len(owned(one)) == 4, "the first worker owns all again")
            assert one.held is not None
            digests.add(one.held.state.model.digest())
        borrowed = [each["partition"] for each in said if each["event"] == "ledger_borrowed"]
        assert set(borrowed) >= set(theirs)
        assert not [each for each in said if each["event"] == "borrowed_ledger_left"]
        recount = Recount(log, settings)
        assert digests == {recount.digest}
        assert len(recount.predicted) == len({record_id for record_id, _ in recount.predicted}) == 2_000


def test_two_workers_start_from_zero_at_one_version(kafka_bootstrap: str) -> None:
    """Labels by chance refute the declared margin again and again: both hold one model, and have counted the same."""
    settings = settings_for(
        f"kafka://{kafka_bootstrap}",
        learner={"kind": "averaged-perceptron", "gamma": 0.3, "on_refuted": "restart"},
        batch={"max_records": 20},
        labels={"max_delay": 100_000},
    )
    begun_ms = round(time.time() * 1000) - 3_600_000
    inputs = [
        each._replace(timestamp_ms=begun_ms + (each.timestamp_ms or 0))
        for each in stream(800, partitions=4, delay=50)
    ]
    with capture_logs(), opened(settings, 4) as log:
        log.append(inputs[:400])
        with working(settings, "one") as one, working(settings, "two") as two:
            until(lambda: len(owned(one)) == len(owned(two)) == 2, "each owns two")
            log.append(inputs[400:])
            ends = [log.high_watermark("labels", p) for p in range(4)]

            def at_rest() -> bool:
                positions = log.group_positions()
                return all((at := positions[p]) is not None and at.labels == ends[p] for p in range(4))

            until(at_rest, "all labels are consumed")
            made = fold_updates(log, settings, None).model
            for worker in (one, two):
                until(lambda: worker.held.state.model.updates == made.updates, "a replica has all updates")  # noqa: B023
                model = worker.held.state.model  # type: ignore[union-attr]
                assert model.digest() == made.digest()
                assert proved_changes(model) == proved_changes(made)
            assert made.restarts > 1
