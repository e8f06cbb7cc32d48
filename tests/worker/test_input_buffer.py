"""What is polled and not taken yet: of one generation, bounded, and filled in time."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from mistakebound.core.records import Record, Topic
from mistakebound.core.step.merge import Merge
from mistakebound.log.protocol import Polled
from mistakebound.settings import BatchSettings
from mistakebound.worker import input_buffer
from mistakebound.worker.events import Event, PollReturned
from mistakebound.worker.input_buffer import InputBuffer
from tests.worker.support.working import Hurried, Recount, Run, example, label, opened, settings_for

BATCH = BatchSettings.model_validate({"max_records": 20, "max_bytes": 10_000, "max_delay": 0.5})


def records(count: int, topic: Topic = "examples", partition: int = 0, size: int = 1) -> list[Record]:
    return [Record(topic, partition, offset, offset, None, b"x" * size) for offset in range(count)]


class Session:
    """Brings what `polls` say, one after the other, and then nothing; notes what it is asked."""

    def __init__(self, *polls: tuple[int, Sequence[Record]], partitions: tuple[int, ...] = (0,)) -> None:
        self._polls, self._partitions = list(polls), partitions
        self._generation = 0
        self.waits: list[float] = []
        self.paused: list[Any] = []
        self.resumed: list[Any] = []
        self.dry: set[tuple[Topic, int]] = set()

    def poll(self, timeout_s: float) -> Polled:
        self.waits.append(timeout_s)
        self._generation, found = self._polls.pop(0) if self._polls else (self._generation, ())
        return Polled(self._generation, self._partitions, found)

    def drained(self, asked: Iterable[tuple[Topic, int]]) -> set[tuple[Topic, int]]:
        return set(asked) & self.dry

    def pause(self, inputs: Iterable[tuple[Topic, int]]) -> None:
        self.paused += inputs

    def resume(self, inputs: Iterable[tuple[Topic, int]]) -> None:
        self.resumed += inputs


class Seen:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def observe(self, event: Event) -> None:
        self.events.append(event)


def begun(session: Session, seen: Seen | None = None) -> InputBuffer:
    """A buffer that has taken over what its first poll gave it."""
    asked: Any = session
    buffer = InputBuffer(asked, BATCH, (seen or Seen()).observe)
    assert not buffer.fill(0.5)
    assert buffer.assigned is not None
    buffer.begin(buffer.assigned)
    session.waits.clear()
    return buffer


def test_the_first_poll_of_a_session_is_an_assignment() -> None:
    """Nothing is buffered, and the group is not polled again, before it is taken over."""
    session = Session((3, records(5)))
    asked: Any = session
    buffer = InputBuffer(asked, BATCH, Seen().observe)
    assert not buffer.fill(0.5)
    assert not buffer.fill(0.5)
    assert (buffer.assigned, session.waits) == ((0,), [0.5])
    assert buffer.merge.buffered() == []


def test_another_generation_drops_everything_that_is_buffered() -> None:
    """Its records are those of partitions that may be another worker's now; what comes with it is read again."""
    buffer = begun(Session((1, ()), (1, records(9)), (1, ()), (2, records(3))))
    assert buffer.fill(0.0)
    assert buffer.merge.buffered() == [0]
    assert not buffer.fill(0.0)
    assert (buffer.generation, buffer.assigned) == (2, (0,))
    assert buffer.merge.buffered() == []


def test_another_generation_ends_the_filling_in_its_midst() -> None:
    """What the polls before it brought is dropped with the rest."""
    buffer = begun(Session((1, ()), (1, records(9)), (1, records(9)), (2, ()), (2, records(9))))
    assert not buffer.fill(0.0)
    assert buffer.merge.buffered() == []


def test_after_a_refused_commit_the_next_poll_assigns_anew() -> None:
    """Even where the client has not heard of it yet and polls in the old generation."""
    buffer = begun(Session((1, ()), (1, records(9)), (1, ()), (1, records(9))))
    assert buffer.fill(0.0)
    buffer.drop()
    assert buffer.merge.buffered() == []
    assert not buffer.worked_off()
    assert not buffer.fill(0.0)
    assert (buffer.generation, buffer.assigned) == (1, (0,))


@pytest.mark.parametrize(
    ("polls", "expected"),
    [
        ([40], 1),  # two steps' worth
        ([15, 15, 15], 3),
        ([1, 40], 2),
        ([0, 40], 1),  # a fortieth of a step is not little yet; nothing is
    ],
)
def test_filling_ends_with_enough_or_with_little(polls: list[int], expected: int) -> None:
    """Some steps' worth is there, or polling again would delay more than it gains. Only the first poll waits."""
    session = Session((1, ()), *((1, records(count)) for count in polls))
    buffer = begun(session)
    assert buffer.fill(0.5)
    assert session.waits == [0.5, *[0.0] * (expected - 1)]


