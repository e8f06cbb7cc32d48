"""A step whose transaction was torn: the worker heals what can be healed without a loss, and else names the way on.

On a real broker, with each client: `tests/faults/test_torn_steps.py`.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET
from structlog.testing import capture_logs

from mistakebound.core.faults import BadLog
from mistakebound.core.messages.schema import Base, read_outcomes, read_prediction
from mistakebound.core.records import Outgoing, Position, Record, Topic, Transaction
from mistakebound.log.protocol import Log, OffsetLost, Polled, Refused, Session
from mistakebound.log.sqlite import group, rows
from mistakebound.settings import Settings
from mistakebound.worker.epochs import reset
from mistakebound.worker.takeover import fold_updates
from tests.worker.support.faulty import FaultyLog
from tests.worker.support.torn import SIZE, Killed, Torn, all_but_one, audited, first_of, lists_of, of, tear
from tests.worker.support.working import (
    Recount,
    Run,
    example,
    label,
    opened,
    rejected,
    settings_on,
    stream,
    written,
)

EVERYTHING = of("predictions", "outcomes", "updates", "dead-letters")
NOTHING = of()

HEALED = {
    "positions of N with outputs of N+1": (EVERYTHING, False),
    "positions of N+1 with outputs of N": (NOTHING, True),
    "only predictions visible": (of("predictions"), False),
    "only the first predictions visible": (first_of(2, "predictions"), False),
    "predictions and dead letters visible": (of("predictions", "dead-letters"), False),
    "predictions visible and positions of N+1": (of("predictions"), True),
}
MISSING = {
    "outcomes visible and predictions aborted": of("outcomes", "updates", "dead-letters"),
    "outcomes visible and the last predictions aborted": first_of(
        2, "predictions", "outcomes", "updates", "dead-letters"
    ),
    "outcomes visible and one prediction aborted": all_but_one(
        "predictions", "outcomes", "updates", "dead-letters"
    ),
}
OTHER_TALLY = {
    "only updates visible": (of("updates"), False),
    "updates and predictions visible": (of("updates", "predictions"), False),
    "outcomes visible and updates aborted": (of("outcomes", "predictions", "dead-letters"), True),
    "outcomes alone visible": (of("outcomes", "predictions"), False),
}


@pytest.fixture(autouse=True)
def said() -> Iterator[list[Any]]:
    """What the worker logs."""
    with capture_logs() as said:
        yield said


SAID_BESIDE: dict[str, Any] = {
    "labels": {"max_delay": 1000, "ask": 1.0},
    "predictions": {"probability": True},
}
"""Settings that have predictions say more, which must be healed as well."""


@pytest.fixture(params=["plain", "said beside"])
def settings(file: Path, request: pytest.FixtureRequest) -> Settings:
    more = SAID_BESIDE if request.param == "said beside" else {}
    return settings_on(file, batch={"max_records": SIZE}, **more)


def whole(log: Log, settings: Settings) -> None:
    """Every example is predicted once, and the audit finds nothing."""
    names = [name for name, _ in Recount(log, settings).predicted]
    assert sorted(names) == sorted(f"i{number}" for number in range(60))
    found = audited(log, settings)
    assert found.first == []


@pytest.mark.parametrize("state", HEALED)
def test_what_loses_nothing_is_healed(state: str, settings: Settings) -> None:
    """One prediction for each example, each label counted once, and every number derivable, without a word."""
    keep, positions = HEALED[state]
    with opened(settings) as log:
        tear(log, settings, keep, positions=positions)
        Run(log, settings)
        whole(log, settings)
        Run(log, settings)


@pytest.mark.parametrize("state", HEALED)
def test_it_is_healed_however_often_the_worker_restarts(state: str, settings: Settings) -> None:
    """Before the step is made again, amid it, and after it: what was published is found again each time."""
    keep, positions = HEALED[state]
    small = Settings.model_validate({**settings.model_dump(), "batch": {"max_records": 1}})
    with opened(settings) as log:
        tear(log, settings, keep, positions=positions)
        for _ in range(12):
            steps: list[Any] = []
            Run(log, small, stopping=lambda idle: idle or len(steps) > 1, stepped=steps.append)  # noqa: B023
        Run(log, settings)
        whole(log, settings)


@pytest.mark.parametrize("state", [name for name in HEALED if name != "positions of N with outputs of N+1"])
def test_a_partition_whose_first_step_was_torn_is_begun_when_asked_for(
    state: str, settings: Settings
) -> None:
    """Nothing says yet how far it came. What is published is kept, each label is counted once."""
    keep, positions = HEALED[state]
    with opened(settings) as log:
        tear(log, settings, keep, positions=positions, at=0)
        with pytest.raises((BadLog, Refused), match=r"[Ss]tart with --resume-from-outcomes"):
            Run(log, settings)
        kept = [record.offset for record in log.read("predictions", 0, 0)]

        Run(log, settings, from_outcomes=True)

        assert [record.offset for record in log.read("predictions", 0, 0)][: len(kept)] == kept
        whole(log, settings)
        Run(log, settings)
        Run(log, settings, from_outcomes=True)


@pytest.mark.parametrize("state", MISSING)
@pytest.mark.parametrize("from_outcomes", [False, True])
def test_missing_predictions_are_told_and_made_again_when_asked_for(
    state: str, from_outcomes: bool, settings: Settings
) -> None:
    """Nobody has seen them. Without the flag nothing is written, `--resume-from-outcomes` included: it would lose them."""
    with opened(settings) as log:
        tear(log, settings, MISSING[state])
        ends = log.high_watermark("predictions", 0)
        with pytest.raises(BadLog, match=r"outcomes-0 counts \d+ examples .* --predict-missing") as refused:
            Run(log, settings, from_outcomes=from_outcomes)
        assert log.high_watermark("predictions", 0) == ends
        told = re.search(r"counts (\d+) examples", str(refused.value))
        assert told is not None

        there = fold_updates(log, settings, None).model.version()

        Run(log, settings, from_outcomes=from_outcomes, predict_missing=True)

        again = [read_prediction(record) for record in log.read("predictions", 0, ends)]
        again = [each for each in again if each.again is True]
        assert len(again) == int(told[1]) > 0
        assert all(each.model == there for each in again), "the model that did it is the present one"
        whole(log, settings)
        Run(log, settings)
        Run(log, settings, from_outcomes=True)


@pytest.mark.parametrize("state", MISSING)
def test_predictions_missing_for_long_are_made_again_as_what_became_of_their_examples_has_it(
    state: str, settings: Settings
) -> None:
    """Each once. Where the label was applied, it is the class that was judged, as counted, and nothing waits again."""
    settings = Settings.model_validate({**settings.model_dump(), "batch": {"max_records": 3 * SIZE}})
    with opened(settings) as log:
        log.append(stream(60, seed=3))
        Run(Torn(log, 1, MISSING[state], positions=True, lying=True, once=True), settings)
        ends = log.high_watermark("predictions", 0)

        held = Run(log, settings, predict_missing=True).held.state.ledgers[0]

        predictions = [read_prediction(record) for record in log.read("predictions", 0, 0)]
        assert sorted(each.source for each in predictions) == list(range(60))
        again = [each for each in predictions if each.again is True]
        assert len(again) == log.high_watermark("predictions", 0) - ends > 0
        assert all(each.score is UNSET for each in again), "all of them are labelled"
        assert not held.waiting
        decisions = [d for each in log.read("outcomes", 0, 0) for d in read_outcomes(each).decisions]
        judged = {each.source: each.prediction for each in decisions if each.outcome == "applied"}
        assert all(each.prediction == judged[each.source] for each in again)


def test_predictions_that_could_not_be_made_again_for_a_rebalance_are_made_by_the_next_takeover(
    settings: Settings, said: list[Any]
) -> None:
    """The group moved on before they were committed: nothing of that attempt is kept."""
    with opened(settings) as log:
        tear(log, settings, MISSING["outcomes visible and predictions aborted"], positions=True)
        faulty = FaultyLog(log, {("commit", 0): "stale"})

        Run(faulty, settings, predict_missing=True)

        assert faulty.happened == ["stale"]
        assert [each["event"] for each in said].count("predicted_again") == 2
        whole(log, settings)


def test_a_label_that_waited_for_an_example_of_a_torn_step_is_applied(settings: Settings) -> None:
    """Its example's prediction is there, and is not made again; the label need not come again either."""
    with opened(settings) as log:
        log.append([example(number, {"a": 1}, 1_000 + number) for number in range(10)])
        log.append([label(number, True, 2_000 + number) for number in range(20)])
        Run(log, settings)
        log.append([example(number, {"a": 1}, 3_000 + number) for number in range(10, 20)])
        with contextlib.suppress(Killed):
            Run(Torn(log, 0, of("predictions")), settings)
        assert len(list(log.read("predictions", 0, 0))) == 20

        run = Run(log, settings)

        ledger = run.held.state.ledgers[0]
        assert (len(ledger.waiting), len(ledger.parked)) == (0, 0)
        assert ledger.tallies.life.labels["applied"] == 20
        assert len(Recount(log, settings).predicted) == 20
        assert audited(log, settings).first == []


