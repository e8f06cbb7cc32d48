"""Other workers' updates, read ahead but not without limit."""

import threading
import time
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from mistakebound.core.records import Record
from mistakebound.log.protocol import Refused, Unreachable
from mistakebound.worker import following
from mistakebound.worker.following import Following


class Endless:
    """Batches of 30,000 bytes, without end; tells when it has been read so often."""

    def __init__(self, enough: int) -> None:
        self.read, self.enough, self.reached = 0, enough, threading.Event()

    def follow(self, starts: Any) -> Iterator[Sequence[Record]]:
        while True:
            self.read += 1
            if self.read >= self.enough:
                self.reached.set()
            yield [Record("updates", 0, self.read, 0, None, b"x" * 30_000)]


class Taking:
    """A fold that takes every record, or finds another epoch."""

    def __init__(self, going_on: bool = True) -> None:
        self.taken: list[int] = []
        self.epochs = {1: None, 2: None}
        self.model = SimpleNamespace(epoch=1)
        self._going_on = going_on

    def fold(self, partition: int, records: Sequence[Record]) -> bool:
        self.taken += [record.offset for record in records]
        return self._going_on


def test_what_is_read_ahead_waits_for_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other workers' updates are not read on while too many bytes of them wait to be folded."""
    monkeypatch.setattr(following, "WAITING_BYTES", 100_000)
    endless: Any = Endless(4)
    ahead = Following(endless, {0: 0})
    try:
        assert endless.reached.wait(10)
        time.sleep(0.1)  # it would read on now, if it did
        assert endless.read == 4
    finally:
        ahead.close()


def test_once_the_loop_has_taken_it_more_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """However much there was at one time: a follower that stopped for good would hold an old model."""
    monkeypatch.setattr(following, "WAITING_BYTES", 100_000)
    endless: Any = Endless(50)
    fold: Any = Taking()
    ahead = Following(endless, {0: 0})
    try:
        deadline = time.monotonic() + 10
        while not endless.reached.is_set() and time.monotonic() < deadline:
            ahead.fold_into(fold)
            time.sleep(0.001)
        assert endless.reached.is_set()
        assert fold.taken == list(range(1, len(fold.taken) + 1))
    finally:
        ahead.close()


def test_what_ends_the_reading_is_raised_in_the_loop() -> None:
    """After what was read before it; else a worker would work on with a model that no longer follows the others'."""

    class Ending:
        def follow(self, starts: Any) -> Iterator[Sequence[Record]]:
            yield [Record("updates", 0, 1, 0, None, b"x")]
            raise Unreachable("the broker is away")

    log: Any = Ending()
    fold: Any = Taking()
    ahead = Following(log, {0: 0})
    try:
        with pytest.raises(Unreachable, match="the broker is away"):
            for _ in range(1_000):
                ahead.fold_into(fold)
                time.sleep(0.01)
        assert fold.taken == [1]
    finally:
        ahead.close()


def test_an_epoch_that_others_begin_ends_the_work() -> None:
    """Its settings may be others, and its model is."""
    endless: Any = Endless(1)
    fold: Any = Taking(going_on=False)
    ahead = Following(endless, {0: 0})
    try:
        assert endless.reached.wait(10)
        with pytest.raises(Refused, match="epoch 2 began while this worker worked in epoch 1"):
            for _ in range(1_000):
                ahead.fold_into(fold)
                time.sleep(0.01)
    finally:
        ahead.close()
