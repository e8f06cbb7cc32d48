"""No run on data that meets a theorem's assumptions exceeds its bound, whatever the order, delay and staleness."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from math import exp, inf, isfinite, isnan, log, sqrt
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from mistakebound.core import bounds
from mistakebound.core.learners import KINDS, Learner, make
from mistakebound.core.messages.schema import encode
from mistakebound.core.model.model import Model
from mistakebound.core.replay.replay import Row, replay_rows, report_of
from mistakebound.core.theorems.claims import certificate, claims
from mistakebound.settings import INITIAL, Settings
from tests.core.support import oracle_bounds
from tests.core.support.company import Company
from tests.core.support.proof import Proof
from tests.core.support.worlds import WORLDS, World, circle, disjunction, linear, many_classes
from tests.support.tries import long

# --- values by hand ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "value"),
    [
        (oracle_bounds.novikoff(2, 0.5), 16),
        (oracle_bounds.novikoff(2, 0.5, norm=3), 144),
        (oracle_bounds.novikoff_with_bias(3, 0.5, 2), 10 * 5 * 4),
        (oracle_bounds.freund_schapire(1, 0.5, 0.5), 9),
        (oracle_bounds.deviation_of([1.0, 0.0, -0.5, 0.25], 0.5), sqrt(0.25 + 1 + 0.0625)),
        (oracle_bounds.multiclass(2, 0.5), 32),
        (oracle_bounds.margin_perceptron(1, 0.5, 3, 0.5), (1 + 12) * 4),
        (bounds.normalized_margin(0.5), 32),
        (oracle_bounds.one_sided(0.1), 100),
        (oracle_bounds.divergence({"a": 0.5, "b": 0.5, "c": 0, "d": 0}, 3.0), log(2)),
        (oracle_bounds.divergence({"a": 2.0, "b": 0, "c": 0, "d": 0}, 1.0), 2 * log(4)),
        (
            oracle_bounds.winnow({"a": 1.0, "b": 0, "c": 0, "d": 0}, 1.0, 2.0, 3.0, 0.5),
            2 * 2 * 9 * 4 * log(4),
        ),
        (bounds.winnow_any_rate(2.0, 0.5, 1.0, 1.0), 2 / (0.5 - 0.125)),
        (bounds.winnow_any_rate(2.0, 0.5, 1.0, 1.0, missing=8), (2 + 0.25 * 8) / (0.5 - 0.125)),
        (bounds.winnow_any_rate(2.0, 2.0, 1.0, 1.0), inf),
        (bounds.winnow_initial(0.1, 2 * 10 * (exp(0.1) - 1.1), 1.0), 1 / (exp(0.1) - 1.1)),
        (bounds.winnow_initial(0.1, 4 * 10 * (exp(0.1) - 1.1), 1.0), 0.5 * (1 - log(2)) / (exp(0.1) - 1.1)),
        (bounds.winnow_initial(1.0, 1.0, 1.0), 1 / (3 - exp(1.0))),
        (bounds.winnow_initial(1.0, 0.7, 1.0), inf),
        (bounds.winnow_initial(1e-15, 0.5, 3.0), 36),
        (bounds.winnow_initial(1e-300, 0.5, 3.0), inf),
        (bounds.winnow_initial(0.1, 1.0, inf), inf),
        (bounds.winnow_initial(0.1, 1.0, 0.0), 0),
        (bounds.littlestone_zero(3, 32, 2, 16), 2 * 3 * 5 + 2),
        (bounds.littlestone_divide(3, 32, 2, 16), 3 * 3 * 5 + 4),
        (bounds.littlestone_divide(1, 30, 4, 4), 5 * 2 + 4 * 30 / 12),
        (oracle_bounds.littlestone_threshold(3, 2, 10), 32 + 15 + 84 * log(10)),
        (bounds.elimination(7, general=False), 7),
        (bounds.elimination(7, general=True), 8),
        (bounds.con(9), 8),
        (bounds.halving(1), 0),
        (bounds.halving(7), 2),
        (bounds.halving(8), 3),
        (bounds.halving(2**40 - 1), 39),
        (oracle_bounds.rescored(10, 3), 40),
        (bounds.rescored_by_partition(10, [4, 0, 1]), 50),
        (oracle_bounds.issued(10, 3), 70),
        (oracle_bounds.several_workers(10, 3), 70),
        (bounds.missing_updates(4, 2, 0.5, 0), 16),
        (bounds.missing_updates(1, 1, 1, 3), 3),
        (oracle_bounds.stale_sets(10, 3), 40),
        (bounds.missing_sets(10, 3), 13),
        (bounds.margin_upper_bound(6, 4), 1.5),
        (bounds.margin_upper_bound(0, 4), 0),
        (bounds.margin_upper_bound(0, 0), inf),
    ],
)
def test_a_bound_has_the_value_worked_out_by_hand(found: float, value: float) -> None:
    """One formula each, with small numbers."""
    assert found == pytest.approx(value, rel=1e-12)


POSITIVE = st.floats(5e-324, 1.7e308)


@given(
    radius=st.one_of(st.just(0.0), POSITIVE, st.just(inf)),
    gamma=POSITIVE,
    rate=POSITIVE,
    missing=st.integers(0, 2**63),
)
def test_a_bound_is_a_number_or_infinite_whatever_was_sent_and_declared(
    radius: float, gamma: float, rate: float, missing: int
) -> None:
    """It raises no error, and is not NaN where only what was sent is extreme."""
    growth = radius * radius
    for bound in (
        bounds.missing_updates(growth, radius, gamma, 0),
        bounds.missing_updates(growth, radius, gamma, missing),
        bounds.restarted(bounds.missing_updates(growth, radius, gamma, 0), 3),
        bounds.asked(rate, radius, gamma),
        bounds.winnow_any_rate(2.0, rate, gamma, radius, missing),
        bounds.winnow_initial(rate, gamma, radius),
        bounds.normalized_margin(gamma),
        bounds.littlestone_zero(3, 30, 1 + 1 / 2**52, gamma),
        bounds.littlestone_divide(3, 30, 1 + 1 / 2**52, gamma),
    ):
        assert not isnan(bound)


@given(st.floats(0.01, 10), st.floats(0.01, 1), st.integers(1, 100), st.integers(0, 20))
def test_counting_what_was_missing_is_never_worse_than_the_worst_of_it(
    radius: float, gamma: float, updates: int, stale: int
) -> None:
    """U^2 gamma^2 <= R^2 (U + 2 S) allows no U that is above (1 + 2s)(R/gamma)^2, since S <= s U."""
    most = oracle_bounds.several_workers(oracle_bounds.novikoff(radius, gamma), stale)
    tight = bounds.missing_updates(radius**2, radius, gamma, int(stale * min(most, updates)))
    assert tight <= most * (1 + 1e-9)


def test_zhangs_rate_is_a_case_of_any_rate() -> None:
    """eta = delta/(W R^2) with ||u||_1 = W = 1 and gamma = delta: 2 KL R^2/delta^2 either way."""
    separator = {"a": 0.75, "b": 0.25, "c": 0.0, "d": 0.0}
    kl, delta, radius = oracle_bounds.divergence(separator, 1.0), 0.3, 1.7
    assert bounds.winnow_any_rate(kl, delta / radius**2, delta, radius) == pytest.approx(
        oracle_bounds.winnow(separator, 1.0, 1.0, radius, delta)
    )


@pytest.mark.parametrize("seed", [1, 3, 6])
@pytest.mark.parametrize("eta", [0.005, 0.02, 0.3])
def test_winnow_against_its_initial_weights_stays_within_the_oracles_bound(seed: int, eta: float) -> None:
    """Rows again and again, until none is missed; the service's bound knows less, and so is above the oracle's.

    After each update the potential of the oracle's proof has fallen by what the proof says.
    """
    world = linear(seed, length=1, signed=False, wanted=0.06, rows=200, kind="winnow", eta=eta)
    assert world.margin is not None
    one = make(world.settings, 1)
    model = Model(world.settings, 1)
    rows = [(model.features(encode(x)), label) for x, label in world.rows]
    tight = oracle_bounds.winnow_initial(
        world.separator, eta, world.margin, [[value for _, value in x] for x, _ in rows]
    )
    most = bounds.winnow_initial(eta, world.margin, world.radius)
    c = min(1.0, 2 * (exp(eta * world.radius) - 1 - eta * world.radius) / (eta * world.margin))
    fall = c * eta * world.margin - (exp(eta * world.radius) - 1 - eta * world.radius)

    def potential() -> float:
        total = 0.0
        for name, v in world.separator.items():
            u, w = 1 + c * v, exp(eta * one.theta().get(name, 0.0))
            total += u * log(u / w) - u + w
        return total

    updates, before = 0, potential()
    for number in range(6_000):
        x, label = rows[number % len(rows)]
        if one.decide(x, label)[0]:
            one.fold(0, x, label, number + 1, None)
            updates, now = updates + 1, potential()
            assert now <= before - fall + 1e-12
            before = now
    assert 10 < updates <= tight * (1 + 1e-9)
    assert tight <= most
    assert isfinite(tight) is (eta < 0.3)


def test_a_negative_feature_takes_the_bound_against_the_initial_weights_away() -> None:
    """The proof needs features that are not negative; the certificate needs nothing."""
    world = linear(1, length=1, signed=False, kind="winnow", eta=0.02)
    assert bounds_of(world)
    (x, label), *rest = world.rows
    wrong = replace(world, rows=[({**x, "a": -0.5}, not label), *rest])
    assert bounds_of(wrong) == ()


# --- no run exceeds its bound -----------------------------------------------------------------------

EVERY_WORLD = pytest.mark.parametrize("name", sorted(WORLDS))
SAID = {"mistakes and updates": ["updates", "mistakes"], "updates": ["updates"], "mistakes": ["mistakes"]}
"""What `Kind.bounds` promises at zero delay, bound by bound."""


def issued(world: World) -> World:
    learner = world.settings.learner.model_copy(update={"delay_policy": "issued"})
    return replace(world, settings=world.settings.model_copy(update={"learner": learner}))


def test_every_kind_has_a_world() -> None:
    """A learner without one would be missing below."""
    assert {WORLDS[name](0).settings.learner.kind for name in WORLDS} == set(KINDS)


@EVERY_WORLD
@pytest.mark.parametrize("seed", [1, *long(0, 2)])
def test_no_run_at_zero_delay_exceeds_its_bound(name: str, seed: int) -> None:
    """The textbook's protocol, on one partition: there a mistake of a plain learner is an update."""
    world = WORLDS[name](seed)
    company = Company(world, 1, 1, seed)
    company.run(world, 0)
    assert company.judge(world) == SAID[KINDS[world.settings.learner.kind].bounds]


