"""A committed position that the newest outcomes contradict: one of the two was moved, or a transaction was torn."""

from mistakebound.core.faults import BadLog


class OtherPosition(BadLog):
    """`passed`: an earlier outcomes record ends at the committed position, so that the newest ones are ahead of it."""

    def __init__(self, text: str, *, passed: bool = False) -> None:
        super().__init__(text)
        self.passed = passed
