"""A worker that cannot do its work says why and what to do about it, and ends with the exit code for that."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.conftest import Deploy
from tests.faults.support.chance import chance_of
from tests.faults.support.children import Children
from tests.faults.support.stream import SETTINGS, stream

pytestmark = pytest.mark.long

NOWHERE = ("--set", "http.address=", "--set", "checkpoint.url=")


def refused(children: Children, *arguments: str, code: int, seconds: float = 30) -> str:
    """The messages of a command that must end with this code."""
    child = children.start(*arguments)
    assert child.ends(seconds) == code, child.last_words()
    assert "Traceback" not in child.err(), child.last_words()
    return child.err()


@pytest.fixture
def taken() -> Iterator[str]:
    """An address of ours that somebody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def silent() -> Iterator[str]:
    """An address of ours that nobody answers at, and nobody else can take."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


def test_a_busy_metrics_address_is_named(on_sqlite: Deploy, taken: str) -> None:
    """Exit code 4, before anything is touched."""
    place = on_sqlite(*SETTINGS, f"http.address={taken}")
    said = refused(place.children, "run", *place.options, code=4)
    assert taken in said
    assert "http.address" in said
    assert place.log.high_watermark("updates", 0) == 0


def test_a_wrong_broker_is_named_in_bounded_time(children: Children, silent: str) -> None:
    """Exit code 4 with the address, while a supervisor still waits."""
    said = refused(
        children, "run", "--log", f"kafka://{silent}", "--set", "labels.max_delay=60", *NOWHERE, code=4
    )
    assert silent in said
    assert "log.url" in said


def test_missing_topics_are_refused_with_the_remedy_on_sqlite(children: Children, tmp_path: Path) -> None:
    """Exit code 5; nothing is created by the way."""
    url = f"sqlite:{tmp_path / 'none.db'}"
    said = refused(children, "run", "--log", url, "--set", "labels.max_delay=60", *NOWHERE, code=5)
    assert "topics create" in said
    assert not (tmp_path / "none.db").exists()


def test_missing_topics_are_refused_with_the_remedy_on_kafka(
    children: Children, kafka_bootstrap: str, prefix: str
) -> None:
    """Exit code 5; nothing is created by the way."""
    options = ("--log", f"kafka://{kafka_bootstrap}", "--set", f"log.prefix={prefix}")
    said = refused(children, "run", *options, "--set", "labels.max_delay=60", *NOWHERE, code=5)
    assert "topics create" in said
    assert f"{prefix}examples" in said


def test_what_run_needs_is_asked_for_at_once(children: Children) -> None:
    """Exit code 2 with both keys, not one after the other."""
    said = refused(children, "run", code=2)
    assert "log.url" in said
    assert "labels.max_delay" in said


def test_changed_settings_are_refused_by_key(on_sqlite: Deploy) -> None:
    """Exit code 5 names each key with both values; with the old settings the worker goes on."""
    place = on_sqlite(*SETTINGS)
    place.send(stream(200, chance_of("changed settings").randrange(2**32)))
    place.finish(place.worker())
    changed = ("--set", "learner.tie=positive", "--set", "features.bias=false")
    said = refused(place.children, "run", *place.options, *changed, code=5)
    for key, now, before in (
        ("learner.tie", "'positive'", "'mistake'"),
        ("features.bias", "False", "True"),
    ):
        assert f"{key} is {now}, the epoch has {before}" in said
    assert "mistakebound reset" in said
    place.finish(place.worker())
    place.prove()