@pytest.mark.long
@EVERY_WORLD
@pytest.mark.parametrize("seed", range(3))
def test_no_run_with_late_labels_in_any_order_exceeds_its_bound(name: str, seed: int) -> None:
    """`rescore`, one worker: updates as at zero delay, mistakes as many as waited, for each of them."""
    world = WORLDS[name](seed)
    company = Company(world, 1, 1, seed)
    company.run(world, 1 + 5 * seed)
    assert ("updates" in company.judge(world)) is ("updates" in KINDS[world.settings.learner.kind].bounds)
    assert company.auditor().missing == 0


@pytest.mark.long
@EVERY_WORLD
@pytest.mark.parametrize("seed", range(3))
def test_no_run_that_learns_from_issued_predictions_exceeds_its_bound(name: str, seed: int) -> None:
    """`issued`: what came between a prediction and its label is counted, update by update."""
    world = issued(WORLDS[name](seed))
    if KINDS[world.settings.learner.kind].no_issued is not None:
        return  # refused: test_requirements
    company = Company(world, 1, 1, seed)
    company.run(world, 1 + 5 * seed)
    said = company.judge(world)
    missing = company.auditor().missing
    assert missing is not None
    learner = world.settings.learner
    silent = learner.kind == "littlestone-winnow" or (learner.threshold == INITIAL and missing > 0)
    assert said == ([] if silent else ["updates", "mistakes"])
    worst = max((update.behind for update in company.updates[0]), default=0)
    assert missing <= worst * len(company.updates[0])


