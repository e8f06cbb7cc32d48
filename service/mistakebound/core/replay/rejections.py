"""What a replay could not use, and why: counted by stream and reason, with the first of each.

A worker counts the same in its metrics, and the record is in `dead-letters`. A replay keeps neither.
"""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import replace

from mistakebound.core.messages.schema import read_outcomes
from mistakebound.core.records import Outgoing, Record, Stream
from mistakebound.core.replay.replay import Row
from mistakebound.core.reporting.report import Place, Rejected
from mistakebound.core.step.step import Step

DUPLICATE_ID = "duplicate-id"
"""Of a stream a second example is a retry, and no fault; of labelled data it is a row that would be lost."""


class Rejections:
    """Shown every step of a recording's replay."""

    def __init__(self) -> None:
        self._found: dict[tuple[Stream, str], Rejected] = {}

    def see(self, step: Step) -> None:
        """Count what became a dead letter."""
        if step.facts.rejected:
            for output in step.transaction.outputs:
                if output.topic == "dead-letters":
                    self._dead_letter(output)

    def count(self, stream: Stream, reason: str, place: Place, detail: str) -> None:
        """One more."""
        known = self._found.get((stream, reason)) or Rejected(stream, reason, 0, place, detail)
        self._found[stream, reason] = replace(known, count=known.count + 1)

    def found(self) -> tuple[Rejected, ...]:
        """Examples first, then what is most frequent."""
        return tuple(
            sorted(self._found.values(), key=lambda one: (one.stream != "examples", -one.count, one.reason))
        )

    def _dead_letter(self, output: Outgoing) -> None:
        told = {
            name: (value or b"").decode(errors="replace")
            for name, value in output.headers
            if name in _HEADERS
        }
        reason, detail, topic, partition, offset = (told[name] for name in _HEADERS)
        stream: Stream = "labels" if topic == "labels" else "examples"
        self.count(stream, reason, self._place(int(partition), int(offset)), detail)

    def _place(self, partition: int, offset: int) -> Place:
        return Place(partition=partition, offset=offset)


class RowRejections(Rejections):
    """Shown every step of one pass over labelled data; a row whose id came before counts, too."""

    def __init__(self, partitions: int) -> None:
        super().__init__()
        self._partitions = partitions
        self._lines = array("q")
        """Of each row so far, 0 where it is not known: a place in the stream means nothing to a file's reader."""

    def numbered(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The rows, as they are; their lines are kept."""
        for row in rows:
            self._lines.append(row.line or 0)
            yield row

    def see(self, step: Step) -> None:
        """Count what became a dead letter, and what was dropped because its id was known."""
        super().see(step)
        if step.facts.examples.get("duplicate"):
            for output in step.transaction.outputs:
                if output.topic == "outcomes":
                    self._duplicates(output)

    def _duplicates(self, output: Outgoing) -> None:
        record = Record(output.topic, output.partition, 0, 0, output.key, output.value)
        for decision in read_outcomes(record).decisions:
            if decision.outcome == "duplicate" and decision.source is not None:
                detail = f"the id {decision.id!r} came before; give each row an id of its own, or none"
                place = self._place(output.partition, decision.source)
                self.count("examples", DUPLICATE_ID, place, detail)

    def _place(self, partition: int, offset: int) -> Place:
        """Rows are dealt to the partitions in turn, and each has one example and one label there."""
        return Place(self._lines[offset * self._partitions + partition] or None)


_HEADERS = tuple(f"mistakebound.{name}" for name in ("reason", "detail", "topic", "partition", "offset"))
