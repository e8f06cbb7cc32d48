"""What a learner's page exports: KIND, all that the rest of the program knows of that learner."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from mistakebound.core.learners.claim import Claim, Run
from mistakebound.core.linear.parts import Part
from mistakebound.core.linear.restarts import Restarts
from mistakebound.core.linear.window import Window
from mistakebound.core.messages.features import Features
from mistakebound.settings import LabelValue, LearnerSettings

Score = float | list[float]


class Learner(Part, Protocol):
    """What a step asks of a learner: `decide` says whether to update, and `fold` makes the update without asking again.

    With two declared classes a label is a truth value (True is the positive class), otherwise the class itself.
    """

    averaged: bool
    """Whether a version needs the clock beside the update counts."""

    @property
    def window(self) -> Window | None:
        """Which updates count; None if all do."""

    @property
    def restarts(self) -> Restarts | None:
        """How often it has started from zero, and which updates count since; None if it never does."""

    def score(self, x: Features, clock: int) -> Any:
        """Score of the published prediction, finite: one number, or one for each known class.

        `clock` = labelled examples known so far; only averaged learners are told.
        """

    def predict(self, score: Any) -> Any:
        """The class of a score; None where no class is known."""

    def decide(self, x: Features, label: Any) -> tuple[float, Any]:
        """(how much of y*x must be added on this label, the class that the current hypothesis predicts).

        The amount is 0 for no update; most learners know no other amount than 1.
        """

    def fold(
        self, partition: int, x: Features, label: Any, clock: int, predicted: Any, amount: float = 1.0
    ) -> None:
        """Apply one logged update; `clock` = labelled examples known to its owner, this one included."""

    def length(self, x: Features, /) -> float:
        """Size of an example as the learner's theorem measures it."""

    def digest(self) -> str:
        """SHA-256 in hex of the hypothesis; -0.0 counts as 0.0."""

    def theta(self) -> Mapping[str, float]:
        """Coordinates of theta by name; empty if the learner has no theta."""

    def weights(self) -> Mapping[str, Any]:
        """The hypothesis by name, as a person wants to see it."""


class Averaging(Learner, Protocol):
    """A learner that publishes another hypothesis than it learns by."""

    def judge(self, x: Features, label: Any, clock: int) -> tuple[float, Any, Any]:
        """What `decide` gives, and the class that `score` would publish; `clock` = labelled examples known so far."""


class Unmet(NamedTuple):
    """A setting that the learner cannot work with."""

    key: str
    wrong: str
    remedy: str


class Refusal(NamedTuple):
    """Why a learner does not do something, in words that follow its name, and what to set instead."""

    why: str
    remedy: str


