"""What a worker holds."""

from collections.abc import Collection, Mapping
from copy import copy
from dataclasses import dataclass, field

from msgspec import UNSET

from mistakebound.core.ledger.ledger import Ledger
from mistakebound.core.messages.costs import Costs, costs_of
from mistakebound.core.messages.tenants import by_tenant
from mistakebound.core.model.model import Model
from mistakebound.core.records import Topic, Transaction
from mistakebound.core.step.confusions import totals_of
from mistakebound.core.step.facts import PartitionTotals
from mistakebound.core.step.schemas import Schemas
from mistakebound.core.step.sizes import SizeLimits
from mistakebound.settings import Settings


@dataclass(slots=True)
class State:
    """One model, and the ledger of each partition that the worker owns."""

    settings: Settings
    model: Model
    ledgers: dict[int, Ledger]
    limits: SizeLimits = field(default_factory=SizeLimits)
    pointers: dict[str, str] | None = None
    """How inputs are read, where that is other than the epoch began with."""
    schemas: Schemas = field(default_factory=Schemas)
    costs: Costs | None = field(init=False)
    """Of mistakes, as they are set now."""

    def __post_init__(self) -> None:
        self.costs = costs_of(self.settings.labels)

    def rollback(self, partitions: Collection[int]) -> None:
        """Take back the last step, which touched these partitions; called a second time, the one before it."""
        self.model.rollback()
        for partition in partitions:
            self.ledgers[partition].rollback()

    def committed(self, transaction: Transaction, ends: Mapping[tuple[Topic, int], int]) -> None:
        """A step is committed; `ends`: next offset of each output written.

        What is published of examples behind it must be read again as long as they are not counted. The next step may
        already be under way, and have counted them, but it may be taken back: so it is the transaction that is asked.
        """
        for (topic, partition), end in ends.items():
            if topic == "predictions":
                ledger = self.ledgers[partition]
                if transaction.positions[partition].examples >= ledger.published_end:
                    ledger.predictions_end = end
            elif topic == "outcomes":
                self.ledgers[partition].outcomes_end = end

    def totals(self, partition: int) -> PartitionTotals:
        """The partition's durable counts."""
        ledger = self.ledgers[partition]
        life, oldest = ledger.tallies.life, ledger.oldest_example()
        return PartitionTotals(
            examples=life.examples["labelled"]
            + life.examples["expired"]
            + life.examples["evicted"]
            + len(ledger.waiting),
            labelled=life.judged,
            mistakes=life.mistakes,
            baseline_mistakes=life.majority_mistakes,
            updates=ledger.tallies.epoch.updates,
            waiting=len(ledger.waiting),
            parked=len(ledger.parked),
            reliability=None if life.reliability is UNSET else life.reliability.copy(),
            asked=None if life.asked is UNSET else copy(life.asked),
            oldest_waiting_ms=None if oldest is None else oldest.at,
            confusion=totals_of(life.confusion, self.costs),
            tenants=by_tenant((ledger.tallies,)) if ledger.tallies.tenants else (),
        )
