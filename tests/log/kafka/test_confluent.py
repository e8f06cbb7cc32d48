"""The client of `kafka+confluent://`: its options and its absence.

What every log must do is asked of it in `tests/log/contract`; `tests/faults/test_two_clients.py` kills it.
"""

import gc
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from mistakebound.core.records import Outgoing, Position
from mistakebound.log import open_log
from mistakebound.log.kafka import timeouts
from mistakebound.log.kafka.confluent import client, send
from mistakebound.log.kafka.confluent.client import translated_options
from mistakebound.log.kafka.names import Names
from mistakebound.log.protocol import Fenced, Log, Misconfigured, TransactionFailed, Unreachable
from mistakebound.settings import LogSettings, Settings
from tests.log.support.watched import Watched
from tests.log.support.worker import Worker, example


@pytest.fixture
def log(kafka_bootstrap: str, prefix: str) -> Iterator[Log]:
    """A log by this client, with its topics of one partition."""
    settings = Settings(log=LogSettings(url=f"kafka+confluent://{kafka_bootstrap}", prefix=prefix))
    with open_log(settings) as log:
        log.create_topics(1, {})
        yield log


def test_options_keep_their_names() -> None:
    """`[kafka]` reads the same for both clients; each option goes to the clients that know it."""
    given = {
        "security_protocol": "SSL",
        "ssl_cafile": "ca.pem",
        "fetch_min_bytes": 10,
        "compression_type": None,
    }

    told = translated_options(given)

    tls = {"security.protocol": "SSL", "ssl.ca.location": "ca.pem"}
    assert told == {
        "consumer": {**tls, "fetch.min.bytes": 10},
        "producer": {**tls, "compression.type": "none"},
    }


def test_the_age_of_what_is_known_of_topics_is_how_often_they_are_asked_for() -> None:
    """Two options of librdkafka, of which the one that sounds alike alone would change nothing."""
    for options in translated_options({"metadata_max_age_ms": 500}).values():
        assert options == {"metadata.max.age.ms": 500, "topic.metadata.refresh.interval.ms": 500}


@pytest.mark.parametrize(("given", "seconds"), [({}, 30.0), ({"metadata_max_age_ms": 500}, 0.5)])
def test_a_member_looks_at_its_inputs_as_often(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, int], seconds: float
) -> None:
    """That a topic was made anew the client does not tell."""
    found: list[float] = []
    monkeypatch.setattr(client, "ConfluentSession", lambda *_, look_every_s: found.append(look_every_s))
    connection = SimpleNamespace(
        servers=[], tokens=None, given=given, reconnect_max_ms=1_000, client_id=lambda slot: slot
    )
    made: Any = SimpleNamespace(connection=connection, watchdog=Watched())

    client.ConfluentClient(made).session(1, "slot", made)

    assert found == [seconds]