@EVERY_WORLD
@pytest.mark.parametrize("seed", [2, *long(0, 1, 3, 4, 5)])
@pytest.mark.parametrize("policy", ["rescore", *long("issued")])
def test_no_run_of_several_lagging_models_exceeds_its_bound(name: str, seed: int, policy: str) -> None:
    """Four partitions, up to three workers, each of which follows the others when it likes."""
    world = WORLDS[name](seed) if policy == "rescore" else issued(WORLDS[name](seed))
    kind = KINDS[world.settings.learner.kind]
    if kind.one_partition is not None or (kind.no_issued is not None and policy == "issued"):
        return  # refused
    company = Company(world, 4, 1 + seed % 3, seed, lag=(0.0, 0.2, 0.7)[seed % 3])
    company.run(world, 6)
    company.judge(world)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("policy", ["rescore", "issued"])
def test_the_proofs_two_quantities_hold_after_every_update(seed: int, policy: str) -> None:
    """u.theta >= t gamma and ||theta||^2 <= R^2 (t + 2 S), for one worker and for several that lag."""
    world = linear(seed, kind="perceptron", learning_rate=0.3, wanted=0.02)
    world = world if policy == "rescore" else issued(world)
    assert world.margin is not None
    proof = Proof(world.separator, world.margin, world.radius)
    company = Company(world, 3, 1 + seed % 3, seed)

    def check() -> None:
        model = company.auditor()
        assert model.missing is not None
        proof.check(model.learner.theta(), sum(model.updates), model.missing)

    company.run(world, 5, check)
    assert sum(company.auditor().updates) >= 3


