"""From an example's arrival to its committed prediction, as a read_committed reader sees it: p50 and p99.

    python -m tests.benchmarks.latency [--rates 100,1000,5000] [--seconds 10] [--rounds 3]

Each round measures, one after the other: transactions of one record of the same client, without and with
offsets, on an idle broker; then each rate, with a worker and topics of its own, examples and labels sent by
a process of its own; then Kafka Streams at 1,000 examples a second, with commits every 20 and 100 ms. The same
reader sees them all. A bare transaction is timed from before it begins; an
example from when the broker appended it, in whole ms, rounded down: the time for which its sender held it back to fill a batch
is not counted. What comes in the first two seconds is not counted. Takes about a minute a round.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from mistakebound.commands.topics.rules import wanted_config
from mistakebound.log import open_log
from mistakebound.log.protocol import Log
from mistakebound.settings import Settings
from tests.benchmarks.throughput import ROOT
from tests.faults.support.children import Children
from tests.faults.support.deployment import Deployment, assigned
from tests.log.support.broker import Broker

PARTITIONS = 4
WARM_UP = 20
TRANSACTIONS = 300
"""Of each kind."""
PREDICTION_BYTES = 400
"""About what a prediction with ten features has."""
DELAY_S = 1.0
"""Between an example and its label."""
STREAMS_RATE = 1_000
STREAMS_COMMITS_MS = (20, 100)
SETTLING_S = 2
PATIENCE_S = 90.0
GOALS = (1.5, 3.0)
"""At 1,000 examples a second, p50 and p99 of ours in those of a bare transaction."""


class Named(msgspec.Struct):
    """All that is needed of a record's value."""

    id: str
    source: int = -1


@dataclass(frozen=True, slots=True)
class Seen:
    """A record, and when the reader had it: ns of the monotonic clock, and ms since 1970."""

    partition: int
    value: bytes
    ns: int
    ms: float


@dataclass(frozen=True)
class Latency:
    """Of one run, in ms."""

    p50: float
    p99: float

    @classmethod
    def of(cls, found_ms: Sequence[float]) -> "Latency":
        cuts = statistics.quantiles(found_ms, n=100)
        return cls(statistics.median(found_ms), cuts[98])


