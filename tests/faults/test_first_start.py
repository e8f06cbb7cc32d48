"""Two workers that start at once on new topics: one begins the first epoch, and neither has anything to complain of."""

import json

import pytest

from tests.faults.conftest import Deploy
from tests.faults.support.chance import chance_of
from tests.faults.support.deployment import assigned
from tests.faults.support.stream import SETTINGS, stream

pytestmark = [pytest.mark.kafka, pytest.mark.usefixtures("by_each_client")]


def test_two_workers_start_at_once_without_a_warning(on_kafka: Deploy) -> None:
    """As a StatefulSet starts them: who looks at the log finds nothing that is not so."""
    place = on_kafka(*SETTINGS)
    workers = [place.worker(f"worker.slot={slot}", f"checkpoint.url={slot}") for slot in ("one", "two")]
    for worker in workers:
        assigned(worker)
    place.send(stream(200, chance_of("first start").randrange(2**32)))
    place.works_off(workers[0])

    told = [json.loads(line) for worker in workers for line in worker.err().splitlines()]
    complaints = [line for line in told if line["level"] not in {"debug", "info"}]
    assert [
        line for line in complaints if line["event"] != "records_rejected"
    ] == []  # some of the stream are wrong