def test_filling_ends_with_a_step_worth_of_bytes() -> None:
    """However few records they are."""
    session = Session((1, ()), *((1, records(5, size=1_500)) for _ in range(9)))
    assert begun(session).fill(0.0)
    assert len(session.waits) == 2


def test_filling_stops_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """After `batch.max_delay` the step is made, however much is still coming."""
    clock = Hurried()
    monkeypatch.setattr(input_buffer, "time", clock)
    session = Session((1, ()), *((1, records(2)) for _ in range(100)))
    poll = session.poll

    def slow(timeout_s: float) -> Polled:
        clock.sleep(0.2)
        return poll(timeout_s)

    buffer = begun(session)
    monkeypatch.setattr(session, "poll", slow)
    assert buffer.fill(0.0)
    assert len(session.waits) == 3


def test_an_input_that_runs_ahead_is_paused_until_half_of_it_is_taken() -> None:
    """Before the next poll, so that at most one more portion comes."""
    session = Session((1, ()), (1, records(40)))
    buffer = begun(session)
    buffer.fill(0.0)
    buffer.fill(0.0)
    assert (session.paused, session.resumed) == ([("examples", 0)], [])
    taken = buffer.merge.take(0, {("labels", 0)})
    for _ in range(20):
        next(taken)
    buffer.fill(0.0)
    assert (session.paused, session.resumed) == ([("examples", 0)], [("examples", 0)])


def test_a_new_assignment_forgets_what_was_paused() -> None:
    """The session has forgotten it, too: what is over its capacity is paused again."""
    session = Session((1, ()), (1, records(40)), (1, ()), (2, ()), (2, records(40)))
    buffer = begun(session)
    assert buffer.fill(0.0)
    assert buffer.fill(0.0)
    assert not buffer.fill(0.0)
    buffer.begin((0,))
    assert buffer.fill(0.0)
    assert buffer.fill(0.0)
    assert session.paused == [("examples", 0)] * 2


def test_everything_is_worked_off_when_both_inputs_are_drained() -> None:
    """A worker that owns nothing has not worked off anything: the group may not have shared out yet."""
    session = Session((1, ()), (1, ()))
    buffer = begun(session)
    assert not buffer.worked_off()
    session.dry = {("examples", 0), ("labels", 0)}
    assert buffer.worked_off()
    buffer.begin(())
    assert not buffer.worked_off()


def test_an_empty_input_is_asked_about_only_where_it_decides() -> None:
    """While nothing is buffered, or both sides are, the log need not be asked."""
    session = Session((1, ()), (1, records(3)), (1, ()), (1, records(3, "labels")))
    session.dry = {("examples", 0), ("labels", 0)}
    buffer = begun(session)
    assert set(buffer.drained()) == set()
    buffer.fill(0.0)
    assert set(buffer.drained()) == {("labels", 0)}
    buffer.fill(0.0)
    assert set(buffer.drained()) == set()


def test_each_poll_is_reported() -> None:
    """A loop whose polls return is alive."""
    seen = Seen()
    buffer = begun(Session((1, ()), (1, records(15)), (1, records(15)), (1, ())), seen)
    buffer.fill(0.0)
    assert [type(event) for event in seen.events] == [PollReturned] * 4


def test_a_worker_buffers_and_writes_large_records_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inputs are paused at four times `batch.max_bytes`, and a transaction ends at about that size."""
    peaks: list[int] = []

    class Watched(Merge):
        def add(self, records: Any) -> int:
            added = super().add(records)
            peaks.append(sum(each.bytes() for both in self._inputs.values() for each in both))
            return added

    monkeypatch.setattr(input_buffer, "Merge", Watched)
    monkeypatch.setattr("mistakebound.log.sqlite.rows.CHUNK_BYTES", 30_000)
    settings = settings_for(batch={"max_bytes": 50_000, "max_delay": 10})
    with capture_logs(), opened(settings) as log:
        log.append([example(n, {"text": "x" * 20_000}, 1_000 + n) for n in range(60)])
        log.append([label(n, True, 2_000 + n) for n in range(60)])
        done = Run(log, settings)
        offsets = [record.offset for record in log.read("outcomes", 0, 0)]
        recount = Recount(log, settings)
    assert len(recount.predicted) == 60
    assert done.held.state.ledgers[0].tallies.life.examples["labelled"] == 60
    assert len(offsets) >= 60 * 20_000 // (50_000 + 20_500)
    assert max(peaks) <= 4 * 50_000 + 50_000 + 30_000 + 20_500, "the capacity, and what one poll brings"
