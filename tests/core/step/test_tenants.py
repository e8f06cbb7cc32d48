"""A model for each tenant out of one worker: what is learned of one moves no other, and each is counted."""

from collections.abc import Iterable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mistakebound.core.learners import KINDS
from mistakebound.core.messages.schema import Prediction, Update, read_prediction, read_update
from mistakebound.core.messages.tallies import TenantTally
from mistakebound.core.records import Record
from mistakebound.core.replay.applied import AppliedRows
from mistakebound.core.replay.replay import Row, replay_rows, report_of
from mistakebound.core.step.explain import explain
from mistakebound.core.step.step import Step
from mistakebound.settings import Settings
from tests.core.support.every_kind import CASES, Case
from tests.core.support.feeding import Fed, Feeder
from tests.support.tries import tried

TENANTS = ("acme", "bcme", "a|b")
ALONE = [
    case
    for case in CASES.values()
    if KINDS[case.kind].no_cross is None
    and case.settings.learner.window is None
    and case.settings.learner.on_refuted is None
    and case.settings.features.cross is None
    and case.settings.labels.classes != "open"
]


def feeder(**sections: Any) -> Feeder:
    features = {"cross": "/tenant", **sections.pop("features", {})}
    return Feeder(learner={"kind": "perceptron"}, features=features, **sections)


def reason(fed: Fed) -> str:
    (dead,) = fed.dead_letters
    return (dict(dead.headers)["mistakebound.reason"] or b"").decode()


# --- a tenant among others learns what it learns alone -----------------------------------------------------


def replayed(rows: Iterable[Row], settings: Settings) -> dict[str, list[Any]]:
    """What each id's update was, and each id's prediction, in their order."""
    found: dict[str, list[Any]] = {"updates": [], "predictions": []}

    def see(step: Step) -> None:
        for output in step.transaction.outputs:
            record = Record(output.topic, output.partition, 0, 0, output.key, output.value)
            if output.topic == "updates":
                update = read_update(record)
                assert isinstance(update, Update)
                found["updates"].append((update.id, update.label, update.predicted, update.amount))
            elif output.topic == "predictions":
                one: Prediction = read_prediction(record)
                found["predictions"].append((one.id, one.prediction, one.score, one.scores))

    replay_rows(rows, settings, 1, taken=see)
    return found


def crossing(settings: Settings) -> Settings:
    features = settings.features.model_copy(update={"cross": "/tenant"})
    return settings.model_copy(update={"features": features})


@tried(100, deadline=None)
@given(st.sampled_from(ALONE), st.integers(0, 2**32))
def test_tenants_among_each_other_have_the_updates_that_each_has_alone(case: Case, seed: int) -> None:
    """To the bit of their amounts, for every learner that takes tenants; and the same predictions, but for an average,
    whose weights are how long ago, counted over all tenants, each update was."""
    random = Random(seed)
    rows = [Row(f"i{n}", *case.row(random), tenant=random.choice(TENANTS)) for n in range(60)]

    together = replayed(rows, crossing(case.settings))

    for tenant in TENANTS:
        own = [row for row in rows if row.tenant == tenant]
        alone, ids = replayed(own, case.settings), {row.id for row in own}
        assert [one for one in together["updates"] if one[0] in ids] == alone["updates"]
        if not case.learner(1).averaged:
            assert [one for one in together["predictions"] if one[0] in ids] == alone["predictions"]


def test_a_tenant_that_nobody_has_seen_begins_with_what_all_have_taught() -> None:
    """With the shared features; without them it begins with nothing."""
    for shared, known in ((True, 5.0), (False, 0.0)):
        f = feeder(features={"cross_shared": shared, "bias": False})
        f.feed(f.example("a", 1, {"x": 1}, tenant="acme"), f.label("a", 2))
        (prediction,) = f.feed(f.example("b", 3, {"x": 5}, tenant="new")).predictions
        assert prediction["score"] == known


# --- what is written ---------------------------------------------------------------------------------------


def test_predictions_and_updates_say_whose_they_are() -> None:
    """Features stay as they were sent."""
    f = feeder()
    fed = f.feed(f.example("a", 1, {"x": 2}, tenant="acme"), f.label("a", 2))
    (prediction,), (update,) = fed.predictions, fed.updates
    assert (prediction["tenant"], prediction["features"]) == ("acme", {"x": 2})
    assert (update["tenant"], update["features"]) == ("acme", {"x": 2})
    assert f.model.learner.theta() == {"acme|x": 2.0, "acme|BIAS": 1.0}


def test_nothing_says_whose_it_is_where_nothing_is_crossed() -> None:
    """Records are those of earlier versions."""
    f = Feeder(learner={"kind": "perceptron"})
    fed = f.feed(f.example("a", 1, tenant="acme"), f.label("a", 2))
    assert all(b"tenant" not in (output.value or b"") for output in fed.outputs)
    assert "tenants" not in report_of(f.state).as_dict()


def test_a_tenant_may_be_one_of_the_features() -> None:
    """Then it is a feature, too."""
    f = feeder(features={"cross": "/features/shop"})
    f.feed(f.example("a", 1, {"x": 2, "shop": "acme"}), f.label("a", 2))
    assert f.model.learner.theta() == {"acme|x": 2.0, "acme|shop=acme": 1.0, "acme|BIAS": 1.0}


@pytest.mark.parametrize(
    ("tenant", "why"), [(None, "missing-tenant"), ("", "missing-tenant"), (1.5, "bad-tenant")]
)
def test_an_example_of_nobody_is_a_dead_letter(tenant: Any, why: str) -> None:
    """Also where the shared features could have been asked: a producer that forgets the tenant should hear of it."""
    f = feeder(features={"cross_shared": True})
    assert reason(f.feed(f.example("a", 1, tenant=tenant))) == why
    f.balance()