@pytest.mark.parametrize("state", MISSING)
def test_what_was_predicted_again_after_later_steps_had_learned_passes_the_audit(
    state: str, settings: Settings
) -> None:
    """It carries the present version; the steps that came between began with older ones."""
    with opened(settings) as log:
        log.append(stream(60, delay=60, seed=3))
        last = 60 // SIZE - 1
        Run(Torn(log, last, MISSING[state], positions=True, lying=True, once=True), settings)

        Run(log, settings, predict_missing=True)

        whole(log, settings)


@pytest.mark.parametrize("state", OTHER_TALLY)
def test_another_number_of_updates_is_refused_with_a_version_to_go_on_from(
    state: str, settings: Settings
) -> None:
    """The version that is there and counted; an epoch that begins with it goes on, and no example is predicted twice."""
    keep, positions = OTHER_TALLY[state]
    with opened(settings) as log:
        tear(log, settings, keep, positions=positions)
        with pytest.raises(BadLog, match=r"reset --to \d+:\d+") as refused:
            Run(log, settings)
        told = re.search(r"reset --to (\d+):(\d+)", str(refused.value))
        assert told is not None
        plan = reset.planned(log, settings, Base(int(told[1]), [int(told[2])]))
        assert plan is not None
        reset.execute(log, settings, plan, 5)
        Run(log, settings)
        sources = [read_prediction(record).source for record in log.read("predictions", 0, 0)]
        assert sources == list(range(60))


