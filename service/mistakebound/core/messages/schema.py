"""Bytes to data and back: one definition for every message, and its JSON Schema.

Inputs are anybody's and are checked (BadRecord). The worker's own records are trusted to be its own:
what it cannot read there stops it (BadLog). Messages never form cycles: gc=False as for `records.Data`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from mistakebound.core.faults import BadLog
from mistakebound.core.messages import features
from mistakebound.core.messages.formats.schema_text import SchemaText
from mistakebound.core.messages.reliability import BUCKETS
from mistakebound.core.messages.tallies import Tallies
from mistakebound.core.records import Position, Record, Topic
from mistakebound.settings import LabelValue

Share = Annotated[float, Meta(gt=0, lt=1)]
Bucket = Annotated[int, Meta(ge=0, lt=BUCKETS)]

FORMAT = 1
"""Version of the worker's own records; an unknown one stops every reader."""


# --- what users write -------------------------------------------------------------------------------


class Example(Struct, frozen=True, gc=False):
    """An unlabelled example. `features` is kept as JSON text and copied as it is."""

    id: str | int | None = None
    features: Raw | UnsetType = UNSET


class Label(Struct, frozen=True, gc=False):
    """The true label of an example, some time later; perhaps with the example's features and prediction."""

    id: str | int | None = None
    label: Any = UNSET
    features: Raw | UnsetType = UNSET
    prediction: Any = UNSET


# --- what the worker writes -------------------------------------------------------------------------


class Version(Struct, frozen=True, omit_defaults=True, gc=False):
    """A model's version: how many updates of each of the P partitions it has folded."""

    epoch: int
    updates: list[int]
    clock: list[int] | None = None
    """Averaged learners only: labelled examples of each partition known when it was used."""


class Prediction(Struct, frozen=True, kw_only=True, gc=False):
    """A published prediction. `source` is the example's offset, `at` the stream time in ms."""

    id: str
    prediction: LabelValue | None
    """Null where no class is known yet (open classes)."""
    score: float | UnsetType = UNSET
    """Two classes: positive where the first is predicted."""
    scores: list[float] | UnsetType = UNSET
    """More classes: one score for each class known, in the declared order (open classes: by name)."""
    features: Raw
    source: int
    at: int
    model: Version
    tenant: str | UnsetType = UNSET
    """Whose example it was, where `features.cross` says so; its features were learned as this tenant's."""
    again: bool | UnsetType = UNSET
    """Made later than its example was counted, because the first one was lost with a torn transaction. Where the label
    had been applied, it is the class that was judged, without a score."""
    ask: bool | UnsetType = UNSET
    """Where labels are asked for (`labels.ask`): whether this one is."""
    weight: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    """Where it is: for how many examples this one stands, in millionths."""
    probability: Share | UnsetType = UNSET
    """Of the positive class, with six decimals (`predictions.probability`)."""
    bucket: Bucket | UnsetType = UNSET
    """Of 20, by the score over the sum of the sizes of its terms: what the probability depends on."""


class _Source(Struct, frozen=True, gc=False):
    """The part of a prediction that says whether the rest is needed."""

    source: int


class Decision(Struct, frozen=True, omit_defaults=True, gc=False):
    """What became of one example or label. A label's decision has `label_offset`; an example's has not."""

    outcome: str
    id: str | None = None
    source: int | None = None
    label_offset: int | None = None
    label: LabelValue | None = None
    prediction: LabelValue | None = None
    at: int | None = None
    """Stream time in ms of a parked label: a rebuild cannot derive it."""
    features: Raw | UnsetType = UNSET
    """What the label record itself carries, where it is parked or applied late; `prediction` and `tenant` likewise."""
    first: int | None = None
    """Of input that was lost before it was read: its first offset; `source` or `label_offset` is its last."""
    weight: Annotated[int, Meta(ge=0)] | None = None
    """Where its prediction said whether the label is asked for: the example's weight; 0 where it was not."""
    tenant: str | None = None
    """Of what the label record itself carries, where `features.cross` is set."""
    probability: Share | None = None
    """Of a label: where its prediction had one, which is judged with it; `bucket` likewise."""
    bucket: Bucket | None = None


