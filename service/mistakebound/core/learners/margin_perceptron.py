"""The perceptron with a margin (lecture 6, "Marginal perceptron"; Krauth & Mezard 1987).

It updates whenever y * w.x < margin, also when the sign was right, so that what it learns separates by
more than nothing. With unit u of margin gamma: at most (R^2 + 2*margin/r) / gamma^2 updates.
"""

from mistakebound.core.linear.linear import Linear
from mistakebound.core.linear.window import window_of
from mistakebound.settings import LearnerSettings


def margin_perceptron(settings: LearnerSettings, partitions: int) -> Linear:
    """`settings`: margin >= 0 (in units of the score), learning_rate r > 0."""
    margin = settings.margin

    def must(score: float, positive: bool) -> bool:
        return (score if positive else -score) < margin

    return Linear(
        partitions,
        settings.tie,
        scale=settings.learning_rate,
        must=must,
        window=window_of(settings, partitions),
    )
