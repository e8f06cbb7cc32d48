"""Replays: the worker's own step without a log, and a report alike to the byte for alike streams."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from msgspec import Raw

from mistakebound.core.messages.schema import Decision, read_outcomes
from mistakebound.core.records import Record
from mistakebound.core.replay.replay import Row, as_stream, replay_records, replay_rows, report_of
from mistakebound.core.reporting.report import PartitionCounts, report, summary
from mistakebound.core.step.state import State
from mistakebound.core.step.step import Step
from mistakebound.settings import Settings
from tests.core.support.feeding import Feeder
from tests.core.support.streams import complete, sections
from tests.support.tries import long

ROWS = [Row(str(n), {"x": n % 5 - 2, "y": "red"}, n % 3 == 0) for n in range(60)]


def rows(partitions: int = 1, delay: int = 0, **settings: Any) -> State:
    return replay_rows(ROWS, Settings.model_validate(settings), partitions, delay)


# --- rows as a stream -----------------------------------------------------------------------------------


def test_rows_are_dealt_to_the_partitions_in_turn_with_growing_offsets_and_times() -> None:
    """An example and its label share a partition and a key; record time moves by 1 ms."""
    stream = list(as_stream(ROWS[:3], Settings(), 2, 0))
    assert [(r.topic, r.partition, r.offset, r.timestamp_ms, r.key) for r in stream] == [
        ("examples", 0, 0, 1, b"0"),
        ("labels", 0, 0, 2, b"0"),
        ("examples", 1, 0, 3, b"1"),
        ("labels", 1, 0, 4, b"1"),
        ("examples", 0, 1, 5, b"2"),
        ("labels", 0, 1, 6, b"2"),
    ]
    assert json.loads(stream[0].value or b"") == {"id": "0", "features": {"x": -2, "y": "red"}}
    assert json.loads(stream[1].value or b"") == {"id": "0", "label": True}


def test_a_step_of_labelled_data_is_bounded_by_bytes_too() -> None:
    """Rows may be large: what a step holds at once, and writes, is not larger for that."""
    large = [Row(str(n), Raw(b'{"x": 1' + b" " * 300_000 + b"}"), n % 2 == 0) for n in range(40)]
    sizes: list[int] = []

    def see(done: Step) -> None:
        sizes.append(sum(len(output.value or b"") for output in done.transaction.outputs))

    state = replay_rows(large, Settings(), 1, taken=see)
    assert report_of(state).labelled == 40
    assert max(sizes) < 4_000_000  # of 12,000,000 bytes and more in all


@pytest.mark.parametrize("delay", [0, 1, 2, 59, 60, 1000])
def test_so_many_examples_are_outstanding_when_one_is_predicted(delay: int) -> None:
    """The tail is flushed: every row is labelled in the end."""
    outstanding, seen = 0, []
    for record in as_stream(ROWS, Settings(), 1, delay):
        if record.topic == "examples":
            seen.append(outstanding)
            outstanding += 1
        else:
            outstanding -= 1
    assert seen == [min(n, delay) for n in range(60)]
    assert outstanding == 0


@pytest.mark.parametrize("partitions", [1, 4])
def test_the_worker_holds_what_is_outstanding_and_nothing_in_the_end(partitions: int) -> None:
    """`delay` counts over all partitions together."""
    waiting: list[int] = []
    state = replay_rows(
        ROWS,
        Settings(),
        partitions,
        7,
        progress=lambda now: waiting.append(sum(len(ledger.waiting) for ledger in now.ledgers.values())),
    )
    assert max(waiting) == 8
    assert waiting[-1] == 0
    assert report_of(state).labelled == 60


@pytest.mark.parametrize("kind", ["perceptron", "averaged-perceptron", "winnow"])
@pytest.mark.parametrize("partitions", [3, *long(1)])
@pytest.mark.parametrize("delay", [7, *long(0)])
def test_the_length_of_runs_changes_nothing_but_the_steps(partitions: int, delay: int, kind: str) -> None:
    """The same predictions and updates, byte for byte, the same decisions, the same rows of theta."""
    settings = Settings.model_validate({"learner": {"kind": kind}})

    def written_by(longest: int) -> tuple[Any, ...]:
        steps: list[Step] = []
        state = replay_rows(ROWS, settings, partitions, delay, taken=steps.append, longest_run=longest)
        outputs = [one for step in steps for one in step.transaction.outputs]
        decided: list[list[Decision]] = [[] for _ in range(partitions)]
        for one in outputs:
            if one.topic == "outcomes":
                decided[one.partition] += read_outcomes(
                    Record("outcomes", 0, 0, 0, None, one.value)
                ).decisions
        written = [one for one in outputs if one.topic != "outcomes"]
        return written, decided, state.model.learner.dump(), report_of(state).to_json(), len(steps)

    *each, steps = written_by(1)
    assert steps == 120
    for longest in (2, 7, 4_096):
        *others, fewer = written_by(longest)
        assert others == each
        assert fewer < steps if partitions == 1 or delay == 0 else fewer <= steps


def test_progress_is_reported_from_the_first_row_on() -> None:
    """After 1, 2, 4, 8 ... rows, and at least once in a longest run."""
    seen: list[int] = []
    replay_rows(
        ROWS,
        Settings(),
        1,
        progress=lambda now: seen.append(now.ledgers[0].tallies.life.judged),
        longest_run=32,
    )
    assert seen == [1, 2, 4, 8, 16, 32, 48, 60]


def test_features_can_be_given_as_their_text() -> None:
    """A line's own bytes come to the prediction as they are."""
    texts = [row._replace(features=Raw(b' {"x": %d,"y":"red" }' % row.features["x"])) for row in ROWS]
    written: list[bytes | None] = []
    state = replay_rows(
        texts, Settings(), 1, taken=lambda step: written.extend(o.value for o in step.transaction.outputs)
    )
    assert report_of(state) == report_of(rows())
    assert b'"features":{"x": -2,"y":"red" }' in (written[0] or b"")