class Inputs(Struct, frozen=True, gc=False):
    """Next offsets of both inputs."""

    examples: int
    labels: int


class RecoveryPoint(
    Struct, frozen=True, gc=False, rename={"predictions": "p", "outcomes": "o", "source": "s"}
):
    """Where a rebuild begins to read: the next offsets of `predictions` and `outcomes`.

    Predictions of examples before `source` are ignored. Lower offsets are always safe. On the wire it is called
    `marks`, with the fields p, o and s.
    """

    predictions: int
    outcomes: int
    source: int


class Outcomes(Struct, frozen=True, omit_defaults=True, gc=False):
    """The decisions of one partition step, in order, in one or more parts.

    The last part alone has `order` (run lengths of examples and labels consumed, examples first),
    `at`, `inputs`, `marks` and `tallies`.
    """

    part: int
    model: Version
    decisions: list[Decision]
    order: list[int] | None = None
    at: int | None = None
    inputs: Inputs | None = None
    recovery_point: RecoveryPoint | None = field(default=None, name="marks")
    tallies: Tallies | None = None
    adopted: list[int] | None = None
    """First and last example whose prediction was there before this partition step counted it: a step whose
    transaction was torn is made again, and what it had published stays."""
    messages: dict[str, str] | None = None
    """How its inputs were read, `messages.*`, where that is other than the epoch began with."""
    schemas: dict[str, SchemaText] | None = None
    """By id: schemas that records of this partition step name and that no earlier one of the epoch had written. In parts
    of their own, before all others."""
    schemas_at: dict[str, int] | None = None
    """Last part only. Of each schema written in this epoch: an offset from which on `outcomes` has it, or a lower one."""


class Update(Struct, frozen=True, omit_defaults=True, gc=False):
    """One mistake learned from: the n-th of its partition in its epoch."""

    epoch: int
    n: int
    clock: list[int]
    id: str
    label: LabelValue
    predicted: LabelValue | None
    features: Raw
    source: int
    model: Version
    behind: int = 0
    """`issued` only: how many updates the model made after the prediction that decided this one."""
    seed: bool = False
    """Learned from data given beforehand, in an epoch of its own: not a mistake on a published prediction.
    `source` is then the number of a row, not an offset."""
    late: bool = False
    """Learned from a label record's own content, as its example was no longer held: `source` is the label's offset."""
    amount: Annotated[float, Meta(gt=0)] = 1.0
    """How much of y*x was added, as decided; absent where all of it was, as in all earlier records."""
    tenant: str | None = None
    """Whose features these are, where `features.cross` is set."""
    restarts: int = 0
    """`on_refuted` only: how often the model that learned it had started from zero."""


class Base(Struct, frozen=True):
    """The version that an epoch starts from."""

    epoch: int
    updates: list[int]


class InputTopic(Struct, frozen=True):
    """An input topic as the log knew it when an epoch began. Its id differs once it is deleted and made again."""

    name: str
    id: str
    partitions: int


class Epoch(Struct, frozen=True):
    """First record of an epoch in every partition of `updates`: the settings that fix every result."""

    epoch: int
    format: int
    settings: dict[str, Any]
    base: Base | None = None
    topics: dict[str, InputTopic] | UnsetType = UNSET
    """The topics that the group's offsets belong to, `examples` and `labels`; earlier versions did not write it."""
    messages: dict[str, str] | UnsetType = UNSET
    """How the inputs are read, `messages.*`: the JSON pointers, and the format where it is not JSON. Earlier versions did not
    write it."""


_TYPES: Mapping[Topic, tuple[type[Struct], ...]] = {
    "examples": (Example,),
    "labels": (Label,),
    "predictions": (Prediction,),
    "outcomes": (Outcomes,),
    "updates": (Update, Epoch),
}

_NEEDED = {"Example": "features", "Label": "label"}
"""The id may be the record's key instead."""

