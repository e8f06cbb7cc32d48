"""What a partition step counts: for its partition's tallies, of life and of the epoch, and for the step's facts.

How examples and labels ended is the same for all three, and is read off the decisions when the partition step closes.
What later records of the same partition step depend on is kept up at once: the classes seen, and their majority; so is
what no decision tells: updates, mistakes by epoch, the lines of tenants, and what is asked for.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar, cast

from msgspec import UNSET

from mistakebound.core.messages.confusion import Confusion
from mistakebound.core.messages.labels import spelled
from mistakebound.core.messages.schema import Decision
from mistakebound.core.messages.tallies import ExampleOutcome, LabelOutcome, Tallies, Tally
from mistakebound.core.step.confusions import Judged, add, counted
from mistakebound.core.step.facts import StepFacts
from mistakebound.settings import LabelValue

Outcome = TypeVar("Outcome", bound=str)


class Counting:
    """One partition step's counts. The tallies are complete only after `close`."""

    def __init__(self, tallies: Tallies, facts: StepFacts, classes: Sequence[LabelValue]) -> None:
        """`classes` as declared; empty where they are open. Always-the-majority predicts the second of two first."""
        negative = classes[1] if len(classes) == 2 else None
        self._open = not classes
        self._tallies, self._facts = tallies, facts
        self._life = Majority(tallies.life.actual, negative)
        self._epoch = Majority(tallies.epoch.actual, negative)
        self._last: str | None = _name(negative) if tallies.last_label is UNSET else tallies.last_label
        self._at_label = [0, 0]
        """Mistakes of the model as it was when labels came: of life, of the epoch."""
        self._judged: list[Judged] = []
        self._of_epoch: list[Judged] | None = None
        """None as long as all were of the epoch, with its majority that of life: then both count the same."""
        self._outstanding = 0
        self._updates = 0

    def judged(
        self, label: LabelValue, predicted: LabelValue | None, of_epoch: bool, outstanding: int
    ) -> bool:
        """Count a published prediction and its label; returns whether it was mistaken.

        `of_epoch`: it was made in the present epoch. `outstanding`: examples waiting, this one included.
        """
        name, life, epoch = spelled(label), self._life, self._epoch
        # The reader gives equal declared classes as one object: nearly every prediction needs no second look-up.
        said = name if predicted is label else None if predicted is None else spelled(predicted)
        leader, differs = life.name, name != self._last
        if self._of_epoch is None and not (of_epoch and epoch.name == leader):
            self._of_epoch = self._judged.copy()
        self._judged.append((name, said, leader, differs))
        if of_epoch and self._of_epoch is not None:
            self._of_epoch.append((name, said, epoch.name, differs))
        self._last = name
        life.see(name)
        epoch.see(name)
        if outstanding > self._outstanding:  # noqa: PLR1730 - see `PartitionStep.run`
            self._outstanding = outstanding
        if predicted == label:
            return False
        self._tallies.life.mistakes += 1
        self._tallies.epoch.mistakes += of_epoch
        return True

    def predicted(self, tenant: str) -> None:
        """Count a prediction of a tenant's example."""
        self._tallies.of_tenant(tenant).predicted += 1

    def judged_of(self, tenant: str, *, mistaken: bool) -> None:
        """Count a judged prediction of a tenant's example."""
        line = self._tallies.of_tenant(tenant)
        line.labelled += 1
        line.mistakes += mistaken

    def mistaken_at_label(self, *, of_epoch: bool) -> None:
        """Count that the model is wrong of the example just judged, before it learns from the label."""
        self._at_label[0] += 1
        self._at_label[1] += of_epoch

    def updated(self, *, demoted: bool, tenant: str | None = None) -> None:
        """The model learned, from an example of this tenant."""
        self._updates += 1
        if tenant is not None:
            self._tallies.of_tenant(tenant).updates += 1
        self._facts.updates["demote" if demoted else "promote"] += 1

    def length(self, length: float) -> None:
        """Of a labelled example, while labels are asked for."""
        for tally in (self._tallies.life, self._tallies.epoch):
            tally.of_asked().measure(length)

    def ended(self, decision: Decision, weight: int) -> None:
        """An example whose prediction said whether its label is asked for has its label, or is given up."""
        labelled = decision.label_offset is not None
        mistaken = labelled and decision.prediction != decision.label
        for tally in (self._tallies.life, self._tallies.epoch):
            tally.of_asked().count(weight, labelled=labelled, mistaken=mistaken)

    def close(self, decisions: Sequence[Decision], examples: int, labels: int) -> None:
        """Add up what these decisions, and the numbers of examples and labels consumed, come to."""
        of_examples, of_labels = _outcomes(decisions)
        for tally, majority in ((self._tallies.life, self._life), (self._tallies.epoch, self._epoch)):
            tally.majority_mistakes += majority.mistakes
            tally.outstanding = max(tally.outstanding, self._outstanding)
            tally.updates += self._updates
            tally.examples["consumed"] += examples
            tally.labels["consumed"] += labels
            _add(tally.examples, of_examples.items())
            _add(tally.labels, of_labels.items())
        self._close_confusion()
        facts = self._facts
        facts.baseline_mistakes += self._life.mistakes
        facts.consumed["examples"] += examples
        facts.consumed["labels"] += labels
        _add(facts.examples, of_examples.items())
        _add(facts.labels, of_labels.items())

    def _close_confusion(self) -> None:
        """Count what was judged by (actual, predicted)."""
        life, epoch = _confusion(self._tallies.life), _confusion(self._tallies.epoch)
        life.mistakes_at_label += self._at_label[0]
        epoch.mistakes_at_label += self._at_label[1]
        if not self._judged:
            return
        if self._last is not None:
            self._tallies.last_label = self._last
        facts, together = self._facts, Counter(self._judged)
        add(life, counted(life, self._judged, together), classes_open=self._open)
        if self._of_epoch is None:
            add(epoch, counted(epoch, self._judged, together), classes_open=self._open)
        else:
            add(epoch, counted(epoch, self._of_epoch, Counter(self._of_epoch)), classes_open=self._open)
        for (actual, predicted, _, _), times in together.items():
            if predicted is not None:
                facts.evaluations[actual, predicted] += times
            if actual != predicted:
                facts.mistakes[actual] += times


