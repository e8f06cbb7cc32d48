"""The examples of a partition step that is made again because its transaction was torn: some predictions are published.

What is published cannot be taken back, and an example is predicted once. So the published prediction is the one that
waits for the label; `outcomes` names the examples (`adopted`), as their predictions may carry a version that the model
no longer had when they were counted.
"""

from mistakebound.core.ledger.entries import Waiting
from mistakebound.core.messages.schema import Decision
from mistakebound.core.records import Record
from mistakebound.core.step.examples import Examples


class TornExamples(Examples):
    """Used only while the ledger knows of such predictions: elsewhere no record pays for them."""

    def take(self, record: Record, offset: int, time_ms: int) -> None:
        """As any other example, but for the prediction, if that is there already. Raises BadRecord."""
        draft, ledger = self.draft, self.ledger
        published = ledger.published.get(offset)
        if published is None:
            super().take(record, offset, time_ms)
            return
        record_id, raw, tenant = draft.reader.example(record, draft.schemas.find)
        self.model.features(raw, tenant)
        draft.sizes.check(record, raw)
        if record_id in ledger.waiting or record_id in ledger.remembered:
            draft.decisions.append(Decision("duplicate", record_id, offset))
            return
        draft.adopted = [offset if draft.adopted is None else draft.adopted[0], offset]
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
        self.wait(entry)
        if record_id in ledger.parked:
            self.labels.unpark_for(entry)
