"""The dashboards' panels on a real Prometheus, a real worker and a real broker, and what they show of a fault.

With `pytest -rP` the tables that a person would see as curves are printed.
"""

import contextlib
import re
import signal
import time
import uuid
from collections.abc import Iterator
from itertools import pairwise

import pytest

from mistakebound.core.records import Outgoing
from tests.deploy.support.panels import ALL, ONE, annotations, filled, panel, panels, table, variables
from tests.faults.support.children import Child, Children, until
from tests.faults.support.deployment import Deployment, address_of
from tests.faults.support.prometheus import PATIENCE_S, Prometheus, Shown, shows

pytestmark = [pytest.mark.promtool, pytest.mark.kafka, pytest.mark.timeout(240)]

JOB = "moving"
RANGE_S = 30
"""The time that the panels show."""
RATE = 100
DRIFTED = 0.6
"""Mistake rates of a model whose labels have all turned round; before, it is below half of that."""


OF_OTHER_SETTINGS = {
    "Cost of mistakes": "labels.costs",
    "Brier score": "predictions.probability",
    "Positives, expected and observed": "predictions.probability",
    "Labels asked for": "labels.ask",
    "What became of labels asked for": "labels.ask",
    "Mistakes, estimated": "labels.ask",
    "restarts of the model": "learner.on_refuted",
    "Mistake rate by tenant, for life": "features.cross",
    "Labelled by tenant, for life": "features.cross",
}
"""What stays empty here, by title or by legend: none of these workers has the setting. `tests/deploy` knows the metrics."""


class Moving:
    """A worker on a stream that does not end, and a second worker with a learner of the other kind."""

    def __init__(self, server: Prometheus, place: Deployment, other: Deployment, third: Deployment) -> None:
        self.server, self._place, self.other, self.third = server, place, other, third
        workers = [place.worker(), other.worker()]
        self._producer: Child | None = None
        self.produce()
        self.addresses = [address_of(each).removeprefix("http://") for each in workers]
        server.watch(JOB, *self.addresses)

    @property
    def prefix(self) -> str:
        """Of the first worker's log; the second has none."""
        return self._place.options[3].removeprefix("log.prefix=")

    def produce(self, *options: str) -> None:
        """Let another producer go on where the one before is stopped."""
        if self._producer is not None:
            self._producer.signal(signal.SIGTERM)
            assert self._producer.ends(15) == 0, self._producer.last_words()
        log_and_prefix = self._place.options[:4]
        self._producer = self._place.children.start(
            "demo", "--only-producer", "--rate", str(RATE), "--late", "1", "--yes", *options, *log_and_prefix
        )
        producer = self._producer  # before it sends, it does not know about signals yet
        until(lambda: "sending" in producer.err(), PATIENCE_S, "it sends", producer)

    def shown(self, title: str, range_s: int = RANGE_S) -> Shown:
        """What a panel shows of the first worker."""
        picked = {"job": [JOB], "instance": self.addresses[:1], "delay": ["1s"]}
        now_s = int(time.time())
        found: Shown = {}
        for query in panel(title).queries:
            found |= self.server.series(query._replace(legend=query.name or title), picked, now_s, range_s)
        return found

    def models(self) -> dict[str, dict[str, float]]:
        """The table of all models as Grafana puts it together: {prefix: {column: value}}, the worst first."""
        of_models = panel("Which model needs me?", ALL)
        columns = of_models.source["transformations"][-1]["options"]["renameByName"]
        lines: dict[str, dict[str, float]] = {}
        for query, column in zip(of_models.queries, columns.values(), strict=True):
            expr = filled(query.expr, {"job": [JOB]}, step_s=1, scrape_s=1, range_s=RANGE_S)
            for each in (self.server.get("query", query=expr) or {"result": []})["result"]:
                assert each["metric"]["model"] == f" {JOB} {each['metric'].get('prefix', '')}"
                lines.setdefault(each["metric"].get("prefix", ""), {})[column] = float(each["value"][1])
        (by,) = of_models.source["options"]["sortBy"]
        worst = sorted(lines.items(), key=lambda line: line[1].get(by["displayName"], 0), reverse=by["desc"])
        return dict(worst)

    def recent(self, title: str, legend: str) -> list[float]:
        """A series of the last seconds; empty while there is none."""
        return list(self.shown(title, 5).get(legend, {}).values())

    def print(self, *titles: str) -> None:
        for title in titles:
            print(table(title, self.shown(title)), end="\n\n")


