"""How long until a worker predicts after it was given partitions, and what a waiting example costs.

    python -m tests.benchmarks.takeover [--spans 100000,1000000] [--updates 1000000] [--repeats 3]

Span: examples predicted since the recovery point of the committed position, all still waiting for their labels;
a takeover must hold each of them again. It is measured from the rebalance to the first prediction, once
from the log alone and once from a checkpoint. A worker that starts late must fold every update of the
others first: it is measured from the start of its process to its assignment. The ratio in each table
compares it with reading the same records with the bare client in the same run.
"""

import argparse
import json
import random
import shutil
import signal
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from mistakebound.core.records import Outgoing
from tests.benchmarks.memory import most_waiting_bytes, resident_bytes
from tests.faults.support.children import Child, Children, until
from tests.faults.support.deployment import PARTITIONS, Deployment, assigned
from tests.log.support.broker import Broker

FEATURES = 10
FIRST_MS = 1_750_000_000_000
PATIENCE_S = 1_800.0
MIB = 1024 * 1024


@dataclass(frozen=True)
class Taken:
    """One takeover, in seconds from the rebalance."""

    rebuilt_s: float
    predicted_s: float


def examples(count: int, first: int, seed: int = 1) -> Iterator[Outgoing]:
    """Examples of ten named features each, a millisecond of record time apart, keyed by id."""
    chance = random.Random(seed + first)
    for number in range(first, first + count):
        features = {f"feature-{name}": round(chance.gauss(0, 1), 4) for name in range(FEATURES)}
        record_id = f"example-{number}"
        value = json.dumps({"id": record_id, "features": features}, separators=(",", ":")).encode()
        yield Outgoing("examples", -1, record_id.encode(), value, (), FIRST_MS + number)


def labels(count: int, first: int) -> Iterator[Outgoing]:
    """A label for each of those examples, alternately true and false."""
    for number in range(first, first + count):
        record_id = f"example-{number}"
        value = f'{{"id":"{record_id}","label":{"true" if number % 2 else "false"}}}'.encode()
        yield Outgoing("labels", -1, record_id.encode(), value, (), FIRST_MS + number + 1)


def main() -> None:
    """Measure and print both tables as markdown."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    asked.add_argument("--spans", default="100000,1000000")
    asked.add_argument("--updates", type=int, default=1_000_000)
    asked.add_argument("--repeats", type=int, default=3)
    chosen = asked.parse_args()
    with tempfile.TemporaryDirectory() as scratch, Broker(Path(scratch) / "broker") as broker:
        print("| waiting examples | bare read of their predictions | from the log | from a checkpoint |")
        print("|---|---|---|---|")
        memory = []
        for span in [int(each) for each in chosen.spans.split(",") if each]:
            memory.append(_span(broker.bootstrap, Path(scratch) / f"span-{span}", span, chosen.repeats))
        _memory(memory)
        if chosen.updates:
            print(
                "\n| updates behind it | bare read of them | ready from the log | ready from a checkpoint |"
            )
            print("|---|---|---|---|")
            _late(broker.bootstrap, Path(scratch) / "late", chosen.updates, chosen.repeats)


def _span(bootstrap: str, home: Path, span: int, repeats: int) -> tuple[int, int, float]:
    """Print a row; return waiting examples, the worker's resident bytes, mean bytes of an example."""
    home.mkdir()
    children = Children(home)
    settings = ("labels.max_delay=P30D", f"labels.max_waiting={10 * span}", "checkpoint.every=P1D")
    try:
        with Deployment(f"kafka://{bootstrap}", f"span-{span}.", children, *settings) as place:
            made = place.log.append(examples(span, 0))
            worker = place.worker()
            until(lambda: place.consumed() == made, PATIENCE_S, "every example is predicted", worker)
            resident = resident_bytes(worker.pid)
            _stop(worker)
            sizes = [len(record.value or b"") for record in place.log.read("examples", 0, 0)]
            kept = home / "kept"
            shutil.copytree(home / "checkpoints", kept)
            bare, cold, warm = [], [], []
            for _ in range(repeats):
                bare.append(_read(place, "predictions"))
                for with_checkpoint, into in ((False, cold), (True, warm)):
                    shutil.rmtree(home / "checkpoints")
                    if with_checkpoint:
                        shutil.copytree(kept, home / "checkpoints")
                    made += place.log.append(examples(PARTITIONS, made))
                    into.append(_take_over(place, made))
    finally:
        children.kill()
    print(f"| {span:,} | {_median(bare):.1f} s | {_both(cold)} | {_both(warm)} |", flush=True)
    return span, resident, statistics.mean(sizes)


