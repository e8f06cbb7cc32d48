"""Why no theorem speaks of a run, in a sentence that says what to do about it."""

from mistakebound.core.messages.inputs import declared
from mistakebound.core.model.model import Model


def why_none(model: Model) -> str:
    """The first reason that holds, of a model of which `claims` says nothing."""
    if model.based:
        return "This epoch started from what another one had learned; no theorem speaks of that."
    if model.missing is None:
        return "Updates by other workers are still to come; the bound returns with them."
    undeclared = model.kind.undeclared(model.settings.learner)
    if undeclared is not None:
        return undeclared
    if not declared(model.settings.labels):
        return "Classes are open; no theorem speaks of classes that are not known beforehand."
    return "The learner's theorem does not hold for these settings, or not for these data."
