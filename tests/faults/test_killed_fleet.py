"""The promise after crashes, on Kafka: workers and broker are killed, and every number is derived again."""

import random
import time
from collections import Counter

from tests.faults.support.chance import chance_of, examples, sized
from tests.faults.support.children import Children
from tests.faults.support.deployment import Deployment
from tests.faults.support.feed import Feed
from tests.faults.support.fleet import Fleet
from tests.faults.support.onlooker import Onlooker
from tests.faults.support.open_transactions import open_below
from tests.faults.support.stream import SETTINGS, stream
from tests.log.support.broker import Broker

SLOTS = ("one", "two")
RULES = ("batch.max_records=200", "checkpoint.every_updates=300", "checkpoint.every=1")
"""Small steps, so that kills meet open transactions; checkpoints often enough to start from one."""
KILLED_BY = 0.72
"""The last kill comes before this share of the stream; then come the signals."""
STOPPED_BY = 0.94
BETWEEN = 0.2
"""At least so much of the stream is worked off between two kills of the same."""


def test_workers_and_broker_killed_lose_and_double_nothing(
    broker: Broker, prefix: str, children: Children
) -> None:
    """Both workers and the broker are killed, each again only after a fifth of the stream, and stopped by signals
    towards the end. Afterwards a recount of the topics agrees with all that is said, to the bit: both replicas, the
    audit; no transaction is open; and a reader that looked on all the time saw each prediction once."""
    chance = chance_of("killed fleet")
    count, kills = examples(5_000, 100_000), sized(1, 3)
    records = stream(count, chance.randrange(2**32))
    begun = time.monotonic()
    with (
        Deployment(f"kafka://{broker.bootstrap}", prefix, children, *SETTINGS, *RULES) as place,
        Onlooker(broker.bootstrap, f"{prefix}predictions") as onlooker,
    ):
        feed, fleet = Feed(place, records), Fleet(place)
        feed.to(len(records) // 3)
        fleet.start(*SLOTS)
        for moment, target in plan(chance, kills):
            feed.to(round((moment + 0.05) * len(records)))
            fleet.reaches(round(moment * len(records)))
            time.sleep(chance.uniform(0, 0.1))
            strike(target, fleet, broker)
            print(f"{time.monotonic() - begun:.1f} s: {target} at {moment:.0%} of {len(records)} records")
        feed.rest()
        found = fleet.prove()
        onlooker.saw_once(set(found.predictions))
        print(f"{time.monotonic() - begun:.1f} s: proved, {found.updates} updates, {found.mistakes} mistakes")
    assert open_below(broker.bootstrap, prefix) == {}
    ids = {f"case-{number}" for number in range(count)}
    assert {record_id for record_id in found.predictions if not record_id.startswith("probe-")} == ids
    assert found.labels["applied"] > 0.9 * count
    assert found.mistakes > 0.1 * count
    assert all(found.examples[name] for name in ("expired", "duplicate", "invalid")), found.examples
    assert all(found.labels[name] for name in ("duplicate", "conflict", "expired", "unmatched", "invalid"))


def plan(chance: random.Random, kills: int) -> list[tuple[float, str]]:
    """(share of the stream, what is done), in order: `kills` of each worker and of the broker, then as many
    signals to each worker."""
    planned = []
    for target in (*(f"kill {slot}" for slot in SLOTS), "kill the broker"):
        spare = KILLED_BY - BETWEEN * (kills - 1)
        moments = sorted(chance.uniform(0.03, spare) for _ in range(kills))
        planned += [(moment + BETWEEN * number, target) for number, moment in enumerate(moments)]
    for slot in SLOTS:
        planned += [(chance.uniform(KILLED_BY, STOPPED_BY), f"stop {slot}") for _ in range(kills)]
    assert set(Counter(target for _, target in planned).values()) == {kills}
    return sorted(planned)


def strike(target: str, fleet: Fleet, broker: Broker) -> None:
    """Do it, and start again what ended by it."""
    how, _, what = target.partition(" ")
    if what == "the broker":
        broker.restart()
    elif how == "kill":
        fleet.kill(what)
        fleet.start(what)
    else:
        fleet.stop(what)
        fleet.start(what)
