"""Every test here that asks for `place`, `log` or `worker` runs on every log."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mistakebound.log.protocol import Log
from tests.log.support.place import Place, forget_in, forget_in_file, forget_on_broker
from tests.log.support.worker import Worker
from tests.simulate.driven import SimulatedPlace

NOT_SIMULATED = (
    "test_topics.py",
    "test_a_reader_never_sees_half_a_transaction",
    "test_records_of_a_slow_iterable_are_seen_as_they_come",
    "test_trying_transactions_writes_nothing",
)
"""The model has no topics to make or to describe, takes one call after another, of one thread, and always has transactions."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [
        each
        for each in items
        if "[simulated" in each.name and any(name in each.nodeid for name in NOT_SIMULATED)
    ]
    items[:] = [each for each in items if each not in left_out]
    config.hook.pytest_deselected(items=left_out)


_KINDS = [
    "sqlite-file",
    "sqlite-memory",
    "simulated",
    pytest.param("kafka", marks=pytest.mark.kafka),
    pytest.param("kafka+confluent", marks=pytest.mark.kafka),
]


@pytest.fixture(params=_KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path, prefix: str) -> Iterator[Place]:
    """A log without topics, yet."""
    if request.param == "simulated":
        place: Place = SimulatedPlace(prefix)
    elif request.param == "sqlite-file":
        path = tmp_path / "log.db"
        place = Place(request.param, f"sqlite:{path}", prefix, forget_in_file(path))
    elif request.param == "sqlite-memory":
        place = Place(request.param, "sqlite::memory:", prefix, _forget_in_memory)
        place.open()  # keeps the memory alive while the test opens and closes others
    else:
        bootstrap = request.getfixturevalue("kafka_bootstrap")
        place = Place(request.param, f"{request.param}://{bootstrap}", prefix, forget_on_broker(bootstrap))
    yield place
    place.close()


def _forget_in_memory(name: str, partition: int, before: int) -> None:
    from mistakebound.log.sqlite.database import shared_memory

    database = shared_memory()
    with database.transaction() as connection:
        forget_in(connection, name, partition, before)
    database.close()


@pytest.fixture
def log(place: Place) -> Log:
    """A log with its topics, 3 partitions each."""
    return place.create()


@pytest.fixture
def start(place: Place) -> Iterator[Callable[..., Worker]]:
    """Start workers on a log; they are closed before their log."""
    workers: list[Worker] = []

    def start(log: Log, slot: str = "slot") -> Worker:
        workers.append(Worker(log, slot))
        return workers[-1].start()

    yield start
    for worker in reversed(workers):
        worker.close()
