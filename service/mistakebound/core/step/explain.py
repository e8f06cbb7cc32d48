"""Why a prediction was wrong: what each feature adds to the score, where the score is a sum over them.

A score that is a sum is taken apart by asking for the score of each feature alone. Nothing is decided by
this; it is for people, and bounded in what it may cost.
"""

from itertools import islice

from mistakebound.core.faults import BadRecord
from mistakebound.core.ledger.entries import Waiting
from mistakebound.core.messages.features import Features
from mistakebound.core.model.model import Model
from mistakebound.core.step.explained import ExplainedMistake, Term
from mistakebound.settings import LabelValue

SHOWN = 8
"""Terms kept of a mistake."""
MOST_TERMS = 1_000
"""Scores of single features that one step may cost."""
MOST_EXPLAINED = 10
"""Mistakes that one partition step explains."""


class Explaining:
    """One partition step's mistakes, in `explained`, oldest first: the first few, as far as `allowance` scores go."""

    def __init__(self, allowance: int) -> None:
        self.explained: list[ExplainedMistake] = []
        self._left = allowance

    def mistake(
        self, model: Model, partition: int, entry: Waiting, label: LabelValue, stream_time: int
    ) -> None:
        """A label was found to differ from the prediction, and is not learned from yet."""
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
    """The mistake as the present model sees it, and how many scores were taken. None: more than are `left`,
    and not more than a whole step is allowed."""
    try:
        x = model.features(entry.features)
    except BadRecord:  # predicted in an older epoch, whose settings took what these do not
        x = ()
    cost = len(x) * max(1, len(model.classes) - 1)
    takes_apart = cost <= MOST_TERMS and _is_sum(model, entry, label)
    if takes_apart and cost > left:
        return None
    lead = _Lead(model, entry.predicted, label) if takes_apart else None
    offset = None if lead is None else lead.of(())
    terms = [Term(name, value, None) for name, value in islice(x, SHOWN)]
    if lead is not None and offset is not None:
        parts = [Term(name, value, lead.of(((name, value),)) - offset) for name, value in x]
        terms = sorted((term for term in parts if term.contribution), key=_size)
    mistake = ExplainedMistake(
        entry.id,
        partition,
        entry.predicted,
        label,
        at,
        None if lead is None else lead.of(x),
        offset,
        len(x),
        tuple(terms[:SHOWN]),
    )
    return mistake, 1 if lead is None else max(1, cost)


def _size(term: Term) -> float:
    return -abs(term.contribution or 0.0)


def _is_sum(model: Model, entry: Waiting, label: LabelValue) -> bool:
    """Whether the score is a sum over features, of classes that are declared."""
    return model.kind.sums and entry.predicted in model.classes and label in model.classes


class _Lead:
    """How far the predicted class is ahead of the true one, on any features."""

    def __init__(self, model: Model, predicted: LabelValue | None, label: LabelValue) -> None:
        self._model = model
        self._predicted = model.classes.index(predicted)
        self._label = model.classes.index(label)

    def of(self, x: Features) -> float:
        score = self._model.score(x)
        if isinstance(score, list):
            return score[self._predicted] - score[self._label]
        return 0.0 - score if self._predicted else score
