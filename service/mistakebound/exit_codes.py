"""The numbers with which the process ends. `commands/errors.py` says which error ends it with which."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Why the process ended. Supervisors may rely on the numbers."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> "ExitCode":
        """The number, with what the help says of it."""
        member = int.__new__(cls, code)
        member._value_, member.meaning = code, meaning
        return member

    DONE = 0, "done"
    BUG = 1, "a bug in mistakebound"
    USAGE = 2, "usage, configuration or an unreadable input file"
    CHECK_FAILED = 3, "a check or an expectation failed"
    UNREACHABLE = 4, "log, registry, checkpoint store or worker unreachable, or address busy"
    REFUSED = 5, "refused, to protect data"
    SLOT_TAKEN = 6, "another process took the slot"
    GAVE_UP = 7, "gave up rebuilding or draining"
    INTERRUPTED = 130, "interrupted"  # as shells report a process ended by Ctrl-C
