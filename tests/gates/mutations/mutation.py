"""One way to break the code."""

from typing import NamedTuple


class Mutation(NamedTuple):
    """Replace the first `old` in a file's code by `new`."""

    what: str
    file: str
    old: str
    new: str


class Selected(NamedTuple):
    """Tests to run."""

    file: str
    """Or the id of one test; below `tests/`."""
    words: str = ""
    """Pytest's `-k`; empty for all."""


def code_of(text: str) -> tuple[str, str]:
    """A module's docstring, which may say what the code does, and the rest."""
    begins = text.index('"""', 3)
    return text[:begins], text[begins:]
