"""Reading what users write: examples and labels, as the settings spell them.

Whatever is not as it should be is a BadRecord with a reason; nothing a peer sends raises anything else.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET

from service.core.faults import BadRecord
from service.core.messages import Example, Label, encode
from service.core.records import Record
from service.settings import LabelSettings, LabelValue, MessageSettings

ID_BYTES = 128

_example = msgspec.json.Decoder(Example).decode
_label = msgspec.json.Decoder(Label).decode
_any = msgspec.json.Decoder().decode


class InputReader:
    """Reads examples and labels as the settings spell them."""

    def __init__(self, messages: MessageSettings, labels: LabelSettings) -> None:
        self._pointers = None if messages == MessageSettings() else messages
        self.classes: tuple[LabelValue, ...] = (labels.positive, labels.negative)
        """Class 0 is the positive one."""
        self._spellings: dict[tuple[type, Any], int] = {
            (type(value), value): place for place, value in enumerate(self.classes)
        }
        if self.classes == (True, False) and type(labels.positive) is bool:
            self._spellings |= {(int, 1): 0, (int, 0): 1, (int, -1): 1}

    def example(self, record: Record) -> tuple[str, bytes]:
        """Return (id, features as JSON text). Raises BadRecord."""
        value = _payload(record)
        if self._pointers is None:
            message = _checked(_example, value)
            raw = b"" if message.features is UNSET else bytes(message.features)
            found_id = message.id
        else:
            whole = _checked(_any, value)
            found_id = _resolve(whole, self._pointers.id)
            found = _resolve(whole, self._pointers.features, UNSET)
            raw = b"" if found is UNSET else encode(found)
        if not raw or raw == b"null":
            raise BadRecord("missing-features", "no features in the example; see messages.features")
        return _id(found_id, record), raw

    def label(self, record: Record) -> tuple[str, int]:
        """Return (id, class). Raises BadRecord."""
        value = _payload(record)
        if self._pointers is None:
            message = _checked(_label, value)
            found_id, found = message.id, message.label
        else:
            whole = _checked(_any, value)
            found_id = _resolve(whole, self._pointers.id)
            found = _resolve(whole, self._pointers.label, UNSET)
        identity = _id(found_id, record)
        if found is UNSET or found is None:
            raise BadRecord("missing-label", f"no label for id {identity!r}; see messages.label")
        return identity, self._class(found)

    def _class(self, found: Any) -> int:
        place = self._spellings.get((type(found), found)) if type(found) in (bool, int, str) else None
        if place is None:
            known = ", ".join(encode(value).decode() for value in self.classes)
            raise BadRecord(
                "unknown-label",
                f"label is {encode(found).decode()[:60]}; known: {known}; see labels.positive and .negative",
            )
        return place

    def class_of(self, value: LabelValue | None) -> int:
        """The class of a value in the declared form; -1 for one that these settings do not declare."""
        place = self._spellings.get((type(value), value))
        return -1 if place is None else place


def _payload(record: Record) -> bytes:
    if record.value is None:
        raise BadRecord("tombstone", "the record has no value; send the message as JSON")
    if record.value[:1] == b"\0":
        raise BadRecord(
            "schema-framing", "the value begins with a zero byte (schema registry); send plain JSON"
        )
    return record.value


def _checked(decoder: Callable[[bytes], Any], value: bytes) -> Any:
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
        raise BadRecord("not-json", f"{error}; send JSON in UTF-8, without NaN or Infinity") from None


def _resolve(value: Any, pointer: str, default: Any = None) -> Any:
    """RFC 6901. Absent is `default`."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return default
    return value


def _id(found: Any, record: Record) -> str:
    if found is None:
        if record.key is None:
            raise BadRecord("missing-id", "no id in the value and no key; see messages.id")
        try:
            identity = record.key.decode()
        except UnicodeDecodeError:
            raise BadRecord("bad-id", "no id in the value, and the key is not UTF-8") from None
    elif type(found) is str:
        identity = found
    elif type(found) is int:
        identity = str(found)
    else:
        raise BadRecord("bad-id", f"id is {encode(found).decode()[:60]}; send text or an integer")
    size = len(identity.encode())
    if size == 0:
        raise BadRecord("missing-id", "the id is empty; see messages.id")
    if size > ID_BYTES:
        raise BadRecord("id-too-long", f"the id takes {size} bytes; at most {ID_BYTES} are allowed")
    return identity