STRIKES_OUT = Refusal("strikes out for good: what one update struck out, others may have too", "Leave it out")
"""Set learners have no window."""
ONE_CONCEPT = Refusal(
    "looks for one concept over all variables, and an example lacks those of every other tenant",
    "Take a linear learner, such as the perceptron; or a worker for each tenant",
)
"""Set learners have no model for each tenant."""
AVERAGES = Refusal(
    "predicts with another vector than it learns with, so `issued` bounds nothing", 'Set it to "rescore"'
)
"""The averaged and voted perceptrons do not learn from the predictions that they issue."""
ROUNDS = Refusal(
    "has weights that processors round differently, so that no other machine could prove a probability",
    "Take a perceptron, or leave it out",
)
"""Learners that multiply weights have no probabilities."""
NO_TERMS = Refusal(
    "has a score that is no sum over the features, and so has no scale to be measured on",
    "Take a perceptron, or leave it out",
)
"""Nor have learners whose scores are votes, or sums over mistakes."""
VOTES = Refusal(
    "scores by the concepts left: a size that does not say how sure it is",
    "Take the perceptron, or leave it out",
)
"""Set learners do not ask for labels, and have no probabilities."""
GROWS = Refusal(
    "adds its votes up over the labels, so that scores grow with their number, and it would soon ask for none",
    "Take the perceptron, or leave it out",
)
"""Why labels cannot be asked for by the scores of an average."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One learner. `order` is its place in the listing: perceptrons from 10, Winnow kinds from 110, set learners from 210."""

    name: str
    order: int
    make: Callable[[LearnerSettings, int], Learner]
    """A learner before its first update, for this number of partitions."""
    many: "Callable[[Sequence[LabelValue]], Kind] | None" = None
    """The kind for these classes, more than two or open (empty); None where there must be two."""

    # How it is presented.
    source: str
    bound: str
    bounds: str = "mistakes and updates"
    """What the bound speaks of."""
    shared: str = "any partitions, any workers"
    shows: str = "weights"
    """What is shown of the hypothesis on the status page: `weights`, or what `scores_with` gives."""
    scores_with: Callable[[Any, int], Mapping[str, float]] | None = None
    """The weights that scores are made of, from a learner and its clock, where they are others than `weights`."""
    starts_at: Callable[[LearnerSettings], float] | None = None
    """The weight before the first update, where an update multiplies weights (by the exponential of what it adds to
    theta); None where it adds to them."""

    # What it asks of settings and features.
    parameters: tuple[str, ...] = ()
    """Keys of `learner` that it reads."""
    needs: tuple[str, ...] = ()
    """Those of them that must be set."""
    requires: Callable[[LearnerSettings], Iterable[Unmet]] = lambda settings: ()
    """What else is wrong with its settings."""
    cautions: Callable[[LearnerSettings], Iterable[Unmet]] = lambda settings: ()
    """Settings that it can work with, and with which it hardly ever is what is wanted."""
    boolean: bool = False
    """Features are 0 or 1, and BIAS is off."""
    unit: bool = False
    """Features have unit length."""
    no_window: Refusal | None = None
    """Why `window` is not among its parameters; None if it is."""
    no_issued: Refusal | None = None
    """Why `delay_policy = "issued"` is refused; None if it is not."""
    no_ask: Refusal | None = None
    """Why `labels.ask` is refused; None if it is not."""
    no_cross: Refusal | None = None
    """Why it has no model for each tenant; None if it has."""
    no_probability: Refusal | None = NO_TERMS
    """Why `predictions.probability` is refused; None if it is not."""
    one_partition: Refusal | None = None
    """Why it cannot have several partitions; None if it can."""

    # What is proved of it.
    claim: Callable[[Run], Claim | None]
    """What its theorem says; None if a number is not declared or an assumption does not hold."""
    asking: Callable[[LearnerSettings, float, float], Claim | None] | None = None
    """Where labels are asked for: what is proved of the mistakes to be expected, from b and R; None if nothing is."""
    undeclared: Callable[[LearnerSettings], str | None] = lambda settings: None
    """Why no theorem speaks of these settings; None if the settings are not the reason."""
    norm: Callable[[LearnerSettings, Mapping[str, float]], float | None] | None = None
    """Length, in its theorem's norm, of a theta that is the sum of y*x over updates; None if that bounds no margin."""
    own_norm: Callable[[LearnerSettings, Any], float | None] | None = None
    """The same for a learner whose theta is not such a sum."""
    concepts_left: Callable[[Any], int] | None = None
    """Size of its version space; None if it has none."""

    # How others look at it.
    rounds: Callable[[LearnerSettings], bool] = lambda settings: False
    """Whether its scores rest on functions that processors round differently."""
    comparable: Callable[[Any], Any] = lambda state: state
    """A dumped state in a form that is equal for equal models."""
    size: Callable[[Any, Features, int], float] | None = None
    """The sum of the sizes of a score's terms, from a learner, an example and the clock; at least the size of the score.
    None where it has no probabilities."""
    sums: bool = False
    """Whether its score is a sum over the features, so that a mistake can be taken apart."""
