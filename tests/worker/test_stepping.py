"""While a transaction is on its way to the log, the next step is made; nobody sees it before it is committed."""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from mistakebound.core.checkpoint_content import Checkpoint
from mistakebound.core.messages.schema import read_outcomes
from mistakebound.core.model.fold import Fold
from mistakebound.core.records import Topic, TopicPartition, Transaction
from mistakebound.core.step.state import State
from mistakebound.core.step.step import Step
from mistakebound.log.newest import newest_record
from mistakebound.log.protocol import Log, Polled, Receipt
from mistakebound.log.sqlite.session import SqliteSession
from mistakebound.settings import BatchSettings, Settings
from mistakebound.worker import stepping
from mistakebound.worker.checkpoints import schedule
from mistakebound.worker.events import Assigned, Event, StepCommitted
from mistakebound.worker.input_buffer import STEPS, InputBuffer
from mistakebound.worker.metrics.metrics import Metrics
from mistakebound.worker.step_limit import StepLimit
from mistakebound.worker.stepping import Stepping
from mistakebound.worker.takeover import WorkerState
from tests.core.support.feeding import Feeder
from tests.worker.support.faulty import FaultyLog
from tests.worker.support.working import Recount, Run, opened, settings_for, stream

PATIENCE_S = 30.0


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with capture_logs():
        yield


def small(**sections: Any) -> Settings:
    """Steps so small that several fit into what is buffered at once."""
    return settings_for(batch={"max_records": 5}, **sections)


def test_the_next_step_is_made_during_a_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first commit ends only after the second step was made: a worker that waited would wait for ever."""
    second = threading.Event()
    made: list[Step | None] = []
    step, commit = stepping.step, SqliteSession.commit

    def noted(*arguments: Any) -> Step | None:
        made.append(step(*arguments))
        if len(made) == 2:
            second.set()
        return made[-1]

    def held_up(self: SqliteSession, *arguments: Any) -> Any:
        assert second.wait(PATIENCE_S)
        return commit(self, *arguments)

    monkeypatch.setattr(stepping, "step", noted)
    monkeypatch.setattr(SqliteSession, "commit", held_up)
    settings = small()
    with opened(settings) as log:
        log.append(stream(40))
        Run(log, settings)
        assert len(Recount(log, settings).predicted) == 40


def test_a_group_that_moves_on_between_two_steps_loses_and_doubles_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whichever look tells it: the step that was made ahead by then is taken back, and made again."""
    taken_back: list[Any] = []
    rollback = State.rollback

    def noted(self: State, partitions: Any) -> None:
        taken_back.append(partitions)
        rollback(self, partitions)

    monkeypatch.setattr(State, "rollback", noted)
    settings = small()
    found = []
    for look in range(16):
        with opened(settings) as log:
            log.append(stream(40))
            faulty = FaultyLog(log, {("poll", look): "rebalance"} if look else {})
            Run(faulty, settings)
            assert faulty.happened == (["rebalance"] if look else [])
            found.append(Recount(log, settings).whole)
    assert all(each == found[0] for each in found)
    assert taken_back


def test_an_input_that_runs_ahead_is_paused_amid_a_chain() -> None:
    """A chain may be long, and its polls bring more of one input than the other lets it take: that must have a limit."""
    session, steps = _chained(lambda _: False)

    assert steps == 16
    assert session.paused
    assert session.most <= 2 * STEPS * 16, "the capacity, and what one filling brings"


def test_a_stop_ends_the_chain_with_the_step_that_is_made_already() -> None:
    """A worker that is told to end has seconds: it does not work off what is buffered."""
    _, steps = _chained(lambda session: session.commits > 1)

    assert steps <= 3


def _chained(stops: Callable[["_Uneven"], bool]) -> tuple["_Uneven", int]:
    """A chain of at most 16 steps of at most four records, and how many were made."""
    f = Feeder()
    uneven = _Uneven(f)
    session: Any = uneven
    buffer = InputBuffer(session, BatchSettings.model_validate({"max_records": 16}), lambda _: None)
    assert not buffer.fill(0.0)
    buffer.begin((0,))
    assert buffer.fill(0.0)
    held = WorkerState(f.state, Fold(f.settings, 1))
    with ThreadPoolExecutor(1) as commits:
        made = Stepping(
            session, buffer, commits, StepLimit(4), lambda _: None, lambda: 0, lambda _: stops(uneven)
        )
        return uneven, made.chain(held, 16)


