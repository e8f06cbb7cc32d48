"""A real Prometheus, started as the compose project does, its rules in quick motion, for every test that asks one."""

import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from tests.deploy.support.deployed import PROMETHEUS, services
from tests.deploy.support.panels import Query, filled
from tests.faults.support.children import Child, until
from tests.log.support.broker import free_ports
from tests.worker.support.promtool import MISSING

SCRAPE_S = 0.5
STEP_S = 1.0
PATIENCE_S = 60.0
"""Also what an operator is promised: a fault shows within a minute."""

Shown = dict[str, dict[float, float]]
"""Legend -> moment (Unix time, s) -> value."""


class Prometheus:
    """A server of the tests' own; each test has it watch a worker under a job of the test's own.

    A worker is scraped at most some 5 s after `watch`: Prometheus looks for new targets no more often.
    """

    def __init__(self, home: Path) -> None:
        program = shutil.which("prometheus")
        assert program is not None, MISSING
        document = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())
        quick = f"{SCRAPE_S * 1000:.0f}ms"
        document["global"] = {"scrape_interval": quick, "evaluation_interval": quick}
        (job,) = document["scrape_configs"]
        del job["dns_sd_configs"]
        job["file_sd_configs"] = [{"files": ["targets.json"]}]
        (home / "prometheus.yml").write_text(yaml.safe_dump(document))
        # What an alert waits for before it fires; promtool's tests hold the times as they are shipped.
        rules = re.sub(r"(\s+for:) \w+", r"\1 1s", (PROMETHEUS / "rules.yml").read_text())
        (home / "rules.yml").write_text(rules)
        self._targets: list[Mapping[str, Any]] = []
        self._home = home
        self.address = f"127.0.0.1:{free_ports(1)[0]}"
        self._output = home / "output"
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                [program, *_command(), f"--web.listen-address={self.address}"],
                cwd=home,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def watch(self, job: str, *workers: str) -> None:
        """Scrape these addresses too."""
        self._targets.append({"targets": workers, "labels": {"job": job}})
        written = self._home / "targets.json.new"
        written.write_text(json.dumps(self._targets))
        written.rename(self._home / "targets.json")

    def get(self, path: str, **parameters: str) -> Any:
        """The data that its API answers with; None while nobody answers. A query that it refuses fails."""
        assert self._process.poll() is None, self._output.read_text()[-3_000:]
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as refused:
            if refused.code == 503:  # it starts
                return None
            raise AssertionError(f"{parameters}: {refused.read().decode(errors='replace')}") from None
        except OSError:
            return None

    def value(self, query: str) -> float | None:
        """The value of a query with one series; None without any."""
        data = self.get("query", query=query)
        series = data["result"] if data else []
        assert len(series) <= 1, series
        return float(series[0]["value"][1]) if series else None

    def firing(self, job: str) -> set[str]:
        """Names of the job's alerts that fire."""
        data = self.get("alerts") or {"alerts": []}
        return {
            alert["labels"]["alertname"]
            for alert in data["alerts"]
            if alert["state"] == "firing" and alert["labels"]["job"] == job
        }

    def rules(self) -> list[dict[str, Any]]:
        """Every rule that has been evaluated."""
        data = self.get("rules") or {"groups": []}
        found = [rule for group in data["groups"] for rule in group["rules"]]
        return found if all(rule["health"] != "unknown" for rule in found) else []

    def series(self, query: Query, chosen: Mapping[str, list[str]], at_s: int, range_s: int) -> Shown:
        """What a panel draws for a range that ends at a moment (Unix time), without what is not a number."""
        expr = filled(query.expr, chosen, step_s=STEP_S, scrape_s=SCRAPE_S, range_s=range_s)
        if query.instant:
            data = self.get("query", query=expr, time=str(at_s))
        else:
            times = {"start": str(at_s - range_s), "end": str(at_s), "step": f"{STEP_S:g}"}
            data = self.get("query_range", query=expr, **times)
        found: Shown = {}
        for each in data["result"] if data else []:
            legend = _spelled(query.legend, each["metric"])
            pairs = each["values"] if "values" in each else [each["value"]]
            values = {at: number for at, text in pairs if (number := float(text)) == number}
            if values:
                found[legend or str(each["metric"])] = values
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait(30)


def _command() -> list[str]:
    """What the compose project starts it with, files and data moved to where it is started."""
    here = {"/etc/prometheus/prometheus.yml": "prometheus.yml", "/prometheus": "data"}
    options = (each.partition("=") for each in services()["prometheus"]["command"])
    return [f"{name}={here.get(value, value)}" for name, _, value in options]


def shows(met: Callable[[], Any], wanted: str, worker: Child | None = None) -> Any:
    """Wait until a Prometheus shows it, which sees nothing new between two scrapes."""

    def asked() -> Any:
        time.sleep(SCRAPE_S / 2)
        return met()

    return until(asked, PATIENCE_S, wanted, worker)


def _spelled(legend: str, labels: Mapping[str, str]) -> str:
    """A legend with the values of its labels."""
    return re.sub(r"{{(\w+)}}", lambda name: labels.get(name[1], ""), legend)
