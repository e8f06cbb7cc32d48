"""A partition step that is made again because its transaction was torn: some of its predictions are published.

What is published cannot be taken back, and an example is predicted once. So the published prediction is the one that
waits for the label; `outcomes` names the examples (`adopted`), as their predictions may carry a version that the model
no longer had when they were counted.
"""

from mistakebound.core.ledger.entries import Waiting
from mistakebound.core.messages.labels import spelled
from mistakebound.core.messages.schema import Decision
from mistakebound.core.records import Record
from mistakebound.core.step.partition_step import PartitionStep


class TornPartitionStep(PartitionStep):
    """Used only while the ledger knows of such predictions: elsewhere no record pays for them."""

    def _example(self, record: Record, offset: int, time_ms: int) -> None:
        ledger = self.ledger
        published = ledger.published.get(offset)
        if published is None:
            super()._example(record, offset, time_ms)
            return
        record_id, raw, tenant = self.reader.example(record, self.schemas.find)
        self.model.features(raw, tenant)
        self.sizes.check(record, raw)
        if record_id in ledger.waiting or record_id in ledger.remembered:
            self.decisions.append(Decision("duplicate", record_id, offset))
            return
        self.adopted = [offset if self.adopted is None else self.adopted[0], offset]
        entry = Waiting(
            record_id,
            offset,
            published.at,
            published.predicted,
            published.epoch,
            raw,
            published.floor,
            ledger.outcomes_end,
            published.updates,
            published.beside,
            tenant,
        )
        ledger.wait(entry)
        if tenant is not None:
            self.counting.predicted(tenant)
        if entry.predicted is not None:
            self.facts.predicted[spelled(entry.predicted)] += 1
        if record_id in ledger.parked:
            early = ledger.unpark(record_id)
            self._apply(entry, early.offset, early.label)
