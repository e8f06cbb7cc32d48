"""Fuzz whole records on a real broker: `python -m tests.fuzz.records --minutes 10 --client confluent [--seed N]`.

Producers write in transactions, of which some are aborted, some left open for a while and some given up, and outside
of any; in every codec. A worker works on it; it is killed, stopped and started again. At the end:

1. No worker has ended by itself.
2. Nothing waits, as the worker itself, its probes and `status` say, though the last offsets are markers.
3. An independent recount of the log comes to what the producers know they committed, and to what `status` says.
4. `audit` finds no difference.
"""

import argparse
import contextlib
import json
import os
import secrets
import signal
import sys
import tempfile
import time
import urllib.request
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from mistakebound.commands.committed_report import read_lag
from mistakebound.core.records import TOPICS, Outgoing
from mistakebound.core.reporting.status import Behind
from mistakebound.exit_codes import ExitCode
from mistakebound.log import open_log
from mistakebound.settings import LogSettings, Settings
from tests.faults.support.chance import CLIENT
from tests.faults.support.children import Child, Children, until
from tests.faults.support.deployment import PATIENCE_S, Deployment, address_of, assigned
from tests.faults.support.stream import SETTINGS
from tests.fuzz.whole_records import CODECS, Records
from tests.log.support.upstream import Upstream

PARTITIONS = 3
ANY_TIME = {"message.timestamp.after.max.ms": str(2**63 - 1), "retention.ms": "-1"}
CLIENTS = ("kafka-python", "confluent")
MOST = 60
"""Records of one batch or transaction."""
BACKLOG = 6_000
"""Records that the worker may be behind before the producers wait for it."""
TURN_S = 0.02
AUDIT_S = 1_800.0


@dataclass
class Sent:
    """What the producers did."""

    committed: Counter[str] = field(default_factory=Counter)
    """Records by topic."""
    turns: Counter[str] = field(default_factory=Counter)
    codecs: Counter[str] = field(default_factory=Counter)

    def add(self, records: list[Outgoing]) -> None:
        self.committed.update(each.topic for each in records)


class Producers:
    """For each codec one that writes in transactions, and one that does not."""

    def __init__(self, bootstrap: str, prefix: str, chance: Random, records: Records) -> None:
        self._bootstrap, self._prefix, self._chance, self._records = bootstrap, prefix, chance, records
        self._plain = {codec: Upstream(bootstrap, prefix, codec=codec) for codec in CODECS}
        self._transactional = {codec: self._made(codec) for codec in CODECS}
        self._open: dict[str | None, tuple[Any, int]] = {}
        """The open transaction of a codec's producer, and the turns that are left to it."""
        self.sent = Sent()

    def turn(self) -> None:
        """One batch or transaction of one of them, of any end."""
        chance, sent = self._chance, self.sent
        for codec, (block, left) in list(self._open.items()):
            self._open[codec] = (block, left - 1)
            if left <= 0:
                del self._open[codec]
                block.__exit__(None, None, None)
        codec = chance.choice(CODECS)
        records = self._records.take(MOST)
        ends = ("plain", "commit", "commit", "abort", "leave_open", "give_up", "empty")
        end = chance.choices(ends, (6, 3, 3, 3, 1, 0.3, 0.5))[0]
        if codec in self._open:
            end = "plain"
        sent.turns[end] += 1
        sent.codecs[str(codec)] += len(records)
        transactional = self._transactional[codec]
        match end:
            case "plain":
                self._plain[codec].send(records)
            case "empty":
                transactional.commit([])
            case "leave_open":
                block = transactional.leave_open(records)
                block.__enter__()
                self._open[codec] = (block, chance.randint(1, 30))
            case "give_up":  # its successor's start aborts it
                transactional.leave_open(records).__enter__()
                self._transactional[codec] = self._made(codec)
                transactional.close()
            case _:
                getattr(transactional, end)(records)
        if end in ("plain", "commit", "leave_open"):
            sent.add(records)

    def end_open(self) -> None:
        """What lies above an open transaction is not there for anybody yet."""
        for block, _ in self._open.values():
            block.__exit__(None, None, None)
        self._open.clear()

    def finish(self) -> None:
        """End what is open, and leave aborted records and markers at the end of every partition."""
        self.end_open()
        tail = [
            Outgoing(topic, p, b"tail", b"{}") for topic in ("examples", "labels") for p in range(PARTITIONS)
        ]
        self._transactional[None].abort(tail)

    def close(self) -> None:
        for each in (*self._plain.values(), *self._transactional.values()):
            each.close()

    def _made(self, codec: str | None) -> Upstream:
        return Upstream(self._bootstrap, self._prefix, f"{self._prefix}upstream-{codec}", codec)


class Supervised:
    """The worker, which nothing may end but its supervisor."""

    def __init__(self, place: Deployment, chance: Random) -> None:
        self._place, self._chance = place, chance
        self.child = place.worker()
        self.done: Counter[str] = Counter()

    def look(self) -> None:
        """Raises AssertionError where it has ended by itself."""
        assert self.child.code is None, f"the worker stopped: {self.child.last_words()}"

    def again(self) -> None:
        """End it by a power cut, or as a supervisor does, and start it again."""
        self.look()
        if self._chance.random() < 0.7:
            self.done["killed"] += 1
            self.child.kill()
        else:
            self.done["stopped"] += 1
            stop(self.child)
        self.child = self._place.worker()


def stop(worker: Child) -> None:
    address_of(worker)  # before that it does not know about signals yet
    worker.signal(signal.SIGTERM)
    assert worker.ends(30) == 0, worker.last_words()


