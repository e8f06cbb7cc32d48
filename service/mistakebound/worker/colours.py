"""Whether a stream is to be coloured, as terminals and their users say; and the few colours there are."""

import os
from typing import Literal, TextIO

Style = Literal["heading", "name", "good", "doubtful", "bad"]
_CODES: dict[Style, str] = {"heading": "1", "name": "36", "good": "32", "doubtful": "33", "bad": "31"}


def are_wanted(stream: TextIO) -> bool:
    """NO_COLOR wins over FORCE_COLOR, as in Python's own tracebacks; with neither, a terminal that has colours is asked."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def paint(text: str, style: Style, stream: TextIO) -> str:
    """The text in this style where the stream is to be coloured, else as it is."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if text and are_wanted(stream) else text
