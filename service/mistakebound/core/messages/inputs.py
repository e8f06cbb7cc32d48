"""Reading what users write: examples and labels, as the settings spell them.

Whatever is wrong is a BadRecord with a reason; nothing that a peer sends raises anything else.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from mistakebound.core.faults import BadRecord
from mistakebound.core.messages.columns import columns_of
from mistakebound.core.messages.crossing import tenant_of
from mistakebound.core.messages.formats.decoding import decodings
from mistakebound.core.messages.formats.schema_text import Known
from mistakebound.core.messages.json_text import read_json
from mistakebound.core.messages.labels import Carried
from mistakebound.core.messages.schema import Example, Label, encode
from mistakebound.core.records import NAME_NOT_UTF8, Headers, Record
from mistakebound.settings import FeatureSettings, LabelSettings, LabelValue, MessageSettings

ID_BYTES = 128
SHORT_ID = ID_BYTES // 4
"""So many characters never take more than `ID_BYTES`, which need not be counted then; nearly every id has fewer."""
NAMES_SHOWN = 3
NAME_SHOWN = 40
"""Bytes of a header's name that a dead letter's detail shows."""
CLASS_NAMES_BYTES = 250_000
"""Most bytes of the names of all open classes of a partition, as JSON; the tallies hold each name twice."""

_example = msgspec.json.Decoder(Example).decode
_label = msgspec.json.Decoder(Label).decode
_any = msgspec.json.Decoder().decode


class InputReader:
    """Reads examples and labels as the settings spell them."""

    def __init__(
        self, messages: MessageSettings, labels: LabelSettings, features: FeatureSettings | None = None
    ) -> None:
        """`features`: where the tenant is, and which features are read; by default all, without tenants."""
        features = features or FeatureSettings()
        self._pointers = None if messages == MessageSettings() else messages
        self.decodings = decodings(messages)
        """Of the inputs that are not JSON."""
        self._cross = features.cross
        self.columns = columns_of(features)
        """None where every feature is read."""
        self.classes: tuple[LabelValue, ...] = declared(labels)
        """As declared; of two the first is the positive one. Empty where any text is a class."""
        self._values: dict[tuple[type, Any], LabelValue] = {
            (type(value), value): value for value in self.classes
        }
        if len(self.classes) == 2 and self.classes[0] is True and self.classes[1] is False:
            self._values |= {(int, 1): True, (int, 0): False, (int, -1): False}

    def example(self, record: Record, schemas: Known | None = None) -> tuple[str, bytes, str | None]:
        """Return (id, features as JSON text, tenant where there are some). Raises BadRecord.

        `schemas`: those that records may name, where the input is not JSON.
        """
        tenant = None
        if record.headers:
            _require_names(record.headers)
        if self._pointers is None:
            message = _read(_example, record)
            raw = b"" if message.features is UNSET else bytes(message.features)
            found_id = message.id
            # Decoded a second time, so that the features stay as they were written.
            if self._cross is not None:
                tenant = tenant_of(resolve(_read(_any, record), self._cross), self._cross)
        else:
            whole = self._whole(record, schemas)
            found_id = resolve(whole, self._pointers.id)
            found = resolve(whole, self._pointers.features, UNSET)
            raw = b"" if found is UNSET else encode(found)
            if self._cross is not None:
                tenant = tenant_of(resolve(whole, self._cross), self._cross)
        if not raw or raw == b"null":
            raise BadRecord("missing-features", "no features in the example; see messages.features")
        if self.columns is not None:
            raw = self.columns.kept(raw)
        return _id(found_id, record), raw, tenant

    def label(self, record: Record, schemas: Known | None = None) -> tuple[str, LabelValue, Carried | None]:
        """Return (id, label in the declared form, what else it carries). Raises BadRecord. `schemas`: as above."""
        tenant = None
        if record.headers:
            _require_names(record.headers)
        if self._pointers is None:
            message = _read(_label, record)
            found_id, found = message.id, message.label
            features, prediction = message.features, message.prediction
            if self._cross is not None and features is not UNSET and prediction is not UNSET:
                tenant = resolve(_read(_any, record), self._cross)
        else:
            whole = self._whole(record, schemas)
            found_id = resolve(whole, self._pointers.id)
            found = resolve(whole, self._pointers.label, UNSET)
            prediction = resolve(whole, self._pointers.prediction, UNSET)
            features = UNSET if prediction is UNSET else resolve(whole, self._pointers.features, UNSET)
            features = features if features is UNSET else Raw(encode(features))
            if self._cross is not None and features is not UNSET:
                tenant = resolve(whole, self._cross)
        record_id = _id(found_id, record)
        if found is UNSET or found is None:
            raise BadRecord("missing-label", f"no label for id {record_id!r}; see messages.label")
        label = self._declared(found, "label", "unknown-label")
        if features is UNSET or prediction is UNSET:  # one without the other is of no use
            return record_id, label, None
        raw = bytes(features) if self.columns is None else self.columns.kept(bytes(features))
        return record_id, label, self._carried(raw, prediction, tenant)

    def _whole(self, record: Record, schemas: Known | None) -> Any:
        """The message, decoded."""
        decoding = self.decodings.get("labels" if record.topic == "labels" else "examples")
        return _read(_any, record) if decoding is None else decoding.decode(record, schemas)

    def _carried(self, features: bytes, prediction: Any, tenant: Any) -> Carried | None:
        """Null counts as absent, except a null prediction where classes are open: it was published as null."""
        if features == b"null" or (prediction is None and self.classes):
            return None
        if self._cross is not None and (tenant is None or tenant == ""):
            return None  # nothing can be learned from it, as without its features
        known = None if prediction is None else self._declared(prediction, "prediction", "bad-prediction")
        return Carried(features, known, None if self._cross is None else tenant_of(tenant, self._cross))

    def knows(self, label: LabelValue) -> bool:
        """Whether these settings declare a label that was accepted under others."""
        return not self.classes or label in self.classes

    def _declared(self, found: Any, name: str, reason: str) -> LabelValue:
        if type(found) is str and not self.classes:
            if len(found.encode()) > ID_BYTES:
                raise BadRecord(reason, f"the {name} takes more than {ID_BYTES} bytes; send a shorter one")
            return found
        value = self._values.get((type(found), found)) if type(found) in (bool, int, str) else None
        if value is None and type(found) is float and found.is_integer():  # 1.0 is another way to write 1
            value = self._values.get((int, int(found)))
        if value is None:
            known = ", ".join(encode(value).decode() for value in self.classes) or "any text"
            raise BadRecord(
                reason, f"{name} is {encode(found).decode()[:60]}; known: {known[:200]}; see [labels]"
            )
        return value


def declared(labels: LabelSettings) -> tuple[LabelValue, ...]:
    """The declared classes; of two the first is the positive one. Empty where any text is a class."""
    if labels.classes is None:
        return labels.positive, labels.negative
    return () if labels.classes == "open" else tuple(labels.classes)


def _require_names(headers: Headers) -> None:
    """Nothing here reads headers, but predictions and dead letters carry them on, and could not carry these."""
    if headers[0][0] != NAME_NOT_UTF8:
        return
    names = [name or b"" for head, name in headers if head == NAME_NOT_UTF8]
    shown = ", ".join(repr(name[:NAME_SHOWN]) for name in names[:NAMES_SHOWN])
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    raise BadRecord(
        "bad-header",
        f"header names that are not UTF-8: {shown}{more}; these headers are dropped, name them in UTF-8",
    )


def _read(decoder: Callable[[bytes], Any], record: Record) -> Any:
    value = record.value
    if value is None:
        raise BadRecord("tombstone", "the record has no value; send the message as JSON")
    return read_json(decoder, value)


@cache
def pointer_keys(pointer: str) -> tuple[str, ...]:
    """The names and array indexes on a pointer's way."""
    return tuple([part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]])


def resolve(value: Any, pointer: str, default: Any = None) -> Any:
    """What a JSON pointer (RFC 6901) points at in a decoded message; absent is `default`."""
    for key in pointer_keys(pointer):
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return default
    return value


def _id(found: Any, record: Record) -> str:
    if type(found) is str and 0 < len(found) <= SHORT_ID:
        return found
    if found is None:
        if record.key is None:
            raise BadRecord("missing-id", "no id in the value and no key; see messages.id")
        try:
            record_id = record.key.decode()
        except UnicodeDecodeError:
            raise BadRecord("bad-id", "no id in the value, and the key is not UTF-8") from None
    elif type(found) is str:
        record_id = found
    elif type(found) is int:
        record_id = str(found)
    else:
        raise BadRecord("bad-id", f"id is {encode(found).decode()[:60]}; send text or an integer")
    size = len(record_id.encode())
    if size == 0:
        raise BadRecord("missing-id", "the id is empty; see messages.id")
    if size > ID_BYTES:
        raise BadRecord("id-too-long", f"the id takes {size} bytes; at most {ID_BYTES} are allowed")
    return record_id
