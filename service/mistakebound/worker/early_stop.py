"""SIGTERM and SIGINT before a worker has begun, while its modules load: nothing was touched, so the process ends with 0.

Imports next to nothing, so that it stands before anything else does. Without it the process would end by the signal
itself, which a supervisor takes for a crash. `process.stop_on_signals` takes over from here.
"""

import os
import signal
from types import FrameType

from mistakebound.exit_codes import ExitCode

_NUMBERS = (signal.SIGINT, signal.SIGTERM)


def install() -> None:
    """From now on either signal ends the process with 0."""
    for number in _NUMBERS:
        signal.signal(number, end)


def end_on_interrupt() -> None:
    """For all other verbs: SIGINT ends the process quietly, with the code of one that was interrupted.

    Without it a user who has enough would be shown the middle of some import. Where whoever started the process has it
    ignore SIGINT, as a shell does for what runs in the background, it stays ignored.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def hear_interrupts() -> None:
    """All is loaded that a verb is found by: from now on SIGINT is an exception, and what is open is closed."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def ignore() -> None:
    """The work is over and the exit code is known: a signal changes neither any more."""
    for number in _NUMBERS:
        signal.signal(number, signal.SIG_IGN)


def end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    """End the process, well.

    Not by an exception: what is being imported could keep it, or turn it into another. Python makes a RuntimeError of one
    that comes amid `__set_name__`, as where numpy builds its classes.
    """
    os._exit(ExitCode.DONE)


def _leave(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    os._exit(ExitCode.INTERRUPTED)
