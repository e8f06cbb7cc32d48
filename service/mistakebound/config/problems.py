"""What is wrong with a configuration: every problem at once, each with its remedy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mistakebound.config.keys import render_toml
from mistakebound.config.masking import mask, mask_text


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

    def __init__(self, problems: Sequence[Problem], example: str = "") -> None:
        self.problems = tuple(problems)
        self.example = example
        plural = "" if len(self.problems) == 1 else "s"
        lines = [
            f"{len(self.problems)} problem{plural} in the configuration:",
            *map("  {}".format, self.problems),
        ]
        super().__init__("\n".join([*lines, "", example] if example else lines))
