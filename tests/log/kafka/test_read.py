"""Reads lend their fetchers from one stock, on a library that does what it is told."""

from collections.abc import Sequence
from typing import Any

import pytest

from mistakebound.core.records import Record
from mistakebound.log.kafka.names import Names
from mistakebound.log.kafka.read import Reader
from mistakebound.settings import Settings
from tests.log.support.unwatched import UNWATCHED
from tests.log.support.watched import Noted, Watched

END = 3


class Fetcher:
    """`mistakebound.log.kafka.ports.Fetcher` of one partition, which gives one record at a time."""

    def __init__(self, *, follows: bool) -> None:
        self.follows = follows
        self.calls: list[str] = []
        self._topic_partition: Any = None
        self._next = 0

    def start(self, starts: Any, doing: str) -> None:
        self.calls.append("start")
        ((self._topic_partition, self._next),) = starts.items()

    def fetch(self, timeout_s: float) -> Sequence[Record]:
        if self._next == END:
            return ()
        self._next += 1
        return (Record(*self._topic_partition, self._next - 1, -1, None, b"v", ()),)

    def position(self) -> int:
        return self._next

    def rest(self) -> None:
        self.calls.append("rest")

    def close(self) -> None:
        self.calls.append("close")


class Watermarks:
    """A log of which only the watermarks are there."""

    def high_watermark(self, topic: str, partition: int) -> int:
        return END

    def low_watermark(self, topic: str, partition: int) -> int:
        return 0


@pytest.fixture
def made() -> list[Fetcher]:
    """The fetchers that were made for the reader."""
    return []


@pytest.fixture
def reader(made: list[Fetcher]) -> Reader:
    def make(*, follows: bool) -> Fetcher:
        made.append(Fetcher(follows=follows))
        return made[-1]

    log: Any = Watermarks()
    return Reader(make, Names.of(Settings()), log, UNWATCHED)


def test_reads_one_after_another_share_a_fetcher_though_none_was_taken_to_its_end(
    reader: Reader, made: list[Fetcher]
) -> None:
    """Whoever wants one record takes it and throws the rest away."""
    offsets = [next(reader.read("updates", 0, start, None, 1.0)).offset for start in range(END)]

    assert offsets == [0, 1, 2]
    (one,) = made
    assert one.calls == ["start", "rest"] * 3


def test_reads_at_the_same_time_have_a_fetcher_each(reader: Reader, made: list[Fetcher]) -> None:
    one, other = (reader.read("updates", p, 0, None, 1.0) for p in (0, 1))

    assert [(a.partition, b.partition) for a, b in zip(one, other, strict=True)] == [(0, 1)] * END
    assert len(made) == 2


def test_who_follows_after_another_gets_its_fetcher_and_no_reader_does(
    reader: Reader, made: list[Fetcher]
) -> None:
    """At each takeover a worker follows others anew: a client made each time is memory that does not come back."""
    for start in range(END):
        following = reader.follow({("updates", 0): start})
        assert next(following)[0].offset == start
        following.close()
        next(reader.read("updates", 0, start, None, 1.0))

    assert [each.follows for each in made] == [True, False]
    assert made[0].calls == ["start", "rest"] * 3


def test_a_closed_reader_has_closed_every_fetcher_once(reader: Reader, made: list[Fetcher]) -> None:
    """Those of reads and of followers, lent or not."""
    ended = reader.follow({("updates", 0): 0})
    next(ended)
    ended.close()
    next(reader.read("updates", 0, 0, None, 1.0))
    held = [reader.follow({("updates", 0): 0}), reader.read("updates", 0, 0, None, 1.0)]
    for each in held:
        next(each)

    reader.close()
    del held

    assert [each.calls.count("close") for each in made] == [1] * len(made)


def test_no_call_of_a_fetcher_may_hang_for_ever() -> None:
    """Neither its first nor its last."""
    watchdog = Watched()

    def make(*, follows: bool) -> Any:
        return Noted(Fetcher(follows=follows), watchdog)

    log: Any = Watermarks()
    looked_after: Any = watchdog
    one = Reader(make, Names.of(Settings()), log, looked_after)
    assert len(list(one.read("updates", 0, 0, None, 1.0))) == END
    following = one.follow({("updates", 0): 0})
    next(following)
    following.close()
    one.close()

    assert watchdog.seen == {"start", "fetch", "position", "rest", "close"}
    assert watchdog.unseen == set()