@pytest.mark.parametrize("last", ["examples and labels", "labels"])
def test_a_checkpoint_of_a_step_that_a_broker_aborted_is_not_trusted(
    settings: Settings, folder: Path, last: str
) -> None:
    """The worker took the step for committed, and wrote a checkpoint: the log knows nothing of it."""
    settings = Settings.model_validate({**settings.model_dump(), "checkpoint": {"url": str(folder)}})
    with opened(settings) as log:
        log.append(stream(55))
        Run(log, settings)
        log.append(stream(5, first=55) if last != "labels" else [label(0, True, 9_000)])
        Run(Torn(log, 0, NOTHING, positions=True, lying=True), settings)
        assert len(written(folder)) == 2
        Run(log, settings)
        assert len(rejected(folder)) == 1
        assert audited(log, settings).first == []
        assert len(Recount(log, settings).predicted) == (55 if last == "labels" else 60)


def test_a_checkpoint_beyond_several_torn_steps_hides_no_missing_predictions(
    settings: Settings, folder: Path
) -> None:
    """The worker took them for committed; the newest made labels count alone, and lacks nothing itself."""
    settings = Settings.model_validate({**settings.model_dump(), "checkpoint": {"url": str(folder)}})
    with opened(settings) as log:
        log.append(stream(50))
        Run(log, settings)
        log.append([*(example(n, {"a": 1}, 9_000) for n in range(50, 50 + SIZE)), label(50, True, 9_001)])
        Run(Torn(log, 0, of("outcomes", "updates"), lying=True), settings)
        assert len(written(folder)) == 2

        with pytest.raises(BadLog, match=rf"counts {SIZE} examples .* Start with --predict-missing"):
            Run(log, settings)
        Run(log, settings, predict_missing=True)

        names = [name for name, _ in Recount(log, settings).predicted]
        assert sorted(names) == sorted(f"i{number}" for number in range(50 + SIZE))


def test_a_torn_step_beside_a_whole_one_is_healed_by_itself(settings: Settings) -> None:
    """Of two partitions of one transaction, each is healed as it is found."""
    with opened(settings, 2) as log:
        tear(
            log,
            settings,
            lambda outputs: [each for each in outputs if each.partition == 0 or each.topic == "predictions"],
        )
        Run(log, settings)
        whole(log, settings)


def test_adopted_predictions_may_be_of_a_version_that_is_gone(settings: Settings) -> None:
    """Made with updates that were aborted: the audit compares what does not depend on the model, and says so."""
    with opened(settings) as log:
        tear(log, settings, aged)
        Run(log, settings)
        found = audited(log, settings)
        assert found.first == []
        assert (
            found.notes["predictions of a torn transaction, whose version is gone, were taken on trust"] > 0
        )


