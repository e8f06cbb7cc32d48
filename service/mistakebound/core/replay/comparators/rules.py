"""Rules to compare a learner with. Each predicts an example before its label, at zero delay."""

from collections.abc import Sequence
from math import exp

from mistakebound.core.messages.features import Features

LEARNING_RATE = 0.1
"""Of the logistic regression; BIAS learns at it too."""


def majority(labels: Sequence[bool]) -> list[float]:
    """The class more frequent so far, +1 or -1; of equals the negative one."""
    scores, ahead = [], 0
    for positive in labels:
        scores.append(1.0 if ahead > 0 else -1.0)
        ahead += 1 if positive else -1
    return scores


def last_label(labels: Sequence[bool]) -> list[float]:
    """The class of the example before, +1 or -1; negative at first."""
    return [-1.0, *(1.0 if positive else -1.0 for positive in labels[:-1])][: len(labels)]


def logistic_regression(
    examples: Sequence[tuple[Features, bool]], rate: float = LEARNING_RATE
) -> list[float]:
    """Scores w.x of logistic regression by stochastic gradient descent, the perceptron's sibling (CSE 446).

    After each label, with y of 0 or 1: w <- w + rate * (y - P(1 | x, w)) * x. The perceptron has the
    predicted class in the place of the probability.
    """
    weights: dict[str, float] = {}
    scores = []
    for x, positive in examples:
        score = 0.0
        for name, value in x:
            score += weights.get(name, 0.0) * value
        scores.append(score)
        step = rate * ((1.0 if positive else 0.0) - sigmoid(score))
        for name, value in x:
            weights[name] = weights.get(name, 0.0) + step * value
    return scores


def sigmoid(score: float) -> float:
    """1/(1 + exp(-score)), without overflow."""
    if score >= 0.0:
        return 1.0 / (1.0 + exp(-score))
    return exp(score) / (1.0 + exp(score))
