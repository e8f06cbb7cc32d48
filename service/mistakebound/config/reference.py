"""The reference of settings under `deploy/`: every key with its meaning, kind, default and variable."""

import re
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from itertools import groupby
from typing import Any

from mistakebound.config.keys import Key, duration, json_schema, keys, open_tables, render_toml
from mistakebound.settings import Settings

ABOUT = {
    "log": "Where the topics are. `run` needs `log.url`.",
    "topics": "Names of single topics, where they are not the prefix followed by the logical name.",
    "messages": "How messages are written, and where in one its parts are: JSON pointers.",
    "registry": "Where the [schemas](schemas.md) of records are that are not JSON.",
    "learner": "Fixed for the life of an epoch: a worker that is started with other ones refuses to run (exit code 5).",
    "features": "Fixed for the life of an epoch.",
    "labels": "Fixed for the life of an epoch, `max_delay` too; `costs` only with `learner.cost_sensitive`. `run` needs `labels.max_delay`.",
    "predictions": "What is published beside each prediction. Fixed for the life of an epoch.",
    "batch": "How much goes into one step, and so into one transaction.",
    "checkpoint": "A shortcut for the next start. It may be lost, unless retention has taken what a start without it would have to read ([limits](limits.md)).",
    "http": "Metrics, probes and the page.",
    "worker": "Who this worker is.",
    "kafka": "Options that the guarantees rest on are refused by name.",
}
"""What to know about a section."""

_KINDS = {
    bool: "true or false",
    int: "integer",
    float: "number",
    str: "text",
    list: "list",
    dict: "table",
    timedelta: "duration",
}


def reference() -> str:
    """The whole reference in Markdown."""
    parts = [_HEAD]
    for section, rows in groupby(keys().values(), lambda key: key.name.partition(".")[0]):
        parts.append(f"## {section}\n\n{ABOUT[section]}\n")
        parts += [_entry(key) for key in rows]
    for section, meaning in open_tables().items():
        parts.append(f"## {section}\n\n{_sentence(meaning)} {ABOUT[section]}\n")
    return "\n".join(parts)


def _entry(key: Key) -> str:
    default = "none" if key.default is None else f"`{render_toml(key.default)}`"
    if isinstance(key.default, timedelta):
        default += f" ({duration(key.default)})"
    variable = "MISTAKEBOUND_" + key.name.upper().replace(".", "__")
    lines = [f"Kind: {_kind(key)}"]
    if limits := _limits(_checked_as(key)):
        lines.append(f"Limits: {'; '.join(limits)}")
    lines += [f"Default: {default}", f"Variable: `{variable}`"]
    return f"### {key.name}\n\n{_sentence(key.meaning)}\n\n" + "".join(f"- {line}\n" for line in lines)


def _kind(key: Key) -> str:
    if key.choices and len(key.types) == 1:
        return "one of " + ", ".join(f"`{each}`" for each in key.choices)
    return " or ".join(_KINDS[each] for each in _KINDS if each in key.types)


@cache
def _schema() -> dict[str, Any]:
    return json_schema()


def _checked_as(key: Key) -> dict[str, Any]:
    """The JSON Schema of a setting."""
    section, _, name = key.name.partition(".")
    table = _schema()["properties"][section]["$ref"].rpartition("/")[2]
    found: dict[str, Any] = _schema()["$defs"][table]["properties"][name]
    return found


def _limits(schema: dict[str, Any]) -> list[str]:
    """What its values must keep to beside their kind, each limit once."""
    found = [*_own_limits(schema)]
    for one in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        found += _limits(one)
    for number, one in enumerate(schema.get("prefixItems", ()), 1):
        found += [f"entry {number}: {limit}" for limit in _limits(one)]
    for name, each in (("items", "each entry: "), ("additionalProperties", "each value: ")):
        if isinstance(inner := schema.get(name), dict):
            found += [limit if limit.startswith(each) else each + limit for limit in _limits(inner)]
    return [*dict.fromkeys(found)]


def _own_limits(schema: dict[str, Any]) -> Iterator[str]:
    if "maximum" in schema:
        yield f"from {_number(schema['minimum'])} to {_number(schema['maximum'])}"
    elif "minimum" in schema:
        yield f"at least {_number(schema['minimum'])}"
    if "exclusiveMinimum" in schema:
        yield f"above {_number(schema['exclusiveMinimum'])}"
    if "minLength" in schema or ("minItems" in schema and "prefixItems" not in schema):
        yield "not empty"


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}".replace("e+", "e")


def _sentence(text: str) -> str:
    """A meaning as a sentence; code at its beginning keeps its case."""
    text = re.sub(r"^[a-z](?=[a-z ])", lambda first: first[0].upper(), text)
    return text if text.endswith((".", "?", "!")) else text + "."


_HEAD = f"""\
<!-- Made by `mistakebound config schema --reference`; a test keeps it so. -->
# Configuration

{len(keys())} settings in {len(Settings.model_fields)} sections. A worker needs two of them: `log.url` and `labels.max_delay`.

Values come from these places; for each key the first one that has it wins:

1. flags: `--set learner.kind=winnow`, `--log URL`
2. the environment: the variable named below; with `_FILE` after it, the name of a file that holds the value
3. `./mistakebound.toml`, or the file of `--config`
4. the default

All problems are reported at once, each with the value's origin and the remedy. `mistakebound config show` prints every
setting in effect and where it came from; `mistakebound config check` says whether `run` would accept them, and with `--online`
also asks the log and tries to write a checkpoint. `mistakebound config schema` prints a JSON Schema, with which editors
complete and check the file.

A duration is a number of seconds (`3600`) or ISO 8601 (`"PT1H"`, `"P7D"`): five minutes are `"PT5M"`, and
`"P5M"` is five months. A month counts as 30 days, a year as 365. In flags and variables a list or a table is written as in
TOML: `--set 'labels.classes=["a", "b"]'`.

Secrets belong in files: `kafka.sasl_plain_password_file = "/run/secrets/kafka"`, or a variable that ends in `_FILE`. For an
object store they are `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, or the role of the machine or pod. They are masked
wherever settings are shown.
"""