OWN = {"features": {"x": 3}, "prediction": False}


def test_a_very_late_label_brings_its_tenant_along() -> None:
    """It is learned from as the tenant's, and counted as its own."""
    f = feeder(labels={"parking": 1})
    fed = f.feed(f.label("a", 1, tenant="acme", **OWN), f.example("z", 5_000, tenant="zeta"))
    assert [(one.outcome, one.tenant) for one in fed.decisions] == [
        ("parked", "acme"),
        ("applied_late", "acme"),
    ]
    assert f.model.learner.theta() == {"acme|x": 3.0, "acme|BIAS": 1.0}
    assert f.ledger.tallies.tenants["acme"] == TenantTally(0, 1, 1, 1)


def test_a_very_late_label_without_its_tenant_brings_nothing_along() -> None:
    """As one without features; its label still counts for an example that waits."""
    f = feeder(labels={"parking": 1})
    fed = f.feed(f.label("a", 1, **OWN), f.example("b", 2, tenant="b"), f.label("b", 3, **OWN))
    assert fed.decided == [("parked", "a"), ("applied", "b")]
    assert f.feed(f.example("z", 5_000, tenant="z")).decided == [("unmatched", "a")]


def test_a_very_late_label_whose_tenant_is_wrong_is_a_dead_letter() -> None:
    """Whether it was needed or not."""
    f = feeder()
    assert reason(f.feed(f.label("a", 1, tenant=[1], **OWN))) == "bad-tenant"


def test_a_mistake_is_explained_by_the_tenants_features() -> None:
    """Under the names by which the model knows them."""
    f = feeder(features={"bias": False})
    f.feed(f.example("a", 1, {"x": 1}, tenant="acme"), f.label("a", 2))
    f.feed(f.example("b", 3, {"x": 1}, tenant="acme"))
    explained = explain(f.model, 0, f.ledger.waiting["b"], False, 4, 1_000)
    assert explained is not None
    assert [(term.name, term.contribution) for term in explained[0].terms] == [("acme|x", 1.0)]


# --- what is counted ---------------------------------------------------------------------------------------


def test_every_tenant_is_counted() -> None:
    """Predicted, labelled, mistakes and updates; the lines of all add up to the partition's own counts."""
    f = feeder()
    for n in range(9):
        f.feed(f.example(f"i{n}", 2 * n, {"x": n - 4}, tenant=TENANTS[n % 3]))
        if n != 8:
            f.feed(f.label(f"i{n}", 2 * n + 1, n % 2 == 0))
    tallies, life = f.ledger.tallies, f.ledger.tallies.life
    lines = tallies.tenants.values()
    assert list(tallies.tenants) == list(TENANTS)
    assert [line.predicted for line in lines] == [3, 3, 3]
    assert [line.labelled for line in lines] == [3, 3, 2]
    assert sum(line.mistakes for line in lines) == life.mistakes > 0
    assert sum(line.updates for line in lines) == life.updates > 0


def test_a_step_taken_back_takes_its_tenants_counts_back() -> None:
    """Nothing of a transaction that was given up counts."""
    f = feeder()
    f.feed(f.example("a", 1, tenant="acme"))
    before = f.ledger.tallies.copy()
    f.feed(f.example("b", 2, tenant="acme"), f.label("a", 3), f.example("c", 4, tenant="new"))
    f.state.rollback([0])
    assert f.ledger.tallies == before


def test_a_report_shows_the_tenants() -> None:
    """The largest first."""
    f = feeder()
    f.feed(
        f.example("a", 1, tenant="acme"),
        f.label("a", 2),
        f.example("b", 3, tenant="zeta"),
        f.example("c", 4, tenant="zeta"),
    )
    found = report_of(f.state).as_dict()["tenants"]
    assert [(one["tenant"], one["examples"], one["labelled"], one["mistakes"]) for one in found] == [
        ("zeta", 2, 0, 0),
        ("acme", 1, 1, 1),
    ]


# --- epochs ------------------------------------------------------------------------------------------------


def test_what_waits_from_an_epoch_without_tenants_is_counted_and_not_learned_from() -> None:
    """Nobody wrote down whose it is."""
    f = feeder()
    f.feed(f.example("a", 1, tenant="acme"))
    (entry,) = f.ledger.waiting.values()
    f.ledger.restore([replace(entry, tenant=None, features=b"%b" % entry.features)], [])
    fed = f.feed(f.label("a", 2))
    assert (fed.decided, fed.updates) == ([("applied", "a")], [])
    assert (f.ledger.tallies.life.mistakes, f.ledger.tallies.tenants["acme"].labelled) == (1, 0)


def test_a_recording_of_tenants_seeds_a_model_of_tenants() -> None:
    """Its labelled examples, and those that very late labels brought along, say whose they are."""
    f = feeder(labels={"parking": 1})
    rows = AppliedRows()
    for one in f.feed(
        f.example("a", 1, {"x": 2}, tenant="acme"), f.label("a", 2),
        f.label("b", 3, tenant="zeta", **OWN), f.example("z", 5_000, tenant="z"),
    ).steps:  # fmt: skip
        rows.see(one)
    assert [(row.id, row.tenant) for row in rows.rows] == [("a", "acme"), ("b", "zeta")]
    state = replay_rows(rows.rows, f.settings, 1)
    assert state.model.learner.theta() == {
        "acme|x": 2.0, "acme|BIAS": 1.0, "zeta|x": 3.0, "zeta|BIAS": 1.0,
    }  # fmt: skip
