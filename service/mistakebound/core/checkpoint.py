"""State to bytes and back: a shortcut for the fold, never the truth.

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
    """What is not set does not count, so that a new setting changes no digest until it is set."""
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
        raise BadSnapshot(f"the content is no checkpoint of this version: {error}") from None
    if found.format != FORMAT:
        raise BadSnapshot(f"format {found.format} is not {FORMAT}, which this version reads")
    newest = max(found.epochs, key=lambda epoch: epoch.epoch, default=None)
    if newest is None or newest.epoch != found.model.epoch or not _made_with(found.settings, newest.settings):
        raise BadSnapshot("its newest epoch is not the one that it was made in")
    return found


def _made_with(digest: str, settings: Mapping[str, Any]) -> bool:
    try:
        return _digest(settings) == digest
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError):  # no settings that JSON can hold
        return False


def check_belongs(checkpoint: Checkpoint, group: str, topics: Mapping[str, str], partitions: int) -> None:
    """Raises BadSnapshot unless the checkpoint was made from this log by this group."""
    if checkpoint.group != group:
        raise BadSnapshot(f"it belongs to the group {checkpoint.group!r}, not {group!r}")
    for topic in TOPICS:
        if checkpoint.topics.get(topic) != topics.get(topic):
            raise BadSnapshot(f"the topic {topic!r} is another one than when it was written")
    model = checkpoint.model
    for count in map(len, (checkpoint.updates_next, model.updates, model.clock, model.needed)):
        if count != partitions:
            raise BadSnapshot(f"it has {count} partitions, the log has {partitions}")
    strangers = sorted(checkpoint.ledgers.keys() - set(range(partitions)))
    if strangers:
        raise BadSnapshot(
            f"it has ledgers of the partitions {strangers}, the log has {partitions} partitions"
        )


def freeze(ledger: Ledger) -> LedgerSnapshot:
    """A ledger as data. Shares its maps' entries, which are immutable."""
    return LedgerSnapshot(
        ledger.examples_next,
        ledger.labels_next,
        ledger.predictions_end,
        ledger.outcomes_end,
        ledger.stream_time,
        ledger.tallies,
        list(ledger.waiting.values()),
        list(ledger.parked.values()),
        list(ledger.remembered.values()),
    )


def thaw(frozen: LedgerSnapshot, rules: LabelSettings) -> Ledger:
    """The ledger again."""
    ledger = Ledger(rules)
    ledger.examples_next, ledger.labels_next = frozen.examples_next, frozen.labels_next
    ledger.predictions_end, ledger.outcomes_end = frozen.predictions_end, frozen.outcomes_end
    ledger.stream_time, ledger.tallies = frozen.stream_time, frozen.tallies
    ledger.restore(frozen.waiting, frozen.parked)
    for entry in frozen.remembered:
        ledger.remember(entry.id, entry.label, entry.outcomes_floor)
    return ledger


def describe_checkpoint(checkpoint: Checkpoint) -> dict[str, Any]:
    """What a person wants to know of it, as JSON values."""
    return {
        "group": checkpoint.group,
        "epoch": checkpoint.model.epoch,
        "updates": checkpoint.model.updates,
        "clock": checkpoint.model.clock,
        "settings": checkpoint.settings,
        "partitions": {
            p: {
                "examples_next": one.examples_next,
                "labels_next": one.labels_next,
                "waiting": len(one.waiting),
                "parked": len(one.parked),
                "remembered": len(one.remembered),
            }
            for p, one in checkpoint.ledgers.items()
        },
    }
