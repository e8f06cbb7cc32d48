"""Guards of exactly-once that the fault suite and the simulation do not take away, each with the quick tests that must notice.

`tests/faults/sabotage.py` removes what only a real broker can show.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tests.gates.mutations.mutation import Mutation

SERVICE = "service/mistakebound/"


class Guard(NamedTuple):
    """What is broken, and by which tests (below `tests/`: files, or ids of tests) that is noticed."""

    what: str
    file: str
    """Below `service/mistakebound/`."""
    old: str
    """Once in the file's code."""
    new: str
    tests: tuple[str, ...]

    @property
    def mutation(self) -> Mutation:
        return Mutation(self.what, SERVICE + self.file, self.old, self.new)


GUARDS: Sequence[Guard] = (
    Guard(
        "a checkpoint brings back the newest 1,000 remembered ids",
        "core/checkpoint_content.py",
        "    for entry in frozen.remembered:",
        "    for entry in frozen.remembered[-1000:]:",
        ("core/test_checkpoint_content.py",),
    ),
    Guard(
        "no input is paused between the steps of a chain",
        "worker/stepping.py",
        "and not self._buffer.fill(0.0):",
        "and (self._buffer._poll(0.0) or self._buffer.assigned is not None):",
        ("worker/test_stepping.py",),
    ),
    Guard(
        "a rebuild does not compare the offset of the labels",
        "core/ledger/rebuild.py",
        "    return examples == position.examples and labels == position.labels",
        "    return examples == position.examples",
        ("core/ledger/test_rebuild.py",),
    ),
    Guard(
        "a first takeover looks at outcomes alone",
        "worker/ledgers.py",
        '    for topic in ("predictions", "outcomes"):',
        '    for topic in ("outcomes",):',
        ("worker/test_takeover.py",),
    ),
    Guard(
        "a rebuilt entry's floor of outcomes is one too high",
        "core/ledger/rebuild.py",
        "    outcomes_floor: Shared = recovery_point.outcomes",
        "    outcomes_floor: Shared = recovery_point.outcomes + 1",
        ("core/ledger/test_rebuild.py",),
    ),
    Guard(
        "kafka-python: positions are read before the slot's transaction ended",
        "log/kafka/kafka_python/session.py",
        "        self._writer.settle()\n        return self._cluster.positions(",
        "        return self._cluster.positions(",
        ("log/kafka/test_sessions.py",),
    ),
    Guard(
        "librdkafka: positions are read before the slot's transaction ended",
        "log/kafka/confluent/session.py",
        "        self._writer.settle()\n        return self._cluster.positions(",
        "        return self._cluster.positions(",
        ("log/kafka/test_sessions.py",),
    ),
    Guard(
        "librdkafka: a step is committed with the membership of now",
        "log/kafka/confluent/session.py",
        "transaction.positions, self._member))",
        "transaction.positions, self._consumer.consumer_group_metadata()))",
        ("log/kafka/test_sessions.py",),
    ),
    Guard(
        "librdkafka: what is paused is delivered",
        "log/kafka/confluent/session.py",
        "            if at in self._next and at not in self._paused:\n                records.append(record_of",
        "            if at in self._next:\n                records.append(record_of",
        ("log/kafka/test_sessions.py",),
    ),
)  # fmt: skip
