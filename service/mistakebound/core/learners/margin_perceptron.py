"""The perceptron with a margin (lecture 6, "Marginal perceptron"; Krauth & Mezard 1987).

It updates whenever y * w.x < margin, also when the sign was right, so that what it learns separates by
more than nothing. With unit u of margin gamma: at most (R^2 + 2*margin/r) / gamma^2 updates.
"""

from collections.abc import Iterator

from mistakebound.core.learners.claim import (
    Claim,
    Run,
    euclidean_norm,
    perceptrons,
    separable,
    undeclared_margin,
)
from mistakebound.core.learners.kind import Kind, Unmet
from mistakebound.core.linear.linear import Linear
from mistakebound.core.messages.features import Features
from mistakebound.settings import LearnerSettings


def margin_perceptron(settings: LearnerSettings, partitions: int) -> Linear:
    """`settings`: margin >= 0 (in units of the score), learning_rate r > 0."""
    margin = settings.margin

    def amount(score: float, x: Features, positive: bool) -> float:
        return 1.0 if (score if positive else -score) < margin else 0.0

    return Linear(settings, partitions, scale=settings.learning_rate, amount=amount)


def _requires(settings: LearnerSettings) -> Iterator[Unmet]:
    if settings.margin == 0.0:
        yield Unmet(
            "learner.margin",
            "at 0 the margin-perceptron never updates: its first score is 0, which is not below",
            "Set it above 0, or take the perceptron",
        )


def _claim(run: Run) -> Claim | None:
    settings = run.settings
    if settings.delay_policy == "issued":  # updates at mistakes only, whatever the margin
        return separable(run)
    growth = run.radius * run.radius + 2 * settings.margin / settings.learning_rate
    return perceptrons("margin", run, run.radius, growth)


KIND = Kind(
    name="margin-perceptron",
    order=40,
    make=margin_perceptron,
    source="Krauth & Mezard 1987; lecture 6",
    bound="(R^2 + 2 margin/r)/gamma^2",
    parameters=("margin", "learning_rate", "tie", "gamma", "window", "on_refuted"),
    requires=_requires,
    claim=_claim,
    undeclared=undeclared_margin,
    norm=euclidean_norm,
    no_probability=None,
    size=Linear.size,
    sums=True,
)
