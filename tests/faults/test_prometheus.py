"""A real Prometheus with the rules as they are shipped, on a real worker: right when all is well, loud when not."""

import json
import re
import shutil
import signal
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.core.records import Outgoing
from tests.faults.chance import chance_of
from tests.faults.children import until
from tests.faults.conftest import Deploy
from tests.faults.deployment import address_of
from tests.faults.recount import recount
from tests.faults.stream import BEGUN_MS, SETTINGS, stream
from tests.kafka.broker import free_ports
from tests.operations.deployed import PROMETHEUS, alerts
from tests.operations.promtool import MISSING

pytestmark = pytest.mark.promtool

PATIENCE_S = 60.0


class Prometheus:
    """A server of the test's own that scrapes one worker, with the shipped configuration in quick motion."""

    def __init__(self, home: Path, worker: str) -> None:
        program = shutil.which("prometheus")
        assert program is not None, MISSING
        document = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())
        document["global"] = {"scrape_interval": "500ms", "evaluation_interval": "500ms"}
        (job,) = document["scrape_configs"]
        del job["dns_sd_configs"]
        job["static_configs"] = [{"targets": [worker]}]
        home.mkdir()
        (home / "prometheus.yml").write_text(yaml.safe_dump(document))
        # What an alert waits for before it fires; promtool's tests hold the times as they are shipped.
        rules = re.sub(r"(\s+for:) \w+", r"\1 1s", (PROMETHEUS / "rules.yml").read_text())
        (home / "rules.yml").write_text(rules)
        self.address = f"127.0.0.1:{free_ports(1)[0]}"
        self._output = home / "output"
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                [
                    program,
                    "--config.file=prometheus.yml",
                    "--storage.tsdb.path=data",
                    f"--web.listen-address={self.address}",
                ],
                cwd=home,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def get(self, path: str, **parameters: str) -> Any:
        """The data that its API answers with; None while nobody answers."""
        assert self._process.poll() is None, self._output.read_text()[-3_000:]
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]
        except OSError:
            return None

    def value(self, query: str) -> float | None:
        """The value of a query with one series; None without any."""
        data = self.get("query", query=query)
        series = data["result"] if data else []
        assert len(series) <= 1, series
        return float(series[0]["value"][1]) if series else None

    def firing(self) -> set[str]:
        """Names of the alerts that fire."""
        data = self.get("alerts") or {"alerts": []}
        return {alert["labels"]["alertname"] for alert in data["alerts"] if alert["state"] == "firing"}

    def rules(self) -> list[dict[str, Any]]:
        """Every rule that has been evaluated."""
        data = self.get("rules") or {"groups": []}
        found = [rule for group in data["groups"] for rule in group["rules"]]
        return found if all(rule["health"] != "unknown" for rule in found) else []

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(30)


@pytest.fixture
def started() -> Iterator[list[Prometheus]]:
    """Servers to end with the test."""
    servers: list[Prometheus] = []
    yield servers
    for each in servers:
        each.kill()


@pytest.mark.kafka
def test_the_rules_are_right_on_a_live_worker_and_loud_when_it_dies(
    on_kafka: Deploy, started: list[Prometheus], tmp_path: Path
) -> None:
    """Recorded rates are those of a recount of the log; records that nobody can read and a killed worker
    each fire their alert, and no alert fires that should not."""
    place = on_kafka(*SETTINGS)
    worker = place.worker()
    address = address_of(worker).removeprefix("http://")
    server = Prometheus(tmp_path / "prometheus", address)
    started.append(server)
    until(lambda: server.value('up{job="mistakebound"}') == 1, PATIENCE_S, "the worker is scraped", worker)
    # Before the first scrape there was no worker, which is what MistakeboundDown is for.
    until(lambda: server.firing() == set(), PATIENCE_S, "no alert fires on a worker that is well", worker)

    place.send(stream(2_000, chance_of("prometheus").randrange(2**32)))
    place.works_off(worker)
    found = recount(place.log)
    wanted = found.mistakes / found.examples["labelled"]
    until(
        lambda: server.value("job:mistakebound_partition_mistakes_per_labelled:ratio") == wanted,
        PATIENCE_S,
        f"the recorded mistake rate for life is {wanted}",
        worker,
    )
    assert "MistakeboundRecordsRejected" not in server.firing()

    place.send([Outgoing("labels", -1, b"key", b"nonsense", (), BEGUN_MS)] * 200)
    until(lambda: "MistakeboundRecordsRejected" in server.firing(), PATIENCE_S, "it fires", worker)
    assert {rule["health"] for rule in until(server.rules, PATIENCE_S, "every rule was evaluated")} == {"ok"}
    assert not server.firing() & {"MistakeboundDown", "MistakeboundStalled", "MistakeboundCheckpointStale"}

    worker.signal(signal.SIGKILL)
    until(lambda: "MistakeboundDown" in server.firing(), PATIENCE_S, "a dead worker fires")
    assert server.firing() <= alerts().keys()