@pytest.mark.parametrize("seed", range(5))
def test_inseparable_data_stays_within_freund_and_schapires_bound(seed: int) -> None:
    """Any unit u and any gamma, with the deviations summed over the updates."""
    world = linear(seed, kind="perceptron")
    random = Random(seed)
    rows = [(x, label is not (random.random() < 0.15)) for x, label in world.rows * 3]
    company = Company(world, 1, 1, seed)
    company.run(replace(world, rows=rows), 0)
    model = company.auditor()
    margins = [
        (1.0 if update.label else -1.0)
        * sum(world.separator[name] * value for name, value in model.features(bytes(update.features)))
        for update in company.updates[0]
    ]
    for gamma in (0.05, 0.3, 1.0):
        most = oracle_bounds.freund_schapire(world.radius, gamma, oracle_bounds.deviation_of(margins, gamma))
        assert len(margins) <= most


@pytest.mark.parametrize("size", [1, 5, 16])
@pytest.mark.parametrize(
    "kind", ["perceptron", "averaged-perceptron", "voted-perceptron", "one-sided-perceptron"]
)
def test_the_perceptrons_bound_is_reached_to_the_update(kind: str, size: int) -> None:
    """Orthogonal examples of length 1: each is a mistake once, and 1/gamma^2 is their number."""
    rows = [Row(str(n), {f"x{n}": 1.0}, n % 3 > 0) for n in range(size)]
    features = {"bias": False, "normalize": "unit"}
    chosen = Settings.model_validate(
        {"learner": {"kind": kind, "gamma": 1 / sqrt(size)}, "features": features}
    )
    report = report_of(replay_rows(rows, chosen, 1))
    first = report.bounds[0]
    assert (first.count, first.value) == (size, pytest.approx(size))
    assert first.holds
    assert report.margin_upper_bound == pytest.approx(1 / sqrt(size))


