"""How large a step may be: half as large as one whose transaction failed, until sixteen went well.

A network may be too slow for a large one within a transaction's time. It would be made again, and fail again, until the
worker gives up, and so after each restart.
"""

from mistakebound.core.step.facts import StepFacts

STEPS_TO_DOUBLE = 16


class StepLimit:
    """`records`: how many a step may take at present, expiries and unparkings included."""

    def __init__(self, most: int) -> None:
        self._most = self.records = most
        self._well = 0
        """Steps committed since the limit changed."""

    def failed(self, facts: StepFacts) -> None:
        """This step's transaction was given up."""
        given_up = sum(facts.examples.get(outcome, 0) for outcome in ("expired", "evicted"))
        self.records = max(1, min(self.records, sum(facts.consumed.values()) + given_up) // 2)
        self._well = 0

    def committed(self) -> None:
        """A step went well."""
        if self.records < self._most:
            self._well += 1
            if self._well == STEPS_TO_DOUBLE:
                self.records, self._well = min(self._most, 2 * self.records), 0
