"""One partition, walked again from its inputs: every prediction, decision, update and tally made anew."""

from collections.abc import Callable, Mapping
from contextlib import suppress

from mistakebound.core.audit.counts import Counts
from mistakebound.core.audit.dead_letters import DeadLetters
from mistakebound.core.audit.examples import Examples
from mistakebound.core.audit.findings import Findings
from mistakebound.core.audit.gaps import Gaps
from mistakebound.core.audit.labels import Labels
from mistakebound.core.audit.ledgers import Ledgers
from mistakebound.core.audit.partition_steps import RecordedStep, recorded_steps
from mistakebound.core.audit.reference_ledger import ReferenceLedger
from mistakebound.core.audit.replica import Replica, settings_of
from mistakebound.core.audit.topics_read import Ahead, Source
from mistakebound.core.faults import BadLog
from mistakebound.core.messages.inputs import declared
from mistakebound.core.messages.schema import Epoch
from mistakebound.core.records import INPUTS, Lost, Record, Topic
from mistakebound.settings import MessageSettings


class Walk:
    """Walks a partition step by step: `order` says what each consumed, and the inputs say what that comes to.

    Where it cannot go on (a consumed record is missing, or a record cannot be read) the walk ends with a difference.
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
        self._dead_letters = DeadLetters(source, partition, findings)
        self._inputs = {topic: Ahead(source.read(topic, partition)) for topic in INPUTS}
        self._next: dict[str, int | None] = {"examples": None, "labels": None}
        self._replica: Replica | None = None
        self.ledger: ReferenceLedger
        self.counts: Counts
        self.labels: Labels
        self.examples: Examples
        self.whole = False
        """Whether the walk came to the end of `outcomes`."""
        self.last: RecordedStep | None = None
        """The newest partition step."""
        self._last_offset = -1
        self._known_differences: dict[str, tuple[object, object]] = {}

    def run(self) -> None:
        """Walk to the end of `outcomes`."""
        try:
            for step in recorded_steps(self._source.read("outcomes", self._partition), self._findings):
                self._begin(step)
                self._take(step)
                self._end(step)
                self.last, self._last_offset = step, step.last_offset
                self._progress(self._partition, step.last_offset)
            self.whole = True
            if self._replica is not None:
                self.examples.settle(self._replica)
                self.examples.end()
                self._pass_epochs(self._replica.number, max(self._epochs))
            self._leftovers()
        except BadLog as error:
            self._findings.check("steps", f"partition {self._partition}", False, f"given up here: {error}")

    # --- a partition step begins ----------------------------------------------------------------------------

    def _begin(self, step: RecordedStep) -> None:
        if self._replica is not None:
            self.examples.settle(self._replica, step.model)
        if self._replica is None or step.model.epoch != self._replica.number:
            self._begin_epoch(step)
        replica, p = self._replica, self._partition
        assert replica is not None
        where = f"outcomes-{p} offset {step.first_offset}"
        if len(step.model.updates) != replica.model.partitions:
            raise BadLog(f"{where}: its version has {len(step.model.updates)} partitions")
        self.labels.unexplained(step.model.updates[p], step.last_offset)
        for q, updates in enumerate(step.model.updates):
            there = replica.reach(q, updates)
            text = f"it began with update {updates} of partition {q}, but {replica.model.updates[q]} are there (the version goes back behind outcomes-{p} offset {self._last_offset}, or updates are missing)"
            self._findings.check("step versions", where, there, text)
        self._wind(step, where)
        replica.read_by(step.messages)
        self.counts.begin_step()
        self.ledger.here = step.first_offset
        self.labels.schemas.begin(step)
        self.labels.begin(step)
        self.examples.begin_step(step)

    def _wind(self, step: RecordedStep, where: str) -> None:
        """Set the clock to the recorded one; its own entry is the labels applied in the epoch."""
        assert self._replica is not None
        model, p = self._replica.model, self._partition
        own, recorded = self.counts.epoch.judged, step.model.clock
        if model.learner.averaged:
            whole = recorded is not None and len(recorded) == model.partitions
            holds = recorded is not None and whole and recorded[p] == own
            self._findings.check(
                "step versions", where, holds, lambda: f"its clock is {recorded}; entry {p} should be {own}"
            )
            if recorded is not None and whole:
                model.clock = list(recorded)
        model.clock[p] = own

    def _begin_epoch(self, step: RecordedStep) -> None:
        number, p = step.model.epoch, self._partition
        if number not in self._epochs or (self._replica is not None and number < self._replica.number):
            raise BadLog(f"outcomes-{p} offset {step.first_offset} is of epoch {number}, which never began")
        settings = settings_of(self._epochs[number], self._messages)
        old, self._replica = self._replica, Replica(self._source, settings, number, self._epochs)
        if old is None:
            self.ledger, self.counts = ReferenceLedger(settings.labels, self._most_remembered()), Counts(())
        else:
            self.labels.unexplained(None, step.last_offset)
        self._pass_epochs(0 if old is None else old.number, number)
        self.labels = Labels(self._replica, p, self.ledger, self.counts, self._dead_letters, self._findings)
        if old is None:
            self.examples = Examples(
                self._source, self._replica, p, self.labels, self._dead_letters, self._findings
            )
        else:
            self.examples.begin_epoch(self._replica, self.labels)

    def _pass_epochs(self, after: int, last: int) -> None:
        """Take the rules of each epoch after `after` up to `last`, and begin its counts."""
        for number in sorted(self._epochs):
            if after < number <= last:
                settings = settings_of(self._epochs[number], self._messages)
                self.ledger.rule(settings.labels)
                self.counts.begin_epoch(declared(settings.labels))
                self._look_at_ledgers(number, self._last_offset)

    def _most_remembered(self) -> int:
        found = [0]
        for epoch in self._epochs.values():
            with suppress(BadLog):
                found.append(settings_of(epoch, self._messages).labels.remember)
        return max(found)

    def _look_at_ledgers(self, epoch: int, last_offset: int) -> None:
        self._ledgers.compare(self._partition, last_offset, epoch, self.ledger, self.counts, self._findings)

    # --- its records ------------------------------------------------------------------------------

    def _take(self, step: RecordedStep) -> None:
        gaps = Gaps(step.decisions)
        for run, count in enumerate(step.order):
            topic = INPUTS[run % 2]
            for _ in range(count):
                record = gaps.next_record(self._inputs[topic], topic, self._partition)
                if record is None:
                    raise BadLog(
                        f"outcomes-{self._partition} offset {step.last_offset} consumed {count} {topic}, which "
                        "are not there"
                    )
                if isinstance(record, Lost):
                    self._look_at_gap(record, step.last_offset)
                self._next[topic] = record.offset + 1
                self._consume(record)
        self._close(step)

    def _look_at_gap(self, gap: Lost, last_offset: int) -> None:
        """It must begin where the input had been read to, or behind: what was read cannot have been lost."""
        known = self._next[gap.topic]
        where = f"outcomes-{self._partition} offset {last_offset}"
        text = f"{gap.topic} from {gap.first} to {gap.offset} are called lost, but {known} comes next"
        self._findings.check("decisions", where, known is None or known <= gap.first <= gap.offset, text)
        self._findings.note("gaps in the input, deleted or damaged before it was read, were taken on trust")

    def _consume(self, record: Record) -> None:
        self.ledger.advance(record.timestamp_ms)
        while (due := self.ledger.next_due()) is not None:
            self.labels.ended(due)
        self.counts.consumed(record.topic)
        if record.topic == "labels":
            self.labels.take(record)
        else:
            self.examples.take(record)
        while (surplus := self.ledger.next_surplus()) is not None:
            self.labels.ended(surplus)

    def _close(self, step: RecordedStep) -> None:
        """A step may close between expiries, before the record that caused them: `at` is then that record's time."""
        where = f"outcomes-{self._partition} offset {step.last_offset}"
        heads = (ahead.peek() for ahead in self._inputs.values())
        times = {max(self.ledger.now, head.timestamp_ms) for head in heads if head is not None}
        text = f"its stream time is {step.at}, should be {self.ledger.now} or, with expiries left, a next record's, {times}"
        among = step.at in times and self.labels.undecided()
        if self._findings.check("committed positions", where, step.at == self.ledger.now or among, text):
            self.ledger.advance(step.at)
        while self.labels.undecided() and (due := self.ledger.next_due()) is not None:
            self.labels.ended(due)
        self.labels.end()

    # --- a partition step ends ------------------------------------------------------------------------------

    def _end(self, step: RecordedStep) -> None:
        where = f"outcomes-{self._partition} offset {step.last_offset}"
        self.counts.end_step(step.tallies, self._findings)
        differences = self.counts.differences(step.tallies)
        text = "; ".join(f"{name} is {one}, should be {two}" for name, (one, two) in differences.items())
        known = not differences or differences == self._known_differences
        self._findings.check("tallies", where, known, text)
        self._known_differences = differences
        wrong = [
            f"the next {topic} offset is {recorded}, should be {self._next[topic]}"
            for topic in INPUTS
            if not self._is_next(topic, recorded := getattr(step.inputs, topic))
        ]
        wrong += self._recovery_point(step)
        self._findings.check("committed positions", where, not wrong, "; ".join(wrong))
        self.labels.schemas.end(step)
        self._look_at_ledgers(step.model.epoch, step.last_offset)

    def _is_next(self, topic: Topic, recorded: int) -> bool:
        known = self._next[topic]
        if known is not None:
            return recorded == known
        head = self._inputs[topic].peek()
        self._next[topic] = recorded  # where the input began; until some of it is consumed, it stays there
        return recorded >= 0 and (head is None or recorded <= head.offset)

    def _recovery_point(self, step: RecordedStep) -> list[str]:
        """What is wrong with the recovery point: lower is always safe, except for `source`."""
        point, waiting = step.recovery_point, next(iter(self.ledger.waiting.values()), None)
        oldest = self.ledger.oldest_outcome()
        o = step.first_offset if oldest is None else min(step.first_offset, oldest)
        p = self.examples.next_prediction() if waiting is None else self.ledger.oldest_prediction()
        s = step.inputs.examples if waiting is None else waiting.source
        wrong = []
        if point.source != s:
            wrong.append(f"mark s is {point.source}, should be {s}")
        if point.predictions < 0 or (p is not None and point.predictions > p):
            wrong.append(f"mark p is {point.predictions}, should be from 0 to {p}")
        if not 0 <= point.outcomes <= o:
            wrong.append(f"mark o is {point.outcomes}, should be from 0 to {o}")
        return wrong

    def _leftovers(self) -> None:
        """Nothing may be left that no partition step accounts for, unless steps were added while this ran."""
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
        if (letter := self._dead_letters.left()) is not None:
            extra.append(letter.location)
        newest = max(self._epochs, default=0)
        if newest > (0 if self._replica is None else self._replica.number):
            settings = settings_of(self._epochs[newest], self._messages)
            update = Replica(self._source, settings, newest, self._epochs).peek(p)
            if update is not None and not update[1].seed:
                extra.append(f"updates-{p} offset {update[0].offset}")
        if extra and self._source.goes_on(p, self._last_offset):
            self._findings.note("the log went on meanwhile: later partition steps were not audited")
            extra = []
        text = f"{' and '.join(extra)}: no partition step wrote it"
        self._findings.check("leftovers", f"partition {p}", not extra, text)