def test_the_multiclass_bound_needs_its_factor_of_two() -> None:
    """(R/gamma)^2 is exceeded by rows that 2 (R/gamma)^2 allows."""
    exceeded = 0
    for size in (2, 4, 8):
        classes = ["p", "q", "r"]
        rows = [Row(f"{n}", {f"x{n}": 1.0}, "q") for n in range(size)]
        gamma = 1 / sqrt(size) * sqrt(3 / 2)
        chosen = Settings.model_validate(
            {
                "learner": {"kind": "perceptron", "gamma": gamma},
                "labels": {"classes": classes},
                "features": {"bias": False},
            }
        )
        report = report_of(replay_rows(rows, chosen, 1))
        assert report.bounds[0].holds
        exceeded += report.updates > oracle_bounds.novikoff(1, gamma)
    assert exceeded


def test_a_mistake_for_each_that_waited_can_happen() -> None:
    """(1 + tau) U is reached: all are predicted before the first label."""
    rows = [Row(str(n), {"a": 1.0}, True) for n in range(6)]
    chosen = Settings.model_validate(
        {"learner": {"kind": "perceptron", "gamma": 1.0}, "features": {"bias": False}}
    )
    report = report_of(replay_rows(rows, chosen, 1, delay=5))
    assert [(one.of, one.count, one.value) for one in report.bounds] == [
        ("updates", 1, 1),
        ("mistakes", 6, 6),
    ]


def test_averaged_mistakes_are_not_bounded_and_nothing_says_they_were() -> None:
    """1,000 times (1, 0)+, then (1, .9)- for ever: two updates, and a mistake at almost every row."""
    rows = [Row(str(n), {"a": 1.0}, True) for n in range(1000)]
    rows += [Row(str(n), {"a": 1.0, "b": 0.9}, False) for n in range(1000, 2200)]
    chosen = Settings.model_validate(
        {"learner": {"kind": "averaged-perceptron", "gamma": 0.3}, "features": {"bias": False}}
    )
    report = report_of(replay_rows(rows, chosen, 1))
    assert [bound.of for bound in report.bounds] == ["updates"]
    assert report.mistakes > 1000 > oracle_bounds.rescored(report.bounds[0].value, 0) > report.updates


# --- what is declared is needed ---------------------------------------------------------------------


def bounds_of(world: World, **changes: Any) -> tuple[Any, ...]:
    learner = world.settings.learner.model_copy(update=changes)
    chosen = world.settings.model_copy(update={"learner": learner})
    return report_of(
        replay_rows([Row(str(n), x, y) for n, (x, y) in enumerate(world.rows)], chosen, 1)
    ).bounds


@pytest.mark.parametrize(
    ("world", "changes"),
    [
        (linear(1, kind="perceptron"), {"gamma": None}),
        (many_classes(1), {"gamma": None}),
        (circle(1), {"budget": 5}),
        (linear(1, length=1, positive=True, kind="winnow", eta=0.05), {"threshold": 1.0}),
        (linear(1, length=1, positive=True, kind="winnow", threshold=0), {"eta": 5.0}),
        (linear(1, length=1, signed=False, kind="winnow"), {"eta": 5.0}),
        (linear(1, length=1, signed=True, kind="winnow", eta=0.02), {}),
        (disjunction(1, threshold=15), {"relevant": None}),
        (disjunction(1, threshold=15), {"variables": None}),
        (disjunction(1, threshold=15), {"threshold": 0.9}),
        (disjunction(1, threshold=15), {"threshold": 0.4, "demotion": "zero"}),
    ],
)
def test_nothing_is_claimed_where_an_assumption_is_not_declared(
    world: World, changes: dict[str, Any]
) -> None:
    """A bound that rests on nothing would be a guess."""
    assert bounds_of(world, **changes) == ()


def test_an_exceeded_bound_says_so() -> None:
    """The declared margin is one that the data does not have."""
    found = bounds_of(linear(3, kind="perceptron", wanted=0.01, rows=300), gamma=0.9)
    assert not found[0].holds
    assert found[0].count > found[0].value


