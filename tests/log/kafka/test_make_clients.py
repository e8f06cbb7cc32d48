"""Which options reach which client, which are refused, and what a wrong address says."""

import socket
from types import SimpleNamespace
from typing import Any

import kafka.record.util
import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.coordinator.assignors.range import RangePartitionAssignor

from mistakebound.log import check_client
from mistakebound.log.kafka import KafkaLog
from mistakebound.log.kafka.confluent import client as confluent
from mistakebound.log.kafka.kafka_python import make_clients
from mistakebound.log.kafka.kafka_python.make_clients import Connection, servers_of
from mistakebound.log.kafka.kafka_python.user_options import GUARDED
from mistakebound.log.kafka.names import Names
from mistakebound.log.protocol import Misconfigured, Refused, Unreachable
from mistakebound.settings import Settings

TLS = {
    "security_protocol": "SASL_SSL",
    "ssl_check_hostname": False,
    "sasl_mechanism": "SCRAM-SHA-512",
    "sasl_plain_username": "worker",
    "sasl_plain_password": "secret",
}


def settings(url: str = "kafka://127.0.0.1:9", prefix: str = "p.", **kafka: Any) -> Settings:
    return Settings.model_validate({"log": {"url": url, "prefix": prefix}, "kafka": kafka})


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """The options of each client made, in place of connecting."""
    options: dict[str, dict[str, Any]] = {}
    for client in (KafkaAdminClient, KafkaConsumer, KafkaProducer):

        class Recorder:
            DEFAULT_CONFIG = client.DEFAULT_CONFIG
            name = client.__name__

            def __init__(self, **given: Any) -> None:
                options[self.name] = given

        monkeypatch.setattr(make_clients, client.__name__, Recorder)
    return options


def make_each(connection: Connection) -> None:
    connection.admin()
    connection.member("slot")
    connection.transactional("id")


def test_tls_and_sasl_reach_every_client(made) -> None:
    """What a managed cluster asks for goes to consumer, producer and admin client alike."""
    make_each(Connection(settings(**TLS)))

    assert len(made) == 3
    for options in made.values():
        assert TLS.items() <= options.items()


def test_an_option_goes_to_the_clients_that_know_it(made) -> None:
    """Producer options do not trouble consumers, nor the other way round."""
    make_each(Connection(settings(compression_type="gzip", fetch_max_bytes=1_000)))

    assert made["KafkaProducer"]["compression_type"] == "gzip"
    assert "fetch_max_bytes" not in made["KafkaProducer"]
    assert made["KafkaConsumer"]["fetch_max_bytes"] == 1_000
    assert "compression_type" not in made["KafkaConsumer"]


def test_the_users_value_replaces_our_default(made) -> None:
    """An option that no guarantee rests on is the user's."""
    make_each(Connection(settings(session_timeout_ms=45_000)))

    assert made["KafkaConsumer"]["session_timeout_ms"] == 45_000


@pytest.mark.parametrize("url", ["kafka://127.0.0.1:9", "kafka+confluent://127.0.0.1:9"])
@pytest.mark.parametrize(
    ("given", "most_ms"),
    [
        ({}, 1_000),
        ({"reconnect_backoff_ms": 5_000}, 5_000),
        ({"reconnect_backoff_ms": 50, "reconnect_backoff_max_ms": 20_000}, 20_000),
    ],
)
def test_a_broker_that_was_away_is_asked_again_within_a_second_unless_the_user_wants_it_later(
    made, monkeypatch: pytest.MonkeyPatch, url: str, given: dict[str, int], most_ms: int
) -> None:
    """librdkafka takes no longest wait below the shortest."""
    connection: Any = Connection(settings(url, **given))
    if url.startswith("kafka+confluent"):
        monkeypatch.setattr(confluent, "Consumer", lambda options, **_: made.setdefault("Consumer", options))
        confluent.ConfluentClient(SimpleNamespace(connection=connection, names=None)).fetcher(follows=True)
        found = {options["reconnect.backoff.max.ms"] for options in made.values()}
    else:
        make_each(connection)
        found = {options["reconnect_backoff_max_ms"] for options in made.values()}

    assert found == {most_ms}


@pytest.mark.parametrize("name", GUARDED)
def test_a_guarded_option_is_refused_by_name(name: str) -> None:
    """The message names the option and says why."""
    with pytest.raises(Misconfigured, match=rf"kafka\.{name} \(.+\)"):
        Connection(settings(**{name: "x"}))


def test_every_guarded_option_exists() -> None:
    """The list follows kafka-python's names."""
    known = {*KafkaConsumer.DEFAULT_CONFIG, *KafkaProducer.DEFAULT_CONFIG, *KafkaAdminClient.DEFAULT_CONFIG}
    assert set(GUARDED) <= known


