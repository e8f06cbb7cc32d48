"""The metrics page of a live worker: clean, true, and honest about a restart."""

import signal

import pytest

from tests.faults.conftest import Deploy
from tests.faults.support.chance import chance_of
from tests.faults.support.children import until
from tests.faults.support.deployment import assigned, page, total
from tests.faults.support.recount import recount
from tests.faults.support.stream import SETTINGS, stream
from tests.worker.support.promtool import lint

pytestmark = pytest.mark.long

GAUGES = ("examples", "labelled", "mistakes", "updates", "waiting", "parked")


@pytest.mark.promtool
def test_the_live_page_is_clean(on_sqlite: Deploy) -> None:
    """`promtool check metrics` finds nothing on the page of a worker that has seen all kinds of input."""
    place = on_sqlite(*SETTINGS)
    place.send(stream(2_000, chance_of("live page").randrange(2**32)))
    worker = place.worker()
    place.works_off(worker)
    assert lint(page(worker)) == ""


def test_counters_start_at_zero_and_durable_gauges_go_on(on_sqlite: Deploy) -> None:
    """After a restart the gauges say what the log says; the counters count what this process did."""
    place = on_sqlite(*SETTINGS)
    place.send(stream(2_000, chance_of("restarted page").randrange(2**32)))
    worker = place.worker()
    place.works_off(worker)
    until(
        lambda: total(worker, "records_consumed_total") == place.sent(),
        10,
        "the last step is counted",
        worker,
    )
    found = recount(place.log)
    counted = {
        "predictions_published_total": len(found.predictions),
        "mistakes_total": found.mistakes,
        "model_updates_total": sum(found.updates),
        "records_rejected_total": found.examples["invalid"] + found.labels["invalid"],
    }
    held = {
        "examples": len(found.predictions),
        "labelled": found.examples["labelled"],
        "mistakes": found.mistakes,
        "updates": sum(found.updates),
        "waiting": found.waiting,
        "parked": found.parked,
    }
    assert {name: total(worker, name) for name in counted} == counted
    for outcome, count in found.labels.items():
        assert total(worker, "labels_total", outcome=outcome) == count, outcome
    for outcome, count in found.examples.items():
        assert total(worker, "examples_total", outcome=outcome) == count, outcome
    assert {name: total(worker, f"partition_{name}") for name in GAUGES} == held

    worker.signal(signal.SIGTERM)
    assert worker.ends(15) == 0, worker.last_words()
    worker = assigned(place.worker())
    until(lambda: total(worker, "state", mistakebound_state="running") == 1, 30, "it runs", worker)
    assert {name: total(worker, name) for name in counted} == dict.fromkeys(counted, 0)
    assert total(worker, "labels_total") == total(worker, "examples_total") == 0
    assert {name: total(worker, f"partition_{name}") for name in GAUGES} == held