def test_open_classes_get_no_bound_and_no_certificate() -> None:
    """A class that is not known yet is missed at a score of 0, above or below the others."""
    chosen = Settings.model_validate(
        {"learner": {"kind": "perceptron", "gamma": 0.1}, "labels": {"classes": "open"}}
    )
    report = report_of(replay_rows([Row("1", {"a": 1}, "x"), Row("2", {"a": 1}, "y")], chosen, 1))
    assert report.updates == 2
    assert (report.bounds, report.margin_upper_bound) == ((), None)


def test_an_epoch_that_starts_from_anothers_rows_has_no_bound() -> None:
    """The epoch's theta is not the sum of its own updates."""
    model = Model(Settings.model_validate({"learner": {"kind": "perceptron", "gamma": 0.1}}), 1)
    x = model.features(b'{"a": 1}')
    model.learn(0, x, True, False)
    assert claims(model, ())
    assert certificate(model)
    model.based = True
    assert claims(model, ()) == ()
    assert certificate(model) is None


def test_nothing_is_said_while_an_update_is_still_to_be_followed() -> None:
    """A model that has decided with an update unknown here is older than what is known here."""
    world = linear(2, kind="perceptron")
    company = Company(world, 2, 1, 2)
    company.run(world, 0)
    model = Model(world.settings, 2)
    later = max(range(2), key=lambda p: sum(company.updates[p][-1].model.updates))
    for update in company.updates[later]:
        model.follow(later, update)
    assert model.missing is None
    assert claims(model, ()) == ()
    for update in company.updates[1 - later]:
        model.follow(1 - later, update)
    assert model.missing == 0


# --- the certificate --------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2), st.booleans()), min_size=2, max_size=5),
    st.sampled_from(["perceptron", "margin-perceptron", "balanced-winnow", "winnow"]),
)
@settings(deadline=None)
def test_a_theta_that_came_back_shows_that_nothing_separates(
    points: list[tuple[int, int, bool]], kind: str
) -> None:
    """Between equal thetas every separator's progress would have been positive."""
    chosen = Settings.model_validate({"learner": {"kind": kind, "margin": 0.5}, "features": {"bias": False}})
    one = make(chosen, 1)
    thetas = [(0.0, 0.0)]
    for _ in range(12):
        for a, b, positive in points:
            x = (("a", float(a)), ("b", float(b)))
            if one.decide(x, positive)[0]:
                one.fold(0, x, positive, 0, None)
                theta = one.theta()
                thetas.append((theta["a"], theta["b"]))
    if len(set(thetas)) < len(thetas):
        signed = [(a, b) if positive else (-a, -b) for a, b, positive in points]
        least = (0, None) if kind == "winnow" else (None, None)
        found = linprog([0, 0], A_ub=-np.array(signed), b_ub=-np.ones(len(signed)), bounds=[least, least])
        assert found.status == 2, "infeasible"


@pytest.mark.parametrize("kind", ["littlestone-winnow", "elimination", "con", "halving"])
def test_learners_without_a_certificate_give_none(kind: str) -> None:
    """No theta of theirs has a length that would bound a margin."""
    name = next(name for name in WORLDS if name.startswith(kind))
    world = WORLDS[name](1)
    company = Company(world, 1, 1, 1)
    company.run(world, 0)
    assert certificate(company.auditor()) is None


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(-3, 3), st.integers(-3, 3), st.booleans()), max_size=12)
)
def test_a_kernels_norm_is_the_double_sum(log: list[tuple[int, int, int, bool]]) -> None:
    """Also where it is asked for between updates, and after a rollback."""
    chosen = Settings.model_validate({"learner": {"kind": "kernel-perceptron"}, "features": {"bias": False}})
    one: Any = make(chosen, 3)
    folded: list[tuple[int, int, float]] = []
    for number, (p, a, b, positive) in enumerate(log):
        x = (("a", float(a)), ("b", float(b)))
        one.begin()
        one.fold(p, x, positive, 0, None)
        one.norm()
        if number % 3 == 2:
            one.rollback()
        else:
            folded.append((a, b, 1.0 if positive else -1.0))
    square = sum(s * t * (a * c + b * d + 1) ** 2 for a, b, s in folded for c, d, t in folded)
    assert one.norm() == pytest.approx(sqrt(max(0.0, square)), abs=1e-6)


