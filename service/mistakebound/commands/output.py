"""Data goes to stdout, messages to stderr. Always plain text, which reads the same in a file and on a screen."""

import json
import sys
from collections.abc import Sequence
from typing import Any


def print_message(text: str) -> None:
    """Tell the user what is not part of the answer."""
    print(text, file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """Print JSON: keys in the given order, text as it is."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def render_rate(rate: float | None) -> str:
    """Four decimals; a dash where nothing was counted."""
    return "-" if rate is None else f"{rate:.4f}"


def render_table(*rows: Sequence[Any]) -> str:
    """Columns as wide as their content, two spaces apart; the last is never padded."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    form = "  ".join(f"{{:<{width}}}" for width in widths)
    return "\n".join(form.format(*row).rstrip() for row in cells)
