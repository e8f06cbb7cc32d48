"""Predictions that are missing although `outcomes` count their examples.

Each state that a torn step can leave, and what heals: `test_torn_steps.py`.
"""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from mistakebound.core.faults import BadLog
from mistakebound.core.messages.schema import (
    Decision,
    Inputs,
    Outcomes,
    Prediction,
    RecoveryPoint,
    Version,
    encode,
    read_prediction,
    read_source,
)
from mistakebound.core.records import OUTPUTS, Outgoing, Record, Transaction
from mistakebound.core.step.schemas import Schemas
from mistakebound.log.protocol import Log
from mistakebound.settings import Settings
from mistakebound.worker.missing_predictions import (
    Gap,
    find_gaps,
    lacks_predictions,
    make_good,
    predict_again,
)
from mistakebound.worker.torn_steps import WholeStep, newest_step
from tests.core.support.feeding import Feeder
from tests.core.support.memory_log import MemoryLog
from tests.support.tries import long, tried
from tests.worker.support.torn import SIZE, Keep, Torn, audited, of, tear
from tests.worker.support.working import Run, example, label, opened, settings_for, settings_on, stream
from tests.worker.test_torn_steps import MISSING

VERSION = Version(1, [0])


def log_of(*parts: Outcomes, predicted: tuple[int, ...] = ()) -> Any:
    """A log with these outcomes, and predictions of these examples."""
    log = MemoryLog(1)
    outputs = [Outgoing("outcomes", 0, None, encode(part)) for part in parts]
    outputs += [Outgoing("predictions", 0, None, encode({"source": source})) for source in predicted]
    log.commit(Transaction(outputs), marker=True)
    return log


def last(examples: int, consumed: int, *decisions: Decision, part: int = 0) -> Outcomes:
    """The last part of a partition step that ends before this example."""
    order, point = [consumed], RecoveryPoint(0, 0, 0)
    return Outcomes(
        part, VERSION, list(decisions), order=order, inputs=Inputs(examples, 0), recovery_point=point
    )


def invalid(source: int) -> Decision:
    return Decision("invalid", None, source)


@pytest.mark.parametrize(
    ("predicted", "missing"),
    [((0, 1, 3), []), ((0, 3), [(0, 4, 1)]), ((), [(0, 4, 3)]), ((1, 3), [(0, 4, 1)])],
)
def test_an_example_that_was_consumed_and_has_no_prediction_is_missing(
    predicted: tuple[int, ...], missing: list[tuple[int, int, int]]
) -> None:
    """Except one that could not be read: it gets none."""
    found = find_gaps(log_of(last(4, 4, invalid(2)), predicted=predicted), 0)
    assert [(gap.start, gap.stop, gap.missing) for gap in found] == missing


def test_parts_of_a_torn_step_say_nothing_of_the_step_that_was_made_instead() -> None:
    """That one may be shorter: what the parts say of later examples would make up for those that are missing."""
    torn = Outcomes(0, VERSION, [invalid(3), invalid(4)])
    found = find_gaps(log_of(torn, last(2, 2), last(5, 3, invalid(3), invalid(4)), predicted=(2,)), 0)
    assert [(gap.start, gap.stop, gap.missing) for gap in found] == [(0, 2, 2)]


def test_all_parts_of_a_step_count() -> None:
    """Its decisions lie in several records; only the last says where it ends."""
    first = Outcomes(0, VERSION, [invalid(0)])
    assert find_gaps(log_of(first, last(2, 2, part=1), predicted=(1,)), 0) == []


def test_steps_before_the_place_that_is_asked_for_are_left_alone() -> None:
    """They were looked at when they were new."""
    log = log_of(last(2, 2), last(4, 2), predicted=(2,))
    assert [(gap.start, gap.missing) for gap in find_gaps(log, 0, since=2)] == [(2, 1)]
    assert [(gap.start, gap.missing) for gap in find_gaps(log, 0)] == [(0, 2), (2, 1)]


def test_predictions_that_retention_deleted_are_not_missing() -> None:
    """They were there; where the topic begins amid a step, nobody can tell what else was."""
    log = log_of(last(2, 2), last(4, 2), last(6, 2), predicted=(3, 4))
    log.lost["predictions", 0] = 0
    assert [(gap.start, gap.missing) for gap in find_gaps(log, 0)] == [(0, 2), (2, 1), (4, 1)]

    log.lost["predictions", 0] = 1  # the record of example 3 is deleted; 4 is the oldest
    assert [(gap.start, gap.missing) for gap in find_gaps(log, 0)] == [(4, 1)]
    log.lost["predictions", 0] = 2
    assert find_gaps(log, 0) == []


