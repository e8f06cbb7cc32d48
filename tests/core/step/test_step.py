"""A step: records in, one transaction out. The same decisions for any batches, and every one written down."""

import json
from copy import deepcopy
from itertools import cycle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mistakebound.core.checkpoint_content import freeze
from mistakebound.core.messages.schema import Inputs, RecoveryPoint, read_recovery_point
from mistakebound.core.records import Record
from mistakebound.core.step.merge import Merge
from mistakebound.core.step.state import State
from mistakebound.core.step.step import Step, step
from tests.core.support.feeding import Fed, Feeder
from tests.core.support.streams import complete, sections


def held(state: State) -> Any:
    """All that a worker holds, comparable to the bit."""
    rows = {
        kind: [sorted((name, value.hex()) for name, value in row.items()) for row in parts]
        for kind, parts in state.model.learner.dump().items()
    }
    ledgers = [freeze(ledger) for ledger in state.ledgers.values()]
    return deepcopy((rows, state.model.version(), state.model.clock, state.model.digest(), ledgers))


def test_a_step_closes_after_so_many_bytes_to_be_written() -> None:
    """Predictions by their examples' features, updates by those that waited; decisions are the same."""
    told = []
    for most in (1, 50_000, 10**9):
        f = Feeder(batch={"max_bytes": most}, labels={"parking": 0})
        large = ["x" * 10_000]
        records = [
            *(f.example(n, 1, large) for n in range(20)),
            *(f.label(n, 2, n % 2 == 0) for n in range(20)),
            *(f.label(f"late{n}", 3 + n, features=large, prediction=False) for n in range(20)),
        ]
        fed = f.feed(*records)
        sizes = [sum(len(o.value or b"") for o in one.transaction.outputs) for one in fed.steps]
        assert max(sizes) < max(most, 1) + 50_000 or most == 10**9
        assert (len(fed.steps) == 1) is (most == 10**9)
        assert all(one.consumed or one.transaction.outputs for one in fed.steps)
        told.append(fed.decided)
        f.balance()
    assert told[0] == told[1] == told[2]


def summary(feeder: Feeder, fed: Fed) -> Any:
    """Decisions, predictions, updates and what is held, without positions in the outputs."""
    rows = [
        [(one._replace(predictions_floor=0, outcomes_floor=0)) for one in ledger.waiting.values()]
        for ledger in feeder.state.ledgers.values()
    ]
    tallies = [ledger.tallies for ledger in feeder.state.ledgers.values()]
    other = [(output.topic, output.value) for output in fed.outputs if output.topic != "outcomes"]
    remembered = [
        [(one.id, one.label) for one in ledger.remembered.values()]
        for ledger in feeder.state.ledgers.values()
    ]
    return fed.decisions, other, rows, remembered, tallies, feeder.model.version(), feeder.model.digest()


# --- what a step writes -------------------------------------------------------------------------------


def test_a_prediction_has_its_examples_partition_key_and_headers() -> None:
    """Consumers find it where they would look for the example."""
    f = Feeder(partitions=3)
    headers = (("trace", b"\xff\x00"), ("trace", None))
    fed = f.feed(f.example("a", 1000, partition=2, key=b"\x00key", headers=headers))
    (output,) = [output for output in fed.outputs if output.topic == "predictions"]
    assert (output.partition, output.key, output.headers) == (2, b"\x00key", headers)
    assert output.timestamp_ms is None


def test_a_prediction_says_what_it_was_made_of() -> None:
    """Features as sent, the example's offset, stream time, and the model's version."""
    f = Feeder(labels={"positive": "spam", "negative": "ham"}, learner={"kind": "averaged-perceptron"})
    f.feed(f.record("examples", 900, b"{"), f.example("z", 2000))
    fed = f.feed(f.example(7, 1500, {"b": 1, "a": 0.10}))
    assert fed.predictions == [
        {
            "id": "7",
            "prediction": "ham",
            "score": 0.0,
            "features": {"b": 1, "a": 0.1},
            "source": 2,
            "at": 2000,
            "model": {"epoch": 1, "updates": [0], "clock": [0]},
        }
    ]