@pytest.fixture(scope="module")
def moving(
    kafka_bootstrap: str, prometheus: Prometheus, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Moving]:
    """Labels come a second late; the second worker, on sqlite, learns a conjunction."""
    with contextlib.ExitStack() as held:

        def deployed(name: str, url: str, prefix: str, *sets: str, partitions: int) -> Deployment:
            children = Children(tmp_path_factory.mktemp(name))
            held.callback(children.kill)
            url = url.replace("HOME", str(children.home))
            sets = ("labels.max_delay=3600", "checkpoint.every=1", *sets)
            return held.enter_context(Deployment(url, prefix, children, *sets, partitions=partitions))

        prefix = f"test-{uuid.uuid4().hex[:12]}."
        holding_on = (
            "learner.kind=averaged-perceptron",
            "learner.gamma=0.001",
        )  # a drift is to be seen for a while
        place = deployed("stream", f"kafka://{kafka_bootstrap}", prefix, *holding_on, partitions=2)
        boolean = (
            "learner.kind=halving", "learner.concepts=conjunctions", "learner.variables=3", "features.bias=false",
        )  # fmt: skip
        other = deployed("boolean", "sqlite:HOME/log.db", "", *boolean, partitions=1)
        third = deployed("gone", "sqlite:HOME/log.db", "gone.", partitions=1)
        now_ms = round(time.time() * 1000)
        other.send(
            [
                Outgoing("examples", 0, b"1", b'{"id": "1", "features": [1, 0, 1]}', (), now_ms),
                Outgoing("labels", 0, b"1", b'{"id": "1", "label": true}', (), now_ms + 1),
            ]
        )
        yield Moving(prometheus, place, other, third)


def test_every_query_of_the_dashboard_is_answered(moving: Moving) -> None:
    """With numbers, of several workers that were chosen by name; where a setting is not in use, with none."""
    picked = {"job": [JOB], "instance": moving.addresses, "delay": ["1s"]}
    asked = [(each.title, query) for each in panels(ONE) for query in each.queries]
    assert OF_OTHER_SETTINGS.keys() <= {name for title, query in asked for name in (title, query.name)}
    of_others = [each for each in asked if {each[0], each[1].name} & OF_OTHER_SETTINGS.keys()]
    left = [each for each in asked if each not in of_others]
    deadline = time.monotonic() + PATIENCE_S
    while left and time.monotonic() < deadline:
        now_s = int(time.time())
        left = [each for each in left if not moving.server.series(each[1], picked, now_s, RANGE_S)]

    assert left == [], "no data"
    now_s = int(time.time())
    assert not [each for each in of_others if moving.server.series(each[1], picked, now_s, RANGE_S)]


def test_the_variables_and_annotations_are_answered(moving: Moving) -> None:
    """They offer the job and its workers; the start of each worker is marked, and no alert."""
    server = moving.server
    shows(lambda: server.value(f'sum(up{{job="{JOB}"}})') == 2, "both workers are scraped")

    def offered(name: str) -> list[str]:
        asked = re.fullmatch(r"label_values\((.+), (\w+)\)", variables()[name]["definition"])
        assert asked is not None
        metric = filled(asked[1], {"job": [JOB]}, step_s=1, scrape_s=1, range_s=RANGE_S)
        found: list[str] = server.get(f"label/{asked[2]}/values", **{"match[]": metric})
        return found

    assert JOB in offered("job")
    assert offered("prefix") == [moving.prefix], "an empty one is no label"
    assert offered("instance") == sorted(moving.addresses)
    alerts, starts = (
        server.get("query", query=filled(each, {"job": [JOB]}, step_s=1, scrape_s=1, range_s=RANGE_S))
        for each in annotations()
    )
    assert len(starts["result"]) == 2
    assert alerts["result"] == []


def test_two_models_of_a_job_are_not_added_up(moving: Moving) -> None:
    """Each panel has a series for each of them, and one alone where its prefix is chosen."""
    mistakes = panel("Mistakes for life").queries[0]

    def judged(**chosen: list[str]) -> set[str]:
        return {*moving.server.series(mistakes, {"job": [JOB]} | chosen, int(time.time()), RANGE_S)}

    shows(lambda: judged() == {"mistakes  ", f"mistakes  {moving.prefix}"}, "both models")
    assert judged(prefix=[moving.prefix]) == {f"mistakes  {moving.prefix}"}