def test_the_interpreter_of_a_worker_is_guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library's calls may hold it: then no other thread of ours runs, the watchdog's neither. A command that somebody
    has stopped on a terminal is left alone."""
    monkeypatch.setattr(client, "ConfluentSession", lambda *_, look_every_s: None)
    monkeypatch.setattr(client, "Consumer", lambda options, **_: None)
    connection = SimpleNamespace(
        servers=[], tokens=None, given={}, group="g", reconnect_max_ms=1_000, client_id=lambda slot: slot
    )
    made: Any = SimpleNamespace(connection=connection, names=None, watchdog=Watched())
    clients = client.ConfluentClient(made)
    clients.fetcher(follows=False)
    assert not made.watchdog.guards

    clients.session(1, "slot", made)

    assert made.watchdog.guards


def test_an_option_without_counterpart_is_refused_by_name() -> None:
    """It would be silently without effect otherwise."""
    with pytest.raises(Misconfigured, match=r"kafka\.sock_chunk_bytes: librdkafka has no such option"):
        translated_options({"sock_chunk_bytes": 4_096})


def test_a_bounded_read_does_not_hold_up_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker answers a fetch at the end of a partition soon; a follower, which stands there, asks more seldom."""
    waits: list[int] = []
    monkeypatch.setattr(client, "Consumer", lambda options, **_: waits.append(options["fetch.wait.max.ms"]))
    connection = SimpleNamespace(
        servers=["127.0.0.1:9"], tokens=None, given={}, group="g", reconnect_max_ms=1_000
    )
    made: Any = SimpleNamespace(connection=connection, names=None)

    for follows in (False, True):
        client.ConfluentClient(made).fetcher(follows=follows)

    assert waits == [10, 100]


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that installs it."""
    for name in [each for each in sys.modules if each.startswith("mistakebound.log.kafka.confluent")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("mistakebound.log.kafka.confluent", raising=False)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)

    with pytest.raises(Misconfigured, match=r"pip install 'mistakebound\[confluent\]'"):
        open_log(Settings(log=LogSettings(url="kafka+confluent://127.0.0.1:9")))


class SetsItsErrorFirst:
    """A producer that has heard of a fatal error: what it calls next runs with that error set."""

    def flush(self, timeout_s: float) -> int:
        fatal = KafkaException(KafkaError(KafkaError.INVALID_PRODUCER_EPOCH, "fenced", fatal=True))
        raise SystemError("<function Connections.log> returned a result with an exception set") from fatal

    commit_transaction = poll = flush


@pytest.mark.parametrize("call", ["flush", "commit"])
def test_a_fatal_error_that_meets_a_callback_is_told_as_what_it_is(call: str) -> None:
    """Python makes a SystemError of it, which would end the worker with 1."""
    made: Any = lambda errors, log: SetsItsErrorFirst()  # noqa: E731
    sender = send.ConfluentSender(made, Names.of(Settings()), "slot")

    with pytest.raises(sender.errors) as raised:
        getattr(sender, call)(1.0)

    assert isinstance(sender.explain(raised.value), Fenced)


class Starting:
    """A producer that says what is asked of it."""

    def __init__(self, *, away: bool) -> None:
        self.calls: list[str] = []
        self._away = away

    def list_topics(self, topic: str, timeout_s: float) -> None:
        self.calls.append(f"connect for {topic}")
        if self._away:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    def init_transactions(self, timeout_s: float) -> None:
        self.calls.append("look for the coordinator")
        if self._away:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))


def test_a_producer_is_connected_before_it_looks_for_its_coordinator() -> None:
    """To a broker that it heard of, not to the one it was told of: that one it leaves, amid the search even."""
    producer = Starting(away=False)
    made: Any = lambda errors, log: producer  # noqa: E731

    send.ConfluentSender(made, Names.of(Settings()), "slot").initialise()

    assert producer.calls == [
        "connect for predictions",
        "connect for predictions",
        "look for the coordinator",
    ]


def test_a_broker_that_is_away_is_told_by_the_search_for_the_coordinator() -> None:
    """As if nobody had tried to connect before."""
    producer = Starting(away=True)
    made: Any = lambda errors, log: producer  # noqa: E731

    with pytest.raises(Unreachable, match="initialise transactions as slot"):
        send.ConfluentSender(made, Names.of(Settings()), "slot").initialise()

    assert producer.calls == ["connect for predictions", "look for the coordinator"]


def test_a_client_that_was_thrown_away_ends_at_once() -> None:
    """Its threads and its retries are gone without a garbage collection, whatever its callbacks refer to."""

    def threads() -> int:
        return len(list(Path("/proc/self/task").iterdir()))

    before = threads()
    gc.disable()
    try:
        sender = send.ConfluentSender(
            lambda errors, log: Producer(
                {
                    "bootstrap.servers": "127.0.0.1:9",
                    "transactional.id": "x",
                    "error_cb": errors,
                    "logger": log,
                }
            ),
            Names.of(Settings()),
            "x",
        )
        assert threads() > before
        sender.discard()
        del sender
        deadline = time.monotonic() + 10
        while threads() > before and time.monotonic() < deadline:
            time.sleep(0.05)
        assert threads() == before
    finally:
        gc.enable()


class _FencedAtLast:
    """A client whose id is taken between its last record and its commit."""

    def __init__(self, producer: Any, taker: Any) -> None:
        self._producer, self._taker = producer, taker

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)

    def commit_transaction(self, timeout_s: float) -> None:
        self._taker.settle()
        self._producer.commit_transaction(timeout_s)


def test_fenced_at_the_very_commit_is_told_as_fenced(
    kafka_bootstrap: str, prefix: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """librdkafka is in a fatal error then, and raises it at whatever is asked of it, its end included; by itself it
    writes nothing."""
    settings = Settings(log=LogSettings(url=f"kafka+confluent://{kafka_bootstrap}", prefix=prefix))
    with open_log(settings) as log:
        log.create_topics(1, {})
        writer, taker = _writer(log), _writer(log)
        sender = writer.settle()
        sender._producer = _FencedAtLast(sender._producer, taker)
        with pytest.raises(Fenced):
            writer.write([Outgoing("predictions", 0, b"k", b"never")], {}, None)
        taker.drop()
        assert list(log.read("predictions", 0, 0)) == []
    assert "FATAL" not in capfd.readouterr().err


class _Endless:
    """A client that forgets the limit of one call, as librdkafka does when a coordinator goes away amid it."""

    def __init__(self, producer: Any) -> None:
        self._producer, self.entered, self.freed = producer, threading.Event(), threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)

    def send_offsets_to_transaction(self, *_: object) -> None:
        self.entered.set()
        self.freed.wait()


def test_a_call_that_does_not_end_costs_its_transaction_alone(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is given up, with its client; the next one is committed by another."""
    monkeypatch.setattr(timeouts, "OFFSETS_S", 0.1)
    monkeypatch.setattr(send, "LATE_S", 0.1)
    writer = _writer(log)
    sender = writer.settle()
    sender._producer = endless = _Endless(sender._producer)
    with pytest.raises(TransactionFailed, match=r"sending the positions does not end, .* 0\.1 s.*rebuild"):
        writer.write([Outgoing("predictions", 0, b"k", b"never")], {0: Position(1, 0)}, None)
    assert endless.entered.is_set()

    writer.write([Outgoing("predictions", 0, b"k", b"once")], {}, None)

    endless.freed.set()
    assert [record.value for record in log.read("predictions", 0, 0)] == [b"once"]


