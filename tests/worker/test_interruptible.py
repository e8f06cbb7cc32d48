"""Restoring a long log: it can be interrupted, and tells how far it is."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from mistakebound.log.protocol import Log, Unreachable
from mistakebound.worker import interruptible
from mistakebound.worker.interruptible import EVERY, Interrupted, InterruptibleLog
from tests.worker.support.working import example, opened, settings_on

COUNT = 5 * EVERY


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Reads a topic of several thousand records, each thousand in the given seconds; returns what was logged."""

    def read(seconds: float, interrupted: bool = False) -> list[Any]:
        now_s = 0.0

        class Clock:
            @staticmethod
            def monotonic() -> float:
                return now_s

        monkeypatch.setattr(interruptible, "time", Clock)
        settings = settings_on(tmp_path / "log.db")
        with opened(settings) as log, capture_logs() as logged:
            if log.high_watermark("examples", 0) == 0:
                log.append(example(n, {}, 1_000) for n in range(COUNT))
            wrapped = cast("Log", InterruptibleLog(log, lambda: interrupted and now_s > 0))
            for record in wrapped.read("examples", 0, 0):
                if record.offset % EVERY == 0:
                    now_s += seconds
        return logged

    return read


def test_a_long_restoring_tells_how_far_it_is_and_then_more_seldom(told: Any) -> None:
    """By topic, partition and offset; after 2 s, and whenever the time has doubled."""
    lines = told(2.0)
    assert [(line["topic"], line["partition"], line["end"]) for line in lines] == [("examples", 0, COUNT)] * 3
    assert [line["seconds"] for line in lines] == [2.0, 4.0, 8.0]
    assert [line["offset"] for line in lines] == [EVERY - 1, 2 * EVERY - 1, 4 * EVERY - 1]


def test_a_short_one_tells_nothing_more(told: Any) -> None:
    """What took a second needs no line."""
    assert told(0.1) == []


def test_it_ends_where_the_worker_is_told_to_stop(told: Any) -> None:
    """Within a thousand records."""
    with pytest.raises(Interrupted):
        told(0.1, interrupted=True)


def test_a_read_without_progress_is_given_up_and_says_after_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks the log in slices, which is not how long it waited."""
    monkeypatch.setattr(interruptible, "WAIT_S", 0.05)

    class Away:
        def read(self, *_: Any, wait_s: float) -> Iterator[Any]:
            time.sleep(0.02)
            raise Unreachable(f"no progress for {wait_s:g} s")
            yield

    wrapped = cast("Log", InterruptibleLog(cast("Log", Away()), lambda: False))
    with pytest.raises(Unreachable, match=r"asked again and again for 0\.05 s"):
        list(wrapped.read("updates", 0, 0, 1))
