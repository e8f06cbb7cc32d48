"""State to bytes and back: a shortcut past the fold, never the truth.

The content is MessagePack (floats keep their bits; nothing in it can run). A snapshot belongs to one
log: it names the topics' ids, the group and the epoch's settings, and is refused with any other.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from mistakebound.core.faults import BadSnapshot
from mistakebound.core.ledger.entries import Parked, Remembered, Waiting
from mistakebound.core.ledger.ledger import Ledger
from mistakebound.core.messages.schema import Epoch
from mistakebound.core.messages.tallies import Tallies
from mistakebound.core.model.model_snapshot import Snapshot
from mistakebound.core.records import TOPICS
from mistakebound.settings import LabelSettings, Settings

FORMAT = 1


class LedgerSnapshot(Struct, frozen=True):
    """One partition's ledger, and the positions that it stands at."""

    examples_next: int
    labels_next: int
    predictions_end: int
    outcomes_end: int
    stream_time: int
    tallies: Tallies
    waiting: list[Waiting]
    parked: list[Parked]
    remembered: list[Remembered]


class Checkpoint(Struct, frozen=True):
    """All that a worker held after one of its transactions."""

    format: int
    group: str
    topics: dict[str, str]
    """Logical topic -> id on the log."""
    settings: str
    """Digest of the settings that it was made with."""
    epochs: list[Epoch]
    """Every epoch of the log so far."""
    model: Snapshot
    updates_next: list[int]
    """Next offset to fold of each partition of `updates`."""
    ledgers: dict[int, LedgerSnapshot]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Checkpoint).decode


def settings_digest(settings: Settings) -> str:
    """SHA-256 in hex of what an epoch fixes."""
    return _digest(settings.of_epoch())


def _digest(settings: Mapping[str, Any]) -> str:
    """Settings without a value are left out, so that a new setting changes no digest until it is set."""
    given = {
        name: {key: value for key, value in section.items() if value is not None}
        if isinstance(section, Mapping)
        else section
        for name, section in settings.items()
    }
    return sha256(msgspec.json.encode(given, order="sorted")).hexdigest()


def encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    """The content of a checkpoint file."""
    return _encode(checkpoint)


def decode_checkpoint(content: bytes) -> Checkpoint:
    """Raises BadSnapshot, saying why."""
    try:
        found = _decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadSnapshot(f"the content is not a checkpoint of this version: {error}") from None
    if found.format != FORMAT:
        raise BadSnapshot(f"format {found.format} is not {FORMAT}, which this version reads")
    newest = max(found.epochs, key=lambda epoch: epoch.epoch, default=None)
    if newest is None or newest.epoch != found.model.epoch or not _made_with(found.settings, newest.settings):
        raise BadSnapshot("its newest epoch is not the one it was made in")
    return found


def _made_with(digest: str, settings: Mapping[str, Any]) -> bool:
    try:
        return _digest(settings) == digest
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError):  # not what JSON can hold
        return False


def check_belongs(checkpoint: Checkpoint, group: str, topics: Mapping[str, str], partitions: int) -> None:
    """Raises BadSnapshot unless the checkpoint was made from this log by this group."""
    if checkpoint.group != group:
        raise BadSnapshot(f"it belongs to the group {checkpoint.group!r}, not {group!r}")
    for topic in TOPICS:
        if checkpoint.topics.get(topic) != topics.get(topic):
            raise BadSnapshot(f"the topic {topic!r} is not the one it was written for: it was made anew")
    model = checkpoint.model
    for count in map(len, (checkpoint.updates_next, model.updates, model.clock, model.needed)):
        if count != partitions:
            raise BadSnapshot(f"it has {count} partitions, the log has {partitions}")
    strangers = sorted(checkpoint.ledgers.keys() - set(range(partitions)))
    if strangers:
        raise BadSnapshot(
            f"it has ledgers of the partitions {strangers}, the log has {partitions} partitions"
        )


_SAME = ("examples_next", "labels_next", "predictions_end", "outcomes_end", "stream_time", "tallies")
"""What a ledger and its snapshot call alike: the snapshot's first fields, in order."""


def freeze(ledger: Ledger) -> LedgerSnapshot:
    """A ledger as data. It shares the entries of the ledger's maps, which are immutable."""
    held = (list(entries.values()) for entries in (ledger.waiting, ledger.parked, ledger.remembered))
    return LedgerSnapshot(*(getattr(ledger, name) for name in _SAME), *held)


def thaw(frozen: LedgerSnapshot, rules: LabelSettings) -> Ledger:
    """The ledger again."""
    ledger = Ledger(rules)
    for name in _SAME:
        setattr(ledger, name, getattr(frozen, name))
    ledger.restore(frozen.waiting, frozen.parked)
    for entry in frozen.remembered:
        ledger.remember(entry.id, entry.label, entry.outcomes_floor)
    return ledger


def describe_checkpoint(checkpoint: Checkpoint) -> dict[str, Any]:
    """A summary for people, as JSON values."""
    return {
        "group": checkpoint.group,
        "epoch": checkpoint.model.epoch,
        "updates": checkpoint.model.updates,
        "clock": checkpoint.model.clock,
        "settings": checkpoint.settings,
        "partitions": {
            p: {"examples_next": one.examples_next, "labels_next": one.labels_next}
            | {name: len(getattr(one, name)) for name in ("waiting", "parked", "remembered")}
            for p, one in checkpoint.ledgers.items()
        },
    }
