"""A replica of the model at any recorded version: the fold of `updates` up to there."""

from collections.abc import Mapping

from msgspec import UNSET

from mistakebound.core.audit.topics_read import Ahead, Source
from mistakebound.core.faults import BadLog, BadRecord
from mistakebound.core.learners.requirements import of_epoch
from mistakebound.core.messages.inputs import InputReader
from mistakebound.core.messages.schema import Epoch, Update, read_update
from mistakebound.core.model.model import Model
from mistakebound.core.records import Record
from mistakebound.settings import MessageSettings, Settings


def settings_of(epoch: Epoch, messages: MessageSettings) -> Settings:
    """What the epoch fixed, with the pointers into messages: its own, or `messages` where it has none. Raises BadLog."""
    pointers = messages.recorded() if epoch.messages is UNSET else epoch.messages
    try:
        found = Settings.model_validate({**epoch.settings, "messages": pointers})
    except ValueError as error:
        raise BadLog(f"the settings of epoch {epoch.epoch} are not valid: {error}") from None
    if wrong := of_epoch(found):
        raise BadLog(f"the settings of epoch {epoch.epoch} are not valid: {'; '.join(wrong)}")
    return found


class Replica:
    """One model that folds each partition of `updates` up to the number asked for, and never goes back."""

    def __init__(self, source: Source, settings: Settings, number: int, epochs: Mapping[int, Epoch]) -> None:
        """Epoch `number`, before its first update. Raises BadLog."""
        self.number = number
        self._pointers: dict[str, str] | None = None
        self._base = _base_versions(epochs[number], epochs)
        self.model = Model(settings, source.partitions, number)
        self.model.begin(undoable=False)
        self.model.based = bool(self._base)
        self.last_offset = [-1] * source.partitions
        """Offset of the last record folded, or of the epoch's own, in each partition."""
        self._ahead = [Ahead(source.read("updates", p)) for p in range(source.partitions)]
        self._next: list[Update | None] = [None] * source.partitions
        for partition in range(source.partitions):
            self._open(partition)

    def _open(self, partition: int) -> None:
        """Read up to the epoch's beginning; what it is based on comes before it."""
        folded = dict.fromkeys(self._base, 0)
        while (record := self._ahead[partition].take()) is not None:
            message = read_update(record)
            if isinstance(message, Update):
                known = folded.get(message.epoch)
                if known is not None and known < message.n <= self._base[message.epoch][partition]:
                    folded[message.epoch] = message.n
                    self.model.inherit(partition, message)
            elif message.epoch == self.number:
                self.last_offset[partition] = record.offset
                break
        self._look(partition)

    def _look(self, partition: int) -> None:
        record = self._ahead[partition].peek()
        self._next[partition] = None if record is None else self._update(record)

    def _update(self, record: Record) -> Update | None:
        message = read_update(record)
        if isinstance(message, Epoch):
            return None
        size = self.model.partitions
        if message.epoch != self.number or len(message.clock) != size or len(message.model.updates) != size:
            raise BadLog(f"{record.location} is not an update of epoch {self.number} of {size} partitions")
        return message

    def read_by(self, pointers: dict[str, str] | None) -> None:
        """Read inputs by these pointers; None: by those that the epoch began with. Raises BadLog."""
        if pointers == self._pointers:
            return
        settings = self.model.settings
        try:
            messages = settings.messages if pointers is None else MessageSettings.model_validate(pointers)
        except ValueError as error:
            raise BadLog(f"the pointers {pointers} are not valid: {error}") from None
        self.model.reader = InputReader(messages, settings.labels, settings.features)
        self._pointers = pointers

    def peek(self, partition: int) -> tuple[Record, Update] | None:
        """The next update of this epoch, with its record."""
        record, update = self._ahead[partition].peek(), self._next[partition]
        return None if record is None or update is None else (record, update)

    def next_offset(self, partition: int) -> int | None:
        """Offset of the next record of `updates`; None at the end."""
        record = self._ahead[partition].peek()
        return None if record is None else record.offset

    def fold(self, partition: int) -> None:
        """Fold the next update; a number that comes again counts once, and a gap is skipped."""
        update = self._next[partition]
        record = self._ahead[partition].take()
        assert update is not None
        assert record is not None
        self.last_offset[partition] = record.offset
        self._look(partition)
        if update.n <= self.model.updates[partition]:
            return
        self.model.updates[partition] = update.n - 1
        try:
            self.model.follow(partition, update)
        except BadRecord as error:
            raise BadLog(f"{record.location}: its features cannot be learned from ({error})") from None

    def reach(self, partition: int, updates: int) -> bool:
        """Fold up to this number of updates of the partition; returns whether the log has that many."""
        while self.model.updates[partition] < updates and self._next[partition] is not None:
            self.fold(partition)
        return self.model.updates[partition] == updates


def _base_versions(epoch: Epoch, epochs: Mapping[int, Epoch]) -> dict[int, list[int]]:
    """Base epoch -> how many of its updates of each partition count."""
    versions: dict[int, list[int]] = {}
    while epoch.base is not None and epoch.base.epoch in epochs and epoch.base.epoch not in versions:
        versions[epoch.base.epoch] = list(epoch.base.updates)
        epoch = epochs[epoch.base.epoch]
    return versions
