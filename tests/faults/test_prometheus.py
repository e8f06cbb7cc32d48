"""The rules as they are shipped, on a real Prometheus and a real worker: right when all is well, loud when not."""

import signal

import pytest

from mistakebound.core.records import Outgoing
from tests.deploy.support.deployed import alerts, rules
from tests.faults.conftest import Deploy
from tests.faults.support.chance import chance_of
from tests.faults.support.deployment import Deployment, address_of
from tests.faults.support.prometheus import Prometheus, shows
from tests.faults.support.recount import recount
from tests.faults.support.stream import BEGUN_MS, SETTINGS, stream

pytestmark = [pytest.mark.promtool, pytest.mark.kafka]

JOB = "mistakebound"


def recorded(place: Deployment) -> dict[str, float]:
    """What each recorded series must come to, by the log: {query: value}.

    Increases are extrapolated, all by one factor: they are compared with that of the evaluations.
    """
    found = recount(place.log)
    labelled = found.examples["labelled"]
    majority = place.children.json("status", "--json", *place.options)["baselines"]["majority"]["mistakes"]
    rate = found.mistakes / labelled
    evaluations = "/ ignoring (outcome) group_left () model:mistakebound_evaluations:increase1h"
    judged = "/ model:mistakebound_evaluations:increase5m{}"
    wanted = {
        "model:mistakebound_partition_mistakes_per_labelled:ratio{}": rate,
        "model:mistakebound_partition_baseline_mistakes_per_labelled:ratio{}": majority / labelled,
        "model:mistakebound_mistakes_per_evaluation:ratio_increase1h{}": rate,
        "model:mistakebound_mistakes_per_evaluation:ratio_increase7d{}": rate,
        f"model:mistakebound_mistakes:increase1h{{}} {evaluations}{{}}": rate,
        f"model:mistakebound_predictions:increase1h{{}} {evaluations}{{}}": len(found.predictions) / labelled,
        f"model:mistakebound_mistakes:increase5m{{}} {judged}": rate,
        f"model:mistakebound_predictions:increase5m{{}} {judged}": len(found.predictions) / labelled,
        f"model:mistakebound_labels_applied:increase5m{{}} {judged}": found.labels["applied"] / labelled,
        'model_topic:mistakebound_consumer_lag_records:sum{topic="examples", }': 0,
        'model_topic:mistakebound_consumer_lag_records:sum{topic="labels", }': 0,
    }
    for outcome, count in found.labels.items():
        of_one = f'model_outcome:mistakebound_labels:increase1h{{outcome="{outcome}", }} {evaluations}{{}}'
        wanted[of_one] = count / labelled
    return {query.replace("}", f'job="{JOB}"}}'): value for query, value in wanted.items()}


def test_the_rules_are_right_on_a_live_worker_and_loud_when_it_dies(
    on_kafka: Deploy, prometheus: Prometheus
) -> None:
    """Recorded series are those of a recount of the log; records that nobody can read and a killed worker
    each fire their alert, and no alert fires that should not."""
    place = on_kafka(*SETTINGS)
    worker = place.worker()
    prometheus.watch(JOB, address_of(worker).removeprefix("http://"))
    shows(lambda: prometheus.value(f'up{{job="{JOB}"}}') == 1, "the worker is scraped", worker)
    # Before the first scrape there was no worker, which is what MistakeboundDown is for.
    shows(lambda: not prometheus.firing(JOB), "no alert fires on a worker that is well", worker)

    place.send(stream(2_000, chance_of("prometheus").randrange(2**32)))
    place.works_off(worker)
    wanted = recorded(place)
    names = {rule["record"] for rule in rules() if "record" in rule}
    assert all(any(name in query for query in wanted) for name in names)

    def values() -> dict[str, float | None]:
        return {query: prometheus.value(query) for query in wanted}

    shows(lambda: values() == pytest.approx(wanted, rel=1e-9), f"{wanted} is recorded", worker)
    assert "MistakeboundRecordsRejected" not in prometheus.firing(JOB)

    place.send([Outgoing("labels", -1, b"key", b"nonsense", (), BEGUN_MS)] * 200)
    shows(lambda: "MistakeboundRecordsRejected" in prometheus.firing(JOB), "it fires", worker)
    evaluated = shows(prometheus.rules, "every rule was evaluated")
    assert {rule["health"] for rule in evaluated} == {"ok"}
    unexpected = {"MistakeboundDown", "MistakeboundStalled", "MistakeboundCheckpointStale"}
    assert not prometheus.firing(JOB) & unexpected

    worker.signal(signal.SIGKILL)
    shows(lambda: "MistakeboundDown" in prometheus.firing(JOB), "a dead worker fires")
    assert prometheus.firing(JOB) <= alerts().keys()
