"""What single fast and odd pieces of a record's way buy, each timed alone beside what it replaces.

    python -m tests.benchmarks.pieces [--rounds N]

Processor time of one thread in us, the least of the rounds, and the median of their ratios. The modules are those of this
checkout: compiled in a folder that `python -m tests.compiled` made.
"""

import argparse
import time
from collections import Counter
from collections.abc import Callable
from operator import attrgetter
from statistics import median
from typing import Any

from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder
from msgspec import Struct

from mistakebound.core.ledger.entries import Waiting
from mistakebound.core.ledger.ledger import Ledger
from mistakebound.core.ledger.ordered_map import OrderedMap
from mistakebound.core.messages.confusion import Confusion
from mistakebound.core.records import Outgoing, Record
from mistakebound.core.step import confusions
from mistakebound.core.step.confusions import Judged
from mistakebound.log.kafka.kafka_python import batches, record_format
from mistakebound.settings import LabelSettings

EACH = 2_000
"""Records, labels or entries in one run of a piece."""
VALUE = b"x" * 230
MAGIC, MOST_BYTES = batches.MAGIC, 1 << 20

Piece = Callable[[], object]


class Traced(Struct, frozen=True):
    """As `Record`, but for the collector of cycles."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Noted(OrderedMap[Waiting]):
    """Puts as `OrderedMap` does, by way of `Journal.note`. Only where that is not compiled."""

    def put(self, entry: Waiting) -> None:
        record_id, entries = entry.id, self.entries
        before = entries.get(record_id)
        if before is None:
            self._order.append(record_id)
        entries[record_id] = entry
        self._journal.note(record_id if before is None else before)


def outgoing() -> list[Outgoing]:
    return [Outgoing("predictions", 0, b"id-%06d" % n, VALUE, (), 1_700_000_000_000 + n) for n in range(EACH)]


def encoding() -> tuple[Piece, Piece]:
    """Records into a batch: by ours, and by the client's own builder."""
    records = outgoing()

    def ours() -> None:
        for n, record in enumerate(records):
            record_format.encoded(n, n, record)

    return ours, lambda: batch_of(records)


def batch_of(records: list[Outgoing]) -> bytes:
    builder: Any = MemoryRecordsBuilder(MAGIC, 0, MOST_BYTES)
    for record in records:
        builder.append(record.timestamp_ms, record.key, record.value, [])
    builder.close()
    return bytes(builder.buffer())


def spelling() -> tuple[Piece, Piece]:
    """The four numbers of a record: from the table, and spelled anew."""
    numbers = (236, 9, 230, 1_000) * EACH
    return (
        lambda: [record_format._varint(number) for number in numbers],
        lambda: [record_format._spell(number) for number in numbers],
    )


def decoding() -> tuple[Piece, Piece]:
    """Records out of a batch: by ours, and by the client's own reader."""
    raw = batch_of(outgoing())

    def theirs() -> None:
        for each in MemoryRecords(raw).next_batch():
            Record("examples", 0, each.offset, each.timestamp, each.key, each.value)

    return lambda: list(record_format.decoded("examples", 0, MemoryRecords(raw).next_batch())), theirs


def structs() -> tuple[Piece, Piece]:
    """Records made and kept: unknown to the collector of cycles, and known to it."""
    return (
        lambda: [Record("examples", 0, n, n, b"key", VALUE) for n in range(EACH)],
        lambda: [Traced("examples", 0, n, n, b"key", VALUE) for n in range(EACH)],
    )


def judging() -> tuple[Piece, Piece]:
    """Judged predictions added up: equal ones at once, and one after the other."""
    classes = ("true", "false")
    judged: list[Judged] = [(classes[n % 2], classes[n % 7 % 2], "true", n % 3 == 0) for n in range(EACH)]

    def at_once() -> None:
        counts, together = Confusion(), Counter(judged)
        confusions.add(counts, confusions.counted(counts, judged, together), classes_open=False)

    return at_once, lambda: confusions.add(Confusion(), [(one, 1) for one in judged], classes_open=False)


def deadlines() -> tuple[Piece, Piece]:
    """Whether anything is overdue: by the next deadline, and by looking at what is oldest."""
    ledger = Ledger(LabelSettings())
    for entry in entries():
        ledger.wait(entry)
    ledger.nothing_overdue()

    def looking() -> None:
        for _ in range(EACH):
            if ledger.overdue_example() is not None or ledger.overdue_label() is not None:
                raise AssertionError

    def kept() -> None:
        for _ in range(EACH):
            if ledger.stream_time > ledger.next_deadline and not ledger.nothing_overdue():
                raise AssertionError

    return kept, looking


def entries() -> list[Waiting]:
    return [Waiting(f"id-{n}", n, 0, predicted=True, epoch=1, features=b"{}", predictions_floor=0, outcomes_floor=0)
            for n in range(EACH)]  # fmt: skip


def journals() -> tuple[Piece, Piece]:
    """Entries put into a map: with its journal's `note` written out, and with a call of it."""
    waiting = entries()

    def into(kind: type[OrderedMap[Waiting]]) -> Piece:
        def put() -> None:
            made = kind(attrgetter("source"))
            for entry in waiting:
                made.put(entry)

        return put

    return into(OrderedMap), into(Noted)


PIECES: dict[str, Callable[[], tuple[Piece, Piece]]] = {
    "a record put into a batch, by the client's builder": encoding,
    "its numbers spelled anew": spelling,
    "a record read out of a batch, by the client's reader": decoding,
    "a record that the collector of cycles knows": structs,
    "a label counted one after the other": judging,
    "what is overdue looked for at a record": deadlines,
    "an entry put with a call of the journal": journals,
}


def compare(name: str, pieces: tuple[Piece, Piece], rounds: int) -> None:
    times: tuple[list[float], list[float]] = [], []
    for _ in range(rounds):
        for piece, took in zip(pieces, times, strict=True):
            began = time.thread_time()
            piece()
            took.append((time.thread_time() - began) / EACH * 1e6)
    ratio = median(ours / other for ours, other in zip(*times, strict=True))
    print(f"{min(times[0]):.3f} us, not {min(times[1]):.3f} us ({ratio:.2f}): {name}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.pieces")
    parser.add_argument("--rounds", type=int, default=100)
    rounds = parser.parse_args().rounds
    print(f"of {record_format.__file__}")
    for name, make in PIECES.items():
        if make is journals and not record_format.__file__.endswith(".py"):
            continue
        compare(name, make(), rounds)


if __name__ == "__main__":
    main()
