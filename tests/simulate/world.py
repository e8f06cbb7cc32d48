"""The world of one seed: what its workers are told, what is sent to them, and how good network and store are."""

import json
from dataclasses import dataclass
from random import Random

from mistakebound.core.records import Outgoing
from mistakebound.log.partitioner import partition_of
from mistakebound.settings import Settings
from tests.faults.support.stream import stream
from tests.simulate.broker import MOST_BYTES
from tests.simulate.client import Client
from tests.simulate.network import Weather

SMALL_BYTES = 12_000
"""What the output topics take in some worlds, so that there are examples that lead to too much."""
CALM_DELAY_S, CALM_MARKERS_S = 0.01, 0.5
"""In calm weather requests and markers take less."""


@dataclass(frozen=True)
class World:
    """All of it is drawn from the seed."""

    brokers: int
    partitions: int
    workers: int
    settings: Settings
    client: Client
    records: list[Outgoing]
    pace_s: float
    """At most so long between two pieces of the stream."""
    weather: Weather
    slow_markers_s: float
    store_fails: float
    most_bytes: int

    @property
    def is_calm(self) -> bool:
        """Whether the network does nothing to anybody unless a fault strikes."""
        weather = self.weather
        return weather.ends == 0 and weather.delay_s < CALM_DELAY_S and self.slow_markers_s < CALM_MARKERS_S


def world_of(seed: int, workers: int | None, client: Client | None) -> World:
    """The world of this seed, with so many workers and this client where one is asked for."""
    chance = Random(f"{seed} world")
    partitions = chance.choice((1, 2, 3, 4))
    count = workers or chance.choice((1, 2, 2, 3))
    settings = _settings(chance, "averaged-perceptron" if seed % 2 else "perceptron")
    drawn = Client(asks_again=chance.random() < 0.5, most_records=chance.choice((5, 20, 100)))
    most_bytes = chance.choice((MOST_BYTES, SMALL_BYTES))
    return World(
        brokers=chance.choice((1, 1, 3)),
        partitions=partitions,
        workers=count,
        settings=settings,
        client=client or drawn,
        records=_records(chance, partitions, most_bytes),
        pace_s=chance.choice((0.0, 0.1, 0.5, 4.0, 10.0)),
        weather=Weather(
            delay_s=chance.choice((0.000_5, 0.005, 0.05)), ends=chance.choice((0.0, 0.0, 0.01, 0.05))
        ),
        slow_markers_s=chance.choice((0.01, 0.1, 2.0)),
        store_fails=chance.choice((0.0, 0.0, 0.3)),
        most_bytes=most_bytes,
    )


def placed(record: Outgoing, partitions: int) -> Outgoing:
    """The record in the partition of its key."""
    return record._replace(partition=partition_of(record.key, partitions))


def _records(chance: Random, partitions: int, most_bytes: int) -> list[Outgoing]:
    found = stream(chance.choice((20, 60, 120)), chance.randrange(2**32))
    if most_bytes == SMALL_BYTES:
        for number in range(chance.randrange(1, 4)):
            at = chance.randrange(len(found))
            found.insert(at, _large(f"large-{number}", found[at].timestamp_ms, chance))
    return [placed(each, partitions) for each in found]


def _large(record_id: str, time_ms: int | None, chance: Random) -> Outgoing:
    """An example of which the prediction does not fit, or only just fits."""
    features = {"pad": "x" * round(SMALL_BYTES * chance.choice((0.5, 0.95, 1.1)))}
    value = json.dumps({"id": record_id, "features": features}).encode()
    return Outgoing("examples", -1, record_id.encode(), value, (), time_ms)


def _settings(chance: Random, learner: str) -> Settings:
    """Small numbers, so that everything happens within a few records. Only what averages depends on the updates' clocks."""
    return Settings.model_validate(
        {
            "log": {"url": "kafka://simulated:9092", "prefix": "s."},
            "learner": {"kind": learner},
            "labels": {
                "max_delay": chance.choice((0.5, 20)), "parking": chance.choice((0.2, 10)),
                "max_waiting": chance.choice((10, 1_000)), "remember": chance.choice((20, 100_000, 100_000)),
            },
            "batch": {"max_records": chance.choice((3, 10, 50)), "max_delay": 0},
            "checkpoint": {
                "url": chance.choice(("simulated", "simulated", "")), "every": chance.choice((0.5, 5)),
                "every_updates": chance.choice((5, 50)),
            },
        }
    )  # fmt: skip
