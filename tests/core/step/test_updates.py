"""Learning from late labels: when to update, what an update says, and how predictions are derived again."""

from typing import Any

import pytest
from hypothesis import given

from mistakebound.core.messages.schema import encode, read_update
from mistakebound.core.model.model import Model
from mistakebound.core.records import Record
from tests.core.support.feeding import Fed, Feeder
from tests.core.support.streams import complete, sections

PERCEPTRON = {"kind": "perceptron"}


def late_pair(policy: str, **more: Any) -> tuple[Feeder, Fed]:
    """Two equal examples, both predicted before either is labelled, both positive."""
    f = Feeder(learner={**PERCEPTRON, "delay_policy": policy}, **more)
    fed = f.feed(
        f.example("a", 1), f.example("b", 2),
        f.label("a", 3), f.label("b", 4),
    )  # fmt: skip
    return f, fed


# --- policies -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("policy", "updates", "weight"), [("rescore", 1, 1.0), ("issued", 2, 2.0)])
def test_a_mistake_that_was_learned_meanwhile_is_learned_again_only_when_issued(
    policy: str, updates: int, weight: float
) -> None:
    """Both predictions were wrong; when the second label comes, the model has learned from the first."""
    f, fed = late_pair(policy)
    assert f.ledger.tallies.life.mistakes == 2
    assert len(fed.updates) == updates
    assert dict(f.model.learner.weights()) == {"a": weight, "BIAS": weight}


@pytest.mark.parametrize(("policy", "updates"), [("rescore", 2), ("issued", 1)])
def test_a_right_prediction_that_the_model_has_left_is_corrected_only_when_rescored(
    policy: str, updates: int
) -> None:
    """`b` was published negative, rightly; by its label the model has turned positive."""
    f = Feeder(learner={**PERCEPTRON, "delay_policy": policy})
    fed = f.feed(f.example("a", 1), f.example("b", 2), f.label("a", 3), f.label("b", 4, False))
    assert f.ledger.tallies.life.mistakes == 1
    assert [update["id"] for update in fed.updates] == ["a", "b"][:updates]


@pytest.mark.parametrize(("policy", "updates"), [("rescore", 1), ("issued", 0)])
def test_a_tie_of_the_rule_mistake_is_no_reason_when_issued(policy: str, updates: int) -> None:
    """A score of 0 predicts negative, rightly: `rescore` asks y*score <= 0, `issued` what was published."""
    f = Feeder(learner={**PERCEPTRON, "delay_policy": policy})
    fed = f.feed(f.example("a", 1), f.label("a", 2, False))
    assert (f.ledger.tallies.life.mistakes, len(fed.updates)) == (0, updates)


@pytest.mark.parametrize("tie", ["positive", "negative"])
@given(records=complete())
def test_without_delay_the_policies_coincide(tie: str, records: list[Record]) -> None:
    """For the ties `positive` and `negative`; here every label follows its example at once."""
    examples = [record for record in records if record.topic == "examples"]
    seals = []
    for policy in ("rescore", "issued"):
        f = Feeder(learner={**PERCEPTRON, "delay_policy": policy, "tie": tie})
        for number, record in enumerate(examples):
            f.feed(record)
            for waiting in list(f.ledger.waiting):
                f.feed(f.label(waiting, 10_000 + number, number % 3 == 0))
        seals.append((f.model.digest(), f.model.updates, f.ledger.tallies))
    assert seals[0] == seals[1]


@pytest.mark.parametrize("policy", ["rescore", "issued"])
def test_mistakes_are_counted_on_the_published_prediction(policy: str) -> None:
    """Once per id, when its label is applied; the decision carries what was published."""
    f, fed = late_pair(policy)
    assert [(d.outcome, d.label, d.prediction) for d in fed.decisions] == [("applied", True, False)] * 2
    assert f.ledger.tallies.life.actual == {"true": 2}


def test_predicted_is_the_deciding_models_class_or_when_issued_the_published_one() -> None:
    """Multiclass learners subtract it, so it must be the one that was decided with."""
    for policy, predicted in (("rescore", [False, True]), ("issued", [False])):
        f = Feeder(learner={**PERCEPTRON, "delay_policy": policy})
        fed = f.feed(f.example("a", 1), f.example("b", 2), f.label("a", 3), f.label("b", 4, False))
        assert [update["predicted"] for update in fed.updates] == predicted


# --- what an update says ------------------------------------------------------------------------------


def test_an_update_says_all_that_a_fold_needs() -> None:
    """And which model decided it; its key is the id."""
    spam = {"positive": "spam", "negative": "ham"}
    f = Feeder(partitions=2, labels=spam, learner={"kind": "averaged-perceptron"})
    f.feed(f.example("z", 1, partition=0), f.label("z", 2, "ham", partition=0))
    fed = f.feed(f.example(7, 3, ["free"], partition=1), f.label("7", 4, "spam", partition=1))
    assert fed.updates == [
        {
            "epoch": 1,
            "n": 1,
            "clock": [1, 1],
            "id": "7",
            "label": "spam",
            "predicted": "ham",
            "features": ["free"],
            "source": 0,
            "model": {"epoch": 1, "updates": [1, 0], "clock": [1, 0]},
        }
    ]
    (output,) = [output for output in fed.outputs if output.topic == "updates"]
    assert (output.partition, output.key) == (1, b"7")


