"""SIGTERM and SIGINT before a worker has begun, while its modules load: nothing was touched, so the process ends with 0.

Imports next to nothing, so that it stands before anything else does. Without it the process would end by the signal
itself, which a supervisor takes for a crash. `process.stop_on_signals` takes over from here.
"""

import signal
from types import FrameType

_NUMBERS = (signal.SIGINT, signal.SIGTERM)
_asked: list[int] = []


def install() -> None:
    """From now on either signal ends the process with 0."""
    for number in _NUMBERS:
        signal.signal(number, _end)


def was_asked() -> bool:
    """Whether a signal came, in case the exception was lost in code that ignores all."""
    return bool(_asked)


def ignore() -> None:
    """The work is over and the exit code is known: a signal changes neither any more."""
    for number in _NUMBERS:
        signal.signal(number, signal.SIG_IGN)


def _end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    _asked.append(number)
    raise SystemExit(0)
