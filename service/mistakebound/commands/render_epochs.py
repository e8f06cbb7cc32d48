"""Epochs for people: their settings, what they start from, and what changed."""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.json import encode

from mistakebound.core.messages.schema import Base, Epoch
from mistakebound.core.model.settings_diff import Change, changes
from mistakebound.settings import Settings


def render_counts(counts: Iterable[int]) -> str:
    """The partitions' counts."""
    return ",".join(map(str, counts))


def render_base(base: Base | None) -> str:
    """What an epoch starts from; a version as `reset --to` takes it, `EPOCH:u0,u1,...`."""
    return "nothing" if base is None else f"version {base.epoch}:{render_counts(base.updates)}"


def render_settings(epoch: Epoch) -> list[str]:
    """The epoch's settings that differ from the defaults."""
    differing = changes(Settings().of_epoch(), epoch.settings)
    return [f"{each.key} = {_render_value(each.after)}" for each in differing]


def render_changes(differing: Sequence[Change]) -> list[str]:
    """Each changed setting with both values."""
    return [f"{each.key}: {_render_value(each.before)} -> {_render_value(each.after)}" for each in differing]


def _render_value(found: Any) -> str:
    return "unset" if found is None else encode(found).decode()
