"""One partition, walked again from its inputs: every prediction, decision, update and tally made anew."""

from collections.abc import Callable, Mapping

from mistakebound.core.audit.counts import Counts
from mistakebound.core.audit.examples import Examples
from mistakebound.core.audit.findings import Findings
from mistakebound.core.audit.labels import Labels
from mistakebound.core.audit.ledgers import Ledgers
from mistakebound.core.audit.partition_steps import Turn, turns
from mistakebound.core.audit.reference_ledger import Book
from mistakebound.core.audit.replica import Replica, settings_of
from mistakebound.core.audit.source import Ahead, Source
from mistakebound.core.faults import BadLog
from mistakebound.core.messages.inputs import declared
from mistakebound.core.messages.schema import Epoch
from mistakebound.core.records import INPUTS, Record, Topic
from mistakebound.settings import MessageSettings


class Walk:
    """Walks a partition turn by turn; `order` says what each turn consumed, its inputs what that comes to.

    What cannot be gone on from (a consumed record that is not there, a record that nobody can read) ends the
    walk with a difference.
    """

    def __init__(
        self,
        source: Source,
        partition: int,
        epochs: Mapping[int, Epoch],
        messages: MessageSettings,
        ledgers: Ledgers,
        findings: Findings,
        progress: Callable[[int, int], None],
    ) -> None:
        self._source, self._partition, self._epochs, self._messages = source, partition, epochs, messages
        self._ledgers, self._findings, self._progress = ledgers, findings, progress
        self._inputs = {topic: Ahead(source.read(topic, partition)) for topic in INPUTS}
        self._next: dict[str, int | None] = {"examples": None, "labels": None}
        self._replica: Replica | None = None
        self.book: Book
        self.counts: Counts
        self.labels: Labels
        self.examples: Examples
        self._last_offset = -1
        self._told_apart: dict[str, tuple[object, object]] = {}

    def run(self) -> None:
        """Walk to the end of `outcomes`."""
        try:
            for turn in turns(self._source.read("outcomes", self._partition), self._findings):
                self._begin(turn)
                self._take(turn)
                self._end(turn)
                self._last_offset = turn.last_offset
                self._progress(self._partition, turn.last_offset)
            if self._replica is not None:
                self._pass_epochs(self._replica.number, max(self._epochs))
            self._leftovers()
        except BadLog as error:
            self._findings.check("turns", f"partition {self._partition}", False, f"given up here: {error}")

    # --- a turn begins ----------------------------------------------------------------------------

    def _begin(self, turn: Turn) -> None:
        if self._replica is None or turn.model.epoch != self._replica.number:
            self._begin_epoch(turn)
        replica, p = self._replica, self._partition
        assert replica is not None
        where = f"outcomes-{p} offset {turn.first_offset}"
        if len(turn.model.updates) != replica.model.partitions:
            raise BadLog(f"{where}: its version has {len(turn.model.updates)} partitions")
        self.labels.unexplained(turn.model.updates[p])
        for q, updates in enumerate(turn.model.updates):
            self._findings.check(
                "turn versions",
                where,
                replica.reach(q, updates),
                lambda q=q, updates=updates: (
                    f"it began with update {updates} of partition {q}, but "  # type: ignore[misc]
                    f"{replica.model.updates[q]} are there (the version goes back, or updates are missing)"
                ),
            )
        self._wind(turn, where)
        self.book.here = turn.first_offset
        self.labels.begin(turn)
        self.examples.turn_offset = turn.first_offset

    def _wind(self, turn: Turn, where: str) -> None:
        """Set the clock to the recorded one; its own entry is the labels applied in the epoch."""
        assert self._replica is not None
        model, p = self._replica.model, self._partition
        own, told = self.counts.epoch.judged, turn.model.clock
        if model.learner.averaged:
            holds = told is not None and len(told) == model.partitions and told[p] == own
            self._findings.check(
                "turn versions", where, holds, lambda: f"its clock is {told}; entry {p} should be {own}"
            )
            if told is not None and len(told) == model.partitions:
                model.clock = list(told)
        model.clock[p] = own

    def _begin_epoch(self, turn: Turn) -> None:
        number, p = turn.model.epoch, self._partition
        if number not in self._epochs or (self._replica is not None and number < self._replica.number):
            raise BadLog(f"outcomes-{p} offset {turn.first_offset} is of epoch {number}, which never began")
        settings = settings_of(self._epochs[number], self._messages)
        old, self._replica = self._replica, Replica(self._source, settings, number, self._epochs)
        if old is None:
            self.book, self.counts = Book(settings.labels), Counts(None)
        else:
            self.labels.unexplained(None)
        self._pass_epochs(0 if old is None else old.number, number)
        self.labels = Labels(self._replica, p, settings, self.book, self.counts, self._findings)
        if old is None:
            self.examples = Examples(self._source, self._replica, p, self.labels, self._findings)
        else:
            self.examples.begin_epoch(self._replica, self.labels)

    def _pass_epochs(self, after: int, last: int) -> None:
        """The rules and counts of each epoch that began after one and up to another."""
        for number in sorted(self._epochs):
            if after < number <= last:
                settings = settings_of(self._epochs[number], self._messages)
                self.book.rule(settings.labels)
                classes = declared(settings.labels)
                self.counts.begin_epoch(classes[1] if len(classes) == 2 else None)
                self._look_at_ledgers(number, self._last_offset)

    def _look_at_ledgers(self, epoch: int, last_offset: int) -> None:
        self._ledgers.compare(self._partition, last_offset, epoch, self.book, self.counts, self._findings)

    # --- its records ------------------------------------------------------------------------------

    def _take(self, turn: Turn) -> None:
        for place, count in enumerate(turn.order):
            topic = INPUTS[place % 2]
            for _ in range(count):
                record = self._inputs[topic].take()
                if record is None:
                    raise BadLog(
                        f"outcomes-{self._partition} offset {turn.last_offset} consumed {count} {topic}, which "
                        "are not there"
                    )
                self._next[topic] = record.offset + 1
                self._consume(record)
        self._close(turn)

    def _consume(self, record: Record) -> None:
        self.book.advance(record.timestamp_ms)
        while (due := self.book.next_due()) is not None:
            self.labels.ended(due)
        self.counts.consumed(record.topic)
        if record.topic == "labels":
            self.labels.take(record, self.examples)
        else:
            self.examples.take(record)
        while (surplus := self.book.next_surplus()) is not None:
            self.labels.decided(surplus)

    def _close(self, turn: Turn) -> None:
        """A step may close between expiries, before the record that caused them: `at` is then its time."""
        where = f"outcomes-{self._partition} offset {turn.last_offset}"
        heads = (ahead.peek() for ahead in self._inputs.values())
        times = {max(self.book.now, head.timestamp_ms) for head in heads if head is not None}
        if self._findings.check(
            "positions and marks",
            where,
            turn.at in {self.book.now, *times},
            lambda: f"its stream time is {turn.at}, should be {self.book.now} or a next record's, {times}",
        ):
            self.book.advance(turn.at)
        while self.labels.undecided() and (due := self.book.next_due()) is not None:
            self.labels.ended(due)
        self.labels.end()

    # --- a turn ends ------------------------------------------------------------------------------

    def _end(self, turn: Turn) -> None:
        where = f"outcomes-{self._partition} offset {turn.last_offset}"
        differences = self.counts.differences(turn.tallies)
        self._findings.check(
            "tallies",
            where,
            not differences or differences == self._told_apart,
            lambda: "; ".join(
                f"{name} is {one}, should be {two}" for name, (one, two) in differences.items()
            ),
        )
        self._told_apart = differences
        nexts: tuple[tuple[Topic, int], ...] = (
            ("examples", turn.inputs.examples),
            ("labels", turn.inputs.labels),
        )
        wrong = [
            f"the next {topic} offset is {told}, should be {self._next[topic]}"
            for topic, told in nexts
            if not self._is_next(topic, told)
        ]
        wrong += self._marks(turn)
        self._findings.check("positions and marks", where, not wrong, "; ".join(wrong))
        self._look_at_ledgers(turn.model.epoch, turn.last_offset)

    def _is_next(self, topic: Topic, told: int) -> bool:
        known = self._next[topic]
        if known is not None:
            return told == known
        head = self._inputs[topic].peek()
        return head is None or told <= head.offset

    def _marks(self, turn: Turn) -> list[str]:
        """What a rebuild from these marks would miss. Lower is always safe, but for s."""
        marks, waiting = turn.marks, next(iter(self.book.open.values()), None)
        oldest = self.book.oldest_outcome()
        o = turn.first_offset if oldest is None else min(turn.first_offset, oldest)
        p = self.examples.next_prediction() if waiting is None else waiting.prediction_offset
        s = turn.inputs.examples if waiting is None else waiting.source
        wrong = []
        if marks.s != s:
            wrong.append(f"mark s is {marks.s}, should be {s}")
        if p is not None and marks.p > p:
            wrong.append(f"mark p is {marks.p}, should be at most {p}")
        if marks.o > o:
            wrong.append(f"mark o is {marks.o}, should be at most {o}")
        return wrong

    def _leftovers(self) -> None:
        """Nothing may be there that no turn accounts for, but of turns that came while this ran."""
        p, extra = self._partition, []
        if self._replica is None:
            first = next(iter(self._source.read("predictions", p)), None)
            offset = None if first is None else first.offset
        else:
            offset = self.examples.next_prediction()
            if (update := self._replica.peek(p)) is not None:
                extra.append(f"updates-{p} offset {update[0].offset}")
        if offset is not None:
            extra.append(f"predictions-{p} offset {offset}")
        newest = max(self._epochs, default=0)
        if newest > (0 if self._replica is None else self._replica.number):
            settings = settings_of(self._epochs[newest], self._messages)
            update = Replica(self._source, settings, newest, self._epochs).peek(p)
            if update is not None and not update[1].seed:
                extra.append(f"updates-{p} offset {update[0].offset}")
        if extra and self._source.goes_on(p, self._last_offset):
            self._findings.note("the log went on meanwhile: later turns were not audited")
            extra = []
        self._findings.check(
            "leftovers", f"partition {p}", not extra, lambda: f"{' and '.join(extra)}: no turn wrote it"
        )
