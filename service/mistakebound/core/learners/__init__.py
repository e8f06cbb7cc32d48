"""The learners: one algorithm, one file, one page. A page exports its KIND, and so is in the table below."""

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules

from mistakebound.core.learners.kind import Kind, Learner, Score
from mistakebound.core.messages.inputs import declared
from mistakebound.settings import Settings

__all__ = ["KINDS", "Kind", "Learner", "Score", "kind_of", "make"]


def _pages() -> list[Kind]:
    modules = [import_module(f"{__name__}.{each.name}") for each in iter_modules(__path__)]
    kinds: list[Kind] = [module.KIND for module in modules if hasattr(module, "KIND")]
    return sorted(kinds, key=lambda kind: kind.order)


KINDS: Mapping[str, Kind] = {kind.name: kind for kind in _pages()}


def kind_of(settings: Settings) -> Kind:
    """The kind that the settings name, as it is for their number of classes."""
    kind, classes = KINDS[settings.learner.kind], declared(settings.labels)
    return kind if kind.many is None or len(classes) == 2 else kind.many(classes)


def make(settings: Settings, partitions: int) -> Learner:
    """The learner that the settings name, before its first update."""
    return kind_of(settings).make(settings.learner, partitions)