@pytest.mark.parametrize(
    ("predicted", "lacking"),
    [
        ((0, 1, 2, 3, 4), False),
        ((0, 1, 2, 4), True),
        ((2, 3, 4), False),  # an earlier step's
        ((2, 3, 4, 0, 1), False),  # these were made again since
        ((2, 4, 0, 1), True),
        ((2, 3, 5, 4), False),  # and one of a transaction that was torn since
    ],
)
def test_of_the_newest_step_all_predictions_must_be_there(predicted: tuple[int, ...], lacking: bool) -> None:
    """What the steps before it miss, was looked at when they were the newest."""
    log = log_of(last(2, 2), last(5, 3), predicted=predicted)
    assert lacks_predictions(log, 0, newest_of(log)) is lacking


def test_of_the_only_step_all_predictions_must_be_there() -> None:
    """It began with the first example; one that cannot be read has none."""
    for predicted, lacking in (((0, 2), False), ((2,), True)):
        log = log_of(last(3, 3, invalid(1)), predicted=predicted)
        assert lacks_predictions(log, 0, newest_of(log)) is lacking


def test_of_a_step_in_parts_the_last_part_does_not_tell() -> None:
    """Nor where the step before it ended: a checkpoint is not set aside for that."""
    parts = [Outcomes(0, VERSION, [invalid(2)]), last(4, 2, part=1)]
    for log in (log_of(last(2, 2), *parts), log_of(Outcomes(0, VERSION, []), last(2, 2))):
        assert not lacks_predictions(log, 0, newest_of(log))


def newest_of(log: Any) -> WholeStep:
    newest = newest_step(log, 0)
    assert newest is not None
    return newest


# --- what is predicted again --------------------------------------------------------------------------


def with_examples(f: Feeder, *names: str) -> MemoryLog:
    """A log that holds only these examples, from the feeder's next one on."""
    log = MemoryLog(1)
    first = f.next["examples", 0]
    log.records["examples", 0] = [f.example(name, 5) for name in names]
    log.next["examples", 0] = first + len(names)
    return log


def test_an_id_that_another_example_has_meanwhile_is_not_predicted_again() -> None:
    """One that waits or is decided was predicted as if it were the first: a second one of its id would be published."""
    f = Feeder()
    f.feed(f.example("a", 1), f.example("b", 1), f.label("b", 2))
    log: Any = with_examples(f, "a", "b", "c")

    outputs = predict_again(log, f.model, f.ledger, 0, [Gap(2, 5, 3, frozenset())], Schemas())

    assert [read_prediction_of(each).id for each in outputs] == ["c"]
    assert [(entry.id, entry.source) for entry in f.ledger.waiting.values()] == [("a", 0), ("c", 4)]


def test_what_a_checkpoint_holds_is_predicted_again_and_waits_as_published() -> None:
    """Its worker took the step for committed: what it had predicted, nobody has seen."""
    f = Feeder()
    log: Any = with_examples(f, "a")
    f.next["examples", 0] = 0
    f.feed(f.example("a", 1), f.example("b", 9))
    assert f.ledger.waiting["a"].at == 1

    outputs = predict_again(log, f.model, f.ledger, 0, [Gap(0, 1, 1, frozenset())], Schemas())

    (again,) = map(read_prediction_of, outputs)
    assert (again.source, again.at, again.again) == (0, 9, True)
    assert [(entry.id, entry.at) for entry in f.ledger.waiting.values()] == [("a", 9), ("b", 9)]


def test_where_nothing_can_be_predicted_again_nobody_is_kept_from_going_on() -> None:
    """The examples are gone as well: to refuse would not bring them back."""
    f = Feeder()
    log: Any = with_examples(f)
    with capture_logs() as said:
        assert make_good(log, f.model, f.ledger, 0, [Gap(0, 3, 3, frozenset())], Schemas(), told=False) == []
    assert [(each["event"], each["predictions"], each["missing"]) for each in said] == [
        ("predicted_again", 0, 3)
    ]


def read_prediction_of(outgoing: Outgoing) -> Prediction:
    return read_prediction(Record(outgoing.topic, outgoing.partition, 0, 0, outgoing.key, outgoing.value))


# --- how a worker comes to know ----------------------------------------------------------------------


def ends(log: Log) -> list[int]:
    return [log.high_watermark(topic, p) for topic in OUTPUTS for p in range(log.partitions)]


def killed(log: Log, settings: Settings, keep: Keep) -> None:
    """Right after the step."""
    tear(log, settings, keep, positions=True)


def ended(log: Log, settings: Settings, keep: Keep) -> None:
    """By itself, after the step; if there are checkpoints, its last one knows of nothing."""
    log.append(stream(60, delay=60, seed=3)[: 4 * SIZE])
    Run(Torn(log, 3, keep, positions=True, lying=True, once=True), settings)


def went_on(log: Log, settings: Settings, keep: Keep) -> None:
    """For long, while examples of the step waited for their labels."""
    log.append([example(number, {"a": number}, 1_000 + number) for number in range(60)])
    Run(Torn(log, 2, keep, positions=True, lying=True, once=True), settings)


