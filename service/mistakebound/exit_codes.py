"""The numbers with which the process ends. `commands/errors.py` says which error ends it with which."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Why the process ended. Supervisors may rely on the numbers."""

    DONE = 0
    BUG = 1
    USAGE = 2
    CHECK_FAILED = 3
    UNREACHABLE = 4
    REFUSED = 5
    SLOT_TAKEN = 6
    GAVE_UP = 7
    INTERRUPTED = 130


MEANINGS: dict[ExitCode, str] = {
    ExitCode.DONE: "done",
    ExitCode.BUG: "a bug in mistakebound",
    ExitCode.USAGE: "usage, configuration or an unreadable input file",
    ExitCode.CHECK_FAILED: "a check or an expectation failed",
    ExitCode.UNREACHABLE: "log or checkpoints unreachable, or address busy",
    ExitCode.REFUSED: "refused, to protect data",
    ExitCode.SLOT_TAKEN: "another process took the slot",
    ExitCode.GAVE_UP: "gave up rebuilding",
    ExitCode.INTERRUPTED: "interrupted",  # as shells report a process ended by Ctrl-C
}
