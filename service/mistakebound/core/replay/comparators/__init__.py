"""Other rules on the same labelled examples, in the order in which they were applied (lecture 6, "other metrics").

Each online rule predicts an example before it sees its label, at zero delay. The best fixed separator has seen
all labels beforehand: what the learner lost more than it is the regret. Two classes only.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from mistakebound.core.messages.features import Features
from mistakebound.core.replay.comparators.losses import Losses, losses
from mistakebound.core.replay.comparators.rules import (
    LEARNING_RATE,
    last_label,
    logistic_regression,
    majority,
)
from mistakebound.core.replay.comparators.separator import NoSeparator, Separator, best_separator


class Judged(NamedTuple):
    """One labelled example."""

    x: Features
    positive: bool
    """The true class."""
    score: float
    """Of the published prediction."""
    predicted: bool
    """The published prediction."""


@dataclass(frozen=True, slots=True)
class Regret:
    """The learner's loss less the best separator's; below 0 where the learner did better."""

    mistakes: int
    """Of the separator with the least hinge loss; one with fewer mistakes may exist where it makes any."""
    hinge: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Cumulative losses, rule by rule."""

    learner: Losses
    """By the published predictions and their scores, as they are: an average's or a vote's grow."""
    majority: Losses
    last_label: Losses
    logistic_regression: Losses
    learning_rate: float
    """Of the logistic regression."""
    best_separator: Separator | None
    separator_missing: str | None
    """Why there is no best separator."""
    regret: Regret | None


def compare(judged: Iterable[Judged]) -> Comparison:
    """All rules on `judged`, in its order."""
    seen = list(judged)
    labels = [one.positive for one in seen]
    learner = losses(labels, [one.score for one in seen], [one.predicted for one in seen])
    examples = [(one.x, one.positive) for one in seen]
    best, missing, regret = None, None, None
    try:
        best = best_separator(examples)
        regret = Regret(learner.mistakes - best.losses.mistakes, learner.hinge - best.losses.hinge)
    except NoSeparator as reason:
        missing = str(reason)
    return Comparison(
        learner,
        majority=losses(labels, majority(labels)),
        last_label=losses(labels, last_label(labels)),
        logistic_regression=losses(labels, logistic_regression(examples)),
        learning_rate=LEARNING_RATE,
        best_separator=best,
        separator_missing=missing,
        regret=regret,
    )
