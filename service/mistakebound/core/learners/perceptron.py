"""The perceptron (Rosenblatt 1958; lecture 6, "The Perceptron Algorithm").

Predict the sign of w.x, with w = r * theta. On a mistake, y * w.x <= 0: w <- w + r*y*x.
With ||x|| <= R and a unit vector u that separates by a margin gamma, it makes at most (R/gamma)^2
mistakes (Novikoff 1962). The learning rate r scales every weight and changes no decision.
"""

from mistakebound.core.learners.claim import euclidean_norm, separable, undeclared_margin
from mistakebound.core.learners.kind import Kind, of_learner
from mistakebound.core.learners.multiclass_perceptron import many_classes
from mistakebound.core.linear.linear import Linear
from mistakebound.core.linear.window import window_of
from mistakebound.settings import LearnerSettings


def perceptron(settings: LearnerSettings, partitions: int) -> Linear:
    """`settings.learning_rate` is r > 0."""
    return Linear(
        partitions, settings.tie, scale=settings.learning_rate, window=window_of(settings, partitions)
    )


KIND = Kind(
    name="perceptron",
    order=10,
    make=of_learner(perceptron),
    many=many_classes("perceptron", averaged=False),
    source="Rosenblatt 1958; lecture 6",
    bound="(R/gamma)^2",
    parameters=("learning_rate", "tie", "gamma", "window"),
    claim=separable,
    undeclared=undeclared_margin,
    norm=euclidean_norm,
    sums=True,
)