def test_rows_are_written_where_the_settings_will_look_for_them() -> None:
    """Pointers to nested members, with their escapes."""
    messages = {"id": "/meta/tx~1id", "features": "/x~0y", "label": "/meta/truth"}
    assert report_of(rows(messages=messages)) == report_of(rows())


def test_declared_labels_are_read_as_they_are_declared() -> None:
    """The same stream in other words: the same model."""
    named = [row._replace(label="spam" if row.label else "ham") for row in ROWS]
    settings = Settings.model_validate({"labels": {"positive": "spam", "negative": "ham"}})
    found, known = report_of(replay_rows(named, settings, 1)), report_of(rows())
    assert found.confusion.classes == ("spam", "ham")
    assert found.confusion.model == replace(known.confusion.model, largest=found.confusion.model.largest)
    same = {name: getattr(known, name) for name in ("confusion", "confusion_of_epoch")}
    assert replace(found, **same) == known


def test_wrong_rows_are_counted_not_raised() -> None:
    """As the worker would: a dead letter each, and the stream goes on."""
    wrong = [
        Row("a", {"x": None}, True), Row("b", 3, True), Row("c", {"x": 1}, "maybe"), Row("d", {"x": 1}, True),
    ]  # fmt: skip
    found = report_of(replay_rows(wrong, Settings(), 1))
    assert (found.examples, found.labelled, found.waiting, found.parked) == (4, 1, 1, 2)
    assert (found.example_outcomes["invalid"], found.labels["invalid"]) == (2, 1)


@pytest.mark.parametrize("partitions", [2, 4, 7])
@pytest.mark.parametrize("kind", ["perceptron", "averaged-perceptron"])
def test_textbook_figures_hold_at_any_partition_count(partitions: int, kind: str) -> None:
    """A step closes after each record, so every prediction sees every label before it."""
    one, many = (report_of(rows(p, learner={"kind": kind})) for p in (1, partitions))
    assert (one.mistakes, one.updates) == (many.mistakes, many.updates)
    assert one.model.digest == many.model.digest
    assert sum(many.model.updates) == one.updates


# --- recorded streams -----------------------------------------------------------------------------------


@given(complete(partitions=2), sections)
def test_two_replays_give_the_same_bytes(records: list[Record], settings: dict[str, Any]) -> None:
    """The report is a function of recording and settings."""
    one, other = (
        report_of(replay_records(records, Settings.model_validate(settings), 2)).to_json() for _ in range(2)
    )
    assert one == other


@given(complete(), sections)
def test_a_replay_does_what_a_worker_did_whatever_its_batches(
    records: list[Record], settings: dict[str, Any]
) -> None:
    """On one partition: same report at any `batch.max_records`, and the live worker's, too."""
    live = Feeder(**settings)
    live.feed(*records, max_records=3)
    for size in (1, 2, 3, 7, 1000):
        replayed = replay_records(
            records, Settings.model_validate({**settings, "batch": {"max_records": size}}), 1
        )
        assert report_of(replayed).to_json() == report_of(live.state).to_json()