def aged(outputs: Sequence[Outgoing]) -> list[Outgoing]:
    """The predictions, as if the model had forgotten something."""
    kept = [each for each in outputs if each.topic == "predictions"]
    return [
        each._replace(value=re.sub(rb'"updates":\[\d+\]', b'"updates":[0]', each.value or b""))
        for each in kept
    ]


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("score", "with the score 0.123"),
        ("features", r"features is {\"a\":0.5}"),
        ("prediction", "predicted again by the version"),
    ],
)
def test_a_wrong_prediction_of_a_torn_step_is_found(what: str, said: str, settings: Settings) -> None:
    """Marked as made again, it must still be what the model of its version gives."""
    with opened(settings) as log:
        tear(log, settings, MISSING["outcomes visible and predictions aborted"])
        Run(log, settings, predict_missing=True)
        records = lists_of(log)
        place = next(
            number
            for number, value in enumerate(records.values("predictions", 0))
            if value.get("again") and "score" in value
        )

        def alter(value: Any) -> None:
            value[what] = {"score": 0.123, "features": {"a": 0.5}, "prediction": not value["prediction"]}[
                what
            ]

        records.rewrite("predictions", 0, place, alter)
        texts = [each.text for each in records.audit().first if each.check == "predictions"]
        assert any(re.search(said, text) for text in texts)


# --- others went on meanwhile -----------------------------------------------------------------------------------


@contextlib.contextmanager
def half_worked_off(settings: Settings) -> Iterator[Log]:
    """A log of 60 examples, of which a worker has seen 30."""
    with opened(settings) as log:
        log.append(stream(30))
        Run(log, settings)
        log.append(stream(30, first=30))
        yield log


class Overtaken:
    """A log on which others go on between a worker's first look at the positions and its reading of the rest."""

    def __init__(self, log: Log, meanwhile: Callable[[], None]) -> None:
        self._log, self._meanwhile = log, [meanwhile]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def join(self, slot: str) -> Any:
        session = self._log.join(slot)
        committed = session.committed

        def slowly(partitions: Any) -> Any:
            found = committed(partitions)
            if self._meanwhile:
                self._meanwhile.pop()()
            return found

        session.committed = slowly  # type: ignore[method-assign]
        return session


@pytest.mark.parametrize("checkpoints", [False, True])
def test_a_takeover_that_is_overtaken_asks_again(
    settings: Settings, folder: Path, said: list[Any], checkpoints: bool
) -> None:
    """What it read is of two moments, and nothing is wrong: it takes over once more, and sets no checkpoint aside."""
    settings = Settings.model_validate(
        {**settings.model_dump(), "checkpoint": {"url": str(folder) if checkpoints else ""}}
    )
    with half_worked_off(settings) as log:
        moved = {}

        def others() -> None:
            """Another worker's step, while this one's slot keeps its session."""
            moved.update(commit_elsewhere(log, settings))

        Run(Overtaken(log, others), settings)
        assert moved
        assert [each["event"] for each in said].count("takeover_overtaken") == 1
        assert rejected(folder) == []
        whole(log, settings)


def test_a_takeover_that_is_overtaken_while_it_reads_asks_again(settings: Settings, said: list[Any]) -> None:
    """It has folded the updates, and outcomes that come then count more of them: nothing is gone."""
    with half_worked_off(settings) as log:
        reading = Reading(log, lambda: commit_elsewhere(log, settings))

        Run(reading, settings)

        assert reading.done
        told = [each["error"] for each in said if each["event"] == "takeover_overtaken"]
        assert len(told) == 1
        assert "the positions moved while this worker took partitions over" in told[0]
        whole(log, settings)


def test_so_does_one_that_goes_on_from_outcomes_where_the_offsets_are_lost(
    settings: Settings, said: list[Any]
) -> None:
    """The group's offsets cannot tell that others went on; their outcomes do."""
    with half_worked_off(settings) as log:
        lose_offsets(log)

        def others() -> None:
            commit_elsewhere(log, settings, lost=True)
            lose_offsets(log)

        reading = Reading(log, others)
        Run(reading, settings, from_outcomes=True)

        assert reading.done
        assert [each["event"] for each in said].count("takeover_overtaken") == 1
        whole(log, settings)


def lose_offsets(log: Log) -> None:
    """The group's, of all partitions."""
    with log._database.transaction() as connection:  # type: ignore[attr-defined]
        connection.execute("DELETE FROM positions")