def test_a_version_has_a_clock_only_where_the_score_needs_it() -> None:
    """Averages change with every label; plain weights do not."""
    f = Feeder(learner={"kind": "winnow"})
    assert f.feed(f.example("a", 1)).predictions[0]["model"] == {"epoch": 1, "updates": [0]}


def test_every_touched_partition_gets_outcomes_and_a_position() -> None:
    """Also when nothing was decided: the newest outcomes always tell where the group stands."""
    f = Feeder(partitions=3)
    fed = f.feed(f.example("a", 1000), f.label("b", 1000, partition=2))
    (one,) = fed.steps
    assert one.partitions == (0, 2)
    assert set(one.transaction.positions) == {0, 2}
    assert [output.partition for output in one.transaction.outputs if output.topic == "outcomes"] == [0, 2]
    first, second = fed.outcomes
    assert (first.decisions, first.inputs) == ([], Inputs(1, 0))
    assert ([d.outcome for d in second.decisions], second.inputs) == (["parked"], Inputs(0, 1))


def test_a_position_is_that_of_its_outcomes_recovery_point_included() -> None:
    """The recovery point is small, however much is held."""
    f = Feeder()
    fed = f.feed(*(f.example(str(n), n) for n in range(50)), *(f.label(str(n), 60) for n in range(20)))
    for one, outcomes in zip(fed.steps, fed.outcomes, strict=True):
        position = one.transaction.positions[0]
        assert outcomes.inputs == Inputs(position.examples, position.labels)
        assert read_recovery_point(position) == outcomes.recovery_point
        assert len(position.metadata) < 4096


def test_a_recovery_point_lies_at_or_below_all_that_is_held() -> None:
    """s: the oldest waiting example; p and o: the ends before the transaction that made the oldest entry."""
    f = Feeder()
    f.feed(f.example("a", 1000), f.label("a", 1000))
    f.feed(f.example("b", 1000))
    f.feed(f.example("c", 1000))
    (outcomes,) = f.feed(f.label("b", 2000)).outcomes
    assert outcomes.recovery_point == RecoveryPoint(predictions=2, outcomes=0, source=2)


def test_nothing_to_take_is_no_step() -> None:
    """Also when records are buffered but may not be taken yet."""
    f = Feeder()
    merge = Merge([0])
    assert step(f.state, merge, f.everything, 10) is None
    merge.add([f.example("a", 1)])
    assert step(f.state, merge, set(), 10) is None
    assert step(f.state, merge, {("labels", 0)}, 10) is not None


def test_the_facts_of_a_step_are_its_counts() -> None:
    """Data for metrics: what was consumed, decided, learned, and how late labels were."""
    f = Feeder(learner={"kind": "perceptron"})
    fed = f.feed(
        f.example("a", 1000), f.example("b", 1500, {"a": -3}), f.record("labels", 1600, b"{"),
        f.label("a", 3000), f.label("b", 4500, False), f.label("b", 4600, False),
    )  # fmt: skip
    (facts,) = fed.facts
    assert dict(facts.consumed) == {"examples": 2, "labels": 4}
    assert dict(facts.rejected) == {("labels", "not-json"): 1}
    assert dict(facts.predicted) == {"false": 2}
    assert dict(facts.evaluations) == {("true", "false"): 1, ("false", "false"): 1}
    assert dict(facts.mistakes) == {"true": 1}
    assert facts.baseline_mistakes == 2
    assert dict(facts.updates) == {"promote": 1}
    assert dict(facts.labels) == {"invalid": 1, "applied": 2, "duplicate": 1}
    assert dict(facts.examples) == {"labelled": 2}
    assert facts.label_delays_seconds == [2.0, 3.0]
    assert facts.margins == [0.0, 0.0]
    assert facts.predicted_record_ms == [1000, 1500]
    assert dict(facts.newest_record_ms) == {"examples": 1500, "labels": 4600}


