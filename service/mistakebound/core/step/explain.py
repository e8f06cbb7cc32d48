"""Why a prediction was wrong: what each feature adds to the score, where the score is a sum over features.

Such a score is taken apart by asking for the score of each feature alone. No decision depends on it; it is for
people, and its cost is limited.
"""

from dataclasses import dataclass
from itertools import islice

from mistakebound.core.faults import BadRecord
from mistakebound.core.ledger.entries import Waiting
from mistakebound.core.messages.features import Features
from mistakebound.core.model.model import Model
from mistakebound.settings import LabelValue

SHOWN = 8
"""Terms kept for each mistake."""
MOST_TERMS = 1_000
"""Scores of single features that one step may take."""
MOST_EXPLAINED = 10
"""Mistakes that one partition step explains."""


@dataclass(frozen=True, slots=True)
class Term:
    """One feature of an example."""

    name: str
    value: float
    contribution: float | None
    """What it adds to the predicted class's score, less what it adds to the true class's."""


@dataclass(frozen=True, slots=True)
class ExplainedMistake:
    """A published prediction that differed from its label, as the model saw it when the label came.

    The model has not yet learned from the label; an older one may have made the prediction.
    """

    id: str
    partition: int
    predicted: LabelValue | None
    label: LabelValue
    at: int
    """Stream time in ms."""
    lead: float | None
    """How far the predicted class was ahead of the true one; below 0 where the model knew better by then."""
    offset: float | None
    """The part of `lead` that comes from no feature: a threshold. Like the contributions it is None where the score is
    not a sum over features, or would have cost too much to take apart."""
    features: int
    terms: tuple[Term, ...]
    """The features that contribute most; where contributions are not known, the first features."""


class Explaining:
    """The first few mistakes of one partition step, in `explained`, as far as `allowance` scores go."""

    def __init__(self, allowance: int) -> None:
        self.explained: list[ExplainedMistake] = []
        self._left = allowance

    def mistake(
        self, model: Model, partition: int, entry: Waiting, label: LabelValue, stream_time: int
    ) -> None:
        """Explain a mistake, before it is learned from."""
        if self._left <= 0 or len(self.explained) >= MOST_EXPLAINED:
            return
        explained = explain(model, partition, entry, label, stream_time, self._left)
        if explained is None:
            self._left = 0
        else:
            mistake, cost = explained
            self.explained.append(mistake)
            self._left -= cost


def explain(
    model: Model, partition: int, entry: Waiting, label: LabelValue, at: int, left: int
) -> tuple[ExplainedMistake, int] | None:
    """The mistake as the present model sees it, and how many scores that took.

    None where it would take more scores than are `left`, though no more than a whole step may take.
    """
    try:
        x = model.features(entry.features, entry.tenant)
    except BadRecord:  # predicted in an older epoch, whose settings took what these do not
        x = ()
    cost = len(x) * max(1, len(model.classes) - 1)
    declared = entry.predicted in model.classes and label in model.classes
    takes_apart = cost <= MOST_TERMS and model.kind.sums and declared
    if takes_apart and cost > left:
        return None
    lead = _Lead(model, entry.predicted, label) if takes_apart else None
    offset = None if lead is None else lead.of(())
    terms = [Term(name, value, None) for name, value in islice(x, SHOWN)]
    if lead is not None and offset is not None:
        parts = [Term(name, value, lead.of(((name, value),)) - offset) for name, value in x]
        terms = sorted(
            (term for term in parts if term.contribution), key=lambda term: -abs(term.contribution or 0.0)
        )
    ahead = None if lead is None else lead.of(x)
    mistake = ExplainedMistake(
        entry.id, partition, entry.predicted, label, at, ahead, offset, len(x), tuple(terms[:SHOWN])
    )
    return mistake, 1 if lead is None else max(1, cost)


class _Lead:
    """How far the predicted class is ahead of the true one, for given features."""

    def __init__(self, model: Model, predicted: LabelValue | None, label: LabelValue) -> None:
        self._model = model
        self._predicted = model.classes.index(predicted)
        self._label = model.classes.index(label)

    def of(self, x: Features) -> float:
        score = self._model.score(x)
        if isinstance(score, list):
            return score[self._predicted] - score[self._label]
        return 0.0 - score if self._predicted else score
