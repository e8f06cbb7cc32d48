"""What an operator reads in the log of the loop's work: when the worker became ready and when it no longer is; on demand, each step."""

from collections.abc import Callable

import structlog

from mistakebound.worker import events
from mistakebound.worker.health import Health

_log = structlog.get_logger(__name__)


class Announcements:
    """An observer of the loop. Readiness is what `/readyz` answers, without being asked."""

    def __init__(self, health: Callable[[], Health]) -> None:
        """`health` judges now; it has seen an event before this one does."""
        self._health = health
        self._ready = False

    def observe(self, event: events.Event) -> None:
        """Steps come by the thousand: they are lines for debugging, and readiness is looked at when anything else happens."""
        match event:
            case events.StepCommitted(facts=facts):
                _log.debug(
                    "step",
                    examples=facts.consumed.get("examples", 0),
                    labels=facts.consumed.get("labels", 0),
                    mistakes=sum(facts.mistakes.values()),
                    updates=sum(facts.updates.values()),
                    partitions=list(event.totals),
                    seconds=round(event.duration_s, 4),
                )
            case events.Settled():
                pass
            case _:
                self._look()

    def _look(self) -> None:
        found = self._health()
        if found.ready == self._ready:
            return
        self._ready = found.ready
        if found.ready:
            _log.info("ready", partitions=[each.partition for each in found.partitions])
        else:
            _log.info("not_ready", reason=found.reason)