_CLASS: dict[str, Any] = {"type": ["boolean", "integer", "string"]}
_CARRIED: dict[str, Any] = {
    "if": {
        "required": ["features", "prediction"],
        "properties": {"features": {"not": {"type": "null"}}, "prediction": {"not": {"type": "null"}}},
    },
    "then": {"properties": {"features": features.SCHEMA, "prediction": _CLASS}},
}
"""Of a label, features and prediction count only together."""

encode: Callable[[Any], bytes] = msgspec.json.Encoder().encode
_prediction = msgspec.json.Decoder(Prediction).decode
_source = msgspec.json.Decoder(_Source).decode
_outcomes = msgspec.json.Decoder(Outcomes).decode
_update = msgspec.json.Decoder(Update).decode
_epoch = msgspec.json.Decoder(Epoch).decode


def schemas() -> Mapping[Topic, dict[str, Any]]:
    """JSON Schema of each topic's values. Dead letters hold whatever was sent, so they have none."""
    found: dict[Topic, dict[str, Any]] = {}
    for topic, types in _TYPES.items():
        parts, definitions = _components(types, "#/$defs/{name}")
        found[topic] = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": topic,
            **(parts[0] if len(parts) == 1 else {"anyOf": parts}),
            "$defs": definitions,
        }
    return found


def components(reference: str) -> tuple[Mapping[Topic, list[str]], dict[str, dict[str, Any]]]:
    """(names of each topic's messages, schema of each message and of what they share, by name).

    `reference` is how one names another: `#/somewhere/{name}`.
    """
    every = [each for types in _TYPES.values() for each in types]
    names = {topic: [each.__name__ for each in types] for topic, types in _TYPES.items()}
    return names, _components(every, reference)[1]


def _components(
    types: Iterable[type[Struct]], reference: str
) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """(a schema for each type, the definitions that they name)."""
    parts, definitions = msgspec.json.schema_components(types, ref_template=reference)
    for name, definition in definitions.items():
        if "features" in definition.get("properties", {}) and name != "Label":
            definition["properties"]["features"] = features.SCHEMA
        if name in _NEEDED:  # decoded as absent, so that its absence can be a reason of its own
            definition["required"] = [_NEEDED[name]]
        if name == "Label":
            definition["properties"]["label"] = _CLASS
            definition.update(_CARRIED)
    return [dict(part) for part in parts], definitions


# --- reading what the worker wrote -------------------------------------------------------------------


def _own(decoder: Callable[[bytes], Any], record: Record) -> Any:
    try:
        return decoder(record.value or b"")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadLog(
            f"{record.location} is not a record of the worker: {error}; only the worker may write this topic"
        ) from None


def read_prediction(record: Record) -> Prediction:
    """Raises BadLog."""
    return _own(_prediction, record)  # type: ignore[no-any-return]


def read_source(record: Record) -> int:
    """The source of a prediction, whose other content is passed over. Raises BadLog."""
    found: _Source = _own(_source, record)
    return found.source


def read_outcomes(record: Record) -> Outcomes:
    """Raises BadLog."""
    return _own(_outcomes, record)  # type: ignore[no-any-return]


def read_update(record: Record) -> Update | Epoch:
    """Raises BadLog, also for a format that this version does not know."""
    value = record.value or b""
    if b'"format":' in value[:64]:
        epoch: Epoch = _own(_epoch, record)
        if epoch.format != FORMAT:
            raise BadLog(
                f"{record.location} has format {epoch.format}; "
                f"this version reads {FORMAT}; upgrade the worker"
            )
        return epoch
    return _own(_update, record)  # type: ignore[no-any-return]


def read_recovery_point(position: Position) -> RecoveryPoint:
    """The recovery point in a committed position's metadata. Raises BadLog."""
    try:
        return msgspec.json.decode(position.metadata, type=RecoveryPoint)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadLog(
            f"the committed offset's metadata {position.metadata!r} holds no recovery point ({error}); "
            "somebody has set the offsets: start with --resume-from-outcomes to go on from the newest outcomes; "
            "or another program commits for this group: choose another worker.group"
        ) from None
