"""A mistake, explained: what each feature added to the score. Data for people."""

from dataclasses import dataclass

from mistakebound.settings import LabelValue


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
