"""Other workers' updates, read ahead but not without limit."""

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from mistakebound.core.records import Record
from mistakebound.worker import following
from mistakebound.worker.following import Following


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
