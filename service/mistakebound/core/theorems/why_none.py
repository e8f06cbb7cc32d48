"""Why no theorem speaks of a run, in a sentence that says what to do about it."""

from collections.abc import Iterator

from mistakebound.core.messages.inputs import declared
from mistakebound.core.model.model import Model

_NEED_GAMMA = ("perceptron", "averaged-perceptron", "voted-perceptron", "margin-perceptron",
               "one-sided-perceptron", "kernel-perceptron", "winnow", "balanced-winnow")  # fmt: skip


def silence(model: Model) -> str:
    """The first reason that holds, of a model of which `standing` says nothing."""
    return next(text for holds, text in _reasons(model) if holds)


def _reasons(model: Model) -> Iterator[tuple[bool, str]]:
    settings = model.settings.learner
    yield model.based, "This epoch started from what another one had learned; no theorem speaks of that."
    yield model.missing is None, "Updates by other workers are still to come; the bound returns with them."
    yield (
        settings.kind in _NEED_GAMMA and settings.gamma is None,
        "No margin is declared: set learner.gamma to see the bound that follows from it.",
    )
    yield (
        not declared(model.settings.labels),
        "Classes are open; no theorem speaks of classes that are not known beforehand.",
    )
    yield (
        settings.kind == "littlestone-winnow" and (settings.relevant is None or settings.variables is None),
        "Set learner.relevant and learner.variables to see the bound that follows from them.",
    )
    yield (
        settings.kind == "elimination" and settings.variables is None,
        "Set learner.variables to see the bound that follows from their number.",
    )
    yield settings.budget is not None, "With a budget mistakes are forgotten, and the bound with them."
    yield True, "The learner's theorem does not hold for these settings, or not for these data."
