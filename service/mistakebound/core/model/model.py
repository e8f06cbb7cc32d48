"""A learner at a version: the vector of how many updates of each partition it has folded.

The model is its mistakes: whoever has folded the first n_p updates of each partition p holds the one
possible model. Averaged learners also need the clock, the labelled examples of each partition known.
"""

from typing import cast

from msgspec import UNSET, Raw, UnsetType

from mistakebound.core.faults import BadLog, BadRecord, BadSnapshot
from mistakebound.core.journal import Journal
from mistakebound.core.learners import Learner, Score, kind_of
from mistakebound.core.learners.changes import changes_of
from mistakebound.core.learners.kind import Averaging
from mistakebound.core.learners.mistakes import Mistake, Mistakes
from mistakebound.core.learners.requirements import accepted
from mistakebound.core.ledger.entries import Shared
from mistakebound.core.linear.window import Window
from mistakebound.core.messages import features
from mistakebound.core.messages.costs import costs_of
from mistakebound.core.messages.features import Features
from mistakebound.core.messages.inputs import ID_BYTES, InputReader
from mistakebound.core.messages.schema import FORMAT, Epoch, InputTopic, Update, Version, encode
from mistakebound.core.model.model_snapshot import Snapshot
from mistakebound.settings import LabelValue, Settings

WINDOW = 100
"""Updates of each partition that the certificate's window covers."""
SCORE_BYTES = 26
"""A float64 as JSON, and its comma."""

Scalars = tuple[list[int], list[int], float, int, list[int]]
"""updates, clock, radius, decided, needed: as in `Model`."""