def test_the_table_of_models_has_the_one_that_needs_somebody_first(moving: Moving) -> None:
    """Of two models that are well each has a line; then nobody can read what one of them is sent."""
    columns = {"urgency", "workers", "not ready", "newest label, age", "dead letters, 1 h"}
    rates = {"mistake rate, 1 h", "always majority, 1 h"}

    def shown() -> bool:
        """The second model judged its only example before anybody looked: it has no rate."""
        found = moving.models()
        return columns <= found.get("", {}).keys() and columns | rates <= found.get(moving.prefix, {}).keys()

    shows(shown, "a line for each")
    well = moving.models()
    assert all(
        (line["workers"], line["not ready"], line["dead letters, 1 h"]) == (1, 0, 0) for line in well.values()
    )

    moving.other.send([Outgoing("labels", 0, b"1", b"nonsense", (), round(time.time() * 1000))] * 50)
    shows(lambda: moving.models()[""].get("other alerts") == 1, "its alert fires")
    found = moving.models()
    assert next(iter(found)) == ""
    assert found[""]["urgency"] >= 100 > found[moving.prefix]["urgency"]
    assert found[""]["dead letters, 1 h"] >= 50 > found[moving.prefix]["dead letters, 1 h"] == 0
    for title, wanted in {"Models": 2, "Models with an alert": 1, "Workers not ready": 0}.items():
        (query,) = panel(title, ALL).queries
        expr = filled(query.expr, {"job": [JOB]}, step_s=1, scrape_s=1, range_s=RANGE_S)
        assert moving.server.value(expr) == wanted, title


def test_a_model_whose_last_worker_dies_is_first(moving: Moving) -> None:
    """It stays in the table for an hour, and an alert names it."""
    worker = moving.third.worker()
    moving.server.watch(JOB, address_of(worker).removeprefix("http://"))
    shows(lambda: moving.models().get("gone.", {}).get("workers") == 1, "it is scraped", worker)

    worker.signal(signal.SIGKILL)
    shows(lambda: moving.models()["gone."]["workers"] == 0, "it is away")
    assert moving.models()["gone."]["urgency"] >= 50
    shows(lambda: "MistakeboundModelDown" in moving.server.firing(JOB), "its alert fires")
    assert next(iter(moving.models())) == "gone."


def test_a_drift_shows_within_a_minute(moving: Moving) -> None:
    """Turned labels drive the mistake rate up, above that of the majority rule."""
    rate, ratio = ("Mistake rate", "now"), ("Mistakes against always-majority",) * 2
    learned = 0.5 * DRIFTED
    shows(lambda: 0 < max(moving.recent(*rate), default=0) < learned, "the model has learned")

    moving.produce("--flip-labels")
    shows(lambda: max(moving.recent(*rate), default=0) > DRIFTED, "the mistake rate")
    shows(lambda: moving.recent(*ratio)[-1:] > [1], "the model is worse than the majority rule")
    moving.print("Mistake rate", ratio[0], "Mistake rate by true class", "Updates", "Margin certificate")


def test_missing_labels_show_within_a_minute(moving: Moving) -> None:
    """Coverage and applied labels fall to nothing, and ever older examples wait. The last test: it leaves the
    stream without labels."""
    coverage, applied = ("Label coverage", "applied per prediction"), ("Labels by outcome", "applied")
    waiting, oldest = ("Waiting", "examples"), ("Age of the oldest example waiting", "oldest")
    shows(lambda: min(moving.recent(*coverage), default=0) > 0.5, "labels come")

    moving.produce("--withhold-labels")
    # Between two producers no label comes either: only while examples do, this means something.
    shows(lambda: grows(moving.recent(*waiting)), "more and more examples wait")
    shows(lambda: grows(moving.recent(*oldest)), "they grow older and older")
    shows(lambda: moving.recent(*coverage)[-2:] == [0, 0], "coverage is 0")
    shows(lambda: moving.recent(*applied)[-2:] == [0, 0], "no label is applied")
    assert grows(moving.recent(*waiting))
    moving.print(coverage[0], applied[0], waiting[0], oldest[0])


def grows(values: list[float]) -> bool:
    """From each moment to the next."""
    return len(values) > 3 and all(one < other for one, other in pairwise(values))
