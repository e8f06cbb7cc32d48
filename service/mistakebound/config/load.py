"""One configuration out of flags, environment, file and defaults.

1. Flags win over environment, environment over file, file over default; key by key.
2. All problems are found in one go, shadowed values excepted, each with key, value, origin and remedy.
3. The origin of every value is kept.

The only place that reads `MISTAKEBOUND_*` variables; nothing is read at import.
"""

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from mistakebound.config.checks import inconsistencies
from mistakebound.config.concept_files import MARK, BadConceptFile, read_tables
from mistakebound.config.keys import keys, open_tables
from mistakebound.config.masking import hide_secrets, is_secret, mask_text
from mistakebound.config.problems import DEFAULT, ConfigurationError, Origin, Problem
from mistakebound.config.secret_files import ENDING, BadSecretFile, read_secret
from mistakebound.settings import Settings

DEFAULT_FILE = Path("mistakebound.toml")
PREFIX = "MISTAKEBOUND_"
ARGUMENT = Origin("argument", "load_settings")


@dataclass(frozen=True, slots=True)
class Loaded:
    """Checked settings, and where each value came from."""

    settings: Settings
    origins: Mapping[str, Origin]
    """For every key, those of open tables included."""


@dataclass(frozen=True, slots=True)
class _Given:
    """A value as given for a key, from one place."""

    key: str
    value: Any
    origin: Origin


def load(config: Path | None, sets: Sequence[str], log_url: str | None, environ: Mapping[str, str]) -> Loaded:
    """Gather and check. Raises ConfigurationError with every problem found.

    `config` None means `./mistakebound.toml`, which may be missing; a file that was named must exist.
    """
    problems: list[Problem] = []
    path = config if config is not None else DEFAULT_FILE
    return _check(
        problems,
        _from_file(path, "--config", problems, must_exist=config is not None),
        _from_environment(environ, problems),
        _from_flags(sets, log_url, problems),
    )


def load_arguments(file: Path | None, sections: Mapping[str, Mapping[str, Any]]) -> Loaded:
    """The same for a caller in Python: `sections` win over the file. The environment is not read, nor is
    `./mistakebound.toml` unless it is named."""
    problems: list[Problem] = []
    arguments = _from_document(sections, ARGUMENT, problems)
    return _check(problems, () if file is None else _from_file(file, "file", problems, ARGUMENT), arguments)


def _check(problems: list[Problem], *sources: Iterable[_Given]) -> Loaded:
    """Settings of all that was given, later sources first. Raises ConfigurationError."""
    given = {one.key: one for source in sources for one in source}
    _read_concepts(given, problems)
    settings, wrong = _validate(given)
    problems += wrong
    reported = {problem.key for problem in problems}
    for problem in inconsistencies(settings):
        if problem.key not in reported:
            origin = given[problem.key].origin if problem.key in given else DEFAULT
            problems.append(Problem(problem.key, problem.wrong, problem.remedy, problem.value, origin))
    if problems:
        raise ConfigurationError(problems)
    origins = {key: given[key].origin if key in given else DEFAULT for key in [*keys(), *given]}
    return Loaded(settings, origins)


def _read_concepts(given: dict[str, _Given], problems: list[Problem]) -> None:
    """Put the tables in the place of the file's name: an epoch holds what was meant, not where it was."""
    one = given.get("learner.concepts")
    if one is None or not isinstance(one.value, str) or not one.value.startswith(MARK):
        return
    try:
        tables = read_tables(one.value.removeprefix(MARK))
    except BadConceptFile as error:
        remedy = "Write one table of 0 and 1 a line, # before a comment"
        problems.append(Problem(one.key, str(error), remedy, one.value, one.origin))
        del given[one.key]
    else:
        given[one.key] = _Given(one.key, tables, one.origin)


def _from_file(
    path: Path, named_by: str, problems: list[Problem], named_in: Origin = DEFAULT, *, must_exist: bool = True
) -> Iterator[_Given]:
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
        yield from _from_document(document, Origin("file", str(path)), problems)
        return
    problems.append(Problem(named_by, wrong, remedy, str(path), named_in))


def _from_document(document: Mapping[str, Any], origin: Origin, problems: list[Problem]) -> Iterator[_Given]:
    for section, table in document.items():
        if not isinstance(table, Mapping):
            problems.append(_unknown_key(section, table, origin))
            continue
        for name, value in table.items():
            if name.endswith(ENDING) and name.removesuffix(ENDING) in table and section in open_tables():
                key = f"{section}.{name.removesuffix(ENDING)}"
                problems.append(Problem(key, _TWICE.format(f"{key}{ENDING}"), _ONE_OF, origin=origin))
                continue
            yield from _known(f"{section}.{name}", value, origin, problems)


def _from_environment(environ: Mapping[str, str], problems: list[Problem]) -> Iterator[_Given]:
    """`MISTAKEBOUND_SECTION__KEY`, or with `_FILE` after it the name of a file that holds the value.

    Variables without `__` are left alone (Kubernetes sets such for a service of this name), but for
    those that spell a key with one underscore too few.
    """
    slips = {PREFIX + key.replace(".", "_").upper(): key for key in keys()}
    from_files: list[_Given] = []
    for variable in sorted(environ):
        if variable.startswith("AWS_") and is_secret(variable):
            hide_secrets(variable, environ[variable])
        origin = Origin("environment", variable)
        text = environ[variable]
        if not variable.startswith(PREFIX):
            continue
        if "__" not in variable:
            if variable in slips:
                right = PREFIX + slips[variable].replace(".", "__").upper()
                problems.append(
                    Problem(slips[variable], "the variable is not read", f"Name it {right}", text, origin)
                )
            continue
        key = variable.removeprefix(PREFIX).replace("__", ".", 1).lower()
        if not key.endswith(ENDING):
            yield from _known(key, _parse(key, text), origin, problems)
            continue
        key = key.removesuffix(ENDING)
        if (held := _read_secret(text, key, origin, problems)) is not None:
            from_files += _known(key, _parse(key, held), origin, problems)
    for one in from_files:
        plain = PREFIX + one.key.replace(".", "__").upper()
        if plain in environ:
            problems.append(Problem(one.key, _TWICE.format(plain), _ONE_OF, origin=one.origin))
        yield one


