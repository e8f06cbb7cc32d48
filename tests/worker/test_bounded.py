"""Nothing grows with the stream: what is buffered, read ahead or written at once is limited, in bytes too."""

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from mistakebound.core.records import Record
from mistakebound.core.step.merge import Merge
from mistakebound.worker import following, input_buffer
from mistakebound.worker.following import Following
from tests.worker.support.working import Recount, Run, example, label, opened, settings_for

LARGE = {"text": "x" * 20_000}


def test_a_worker_buffers_and_writes_large_records_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inputs are paused at four times `batch.max_bytes`, and a transaction ends at about that size."""
    peaks: list[int] = []

    class Watched(Merge):
        def add(self, records: Any) -> int:
            added = super().add(records)
            peaks.append(sum(map(sum, self._bytes.values())))
            return added

    monkeypatch.setattr(input_buffer, "Merge", Watched)
    monkeypatch.setattr("mistakebound.log.sqlite.rows.CHUNK_BYTES", 30_000)
    settings = settings_for(batch={"max_bytes": 50_000, "max_delay": 10})
    with capture_logs(), opened(settings) as log:
        log.append([example(n, LARGE, 1_000 + n) for n in range(60)])
        log.append([label(n, True, 2_000 + n) for n in range(60)])
        done = Run(log, settings)
        offsets = [record.offset for record in log.read("outcomes", 0, 0)]
        recount = Recount(log, settings)
    assert len(recount.predicted) == 60
    assert done.held.state.ledgers[0].tallies.life.examples["labelled"] == 60
    assert len(offsets) >= 60 * 20_000 // (50_000 + 20_500)
    assert max(peaks) <= 4 * 50_000 + 50_000 + 30_000 + 20_500, "the capacity, and what one poll brings"


def test_what_is_read_ahead_waits_for_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other workers' updates are not read on while too many bytes of them wait to be folded."""
    monkeypatch.setattr(following, "WAITING_BYTES", 100_000)
    read = 0
    enough = threading.Event()

    class Endless:
        def follow(self, starts: Any) -> Iterator[Sequence[Record]]:
            nonlocal read
            while True:
                read += 1
                if read * 30_000 > 100_000:
                    enough.set()
                yield [Record("updates", 0, read, 0, None, b"x" * 30_000)]

    log: Any = Endless()
    ahead = Following(log, {0: 0})
    try:
        assert enough.wait(10)
        time.sleep(0.1)  # it would read on now, if it did
        assert read == 4
    finally:
        ahead.close()
