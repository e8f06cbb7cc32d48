"""Mistakes of Littlestone's Winnow and of the perceptron against the number of features, few of them relevant.

The concept is a disjunction of 5 of n Boolean features. Half of 2,000 examples are positive, with exactly one
relevant feature; the irrelevant ones are 1 by a fair coin. Labels come at once. Seeded.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from math import log10

import numpy as np

from mistakebound.core.bounds import littlestone_divide
from mistakebound.core.learners import Learner, make
from mistakebound.core.messages.features import Features
from mistakebound.settings import Settings

SIZES = (10, 30, 100, 300, 1_000, 3_000, 10_000)
ACTIVE = (5, 20, 100, 5_000)
RELEVANT = 5
EXAMPLES = 2_000
SEED = 1
CURVES = {
    "perceptron": {"kind": "perceptron"},
    "littlestone-winnow, demotion zero": {"kind": "littlestone-winnow", "demotion": "zero"},
    "littlestone-winnow, demotion divide": {"kind": "littlestone-winnow", "demotion": "divide"},
}
BOUND = "its bound, demotion divide"
COLOURS = ("#b03a2e", "#1f618d", "#117864", "#909497")

Mistakes = Mapping[str, Sequence[int]]


def stream(n: int, active: int | None = None) -> Iterator[tuple[Features, bool]]:
    """The examples, as their features that are 1; the relevant ones are the first five.

    `active`: so many are 1 in each example, instead of the fair coins.
    """
    generator = np.random.default_rng(SEED)
    names = [str(place) for place in range(n)]
    for _ in range(EXAMPLES):
        positive = bool(generator.random() < 0.5)
        relevant = int(generator.integers(0, RELEVANT))
        if active is None:
            others = np.flatnonzero(generator.random(n - RELEVANT) < 0.5)
        else:
            others = np.sort(generator.choice(n - RELEVANT, active - positive, replace=False))
        ones = [relevant] if positive else []
        ones += [RELEVANT + int(place) for place in others]
        yield tuple((names[place], 1.0) for place in ones), positive


def learner(curve: str, n: int) -> Learner:
    """alpha 2, threshold n/2, no BIAS for Winnow; the perceptron has its BIAS."""
    boolean = {"threshold": n / 2, "alpha": 2} if curve != "perceptron" else {}
    return make(Settings.model_validate({"learner": {**CURVES[curve], **boolean}}), 1)


def mistakes(curve: str, n: int, active: int | None = None) -> int:
    """Of 2,000 predictions."""
    one, count = learner(curve, n), 0
    for number, (features, positive) in enumerate(stream(n, active), 1):
        x = (*features, ("BIAS", 1.0)) if curve == "perceptron" else features
        count += one.predict(one.score(x, number - 1)) is not positive
        must, predicted = one.decide(x, positive)
        if must:
            one.fold(0, x, positive, number, predicted)
    return count


def experiment(sizes: Sequence[int]) -> Mistakes:
    """Mistakes of each curve at each n."""
    return {curve: [mistakes(curve, n) for n in sizes] for curve in CURVES}


def by_active() -> Mistakes:
    """Mistakes of each curve at n = 10,000 by the number of features that are 1 in an example."""
    return {curve: [mistakes(curve, SIZES[-1], active) for active in ACTIVE] for curve in CURVES}


def _table(head: str, places: Sequence[int], found: Mistakes) -> str:
    lines = [f"| {head} | {' | '.join(f'{place:,}' for place in places)} |", "|---" * (len(places) + 1) + "|"]
    lines += [f"| {curve} | {' | '.join(map(str, counts))} |" for curve, counts in found.items()]
    return "\n".join(lines) + "\n"


def table(found: Mistakes) -> str:
    """As Markdown."""
    return _table("n", SIZES, found)


def table_of_active(found: Mistakes) -> str:
    """As Markdown."""
    return _table("features that are 1, n = 10,000", ACTIVE, found)


# --- the drawing ------------------------------------------------------------------------------------

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 780, 380, 60, 40, 250, 50
MOST = 1_000


def _x(n: float) -> float:
    low, high = log10(SIZES[0]), log10(SIZES[-1])
    return LEFT + (log10(n) - low) / (high - low) * (WIDTH - LEFT - RIGHT)


def _y(count: float) -> float:
    return HEIGHT - BOTTOM - count / MOST * (HEIGHT - TOP - BOTTOM)


def _text(x: float, y: float, words: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{words}</text>'


def svg(found: Mistakes) -> str:
    """The plot; its figures are in `desc`."""
    figures = json.dumps({"n": SIZES, **found})
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12" fill="#333">',
        "<title>Mistakes in 2,000 examples against the number of features, 5 of them relevant</title>",
        f"<desc>{figures}</desc>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(
            LEFT, TOP - 16, "Mistakes in 2,000 examples; a disjunction of 5 of n features", 'font-size="14"'
        ),
    ]
    for count in range(0, MOST + 1, 200):
        parts.append(
            f'<path d="M{LEFT} {_y(count):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>'
            + _text(LEFT - 8, _y(count) + 4, str(count), 'text-anchor="end"')
        )
    for n in SIZES:
        parts.append(_text(_x(n), HEIGHT - BOTTOM + 18, f"{n:,}", 'text-anchor="middle"'))
    parts.append(_text(_x(316), HEIGHT - 10, "n, logarithmic", 'text-anchor="middle"'))
    bound = [littlestone_divide(RELEVANT, n, 2, n / 2) for n in SIZES]
    for (name, counts), colour in zip([*found.items(), (BOUND, bound)], COLOURS, strict=True):
        points = " ".join(f"{_x(n):.1f},{_y(count):.1f}" for n, count in zip(SIZES, counts, strict=True))
        dashes = ' stroke-dasharray="5 4"' if name == BOUND else ""
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>')
        parts.append(
            _text(WIDTH - RIGHT + 8, _y(counts[-1]) + 4, f"{name}: {counts[-1]:.0f}", f'fill="{colour}"')
        )
    return "\n".join([*parts, "</svg>"]) + "\n"
