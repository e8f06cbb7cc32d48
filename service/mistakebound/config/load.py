"""One configuration out of flags, environment, file and defaults.

1. Key by key, flags win over the environment, the environment over the file, the file over the defaults. What an
   epoch fixes may come from a log instead of from the defaults.
2. All problems (but those of values that lost) are found in one go, with key, value, origin and remedy.
3. The origin of every value is kept.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from mistakebound.config.checks import inconsistencies
from mistakebound.config.concept_files import MARK, BadConceptFile, read_tables
from mistakebound.config.keys import keys
from mistakebound.config.problems import DEFAULT, ConfigurationError, Origin, Problem
from mistakebound.config.schema_files import KEYS, BadSchemaFile, read_schema
from mistakebound.config.sources import Given, from_document, from_environment, from_file, from_flags
from mistakebound.settings import OF_EPOCH, Settings

DEFAULT_FILE = Path("mistakebound.toml")
ARGUMENT = Origin("argument", "load_settings")


@dataclass(frozen=True, slots=True)
class Loaded:
    """Checked settings, and where each value came from."""

    settings: Settings
    origins: Mapping[str, Origin]
    """For every key, those of open tables included."""


def load(config: Path | None, sets: Sequence[str], log_url: str | None, environ: Mapping[str, str]) -> Loaded:
    """Gather and check. Raises ConfigurationError with every problem found.

    `config` None means `./mistakebound.toml`, which may be missing; a file that was named must exist.
    """
    problems: list[Problem] = []
    return check(problems, _given(config, sets, log_url, environ, problems))


def is_given(
    key: str, config: Path | None, sets: Sequence[str], log_url: str | None, environ: Mapping[str, str]
) -> bool:
    """Whether a flag, a variable or the file gives it, whatever the value."""
    return any(one.key == key for one in _given(config, sets, log_url, environ, []))


def load_without_epoch(
    config: Path | None, sets: Sequence[str], log_url: str | None, environ: Mapping[str, str]
) -> Loaded:
    """The same without the sections that an epoch fixes: enough to read a log, which knows them."""
    problems: list[Problem] = []
    return check(
        problems, (one for one in _given(config, sets, log_url, environ, problems) if not _of_epoch(one))
    )


def load_costs(
    config: Path | None,
    sets: Sequence[str],
    log_url: str | None,
    environ: Mapping[str, str],
    classes: Mapping[str, Any],
) -> Loaded:
    """The same with nothing but `labels.costs`, for an epoch's classes: no epoch that does not learn from costs fixes them."""
    problems: list[Problem] = []
    known = (Given(f"labels.{name}", value, DEFAULT) for name, value in classes.items())
    given = _given(config, sets, log_url, environ, problems)
    return check(problems, known, (one for one in given if one.key == "labels.costs"))


def load_in_epoch(
    config: Path | None,
    sets: Sequence[str],
    log_url: str | None,
    environ: Mapping[str, str],
    epoch: int,
    fixed: Mapping[str, Mapping[str, Any]],
) -> Loaded:
    """The same, where an epoch's own settings (`fixed`) take the place of the defaults."""
    problems: list[Problem] = []
    origin = Origin("epoch", str(epoch))
    known = (
        Given(key, value, origin)
        for section, table in fixed.items()
        for name, value in table.items()
        if (key := f"{section}.{name}") in keys()  # a newer version may have written others
    )
    return check(problems, known, _given(config, sets, log_url, environ, problems))


def load_arguments(file: Path | None, sections: Mapping[str, Mapping[str, Any]]) -> Loaded:
    """The same for a caller in Python: `sections` win over the file. The environment is not read, nor is
    `./mistakebound.toml` unless it is named."""
    problems: list[Problem] = []
    arguments = from_document(sections, ARGUMENT, problems)
    return check(problems, () if file is None else from_file(file, "file", problems, ARGUMENT), arguments)


