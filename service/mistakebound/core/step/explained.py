"""A mistake, explained: what each feature added to the score. Data for people."""

from dataclasses import dataclass

from mistakebound.settings import LabelValue


@dataclass(frozen=True, slots=True)
class Term:
    """One feature of an example."""

    name: str
    value: float
    contribution: float | None
    """Score that it adds to the predicted class, less what it adds to the true one."""


@dataclass(frozen=True, slots=True)
class ExplainedMistake:
    """A published prediction that differed from its label, as the model saw it when the label came.

    That is before it learned from the label; the model that predicted may have been an older one.
    """

    id: str
    partition: int
    predicted: LabelValue | None
    label: LabelValue
    at: int
    """Stream time in ms."""
    lead: float | None
    """How far the predicted class was ahead of the true one; below 0 the model knew better by then."""
    offset: float | None
    """The part of `lead` that no feature has: a threshold. None, as the contributions, where the score is no
    sum over the features, or would have been costly to take apart."""
    features: int
    terms: tuple[Term, ...]
    """Those that contribute most, if at all; where contributions are not known, the first ones."""
