"""What a turn counts: for its partition's tallies, of life and of the epoch, and for the step's facts.

Most of it is the same for all three, so it is counted once and added up when the turn closes. Only what a
later record of the same turn asks for is kept up as it happens: the classes seen, and their majority.
"""

from collections.abc import Mapping

from service.core.facts import ExampleOutcome, LabelOutcome, StepCounts, spelled
from service.core.messages import Tallies
from service.settings import LabelValue


class Counting:
    """One turn's counts. Nothing is in the tallies for certain before `close`."""

    def __init__(self, tallies: Tallies, counts: StepCounts, negative: LabelValue | None) -> None:
        """`negative`: the second of two classes, which always-the-majority predicts first."""
        self._tallies, self._counts = tallies, counts
        self._majorities = [
            (tally, Majority(tally.actual, negative)) for tally in (tallies.life, tallies.epoch)
        ]
        self._baseline_mistakes = tallies.life.majority_mistakes
        self._examples: dict[ExampleOutcome, int] = {}
        self._labels: dict[LabelOutcome, int] = {}
        self._updates = 0

    def example(self, outcome: ExampleOutcome) -> None:
        """An example ended so."""
        self._examples[outcome] = self._examples.get(outcome, 0) + 1

    def label(self, outcome: LabelOutcome) -> None:
        """A label ended so."""
        self._labels[outcome] = self._labels.get(outcome, 0) + 1

    def judged(
        self, label: LabelValue, predicted: LabelValue | None, *, of_epoch: bool, outstanding: int
    ) -> bool:
        """A published prediction met its label; returns whether it was mistaken.

        `of_epoch`: it was made in the present epoch. `outstanding`: examples waiting then, this one included.
        """
        name, mistaken = spelled(label), predicted != label
        for tally, majority in self._majorities:
            if majority.errs(name):
                tally.majority_mistakes += 1
            majority.see(name)
            tally.outstanding = max(tally.outstanding, outstanding)
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

    def close(self, examples: int, labels: int) -> None:
        """Add it all up; so many examples and labels were consumed."""
        life, counts = self._tallies.life, self._counts
        counts.majority_mistakes += life.majority_mistakes - self._baseline_mistakes
        counts.consumed["examples"] += examples
        counts.consumed["labels"] += labels
        for tally in (life, self._tallies.epoch):
            tally.updates += self._updates
            tally.examples["consumed"] += examples
            tally.labels["consumed"] += labels
            for outcome, count in self._examples.items():
                tally.examples[outcome] += count
            for other, count in self._labels.items():
                tally.labels[other] += count
        for outcome, count in self._examples.items():
            counts.examples[outcome] += count
        for other, count in self._labels.items():
            counts.labels[other] += count


class Majority:
    """The class most frequent so far, by name; of equals the negative one, or the first by name."""

    def __init__(self, seen: dict[str, int], negative: LabelValue | None) -> None:
        """`seen`: labels by class, which `see` keeps up."""
        self._seen = seen
        self._first = None if negative is None else spelled(negative)
        self.name = majority(seen, negative)

    def errs(self, name: str) -> bool:
        """Whether always predicting the majority errs on this label."""
        return name != self.name

    def see(self, name: str) -> None:
        """Count a label."""
        count = self._seen[name] = self._seen.get(name, 0) + 1
        leader = self.name
        if name == leader or count < (most := 0 if leader is None else self._seen.get(leader, 0)):
            return
        if leader is None or count > most or name == self._first or (leader != self._first and name < leader):
            self.name = name


def majority(seen: Mapping[str, int], negative: LabelValue | None) -> str | None:
    """The same at once."""
    first = None if negative is None else spelled(negative)
    return min(seen, key=lambda name: (-seen[name], name != first, name), default=first)
