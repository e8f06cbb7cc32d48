"""The first dead letter for each reason: told once, for without a look at the metrics nobody would know of any."""

import structlog

from mistakebound.core.messages.dead_letters import SHOWN_BY
from mistakebound.worker.events import Event, StepCommitted

_log = structlog.get_logger(__name__)


class FirstRejections:
    """An observer of the loop, in its thread. The record itself is left out of the line: logs hold no data."""

    def __init__(self) -> None:
        self._told: set[tuple[str, str]] = set()

    def observe(self, event: Event) -> None:
        """Tell what this process has not told yet."""
        match event:
            case StepCommitted(facts=facts):
                for stream, reason in sorted(facts.rejected.keys() - self._told):
                    self._told.add((stream, reason))
                    records = facts.rejected[stream, reason]
                    _log.warning(
                        "records_rejected", stream=stream, reason=reason, records=records, see=SHOWN_BY
                    )
