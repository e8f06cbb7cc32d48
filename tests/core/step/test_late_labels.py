"""Very late labels, whose example is no longer held: applied from what the label record itself carries."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from mistakebound.core.messages.dead_letters import record_bytes
from mistakebound.core.messages.schema import Decision
from mistakebound.core.replay.replay import report_of
from mistakebound.core.reporting.report import Report
from mistakebound.core.step.sizes import SizeLimits
from tests.core.support.feeding import Fed, Feeder

OWN = {"features": {"a": 2}, "prediction": False}


def feeder(**sections: Any) -> Feeder:
    labels = {"max_delay": 100, "parking": 10, **sections.pop("labels", {})}
    return Feeder(learner={"kind": "perceptron", **sections.pop("learner", {})}, labels=labels, **sections)


def late(record_id: str, offset: int, label: Any = True, predicted: Any = False) -> Decision:
    return Decision("applied_late", record_id, None, offset, label, predicted, None, Raw(b'{"a": 2}'))


def reason(fed: Fed) -> str:
    (dead,) = fed.dead_letters
    return (dict(dead.headers)["mistakebound.reason"] or b"").decode()


def of(f: Feeder) -> Report:
    return report_of(f.state)


# --- where it is applied from its own content ---------------------------------------------------------


def test_a_label_after_its_examples_expiry_is_applied_from_its_own_content() -> None:
    """It is a judged prediction, and learned from; the example stays expired."""
    f = feeder()
    fed = f.feed(f.example("a", 1000), f.label("a", 200_000, **OWN))
    assert fed.decisions == [Decision("expired", "a", 0), late("a", 0)]
    tally = f.ledger.tallies.life
    assert (tally.examples["labelled"], tally.examples["expired"], tally.labels["applied_late"]) == (0, 1, 1)
    assert (of(f).labelled, of(f).mistakes, of(f).mistake_rate) == (1, 1, 1.0)
    (update,) = fed.updates
    assert (update["late"], update["source"], update["features"]) == (True, 0, {"a": 2})
    assert f.model.learner.theta() == {"a": 2.0, "BIAS": 1.0}
    f.balance()


def test_a_label_after_its_examples_eviction_likewise() -> None:
    """The example made room for others; its id is remembered as evicted."""
    f = feeder(labels={"max_waiting": 1})
    fed = f.feed(f.example("a", 1000), f.example("b", 1001), f.label("a", 1002, **OWN))
    assert fed.decided == [("evicted", "a"), ("applied_late", "a")]
    f.balance()


def test_a_parked_label_is_applied_from_its_own_content_when_its_time_is_over() -> None:
    """Until then its example may come; it is handled as usual."""
    f = feeder()
    fed = f.feed(f.label("a", 1000, **OWN), f.example("x", 11_000))
    assert fed.decisions == [Decision("parked", "a", None, 0, True, False, 1000, Raw(b'{"a": 2}'))]
    assert f.feed(f.example("y", 11_001)).decisions == [late("a", 0)]
    f.balance()


def test_a_parked_label_that_is_one_too_many_is_applied_from_its_own_content() -> None:
    """The oldest label loses its place; what it carries is still used."""
    f = feeder(labels={"max_parked": 1})
    fed = f.feed(f.label("a", 1000, **OWN), f.label("b", 1000))
    assert fed.decided == [("parked", "a"), ("parked", "b"), ("applied_late", "a")]
    f.balance()


def test_as_long_as_the_example_is_held_the_content_is_not_asked() -> None:
    """What was published counts, not what the label says of it; and the example's features are learned."""
    f = feeder()
    fed = f.feed(
        f.example("a", 1000), f.label("a", 1001, True, features={"z": 9}, prediction=True),
        f.label("b", 1002, **OWN), f.example("b", 1003),
    )  # fmt: skip
    assert fed.decided == [("applied", "a"), ("parked", "b"), ("applied", "b")]
    assert fed.decisions[0] == Decision("applied", "a", 0, 0, True, False)
    assert [update["features"] for update in fed.updates] == [{"a": 1}]
    f.balance()


@pytest.mark.parametrize(
    "content",
    [
        {"features": {"a": 2}},
        {"prediction": False},
        {"features": None, "prediction": False},
        {"features": {"a": 2}, "prediction": None},
    ],
)
def test_half_a_content_is_none(content: dict[str, Any]) -> None:
    """Label records may already hold features; without a prediction there is nothing to judge."""
    f = feeder()
    fed = f.feed(f.label("a", 1000, **content), f.example("x", 100_000))
    assert fed.decided == [("parked", "a"), ("unmatched", "a")]
    f.balance()


# --- what is counted --------------------------------------------------------------------------------------


def test_the_id_is_remembered_afterwards() -> None:
    """A second label is a duplicate or a conflict, and an example of the id a second one: counted once."""
    f = feeder()
    f.feed(f.label("a", 1000, **OWN), f.example("x", 50_000))
    fed = f.feed(f.label("a", 50_001, **OWN), f.label("a", 50_001, False, **OWN), f.example("a", 50_002))
    assert fed.decided == [("duplicate", "a"), ("conflict", "a"), ("duplicate", "a")]
    assert f.ledger.tallies.life.mistakes == 1
    f.balance()


