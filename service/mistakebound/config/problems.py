"""What is wrong with a configuration: every problem at once, each with its remedy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mistakebound.config.keys import render_toml
from mistakebound.config.masking import mask, mask_text
from mistakebound.settings import Settings


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value came from."""

    kind: Literal["flag", "argument", "environment", "file", "epoch", "default"]
    name: str = ""
    """The flag, the function, the variable, the file's path or the epoch's number."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".rstrip()


DEFAULT = Origin("default")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong. The value is masked when shown."""

    key: str
    """As TOML spells it: `labels.max_delay`."""
    wrong: str
    remedy: str
    value: Any = None
    """None where no value was given."""
    origin: Origin = DEFAULT

    def __str__(self) -> str:
        value = render_toml(mask(self.key, self.value))
        given = "" if self.value is None else f" = {value[:200]}{'...' if len(value) > 200 else ''}"
        source = "" if self.origin == DEFAULT else f" ({self.origin})"
        return f"{self.key}{given}{source}: {mask_text(self.wrong)}. {mask_text(self.remedy)}"


class ConfigurationError(ValueError):
    """The configuration cannot be used (exit code 2). Holds all problems; its text has a line for each."""

    def __init__(self, problems: Sequence[Problem], example: str = "", valid: Settings | None = None) -> None:
        """`valid`: the settings without those that have a problem by themselves."""
        self.problems = tuple(problems)
        self.example = example
        self.valid = valid or Settings()
        super().__init__(listed(self.problems, example))


def listed(problems: Sequence[Problem | str], example: str = "") -> str:
    """All problems as one text, with a line for each."""
    plural = "" if len(problems) == 1 else "s"
    lines = [f"{len(problems)} problem{plural} in the configuration:", *map("  {}".format, problems)]
    return "\n".join([*lines, "", example] if example else lines)
