"""Predictions that were made again, behind those of later examples: `--predict-missing` fills a gap which others followed.

They carry a mark, and lie in the order of their examples, once each, where no other prediction of the example is; and in
the order of stream time among all others. Anything else is a record out of its order.
"""

from collections.abc import Callable, Iterable

from mistakebound.core.messages.schema import Prediction, read_prediction
from mistakebound.core.records import Record

MARK = b'"again":true'


class MadeAgain:
    """Those of one partition, looked for once the first prediction is missing in its place."""

    def __init__(self, predictions: Callable[[], Iterable[Record]]) -> None:
        self._predictions = predictions
        self._found: dict[int, tuple[Record, Prediction]] | None = None
        """By example, not claimed yet."""
        self._claimed: set[int] = set()
        """Offsets."""
        self._before: Prediction | None = None
        """The newest one with the mark that was passed."""
        self._newest_at = self._again_at = -1
        """Largest stream time of those passed, and of those with the mark."""

    def claim(self, source: int, behind: int) -> tuple[Record, Prediction] | None:
        """The prediction of this example that was made again behind the offset; None where there is none."""
        if self._found is None:
            self._found = {}
            for record in self._predictions():
                if MARK in (record.value or b"") and (message := read_prediction(record)).again is True:
                    self._found.setdefault(message.source, (record, message))
        found = self._found.get(source)
        if found is None or found[0].offset <= behind:
            return None
        self._claimed.add(found[0].offset)
        return self._found.pop(source)

    def is_claimed(self, record: Record) -> bool:
        """Whether the record is accounted for already."""
        return record.offset in self._claimed

    def pass_by(self, message: Prediction, *, of_torn_step: bool) -> str:
        """The next prediction in the order of the log; what is wrong with its place, empty where nothing is.

        `of_torn_step`: it was published before its step was made again, from an earlier time on; only its own order counts.
        """
        if message.again is True:
            before, self._before = self._before, message
            late = message.at < self._newest_at
            self._again_at = max(self._again_at, message.at)
            if before is not None and (before.at, before.model) == (message.at, message.model):
                late = late or message.source < before.source
        elif of_torn_step:
            return ""
        else:
            late = message.at < self._again_at
        self._newest_at = max(self._newest_at, message.at)
        return "lies behind one that was made later" * late
