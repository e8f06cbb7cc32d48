"""What a learner needs of settings and examples, said before it meets them."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from mistakebound.core.faults import BadRecord
from mistakebound.core.learners import KINDS, concepts, variables_of
from mistakebound.core.learners.elimination import CLASSES
from mistakebound.core.messages.features import Features
from mistakebound.core.messages.inputs import declared
from mistakebound.settings import LearnerSettings, Settings

_NO_WINDOW = {
    "kernel-perceptron": (
        "keeps its mistakes one by one, and forgets them one by one",
        "Set learner.budget: so many of the last mistakes of each partition count",
    ),
    "voted-perceptron": (
        "has vectors that rest on all mistakes before them",
        "Take the averaged-perceptron, or learner.budget for its votes",
    ),
}
_ABSORBING = ("strikes out for good: what one update struck out, others may have too", "Leave it out")
"""Set learners."""


class Unmet(NamedTuple):
    """A setting that does not go with the learner."""

    key: str
    wrong: str
    remedy: str


def unmet(settings: Settings, partitions: int | None = None) -> Iterator[Unmet]:
    """Everything that the learner needs and the settings do not give; `partitions` where known."""
    learner = settings.learner
    kind = KINDS.get(learner.kind)
    if kind is None:
        return  # named by whoever checks the key
    for key in kind.needs:
        if getattr(learner, key) is None:
            yield Unmet(f"learner.{key}", f"{learner.kind} needs it", f"Set learner.{key}")
    if kind.unit and settings.features.normalize != "unit":
        yield Unmet(
            "features.normalize",
            f"{learner.kind} is proved for examples of length 1",
            'Set features.normalize = "unit"',
        )
    if learner.kind == "margin-perceptron" and learner.margin == 0.0:
        yield Unmet(
            "learner.margin",
            "at 0 the margin-perceptron never updates: its first score is 0, which is not below",
            "Set it above 0, or take the perceptron",
        )
    if kind.boolean and settings.features.bias:
        yield Unmet(
            "features.bias", f"{learner.kind} takes Boolean features only", "Set features.bias = false"
        )
    if kind.boolean and settings.features.normalize != "none":
        yield Unmet("features.normalize", f"{learner.kind} takes Boolean features only", 'Set it to "none"')
    if kind.boolean and settings.features.scale:
        yield Unmet("features.scale", f"{learner.kind} takes Boolean features only", "Leave it out")
    if learner.window is not None and "window" not in kind.parameters:
        wrong, remedy = _NO_WINDOW.get(learner.kind, _ABSORBING)
        yield Unmet("learner.window", f"{learner.kind} {wrong}", remedy)
    if kind.zero_delay and learner.delay_policy == "issued":
        yield Unmet(
            "learner.delay_policy",
            f"{learner.kind} predicts with another vector than it learns with, so `issued` bounds nothing",
            'Set it to "rescore"',
        )
    if len(declared(settings.labels)) != 2 and not kind.many_classes:
        yield Unmet(
            "labels.classes", f"{learner.kind} knows two classes", "Declare two, or take a perceptron"
        )
    if partitions is not None and partitions > 1 and learner.kind == "voted-perceptron":
        yield Unmet(
            "log.partitions",
            f"voted-perceptron needs one partition, for the order of its vectors matters; there are {partitions}",
            "Take a log or recording of one partition, or the averaged-perceptron",
        )
    yield from _of_concepts(learner)


def _of_concepts(learner: LearnerSettings) -> Iterator[Unmet]:
    spec, variables = learner.concepts, variables_of(learner)
    if learner.kind == "elimination":
        if spec is not None and spec not in CLASSES:
            yield Unmet("learner.concepts", f"elimination knows {', '.join(CLASSES)}", "Take one of these")
    elif learner.kind in ("con", "halving") and spec is not None and variables is not None:
        try:
            concepts.named(spec, variables)
        except ValueError as error:
            yield Unmet("learner.concepts", str(error), "See `mistakebound learners --concepts`")


def accepted(settings: Settings) -> Callable[[Features], None] | None:
    """A check of decoded features, which raises BadRecord for what the learner does not take.

    None where it takes whatever could be decoded.
    """
    kind = KINDS[settings.learner.kind]
    if not kind.boolean:
        return None
    named = variables_of(settings.learner)
    known = None if named is None else frozenset(named)

    def check(x: Features) -> None:
        for name, value in x:
            if value not in (0.0, 1.0):
                raise BadRecord(
                    "not-boolean",
                    f"feature {name!r} is {value!r}; {settings.learner.kind} takes 0 and 1 only",
                )
            if known is not None and name not in known:
                raise BadRecord(
                    "unknown-variable", f"feature {name!r} is none of learner.variables; declare it"
                )

    return check