def main() -> None:
    """Measure, and print the table."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    asked.add_argument("--rates", default="100,1000,5000")
    asked.add_argument("--seconds", type=int, default=10)
    asked.add_argument("--rounds", type=int, default=3)
    given = asked.parse_args()
    rates = [int(each) for each in given.rates.split(",")]
    found: dict[str, list[Latency]] = {}
    with tempfile.TemporaryDirectory() as scratch, Broker(Path(scratch) / "broker") as broker:
        for number in range(given.rounds):
            measured = _bare(broker.bootstrap)
            for rate in rates:
                home = Path(scratch) / f"{number}-{rate}"
                measured[f"ours, {rate:,} examples/s"] = _ours(broker.bootstrap, home, rate, given.seconds)
            for commit_ms in STREAMS_COMMITS_MS:
                home = Path(scratch) / f"{number}-streams-{commit_ms}"
                named = f"Kafka Streams, commits every {commit_ms} ms, {STREAMS_RATE:,} examples/s"
                measured[named] = _streams(broker.bootstrap, home, commit_ms, given.seconds)
            for name, latency in measured.items():
                found.setdefault(name, []).append(latency)
                print(f"  round {number + 1} {name}: {latency.p50:.1f} ms, {latency.p99:.1f} ms", flush=True)
    print(
        f"\n{_table(found)}\n\ngoal at 1,000 examples/s: p50 at most {GOALS[0]:g}, p99 at most {GOALS[1]:g}"
    )


_read = msgspec.json.Decoder(Named).decode
BARE = "a bare transaction of one record"
WITH_OFFSETS = "the same with offsets"


def _bare(bootstrap: str) -> dict[str, Latency]:
    topic = f"bare-{uuid.uuid4().hex[:8]}"
    transactions = {
        "bootstrap": bootstrap,
        "topic": topic,
        "warm_up": WARM_UP,
        "count": TRANSACTIONS,
        "group": f"{topic}-group",
        "bytes": PREDICTION_BYTES,
    }
    _create(bootstrap, topic, 1, {})
    seen = _watch(bootstrap, topic, 1, "bare", transactions, 2 * (WARM_UP + TRANSACTIONS))
    kinds: dict[str, list[float]] = {}
    for each in seen:
        kind, _, began_ns = _read(each.value).id.rpartition("-")
        kinds.setdefault(kind, []).append((each.ns - int(began_ns)) / 1e6)
    return {BARE: Latency.of(kinds["plain"]), WITH_OFFSETS: Latency.of(kinds["offsets"])}


def _ours(bootstrap: str, home: Path, rate: int, seconds: int) -> Latency:
    home.mkdir()
    children = Children(home)
    prefix = f"{home.name}."
    settings = ("labels.max_delay=P7D", "learner.kind=perceptron")
    create_inputs(bootstrap, prefix)
    try:
        with Deployment(f"kafka://{bootstrap}", prefix, children, *settings, partitions=PARTITIONS) as place:
            assigned(place.worker())
            return _measured(place.log, bootstrap, prefix, rate, seconds)
    finally:
        children.kill()


def _streams(bootstrap: str, home: Path, commit_ms: int, seconds: int) -> Latency:
    home.mkdir()
    prefix = f"{home.name}."
    create_inputs(bootstrap, prefix)
    settings = Settings.model_validate({"log": {"url": f"kafka://{bootstrap}", "prefix": prefix}})
    task = {
        "bootstrap": bootstrap,
        "prefix": prefix,
        "examples": f"{prefix}examples",
        "labels": f"{prefix}labels",
        "records": 0,
        "options": {"folder": str(home), "tuned": True, "commit_ms": commit_ms},
    }
    command = [sys.executable, "-m", "tests.benchmarks.contenders.kafka_streams", json.dumps(task)]
    with open_log(settings) as log:
        log.create_topics(PARTITIONS, wanted_config(settings))
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as worker:
            try:
                assert worker.stdout is not None
                assert worker.stdout.readline() == "ready\n", "Kafka Streams did not start"
                return _measured(log, bootstrap, prefix, STREAMS_RATE, seconds)
            finally:
                worker.kill()


def create_inputs(bootstrap: str, prefix: str) -> None:
    for topic in ("examples", "labels"):
        _create(bootstrap, f"{prefix}{topic}", PARTITIONS, {"message.timestamp.type": "LogAppendTime"})


def _measured(log: Log, bootstrap: str, prefix: str, rate: int, seconds: int) -> Latency:
    """Send examples and labels; what passes until each prediction is read."""
    arrivals = {
        "bootstrap": bootstrap,
        "examples": f"{prefix}examples",
        "labels": f"{prefix}labels",
        "partitions": PARTITIONS,
        "rate": rate,
        "seconds": seconds + SETTLING_S,
        "delay_s": DELAY_S,
    }
    count = rate * (seconds + SETTLING_S)
    seen = _watch(bootstrap, f"{prefix}predictions", PARTITIONS, "arrivals", arrivals, count)
    arrived_ms = {
        (p, record.offset): record.timestamp_ms
        for p in range(PARTITIONS)
        for record in log.read("examples", p, 0)
    }
    found = [(_read(each.value), each) for each in seen]
    return Latency.of(
        [
            each.ms - arrived_ms[each.partition, named.source]
            for named, each in found
            if int(named.id) >= SETTLING_S * rate
        ]
    )


def _watch(
    bootstrap: str, topic: str, partitions: int, program: str, given: dict[str, Any], count: int
) -> list[Seen]:
    """Run a program that sends; `count` records of a topic as they were read."""
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, isolation_level="read_committed", fetch_max_wait_ms=100
    )
    places = [TopicPartition(topic, p) for p in range(partitions)]
    consumer.assign(places)
    consumer.seek_to_beginning()
    for each in places:
        consumer.position(each)
    command = [sys.executable, "-m", f"tests.benchmarks.contenders.{program}", json.dumps(given)]
    read: list[Seen] = []
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as sender:
        try:
            end = time.monotonic() + given.get("seconds", 0) + PATIENCE_S
            while len(read) < count and time.monotonic() < end and not sender.poll():
                polled = consumer.poll(timeout_ms=100)
                ns, ms = time.monotonic_ns(), time.time() * 1000
                for records in polled.values():
                    read += [Seen(record.partition, record.value, ns, ms) for record in records]
        finally:
            if len(read) < count:
                sender.kill()
    consumer.close()
    if len(read) < count:
        raise RuntimeError(
            f"{topic}: {len(read)} of {count} records came within {PATIENCE_S:g} s of the last one sent "
            f"(the sender ended with {sender.returncode}); lower the rates"
        )
    return read


def _create(bootstrap: str, topic: str, partitions: int, config: dict[str, str]) -> None:
    from kafka.admin import KafkaAdminClient, NewTopic

    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=config)])
    admin.close()


def _table(found: dict[str, list[Latency]]) -> str:
    lines = [
        "| | p50, ms | spread | p99, ms | spread | p50, times a bare one | spread | p99, times a bare one | spread |",
        "|---" * 9 + "|",
    ]
    for name, latencies in found.items():
        cells: list[str] = []
        for which in ("p50", "p99"):
            cells += _cells([getattr(each, which) for each in latencies], ".1f")
        for which in ("p50", "p99"):
            pairs = zip(latencies, found[BARE], strict=True)
            cells += _cells([getattr(one, which) / getattr(bare, which) for one, bare in pairs], ".2f")
        lines.append(f"| {' | '.join((name, *cells))} |")
    return "\n".join(lines)


def _cells(values: Sequence[float], form: str) -> tuple[str, str]:
    return f"{statistics.median(values):{form}}", f"{min(values):{form}} to {max(values):{form}}"


if __name__ == "__main__":
    main()
