"""Starting from zero at a proved change: the same rows for everyone, in whatever order updates come; and its bound."""

from math import floor, fsum, sqrt
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mistakebound.config.load import load_arguments
from mistakebound.config.problems import ConfigurationError
from mistakebound.core.messages.schema import Update, read_update
from mistakebound.core.model.model import Model
from mistakebound.core.model.model_snapshot import Snapshot
from mistakebound.core.records import Record
from mistakebound.core.replay.replay import Row, replay_rows
from mistakebound.core.theorems.changes import proved_changes
from mistakebound.core.theorems.claims import certificate, claims, why_none
from mistakebound.settings import Settings
from tests.core.learners.test_changes import part
from tests.support.tries import tried

GAMMA = 0.3
LEARNERS = pytest.mark.parametrize("kind", ["perceptron", "averaged-perceptron", "margin-perceptron"])


def settings_of(kind: str = "perceptron", **learner: Any) -> Settings:
    more = {"margin": 2.0} if kind == "margin-perceptron" else {}
    table = {"kind": kind, "gamma": GAMMA, "on_refuted": "restart", **more, **learner}
    return Settings.model_validate({"learner": table, "features": {"bias": False}})


def rows_of(seed: int, parts: int, count: int = 60) -> list[Row]:
    """So many parts, each with a separator of its own of margin gamma."""
    random = Random(seed)
    made = [one for _ in range(parts) for one in part(random, count, GAMMA, 3)]
    return [Row(str(n), dict(x), sign > 0) for n, (x, sign) in enumerate(made)]


def worked(settings: Settings, rows: list[Row], partitions: int = 1) -> tuple[Model, list[list[Update]]]:
    """A worker's model after these rows, and the updates that it wrote, by partition."""
    updates: list[list[Update]] = [[] for _ in range(partitions)]

    def see(step: Any) -> None:
        for one in step.transaction.outputs:
            if one.topic == "updates":
                found = read_update(Record("updates", one.partition, 0, 0, one.key, one.value))
                assert isinstance(found, Update)
                updates[one.partition].append(found)

    return replay_rows(rows, settings, partitions, taken=see).model, updates


def frozen(model: Model) -> bytes:
    """All that it holds but the order in which clocks were learned of."""
    held = model.snapshot()
    return msgspec.msgpack.encode((held.updates, held.state, held.changes))


@tried(60)
@LEARNERS
@given(st.integers(0, 2**32), st.integers(1, 3), st.randoms(use_true_random=False))
def test_the_same_updates_are_the_same_model_in_whatever_order_partitions_are_read(
    kind: str, seed: int, partitions: int, random: Random
) -> None:
    """A restart by one partition's update reaches the others' rows, before or after their own updates come."""
    settings = settings_of(kind)
    made, updates = worked(settings, rows_of(seed, 4), partitions)
    follower = Model(settings, partitions, made.epoch)
    left = [list(reversed(each)) for each in updates]
    while any(left):
        p = random.choice([p for p in range(partitions) if left[p]])
        follower.follow(p, left[p].pop())
        if random.random() < 0.3:
            again = Model(settings, partitions, made.epoch)
            again.restore(msgspec.msgpack.decode(msgspec.msgpack.encode(follower.snapshot()), type=Snapshot))
            follower = again

    assert frozen(follower) == frozen(made)
    assert follower.digest() == made.digest()
    assert proved_changes(follower) == proved_changes(made)


@tried(60)
@LEARNERS
@given(st.integers(0, 2**32), st.integers(0, 30), st.integers(0, 30))
def test_a_step_that_restarted_can_be_taken_back_to_the_bit(
    kind: str, seed: int, first: int, second: int
) -> None:
    """And the one before it."""
    settings = settings_of(kind)
    made, ((*updates,),) = worked(settings, rows_of(seed, 4))
    model = Model(settings, 1, made.epoch)
    states = []
    for few in (updates[:first], updates[first : first + second], updates[first + second :]):
        states.append(frozen(model))
        model.begin()
        for update in few:
            model.follow(0, update)
    assert frozen(model) == frozen(made)

    model.rollback()
    assert frozen(model) == states[2]
    model.rollback()
    assert frozen(model) == states[1]


