"""Input that was deleted before it was read, passed when the operator accepts the loss (`--skip-to-oldest`).

Each gap is one `Lost` record that a step takes like any other: it becomes a dead letter and a decision in `outcomes`,
which names the first and the last offset, in the transaction that moves the position past it. So a loss is counted
once whatever crashes, and an audit knows of it.
"""

import structlog

from mistakebound.core.ledger.ledger import Ledger
from mistakebound.core.records import INPUTS, Lost, Topic
from mistakebound.log.protocol import Log, OffsetLost

_log = structlog.get_logger(__name__)


def deleted_unread(log: Log, partition: int, ledger: Ledger) -> dict[Topic, Lost]:
    """Of each input that begins above the ledger's position: the offsets in between.

    Raises OffsetLost where an input ends below it: there is nothing to skip to.
    """
    found: dict[Topic, Lost] = {}
    for topic, position in zip(INPUTS, (ledger.examples_next, ledger.labels_next), strict=True):
        oldest, end = log.low_watermark(topic, partition), log.high_watermark(topic, partition)
        if position > end:
            raise OffsetLost(
                f"offset {position} of {topic}-{partition} lies above its end, {end}: records that were read are gone, "
                "so the topic was truncated or made anew, and nothing can be skipped; take another log.prefix"
            )
        if oldest > position:
            text = (
                f"offsets {position} to {oldest - 1} of {topic}-{partition} were deleted before they were read; "
                "raise the topic's retention"
            )
            _log.warning("input_lost", topic=topic, partition=partition, first=position, last=oldest - 1)
            found[topic] = Lost(topic, partition, oldest - 1, -1, None, None, (), position, "deleted", text)
    return found
