"""Numbers as text files spell them, by the rules of JSON, which the stream is read by.

What only Python takes for a number (`1_0`) is none. What stands for no number (NaN, Infinity) is ambiguous in a text,
and refused.
"""

from typing import Any

from msgspec import Raw


class NotFinite(ValueError):
    """A text such as `nan` or `-Infinity`: neither a number nor plainly a word."""


def read_number(text: str) -> Any:
    """The number; None where the text is none. One too large for float64 is left to the stream's reader to refuse.

    Raises NotFinite.
    """
    try:
        value = float(text)
    except ValueError:
        return None
    if value - value == 0.0:  # finite
        return value if text.isascii() and "_" not in text else None
    if text.strip().lstrip("+-")[:1] not in "0123456789.":
        raise NotFinite
    return Raw(b"1e999" if value > 0 else b"-1e999")