_TWICE = "given twice, {} is set too"
_ONE_OF = "Take one of the two away"


def _read_secret(name: str, key: str, origin: Origin, problems: list[Problem]) -> str | None:
    """What the file of this name holds; None where that is a problem."""
    try:
        return read_secret(name)
    except BadSecretFile as error:
        remedy = "Name a readable file that holds only the value"
        problems.append(Problem(key, str(error), remedy, origin=origin))
        return None


def _from_flags(sets: Sequence[str], log_url: str | None, problems: list[Problem]) -> Iterator[_Given]:
    for item in sets:
        key, equals, text = item.partition("=")
        key = key.strip()
        if not equals:
            # Of a slip such as `password:value` only the name may be shown.
            name = re.match(r"[\w.-]*", item)
            given = name.group() if name is not None and is_secret(item) else mask_text(item)
            problems.append(Problem("--set", f"{given} has no value", "Write --set key=value"))
            continue
        yield from _known(key, _parse(key, text), Origin("flag", "--set"), problems)
    if log_url is not None:
        yield _Given("log.url", log_url, Origin("flag", "--log"))


def _known(key: str, value: Any, origin: Origin, problems: list[Problem]) -> Iterator[_Given]:
    section, _, name = key.partition(".")
    if section in open_tables() and name.endswith(ENDING) and is_secret(name):
        # `kafka.sasl_plain_password_file` in the file or a flag, as `..._FILE` in the environment.
        key = key.removesuffix(ENDING)
        if (held := _read_secret(str(value), key, origin, problems)) is not None:
            hide_secrets(key, held)
            yield _Given(key, held, origin)
        return
    hide_secrets(key, value)
    if key in keys() or (section in open_tables() and name):
        yield _Given(key, value, origin)
    else:
        problems.append(_unknown_key(key, value, origin))


def _unknown_key(key: str, value: Any, origin: Origin) -> Problem:
    sections = {name.partition(".")[0] for name in keys()} | set(open_tables())
    if key in sections:
        remedy = f"It is a table: set its keys, {key}.NAME"
        return Problem(key, "a table cannot have a value", remedy, value, origin)
    folded = key.replace("-", "_").lower()
    near = difflib.get_close_matches(folded, keys(), n=1, cutoff=0.6)
    same_name = [known for known in keys() if known.partition(".")[2] == folded.rpartition(".")[2]]
    if near:
        remedy = f"Did you mean {near[0]}?"
    elif same_name:
        remedy = f"Did you mean {' or '.join(same_name)}?"
    else:
        remedy = "`mistakebound config show` lists the keys"
    return Problem(key, "unknown key", remedy, value, origin)


def _parse(key: str, text: str) -> Any:
    """A flag's or variable's text as the value meant: a TOML scalar where the field allows it, else text."""
    if key in keys():
        allowed = keys()[key].types
    elif is_secret(key) or "username" in key:
        return text
    else:
        allowed = frozenset({bool, int, float, str})
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text
    return value if type(value) in allowed else text


def _validate(given: Mapping[str, _Given]) -> tuple[Settings, list[Problem]]:
    """Settings of all that is right by itself, and the problems of the rest."""
    try:
        return Settings.model_validate(_nest(given)), []
    except ValidationError as error:
        details = error.errors(include_url=False)
    grouped: dict[str, list[ErrorDetails]] = {}
    for detail in details:
        key = ".".join(str(part) for part in detail["loc"][:2])
        grouped.setdefault(key, []).append(detail)
    problems = [_invalid_value(given[key], found) for key, found in grouped.items()]
    return Settings.model_validate(
        _nest({key: one for key, one in given.items() if key not in grouped})
    ), problems


def _nest(given: Mapping[str, _Given]) -> dict[str, dict[str, Any]]:
    document: dict[str, dict[str, Any]] = {}
    for key, one in given.items():
        section, _, name = key.partition(".")
        document.setdefault(section, {})[name] = one.value
    return document


def _invalid_value(one: _Given, details: Sequence[ErrorDetails]) -> Problem:
    key = keys().get(one.key)
    types = {detail["type"] for detail in details}
    wrong = " or ".join(dict.fromkeys(_name_in_table(detail) + _reword(detail["msg"]) for detail in details))
    if key is None:
        remedy = "`mistakebound config schema` says what it may be"
    elif key.choices:
        near = difflib.get_close_matches(str(one.value), key.choices, n=1)
        remedy = f"Did you mean {near[0]}?" if near else f"Choose one of {', '.join(key.choices)}"
    elif any("time_delta" in kind for kind in types):
        wrong, remedy = "not a duration", "Write seconds (3600) or ISO 8601 (PT1H, P7D)"
    elif "string_pattern_mismatch" in types:
        wrong, remedy = "not a JSON pointer", "Write one such as /id or /payload/id"
    else:
        remedy = f"Meaning: {key.meaning}"
    return Problem(one.key, wrong, remedy, one.value, one.origin)


def _name_in_table(detail: ErrorDetails) -> str:
    """Where in a table of names the wrong value is."""
    within = detail["loc"][2:]
    return f"{within[0]}: " if within and detail["loc"][1] == "scale" else ""


def _reword(text: str) -> str:
    return text.removeprefix("Value error, ").replace("Input should be", "must be")
