"""The learners: one algorithm, one file, one page, and one line in the table below."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mistakebound.core.learners import concepts
from mistakebound.core.learners.averaged_perceptron import AveragedPerceptron
from mistakebound.core.learners.balanced_winnow import balanced_winnow
from mistakebound.core.learners.con import Con
from mistakebound.core.learners.elimination import CLASSES, Elimination
from mistakebound.core.learners.halving import Halving
from mistakebound.core.learners.kernel_perceptron import KernelPerceptron
from mistakebound.core.learners.littlestone_winnow import littlestone_winnow
from mistakebound.core.learners.margin_perceptron import margin_perceptron
from mistakebound.core.learners.multiclass_perceptron import MulticlassPerceptron
from mistakebound.core.learners.normalized_margin_perceptron import normalized_margin_perceptron
from mistakebound.core.learners.one_sided_perceptron import one_sided_perceptron
from mistakebound.core.learners.perceptron import perceptron
from mistakebound.core.learners.version_space import VersionSpace
from mistakebound.core.learners.voted_perceptron import VotedPerceptron
from mistakebound.core.learners.winnow import winnow
from mistakebound.core.messages.features import Features
from mistakebound.core.messages.inputs import declared
from mistakebound.settings import LearnerSettings, Settings

Score = float | list[float]


class Learner(Protocol):
    """What the step asks of a learner. It decides; it is told what to fold, and never decides again.

    Labels are truth values (True is the positive class) where two are declared, else the classes themselves.
    """

    averaged: bool
    """Whether a version needs the clock beside the update counts."""

    def score(self, x: Features, clock: int) -> Any:
        """Score of the published prediction, finite: one number, or one for each known class.

        `clock` = labelled examples known so far.
        """
        ...

    def predict(self, score: Any) -> Any:
        """The class of a score; None where no class is known."""
        ...

    def decide(self, x: Features, label: Any) -> tuple[bool, Any]:
        """(whether the current hypothesis must be updated on this label, the class it predicts)."""
        ...

    def fold(self, partition: int, x: Features, label: Any, clock: int, predicted: Any) -> None:
        """Apply one logged update; `clock` = labelled examples known to its owner, this one included."""
        ...

    def begin(self, undoable: bool = True) -> None:
        """A step begins: what follows can be rolled back. Not `undoable`: it never is, and costs nothing more."""
        ...

    def rollback(self) -> None:
        """Undo what was folded since `begin`, to the bit."""
        ...

    def dump(self) -> Any:
        """The whole state, as MessagePack can hold it."""
        ...

    def load(self, state: Any) -> None:
        """Become what `dump` gave. Raises ValueError, TypeError, KeyError ... for what it did not give."""
        ...

    def length(self, x: Features) -> float:
        """Size of an example as the learner's theorem measures it."""
        ...

    def digest(self) -> str:
        """SHA-256 in hex of the hypothesis; -0.0 counts as 0.0."""
        ...

    def theta(self) -> Mapping[str, float]:
        """Coordinates of theta by name; empty where there is none."""
        ...

    def weights(self) -> Mapping[str, Any]:
        """The hypothesis by name, as a person wants to see it."""
        ...


@dataclass(frozen=True, slots=True)
class Kind:
    """A line of the table: how to make a learner, and what must be said of it."""

    make: Callable[[Settings, int], Learner]
    source: str
    parameters: tuple[str, ...] = ()
    """Keys of `learner` that it reads."""
    bound: str = ""
    bounds: str = "mistakes and updates"
    """What the bound speaks of."""
    shared: str = "any partitions, any workers"
    many_classes: bool = False
    boolean: bool = False
    """Features are 0 or 1, and BIAS is off."""
    unit: bool = False
    """Features have unit length."""
    zero_delay: bool = False
    """Not with `delay_policy = issued`."""
    needs: tuple[str, ...] = ()
    """Keys of `learner` that must be given."""


def of_settings(make: Callable[[LearnerSettings, int], Learner]) -> Callable[[Settings, int], Learner]:
    """A learner that reads its own section only."""
    return lambda settings, partitions: make(settings.learner, partitions)


def _perceptron(settings: Settings, partitions: int) -> Learner:
    classes = declared(settings.labels)
    if len(classes) == 2:
        return perceptron(settings.learner, partitions)
    return MulticlassPerceptron(settings.learner, partitions, classes, averaged=False)


def _averaged(settings: Settings, partitions: int) -> Learner:
    classes = declared(settings.labels)
    if len(classes) == 2:
        return AveragedPerceptron(settings.learner, partitions)
    return MulticlassPerceptron(settings.learner, partitions, classes, averaged=True)