@given(complete(partitions=3), sections)
def test_updates_are_numbered_without_gaps_and_name_the_version_that_decided(
    records: list[Record], settings: dict[str, Any]
) -> None:
    """n = 1, 2, 3 ... within a partition; the version is the one just before, of all partitions."""
    f = Feeder(partitions=3, **settings)
    fed = f.feed(*records, max_records=5)
    known, clock = [0, 0, 0], [0, 0, 0]
    outputs = [output for output in fed.outputs if output.topic == "updates"]
    for output, update in zip(outputs, fed.updates, strict=True):
        assert update["model"]["updates"] == known
        known[output.partition] += 1
        assert update["n"] == known[output.partition]
        assert all(now >= before for now, before in zip(update["clock"], clock, strict=True))
        if "clock" in update["model"]:
            before = list(update["clock"])
            before[output.partition] -= 1
            assert update["model"]["clock"] == before
        clock = update["clock"]
    assert f.model.updates == known
    assert [ledger.tallies.life.updates for ledger in f.state.ledgers.values()] == known
    assert f.model.clock == [ledger.tallies.life.examples["labelled"] for ledger in f.state.ledgers.values()]


# --- derived again ------------------------------------------------------------------------------------


@given(complete(partitions=2), sections)
def test_every_published_score_can_be_derived_from_its_version(
    records: list[Record], settings: dict[str, Any]
) -> None:
    """Fold the first n updates of each partition, score the features: the same bits, and the same class."""
    f = Feeder(partitions=2, **settings)
    fed = f.feed(*records, max_records=3)
    updates = [
        [
            read_update(Record("updates", p, 0, 0, output.key, output.value))
            for output in fed.outputs
            if (output.topic, output.partition) == ("updates", p)
        ]
        for p in range(2)
    ]
    for prediction in fed.predictions:
        model, version = Model(f.settings, 2), prediction["model"]
        for p in (1, 0):
            for update in updates[p][: version["updates"][p]]:
                model.follow(p, update)  # type: ignore[arg-type]
        x = model.features(encode(prediction["features"]))
        score = model.learner.score(x, sum(version.get("clock", ())))
        assert repr(score) == repr(prediction["score"])
        assert model.learner.predict(score) is prediction["prediction"]
    model = Model(f.settings, 2)
    for p in range(2):
        for update in updates[p]:
            model.follow(p, update)  # type: ignore[arg-type]
    assert model.digest() == f.model.digest()


# --- older epochs ---------------------------------------------------------------------------------------


def in_a_new_epoch(features: Any = None, **sections: Any) -> Feeder:
    """An example predicted in epoch 1 waits; the settings of epoch 2 rule."""
    f = Feeder(learner=PERCEPTRON, features={"missing": "skip"})
    f.feed(f.example("old", 1, features))
    new = Feeder(**sections)
    new.next = f.next
    new.state.ledgers = f.state.ledgers
    new.model.epoch = 2
    return new


@pytest.mark.parametrize("policy", ["rescore", "issued"])
@pytest.mark.parametrize("label", [True, False])
def test_an_older_epochs_prediction_is_rescored_and_its_mistake_counts_for_life_only(
    policy: str, label: bool
) -> None:
    """The new model did not make it: a score of 0 is a reason to update, whatever had been published."""
    f = in_a_new_epoch(learner={**PERCEPTRON, "delay_policy": policy})
    fed = f.feed(f.label("old", 2, label))
    assert [d.outcome for d in fed.decisions] == ["applied"]
    assert (f.ledger.tallies.life.mistakes, f.ledger.tallies.epoch.mistakes) == (int(label), 0)
    assert [(update["epoch"], update["n"]) for update in fed.updates] == [(2, 1)]


def test_an_older_epochs_class_that_is_declared_no_more_was_a_mistake() -> None:
    """Whatever the label is, it is another one; the decision keeps what had been published."""
    f = in_a_new_epoch(learner=PERCEPTRON, labels={"positive": "spam", "negative": "ham"})
    f.ledger.restore([entry._replace(predicted="eggs") for entry in f.ledger.waiting.values()], ())
    fed = f.feed(f.label("old", 2, "ham"))
    assert [(d.outcome, d.label, d.prediction) for d in fed.decisions] == [("applied", "ham", "eggs")]
    assert f.ledger.tallies.life.mistakes == 1
    assert [dict(facts.evaluations) for facts in fed.facts] == [{("ham", "eggs"): 1}]
    f.balance()


def test_an_older_epochs_features_that_are_no_features_any_more_teach_nothing() -> None:
    """Their label is applied all the same, and every sum adds up."""
    f = in_a_new_epoch({"a": None}, learner=PERCEPTRON)
    fed = f.feed(f.label("old", 2))
    assert fed.decided == [("applied", "old")]
    assert fed.updates == []
    assert fed.dead_letters == []
    f.balance()
