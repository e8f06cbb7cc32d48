"""How the better of two sides takes the other's place: which settings change, and what to type."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from mistakebound.commands.compare.sides import OpenSide
from mistakebound.config.keys import keys, render_toml
from mistakebound.core.comparison.comparison import Comparison, Promotion
from mistakebound.core.model.settings_diff import changes
from mistakebound.core.records import INPUTS
from mistakebound.settings import OF_EPOCH, Settings


def promotion(found: Comparison, first: OpenSide, second: OpenSide, settings: Settings) -> Comparison:
    """The comparison, with what promotes the better side where that is known."""
    if found.better is None:
        return found
    better, other = (first, second) if found.better == "first" else (second, first)
    if better.settings is None or other.settings is None:
        return found
    old, new = (
        {name: side.settings.get(name, {}) for name in OF_EPOCH if side.settings is not None}
        for side in (other, better)
    )
    differing = {key: _value(new, key) for each in changes(old, new) if (key := _setting(each.key)) in keys()}
    commands = (shlex.join(_reset(other, differing, settings)),) if other.of == "log" and differing else ()
    return replace(found, promotion=Promotion(differing, commands))


def _setting(key: str) -> str:
    """`labels.costs` for `labels.costs.false_negative`: a table is set as a whole."""
    return ".".join(key.split(".")[:2])


def _value(settings: Mapping[str, Any], key: str) -> object:
    section, _, name = key.partition(".")
    return settings[section].get(name)


def _reset(other: OpenSide, differing: dict[str, object], settings: Settings) -> Iterator[str]:
    """The command that begins the other side's next epoch with the better one's settings."""
    yield from ("mistakebound", "reset", "--execute")
    if other.name != settings.log.prefix:
        yield from ("--set", f"log.prefix={other.name}")
        for topic in INPUTS:
            name = other.inputs.get(topic)
            if name is not None and name != other.name + topic:
                yield from ("--set", f"topics.{topic}={name}")
    for key, value in differing.items():
        if value is None:  # which no flag can say: it has to leave the settings
            continue
        yield from ("--set", f"{key}={value if isinstance(value, str) else render_toml(value)}")
