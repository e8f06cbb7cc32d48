"""The certificate's window: the newest updates of each partition, so that old ones do not hide a drift."""

from math import sqrt
from random import Random

import msgspec
import pytest

from mistakebound.core.messages.features import Features
from mistakebound.core.model.model import WINDOW, Model
from mistakebound.core.model.model_snapshot import Snapshot
from mistakebound.core.replay.replay import Row, replay_rows
from mistakebound.core.theorems.claims import certificate, window_certificate
from mistakebound.settings import Settings

PARTITIONS = 3


def made(kind: str = "perceptron") -> Model:
    return Model(Settings.model_validate({"learner": {"kind": kind}}), PARTITIONS)


def updates(seed: int, count: int) -> list[tuple[int, Features, bool]]:
    """(partition, values, label) of random updates."""
    random = Random(seed)
    return [
        (
            random.randrange(PARTITIONS),
            (("a", random.gauss(0, 1)), ("b", random.gauss(0, 1))),
            random.random() < 0.5,
        )
        for _ in range(count)
    ]


def learn(model: Model, made: list[tuple[int, Features, bool]]) -> Model:
    for partition, x, label in made:
        model.labelled(partition)
        model.learn(partition, x, label, not label)
    return model


def by_hand(all_updates: list[tuple[int, Features, bool]]) -> float:
    """||sum of y*x|| / U over the last updates of each partition."""
    sums = {"a": 0.0, "b": 0.0}
    kept = 0
    for p in range(PARTITIONS):
        for _, x, label in [each for each in all_updates if each[0] == p][-WINDOW:]:
            kept += 1
            for name, value in x:
                sums[name] += value if label else -value
    return sqrt(sums["a"] ** 2 + sums["b"] ** 2) / kept


@pytest.mark.parametrize("kind", ["perceptron", "averaged-perceptron", "margin-perceptron"])
@pytest.mark.parametrize("count", [1, 50, 1_000])
def test_the_window_is_the_newest_updates_of_each_partition(kind: str, count: int) -> None:
    """Folded from zero, as by hand; with few updates it is the whole life."""
    settings = {"learner": {"kind": kind, "margin": 1.0}}
    model = learn(Model(Settings.model_validate(settings), PARTITIONS), updates(1, count))

    assert window_certificate(model) == pytest.approx(by_hand(updates(1, count)), rel=1e-12)
    if count <= WINDOW:
        assert window_certificate(model) == pytest.approx(certificate(model), rel=1e-12)


def test_a_drift_shows_in_the_window_before_it_shows_in_the_whole_life() -> None:
    """Long separable by 1, then by nothing: the window's bound falls below the margin, the life's does not."""
    model = made()
    learn(model, [(0, (("a", 1.0),), True)] * 5_000)
    learn(model, [(0, (("a", 1.0),), number % 2 == 0) for number in range(WINDOW)])

    window, life = window_certificate(model), certificate(model)
    assert window is not None
    assert life is not None
    assert window < 0.1
    assert life > 0.9


def test_the_window_comes_back_from_a_checkpoint_and_from_a_rollback() -> None:
    """To the bit: a restart does not change what is shown."""
    model = learn(made(), updates(2, 700))
    content = msgspec.msgpack.encode(model.snapshot())
    again = made()
    again.restore(msgspec.msgpack.decode(content, type=Snapshot))
    before = window_certificate(model)
    assert window_certificate(again) == before

    model.begin()
    learn(model, updates(3, 500))
    assert window_certificate(model) != before
    model.rollback()
    assert window_certificate(model) == before


def test_the_window_is_never_below_a_true_margin() -> None:
    """Whatever the order: each update adds at least the margin along the separator."""
    random = Random(4)
    u = (0.6, 0.8)
    for _ in range(50):
        model = made()
        for _ in range(300):
            y = random.choice((1.0, -1.0))
            along, across = y * (0.3 + random.random()), random.gauss(0, 2)
            x = (("a", along * u[0] - across * u[1]), ("b", along * u[1] + across * u[0]))
            model.learn(random.randrange(PARTITIONS), x, y > 0, y < 0)
        found = window_certificate(model)
        assert found is not None
        assert found >= 0.3 * (1 - 1e-9)


@pytest.mark.parametrize("kind", ["kernel-perceptron", "littlestone-winnow", "elimination"])
def test_learners_without_such_a_statement_have_no_window(kind: str) -> None:
    """They answer None, not a meaningless number."""
    chosen = Settings.model_validate(
        {"learner": {"kind": kind, "threshold": 1.0}, "features": {"bias": False}}
    )
    rows = [Row(str(number), {"a": 1, "b": number % 2}, number % 2 == 0) for number in range(20)]
    state = replay_rows(rows, chosen, 1)
    assert sum(state.model.updates) > 0
    assert window_certificate(state.model) is None
