"""What a partition step counts: for its partition's tallies, of life and of the epoch, and for the step's facts.

Most of it is the same for all three, and is read off the decisions when the partition step closes. Only what a later
record of the same partition step asks for is kept up as it happens: the classes seen, and their majority.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import cast

from mistakebound.core.messages.labels import spelled
from mistakebound.core.messages.schema import Decision
from mistakebound.core.messages.tallies import ExampleOutcome, LabelOutcome, Tallies
from mistakebound.core.records import Stream
from mistakebound.core.step.explained import ExplainedMistake
from mistakebound.core.step.facts import Direction, StepFacts
from mistakebound.settings import LabelValue


class StepCounts:
    """What a step counts while it runs: what `facts` are made of."""

    def __init__(self) -> None:
        self.explained_mistakes: list[ExplainedMistake] = []
        self.consumed: defaultdict[Stream, int] = defaultdict(int)
        self.rejected: defaultdict[tuple[Stream, str], int] = defaultdict(int)
        self.predicted: defaultdict[str, int] = defaultdict(int)
        self.evaluations: defaultdict[tuple[str, str], int] = defaultdict(int)
        self.mistakes: defaultdict[str, int] = defaultdict(int)
        self.majority_mistakes = 0
        self.updates: defaultdict[Direction, int] = defaultdict(int)
        self.labels: defaultdict[LabelOutcome, int] = defaultdict(int)
        self.examples: defaultdict[ExampleOutcome, int] = defaultdict(int)
        self.label_delays: list[float] = []
        self.margins: list[float] = []
        self.predicted_record_ms: list[int] = []
        self.newest: dict[Stream, int] = {}

    def facts(self) -> StepFacts:
        return StepFacts(
            consumed=self.consumed,
            rejected=self.rejected,
            predicted=self.predicted,
            evaluations=self.evaluations,
            mistakes=self.mistakes,
            baseline_mistakes=self.majority_mistakes,
            updates=self.updates,
            labels=self.labels,
            examples=self.examples,
            label_delays_seconds=self.label_delays,
            margins=self.margins,
            predicted_record_ms=self.predicted_record_ms,
            newest_record_ms=self.newest,
            explained_mistakes=self.explained_mistakes,
        )


class Counting:
    """One partition step's counts. Nothing is in the tallies for certain before `close`."""

    def __init__(self, tallies: Tallies, counts: StepCounts, negative: LabelValue | None) -> None:
        """`negative`: the second of two classes, which always-the-majority predicts first."""
        self._tallies, self._counts = tallies, counts
        self._life = Majority(tallies.life.actual, negative)
        self._epoch = Majority(tallies.epoch.actual, negative)
        self._outstanding = 0
        self._updates = 0

    def judged(
        self, label: LabelValue, predicted: LabelValue | None, *, of_epoch: bool, outstanding: int
    ) -> bool:
        """A published prediction met its label; returns whether it was mistaken.

        `of_epoch`: it was made in the present epoch. `outstanding`: examples waiting then, this one included.
        """
        name, mistaken = spelled(label), predicted != label
        self._life.see(name)
        self._epoch.see(name)
        if outstanding > self._outstanding:  # noqa: PLR1730 - a call for each label would be dear
            self._outstanding = outstanding
        if mistaken:
            self._tallies.life.mistakes += 1
            self._tallies.epoch.mistakes += of_epoch
            self._counts.mistakes[name] += 1
        if predicted is not None:
            self._counts.evaluations[name, spelled(predicted)] += 1
        return mistaken

    def updated(self, *, demoted: bool) -> None:
        """The model learned."""
        self._updates += 1
        self._counts.updates["demote" if demoted else "promote"] += 1

    def close(self, decisions: Iterable[Decision], examples: int, labels: int) -> None:
        """Add it all up; so many examples and labels were consumed."""
        counts = self._counts
        of_examples, of_labels = _outcomes(decisions)
        counts.majority_mistakes += self._life.mistakes
        counts.consumed["examples"] += examples
        counts.consumed["labels"] += labels
        for tally, majority in ((self._tallies.life, self._life), (self._tallies.epoch, self._epoch)):
            tally.majority_mistakes += majority.mistakes
            tally.outstanding = max(tally.outstanding, self._outstanding)
            tally.updates += self._updates
            tally.examples["consumed"] += examples
            tally.labels["consumed"] += labels
            for outcome, count in of_examples.items():
                tally.examples[outcome] += count
            for other, count in of_labels.items():
                tally.labels[other] += count
        for outcome, count in of_examples.items():
            counts.examples[outcome] += count
        for other, count in of_labels.items():
            counts.labels[other] += count


def _outcomes(decisions: Iterable[Decision]) -> tuple[dict[ExampleOutcome, int], dict[LabelOutcome, int]]:
    """How many examples and how many labels ended how."""
    examples: dict[ExampleOutcome, int] = {}
    labels: dict[LabelOutcome, int] = {}
    for (outcome, of_example), count in Counter(
        (decision.outcome, decision.label_offset is None) for decision in decisions
    ).items():
        if of_example:
            examples[cast(ExampleOutcome, outcome)] = count
        elif outcome != "parked":
            labels[cast(LabelOutcome, outcome)] = count
        if outcome == "applied":
            examples["labelled"] = count
    return examples, labels


class Majority:
    """The class most frequent so far, by name; of equals the negative one, or the first by name."""

    def __init__(self, seen: dict[str, int], negative: LabelValue | None) -> None:
        """`seen`: labels by class, which `see` keeps up."""
        self._seen = seen
        self._first = None if negative is None else spelled(negative)
        self.name = majority(seen, negative)
        self.mistakes = 0
        """Labels on which always predicting the majority erred."""

    def see(self, name: str) -> None:
        """Judge the majority by a label, and count it."""
        seen, leader = self._seen, self.name
        count = seen[name] = seen.get(name, 0) + 1
        if name == leader:
            return
        self.mistakes += 1
        if count < (most := 0 if leader is None else seen.get(leader, 0)):
            return
        if leader is None or count > most or name == self._first or (leader != self._first and name < leader):
            self.name = name


def majority(seen: Mapping[str, int], negative: LabelValue | None) -> str | None:
    """The same at once."""
    first = None if negative is None else spelled(negative)
    return min(seen, key=lambda name: (-seen[name], name != first, name), default=first)
