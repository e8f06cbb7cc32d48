"""The quantities of the perceptron's proof, checked after every update, given the separator that it speaks of.

For a separator u of length 1 and margin gamma, after t updates whose models lacked S of those before them in
all: u.theta >= t gamma, and ||theta||^2 <= R^2 (t + 2 S). Both together are the theorem.
"""

from collections.abc import Mapping

SLACK = 1e-9


def dot(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Over the names of the first."""
    return sum(value * other.get(name, 0.0) for name, value in one.items())


class Proof:
    """`separator` of length 1, its margin on every example, and the largest length of one."""

    def __init__(self, separator: Mapping[str, float], margin: float, radius: float) -> None:
        self.separator, self.margin, self.radius = separator, margin, radius

    def check(self, theta: Mapping[str, float], updates: int, missing: int = 0) -> None:
        """Raises AssertionError where the proof does not go through."""
        progress, square = dot(self.separator, theta), dot(theta, theta)
        assert progress >= updates * self.margin * (1 - SLACK), f"u.theta is {progress} after {updates}"
        most = self.radius**2 * (updates + 2 * missing)
        assert square <= most * (1 + SLACK), f"the squared length {square} is above {most} after {updates}"
