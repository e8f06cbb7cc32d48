"""One step: records in, one transaction out. Deterministic; no I/O, no clock.

It changes the state it is given and journals what it changed, so that `State.rollback` can take a step
back whose transaction was given up.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from mistakebound.core.records import Outgoing, Position, TopicPartition, Transaction
from mistakebound.core.step.facts import PartitionTotals, StepFacts
from mistakebound.core.step.merge import Merge
from mistakebound.core.step.partition_step import PartitionStep
from mistakebound.core.step.state import State


@dataclass(frozen=True, slots=True)
class Step:
    """What a step wants to happen, and what it did."""

    transaction: Transaction
    facts: StepFacts
    totals: Mapping[int, PartitionTotals]
    """Of each partition touched, with this step."""
    consumed: int

    @property
    def partitions(self) -> tuple[int, ...]:
        """The partitions touched."""
        return tuple(self.totals)


def step(
    state: State, merge: Merge, drained: Collection[TopicPartition], max_records: int, explain: int = 0
) -> Step | None:
    """Take up to about `max_records` records, expiries and unparkings; None when nothing can be taken.

    It ends early once `batch.max_bytes` are to be written; both limits are split evenly among the partitions.

    `drained`: empty inputs known to have nothing more (see `Merge.dry`). `explain`: scores of single features
    that may be taken to explain mistakes (`service/mistakebound/core/step/explain.py`); it changes nothing else.
    """
    partitions = [p for p in merge.buffered() if merge.peek(p, drained) is not None]
    if not partitions:
        return None
    state.model.begin()
    facts = StepFacts()
    outputs: list[Outgoing] = []
    positions: dict[int, Position] = {}
    allowance = max(1, max_records // len(partitions))
    room = state.settings.batch.max_bytes // len(partitions)
    for partition in partitions:
        of_partition = PartitionStep(state, partition, facts, explain // len(partitions))
        of_partition.run(merge, drained, allowance, room)
        positions[partition] = of_partition.close(outputs)
    return Step(
        Transaction(outputs, positions),
        facts,
        {partition: state.totals(partition) for partition in partitions},
        sum(facts.consumed.values()),
    )
