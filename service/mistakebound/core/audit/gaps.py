"""Input that was lost before the worker read it, as its decisions say: it stands in the input's order as one record."""

from collections.abc import Iterable

from mistakebound.core.audit.topics_read import Ahead
from mistakebound.core.messages.schema import Decision
from mistakebound.core.records import INPUTS, Lost, Record, Topic


class Gaps:
    """The gaps of one recorded partition step, in each input's order."""

    def __init__(self, decisions: Iterable[tuple[Decision, int]]) -> None:
        self._left: dict[Topic, list[tuple[int, int]]] = {topic: [] for topic in INPUTS}
        for decision, _ in decisions:
            if decision.first is not None and decision.outcome == "invalid":
                topic: Topic = "examples" if decision.label_offset is None else "labels"
                last = decision.source if decision.label_offset is None else decision.label_offset
                if last is not None:
                    self._left[topic].append((decision.first, last))

    def next_record(self, ahead: Ahead, topic: Topic, partition: int) -> Record | None:
        """The next record of the input, or the gap that comes before it.

        Records within a gap are passed over: a recording may hold what the worker could not read any more.
        """
        left, head = self._left[topic], ahead.peek()
        if not left or (head is not None and head.offset < left[0][0]):
            return ahead.take()
        first, last = left.pop(0)
        while (head := ahead.peek()) is not None and head.offset <= last:
            ahead.take()
        return Lost(topic, partition, last, -1, None, None, (), first)