class Reading:
    """A log on which others go on when a worker that has folded `updates` begins to read outcomes."""

    def __init__(self, log: Log, meanwhile: Callable[[], object]) -> None:
        self._log, self._meanwhile = log, meanwhile
        self._folded = self.done = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def join(self, slot: str) -> Session:
        session = self._log.join(slot)
        self._folded = False
        return session

    def read(self, topic: Topic, *where: Any, **named: Any) -> Iterator[Record]:
        self._folded = self._folded or topic == "updates"
        return self._log.read(topic, *where, **named)

    def high_watermark(self, topic: Topic, partition: int) -> int:
        if topic == "outcomes" and self._folded and not self.done:
            self.done = True
            self._meanwhile()
        return self._log.high_watermark(topic, partition)


class Woken:
    """A log whose n-th poll finds that the records it would read are deleted, after `meanwhile`; each later one, too, until
    what it reads is paused, and once more then: that answer was under way."""

    def __init__(self, log: Log, meanwhile: Callable[[], object], at: int = 3) -> None:
        self._log, self._meanwhile, self._polls, self._at = log, meanwhile, 0, at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def join(self, slot: str) -> Session:
        session = self._log.join(slot)
        poll, pause = session.poll, session.pause
        deleted = under_way = False

        def polled(timeout_s: float) -> Polled:
            nonlocal deleted, under_way
            self._polls += 1
            if self._polls == self._at:
                self._meanwhile()
                deleted = True
            if deleted or under_way:
                under_way = False
                raise OffsetLost("read examples and labels")
            return poll(timeout_s)

        def paused(inputs: Any) -> None:
            nonlocal deleted, under_way
            pause(inputs)
            deleted, under_way = False, deleted

        session.poll = polled  # type: ignore[method-assign]
        session.pause = paused  # type: ignore[method-assign]
        return session


def test_input_deleted_behind_the_back_of_a_paused_worker_is_not_refused_where_others_read_it(
    settings: Settings, said: list[Any]
) -> None:
    """It stood still, others took over and went on, and retention deleted what they had read: it takes over again."""
    with half_worked_off(settings) as log:
        Run(Woken(log, lambda: commit_elsewhere(log, settings)), settings)

        assert [each["event"] for each in said].count("takeover_overtaken") == 2
        whole(log, settings)


@pytest.mark.parametrize("lost", [False, True])
def test_nor_where_the_paused_worker_had_begun_without_a_position(
    settings: Settings, said: list[Any], lost: bool
) -> None:
    """Others were the first to commit; where the group's offsets are lost since, their outcomes tell."""
    with opened(settings) as log:
        log.append(stream(30))

        def others() -> None:
            commit_elsewhere(log, settings)
            if lost:
                lose_offsets(log)

        woken = Woken(log, others, at=2)
        if lost:
            with pytest.raises(Refused, match="no committed offset for partition 0"):
                Run(woken, settings)
            Run(log, settings, from_outcomes=True)
        else:
            Run(woken, settings)

        assert "takeover_overtaken" in [each["event"] for each in said]
        names = [name for name, _ in Recount(log, settings).predicted]
        assert sorted(names) == sorted(f"i{number}" for number in range(30))


def test_input_deleted_before_anybody_read_it_is_refused(settings: Settings) -> None:
    """The positions are where the worker left them."""
    with half_worked_off(settings) as log, pytest.raises(OffsetLost):
        Run(Woken(log, lambda: None), settings)


def commit_elsewhere(log: Log, settings: Settings, *, lost: bool = False) -> Mapping[int, Position]:
    """What another owner of the partitions commits, past this worker's fence; told that offsets were lost, if they were."""
    made: list[Transaction] = []

    class Caught(Torn):
        def commit(self, session: Any, transaction: Transaction, generation: int) -> Any:
            made.append(transaction)
            raise Killed

    copy = Settings.model_validate({**settings.model_dump(), "checkpoint": {"url": ""}})
    database = log._database  # type: ignore[attr-defined]
    fence = database.rows("SELECT transactional_id, epoch FROM fences")
    with contextlib.suppress(Killed):
        Run(Caught(log, 0, NOTHING), copy, from_outcomes=lost)
    with database.transaction() as connection:
        rows.insert(connection, log._ids(), made[0].outputs)  # type: ignore[attr-defined]
        group.store(connection, settings.group, log._ids(), made[0].positions)  # type: ignore[attr-defined]
        connection.executemany("REPLACE INTO fences VALUES (?, ?)", fence)
    return made[0].positions
