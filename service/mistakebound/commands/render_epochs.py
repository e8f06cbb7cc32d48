"""Epochs as a person reads them: their settings, what they start from, and what changed."""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.json import encode

from mistakebound.core.messages.schema import Base, Epoch
from mistakebound.core.model.settings_diff import Change, changes
from mistakebound.settings import Settings


def render_counts(counts: Iterable[int]) -> str:
    """One count for each partition."""
    return ",".join(map(str, counts))


def render_base(base: Base | None) -> str:
    """What an epoch starts from; a version as `reset --to` takes it, `EPOCH:u0,u1,...`."""
    return "nothing" if base is None else f"version {base.epoch}:{render_counts(base.updates)}"


def render_settings(epoch: Epoch) -> list[str]:
    """Its settings that differ from the defaults."""
    return [
        f"{each.key} = {_render_value(each.after)}" for each in changes(Settings().of_epoch(), epoch.settings)
    ]


def render_changes(differing: Sequence[Change]) -> list[str]:
    """Each with both values."""
    return [f"{each.key}: {_render_value(each.before)} -> {_render_value(each.after)}" for each in differing]


def _render_value(found: Any) -> str:
    return "unset" if found is None else encode(found).decode()
