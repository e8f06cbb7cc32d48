"""A partition step: a step's work on one partition, record after record, every decision written down in order.

What it does with an example is in `core/step/examples.py`, what it does with a label in `core/step/labels.py`.
"""

from collections.abc import Collection
from typing import Literal

from mistakebound.core.faults import BadRecord
from mistakebound.core.ledger.entries import Waiting
from mistakebound.core.messages.dead_letters import dead_letter
from mistakebound.core.messages.schema import Decision, encode
from mistakebound.core.records import Lost, Outgoing, Position, Record, Stream, TopicPartition
from mistakebound.core.step.draft import Draft
from mistakebound.core.step.examples import Examples
from mistakebound.core.step.facts import StepFacts
from mistakebound.core.step.labels import Labels
from mistakebound.core.step.merge import Merge
from mistakebound.core.step.outcome_records import write_outcomes
from mistakebound.core.step.state import State
from mistakebound.core.step.torn_step import TornExamples


class PartitionStep:
    """One partition's share of a step."""

    def __init__(self, state: State, partition: int, facts: StepFacts, explain: int = 0) -> None:
        self.ledger = state.ledgers[partition]
        self.ledger.begin()
        self.draft = Draft(state, partition, facts)
        self.order: list[int] = [0]
        """Run lengths of examples and labels consumed, examples first."""
        self.of_labels = False
        """Whether the last run is of labels."""
        self.newest = [-1, -1]
        """Largest record time of the examples consumed, and of the labels."""
        self.labels = Labels(self.draft, explain)
        torn = self.ledger.examples_next < self.ledger.published_end
        self.examples = TornExamples(self.draft, self.labels) if torn else Examples(self.draft, self.labels)

    def run(self, merge: Merge, drained: Collection[TopicPartition], allowance: int, room: int) -> None:
        """Steps 1 to 5 of the ledger's rules, record after record, while the allowance lasts.

        It also ends once what is to be written takes `room` bytes, but always takes one record.
        """
        draft, ledger, waiting, most = self.draft, self.ledger, self.ledger.waiting, self.ledger.max_waiting
        for record in merge.take(draft.partition, drained):
            time_ms = record.timestamp_ms
            if time_ms > ledger.stream_time:  # noqa: PLR1730 - `max` takes 0.3 us an example in all, interpreted
                ledger.stream_time = time_ms
            if ledger.stream_time > ledger.next_deadline and not ledger.nothing_overdue():
                allowance = self.clear_away(allowance, room)
                # The record waits for the next step; stream time has reached its time already.
                if allowance <= 0:
                    merge.put_back(record)
                    return
            self._consume(record, time_ms)
            while len(waiting) > most and (oldest := ledger.oldest_example()) is not None:
                self._give_up(oldest, "evicted")
            allowance -= 1
            if allowance <= 0 or draft.bytes >= room:
                return

    def clear_away(self, allowance: int, room: int) -> int:
        """Take what is overdue from the ledger; returns what is left of the allowance."""
        ledger = self.ledger
        while allowance > 0 and (late := ledger.overdue_example()) is not None:
            self._give_up(late, "expired")
            allowance -= 1
        while allowance > 0 and (alone := ledger.overdue_label()) is not None:
            self.labels.unpark(alone)
            allowance = 0 if self.draft.bytes >= room else allowance - 1
        return allowance

    def close(self, outputs: list[Outgoing]) -> Position:
        """Add this partition step's records to the step's, `outcomes` last; returns the partition's position."""
        draft, ledger, recovery_point = self.draft, self.ledger, self.ledger.recovery_point()
        draft.counting.close(draft.decisions, sum(self.order[0::2]), sum(self.order[1::2]))
        newest, (examples, labels) = draft.facts.newest_record_ms, self.newest
        if examples >= newest.get("examples", 0):
            newest["examples"] = examples
        if labels >= newest.get("labels", 0):
            newest["labels"] = labels
        outputs += draft.outputs
        schemas = draft.schemas.close()
        draft.facts.explained_mistakes += self.labels.explaining.explained
        outputs += write_outcomes(
            draft.partition,
            draft.began_with,
            draft.decisions,
            self.order,
            ledger,
            recovery_point,
            draft.state.limits.outcomes,
            draft.adopted,
            draft.state.pointers,
            schemas,
        )
        return Position(ledger.examples_next, ledger.labels_next, encode(recovery_point).decode())

    def _consume(self, record: Record, time_ms: int) -> None:
        is_label = record.topic == "labels"
        if is_label is self.of_labels:
            self.order[-1] += 1
        else:
            self.of_labels = is_label
            self.order.append(1)
        if time_ms > self.newest[is_label]:  # noqa: PLR1730 - as in `run`
            self.newest[is_label] = time_ms
        offset = record.offset
        try:
            if is_label:
                self.ledger.labels_next = offset + 1
                self.labels.take(record, offset, time_ms)
            else:
                self.ledger.examples_next = offset + 1
                self.examples.take(record, offset, time_ms)
        except BadRecord as fault:
            self._invalid(record, fault)

    def _give_up(self, entry: Waiting, outcome: Literal["expired", "evicted"]) -> None:
        self.ledger.resolve(entry.id, None)
        self.draft.ended(entry, Decision(outcome, entry.id, entry.source))

    def _invalid(self, record: Record, fault: BadRecord) -> None:
        draft, first = self.draft, None
        stream: Stream = "labels" if record.topic == "labels" else "examples"
        if isinstance(record, Lost):
            fault, first = BadRecord(record.reason, record.detail), record.first
            draft.facts.lost[stream] += record.offset + 1 - first
        at = record.offset
        draft.decisions.append(
            Decision("invalid", None, None, at, first=first)
            if stream == "labels"
            else Decision("invalid", None, at, first=first)
        )
        draft.facts.rejected[stream, fault.reason] += 1
        draft.write(dead_letter(record, fault, draft.state.limits.dead_letters))