def _writer(log: Log) -> Any:
    return log._writer("taken")  # type: ignore[attr-defined]


class _AssignsAtItsEnd:
    """A member that gets partitions while it closes, and then takes nothing more of what is asked of it."""

    def __init__(self, consumer: Any, session: Any) -> None:
        self._consumer, self._session = consumer, session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._consumer, name)

    def assign(self, _: object) -> None:
        raise RuntimeError("Consumer closed")

    unassign = assign

    def close(self) -> None:
        self._session._on_assign(self, [])
        self._session._on_revoke(self, [])
        self._consumer.close()


def test_partitions_that_come_or_go_while_a_worker_leaves_do_not_end_it(
    log: Log,
) -> None:
    """It stops as it was told to, with exit code 0."""
    session: Any = log.join("slot")
    session._consumer = closing = _AssignsAtItsEnd(session._consumer, session)
    session.close(5.0)
    with pytest.raises(RuntimeError, match="closed"):
        closing.memberid()


def test_a_record_of_a_paused_input_is_fetched_again(log: Log) -> None:
    """It is not taken while the input is paused; the client, which is past it, is placed before it."""
    worker = Worker(log, "slot").start()
    try:
        session: Any = worker.session
        assert worker.poll() == []
        log.append([example(0, b"first")])
        messages: list[Any] = []
        while not any(message.error() is None for message in messages):
            messages += session._consumer.consume(1, 1.0)
        session.pause([("examples", 0)])
        for message in messages:
            session._take(message, taken := [], "read")
            assert taken == []
        session.resume([("examples", 0)])
        assert [record.value for record in worker.take(1)] == [b"first"]
    finally:
        worker.close()
