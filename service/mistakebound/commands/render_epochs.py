"""Epochs as a person reads them: their settings, what they start from, and what changed."""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.json import encode

from mistakebound.core.messages.schema import Base, Epoch
from mistakebound.core.model.settings_diff import Change, changes
from mistakebound.settings import Settings


def version(base: Base) -> str:
    """As `reset --to` takes it: `EPOCH:u0,u1,...`."""
    return f"{base.epoch}:{numbers(base.updates)}"


def numbers(counts: Iterable[int]) -> str:
    """One count for each partition."""
    return ",".join(map(str, counts))


def start(base: Base | None) -> str:
    """What an epoch starts from."""
    return "nothing" if base is None else f"version {version(base)}"


def value(found: Any) -> str:
    """A setting's value; `unset` where there is none."""
    return "unset" if found is None else encode(found).decode()


def of_epoch(epoch: Epoch) -> list[str]:
    """Its settings that differ from the defaults."""
    return [f"{each.key} = {value(each.after)}" for each in changes(Settings().of_epoch(), epoch.settings)]


def changed(differing: Sequence[Change]) -> list[str]:
    """Each with both values."""
    return [f"{each.key}: {value(each.before)} -> {value(each.after)}" for each in differing]


def as_json(differing: Sequence[Change]) -> dict[str, Any]:
    """Key -> both values."""
    return {each.key: {"before": each.before, "after": each.after} for each in differing}
