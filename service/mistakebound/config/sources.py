"""Values as they are given for keys: in a file, in the environment, in flags. `load` decides which one wins.

The only place that reads `MISTAKEBOUND_*` variables; nothing is read at import.
"""

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mistakebound.config.keys import keys, open_tables
from mistakebound.config.masking import hide_secrets, is_secret, mask_text
from mistakebound.config.problems import DEFAULT, Origin, Problem

PREFIX = "MISTAKEBOUND_"
ENDING = "_file"
"""Of the key or variable of a file that holds a secret."""
SECRET_BYTES = 65_536
_TWICE = "given twice: {} is set too"
_ONE_OF = "Remove one of the two"


@dataclass(frozen=True, slots=True)
class Given:
    """A value as given for a key, from one place."""

    key: str
    value: Any
    origin: Origin


def from_file(
    path: Path, named_by: str, problems: list[Problem], named_in: Origin = DEFAULT, *, must_exist: bool = True
) -> Iterator[Given]:
    """The values in a TOML file. What is wrong with the file itself is a problem of `named_by`, which named it."""
    try:
        document = tomllib.loads(path.read_bytes().decode("utf-8"))
    except FileNotFoundError:
        if not must_exist:
            return
        wrong, remedy = "the file does not exist", "Name an existing file"
    except OSError as error:
        wrong, remedy = f"cannot be read: {error.strerror}", "Make it readable"
    except (ValueError, RecursionError) as error:
        wrong, remedy = f"is not TOML: {error}", "Correct the line"
    else:
        yield from from_document(document, Origin("file", str(path)), problems)
        return
    problems.append(Problem(named_by, wrong, remedy, str(path), named_in))


def from_document(document: Mapping[str, Any], origin: Origin, problems: list[Problem]) -> Iterator[Given]:
    """The values of sections and their keys, as TOML nests them."""
    for section, table in document.items():
        if not isinstance(table, Mapping):
            problems.append(_unknown_key(section, table, origin))
            continue
        for name, value in table.items():
            if name.endswith(ENDING) and name.removesuffix(ENDING) in table and section in open_tables():
                key = f"{section}.{name.removesuffix(ENDING)}"
                problems.append(Problem(key, _TWICE.format(f"{key}{ENDING}"), _ONE_OF, origin=origin))
                continue
            yield from _take(f"{section}.{name}", value, origin, problems)


def from_environment(environ: Mapping[str, str], problems: list[Problem]) -> Iterator[Given]:
    """The values of `MISTAKEBOUND_SECTION__KEY`; with `_FILE` after it, the name of a file that holds the value.

    Variables without `__` are ignored (Kubernetes sets some for a service of this name), except those
    that spell a key with one underscore too few.
    """
    slips = {PREFIX + key.replace(".", "_").upper(): key for key in keys()}
    from_files: list[Given] = []
    for variable in sorted(environ):
        if variable.startswith("AWS_") and is_secret(variable):
            hide_secrets(variable, environ[variable])
        if not variable.startswith(PREFIX):
            continue
        origin = Origin("environment", variable)
        text = environ[variable]
        if "__" not in variable:
            if variable in slips:
                right = PREFIX + slips[variable].replace(".", "__").upper()
                problems.append(
                    Problem(slips[variable], "the variable is not read", f"Name it {right}", text, origin)
                )
            continue
        key = variable.removeprefix(PREFIX).replace("__", ".", 1).lower()
        if not key.endswith(ENDING):
            yield from _take(key, _parse(key, text), origin, problems)
            continue
        key = key.removesuffix(ENDING)
        if (held := _read_secret(text, key, origin, problems)) is not None:
            from_files += _take(key, _parse(key, held), origin, problems)
    for one in from_files:
        plain = PREFIX + one.key.replace(".", "__").upper()
        if plain in environ:
            problems.append(Problem(one.key, _TWICE.format(plain), _ONE_OF, origin=one.origin))
        yield one


def _read_secret(name: str, key: str, origin: Origin, problems: list[Problem]) -> str | None:
    """What a file, such as those that containers mount under /run/secrets, holds; None where that is a problem.

    Without the line end that editors leave.
    """
    try:
        with Path(name).open("rb") as file:
            found = file.read(SECRET_BYTES + 1)
        if len(found) <= SECRET_BYTES:
            return found.decode("utf-8").removesuffix("\n").removesuffix("\r")
        wrong = f"the file {name} is larger than {SECRET_BYTES} bytes"
    except OSError as error:
        wrong = f"the file {name} cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        wrong = f"the file {name} is not UTF-8 text"
    except ValueError as error:
        wrong = f"{name!r} is not the name of a file: {error}"
    problems.append(Problem(key, wrong, "Name a readable file that holds only the value", origin=origin))
    return None


def from_flags(sets: Sequence[str], log_url: str | None, problems: list[Problem]) -> Iterator[Given]:
    """The values of `--set KEY=VALUE`, where the last one wins; `--log` wins over them."""
    for item in sets:
        key, equals, text = item.partition("=")
        key = key.strip()
        if not equals:
            # A slip such as `password:value`: only the name may be shown.
            given = re.split(r"[^\w.-]", item)[0] if is_secret(item) else mask_text(item)
            problems.append(Problem("--set", f"{given} has no value", "Write --set key=value"))
            continue
        yield from _take(key, _parse(key, text), Origin("flag", "--set"), problems)
    if log_url is not None:
        yield Given("log.url", log_url, Origin("flag", "--log"))


def _take(key: str, value: Any, origin: Origin, problems: list[Problem]) -> Iterator[Given]:
    """The value, if there is such a key; for a key that ends in `_file`, the secret in that file."""
    section, _, name = key.partition(".")
    if section in open_tables() and name.endswith(ENDING) and is_secret(name.removesuffix(ENDING)):
        # `kafka.sasl_plain_password_file` in the file or a flag, as `..._FILE` in the environment.
        key = key.removesuffix(ENDING)
        if (held := _read_secret(str(value), key, origin, problems)) is not None:
            hide_secrets(key, held)
            yield Given(key, held, origin)
        return
    hide_secrets(key, value)
    if key in keys() or (section in open_tables() and name):
        yield Given(key, value, origin)
    else:
        problems.append(_unknown_key(key, value, origin))


def _unknown_key(key: str, value: Any, origin: Origin) -> Problem:
    sections = {name.partition(".")[0] for name in keys()} | set(open_tables())
    if key in sections:
        remedy = f"It is a table: set its keys, {key}.NAME"
        return Problem(key, "a table cannot have a value", remedy, value, origin)
    folded = key.replace("-", "_").lower()
    meant = difflib.get_close_matches(folded, keys(), n=1, cutoff=0.6) or [
        known for known in keys() if known.partition(".")[2] == folded.rpartition(".")[2]
    ]
    remedy = f"Did you mean {' or '.join(meant)}?" if meant else "`mistakebound config show` lists the keys"
    return Problem(key, "unknown key", remedy, value, origin)


def _parse(key: str, text: str) -> Any:
    """The value that a flag's or variable's text stands for: a TOML value where the field allows it, else text."""
    if key in keys():
        allowed = keys()[key].types
    elif is_secret(key) or "username" in key or "oauth" in key:
        return text
    else:
        allowed = frozenset({bool, int, float, str})
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text
    return value if type(value) in allowed else text
