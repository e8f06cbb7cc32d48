"""The recount is an oracle only if it notices errors: each test spoils one record of a good log."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mistakebound.core.messages.schema import read_outcomes
from mistakebound.core.records import Position, Record, Topic
from mistakebound.log.protocol import Log
from tests.faults.support.chance import chance_of
from tests.faults.support.children import Children
from tests.faults.support.deployment import Deployment
from tests.faults.support.recount import recount
from tests.faults.support.stream import SETTINGS, stream

pytestmark = pytest.mark.long

Spoil = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    """A log that a worker has worked off in peace."""
    home = tmp_path_factory.mktemp("recounted")
    children = Children(home)
    try:
        with Deployment(f"sqlite:{home / 'log.db'}", "", children, *SETTINGS, partitions=2) as place:
            place.send(stream(1_000, chance_of("recounted").randrange(2**32)))
            place.finish(place.worker())
            yield place.log
    finally:
        children.kill()


def test_a_good_log_is_recounted(log: Log) -> None:
    """Nothing is found where nothing is wrong."""
    found = recount(log)
    assert len(found.predictions) == 1_000
    assert sum(found.updates) > 0


SPOILT: dict[str, tuple[Topic, Spoil]] = {
    "a prediction of another id": ("predictions", lambda value: value.update(id="another")),
    "a prediction turned round": (
        "predictions",
        lambda value: value.update(prediction=not value["prediction"]),
    ),
    "a prediction with other features": ("predictions", lambda value: value["features"].update(x0=9.0)),
    "an update with another number": ("updates", lambda value: value.update(n=value["n"] + 1)),
    "an update with another label": ("updates", lambda value: value.update(label=not value["label"])),
    "a mistake too many": ("outcomes", lambda value: value["tallies"]["life"].update(mistakes=0)),
    "a label forgotten": ("outcomes", lambda value: value["decisions"].pop()),
    "a decision doubled": ("outcomes", lambda value: value["decisions"].append(value["decisions"][-1])),
    "other inputs": ("outcomes", lambda value: value["inputs"].update(labels=1)),
}


@pytest.mark.parametrize("what", SPOILT)
def test_a_spoilt_record_is_noticed(log: Log, what: str) -> None:
    """One record in the middle of a topic is not what it was."""
    topic, spoil = SPOILT[what]
    with pytest.raises((AssertionError, KeyError)):
        recount(Spoilt(log, topic, spoil))  # type: ignore[arg-type]


def test_a_lost_and_a_repeated_prediction_are_noticed(log: Log) -> None:
    """A prediction that is missing, and one that is there twice."""
    for copies in (0, 2):
        with pytest.raises((AssertionError, KeyError)):
            recount(Spoilt(log, "predictions", lambda value: None, copies))  # type: ignore[arg-type]


def test_a_changed_update_changes_the_digest(log: Log) -> None:
    """Theta is a sum of the updates: the smallest change of a value shows in its digest."""
    whole = recount(log).digest

    def nudge(value: dict[str, Any]) -> None:
        value["features"]["x0"] += 1e-3

    with pytest.raises(AssertionError):
        recount(Spoilt(log, "updates", nudge))  # type: ignore[arg-type]
    assert recount(log).digest == whole


class Spoilt:
    """A log with one record of partition 0 spoilt, or given `copies` times."""

    def __init__(self, log: Log, topic: Topic, spoil: Spoil, copies: int = 1) -> None:
        self._log, self._topic, self._spoil, self._copies = log, topic, spoil, copies
        self.partitions = log.partitions

    def group_positions(self) -> dict[int, Position | None]:
        return self._log.group_positions()

    def read(self, topic: Topic, partition: int, start: int, *, wait_s: float) -> Iterator[Record]:
        records = list(self._log.read(topic, partition, start, wait_s=wait_s))
        if (topic, partition) == (self._topic, 0):
            middle = self._middle(records)
            value = json.loads(records[middle].value or b"")
            self._spoil(value)
            changed = records[middle]._replace(value=json.dumps(value).encode())
            records[middle : middle + 1] = [changed] * self._copies
        return iter(records)

    def _middle(self, records: list[Record]) -> int:
        middle = len(records) // 2
        if self._topic != "predictions":
            return middle
        decisions = (
            each for one in self._log.read("outcomes", 0, 0) for each in read_outcomes(one).decisions
        )
        judged = {each.id for each in decisions if each.outcome == "applied"}
        # No label judges the others, so nobody can tell which class they should have.
        return next(
            place
            for place in range(middle, len(records))
            if json.loads(records[place].value or b"")["id"] in judged
        )