# --- brute force ------------------------------------------------------------------------------------


def boolean(kind: str, concepts: str, variables: int) -> Learner:
    return make(
        Settings.model_validate(
            {
                "learner": {"kind": kind, "concepts": concepts, "variables": variables},
                "features": {"bias": False},
            }
        ),
        1,
    )


def every_example(variables: int) -> Iterator[tuple[tuple[str, float], ...]]:
    for bits in product((0, 1), repeat=variables):
        yield tuple((str(place), 1.0) for place, bit in enumerate(bits) if bit)


def most_mistakes(kind: str, concepts: str, variables: int) -> int:
    """Over all sequences of examples that some concept of the class explains: an adversary's best."""
    one = boolean(kind, concepts, variables)
    space = boolean("con", concepts, variables)
    examples = list(every_example(variables))

    @cache
    def best(learner: bytes, space_left: bytes) -> int:
        most = 0
        for x in examples:
            load(learner, space_left)
            label = not one.predict(one.score(x, 0))
            space.fold(0, x, label, 0, None)
            if not space.size():  # type: ignore[attr-defined]
                continue
            must, predicted = one.decide(x, label)
            if must:
                one.fold(0, x, label, 0, predicted)
            after = saved()
            if after != (learner, space_left):
                most = max(most, 1 + best(*after))
        return most

    states: dict[bytes, Any] = {}

    def saved() -> tuple[bytes, bytes]:
        keys = []
        for each in (one, space):
            state = each.dump()
            copied = [dict(row) for row in state["counts"]] if isinstance(state, dict) else state
            if isinstance(state, dict):
                state = {"counts": copied, "updates": [dict(row) for row in state["updates"]]}
            key = repr((each.weights(), each.digest()) if isinstance(state, dict) else state).encode()
            states.setdefault(key, state)
            keys.append(key)
        return keys[0], keys[1]

    def load(learner: bytes, space_left: bytes) -> None:
        one.load(states[learner])
        space.load(states[space_left])

    return best(*saved())


@pytest.mark.parametrize("variables", [1, 2, 3, 4])
def test_elimination_can_be_made_to_err_exactly_n_times(variables: int) -> None:
    """Monotone conjunctions: n; and never more."""
    assert most_mistakes("elimination", "monotone-conjunctions", variables) == bounds.elimination(
        variables, general=False
    )


@pytest.mark.parametrize("variables", [1, 2, 3])
def test_elimination_of_literals_can_be_made_to_err_exactly_n_plus_1_times(variables: int) -> None:
    """The first mistake removes n of 2n literals, each later one at least one."""
    assert most_mistakes("elimination", "conjunctions", variables) == bounds.elimination(
        variables, general=True
    )


@pytest.mark.parametrize(
    ("concepts", "variables"),
    [("monotone-conjunctions", n) for n in (1, 2, 3, 4)] + [("thresholds", n) for n in (1, 2, 3, 4)],
)
def test_con_can_be_made_to_err_once_for_each_concept_but_one(concepts: str, variables: int) -> None:
    """Most general first: each mistake removes exactly the concept that was wrong."""
    space: Any = boolean("con", concepts, variables)
    assert most_mistakes("con", concepts, variables) == bounds.con(space.concepts.size)


@pytest.mark.parametrize(
    ("concepts", "variables", "tight"),
    [
        ("monotone-conjunctions", 3, False),
        ("conjunctions", 2, False),
        ("thresholds", 3, False),
        ("thresholds", 2, True),
        ("table:" + ",".join(f"{n:04b}" for n in range(16)), 2, True),
    ],
)
def test_halving_never_errs_more_often_than_it_can_halve(concepts: str, variables: int, tight: bool) -> None:
    """floor(log2 |C|), which all functions and a chain of four concepts reach."""
    space: Any = boolean("halving", concepts, variables)
    most = most_mistakes("halving", concepts, variables)
    limit = bounds.halving(space.concepts.size)
    assert most <= limit
    if tight:
        assert most == limit
