"""The one-sided perceptron (lecture 6: all examples folded to one side, z = y*x, ||z|| = 1).

It asks whether w.z <= 0 and then adds z; that is the perceptron's update with the tie `mistake` on unit
vectors, BIAS counted in the length. With a unit w* of w*.z >= g for all z: at most 1/g^2 updates.
"""

from mistakebound.core.learners.claim import euclidean_norm, perceptrons, undeclared_margin
from mistakebound.core.learners.kind import Kind
from mistakebound.core.linear.linear import Linear
from mistakebound.settings import LearnerSettings


def one_sided_perceptron(settings: LearnerSettings, partitions: int) -> Linear:
    """No parameters; features must have unit length."""
    return Linear(settings, partitions, tie="mistake")


KIND = Kind(
    name="one-sided-perceptron",
    order=60,
    make=one_sided_perceptron,
    source="COMS 172, lecture 11",
    bound="1/gamma^2",
    parameters=("gamma", "window", "on_refuted"),
    unit=True,
    claim=lambda run: perceptrons("one-sided", run, 1.0),
    undeclared=undeclared_margin,
    norm=euclidean_norm,
    no_probability=None,
    size=Linear.size,
    sums=True,
)
