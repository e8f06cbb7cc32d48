"""Two epochs' settings side by side: flat keys, what differs, and what an older epoch left unsaid."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from mistakebound.settings import Settings


class Change(NamedTuple):
    """A key that differs; None where one of the two does not have it, or where it is not set."""

    key: str
    """As TOML spells it: `labels.max_delay`."""
    before: Any
    after: Any


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """What differs, by key. `true` and `1` differ, and so do `1` and `1.0`."""
    old, new = dict(_flat("", before)), dict(_flat("", after))
    return [
        Change(key, old.get(key), new.get(key))
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key) or type(old.get(key)) is not type(new.get(key))
    ]


def going_on(settings: Settings, epoch: Mapping[str, Any]) -> Settings:
    """`settings` to go on with in an epoch of these; the same object where they are to stay as they are.

    An epoch of Winnow that was begun before its threshold had a default holds none, and that is 0. It goes on so,
    unless another threshold was asked for.
    """
    learner, held = settings.learner, epoch.get("learner")
    if learner.kind != "winnow" or not isinstance(held, Mapping):
        return settings
    if held.get("kind") != "winnow" or held.get("threshold") is not None or learner.threshold is None:
        return settings
    if "threshold" in learner.model_fields_set and learner.threshold != 0.0:
        return settings
    return settings.model_copy(update={"learner": learner.model_copy(update={"threshold": None})})


def _flat(path: str, settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(f"{path}{key}.", value)
        else:
            yield f"{path}{key}", value