def fuzz(bootstrap: str, seconds: float, client: str, seed: int, home: Path) -> dict[str, Any]:
    """One run; returns its figures. Raises AssertionError at a find."""
    os.environ[CLIENT] = client
    chance = Random(seed)
    prefix = f"fuzz-{uuid.uuid4().hex[:8]}."
    with open_log(Settings(log=LogSettings(url=f"kafka://{bootstrap}", prefix=prefix))) as log:
        log.create_topics(PARTITIONS, dict.fromkeys(TOPICS, ANY_TIME))
    children = Children(home)
    records = Records(chance, PARTITIONS)
    rules = (*SETTINGS, "batch.max_records=200", "checkpoint.every_updates=300")
    try:
        with (
            Deployment(f"kafka://{bootstrap}", prefix, children, *rules, partitions=PARTITIONS) as place,
            contextlib.closing(Producers(bootstrap, prefix, chance, records)) as producers,
        ):
            worker = Supervised(place, chance)
            _work(place, producers, worker, chance, seconds)
            producers.finish()
            _worked_off(place, worker)
            stop(worker.child)
            return _proven(place, producers.sent) | {
                "client": client,
                "seed": seed,
                "odd": dict(records.kinds),
                "turns": dict(producers.sent.turns),
                "records by codec": dict(producers.sent.codecs),
                "worker": dict(worker.done),
            }
    finally:
        children.kill()


def _work(
    place: Deployment, producers: Producers, worker: Supervised, chance: Random, seconds: float
) -> None:
    end = time.monotonic() + seconds
    assigned(worker.child)
    again, reached = time.monotonic() + chance.uniform(2, 10), 0
    while time.monotonic() < end:
        producers.turn()
        worker.look()
        if time.monotonic() > again:
            producers.end_open()
            until(
                lambda before=reached: place.consumed() > before,
                PATIENCE_S,
                "it works between two ends",
                worker.child,
            )
            reached = place.consumed()
            worker.again()
            again = time.monotonic() + chance.uniform(3, 20)
        elif producers.sent.turns.total() % 50 == 0:
            producers.end_open()
            until(lambda: _behind(place) < BACKLOG, PATIENCE_S, "the worker keeps up", worker.child)
        time.sleep(TURN_S)


def _behind(place: Deployment) -> int:
    return sum(each.examples + each.labels for each in read_lag(place.log).values())


def _worked_off(place: Deployment, worker: Supervised) -> None:
    """Nothing waits, whoever is asked."""
    nothing = dict.fromkeys(range(PARTITIONS), Behind(0, 0))
    until(lambda: read_lag(place.log) == nothing, PATIENCE_S, "everything is worked off", worker.child)

    def quiet() -> bool:
        with urllib.request.urlopen(f"{address_of(worker.child)}/readyz", timeout=10) as answer:
            said = json.loads(answer.read())
        return [each["lag"] for each in said["partitions"]] == [0] * PARTITIONS

    until(quiet, PATIENCE_S, "the worker sees no lag", worker.child)


def _proven(place: Deployment, sent: Sent) -> dict[str, Any]:
    found = place.prove()
    told = place.children.json("status", "--json", *place.options)
    consumed = {"examples": told["examples"], "labels": told["labels"]["consumed"]}
    assert consumed == dict(sent.committed), f"{consumed} were consumed, {dict(sent.committed)} committed"
    assert all(both == {"examples": 0, "labels": 0} for both in told["lag"].values()), told["lag"]
    checkpoints = f"checkpoint.url={place.children.home / 'checkpoints'}"
    audited = place.children.start("audit", "--json", *place.options, "--set", checkpoints)
    assert audited.ends(AUDIT_S) in (ExitCode.DONE, ExitCode.CHECK_FAILED), audited.last_words()
    audit = json.loads(audited.out())
    assert audit["differences"] == {}, audit["first"]
    reasons: Counter[str] = Counter()
    for p in range(PARTITIONS):
        for letter in place.log.read("dead-letters", p, 0):
            reasons[dict(letter.headers)["mistakebound.reason"].decode()] += 1  # type: ignore[union-attr]
    return {
        "committed": dict(sent.committed),
        "predicted": len(found.predictions),
        "judged": len(found.judged),
        "mistakes": found.mistakes,
        "updates": found.updates,
        "dead letters": dict(reasons),
    }


@contextlib.contextmanager
def broker(home: Path) -> Iterator[str]:
    """The address of the broker that is there, or of one started for the run."""
    from tests.log.support.broker import Broker

    if named := os.environ.get("MISTAKEBOUND_TEST_BOOTSTRAP"):
        yield named
    else:
        with Broker(home / "broker") as started:
            yield started.bootstrap


def main() -> int:
    """Exit code 0 where nothing was found."""
    reader = argparse.ArgumentParser(prog="python -m tests.fuzz.records", description=__doc__)
    reader.add_argument("--minutes", type=float, default=1.0)
    reader.add_argument("--client", choices=CLIENTS, action="append", help="default: each, one after another")
    reader.add_argument("--seed", type=int, default=secrets.randbelow(2**40))
    asked = reader.parse_args()
    clients = asked.client or CLIENTS
    with tempfile.TemporaryDirectory(prefix="mistakebound-fuzz-") as name, broker(Path(name)) as bootstrap:
        for client in clients:
            print(f"seed {asked.seed}, {client}, {asked.minutes:g} minutes", flush=True)
            home = Path(name) / client
            home.mkdir()
            try:
                print(json.dumps(fuzz(bootstrap, 60 * asked.minutes, client, asked.seed, home), indent=1))
            except AssertionError as error:
                print(f"FOUND {client}, seed {asked.seed}: {error}", flush=True)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