def variables_of(learner: LearnerSettings) -> tuple[str, ...] | None:
    """The declared Boolean variables by name; None where none are declared."""
    declared_as = learner.variables
    return tuple(map(str, range(declared_as))) if isinstance(declared_as, int) else declared_as


def _elimination(settings: Settings, partitions: int) -> Learner:
    literals = CLASSES[settings.learner.concepts or "monotone-conjunctions"]
    return Elimination(literals, variables_of(settings.learner), partitions)


def _space(settings: Settings, partitions: int) -> VersionSpace:
    variables = variables_of(settings.learner) or ()
    return VersionSpace(concepts.named(settings.learner.concepts or "", variables), variables, partitions)


def _con(settings: Settings, partitions: int) -> Learner:
    return Con(_space(settings, partitions), settings.learner.ranking_seed)


def _halving(settings: Settings, partitions: int) -> Learner:
    return Halving(_space(settings, partitions))


KINDS: Mapping[str, Kind] = {
    "perceptron": Kind(
        _perceptron,
        "Rosenblatt 1958; lecture 6",
        ("learning_rate", "tie", "gamma", "window"),
        "(R/gamma)^2",
        many_classes=True,
    ),
    "averaged-perceptron": Kind(
        _averaged,
        "Freund & Schapire 1999; lecture 6",
        ("learning_rate", "tie", "gamma", "window"),
        "(R/gamma)^2",
        "updates",
        many_classes=True,
        zero_delay=True,
    ),
    "voted-perceptron": Kind(
        of_settings(VotedPerceptron),
        "Freund & Schapire 1999; lecture 6",
        ("tie", "budget", "gamma"),
        "(R/gamma)^2",
        "updates",
        "one partition: the order of its vectors matters",
        zero_delay=True,
    ),
    "margin-perceptron": Kind(
        of_settings(margin_perceptron),
        "Krauth & Mezard 1987; lecture 6",
        ("margin", "learning_rate", "tie", "gamma", "window"),
        "(R^2 + 2 margin/r)/gamma^2",
    ),
    "normalized-margin-perceptron": Kind(
        of_settings(normalized_margin_perceptron),
        "lecture 6",
        ("gamma", "tie", "window"),
        "8/gamma^2",
        unit=True,
        needs=("gamma",),
    ),
    "one-sided-perceptron": Kind(
        of_settings(one_sided_perceptron), "COMS 172, lecture 11", ("gamma", "window"), "1/gamma^2", unit=True
    ),
    "kernel-perceptron": Kind(
        of_settings(KernelPerceptron),
        "Aizerman et al. 1964; Freund & Schapire 1999",
        ("kernel", "degree", "width", "budget", "tie", "gamma"),
        "(R/gamma)^2 in the kernel's space, without a budget",
    ),
    "winnow": Kind(
        of_settings(winnow),
        "Littlestone 1988; Zhang 2000; CSE 446",
        ("eta", "initial_weight", "threshold", "tie", "gamma", "window"),
        "KL/(eta gamma - eta^2 R^2/2)",
    ),
    "balanced-winnow": Kind(
        of_settings(balanced_winnow),
        "Littlestone 1988; Zhang 2000; CSE 446",
        ("eta", "initial_weight", "tie", "gamma", "window"),
        "the same on [x; -x]",
    ),
    "littlestone-winnow": Kind(
        of_settings(littlestone_winnow),
        "Littlestone 1988",
        ("alpha", "threshold", "demotion", "tie", "variables", "relevant", "window"),
        "3k(log2 theta + 1) + 2n/theta at alpha 2",
        boolean=True,
        needs=("threshold",),
    ),
    "elimination": Kind(
        _elimination,
        "lecture 6, protocol III",
        ("concepts", "variables"),
        "n; n + 1 for literals",
        boolean=True,
    ),
    "con": Kind(
        _con,
        "lecture 6, algorithm CON",
        ("concepts", "variables", "ranking_seed"),
        "|C| - 1",
        boolean=True,
        needs=("concepts", "variables"),
    ),
    "halving": Kind(
        _halving,
        "lecture 6, Halving",
        ("concepts", "variables"),
        "log2 |C|",
        boolean=True,
        needs=("concepts", "variables"),
    ),
}


def make(settings: Settings, partitions: int) -> Learner:
    """The learner that the settings name, before its first update."""
    return KINDS[settings.learner.kind].make(settings, partitions)
