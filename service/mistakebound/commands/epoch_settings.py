"""Settings that the epoch in a log gives, where no flag, variable or file does: it fixed them, so it knows them."""

import os
from pathlib import Path
from typing import Any

from msgspec import UNSET

from mistakebound.commands.output import print_message
from mistakebound.config.keys import render_toml
from mistakebound.config.load import Loaded, is_given, load, load_costs, load_in_epoch
from mistakebound.core.messages.schema import Epoch
from mistakebound.settings import Settings


def settings_in_epoch(
    epoch: Epoch | None, config: Path | None, sets: list[str] | None, log: str | None
) -> Settings:
    """For verbs that change no settings: under `learner`, `features`, `labels` and `messages`, what is not given is as in the epoch.

    A message names what was taken and differs from the defaults. Raises ConfigurationError.
    """
    if epoch is None:
        return load(config, sets or (), log, os.environ).settings
    return _told(epoch, load_in_epoch(config, sets or (), log, os.environ, epoch.epoch, _held_by(epoch)))


def with_costs(
    settings: Settings, epoch: Epoch, config: Path | None, sets: list[str] | None, log: str | None
) -> Settings:
    """The settings, with what mistakes cost as it is set now, in the epoch's classes. Raises ConfigurationError."""
    held = epoch.settings.get("labels", {})
    classes = {name: held[name] for name in ("positive", "negative", "classes") if name in held}
    costs = load_costs(config, sets or (), log, os.environ, classes).settings.labels.costs
    return settings.model_copy(update={"labels": settings.labels.model_copy(update={"costs": costs})})


def settings_of_next(
    epoch: Epoch | None, config: Path | None, sets: list[str] | None, log: str | None
) -> Settings:
    """For the epoch that would begin after this one: what a worker that is started with the same would have.

    No worker starts without `labels.max_delay`; where nothing gives it, the rest stays as it is too, and a message
    says so. Raises ConfigurationError.
    """
    given = config, sets or (), log, os.environ
    if epoch is None or is_given("labels.max_delay", *given):
        return load(*given).settings
    return _told(epoch, load_in_epoch(*given, epoch.epoch, _held_by(epoch)))


def _held_by(epoch: Epoch) -> dict[str, Any]:
    return {**epoch.settings, "messages": {} if epoch.messages is UNSET else epoch.messages}


def _told(epoch: Epoch, found: Loaded) -> Settings:
    document, defaults = (each.model_dump(mode="json") for each in (found.settings, Settings()))
    taken = []
    for key, origin in found.origins.items():
        section, _, name = key.partition(".")
        if origin.kind == "epoch" and document[section][name] != defaults[section][name]:
            taken.append(f"{key} = {render_toml(document[section][name])}")
    if taken:
        print_message(f"from epoch {epoch.epoch} in the log, given nowhere else: {', '.join(taken)}")
    return found.settings