def test_outputs_in_a_recording_are_not_read() -> None:
    """Only inputs decide; a recording may hold all six topics."""
    inputs = list(as_stream(ROWS, Settings(), 1, 3))
    noise = [Record("predictions", 0, n, 0, None, b"?") for n in range(5)]
    one = replay_records([*noise, *inputs], Settings(), 1)
    assert report_of(one) == report_of(replay_records(inputs, Settings(), 1))


def test_progress_is_reported_after_every_step() -> None:
    """For a table on doubling intervals."""
    seen: list[int] = []
    settings = Settings.model_validate({"batch": {"max_records": 40}})
    replay_records(
        as_stream(ROWS, settings, 1, 0),
        settings,
        1,
        progress=lambda now: seen.append(now.ledgers[0].tallies.life.examples["consumed"]),
    )
    assert seen == [20, 40, 60]


# --- the report -----------------------------------------------------------------------------------------


def test_a_report_has_these_members_in_this_order() -> None:
    """Users' programs rely on the names."""
    found = json.loads(report_of(rows(2, delay=3, learner={"kind": "perceptron"})).to_json())
    assert list(found) == [
        "examples", "labelled", "mistakes", "updates", "mistake_rate", "baselines", "labels",
        "example_outcomes", "waiting", "parked", "learner", "bounds",
        "margin_upper_bound", "model", "passes", "converged", "cycle", "comparators",
        "confusion", "confusion_of_epoch",
    ]  # fmt: skip
    assert found["labels"] == {
        "consumed": 60, "applied": 60, "applied_late": 0, "duplicate": 0, "conflict": 0, "expired": 0, "unmatched": 0,
        "invalid": 0,
    }  # fmt: skip
    assert found["example_outcomes"] == {
        "labelled": 60,
        "expired": 0,
        "evicted": 0,
        "duplicate": 0,
        "invalid": 0,
    }
    assert list(found["model"]) == ["epoch", "updates", "features", "digest", "window", "counting"]
    assert found["learner"] == "perceptron"
    assert found["mistake_rate"] == found["mistakes"] / 60
    assert list(found["baselines"]["majority"]) == ["mistakes", "mistake_rate"]


def test_a_reports_sums_add_up() -> None:
    """Examples = outcomes + waiting; labels = outcomes + parked."""
    stream = [
        record
        for record in as_stream(ROWS, Settings(), 2, 9)
        if (record.topic, record.offset % 4) != ("labels", 0)
    ]
    stream += [Record("labels", 1, 99, 500, b"x", b'{"id":"nobody","label":true}')]
    found = report_of(replay_records(stream, Settings(), 2))
    assert found.examples == sum(found.example_outcomes.values()) + found.waiting
    assert found.labels["consumed"] == sum(found.labels.values()) - found.labels["consumed"] + found.parked
    assert (found.waiting, found.parked) == (16, 1)


def test_the_majority_baseline_is_right_by_hand() -> None:
    """It predicts the class most frequent so far, negative at a tie: t t f f f has mistakes at 1, 3, 4."""
    stream = [Row(str(n), {}, label) for n, label in enumerate([True, True, False, False, False])]
    assert report_of(replay_rows(stream, Settings(), 1)).baselines["majority"].mistakes == 3


def test_a_report_of_nothing_has_no_rates() -> None:
    """Zero is not divided by zero, and 0 would be the best rate there is."""
    found = report_of(replay_rows([], Settings(), 3))
    assert (found.examples, found.mistake_rate, found.baselines["majority"].mistake_rate) == (0, None, None)
    assert found.model.updates == (0, 0, 0)
    assert found.model.features == 0


def test_a_models_features_are_the_names_whose_theta_is_not_zero() -> None:
    """A coordinate that came back to zero is not counted, as the digest does not."""
    f = Feeder(learner={"kind": "perceptron"}, features={"bias": False})
    f.feed(
        f.example("a", 1, {"x": 1, "gone": 1}),
        f.label("a", 2),
        f.example("b", 3, {"gone": 1}),
        f.label("b", 4, False),
    )
    assert dict(f.model.learner.theta()) == {"x": 1.0, "gone": 0.0}
    found = summary(f.model)
    assert (found.features, found.updates) == (1, (2,))
    counts = [PartitionCounts(ledger.tallies.life, 0, 0) for ledger in f.state.ledgers.values()]
    assert report(counts, "perceptron", found).as_dict()["model"]["digest"] == f.model.digest()
