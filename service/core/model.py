"""A learner at a version: the vector of how many updates of each partition it has folded.

The model is its mistakes: whoever has folded the first n_p updates of each partition p holds the one
possible model. Averaged learners also need the clock, the labelled examples of each partition known.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Raw, Struct

from service.core import features, linear
from service.core.faults import BadLog
from service.core.features import Features
from service.core.inputs import InputReader
from service.core.learners import Learner, make
from service.core.messages import FORMAT, Epoch, Update, Version, encode
from service.settings import Settings


class Snapshot(Struct, frozen=True):
    """A model's rows, names and version."""

    epoch: int
    updates: list[int]
    clock: list[int]
    rows: dict[str, list[dict[str, float]]]


class Model:
    """Mutable; a step's changes can be taken back to the bit (`begin`, `rollback`)."""

    def __init__(self, settings: Settings, partitions: int, epoch: int = 1) -> None:
        self.settings = settings
        self.reader = InputReader(settings.messages, settings.labels)
        self.learner: Learner = make(settings.learner, partitions)
        self.partitions = partitions
        self.epoch = epoch
        self.updates = [0] * partitions
        self.clock = [0] * partitions
        self._encoded: Raw | None = None
        self._before: tuple[list[int], list[int]] = (list(self.updates), list(self.clock))

    def version(self) -> Version:
        """What the next prediction is made with."""
        return Version(self.epoch, list(self.updates), list(self.clock) if self.learner.averaged else None)

    def encoded_version(self) -> Raw:
        """`version` as JSON text, made once a version."""
        if self._encoded is None:
            self._encoded = Raw(encode(self.version()))
        return self._encoded

    def digest(self) -> str:
        """SHA-256 of theta: equal versions, equal digests, on any worker, after any crash."""
        return linear.digest(self.learner.theta())

    def features(self, raw: bytes | Raw) -> Features:
        """Raises BadRecord."""
        return features.decode(raw, self.settings.features)

    def labelled(self, partition: int) -> None:
        """One more labelled example is known."""
        self.clock[partition] += 1
        if self.learner.averaged:
            self._encoded = None

    def knows(self, partition: int, labelled: int) -> None:
        """So many labelled examples of the partition are known, at least."""
        self.clock[partition] = max(self.clock[partition], labelled)
        self._encoded = None

    def learn(self, partition: int, x: Features, positive: bool) -> int:
        """Fold an own mistake; returns its number n in the partition and epoch."""
        self.updates[partition] += 1
        self._encoded = None
        self.learner.fold(partition, x, positive, sum(self.clock))
        return self.updates[partition]

    def follow(self, partition: int, update: Update) -> bool:
        """Fold a logged update, own or another worker's; False where it is known already.

        Raises BadLog on a gap: a skipped update would be a different model.
        """
        if update.epoch != self.epoch or update.n <= self.updates[partition]:
            return False
        if update.n != self.updates[partition] + 1:
            raise BadLog(
                f"updates-{partition}: update {update.n} follows {self.updates[partition]}; some are missing"
            )
        self.updates[partition] = update.n
        self.clock = [max(known, told) for known, told in zip(self.clock, update.clock, strict=True)]
        self._encoded = None
        positive = self.reader.class_of(update.label) == 0
        self.learner.fold(partition, self.features(update.features), positive, sum(update.clock))
        return True

    def inherit(self, partition: int, update: Update) -> None:
        """Fold an update of the epoch that this one is based on: as an initial weight, of no count."""
        positive = self.reader.class_of(update.label) == 0
        self.learner.fold(partition, self.features(update.features), positive, 0)
        self._encoded = None

    def begin(self) -> None:
        """What follows can be rolled back."""
        self._before = (list(self.updates), list(self.clock))
        self.learner.begin()

    def rollback(self) -> None:
        """Restore the version and the rows as they were at `begin`."""
        self.updates, self.clock = (list(counts) for counts in self._before)
        self._encoded = None
        self.learner.rollback()

    def snapshot(self) -> Snapshot:
        """The whole model, for a checkpoint. Shares its rows; encode before going on."""
        rows = {name: list(map(dict, kind)) for name, kind in self.learner.dump().items()}
        return Snapshot(self.epoch, list(self.updates), list(self.clock), rows)

    def restore(self, snapshot: Snapshot) -> None:
        """Become what `snapshot` gave."""
        self.epoch = snapshot.epoch
        self.updates, self.clock = list(snapshot.updates), list(snapshot.clock)
        self.learner.load(snapshot.rows)
        self._encoded = None


def first_epoch(settings: Settings) -> Epoch:
    """The record that begins epoch 1 in every partition of `updates`."""
    return Epoch(1, FORMAT, dict(settings.of_epoch()))


def changed_settings(epoch: Epoch, settings: Settings) -> list[str]:
    """Keys in which the epoch's settings differ from these, each with both values and no remedy."""
    return list(_differences("", epoch.settings, settings.of_epoch()))


def _differences(path: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Sequence[str]:
    found: list[str] = []
    for key in sorted({*old, *new}):
        before, now = old.get(key), new.get(key)
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            found += _differences(f"{path}{key}.", before, now)
        elif before != now or type(before) is not type(now):
            found.append(f"{path}{key} is {now!r}, the epoch has {before!r}")
    return found