def test_a_step_of_a_backlog_is_as_large_as_may_be_and_the_next_is_made_of_what_is_left() -> None:
    """If that is a quarter of a step at least."""
    f = Feeder()
    sent = [record for n in range(13) for record in (f.example(str(n), n), f.label(str(n), n))]
    bringing: Any = _Balanced(sent)
    buffer = InputBuffer(bringing, BatchSettings.model_validate({"max_records": 16}), lambda _: None)
    assert not buffer.fill(0.0)
    buffer.begin((0,))
    assert buffer.fill(0.0)
    seen: list[Event] = []
    with ThreadPoolExecutor(1) as commits:
        made = Stepping(bringing, buffer, commits, StepLimit(16), seen.append, lambda: 0, lambda _: False)
        made.chain(WorkerState(f.state, Fold(f.settings, 1)), 16)
    taken = [sum(event.facts.consumed.values()) for event in seen if isinstance(event, StepCommitted)]
    assert taken == [16, 9], "but for the last label: an example might come before it"


class _Balanced:
    """Its second poll brings everything."""

    def __init__(self, sent: list[Any]) -> None:
        self._polls = [[], sent]

    def poll(self, timeout_s: float) -> Polled:
        return Polled(1, (0,), self._polls.pop(0) if self._polls else ())

    def commit(self, transaction: Transaction, generation: int) -> Receipt:
        return Receipt({})

    def drained(self, inputs: Iterable[TopicPartition]) -> set[TopicPartition]:
        return set()


class _Uneven:
    """Every poll brings six examples and two labels, unless they are paused; each is as old as its number."""

    def __init__(self, f: Feeder) -> None:
        self._f = f
        self._begun = False
        self._taken = self.commits = 0
        self.paused: set[TopicPartition] = set()
        self.most = 0
        """Examples that were delivered and not committed."""

    def poll(self, timeout_s: float) -> Polled:
        if not self._begun:
            self._begun = True
            return Polled(1, (0,), ())
        paused, f = ("examples", 0) in self.paused, self._f
        found = [f.example(str(n), n) for n in self._next("examples", 0 if paused else 6)]
        found += [f.label(str(n), n) for n in self._next("labels", 2)]
        self.most = max(self.most, f.next["examples", 0] - self._taken)
        return Polled(1, (0,), found)

    def _next(self, topic: Topic, count: int) -> range:
        first = self._f.next[topic, 0]
        return range(first, first + count)

    def commit(self, transaction: Transaction, generation: int) -> Receipt:
        self._taken = transaction.positions[0].examples
        self.commits += 1
        return Receipt({})

    def pause(self, inputs: Iterable[TopicPartition]) -> None:
        self.paused.update(inputs)

    def resume(self, inputs: Iterable[TopicPartition]) -> None:
        self.paused.difference_update(inputs)

    def drained(self, inputs: Iterable[TopicPartition]) -> set[TopicPartition]:
        return set()


def test_a_checkpoint_holds_only_what_is_committed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """At the moment it is taken, its ledgers stand where the group does."""
    settings = small(checkpoint={"url": str(tmp_path), "every_updates": 1})
    stands: list[tuple[Any, Any]] = []
    encode = schedule.encode_checkpoint
    with opened(settings, 2) as log:

        def noted(made: Checkpoint) -> bytes:
            stands.append((stand_of_group(log), stand_of(made.ledgers)))
            return encode(made)

        monkeypatch.setattr(schedule, "encode_checkpoint", noted)
        log.append(stream(80, partitions=2))
        Run(log, settings)
    assert len(stands) > 1
    for group, taken in stands:
        assert taken == group


def test_what_a_hook_is_shown_is_committed() -> None:
    """Several steps may be committed between two looks; never fewer than are shown."""
    settings = small()
    shown: list[tuple[Any, Any]] = []
    with opened(settings, 2) as log:
        log.append(stream(80, partitions=2))

        def stepped(held: WorkerState) -> None:
            shown.append((stand_of_group(log), stand_of(held.state.ledgers)))

        Run(log, settings, stepped=stepped)
    assert len(shown) > 1
    for group, held in shown:
        assert held == group


def test_metrics_tell_only_what_is_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition's totals are those of its newest outcomes record, also while the next step is made."""
    settings = small()
    told: list[tuple[int, int]] = []
    observe = Metrics.observe
    with opened(settings) as log:

        def noted(self: Metrics, event: Event) -> None:
            if isinstance(event, Assigned | StepCommitted):
                newest = newest_record(log, "outcomes", 0)
                tallies = None if newest is None else read_outcomes(newest).tallies
                told.append((event.totals[0].labelled, 0 if tallies is None else tallies.life.judged))
            observe(self, event)

        monkeypatch.setattr(Metrics, "observe", noted)
        log.append(stream(40))
        Run(log, settings)
    assert told[-1] == (40, 40)
    for exported, committed in told:
        assert exported == committed


def stand_of(ledgers: Any) -> dict[int, tuple[int, int]]:
    return {p: (ledger.examples_next, ledger.labels_next) for p, ledger in ledgers.items()}


def stand_of_group(log: Log) -> dict[int, tuple[int, int]]:
    positions = log.group_positions()
    return {p: (0, 0) if found is None else (found.examples, found.labels) for p, found in positions.items()}