@pytest.mark.parametrize(
    ("last", "checkpoints"),
    [
        *(
            (one, checkpoints)
            for one in (killed, ended)
            for checkpoints in ("", "a last one", "of every step")
        ),
        (
            went_on,
            "",
        ),  # a checkpoint from after the step brings what would be read of it: the audit tells then
    ],
)
@pytest.mark.parametrize("state", ["outcomes visible and one prediction aborted", *long(*list(MISSING)[:2])])
def test_a_takeover_tells_that_predictions_are_gone(
    state: str, last: Any, checkpoints: str, folder: Path, file: Path
) -> None:
    """Outcomes, updates and positions are there and agree. Nothing is written before the operator agrees."""
    url = str(folder) if checkpoints else ""
    every = 0.001 if checkpoints == "of every step" else 1_000
    settings = settings_on(file, batch={"max_records": SIZE}, checkpoint={"url": url, "every": every})
    with opened(settings) as log:
        last(log, settings, MISSING[state])
        before = ends(log)
        assert audited(log, settings).first

        for _ in range(2):
            with pytest.raises(BadLog, match=r"outcomes-0 counts \d+ examples .* --predict-missing"):
                Run(log, settings)

        assert ends(log) == before
        Run(log, settings, predict_missing=True)
        Run(log, settings)
        log.append([label(number, number % 3 == 0, 9_000 + number) for number in range(60)])
        Run(log, settings)
        sources = sorted(read_source(record) for record in log.read("predictions", 0, 0))
        assert sources == list(range(len(sources)))
        assert audited(log, settings).first == []


def test_what_is_predicted_again_waits_from_then_on(file: Path) -> None:
    """As the worker has it, so has the audit: nobody could have labelled it before."""
    settings = settings_on(file, labels={"max_delay": 0.05}, batch={"max_records": SIZE})
    with opened(settings) as log:
        log.append([example(number, {"a": 1}, 1_000 + 2 * number) for number in range(2 * SIZE)])
        Run(Torn(log, 0, of("outcomes"), positions=True, lying=True, once=True), settings)
        Run(log, settings, predict_missing=True)
        assert log.high_watermark("predictions", 0) == 2 * SIZE

        for number, at, waiting in ((20, 1_075, 2 * SIZE + 1), (21, 1_100, 2)):
            log.append([example(number, {"a": 1}, at)])
            run = Run(log, settings)
            assert len(run.held.state.ledgers[0].waiting) == waiting
            assert audited(log, settings).first == []


# --- filled behind later predictions ------------------------------------------------------------------


def some(random: Random) -> Keep:
    """Some of the predictions, perhaps none, and everything else."""
    share, first, last = random.choice((0.0, 0.3, 0.9)), random.random() < 0.5, random.random() < 0.5

    def keep(outputs: Sequence[Outgoing]) -> Sequence[Outgoing]:
        predictions = [each for each in outputs if each.topic == "predictions"]
        count = int(share * len(predictions))
        kept = predictions[:count] if first else random.sample(predictions, count)
        kept = predictions[len(predictions) - count :] if last else kept
        return [each for each in outputs if each.topic != "predictions" or each in kept]

    return keep


@given(st.randoms(use_true_random=False))
@tried(40)
def test_whatever_is_predicted_again_passes_the_audit_and_so_does_what_follows(random: Random) -> None:
    """Wherever the step was, whatever became of its examples before its loss was found, and whatever limits there are."""
    labels: dict[str, Any] = {
        "max_delay": random.choice((1_000, 0.02, 0.05)),
        "remember": random.choice((1_000, 1, 5)),
        "max_waiting": random.choice((1_000, 8)),
    }
    sections: dict[str, Any] = {"labels": labels, "batch": {"max_records": random.choice((3, 10, 30))}}
    if random.random() < 0.5:
        sections |= {"labels": {**labels, "ask": 1.0}, "predictions": {"probability": True}}
    elif random.random() < 0.5:
        sections["learner"] = {"kind": "perceptron", "delay_policy": "issued"}
    settings, delay = settings_for(**sections), random.choice((5, 20, 60))
    with capture_logs(), opened(settings) as log:
        log.append(stream(60, delay=delay, seed=random.randrange(9)))
        torn = Torn(log, random.randrange(12), some(random), positions=True, lying=True, once=True)
        steps: list[Any] = []
        last = random.choice((1_000, random.randrange(12)))
        Run(torn, settings, stopping=lambda idle: idle or len(steps) > last, stepped=steps.append)
        with contextlib.suppress(BadLog):
            Run(log, settings, stopping=lambda idle: True)
        Run(log, settings, predict_missing=True)
        assert audited(log, settings).first == []

        log.append(stream(20, delay=delay, first=100))
        Run(log, settings)

        assert audited(log, settings).first == []
        sources = [read_source(record) for record in log.read("predictions", 0, 0)]
        assert len(sources) == len(set(sources))
