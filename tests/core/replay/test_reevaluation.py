"""Predictions made again while labels are awaited: the same as by a few lines that hold every model there was."""

import itertools
from collections import deque
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import datasets

from mistakebound.core.replay.reevaluation import reevaluate
from mistakebound.core.replay.replay import Row, replay_rows, report_of
from mistakebound.core.reporting.report import Reevaluation
from mistakebound.settings import Settings

PERCEPTRON = Settings.model_validate({"learner": {"kind": "perceptron"}})


@cache
def pages() -> tuple[Row, ...]:
    """The UCI Phishing pages, as the demo has them."""
    return tuple(Row(str(n), dict(x), bool(y)) for n, (x, y) in enumerate(datasets.Phishing()))


def oracle(rows: Sequence[Row], delay: int, bins: int) -> Reevaluation:
    """A perceptron in a dict. The model as it was after each example is kept, so that the past can be asked."""
    weights: dict[str, float] = {}
    models: list[dict[str, float]] = []
    at_label: list[dict[str, float]] = [{} for _ in rows]
    outstanding: deque[int] = deque()

    def score(model: dict[str, float], row: Row) -> float:
        return sum(model.get(name, 0.0) * value for name, value in [*row.features.items(), ("BIAS", 1.0)])

    def learn() -> None:
        number = outstanding.popleft()
        row, at_label[number] = rows[number], dict(weights)
        sign = 1.0 if row.label else -1.0
        if sign * score(weights, row) <= 0:
            for name, value in [*row.features.items(), ("BIAS", 1.0)]:
                weights[name] = weights.get(name, 0.0) + sign * value

    for number in range(len(rows)):
        models.append(dict(weights))
        outstanding.append(number)
        if len(outstanding) > delay:
            learn()
    while outstanding:
        learn()
    mistakes, changes, mended, spoiled = [0] * (bins + 1), 0, 0, 0
    for number, row in enumerate(rows):
        wait = min(delay, len(rows) - 1 - number)
        asked = [models[number + wait * place // bins] for place in range(bins)] + [at_label[number]]
        right = [(score(model, row) > 0) == row.label for model in asked]
        for place, each in enumerate(right):
            mistakes[place] += not each
        changes += sum(one != other for one, other in itertools.pairwise(right))
        mended += not right[0] and right[-1]
        spoiled += right[0] and not right[-1]
    count = len(rows)
    return Reevaluation(
        count, tuple(mistakes), tuple(each / count for each in mistakes), changes / count, mended, spoiled
    )


@pytest.mark.parametrize(("delay", "bins"), [(100, 10), (0, 10), (7, 3), (2_000, 1)])
def test_the_phishing_pages_come_out_as_by_a_perceptron_in_a_dict(delay: int, bins: int) -> None:
    """Initial, periodic, final, and the volatility."""
    assert reevaluate(pages(), PERCEPTRON, 1, delay, bins) == oracle(pages(), delay, bins)


@pytest.mark.parametrize("kind", ["averaged-perceptron", "winnow", "perceptron"])
@pytest.mark.parametrize("partitions", [1, 3])
def test_the_first_and_the_last_are_those_of_the_replay(kind: str, partitions: int) -> None:
    """The published predictions, and what the model said at each label."""
    settings = Settings.model_validate({"learner": {"kind": kind}})
    found = reevaluate(pages()[:400], settings, partitions, 30, 5)
    report = report_of(replay_rows(pages()[:400], settings, partitions, 30))
    assert (found.mistakes[0], found.mistakes[-1]) == (report.mistakes, report.confusion.mistakes_at_label)
    assert found.judged == report.labelled
    assert found.mended - found.spoiled == report.confusion.mistakes_by_delay


rows = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=25)


@given(rows, st.integers(0, 30), st.integers(1, 6))
def test_any_rows_come_out_so(drawn: list[tuple[int, bool]], delay: int, bins: int) -> None:
    """Fewer rows than the delay, no wait at all, more bins than examples waited for."""
    made = [Row(str(n), {"x": float(x)}, label) for n, (x, label) in enumerate(drawn)]
    assert reevaluate(made, PERCEPTRON, 1, delay, bins) == oracle(made, delay, bins)


def test_rows_that_cannot_be_used_are_left_out() -> None:
    """As in the replay."""
    wrong: list[Any] = [Row("a", {"x": None}, True), Row("b", {"x": 1}, "maybe"), Row("c", {"x": 1}, True)]
    found = reevaluate([*wrong, wrong[-1]], PERCEPTRON, 1, 1, 2)
    assert found == Reevaluation(1, (1, 1, 1), (1.0, 1.0, 1.0), 0.0, 0, 0)


def test_of_nothing_there_is_no_volatility() -> None:
    """Nor a rate."""
    assert reevaluate([], PERCEPTRON, 1, 5, 2) == Reevaluation(0, (0, 0, 0), (None, None, None), None, 0, 0)
