"""JSON text from others, decoded: what is wrong with it is a BadRecord."""

from collections.abc import Callable
from typing import Any

import msgspec

from mistakebound.core.faults import BadRecord


def read_json(decoder: Callable[[bytes], Any], value: bytes) -> Any:
    """What the decoder makes of it. Raises BadRecord."""
    try:
        return decoder(value)
    except msgspec.ValidationError as error:
        text = str(error)
        if "$.id" in text:
            raise BadRecord("bad-id", f"id: {text}; send text or an integer") from None
        if "out of range" in text:
            raise BadRecord("number-out-of-range", f"{text}; send a number that float64 can hold") from None
        raise BadRecord("not-an-object", f"{text}; send a JSON object") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if value[:1] == b"\0":
            raise BadRecord(
                "schema-framing",
                "the value begins with a zero byte (schema registry); set messages.format, or send plain JSON",
            ) from None
        raise BadRecord("not-json", f"{error}; send JSON in UTF-8, without NaN or Infinity") from None