class Model:
    """Mutable; a step's changes can be taken back to the bit (`begin`, `rollback`)."""

    def __init__(self, settings: Settings, partitions: int, epoch: int = 1) -> None:
        self.settings = settings
        self.reader = InputReader(settings.messages, settings.labels, settings.features)
        self.classes = self.reader.classes
        self.kind = kind_of(settings)
        self.learner: Learner = self.kind.make(settings.learner, partitions)
        self._averaging = cast(Averaging, self.learner) if self.learner.averaged else None
        self.radius = 0.0
        """Largest length of an example updated on, in the learner's own space: the R of its theorem."""
        self._binary = len(self.classes) == 2
        self._decoded = features.reader(settings.features)
        self._newest: tuple[bytes, Features] | None = None
        """Features read last, and their text: in a replay, and where a label came first, it follows its example at once.
        The same object of text always has the same tenant."""
        self._check = accepted(settings)
        self.class_bytes = max((len(encode(value)) for value in self.classes), default=6 * ID_BYTES)
        """Largest JSON text of a class; a control character is escaped six-fold."""
        self.score_bytes = SCORE_BYTES * (len(self.classes) or settings.labels.max_classes)
        self.partitions = partitions
        self.epoch = epoch
        self.updates = [0] * partitions
        self.clock = [0] * partitions
        self._folded: Shared = 0
        self._encoded: Raw | None = None
        self.based = False
        """Whether the epoch started from another one's rows; no theorem speaks of it then."""
        self.decided = 0
        """Sum over the updates of how many the model that decided it had folded."""
        self.needed = [0] * partitions
        """The least version that holds every update which any of these models had folded."""
        self.recent = Mistakes(partitions, WINDOW)
        """The newest updates of each partition, where two classes are declared: the certificate's window."""
        self.costs = costs_of(settings.labels) if settings.learner.cost_sensitive else None
        """Of mistakes, where they are learned from."""
        self.changes = changes_of(settings, self.kind, partitions)
        """Proved changes; None where none can be proved."""
        self._journal: Journal[Scalars] = Journal()

    def _scalars(self) -> Scalars:
        return list(self.updates), list(self.clock), self.radius, self.decided, list(self.needed)

    @property
    def missing(self) -> int | None:
        """Sum over the updates of how many came before it and were not in the model that decided it.

        Order them so that each comes after those its model had: then the t-th, of a model of v updates,
        missed t - 1 - v of those before it. The sum of t - 1 is the same in any such order. None while a
        model had updates that are not folded here yet.
        """
        if any(need > known for need, known in zip(self.needed, self.updates, strict=True)):
            return None
        whole = sum(self.updates)
        return max(0, whole * (whole - 1) // 2 - self.decided)

    @property
    def window(self) -> Window | None:
        """Which updates count; None where all do."""
        return self.learner.window

    @property
    def restarts(self) -> int:
        """How often it has started from zero."""
        return 0 if self.learner.restarts is None else self.learner.restarts.made

    def version(self) -> Version:
        """What the next prediction is made with."""
        return Version(self.epoch, list(self.updates), list(self.clock) if self.learner.averaged else None)

    def folded(self) -> Shared:
        """How many updates of all partitions it has folded."""
        if self._encoded is None:
            count = sum(self.updates)
            if count != self._folded:  # an equal one is handed out again, the same object
                self._folded = count
        return self._folded

    def encoded_version(self) -> Raw:
        """`version` as JSON text, made once a version."""
        if self._encoded is None:
            self.folded()
            self._encoded = Raw(encode(self.version()))
        return self._encoded

    def digest(self) -> str:
        """SHA-256 of the hypothesis: equal versions, equal digests, on any worker, after any crash."""
        return self.learner.digest()

    def features(self, raw: bytes, tenant: str | None = None) -> Features:
        """Features from their JSON text and their tenant. Raises BadRecord, also for what this learner does not take."""
        newest = self._newest
        if newest is not None and newest[0] is raw:
            return newest[1]
        x = self._decoded(raw, tenant)
        if self._check is not None:
            self._check(x)
        self._newest = raw, x
        return x

    def score(self, x: Features) -> Score:
        """The score of a published prediction: one number, or one for each class known."""
        score: Score = self.learner.score(x, 0 if self._averaging is None else sum(self.clock))
        return score

    def size(self, x: Features) -> float:
        """The sum of the sizes of a score's terms; only of a kind that has one."""
        assert self.kind.size is not None
        return self.kind.size(self.learner, x, sum(self.clock))

    def predict(self, score: Score) -> LabelValue | None:
        """The class of a score, in the declared form; None where no class is known."""
        said = self.learner.predict(score)
        return self.classes[0 if said else 1] if self._binary else said

    def says(self, x: Features) -> LabelValue | None:
        """The class that would be published now."""
        return self.predict(self.score(x))

    def decide(self, x: Features, label: LabelValue) -> tuple[float, LabelValue | None]:
        """(how much of y*x must be added on this label, 0 for nothing; the class the current hypothesis predicts)."""
        predicted: LabelValue | None
        if self._binary:
            positive, negative = self.classes
            amount, said = self.learner.decide(x, label == positive)
            predicted = positive if said else negative
        else:
            amount, predicted = self.learner.decide(x, label)
        if self.costs is not None:
            amount = self._at_cost(amount, label, predicted)
        return amount, predicted

    def judge(self, x: Features, label: LabelValue) -> tuple[float, LabelValue | None, LabelValue | None]:
        """What `decide` gives, and the class that would be published now."""
        averaging = self._averaging
        if averaging is None:
            amount, predicted = self.decide(x, label)
            return amount, predicted, predicted
        clock = sum(self.clock)
        published: LabelValue | None
        if not self._binary:
            amount, predicted, published = averaging.judge(x, label, clock)
        else:
            positive, negative = self.classes
            amount, said, says = averaging.judge(x, label == positive, clock)
            predicted, published = positive if said else negative, positive if says else negative
        if self.costs is not None:
            amount = self._at_cost(amount, label, predicted)
        return amount, predicted, published

    def _at_cost(self, amount: float, label: LabelValue, predicted: LabelValue | None) -> float:
        """Of a cost-sensitive learner, an update's amount is the cost of its mistake. At a score of 0 it updates though the
        class may be right: then the cost is that of taking the label's class for the other one."""
        if self.costs is None or not amount:
            return amount
        if self._binary:
            predicted = self.classes[label == self.classes[0]]
        return self.costs.of(label, predicted)

    def _learned(self, label: LabelValue | None) -> LabelValue | None:
        """A class as the learner knows it: with two classes, whether it is the positive one."""
        return label == self.classes[0] if self._binary else label

    def labelled(self, partition: int) -> None:
        """One more labelled example is known."""
        self.clock[partition] += 1
        if self.learner.averaged:
            self._encoded = None

    def knows(self, partition: int, labelled: int) -> None:
        """At least this many labelled examples of the partition are known."""
        self.clock[partition] = max(self.clock[partition], labelled)
        self._encoded = None

    def wind(self, clock: list[int]) -> None:
        """Exactly so many labelled examples of each partition are known, as a recorded version says."""
        self.clock = list(clock)
        self._encoded = None

    def learn(
        self,
        partition: int,
        x: Features,
        label: LabelValue,
        predicted: LabelValue | None,
        behind: int = 0,
        amount: float = 1.0,
    ) -> int:
        """Fold an own mistake; returns its number n in the partition and epoch.

        `behind`: updates folded since the prediction that decided it; 0 where the present model did.
        """
        self.decided += sum(self.updates) - behind
        self.updates[partition] += 1
        n = self.updates[partition]
        self._fold(partition, x, label, predicted, sum(self.clock), amount, n, self.restarts)
        return n

    def _fold(
        self,
        partition: int,
        x: Features,
        label: LabelValue,
        predicted: LabelValue | None,
        clock: int,
        amount: float,
        n: int,
        seen: int,
    ) -> None:
        """`n`: number of the update in this epoch; 0 for one of the epoch that this one is based on. `seen`: restarts."""
        self._encoded = None
        length = self.learner.length(x)
        self.radius = max(self.radius, length)
        learned, restarts = self._learned(label), self.learner.restarts
        if restarts is not None:
            restarts.into = seen
            restarts.folded(partition)
        self.learner.fold(partition, x, learned, clock, self._learned(predicted), amount)
        if self._binary:
            sign = 1.0 if learned else -1.0
            self.recent.add(partition, Mistake(sign, x, clock))
            if self.changes is not None and n:
                proved = self.changes.add(partition, n, sign, x, length, seen)
                if proved and restarts is not None:
                    restarts.restart()

    def follow(self, partition: int, update: Update) -> bool:
        """Fold a logged update, own or another worker's; False where it is known already.

        Raises BadLog on a gap: a skipped update would be a different model.
        """
        if update.epoch != self.epoch or update.n <= self.updates[partition]:
            return False
        if update.n != self.updates[partition] + 1:
            raise BadLog(
                f"updates-{partition}: update {update.n} follows {self.updates[partition]}; some are missing"
            )
        x = self._readable(partition, update, based=False)
        if len(update.clock) != self.partitions or len(update.model.updates) != self.partitions:
            raise BadLog(
                f"updates-{partition}: update {update.n} is of another number of partitions; only the worker "
                "may write this topic"
            )
        self.updates[partition] = update.n
        self.decided += sum(update.model.updates) - update.behind
        raise_to(self.needed, update.model.updates)
        raise_to(self.clock, update.clock)
        self._fold(
            partition,
            x,
            update.label,
            update.predicted,
            sum(update.clock),
            update.amount,
            update.n,
            update.restarts,
        )
        return True

    def _readable(self, partition: int, update: Update, based: bool) -> Features:
        """The update's features. Raises BadLog where these or its classes do not fit the settings."""
        try:
            x = self.features(bytes(update.features), update.tenant)
        except BadRecord as error:
            wrong = f"cannot be read under its settings ({error})"
        else:
            knows, predicted = self.reader.knows, update.predicted
            if knows(update.label) and (predicted is None or knows(predicted)):
                return x
            unknown = predicted if knows(update.label) else update.label
            wrong = f"is of class {unknown!r}, which its settings do not declare"
        what = f"updates-{partition}: update {update.n} of epoch {update.epoch}"
        remedy = "only the worker may write this topic"
        if based:
            what += ", on which this epoch is based,"
            remedy = "base an epoch on one of the same features and classes"
        raise BadLog(f"{what} {wrong}; {remedy}")

    def inherit(self, partition: int, update: Update) -> None:
        """Fold an update of the epoch that this one is based on: as an initial weight that counts as no update."""
        x = self._readable(partition, update, based=True)
        self._fold(partition, x, update.label, update.predicted, 0, update.amount, 0, 0)

    def begin(self, undoable: bool = True) -> None:
        """What follows can be rolled back if it is `undoable`: the journal of a whole fold would grow as long as its log."""
        self._journal.begin()
        self._journal.note(self._scalars())
        self.recent.begin(undoable)
        if self.changes is not None:
            self.changes.begin(undoable)
        self.learner.begin(undoable)

    def rollback(self) -> None:
        """Restore the version and the rows as they were at `begin`; a second time, at the one before."""
        (before,) = self._journal.take_back()
        self.updates, self.clock, self.radius, self.decided, self.needed = before
        self._encoded = None
        self.recent.rollback()
        if self.changes is not None:
            self.changes.rollback()
        self.learner.rollback()

    def snapshot(self) -> Snapshot:
        """The whole model, for a checkpoint. Shares its rows; encode before going on."""
        updates, clock, radius, decided, needed = self._scalars()
        state, recent = self.learner.dump(), self.recent.dump()
        changes = None if self.changes is None else self.changes.dump()
        return Snapshot(self.epoch, updates, clock, state, radius, decided, needed, recent, changes)

    def restore(self, snapshot: Snapshot) -> None:
        """Become what `snapshot` gave. Raises BadSnapshot."""
        if self.changes is not None and snapshot.changes is None:
            raise BadSnapshot("it was written before proved changes were counted")
        self.epoch = snapshot.epoch
        self.updates, self.clock = list(snapshot.updates), list(snapshot.clock)
        self.radius = snapshot.radius
        self.decided, self.needed = snapshot.decided, list(snapshot.needed)
        try:
            self.learner.load(snapshot.state)
            self.recent.load(snapshot.recent)
            if self.changes is not None:
                self.changes.load(snapshot.changes)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise BadSnapshot(f"its state is not that of {self.settings.learner.kind}: {error!r}") from None
        self._encoded = None


def raise_to(numbers: list[int], least: list[int]) -> None:
    """Each number to at least the one in its place."""
    for place, number in enumerate(least):
        if number > numbers[place]:  # noqa: PLR1730 - see `PartitionStep.run`
            numbers[place] = number


def first_epoch(settings: Settings, topics: dict[str, InputTopic] | UnsetType = UNSET) -> Epoch:
    """The record that begins epoch 1 in every partition of `updates`; `topics`: the inputs, where there is a log."""
    return Epoch(1, FORMAT, dict(settings.of_epoch()), None, topics, settings.messages.recorded())
