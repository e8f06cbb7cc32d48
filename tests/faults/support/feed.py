"""A stream that is sent piece by piece, as the test needs it."""

from collections.abc import Sequence

from mistakebound.core.records import Outgoing
from tests.faults.support.deployment import Deployment

PIECE = 500


class Feed:
    """Sends `records` in order, piece by piece."""

    def __init__(self, place: Deployment, records: Sequence[Outgoing]) -> None:
        self.place, self.records, self.sent = place, records, 0

    def to(self, count: int) -> None:
        """At least the first `count` are sent when this returns."""
        while self.sent < min(count, len(self.records)):
            self.more(PIECE)

    def more(self, count: int) -> None:
        """The next `count`, or what is left."""
        piece = self.records[self.sent : self.sent + count]
        if piece:
            self.place.send(piece)
            self.sent += len(piece)

    def rest(self) -> None:
        """All of them."""
        self.to(len(self.records))