def _take_over(place: Deployment, made: int) -> Taken:
    """Start a worker with new examples waiting, until it has predicted them; it is killed then."""
    ends = [place.log.high_watermark("predictions", p) for p in range(place.partitions)]
    worker = place.worker()
    until(lambda: place.consumed() == made, PATIENCE_S, "the new examples are predicted", worker)
    line = next(json.loads(each) for each in worker.err().splitlines() if '"event": "assigned"' in each)
    worker.kill()
    began_s = datetime.fromisoformat(line["timestamp"]).timestamp() - line["seconds"]
    first_ms = min(
        record.timestamp_ms for p, end in enumerate(ends) for record in place.log.read("predictions", p, end)
    )
    return Taken(line["seconds"], first_ms / 1000 - began_s)


def _late(bootstrap: str, home: Path, updates: int, repeats: int) -> None:
    home.mkdir()
    children = Children(home)
    settings = (
        "labels.max_delay=P30D",
        "learner.kind=margin-perceptron",
        "learner.margin=1e30",  # never reached, so that each label leads to an update
        "checkpoint.every=P1D",
        f"checkpoint.every_updates={10 * updates}",
    )
    try:
        with Deployment(f"kafka://{bootstrap}", "late.", children, *settings) as place:
            made, chunk = 0, 50_000
            for first in range(0, updates, chunk):
                size = min(chunk, updates - first)
                made += place.log.append(examples(size, first)) + place.log.append(labels(size, first))
            worker = place.worker()
            until(lambda: place.consumed() == made, PATIENCE_S, "every label is applied", worker)
            _stop(worker)
            kept = home / "kept"
            shutil.copytree(home / "checkpoints", kept)
            first = place.worker()
            assigned(first)
            bare, cold, warm = [], [], []
            for _ in range(repeats):
                bare.append(_read(place, "updates"))
                for with_checkpoint, into in ((False, cold), (True, warm)):
                    folder = home / f"late-{len(cold)}-{len(warm)}"
                    if with_checkpoint:
                        shutil.copytree(kept, folder)
                    into.append(_start(place, folder))
    finally:
        children.kill()
    print(f"| {updates:,} | {_median(bare):.1f} s | {_seconds(cold)} | {_seconds(warm)} |", flush=True)


def _start(place: Deployment, checkpoints: Path) -> float:
    """Seconds from the start of a second worker's process until it owns its share."""
    began = time.monotonic()
    late = place.children.start(
        "run", *place.options, "--set", "worker.slot=late", "--set", f"checkpoint.url={checkpoints}"
    )
    assigned(late)
    took = time.monotonic() - began
    _stop(late)
    return took


def _read(place: Deployment, topic: str) -> float:
    """Seconds to read all of a topic with the bare client, parsing nothing."""
    from kafka import KafkaConsumer, TopicPartition

    bootstrap = str(place.settings.log.url).removeprefix("kafka://")
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed")
    places = [TopicPartition(f"{place.settings.log.prefix}{topic}", p) for p in range(place.partitions)]
    consumer.assign(places)
    consumer.seek_to_beginning()
    ends = consumer.end_offsets(places)
    began = time.monotonic()
    while any(consumer.position(each) < ends[each] for each in places):
        consumer.poll(timeout_ms=100, max_records=4_000)
    took = time.monotonic() - began
    consumer.close()
    return took


def _stop(worker: Child) -> None:
    worker.signal(signal.SIGTERM)
    assert worker.ends(120) == 0, worker.last_words()


def _memory(found: list[tuple[int, int, float]]) -> None:
    if len(found) < 2:
        return
    (few, small, _), (many, large, mean) = found[0], found[-1]
    each = (large - small) / (many - few)
    print(f"\nmemory: {each:.0f} bytes a waiting example whose record has {mean:.0f} bytes", end="")
    print(f" ({each / mean:.2f} x the record; goal: at most {most_waiting_bytes(mean):.0f})")


def _median(found: list[float]) -> float:
    return statistics.median(found)


def _seconds(found: list[float]) -> str:
    return f"{_median(found):.1f} s ({min(found):.1f} to {max(found):.1f})"


def _both(found: list[Taken]) -> str:
    return _seconds([each.predicted_s for each in found])


if __name__ == "__main__":
    main()
