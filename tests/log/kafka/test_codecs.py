"""Compressed records: every codec of Kafka's is read and written by both clients, and a missing library is named."""

from collections.abc import Iterator
from typing import Any

import kafka.codec
import pytest
from confluent_kafka import Producer
from kafka import KafkaProducer

from mistakebound.core.records import Outgoing
from mistakebound.exit_codes import ExitCode
from mistakebound.log import open_log
from mistakebound.log.kafka.kafka_python.make_clients import Connection
from mistakebound.log.protocol import Log, Misconfigured
from mistakebound.settings import Settings
from tests.commands.support.command_line import run

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
CLIENTS = ("kafka", "kafka+confluent")
LIBRARIES = {"snappy": ("snappy",), "lz4": ("lz4", "lz4f", "lz4framed"), "zstd": ("zstd",)}
"""Where the client looks for each."""
VALUE = b"the same again and again, " * 200
COUNT = 60


def settings(url: str, prefix: str, **kafka: Any) -> Settings:
    return Settings.model_validate({"log": {"url": url, "prefix": prefix}, "kafka": kafka})


@pytest.fixture(params=CLIENTS)
def scheme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def log(scheme: str, kafka_bootstrap: str, prefix: str) -> Iterator[Log]:
    """A log by either client, with its topics."""
    with open_log(settings(f"{scheme}://{kafka_bootstrap}", prefix)) as log:
        log.create_topics(1, {})
        yield log


def send_by_kafka_python(bootstrap: str, topic: str, codec: str) -> None:
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, compression_type=None if codec == "none" else codec, linger_ms=50
    )
    for number in range(COUNT):
        producer.send(topic, VALUE, b"%d" % number, [("n", b"%d" % number)], partition=0)
    producer.flush()
    producer.close()


def send_by_librdkafka(bootstrap: str, topic: str, codec: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 50})
    for number in range(COUNT):
        headers: Any = [("n", b"%d" % number)]
        producer.produce(topic, VALUE, b"%d" % number, partition=0, headers=headers)
    assert producer.flush(20) == 0


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("send", [send_by_kafka_python, send_by_librdkafka])
def test_what_producers_compress_is_read(
    log: Log, kafka_bootstrap: str, prefix: str, send: Any, codec: str
) -> None:
    """Each codec, as both kinds of producers write it, by both kinds of readers."""
    send(kafka_bootstrap, f"{prefix}examples", codec)

    read = list(log.read("examples", 0, 0))

    assert [(each.value, each.key, each.headers) for each in read] == [
        (VALUE, b"%d" % number, (("n", b"%d" % number),)) for number in range(COUNT)
    ]


@pytest.mark.parametrize("codec", CODECS)
def test_what_the_worker_compresses_is_read(
    scheme: str, kafka_bootstrap: str, prefix: str, codec: str
) -> None:
    """Transactions and appends under `kafka.compression_type`, which takes Kafka's own names, `none` among them."""
    with open_log(settings(f"{scheme}://{kafka_bootstrap}", prefix, compression_type=codec)) as log:
        log.create_topics(1, {})
        log.append([Outgoing("examples", 0, b"%d" % number, VALUE) for number in range(COUNT)])
        log.exclusively(lambda: [Outgoing("updates", 0, b"%d" % number, VALUE) for number in range(COUNT)])

        for topic in ("examples", "updates"):
            read = list(log.read(topic, 0, 0))  # type: ignore[arg-type]
            assert [(each.key, each.value) for each in read] == [
                (b"%d" % number, VALUE) for number in range(COUNT)
            ]


@pytest.mark.parametrize("codec", LIBRARIES)
@pytest.mark.parametrize("verb", [("config", "check", "--set", "labels.max_delay=P1D"), ("topics", "check")])
def test_a_missing_library_ends_at_once_and_is_named(
    monkeypatch: pytest.MonkeyPatch, scheme: str, codec: str, verb: tuple[str, ...]
) -> None:
    """Before any broker is asked: a producer may choose the codec at any time, and the worker would stop at its
    first batch."""
    for name in LIBRARIES[codec]:
        monkeypatch.setattr(kafka.codec, name, None)

    result = run(*verb, log=f"{scheme}://127.0.0.1:9")

    assert result.exit_code == ExitCode.USAGE, result.output
    assert f"kafka-python[{codec}]" in result.stderr


@pytest.mark.parametrize("codec", ["lzo", "GZIP", "", 4, ["gzip"]])
def test_an_unknown_codec_is_refused_with_the_names_of_all(scheme: str, codec: Any) -> None:
    """Offline, by field, value and remedy."""
    wrong = settings(f"{scheme}://127.0.0.1:9", "p.", compression_type=codec)

    with pytest.raises(Misconfigured) as caught:
        Connection(wrong)

    assert f"kafka.compression_type = {codec!r}" in str(caught.value)
    assert ", ".join(CODECS) in str(caught.value)


@pytest.mark.parametrize(
    ("scheme", "option", "named"),
    [
        ("kafka", "kafka.compression_type=lzo", "none, gzip, snappy, lz4, zstd"),
        ("kafka+confluent", "kafka.compression_type=lzo", "none, gzip, snappy, lz4, zstd"),
        ("kafka", "kafka.ssl_cafil=x", "kafka.ssl_cafil"),
        ("kafka", "kafka.isolation_level=read_uncommitted", "only committed records count"),
        ("kafka+confluent", "kafka.metrics_num_samples=3", "librdkafka has no such option"),
    ],
)
def test_a_wrong_option_is_found_without_a_broker(scheme: str, option: str, named: str) -> None:
    """`config check` says all that `run` would say before it connects."""
    flags = ("--set", "labels.max_delay=P1D", "--set", option)

    result = run("config", "check", *flags, log=f"{scheme}://127.0.0.1:9")

    assert result.exit_code == ExitCode.USAGE, result.output
    assert named in result.stderr
