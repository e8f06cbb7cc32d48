"""The plot in deploy/learners.md of Winnow against the perceptron: its figures are what the learners do."""

import json
import re

import pytest

from tests.plots import winnow
from tests.support.project import ROOT

PLOT = (ROOT / "deploy" / "winnow.svg").read_text()
FIGURES = json.loads(re.findall(r"<desc>(.*)</desc>", PLOT)[0])


@pytest.mark.long
@pytest.mark.parametrize("curve", winnow.CURVES)
def test_the_plots_figures_come_out_again(curve: str) -> None:
    """Up to n = 300 here; the command makes the rest."""
    sizes = [n for n in FIGURES["n"] if n <= 300]

    assert [winnow.mistakes(curve, n) for n in sizes] == FIGURES[curve][: len(sizes)]


def test_the_plot_is_drawn_from_its_figures() -> None:
    """By `python -m tests.plots winnow`, and not edited since."""
    assert tuple(FIGURES.pop("n")) == winnow.SIZES
    assert winnow.svg(FIGURES) == PLOT


@pytest.mark.long
@pytest.mark.parametrize(
    ("curve", "least", "most"), [("littlestone-winnow, demotion divide", 0, 160), ("perceptron", 900, 2_000)]
)
def test_with_many_irrelevant_features_winnow_errs_less(curve: str, least: int, most: int) -> None:
    """n = 10,000, 5 relevant, the others by a fair coin: under 160 mistakes against over 900."""
    assert least < winnow.mistakes(curve, 10_000) < most


@pytest.mark.long
def test_with_five_active_features_the_perceptron_errs_less() -> None:
    """Its bound knows the length of the examples, not n; Winnow's knows n."""
    perceptron, zero, divide = (winnow.mistakes(curve, 10_000, 5) for curve in winnow.CURVES)

    assert perceptron < min(zero, divide)
