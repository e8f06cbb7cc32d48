"""What the compose project starts, started here: the same commands and environments, on a real broker."""

import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.deploy.support.deployed import environment_of, image_exec, services
from tests.faults.support.children import until
from tests.log.support.broker import START_S, Node, free_ports, reaches

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

PATIENCE_S = 90.0

Start = Callable[..., "Process"]


class Process:
    """A service's command in a process of this machine, its messages in a file."""

    def __init__(self, home: Path, name: str, command: list[str], environ: dict[str, str]) -> None:
        self.home, self.environ = home, environ
        self._err = home / f"{name}.err"
        program, *arguments = command
        with self._err.open("wb") as err:
            self._process = subprocess.Popen(
                [Path(sys.executable).with_name(program), *arguments],
                cwd=home,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=err,
            )

    @property
    def code(self) -> int | None:
        return self._process.poll()

    def err(self) -> str:
        return self._err.read_text(errors="replace")

    def last_words(self) -> str:
        return f"exit code {self.code}: {self.err()[-3_000:]}"

    def ends(self, seconds: float) -> int:
        return self._process.wait(seconds)

    def terminate(self, seconds: float) -> int:
        """As `docker stop` does it, with as long as the service is given."""
        self._process.send_signal(signal.SIGTERM)
        return self.ends(seconds)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(30)


def moved_here(value: str, ports: Mapping[int, int]) -> str:
    """A setting of the broker with every address on 127.0.0.1 and a free port."""
    hosts = r"(?:kafka|localhost|127\.0\.0\.1|(?<=//))"
    return re.sub(hosts + r":(\d+)\b", lambda found: f"127.0.0.1:{ports[int(found[1])]}", value)


@pytest.fixture
def kafka_of_compose(tmp_path: Path) -> Iterator[str]:
    """A broker with the settings of the compose project, its addresses moved to this machine.

    Yields the address of the listener that the other containers use.
    """
    moved = dict(zip((19092, 9092, 9093), free_ports(3), strict=True))
    properties = {
        name.removeprefix("KAFKA_").lower().replace("_", "."): moved_here(str(value), moved)
        for name, value in services()["kafka"]["environment"].items()
        if name.startswith("KAFKA_") and not name.endswith("_OPTS")  # those are the JVM's
    }
    node = Node(tmp_path / "kafka", properties)
    try:
        formatting = node.format()
        output, _ = formatting.communicate(timeout=START_S)
        assert formatting.returncode == 0, output.decode(errors="replace")
        node.start()
        bootstrap = f"127.0.0.1:{moved[19092]}"
        assert reaches(bootstrap, START_S), node.output()[-3_000:]
        assert reaches(f"127.0.0.1:{moved[9092]}", START_S), "the listener for this machine does not answer"
        yield bootstrap
    finally:
        node.end(signal.SIGKILL)


@pytest.fixture
def start(tmp_path: Path, kafka_of_compose: str) -> Iterator[Start]:
    """Start a service of our image by name: its entrypoint, command and environment, and nothing else but
    the addresses that containers have for themselves. One of the broker in its command is moved as well."""
    here = {
        "MISTAKEBOUND_LOG__URL": f"kafka://{kafka_of_compose}",
        "MISTAKEBOUND_CHECKPOINT__URL": str(tmp_path / "checkpoints"),
        "MISTAKEBOUND_HTTP__ADDRESS": "127.0.0.1:0",
        "PATH": os.environ["PATH"],
    }
    with ExitStack() as started:

        def start(name: str, *command: str, **environ: str) -> Process:
            own = [each.replace("kafka:19092", kafka_of_compose) for each in services()[name]["command"]]
            wanted = list(command) or [*image_exec("ENTRYPOINT"), *own]
            process = Process(
                tmp_path, "-".join([name, *command]), wanted, {**environment_of(name), **here, **environ}
            )
            started.callback(process.kill)
            return process

        yield start


def total(address: str, name: str, **labels: str) -> float:
    """The sum of a sample on a worker's page over the series with these labels."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        page = answer.read().decode()
    return sum(
        sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


def test_the_project_learns_from_its_late_labels(start: Start) -> None:
    """Topics are made once, the worker is healthy, predicts, learns and keeps checkpoints, and both it and
    the producer end well within the time they are given."""
    topics = start("topics")
    assert topics.ends(60) == 0, topics.last_words()
    worker, producer = start("worker"), start("producer")
    served = until(
        lambda: re.search(r"\"metrics\": \"http://(\S+)/metrics\"", worker.err()), 60, "it serves", worker
    )
    address = str(served[1])

    until(
        lambda: total(address, "mistakebound_labels_total", outcome="applied") >= 20,
        PATIENCE_S,
        "labels are applied",
        worker,
    )
    assert producer.code is None, producer.last_words()
    _, *check = services()["worker"]["healthcheck"]["test"]
    health = start("worker", *check, MISTAKEBOUND_HTTP__ADDRESS=address)
    assert health.ends(30) == 0, health.last_words()
    waiting = total(address, "mistakebound_partition_waiting")
    assert waiting > 100, "labels are to come about 10 s after their examples"
    assert total(address, "mistakebound_model_updates_total") > 0
    assert total(address, "mistakebound_records_rejected_total") == 0

    for process, name in ((producer, "producer"), (worker, "worker")):
        grace = float(services()[name]["stop_grace_period"].removesuffix("s"))
        assert process.terminate(grace) == 0, process.last_words()
    assert list((worker.home / "checkpoints").glob("*.checkpoint"))


def test_the_projects_challenger_is_compared_with_its_worker(start: Start) -> None:
    """On the same inputs, and by the command that the page has."""
    for name in ("topics", "challenger-topics"):
        topics = start(name)
        assert topics.ends(60) == 0, topics.last_words()
    worker, challenger, producer = start("worker"), start("challenger"), start("producer")

    def compared() -> bool:
        asked = start("worker", *image_exec("ENTRYPOINT"), "compare", "demo.", "challenger.")
        code = asked.ends(60)
        assert code in (0, 3), asked.last_words()
        return code == 0

    until(compared, PATIENCE_S, "both have judged the same ids", challenger)
    for process, name in ((producer, "producer"), (challenger, "challenger"), (worker, "worker")):
        grace = float(services()[name]["stop_grace_period"].removesuffix("s"))
        assert process.terminate(grace) == 0, process.last_words()
