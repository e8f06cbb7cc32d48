"""How a recording is replayed: as recorded, which gives the live stream's numbers, or afresh, and why.

What was given wins over the recording. `learner`, `features`, `labels` and `messages` are taken from its newest epoch
key by key, but the learner's keys together where another kind is given, and the classes together where any of them is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from msgspec import UNSET

from mistakebound.core.faults import BadLog
from mistakebound.core.messages.formats.schema_text import SchemaText
from mistakebound.core.messages.schema import Epoch
from mistakebound.core.model.settings_diff import changes, setting_text
from mistakebound.core.replay.recorded import NotAsRecorded, Recorded
from mistakebound.core.replay.repeat import Progress, Taken, repeat, settings_of
from mistakebound.core.replay.replay import replay_records
from mistakebound.core.reporting.report import Report
from mistakebound.core.step.state import State
from mistakebound.settings import OF_EPOCH, Section, Settings

CLASSES = {"positive", "negative", "classes"}
ASKED = "as asked"


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be done with a recording."""

    settings: Settings
    recorded: bool
    """Whether learner, features and labels come from the recording, where they were not given."""
    afresh: str | None
    """Why it is not repeated as recorded; None: it is."""


def planned(recorded: Recorded, settings: Settings, *, afresh: bool = False) -> Plan:
    """The plan for these settings, of which those count as given that were set. Raises NotAsRecorded."""
    try:
        epochs = recorded.epochs()
        newest = epochs[max(epochs)] if epochs else None
        chosen = settings if newest is None else _on_top(settings, newest)
    except (BadLog, ValueError) as error:
        if not afresh:
            raise NotAsRecorded("updates", f"its settings cannot be read: {error}") from None
        return Plan(settings, False, ASKED)
    if afresh:
        return Plan(chosen, newest is not None, ASKED)
    why = recorded.obstacle(epochs) or (None if newest is None else _differing(newest, chosen))
    return Plan(chosen, newest is not None, why)


def carry_out(
    recorded: Recorded,
    plan: Plan,
    progress: Progress | None = None,
    taken: Taken | None = None,
    schemas: Mapping[str, SchemaText | None] | None = None,
) -> State:
    """Replay it so. `schemas`: by id, for what is run afresh. Raises NotAsRecorded."""
    if plan.afresh is not None:
        inputs, partitions = recorded.all_inputs(), recorded.partitions
        return replay_records(inputs, plan.settings, partitions, progress, taken, schemas)
    try:
        return repeat(recorded, plan.settings, progress, taken)
    except BadLog as error:
        raise NotAsRecorded("the worker's records", str(error)) from None


def report_as(plan: Plan, report: Report) -> Report:
    """The report, which says if it is not the live stream's."""
    return replace(report, afresh=plan.afresh)


def _on_top(settings: Settings, epoch: Epoch) -> Settings:
    """The epoch's settings with the given ones on top. Raises ValueError where the former are not valid."""
    settings_of(epoch, settings)
    sections = {
        name: _section(name, getattr(settings, name), epoch.settings.get(name, {})) for name in OF_EPOCH
    }
    pointers = {} if epoch.messages is UNSET else epoch.messages
    sections["messages"] = _section("messages", settings.messages, pointers)
    return settings_of(Epoch(epoch.epoch, epoch.format, sections), settings)


def _section(name: str, section: Section, recorded: Mapping[str, Any]) -> dict[str, Any]:
    given = section.model_dump(mode="json", include=section.model_fields_set)
    left: set[str] = set()
    if name == "learner" and given.get("kind", recorded.get("kind")) != recorded.get("kind"):
        left = set(recorded)
    elif name == "labels" and CLASSES & given.keys():
        left = CLASSES
    return {**{key: value for key, value in recorded.items() if key not in left}, **given}


def _differing(epoch: Epoch, chosen: Settings) -> str | None:
    """Which settings differ from the epoch's."""
    before, after = (
        {**each.of_epoch(), "messages": each.messages.recorded()}
        for each in (settings_of(epoch, chosen), chosen)
    )
    found = [
        f"{one.key} is {setting_text(one.after)}, recorded {setting_text(one.before)}"
        for one in changes(before, after)
    ]
    return "; ".join(found) or None
