"""What is wrong with a configuration: every problem at once, each with its remedy."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mistakebound.config.masking import mask, mask_text


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value came from."""

    kind: Literal["flag", "argument", "environment", "file", "default"]
    name: str = ""
    """The flag, the function, the variable or the file's path."""

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
        given = "" if self.value is None else f" = {_render_value(self.key, self.value)}"
        source = "" if self.origin == DEFAULT else f" ({self.origin})"
        return f"{self.key}{given}{source}: {mask_text(self.wrong)}. {mask_text(self.remedy)}"


def _render_value(key: str, value: Any) -> str:
    shown = mask(key, value)
    if isinstance(shown, str):
        return f'"{shown}"' if len(shown) <= 200 else f'"{shown[:200]}..."'
    if isinstance(shown, bool):
        return "true" if shown else "false"
    if isinstance(shown, list | dict):
        text = json.dumps(shown, ensure_ascii=False)
        return text if len(text) <= 200 else text[:200] + "..."
    return str(shown)


class ConfigurationError(Exception):
    """The configuration cannot be used (exit code 2). Holds all problems; the text has one a line."""

    def __init__(self, problems: Sequence[Problem], example: str = "") -> None:
        self.problems = tuple(problems)
        self.example = example
        count = len(self.problems)
        lines = [
            "1 problem in the configuration:" if count == 1 else f"{count} problems in the configuration:"
        ]
        lines += [f"  {problem}" for problem in self.problems]
        if example:
            lines += ["", example]
        super().__init__("\n".join(lines))