def _given(
    config: Path | None,
    sets: Sequence[str],
    log_url: str | None,
    environ: Mapping[str, str],
    problems: list[Problem],
) -> Iterator[Given]:
    """Later ones win."""
    path = config if config is not None else DEFAULT_FILE
    yield from from_file(path, "--config", problems, must_exist=config is not None)
    yield from from_environment(environ, problems)
    yield from from_flags(sets, log_url, problems)


def _of_epoch(one: Given) -> bool:
    return one.key.partition(".")[0] in OF_EPOCH


def check(problems: list[Problem], *sources: Iterable[Given]) -> Loaded:
    """The settings from all sources, of which later ones win. Raises ConfigurationError, for `problems` too."""
    given = {one.key: one for source in sources for one in source}
    _read_concepts(given, problems)
    _read_schemas(given, problems)
    settings, wrong = _validate(given)
    problems += wrong
    reported = {problem.key for problem in problems}
    for problem in inconsistencies(settings):
        if problem.key not in reported:
            origin = given[problem.key].origin if problem.key in given else DEFAULT
            problems.append(Problem(problem.key, problem.wrong, problem.remedy, problem.value, origin))
    if problems:
        raise ConfigurationError(problems, valid=settings)
    origins = {key: given[key].origin if key in given else DEFAULT for key in [*keys(), *given]}
    return Loaded(settings, origins)


def _read_concepts(given: dict[str, Given], problems: list[Problem]) -> None:
    """Replace a file's name by its tables: an epoch holds the tables, not where they were."""
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
        given[one.key] = Given(one.key, tables, one.origin)


def _read_schemas(given: dict[str, Given], problems: list[Problem]) -> None:
    """Replace a schema file's name by the schema: the log is to hold what its records were read by."""
    form = str(given["messages.format"].value) if "messages.format" in given else "json"
    forms = dict.fromkeys(KEYS, form)
    if "messages.labels_format" in given:
        forms["messages.labels_schema"] = str(given["messages.labels_format"].value)
    for key in KEYS:
        one = given.get(key)
        if one is None or not isinstance(one.value, str):
            continue
        try:
            given[key] = Given(key, read_schema(one.value, forms[key]), one.origin)
        except BadSchemaFile as error:
            remedy = "Name a file with one schema: .avsc, .proto or .json"
            problems.append(Problem(key, str(error), remedy, one.value, one.origin))
            del given[key]


def _validate(given: Mapping[str, Given]) -> tuple[Settings, list[Problem]]:
    """The settings from the values that are valid by themselves, and the problems of the others."""
    wrong: dict[str, list[ErrorDetails]] = {}
    try:
        return Settings.model_validate(_nest(given)), []
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            wrong.setdefault(".".join(map(str, detail["loc"][:2])), []).append(detail)
    right = {key: one for key, one in given.items() if key not in wrong}
    problems = [_invalid_value(given[key], details) for key, details in wrong.items()]
    return Settings.model_validate(_nest(right)), problems


def _nest(given: Mapping[str, Given]) -> dict[str, dict[str, Any]]:
    document: dict[str, dict[str, Any]] = {}
    for key, one in given.items():
        section, _, name = key.partition(".")
        document.setdefault(section, {})[name] = one.value
    return document


def _invalid_value(one: Given, details: Sequence[ErrorDetails]) -> Problem:
    key = keys().get(one.key)
    types = {detail["type"] for detail in details}
    wrong = " or ".join(dict.fromkeys(map(_reword, details)))
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


def _reword(detail: ErrorDetails) -> str:
    """The library's message in our words; in a table of names (`features.scale`, `labels.costs`) with the name."""
    _, key, *within = detail["loc"]
    names = within[:1] + (within[2:] if key == "costs" else [])  # the second says which form was meant
    name = f"{'.'.join(map(str, names))}: " if within and key in ("scale", "costs") else ""
    return name + detail["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
