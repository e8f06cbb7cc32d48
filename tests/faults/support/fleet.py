"""Several workers of one group, each with a slot of its own, under a supervisor as they have it in production."""

import json
import re
import signal
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from kafka import KafkaAdminClient

from mistakebound.core.checkpoint_content import Checkpoint, decode_checkpoint
from mistakebound.core.messages.schema import read_outcomes, read_prediction
from mistakebound.core.records import Outgoing
from mistakebound.log.newest import newest_record
from mistakebound.worker.checkpoints.catalog import Catalog
from mistakebound.worker.checkpoints.local import LocalCheckpointStore
from tests.commands.support.command_line import ok
from tests.faults.support.children import Child, until
from tests.faults.support.deployment import NAMED_ENDS, PATIENCE_S, Deployment, address_of
from tests.faults.support.recount import REMEMBERED, Recount, recount

Json = dict[str, Any]
MOST_REVIVALS = 5
"""Of one slot between two things that the test itself does to it."""
STOP_S = 15.0


class Fleet:
    """Workers by slot. One that ends as it may is started again; any other end fails the test."""

    def __init__(self, place: Deployment, may_end: Collection[int] = NAMED_ENDS) -> None:
        """`may_end`: the exit codes with which a worker may end by itself."""
        self.place = place
        self._may_end = may_end
        self.workers: dict[str, Child] = {}
        self.slots: set[str] = set()
        """All that ever worked."""
        self._revived: dict[str, int] = {}
        self._probes = 0

    # --- what is done to them ---------------------------------------------------------------------

    def start(self, *slots: str, first: str = "") -> None:
        for slot in slots:
            self.workers[slot] = self.place.worker(f"worker.slot={slot}", first=first)
            self.slots.add(slot)
            self._revived[slot] = 0

    def kill(self, slot: str) -> None:
        """End it as a power cut does."""
        self.workers.pop(slot).kill()

    def stop(self, *slots: str) -> None:
        """End them as a supervisor does, all at once; they must end well, and in time."""
        self.supervise()
        for slot in slots:
            address_of(self.workers[slot])  # before that it does not know about signals yet
        leaving = [self.workers.pop(slot) for slot in slots]
        for worker in leaving:
            worker.signal(signal.SIGTERM)
        for worker in leaving:
            assert worker.ends(STOP_S) == 0, worker.last_words()

    def rejoins(self, slot: str, before: int) -> None:
        """The worker of this slot takes partitions over again, or it ended as it may and its successor does;
        `before`: how often the former had."""
        worker = self.workers[slot]

        def met() -> bool:
            now = self.workers[slot]
            return len(taken_over(now)) > (before if now is worker else 0)

        self.until(met, f"worker {slot} is back")

    def supervise(self) -> None:
        """Start again what has ended as it may."""
        for slot, worker in list(self.workers.items()):
            if worker.code is not None:
                assert worker.code in self._may_end, worker.last_words()
                self._revived[slot] += 1
                assert self._revived[slot] <= MOST_REVIVALS, worker.last_words()
                print(f"worker {slot} ended with {worker.code} and is started again")
                self.workers[slot] = self.place.worker(f"worker.slot={slot}")

    # --- what is waited for -----------------------------------------------------------------------

    def until(self, met: Callable[[], Any], wanted: str, seconds: float = PATIENCE_S) -> Any:
        """Wait until `met`, as a supervisor."""

        def seen() -> Any:
            self.supervise()
            return met()

        try:
            return until(seen, seconds, wanted)
        except AssertionError as error:
            said = "; ".join(f"{slot}: {worker.last_words()}" for slot, worker in self.workers.items())
            raise AssertionError(f"{error}; {said}") from None

    def reaches(self, count: int) -> None:
        """So many input records are consumed, at least. Fails when nothing is consumed for a minute."""
        while (now := self.place.consumed()) < count:
            wanted = f"more than {now} records are consumed, of {count}"
            self.until(lambda before=now: self.place.consumed() > before, wanted)

    def works_off(self) -> None:
        """Everything sent is consumed."""
        total = self.place.sent()
        self.reaches(total)
        assert self.place.consumed() == total

    def shares(self) -> dict[str, tuple[int, ...]]:
        """The partitions that each worker took over last."""
        return {slot: owned(worker) for slot, worker in self.workers.items()}

    def shared_out(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Every partition has one owner, and every worker owns some; `meanwhile` is done again and again."""
        partitions = list(range(self.place.partitions))

        def met() -> bool:
            meanwhile()
            shares = self.shares().values()
            return all(shares) and sorted(p for share in shares for p in share) == partitions

        self.until(met, f"{len(self.workers)} workers own all partitions between them")

    # --- what must be true ------------------------------------------------------------------------

    def meets(self) -> list[int]:
        """Wait until every owner predicts with all the updates that there are; returns how many by partition.

        All input must have been worked off. It asks with an example in each partition that gets no label.
        """
        self.works_off()
        known = updates_of(self.place)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            self._probes += 1
            ids = [f"probe-{self._probes}-{p}" for p in range(self.place.partitions)]
            self.place.send([self._probe(p, record_id) for p, record_id in enumerate(ids)])
            self.works_off()
            asked = [newest_record(self.place.log, "predictions", p) for p in range(self.place.partitions)]
            answers = [read_prediction(each) for each in asked if each is not None]
            assert [each.id for each in answers] == ids
            if all(list(each.model.updates) == known for each in answers):
                return known
            assert time.monotonic() < deadline, f"{known} updates are there; still {answers}"

    def _probe(self, partition: int, record_id: str) -> Outgoing:
        value = json.dumps({"id": record_id, "features": {"x0": 1.0, "x1": -1.0}}).encode()
        newest = max((stamp for stamp in self._stream_times() if stamp is not None), default=None)
        return Outgoing("examples", partition, record_id.encode(), value, (), newest)

    def _stream_times(self) -> list[int | None]:
        newest = [newest_record(self.place.log, "outcomes", p) for p in range(self.place.partitions)]
        return [read_outcomes(each).at for each in newest if each is not None]

    def held(self, slot: str) -> Checkpoint | None:
        """What the worker of this slot held when it wrote its newest checkpoint."""
        folder = self.place.children.home / "checkpoints"
        newest = next(Catalog(LocalCheckpointStore(folder), self.place.settings.group, slot).valid(), None)
        return None if newest is None else decode_checkpoint(newest.payload)

    def agrees(self, found: Recount, *slots: str) -> None:
        """The model of each of these workers, as its newest checkpoint keeps it, is that of the recount: rows of
        theta and kappa are the same to the bit. Waits for the checkpoints of live workers."""

        def written() -> bool:
            held = [self.held(slot) for slot in slots]
            return all(each is not None and each.model.updates == found.updates for each in held)

        try:
            self.until(written, f"checkpoints of {slots} with {found.updates} updates")
        except AssertionError as error:
            held = {
                slot: checkpoint and checkpoint.model.updates
                for slot in slots
                if (checkpoint := self.held(slot))
            }
            raise AssertionError(f"{error}; they have {held}") from None
        for slot in slots:
            held = self.held(slot)
            assert held is not None
            for name, rows in (("theta", found.theta), ("kappa", found.kappa)):
                if name in held.model.state:
                    assert bits(held.model.state[name]) == bits(rows), (
                        f"{name} of {slot} differs from the log's"
                    )

    def prove(self, remember: int = REMEMBERED) -> Recount:
        """Stop all; recount the log; compare with all that the workers and the commands say."""
        self.shared_out()
        self.meets()
        slots = tuple(self.workers)
        self.stop(*slots)
        found = recount(self.place.log, remember)
        self.agrees(found, *slots)
        told = self.asks("status", "--model")
        assert told["model"]["digest"] == found.digest
        assert told["model"]["updates"] == found.updates
        assert told["mistakes"] == found.mistakes
        assert (told["waiting"], told["parked"]) == (found.waiting, found.parked)
        assert self.asks("audit")["differences"] == {}
        return found

    def asks(self, *verb: str) -> Any:
        """The JSON output of a command that must succeed."""
        folder = self.place.children.home / "checkpoints"
        options = (*self.place.options, "--set", f"checkpoint.url={folder}")
        return json.loads(ok(*verb, "--json", *options, log=None).stdout)


@contextmanager
def members(bootstrap: str, group: str) -> Iterator[Callable[[], int]]:
    """How many members the group has, as the broker sees it."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        yield lambda: len(admin.describe_groups([group])[group]["members"])
    finally:
        admin.close()


def taken_over(worker: Child) -> list[Json]:
    """What a worker said of each assignment, in order."""
    said = re.findall(r'^\{.*"event": "assigned".*\}$', worker.err(), re.MULTILINE)
    return [json.loads(line) for line in said]


def owned(worker: Child) -> tuple[int, ...]:
    """The partitions that a worker took over last, as it says itself."""
    said = taken_over(worker)
    return tuple(said[-1]["partitions"]) if said else ()


def updates_of(place: Deployment) -> list[int]:
    """Updates of each partition, as the newest `outcomes` count them."""
    found = []
    for p in range(place.partitions):
        newest = newest_record(place.log, "outcomes", p)
        tallies = None if newest is None else read_outcomes(newest).tallies
        found.append(0 if tallies is None else tallies.epoch.updates)
    return found


def bits(rows: Any) -> list[dict[str, str]]:
    """Rows with every float written out to the bit."""
    return [{name: float(value).hex() for name, value in row.items()} for row in rows]