def test_a_partitions_totals_are_its_durable_counts() -> None:
    """What its owner exports as gauges: for life, and what is held now."""
    f = Feeder(learner={"kind": "perceptron"}, labels={"max_delay": 100, "max_waiting": 2})
    assert f.state.totals(0).oldest_waiting_ms is None
    f.feed(
        f.example("expires", 1000),
        f.example("evicted", 150_000),
        f.example("a", 150_001),
        f.label("a", 150_002),
    )
    f.feed(f.example("a", 150_003), f.example("b", 150_004), f.example("c", 150_005), f.label("x", 150_006))
    totals = f.state.totals(0)
    assert (totals.examples, totals.labelled, totals.mistakes, totals.baseline_mistakes) == (5, 1, 1, 1)
    assert (totals.updates, totals.waiting, totals.parked, totals.oldest_waiting_ms) == (1, 2, 1, 150_004)


# --- closing ------------------------------------------------------------------------------------------


def test_a_step_may_close_between_expiries_before_the_record_that_caused_them() -> None:
    """One jump in time may expire a million; each counts towards `batch.max_records`."""
    f = Feeder(labels={"max_delay": 1})
    f.feed(*(f.example(str(n), 1000) for n in range(2500)))
    fed = f.feed(f.example("late", 100_000), max_records=1000)
    assert [len(one.decisions) for one in fed.outcomes] == [1000, 1000, 500]
    assert [one.inputs for one in fed.outcomes] == [Inputs(2500, 0), Inputs(2500, 0), Inputs(2501, 0)]
    assert [one.order for one in fed.outcomes] == [[0], [0], [1]]
    assert [one.consumed for one in fed.steps] == [0, 0, 1]
    assert [record_id for _, record_id in fed.decided] == [str(n) for n in range(2500)]
    f.balance()


def test_a_step_may_close_between_unparkings_too() -> None:
    """They count the same, after the expiries."""
    f = Feeder(labels={"max_delay": 1, "parking": 1})
    f.feed(*(f.label(f"p{n}", 1000) for n in range(5)), *(f.example(f"e{n}", 1000) for n in range(4)))
    fed = f.feed(f.label("x", 100_000), max_records=3)
    assert [[d.outcome for d in one.decisions] for one in fed.outcomes] == [
        ["expired"] * 3,
        ["expired", "unmatched", "unmatched"],
        ["unmatched"] * 3,
        ["parked"],
    ]
    f.balance()


def test_a_steps_records_are_shared_among_its_partitions() -> None:
    """A busy partition does not keep the others waiting."""
    f = Feeder(partitions=2)
    records = [f.example(str(n), n) for n in range(100)] + [f.example("x", 1, partition=1)]
    fed = f.feed(*records, max_records=10)
    assert [p["id"] for p in fed.predictions][:6] == ["0", "1", "2", "3", "4", "x"]
    assert len(fed.predictions) == 101


# --- laws ---------------------------------------------------------------------------------------------


@given(complete(), sections)
def test_any_batch_size_gives_the_same_result(records: list[Record], settings: dict[str, Any]) -> None:
    """Decisions, predictions, updates, tallies, digest, what is held: on one partition, all of it."""
    results = []
    for size in (1, 2, 3, 7, 1000):
        feeder = Feeder(**settings)
        results.append(summary(feeder, feeder.feed(*records, max_records=size)))
    assert all(result == results[0] for result in results)


@given(complete(partitions=2), sections, st.integers(1, 9))
def test_sums_always_add_up(records: list[Record], settings: dict[str, Any], size: int) -> None:
    """Consumed = outcomes + held, for examples and labels, after every step."""
    feeder = Feeder(partitions=2, **settings)
    consumed = 0
    for start in range(0, len(records), size):
        fed = feeder.feed(*records[start : start + size], max_records=size)
        feeder.balance()
        consumed += sum(one.consumed for one in fed.steps)
        for ledger in feeder.state.ledgers.values():
            assert len(ledger.waiting) <= ledger.max_waiting
            assert len(ledger.parked) <= ledger.max_parked
            assert len(ledger.remembered) <= ledger.remember_at_most
            assert not set(ledger.waiting) & (set(ledger.parked) | set(ledger.remembered))
            sources = [entry.source for entry in ledger.waiting.values()]
            assert sources == sorted(sources)
    assert consumed == len(records)