def _confusion(tally: Tally) -> Confusion:
    """The tally's, begun where it has none."""
    found = tally.confusion
    if found is UNSET:
        found = tally.confusion = Confusion()
    return found


def _name(label: LabelValue | None) -> str | None:
    return None if label is None else spelled(label)


def _outcomes(decisions: Sequence[Decision]) -> tuple[dict[ExampleOutcome, int], dict[LabelOutcome, int]]:
    """How many examples and how many labels ended how."""
    examples: dict[ExampleOutcome, int] = {}
    labels: dict[LabelOutcome, int] = {}
    counts = Counter((decision.outcome, decision.label_offset is None) for decision in decisions)
    for (outcome, of_example), count in counts.items():
        if of_example:
            examples[cast(ExampleOutcome, outcome)] = count
        elif outcome != "parked":
            labels[cast(LabelOutcome, outcome)] = count
        if outcome == "applied":
            examples["labelled"] = count
    return examples, labels


def _add(counts: dict[Outcome, int], found: Iterable[tuple[Outcome, int]]) -> None:
    for outcome, count in found:
        counts[outcome] += count


class Majority:
    """The most frequent class so far, by name; of equally frequent ones the negative one, or else the first by name."""

    def __init__(self, seen: dict[str, int], negative: LabelValue | None) -> None:
        """`seen`: number of labels of each class; `see` adds to it."""
        self._seen = seen
        self._first = None if negative is None else spelled(negative)
        self.name = majority(seen, negative)
        self.mistakes = 0
        """Of always predicting the majority so far."""

    def see(self, name: str) -> None:
        """Judge the majority by a label, then count the label."""
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
    """The name of the majority class, from the counts."""
    first = None if negative is None else spelled(negative)
    return min(seen, key=lambda name: (-seen[name], name != first, name), default=first)
