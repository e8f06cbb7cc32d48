"""Other workers' updates, read in a thread as they are committed: all workers share one model through one topic."""

import queue
import threading
from collections.abc import Sequence
from contextlib import suppress

from mistakebound.core.model.fold import Fold
from mistakebound.core.records import Record
from mistakebound.log.protocol import Log, Refused

WAITING_BATCHES = 64
WAITING_BYTES = 64_000_000
"""Limits of what is read ahead; beyond them, reading waits for the loop."""
GIVE_UP_S = 0.2
PAUSE_S = 0.01


class Following:
    """Follows some partitions of `updates`; between two steps the loop folds what was read."""

    def __init__(self, log: Log, starts: dict[int, int]) -> None:
        """`starts`: partition -> next offset to read. Raises OffsetLost, Unreachable."""
        self._log, self._partitions = log, tuple(starts)
        self._batches = log.follow({("updates", p): start for p, start in starts.items()})
        self._read_ahead: queue.Queue[Sequence[Record] | Exception] = queue.Queue(WAITING_BATCHES)
        self._read_bytes = self._taken_bytes = 0
        """Read, and taken by the loop; each is written by one thread only."""
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._read, name="following", daemon=True)
        self._thread.start()

    def fold_into(self, fold: Fold) -> None:
        """Fold what was read since the last call, without waiting.

        Raises what ended the reading; Refused when a newer epoch began; BadLog.
        """
        while True:
            try:
                batch = self._read_ahead.get_nowait()
            except queue.Empty:
                return
            if isinstance(batch, Exception):
                raise batch
            self._taken_bytes += _size(batch)
            for record in batch:
                if not fold.fold(record.partition, (record,)):
                    raise Refused(
                        f"epoch {max(fold.epochs)} began while this worker worked in epoch {fold.model.epoch}; "
                        "start it again, with the settings of the new one"
                    )

    def behind(self, fold: Fold) -> int:
        """Offsets of the followed partitions that are not folded yet (transaction markers count)."""
        left = (self._log.high_watermark("updates", p) - fold.next_offsets[p] for p in self._partitions)
        return sum(max(0, each) for each in left)

    def close(self) -> None:
        """Stop reading. Updates that were read but not folded are dropped; they are still in the log."""
        self._closed.set()
        self._thread.join()

    def _read(self) -> None:
        try:
            for batch in self._batches:
                if batch:
                    self._read_bytes += _size(batch)
                    self._give(batch)
                while self._read_bytes - self._taken_bytes >= WAITING_BYTES and not self._closed.is_set():
                    self._closed.wait(PAUSE_S)
                if self._closed.is_set():
                    break
        except Exception as error:  # noqa: BLE001 - the loop handles it: `fold_into` raises it there
            self._give(error)
        finally:
            self._batches.close()

    def _give(self, what: Sequence[Record] | Exception) -> None:
        while not self._closed.is_set():
            with suppress(queue.Full):
                self._read_ahead.put(what, timeout=GIVE_UP_S)
                return


def _size(batch: Sequence[Record]) -> int:
    return sum(len(record.value or b"") for record in batch)
