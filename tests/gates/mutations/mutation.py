"""One way to break the code."""

from typing import NamedTuple


class Mutation(NamedTuple):
    """Replace the first `old` in a file's code by `new`."""

    what: str
    file: str
    old: str
    new: str


SERVICE = "service/mistakebound/"


class Guard(NamedTuple):
    """A line on which exactly-once rests, and what must notice that it is broken."""

    what: str
    """What is wrong then."""
    file: str
    """Below `service/mistakebound/`."""
    old: str
    """Once in the file's code."""
    new: str
    test: str
    """The id of a quick test, below `tests/`."""

    @property
    def mutation(self) -> Mutation:
        return Mutation(self.what, SERVICE + self.file, self.old, self.new)


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