def test_its_mistake_counts_for_life_and_not_for_the_epoch() -> None:
    """Nobody knows which epoch's model made that prediction; no theorem may be charged with it."""
    f = feeder()
    f.feed(f.label("a", 1000, **OWN), f.example("x", 50_000))
    tallies = f.ledger.tallies
    assert (tallies.life.mistakes, tallies.epoch.mistakes) == (1, 0)
    assert tallies.life.majority_mistakes == tallies.epoch.majority_mistakes == 1
    assert tallies.life.updates == tallies.epoch.updates == 1


def test_the_present_model_decides_whether_it_is_learned_from() -> None:
    """Also under `issued`: a published prediction of unknown version proves nothing about this model."""
    for policy in ("rescore", "issued"):
        f = feeder(learner={"delay_policy": policy, "tie": "negative"})
        fed = f.feed(f.label("a", 1000, False, features={"a": 1}, prediction=True), f.example("x", 50_000))
        assert fed.updates == []
        assert f.ledger.tallies.life.mistakes == 1


def test_it_counts_as_a_labelled_example_of_the_average() -> None:
    """The clock is the labels applied, late ones too."""
    f = feeder(learner={"kind": "averaged-perceptron"})
    f.feed(f.label("a", 1000, **OWN), f.example("x", 50_000), f.label("x", 50_001))
    assert f.model.clock == [2]
    assert f.ledger.tallies.epoch.judged == 2


def test_metrics_hear_of_it() -> None:
    """As an outcome of its own, and as a judged prediction."""
    f = feeder()
    facts = f.feed(f.label("a", 1000, **OWN), f.example("x", 50_000)).facts
    assert sum(one.labels.get("applied_late", 0) for one in facts) == 1
    assert sum(one.evaluations.get(("true", "false"), 0) for one in facts) == 1
    assert sum(one.mistakes.get("true", 0) for one in facts) == 1
    assert not any(one.label_delays_seconds for one in facts)


def test_an_open_class_that_was_not_known_was_predicted_as_null() -> None:
    """As a prediction record has it; the label then was a mistake."""
    f = feeder(labels={"classes": "open"})
    fed = f.feed(f.label("a", 1000, "spam", features={"a": 2}, prediction=None), f.example("x", 50_000))
    assert fed.decisions[-1] == late("a", 0, "spam", None)
    assert f.ledger.tallies.life.mistakes == 1


# --- content that is none ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ({"features": 5, "prediction": True}, "bad-features"),
        ({"features": {"a": None}, "prediction": True}, "missing-feature"),
        ({"features": {"a": 1e200}, "prediction": True}, "number-out-of-range"),
        ({"features": {"a": 1}, "prediction": "maybe"}, "bad-prediction"),
        ({"features": {"a": 1}, "prediction": 0.5}, "bad-prediction"),
    ],
)
@pytest.mark.parametrize("held", [True, False])
def test_content_that_cannot_be_read_is_a_dead_letter(content: Any, why: str, held: bool) -> None:
    """Whether or not it would have been needed: what a record is worth does not depend on what is held."""
    f = feeder()
    if held:
        f.feed(f.example("a", 999))
    fed = f.feed(f.label("a", 1000, **content))
    assert fed.decisions == [Decision("invalid", None, None, 0)]
    assert reason(fed) == why
    f.balance()


def test_a_prediction_is_spelled_as_the_label_is() -> None:
    """1 and 0 for true and false too."""
    f = feeder()
    fed = f.feed(f.label("a", 1000, 1, features={"a": 2}, prediction=0), f.example("x", 50_000))
    assert fed.decisions[-1] == late("a", 0)


def test_pointers_reach_into_existing_labels() -> None:
    """`messages.features` and `messages.prediction` name the places."""
    f = feeder(messages={"features": "/x/f", "prediction": "/x/p"})
    fed = f.feed(f.label("a", 1000, x={"f": {"a": 2}, "p": False}))
    assert fed.decisions[0].features == Raw(b'{"a":2}')


# --- sizes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("topic", ["outcomes", "updates"])
def test_content_that_leads_to_records_too_large_is_a_dead_letter(topic: str) -> None:
    """The topic that is too small is named."""
    f = Feeder(limits=SizeLimits(**{topic: 2000}))
    fed = f.feed(f.label("a", 1, features=["x" * 2000], prediction=True))
    assert reason(fed) == "oversize"
    assert f"bytes in {topic}, which takes 2000" in str(dict(fed.dead_letters[0].headers))


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2500)), min_size=1, max_size=12),
    st.integers(3000, 5000),
    st.sampled_from([1, 20]),
)
def test_whatever_a_late_label_leads_to_fits_its_topic(
    labels: list[tuple[int, int]], limit: int, partitions: int
) -> None:
    """Parked and applied decisions take the features along: outcomes are cut into parts that fit."""
    f = Feeder(partitions, SizeLimits(outcomes=limit, updates=limit), labels={"parking": 0, "max_parked": 2})
    f.model.updates, f.model.clock = [10**15] * partitions, [10**15] * partitions
    fed = f.feed(
        *(
            f.label(str(name) + "\x01" * 100, now, features=["y" * size], prediction=False)
            for now, (name, size) in enumerate(labels)
        )
    )
    for output in fed.outputs:
        if output.topic in ("outcomes", "updates"):
            assert record_bytes(output.key, output.value, output.headers) <= limit
