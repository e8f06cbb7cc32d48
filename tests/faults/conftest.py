"""Every test in this folder kills something; what it started is gone when it ends."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.support.chance import CLIENT, clients
from tests.faults.support.children import Children
from tests.faults.support.deployment import Deployment
from tests.faults.support.prometheus import Prometheus
from tests.log.support.broker import Broker
from tests.log.support.proxy import Proxy, proxied_broker

Deploy = Callable[..., Deployment]

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("faults")


@pytest.fixture
def children(tmp_path: Path) -> Iterator[Children]:
    """Starts commands in the test's own folder; kills what is left of them at the end."""
    started = Children(tmp_path)
    try:
        yield started
    finally:
        started.kill()


@pytest.fixture
def on_sqlite(tmp_path: Path, children: Children) -> Iterator[Deploy]:
    """Makes a deployment on a file of the test's own; takes settings as `--set` does."""
    with contextlib.ExitStack() as held:

        def deploy(*sets: str) -> Deployment:
            return held.enter_context(Deployment(f"sqlite:{tmp_path / 'log.db'}", "", children, *sets))

        yield deploy


@pytest.fixture
def on_kafka(kafka_bootstrap: str, prefix: str, children: Children) -> Iterator[Deploy]:
    """The same under a prefix of the test's own."""
    with contextlib.ExitStack() as held:

        def deploy(*sets: str) -> Deployment:
            return held.enter_context(Deployment(f"kafka://{kafka_bootstrap}", prefix, children, *sets))

        yield deploy


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, Proxy]]:
    """A broker, and a way to it that can lose requests."""
    with proxied_broker(tmp_path_factory.mktemp("proxied")) as both:
        yield both


@pytest.fixture(params=clients())
def by_each_client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of the test talk to Kafka by this client."""
    monkeypatch.setenv(CLIENT, request.param)


@pytest.fixture(params=["sqlite", pytest.param("kafka", marks=pytest.mark.kafka)])
def deploy(request: pytest.FixtureRequest) -> Deploy:
    """On each log, one after the other."""
    made: Deploy = request.getfixturevalue(f"on_{request.param}")
    return made


@pytest.fixture(scope="session")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """One server for the whole run: tests keep apart by their jobs."""
    with Prometheus(tmp_path_factory.mktemp("prometheus")) as server:
        yield server