@pytest.mark.parametrize("url", ["kafka://127.0.0.1:9", "kafka+confluent://127.0.0.1:9"])
@pytest.mark.parametrize(
    "given",
    [
        {"heartbeat_interval_ms": 10_000},
        {"heartbeat_interval_ms": 6_000, "session_timeout_ms": 6_000},
    ],
)
def test_a_heartbeat_that_no_session_would_see_is_refused(url: str, given: dict[str, int]) -> None:
    """A worker would join its group, be thrown out and join it again, for ever."""
    with pytest.raises(Misconfigured, match=r"heartbeat_interval_ms = \d+ .*session_timeout_ms = \d+"):
        check_client(settings(url, **given))


@pytest.mark.parametrize("given", [{"heartbeat_interval_ms": 9_999}, {"session_timeout_ms": 2_000}])
def test_a_heartbeat_within_the_session_is_the_users_to_choose(given: dict[str, int]) -> None:
    """One of the two may stand alone."""
    check_client(settings(**given))


@pytest.mark.parametrize("url", ["kafka://127.0.0.1:9", "kafka+confluent://127.0.0.1:9"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("metadata_max_age_ms", "500"),
        ("fetch_min_bytes", 1.5),
        ("linger_ms", -1),
        ("send_buffer_bytes", "64k"),
        ("session_timeout_ms", True),
        ("batch_size", None),
    ],
)
def test_a_number_that_is_none_is_refused_by_name(url: str, name: str, value: object) -> None:
    """Before a client is made: in its thread it would fail where nobody hears of it."""
    settings = Settings.model_validate({"log": {"url": url}, "kafka": {name: value}})
    with pytest.raises(Misconfigured, match=rf"kafka\.{name} = {value!r} is not a whole number"):
        check_client(settings)


@pytest.mark.parametrize("value", ["false", 0])
def test_a_switch_that_is_neither_true_nor_false_is_refused_by_name(value: object) -> None:
    """`"false"` in quotes would switch it on."""
    settings = Settings.model_validate(
        {"log": {"url": "kafka://127.0.0.1:9"}, "kafka": {"enable_incremental_fetch_sessions": value}}
    )
    with pytest.raises(Misconfigured, match=r"= .* is neither true nor false; write one of them"):
        check_client(settings)


def test_an_unknown_option_is_refused_by_name() -> None:
    """A typing error does not pass silently."""
    with pytest.raises(Misconfigured, match="ssl_cafil"):
        Connection(settings(ssl_cafil="x"))


def test_the_promises_reach_the_clients(made) -> None:
    """Committed records only, no commits by itself, no jump to an end, range, limits in their order."""
    make_each(Connection(settings()))

    consumer, producer = made["KafkaConsumer"], made["KafkaProducer"]
    assert consumer["isolation_level"] == "read_committed"
    assert consumer["enable_auto_commit"] is False
    assert consumer["auto_offset_reset"] == "none"
    assert consumer["partition_assignment_strategy"] == (RangePartitionAssignor,)
    assert (
        producer["request_timeout_ms"] < producer["delivery_timeout_ms"] < producer["transaction_timeout_ms"]
    )
    assert producer["retry_backoff_ms"] == 5
    assert consumer["allow_auto_create_topics"] is producer["allow_auto_create_topics"] is False


def test_without_native_crc32c_nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the package to install."""
    monkeypatch.setattr(kafka.record.util, "crc32c_c", None)

    with pytest.raises(Misconfigured, match=r"kafka-python\[crc32c\]"):
        Connection(settings())


def test_a_silent_address_is_named() -> None:
    """Nobody listens: the message names address and setting, within the time given."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody else can be there
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(Unreachable, match=rf"{address} within 0\.5 s.*log\.url"):
            KafkaLog(settings(f"kafka://{address}", bootstrap_timeout_ms=500))


@pytest.mark.parametrize("url", ["kafka://", "kafka://host/topic", "http://host:9092", None])
def test_a_wrong_url_is_refused_with_the_right_form(url: str | None) -> None:
    """The message shows what was given and how to write it."""
    with pytest.raises(Misconfigured, match="kafka://host:9092"):
        servers_of(url)


def test_several_hosts_are_divided_by_commas() -> None:
    """Each is asked in turn."""
    assert servers_of("kafka://a:1,b:2") == ["a:1", "b:2"]


def test_two_topics_of_one_name_are_refused() -> None:
    """Else their records could not be told apart."""
    twice = Settings.model_validate({"topics": {"examples": "same", "labels": "same"}})
    with pytest.raises(Refused, match="examples=same, labels=same"):
        Names.of(twice)