def test_theta_is_the_sum_of_the_updates_since_the_restart() -> None:
    """By hand, on one partition; and so is the certificate."""
    made, (updates,) = worked(settings_of(), rows_of(3, 4, 200))
    assert made.restarts >= 2
    since = [update for update in updates if update.restarts == made.restarts]
    theta: dict[str, float] = {}
    for update in since:
        for name, value in msgspec.json.decode(bytes(update.features)).items():
            theta[name] = theta.get(name, 0.0) + (value if update.label else -value)

    assert dict(made.learner.theta()) == theta
    length = sqrt(fsum(value * value for value in theta.values()))
    assert certificate(made) == (pytest.approx(length / len(since)) if since else None)


@tried(100)
@given(st.integers(0, 2**32), st.integers(1, 6), st.sampled_from(["perceptron", "averaged-perceptron"]))
def test_updates_are_at_most_what_the_changes_allow(seed: int, parts: int, kind: str) -> None:
    """U <= (K + 1)(floor((R/gamma)^2) + 1), for K changes of separable data, at zero delay and one worker."""
    rows = rows_of(seed, parts, 80)
    made, (updates,) = worked(settings_of(kind), rows)
    most = parts * (floor((made.radius / GAMMA) ** 2 * (1 + 1e-9)) + 1)

    assert made.restarts <= parts - 1
    assert len(updates) <= most


@tried(100)
@given(st.integers(0, 2**32), st.floats(0.0, 1.0))
def test_the_claim_holds_whatever_the_data(seed: int, noise: float) -> None:
    """Each life ends before it has more updates than its theorem allows: a proof ends it."""
    random = Random(seed)
    rows = [row._replace(label=row.label is not (random.random() < noise)) for row in rows_of(seed, 2, 100)]
    state = replay_rows(rows, settings_of(), 1)
    for bound in claims(state.model, [one.tallies.epoch for one in state.ledgers.values()]):
        assert bound.holds
        if state.model.restarts:
            assert bound.name == "Novikoff, restarted"
            each = floor((state.model.radius / GAMMA) ** 2 * (1 + 1e-9)) + 1
            assert bound.value == (state.model.restarts + 1) * each


def test_after_a_restart_of_several_partitions_nothing_is_claimed() -> None:
    """No theorem speaks of rows that others restarted."""
    for seed in range(20):
        state = replay_rows(rows_of(seed, 6, 300), settings_of("margin-perceptron"), 2)
        if state.model.restarts:
            break
    assert state.model.restarts
    assert claims(state.model, [one.tallies.epoch for one in state.ledgers.values()]) == ()
    assert why_none(state.model).startswith("After a restart")


def test_one_change_that_two_partitions_prove_restarts_once() -> None:
    """The second proof is of a stretch that began before the restart."""
    settings = settings_of("margin-perceptron", margin=9.0)
    rows = rows_of(5, 1, 600)
    turned = [row._replace(id=f"again-{row.id}", label=not row.label) for row in rows]
    made, _ = worked(settings, [*rows, *turned], 2)
    proved = proved_changes(made)

    assert proved is not None
    assert proved.by_partition == (1, 1)
    assert proved.restarts == 1


@pytest.mark.parametrize(
    ("learner", "told"),
    [
        ({"kind": "winnow", "gamma": 0.1}, "winnow does not restart"),
        ({"kind": "perceptron"}, "without a margin nothing is refuted"),
        ({"kind": "perceptron", "gamma": 0.1, "window": 9}, "a window forgets by itself"),
    ],
)
def test_what_does_not_go_together_is_refused(learner: dict[str, Any], told: str) -> None:
    """With what to set instead."""
    with pytest.raises(ConfigurationError, match=told):
        load_arguments(None, {"learner": {**learner, "on_refuted": "restart"}})
    declared = {"kind": "perceptron", "gamma": 0.1, "on_refuted": "restart"}
    with pytest.raises(ConfigurationError, match="one tenant's change"):
        load_arguments(None, {"learner": declared, "features": {"cross": "/tenant"}})
    with pytest.raises(ConfigurationError, match="costs weigh them"):
        load_arguments(
            None,
            {"learner": {**declared, "cost_sensitive": True}, "labels": {"costs": {"false_positive": 2}}},
        )
    with pytest.raises(ConfigurationError, match="two classes"):
        load_arguments(
            None,
            {
                "learner": {"kind": "perceptron", "gamma": 0.1, "on_refuted": "restart"},
                "labels": {"classes": ["a", "b", "c"]},
            },
        )


def test_an_update_that_saw_no_restart_is_written_as_before() -> None:
    """The field is absent."""
    from mistakebound.core.messages.schema import encode

    _, (updates,) = worked(settings_of(), rows_of(3, 4, 200))

    assert b"restarts" not in encode(updates[0])
    assert b'"restarts":2' in encode(updates[-1])
