"""The fold of `updates` to a model: the same for every reader, whenever and however often it is done.

An epoch begins with a record in every partition. Updates of older epochs count only where the new epoch
is based on one: then its rows start from that version, folded with clock 0, as initial weights that no
example of the new epoch has paid for.
"""

from collections.abc import Iterable

from mistakebound.core.faults import BadLog
from mistakebound.core.messages.schema import Epoch, Update, read_update
from mistakebound.core.model.model import Model
from mistakebound.core.model.model_snapshot import Snapshot
from mistakebound.core.model.settings_diff import changes, going_on
from mistakebound.core.records import Record
from mistakebound.settings import Settings


class Fold:
    """Folds all partitions of `updates`; a newer epoch on the way asks for a fresh start.

    Updates of an epoch with other settings are passed over unread: these settings may not even accept
    their features. Whoever folds to the end must then refuse that epoch.
    """

    def __init__(self, settings: Settings, partitions: int, epochs: Iterable[Epoch] = ()) -> None:
        self.epochs: dict[int, Epoch] = {epoch.epoch: epoch for epoch in epochs}
        newest = max(self.epochs, default=0)
        settings = going_on(settings, self.epochs[newest].settings) if newest else settings
        self.model = Model(settings, partitions, newest)
        self.next_offsets = [0] * partitions
        self._inherited = self._base_versions()
        self.model.based = bool(self._inherited)
        self._foreign = self._differs()
        self._folded: dict[tuple[int, int], int] = {}

    @property
    def epoch(self) -> Epoch | None:
        """The newest epoch; None before the first."""
        return self.epochs.get(self.model.epoch)

    def restore(self, snapshot: Snapshot, next_offsets: list[int]) -> None:
        """Go on from a checkpoint of the newest epoch known here. Raises BadSnapshot."""
        assert snapshot.epoch == self.model.epoch
        self.next_offsets = list(next_offsets)
        if self._foreign:
            return
        self.model.restore(snapshot)
        for epoch, versions in self._inherited.items():
            self._folded |= {(epoch, p): n for p, n in enumerate(versions)}

    def fold(self, partition: int, records: Iterable[Record]) -> bool:
        """Fold records in log order. False: an epoch newer than all known began; start afresh with `epochs`.

        The first epoch asks for that too where it goes on with other settings than were given (`going_on`).

        Raises BadLog.
        """
        self.model.begin(undoable=False)
        for record in records:
            message = read_update(record)
            if isinstance(message, Epoch):
                if message.epoch not in self.epochs:
                    self.epochs[message.epoch] = message
                    if self.model.epoch != 0:
                        return False
                    if going_on(self.model.settings, message.settings) is not self.model.settings:
                        return False
                    self.model.epoch = message.epoch
                    self._inherited = self._base_versions()
                    self._foreign = self._differs()
                    if self._inherited:
                        return False
            elif self._foreign:
                pass
            elif message.epoch in self._inherited:
                self._inherit(partition, message)
            else:
                self.model.follow(partition, message)
            self.next_offsets[partition] = record.offset + 1
        return True

    def must_be_whole(self) -> None:
        """Raises BadLog where updates are missing that the epoch is based on."""
        for epoch, versions in () if self._foreign else self._inherited.items():
            for p, n in enumerate(versions):
                known = self._folded.get((epoch, p), 0)
                if known < n:
                    raise BadLog(
                        f"updates-{p} holds {known} of the {n} updates of epoch {epoch} on which the present epoch "
                        "is based; a topic was truncated or written by others"
                    )

    def _inherit(self, partition: int, update: Update) -> None:
        known = self._folded.get((update.epoch, partition), 0)
        if known < update.n <= self._inherited[update.epoch][partition]:
            if update.n != known + 1:
                raise BadLog(f"updates-{partition}: update {update.n} follows {known}; some are missing")
            self._folded[update.epoch, partition] = update.n
            self.model.inherit(partition, update)

    def _differs(self) -> bool:
        epoch = self.epoch
        return epoch is not None and bool(changes(epoch.settings, self.model.settings.of_epoch()))

    def _base_versions(self) -> dict[int, list[int]]:
        """Epoch -> how many of its updates of each partition count, for every epoch below the newest."""
        versions: dict[int, list[int]] = {}
        epoch = self.epochs.get(self.model.epoch)
        while epoch is not None and epoch.base is not None:
            versions[epoch.base.epoch] = list(epoch.base.updates)
            epoch = self.epochs.get(epoch.base.epoch)
        return versions