@given(
    complete(), sections, st.lists(st.tuples(st.integers(1, 6), st.integers(1, 5)), min_size=1, max_size=9)
)
def test_the_order_that_was_written_replays_to_the_same_result(
    records: list[Record], settings: dict[str, Any], pieces: list[tuple[int, int]]
) -> None:
    """Two legal merges may decide differently; run lengths and stream time say which one it was."""
    feeder, merge = Feeder(**settings), Merge([0])
    fed, left = Fed(), list(records)
    for arriving, at_most in cycle(pieces):
        merge.add(left[:arriving])
        del left[:arriving]
        one = step(feeder.state, merge, feeder.everything, at_most)
        if one is not None:
            fed.steps.append(one)
            feeder.commit(one)
        elif not left:
            break
    again, told = Feeder(**settings), Fed()
    sides = [[r for r in records if r.topic == topic] for topic in ("examples", "labels")]
    for outcomes in fed.outcomes:
        for place, run in enumerate(outcomes.order or ()):
            for _ in range(run):
                told.steps += again.feed(sides[place % 2].pop(0)).steps
        # A partition step that closed between expiries has the time of a record which it has not consumed.
        again.ledger.stream_time = outcomes.at
    assert sides == [[], []]
    assert summary(again, told) == summary(feeder, fed)


@given(complete(partitions=2), complete(partitions=2), sections)
def test_a_step_taken_back_leaves_no_trace(
    before: list[Record], during: list[Record], settings: dict[str, Any]
) -> None:
    """Rows, version, ledgers, tallies and time are restored, and the same step gives the same bytes again."""
    feeder = Feeder(partitions=2, **settings)
    feeder.feed(*before)
    was = held(feeder.state)
    taken: list[Step] = []
    for _ in range(2):
        merge = Merge(range(2))
        merge.add(during)
        one = step(feeder.state, merge, feeder.everything, 1000)
        if one is None:
            return
        taken.append(one)
        feeder.state.rollback(one.partitions)
        assert held(feeder.state) == was
    assert taken[0].transaction == taken[1].transaction


@pytest.mark.parametrize("parked", [False, True], ids=["example", "label"])
def test_what_a_step_gave_up_is_given_up_again_once_it_was_taken_back(parked: bool) -> None:
    """Nothing that was overdue counts as looked after: the same records lead to the same decisions."""
    f = Feeder(labels={"max_delay": 0.01, "parking": 0.01})
    f.feed(f.label("a", 0) if parked else f.example("a", 0))
    late = [f.example("b", 20), f.example("c", 21)]

    def made() -> Step:
        merge = Merge(range(1))
        merge.add(late)
        found = step(f.state, merge, f.everything, 10)
        assert found is not None
        return found

    first = made()
    f.state.rollback(first.partitions)
    second = made()

    assert second.transaction == first.transaction
    assert (list(f.ledger.waiting), list(f.ledger.parked)) == (["b", "c"], [])


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_step_is_deterministic(partitions: int) -> None:
    """Two workers, the same records: the same bytes."""
    outputs = []
    for _ in range(2):
        f = Feeder(partitions=partitions)
        fed = f.feed(
            *(f.example(n, n, {"x": n % 3, "y": "red"}, partition=n % partitions) for n in range(30)),
            *(f.label(n, n + 4, n % 2 == 0, partition=n % partitions) for n in range(30)),
        )
        outputs.append(json.dumps([repr(output) for output in fed.outputs]))
    assert outputs[0] == outputs[1]
