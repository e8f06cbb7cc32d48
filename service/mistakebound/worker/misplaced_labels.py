"""Whether labels lie where their examples are: asked of the topics at the start, and of what is held while the worker runs.

1. Only an id whose example and label were seen in different partitions counts. A label that has no example yet is
   nothing unusual.
2. A start is refused, or not, as `worker.misplaced_labels` says. A running worker is never stopped by it: predictions
   are as good as before, and whoever writes labels must not be able to end the work. It says so and is not ready.
3. A topic that cannot be sampled stops nothing.
"""

import time
from collections.abc import Callable

import structlog

from mistakebound.core.ledger.misplaced import misplaced
from mistakebound.core.records import INPUTS
from mistakebound.log.placement import ENOUGH, Meeting, meeting, sample
from mistakebound.log.protocol import Log, LogError, Refused
from mistakebound.settings import Settings
from mistakebound.worker.events import Event, LabelsMisplaced, Observe, Settled, StateDropped

SAMPLE_S = 10.0
"""The longest that the topics are sampled at a start."""
LOOK_EVERY_S = 10.0
SAMPLE_AGAIN_S = 300.0
"""How soon the topics are sampled again after a sample that found something."""
REMEDY = (
    "let all producers place keys by one partitioner and give an example and its label the same key; what is there "
    "is repaired as deploy/late-labels.md says"
)

_log = structlog.get_logger(__name__)


class MisplacedLabels:
    """Looks at the start and now and then, and tells. An observer of the loop, in its thread."""

    def __init__(
        self,
        log: Log,
        settings: Settings,
        tell: Observe,
        *,
        interrupted: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`tell` is shown LabelsMisplaced whenever the count changes; `clock` is monotonic, in s."""
        self._log, self._settings, self._tell = log, settings, tell
        self._interrupted, self._clock = interrupted, clock
        self._sampled = 0
        self._sampled_s = self._looked_s = clock()
        self._told = 0

    def begin(self) -> None:
        """Sample both inputs. Raises Refused where misplaced labels are proven and the settings do not allow it."""
        found = self._sample()
        if found.proven and self._settings.worker.misplaced_labels == "refuse":
            raise Refused(
                f"{found}. They would never be learned from: {REMEDY}. "
                'To start all the same, set worker.misplaced_labels = "warn"'
            )
        if found.misplaced and not found.proven:
            _log.warning("labels_misplaced", found=str(found), remedy=REMEDY)
        self._show(self._sampled, str(found))

    def observe(self, event: Event) -> None:
        """Compare the parked labels with the examples that wait, if it is time."""
        match event:
            case Settled(held=held):
                now_s = self._clock()
                if now_s - self._looked_s < LOOK_EVERY_S:
                    return
                self._looked_s = now_s
                if self._sampled and now_s - self._sampled_s >= SAMPLE_AGAIN_S:
                    self._sample()
                found = misplaced(held.state.ledgers)
                first = next(iter(found), None)
                text = (
                    ""
                    if first is None
                    else (
                        f"the example of labels-{first.partition} offset {first.label.offset} waits in partition "
                        f"{first.example_partition}"
                    )
                )
                self._show(max(self._sampled, len(found) if len(found) >= ENOUGH else 0), text)
            case StateDropped():
                self._show(self._sampled, "")

    def _sample(self) -> Meeting:
        """What the topics tell; nothing where they cannot be read."""
        found, ends_s = Meeting(0, ()), self._clock() + SAMPLE_S
        try:
            if (count := self._log.partitions) > 1:
                examples, labels = (
                    sample(
                        self._log, topic, count, enough=lambda: self._interrupted() or self._clock() > ends_s
                    )
                    for topic in INPUTS
                )
                found = meeting(examples, labels, self._settings.messages.id)
        except LogError as error:
            _log.warning("labels_not_sampled", error=str(error))
        self._sampled_s = self._clock()
        self._sampled = len(found.misplaced) if found.proven else 0
        return found

    def _show(self, count: int, text: str) -> None:
        if count and not self._told:
            _log.error("labels_misplaced", count=count, found=text, remedy=REMEDY)
        elif self._told and not count:
            _log.info("labels_placed_well")
        if count != self._told:
            self._told = count
            self._tell(LabelsMisplaced(count))
