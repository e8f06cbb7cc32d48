"""Two epochs' settings side by side: flat keys, what differs, and what an older epoch left unsaid."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from mistakebound.settings import LearnerSettings, Settings

OLDER_KIND = "averaged-perceptron"
"""The default of `learner.kind` in earlier versions."""
_NO_IF_UNSET = "learner.cost_sensitive"
"""Epochs of earlier versions may hold a no for it, which others leave out."""


class Change(NamedTuple):
    """A key that differs; None where one of the two does not have it, or where it is not set."""

    key: str
    """As TOML spells it: `labels.max_delay`."""
    before: Any
    after: Any


def setting_text(value: Any, absent: str = "unset") -> str:
    """A value in a message; `absent`: where there is none."""
    return absent if value is None else repr(value)


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

    Two defaults have changed since epochs began with them, which go on as they began unless something else was asked for:

    1. The learner was the averaged perceptron. An epoch of it goes on where no learner is named.
    2. Winnow's threshold was 0, of which its epoch holds nothing.
    """
    held = epoch.get("learner")
    if not isinstance(held, Mapping):
        return settings
    learner = _with_older_threshold(_of_older_kind(settings.learner, held), held)
    return settings if learner is settings.learner else settings.model_copy(update={"learner": learner})


def _of_older_kind(learner: LearnerSettings, held: Mapping[str, Any]) -> LearnerSettings:
    if "kind" in learner.model_fields_set or held.get("kind") != OLDER_KIND:
        return learner
    return learner.model_copy(update={"kind": OLDER_KIND})


def _with_older_threshold(learner: LearnerSettings, held: Mapping[str, Any]) -> LearnerSettings:
    if learner.kind != "winnow" or held.get("kind") != "winnow":
        return learner
    if held.get("threshold") is not None or learner.threshold is None:
        return learner
    if "threshold" in learner.model_fields_set and learner.threshold != 0.0:
        return learner
    return learner.model_copy(update={"threshold": None})


def _flat(path: str, settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(f"{path}{key}.", value)
        elif f"{path}{key}" == _NO_IF_UNSET:
            yield _NO_IF_UNSET, value or None
        else:
            yield f"{path}{key}", value
