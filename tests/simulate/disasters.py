"""What operators and disks do to a log when all is quiet: every worker must refuse it, say why, and write nothing.

Where there is a way on, the operator takes it, and what comes of it must pass the audit.
"""

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from mistakebound.core.messages.schema import FORMAT, encode
from mistakebound.core.model.model import first_epoch
from mistakebound.core.records import OUTPUTS, Outgoing, Topic
from mistakebound.worker.takeover import NOTHING, Accepted
from tests.simulate.broker import PartitionLog
from tests.simulate.checks import Failure, check_audit
from tests.simulate.run import REFUSALS

if TYPE_CHECKING:
    from tests.simulate.fleet import Simulation

REFUSED_S = 100.0
"""Within so much virtual time every worker has refused."""
HEALED_S = 400.0
SHARE = 0.4
"""Of all seeds have one."""


class Kind(NamedTuple):
    """One kind of disaster."""

    done: Callable[["Disaster"], bool]
    """Does it; False where this run has nothing to do it to."""
    said: str
    """What every refusal must say."""
    accepted: Accepted = NOTHING
    """What the operator has accepted already."""
    heals: Accepted | None = None
    """The way on."""
    others_work: bool = False
    """Workers of other partitions have something to do meanwhile."""


class Disaster:
    """The one of this run, or none."""

    def __init__(self, run: "Simulation", chance: Random) -> None:
        self._run, self._chance = run, chance
        name = chance.choice((*RUNNING, *STARTING, *OFTEN))
        self.name = name if chance.random() < SHARE else ""
        self.partition = chance.randrange(run.world.partitions)

    def meets_the_running(self) -> None:
        """Workers that are at work must end."""
        if self.name in RUNNING:
            kind = RUNNING[self.name]
            kind.done(self)
            self._run.must_refuse = True
            self._refused(kind)

    def meets_the_starting(self) -> None:
        """It is done while nobody works; workers that start must end."""
        kind = STARTING.get(self.name)
        if kind is None or not kind.done(self):
            return
        before = self._output_ends()
        self._start(kind.accepted, must_refuse=True)
        self._refused(kind)
        if self._output_ends() != before and not kind.others_work:
            raise Failure(f"something was written after this: {self.name}")
        if kind.heals is not None:
            self._start(kind.heals, must_refuse=False)
            self._run.append_probes()
            self._run.until(self._run.worked_off, HEALED_S, f"everything is worked off after {self.name}")
            self._run.stop_all()
            check_audit(self._run.broker, self._run.settings)

    def _start(self, accepted: Accepted, *, must_refuse: bool) -> None:
        run = self._run
        run.accepted, run.must_refuse, run.over = accepted, must_refuse, False
        for slot in run.slots:
            run.start(slot)

    def _refused(self, kind: Kind) -> None:
        run = self._run
        run.scheduler.tell(self.name)
        run.until(lambda: not run.runs(), REFUSED_S, f"every worker refuses {self.name}")
        for slot in run.slots:
            ended = slot.run and slot.run.ended
            if not isinstance(ended, REFUSALS):
                raise Failure(f"{slot.name} did not refuse {self.name}: {ended!r}")
            if kind.said not in str(ended) and "fewer partitions" not in str(ended):
                raise Failure(f"{slot.name} does not say {kind.said!r} after {self.name}: {ended}")

    def _output_ends(self) -> dict[tuple[str, int], int]:
        partitions = range(self._run.broker.partitions)
        return {(topic, p): self._run.broker.log((topic, p)).end for topic in OUTPUTS for p in partitions}

    # --- what is done ----------------------------------------------------------------------------

    def add_partition(self) -> bool:
        self._run.broker.counts["examples"] += 1
        return True

    def rename(self) -> bool:
        self._run.broker.names["examples"] = "others"
        return True

    def make_anew(self) -> bool:
        self._run.broker.ids["labels"] = "id-of-others"
        return True

    def empty_updates(self) -> bool:
        for p in range(self._run.broker.partitions):
            self._run.broker.logs["updates", p] = PartitionLog()
        return True

    def begin_tomorrow(self) -> bool:
        epoch = replace(first_epoch(self._run.settings), epoch=2, format=FORMAT + 1)
        for p in range(self._run.broker.partitions):
            self._run.broker.append([Outgoing("updates", p, None, encode(epoch))])
        return True

    def lose_update(self) -> bool:
        self._run.store.kept.clear()  # a checkpoint would still know it
        return self._lose("updates", 1)

    def lose_prediction(self) -> bool:
        """Of the newest step: what is predicted again comes in the order of the examples then."""
        broker, p = self._run.broker, self.partition
        if any(broker.log((topic, p)).low for topic in ("examples", "predictions", "outcomes")):
            return False  # not even retention could tell what is missing
        return self._lose("predictions", -1)

    def move_positions(self) -> bool:
        positions = self._run.broker.group.committed
        for p, position in positions.items():
            # Neither where an earlier step ended nor where a torn one would end.
            positions[p] = position._replace(examples=position.examples - 1, labels=position.labels + 1)
        return True

    def delete_unread(self) -> bool:
        """The next example of the partition, or the next two."""
        self._run.append_probes()
        self._run.append_probes()
        log = self._run.broker.log(("examples", self.partition))
        gone = self._chance.choice((1, 2))
        first = self._run.broker.group.committed[self.partition].examples
        for offset in range(first, first + gone):
            log.entries[offset] = None, None
        log.low = first + gone
        return True

    def truncate(self) -> bool:
        log = self._run.broker.log(("examples", self.partition))
        del log.entries[self._run.broker.group.committed[self.partition].examples - 1 :]
        log.low = min(log.low, log.end)
        return True

    def _lose(self, topic: Topic, first: int) -> bool:
        """Take one of these committed records out of the partition; False where there is none."""
        log = self._run.broker.log((topic, self.partition))
        found = log.committed(0, log.end)[first:]
        if found:
            log.entries[self._chance.choice(found).offset] = None, None
        return bool(found)


RUNNING = {
    "another partition": Kind(Disaster.add_partition, "partition"),
    "an input made anew meanwhile": Kind(Disaster.make_anew, "made anew"),
}
OFTEN = ("a prediction gone", "a prediction gone")
"""Much must come together before it matters what is made again: others of its step, and their labels."""
STARTING = {
    "updates made anew": Kind(Disaster.empty_updates, "`updates` holds nothing"),
    "an epoch of tomorrow": Kind(Disaster.begin_tomorrow, "format"),
    "an input under another name": Kind(Disaster.rename, "the offsets are of"),
    "an input made anew": Kind(Disaster.make_anew, "made anew"),
    "an update gone": Kind(Disaster.lose_update, "updates"),
    "a prediction gone": Kind(
        Disaster.lose_prediction, "--predict-missing",
        accepted=Accepted(lost_offsets=True), heals=Accepted(missing_predictions=True),
    ),
    "positions moved": Kind(
        Disaster.move_positions, "--resume-from-outcomes", heals=Accepted(lost_offsets=True)
    ),
    "input deleted unread": Kind(
        Disaster.delete_unread, "", heals=Accepted(lost_input=True), others_work=True
    ),
    "an input truncated": Kind(
        Disaster.truncate, "lies above its end", accepted=Accepted(lost_input=True)
    ),
}  # fmt: skip
