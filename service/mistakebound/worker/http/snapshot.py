"""What the page shows of the loop: a snapshot that is replaced between two steps, and never changed.

HTTP threads read the newest snapshot and no state that the loop changes. Taking a snapshot costs a pass over
the partitions and the rings, whatever the model's size, and is done at most twice a second.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf

from mistakebound.core.ledger.ledger import Ledger
from mistakebound.core.model.fold import Fold
from mistakebound.core.reporting.report import ModelSummary, PartitionCounts, Report, report
from mistakebound.core.reporting.status import EpochStatus, History, Judged, PartitionStatus, epoch_status
from mistakebound.core.step.explain import MOST_TERMS, ExplainedMistake
from mistakebound.core.step.state import State
from mistakebound.worker.events import Event, Settled, StateDropped, StepCommitted
from mistakebound.worker.http.history import RecentHistory
from mistakebound.worker.metrics.model_insight import Learned

EVERY_S = 0.5
TERMS_PER_S = 5_000
"""Scores of single features that may be computed to explain mistakes; takes under a hundredth of the time."""
KEPT = 10
"""Mistakes kept."""
MOST_PAIRS = 1_000
"""Pairs of classes counted: open classes could make a million."""
SHOWN_PAIRS = 100


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the worker holds and has done, at one moment."""

    report: Report
    epoch: EpochStatus | None
    partitions: tuple[PartitionStatus, ...]
    partition_count: int | None
    learned: Learned | None
    measured_at: float | None
    counted_at: float
    stepped_at: float | None
    mistakes: tuple[ExplainedMistake, ...]
    """Newest first."""
    judged: tuple[Judged, ...]
    """Most frequent first."""
    history: tuple[History, ...]


class Snapshots:
    """Takes the snapshots: an observer of the loop. `newest` may be read in any thread."""

    def __init__(
        self,
        learner: str,
        measured: Callable[[], Learned | None] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`learner` is shown until a model is held; `measured()` gives the model as last measured; `clock` gives Unix time in s."""
        self._learner, self._measured, self._clock = learner, measured, clock
        self._recent = RecentHistory()
        self._mistakes: deque[ExplainedMistake] = deque(maxlen=KEPT)
        self._judged: Counter[tuple[str, str]] = Counter()
        self._labelled: Counter[str] = Counter()
        self._stepped_at: float | None = None
        self._learned: Learned | None = None
        self._measured_at: float | None = None
        self._taken_s = -inf
        self._allowed_s, self._allowed = clock(), float(MOST_TERMS)
        self.started_at = clock()
        self.newest = self._take(None, None)

    def allowance(self) -> int:
        """How many scores the next step may compute to explain mistakes; the allowance refills with time."""
        now_s = self._clock()
        gained = max(0.0, now_s - self._allowed_s) * TERMS_PER_S
        self._allowed_s, self._allowed = now_s, min(MOST_TERMS, self._allowed + gained)
        return int(self._allowed)

    def observe(self, event: Event) -> None:
        """Count a step; take a snapshot, if it is time."""
        match event:
            case StepCommitted(facts=facts):
                self._stepped_at = self._clock()
                self._allowed -= sum(max(1, one.features) for one in facts.explained_mistakes)
                self._recent.add(self._stepped_at, facts)
                self._mistakes.extend(facts.explained_mistakes)
                self._count(facts.evaluations)
            case Settled(held=held):
                if abs(self._clock() - self._taken_s) >= EVERY_S:  # also after the clock was set back
                    learned = self._measured()
                    if learned is not self._learned:
                        self._learned, self._measured_at = learned, self._clock()
                    self.newest = self._take(held.state, held.fold)
            case StateDropped():  # the history since the process began is kept
                self._learned = self._measured_at = None
                self.newest = self._take(None, None)

    def _count(self, evaluations: Mapping[tuple[str, str], int]) -> None:
        for pair, count in evaluations.items():
            self._labelled[pair[0]] += count
            if pair in self._judged or len(self._judged) < MOST_PAIRS:
                self._judged[pair] += count

    def _take(self, state: State | None, fold: Fold | None) -> Snapshot:
        now_s = self._taken_s = self._clock()
        ledgers = {} if state is None else state.ledgers
        learned, classes = self._learned, () if state is None else state.model.classes
        costs = None if state is None else state.costs
        learner = self._learner if state is None else state.model.settings.learner.kind
        counts = [
            PartitionCounts(
                ledger.tallies.life,
                len(ledger.waiting),
                len(ledger.parked),
                ledger.tallies.epoch,
                ledger.tallies,
            )
            for ledger in ledgers.values()
        ]
        if learned is not None:
            found = report(
                counts,
                learner,
                learned.summary,
                learned.bounds,
                learned.margin_upper_bound,
                expected=learned.expected,
                classes=classes,
                proved=learned.proved_changes,
                costs=costs,
            )
        else:
            version = (0, ()) if state is None else (state.model.epoch, tuple(state.model.updates))
            found = report(counts, learner, ModelSummary(*version), classes=classes, costs=costs)
        return Snapshot(
            found,
            None
            if fold is None or fold.epoch is None
            else epoch_status(fold.epoch, fold.epochs.get(fold.epoch.epoch - 1)),
            tuple(_partition(p, ledger, state) for p, ledger in sorted(ledgers.items()) if state is not None),
            None if state is None else state.model.partitions,
            learned,
            self._measured_at,
            now_s,
            self._stepped_at,
            tuple(reversed(self._mistakes)),
            tuple(
                Judged(*pair, count, self._labelled[pair[0]])
                for pair, count in self._judged.most_common(SHOWN_PAIRS)
            ),
            self._recent.histories(now_s),
        )


def _partition(number: int, ledger: Ledger, state: State) -> PartitionStatus:
    totals = state.totals(number)
    oldest = totals.oldest_waiting_ms
    age_s = None if oldest is None else max(0, ledger.stream_time - oldest) / 1000
    return PartitionStatus(
        number,
        totals.examples,
        totals.labelled,
        totals.mistakes,
        totals.waiting,
        totals.parked,
        age_s,
        None if oldest is None else oldest / 1000,
    )
