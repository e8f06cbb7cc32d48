"""A partition step in the making: what it works with, and what it has to write so far."""

from mistakebound.core.ledger.entries import Waiting
from mistakebound.core.messages.schema import Decision
from mistakebound.core.records import Outgoing
from mistakebound.core.step.counting import Counting
from mistakebound.core.step.facts import StepFacts
from mistakebound.core.step.more_said import MoreSaid
from mistakebound.core.step.schemas import StepSchemas
from mistakebound.core.step.sizes import Sizes
from mistakebound.core.step.state import State


class Draft:
    """What examples and labels share. `core/step/partition_step.py` makes it, and closes it."""

    def __init__(self, state: State, partition: int, facts: StepFacts) -> None:
        self.state, self.partition, self.facts = state, partition, facts
        self.model, self.ledger = state.model, state.ledgers[partition]
        self.reader = state.model.reader
        self.began_with = state.model.version()
        self.decisions: list[Decision] = []
        self.outputs: list[Outgoing] = []
        """All but `outcomes`."""
        self.bytes = 0
        """To be written so far, without small decisions, whose number the allowance limits."""
        self.adopted: list[int] | None = None
        """First and last example whose prediction was published before: `core/step/torn_step.py`."""
        self.counting = Counting(self.ledger.tallies, facts, state.model.classes)
        self.sizes = Sizes(state.model, state.limits)
        self.schemas = StepSchemas(
            state.schemas, partition, self.ledger, self.began_with, state.limits.outcomes
        )
        self.more_said = MoreSaid(state.model, self.ledger.tallies)

    def write(self, record: Outgoing) -> None:
        """To be written with the step."""
        self.outputs.append(record)
        self.bytes += len(record.value or b"")

    def ended(self, entry: Waiting, decision: Decision) -> None:
        """Write down what became of an example, and what its prediction had said beside its class."""
        if entry.beside is not None:
            decision = entry.beside.in_decision(decision)
            if decision.weight is not None:
                self.counting.ended(decision, decision.weight)
        self.decisions.append(decision)
