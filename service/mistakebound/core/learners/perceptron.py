"""The perceptron (Rosenblatt 1958; lecture 6, "The Perceptron Algorithm").

Predict the sign of w.x, with w = r * theta. On a mistake, y * w.x <= 0: w <- w + r*y*x.
With ||x|| <= R and a unit vector u that separates by a margin gamma, it makes at most (R/gamma)^2
mistakes (Novikoff 1962). The learning rate r scales every weight and changes no decision.
"""

from functools import partial

from mistakebound.core import bounds
from mistakebound.core.learners.claim import Claim, euclidean_norm, separable, undeclared_margin
from mistakebound.core.learners.kind import Kind
from mistakebound.core.learners.multiclass_perceptron import many_classes
from mistakebound.core.linear.linear import Linear
from mistakebound.settings import LearnerSettings


def perceptron(settings: LearnerSettings, partitions: int) -> Linear:
    """`settings.learning_rate` is r > 0."""
    return Linear(settings, partitions, scale=settings.learning_rate)


def _asking(settings: LearnerSettings, rate: float, radius: float) -> Claim | None:
    """With the learning rate r scores are r times those of the theorem, and so b is b/r."""
    if settings.gamma is None:
        return None
    b = rate / settings.learning_rate
    most = bounds.asked(b, radius, settings.gamma)
    return Claim(
        "Cesa-Bianchi", most, f"b = {b:.4g}, R = {radius:.4g}, gamma = {settings.gamma:.4g}", "mistakes"
    )


KIND = Kind(
    name="perceptron",
    order=10,
    make=perceptron,
    many=partial(many_classes, "perceptron", False),
    source="Rosenblatt 1958; lecture 6",
    bound="(R/gamma)^2",
    parameters=("learning_rate", "tie", "gamma", "window", "on_refuted", "cost_sensitive"),
    claim=separable,
    asking=_asking,
    undeclared=undeclared_margin,
    norm=euclidean_norm,
    no_probability=None,
    size=Linear.size,
    sums=True,
)
