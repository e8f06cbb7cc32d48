"""Patterns of `features.include` and `features.exclude` that nothing matches: told once, for they are hardly ever meant so."""

import structlog

from mistakebound.core.messages.columns import idle
from mistakebound.settings import Settings
from mistakebound.worker.events import Event, Settled, StepCommitted

ENOUGH = 100
"""Examples after which a pattern should have matched something."""

_log = structlog.get_logger(__name__)


class IdlePatterns:
    """An observer of the loop, in its thread."""

    def __init__(self, settings: Settings) -> None:
        self._features = settings.features
        self._examples, self._told = 0, False

    def observe(self, event: Event) -> None:
        """Count the examples; look at the patterns when there are enough."""
        match event:
            case StepCommitted(facts=facts):
                self._examples += facts.consumed.get("examples", 0)
            case Settled(held=held):
                if not self._told and self._examples >= ENOUGH:
                    self._told = True
                    columns = held.state.model.reader.columns
                    for pattern in sorted(() if columns is None else columns.idle):
                        _log.warning("pattern_matches_nothing", reason=idle(pattern, self._features))
