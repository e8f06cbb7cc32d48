"""The commands that send a first example and its label to this worker, as its settings spell them."""

import json
import shlex
from typing import Any

from mistakebound.core.learners import kind_of
from mistakebound.core.learners.concepts import variables_of
from mistakebound.core.messages.inputs import declared
from mistakebound.core.records import Stream
from mistakebound.settings import MessageSettings, Settings

ID = "first"
IN_MEMORY = "sqlite::memory:"


def first_commands(settings: Settings) -> tuple[str, ...]:
    """An example, then its label; each is one line for a shell.

    None for a log in memory, which no other process sees, nor where an input is not JSON, which is all that `send` writes.
    """
    at, classes = settings.messages, declared(settings.labels)
    if settings.log.url == IN_MEMORY or {at.format, at.labels_format or at.format} != {"json"}:
        return ()
    label = classes[0] if classes else "a"
    example: dict[str, Any] = {at.id: ID, **_features(settings)}
    if settings.features.cross is not None:
        example[settings.features.cross] = "a tenant"
    return (
        _send("examples", example, settings),
        _send("labels", {at.id: ID, at.label: label}, settings),
    )


def _features(settings: Settings) -> dict[str, Any]:
    """By pointer: one feature that the settings read."""
    at, value = settings.messages.features, 1 if kind_of(settings).boolean else 1.5
    if settings.features.include is not None:
        first = settings.features.include[0].replace("*", "a")
        return {at + (first if first.startswith("/") else "/" + first.replace("~", "~0")): value}
    return {at: {next(iter(variables_of(settings.learner) or ()), "a"): value}}


def _send(topic: Stream, values: dict[str, Any], settings: Settings) -> str:
    given = {"log.prefix": settings.log.prefix}
    given |= {f"topics.{name}": named for name, named in settings.topics.model_dump().items()}
    if settings.messages.id != MessageSettings().id:
        given["messages.id"] = settings.messages.id
    words = ["mistakebound", "send", topic, "-", "--log", settings.log.url or ""]
    words += [f"--set={key}={value}" for key, value in given.items() if value]
    return f"printf '%s\\n' {shlex.quote(json.dumps(_at(values)))} | {shlex.join(words)}"


def _at(values: dict[str, Any]) -> dict[str, Any]:
    """A document that holds each value where its JSON pointer says; what another pointer leads through comes first."""
    document: dict[str, Any] = {}
    for pointer, value in sorted(values.items(), key=lambda item: item[0].count("/")):
        if not pointer:  # the whole message
            document |= value
            continue
        *outer, last = (part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])
        table = document
        for part in outer:
            inner = table.setdefault(part, {})
            table = inner if isinstance(inner, dict) else table
        table[last] = value
    return document
