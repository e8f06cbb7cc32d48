"""Settings loaded from a folder, an environment and flags, and the problems of those that are refused."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from mistakebound.config.load import Loaded, load
from mistakebound.config.problems import ConfigurationError, Problem


def write(text: str, name: str = "mistakebound.toml") -> Path:
    path = Path(name)
    path.write_text(text)
    return path


def load_sets(*sets: str, environ: Mapping[str, str] | None = None, config: Path | None = None) -> Loaded:
    return load(config, sets, None, environ or {})


def problems_of(
    *sets: str, environ: Mapping[str, str] | None = None, config: Path | None = None
) -> Sequence[Problem]:
    with pytest.raises(ConfigurationError) as refusal:
        load(config, sets, None, environ or {})
    return refusal.value.problems


def problem_of(*sets: str, environ: Mapping[str, str] | None = None, config: Path | None = None) -> Problem:
    problems = problems_of(*sets, environ=environ, config=config)
    assert len(problems) == 1, [str(problem) for problem in problems]
    return problems[0]
