"""Streams whose producers are not ours: librdkafka's own placement, topics with names of their own, six partitions.

What `send` adds, and what the pages' recipes move or repair, must still meet what these producers send.
"""

import json
import os
import re
import shlex
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from mistakebound.core.records import Topic
from mistakebound.log import open_log
from mistakebound.log.partitioner import PARTITIONERS, Partitioner
from mistakebound.settings import Settings
from tests.commands.support.command_line import ok, run, start
from tests.deploy.support.pages import DEPLOY, section
from tests.log.support.broker import Broker
from tests.worker.support.working import Run

PARTITIONS = 6
TOML = """\
[log]
url = "kafka://{bootstrap}"
prefix = "{prefix}"

[topics]
examples = "{prefix}payments"
labels = "{prefix}chargebacks"

[labels]
max_delay = "P7D"

[checkpoint]
url = ""

[http]
address = "127.0.0.1:0"
"""
LIBRDKAFKA: dict[Partitioner, str] = {
    "crc32": "consistent_random",
    "murmur2": "murmur2_random",
    "fnv1a": "fnv1a_random",
}


class Stream:
    """Somebody's payments and chargebacks."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self.bootstrap, self.prefix = bootstrap, prefix
        Path("mistakebound.toml").write_text(TOML.format(bootstrap=bootstrap, prefix=prefix))
        self.settings = self.under(prefix, "payments", "chargebacks")
        ok("topics", "create", "--partitions", str(PARTITIONS), log=None)

    def under(
        self, prefix: str, examples: str = "examples", labels: str = "labels", **sections: Any
    ) -> Settings:
        """Settings of a prefix whose inputs have these names behind it."""
        return Settings.model_validate(
            {
                "log": {"url": f"kafka://{self.bootstrap}", "prefix": prefix},
                "topics": {"examples": prefix + examples, "labels": prefix + labels},
                "labels": {"max_delay": "P7D"},
                "checkpoint": {"url": ""},
                **sections,
            }
        )

    def produce(
        self,
        topic: Topic,
        numbers: Iterable[int],
        partitioner: Partitioner = "crc32",
        key: Callable[[int], str | None] = "tx-{}".format,
        settings: Settings | None = None,
    ) -> None:
        """By librdkafka; crc32 is its default."""
        options = {"bootstrap.servers": self.bootstrap}
        if partitioner != "crc32":
            options["partitioner"] = LIBRDKAFKA[partitioner]
        producer = Producer(options)
        for number in numbers:
            producer.produce((settings or self.settings).topic_name(topic), value(number), key(number))
        assert producer.flush(30) == 0

    def ends(self, settings: Settings | None = None) -> dict[Topic, int]:
        """Records in both inputs."""
        with open_log(settings or self.settings) as log:
            return {
                topic: sum(log.high_watermark(topic, p) for p in range(log.partitions))
                for topic in ("examples", "labels")
            }

    def labels(self, settings: Settings | None = None) -> dict[str, int]:
        """What became of the labels, once a worker has worked everything off."""
        settings = settings or self.settings
        with open_log(settings) as log:
            held = Run(log, settings).held
        found: dict[str, int] = {"parked": sum(len(one.parked) for one in held.state.ledgers.values())}
        for one in held.state.ledgers.values():
            for outcome, count in one.tallies.life.labels.items():
                if count and outcome != "consumed":
                    found[outcome] = found.get(outcome, 0) + count
        return {outcome: count for outcome, count in found.items() if count}


def value(number: int) -> bytes:
    return json.dumps(
        {"id": f"tx-{number}", "features": {"x": number % 3}, "label": number % 2 == 0}
    ).encode()


def lines(numbers: Iterable[int]) -> bytes:
    return b"".join(value(number) + b"\n" for number in numbers)


@pytest.fixture
def stream(kafka_bootstrap: str, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stream:
    """In an empty folder, with a settings file."""
    monkeypatch.chdir(tmp_path)
    return Stream(kafka_bootstrap, prefix)


def recipe(page: str, heading: str, block: int, prefixes: dict[str, str]) -> Iterator[Sequence[str]]:
    """The commands of a page's block of code, under prefixes of the test's own."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", section(DEPLOY / page, heading), re.MULTILINE | re.DOTALL)
    for line in blocks[block].splitlines():
        for theirs, ours in prefixes.items():
            line = re.sub(rf"(?<=[=]){re.escape(theirs)}", ours, line)  # noqa: PLW2901
        program, *arguments = shlex.split(line)
        assert program == "mistakebound"
        yield arguments


def follow(page: str, heading: str, block: int = 0, **prefixes: str) -> None:
    """Run them all."""
    for arguments in recipe(page, heading, block, {f"{name}.": prefix for name, prefix in prefixes.items()}):
        ok(*arguments, log=None)


# --- where `send` puts messages ---------------------------------------------------------------------


@pytest.mark.parametrize("partitioner", LIBRDKAFKA)
def test_labels_sent_again_meet_the_examples_of_librdkafka(stream: Stream, partitioner: Partitioner) -> None:
    """Of which only a third would, if they were placed as Java places them. Half of the examples come later."""
    stream.produce("examples", range(40), partitioner)
    assert (
        f"by {'CRC32' if partitioner == 'crc32' else partitioner}"
        in ok("send", "labels", "-", log=None, stdin=lines(range(80))).stderr
    )
    stream.produce("examples", range(40, 80), partitioner)
    assert stream.labels() == {"applied": 80}


def test_each_partitioner_is_that_of_the_library_it_is_named_after(stream: Stream) -> None:
    """Key by key, for keys of every length."""
    for partitioner in LIBRDKAFKA:
        stream.produce(
            "examples", range(60), partitioner, lambda number: "k" * (number % 30 + 1) + str(number)
        )
    with open_log(stream.settings) as log:
        seen: dict[bytes, list[int]] = {}
        for p in range(PARTITIONS):
            for record in log.read("examples", p, 0):
                seen.setdefault(record.key or b"", []).append(p)
    for key, places in seen.items():
        assert sorted(places) == sorted(PARTITIONERS[name](key, PARTITIONS) for name in LIBRDKAFKA), key


def test_a_record_that_is_too_large_is_named_by_its_line(stream: Stream) -> None:
    """Exit code 2; all before it is sent, and nothing after it."""
    large = json.dumps({"id": "large", "features": {"x": "y" * 1_100_000}}).encode() + b"\n"
    result = run("send", "examples", "-", log=None, stdin=lines(range(7)) + large + lines(range(7, 9)))
    assert result.exit_code == 2
    assert "sent 7 records\nline 8: a record of 1,100," in result.stderr
    assert stream.ends()["examples"] == 7


def test_a_broker_that_goes_away_leaves_a_count(
    broker: Broker, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 4; so many lines are in the log for certain, and from the next one on the file can be sent again."""
    monkeypatch.chdir(tmp_path)
    stream = Stream(broker.bootstrap, prefix)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    process = start("send", "examples", str(fifo))
    with fifo.open("wb") as pipe:
        pipe.write(lines(range(10_000)))
        pipe.flush()
        deadline = time.monotonic() + 60
        while stream.ends()["examples"] < 10_000:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        broker.kill()
        pipe.write(lines(range(10_000, 10_100)))
    _, said = process.communicate(timeout=120)
    assert process.returncode == 4, said
    assert b"sent 10000 records; that of line 10001 failed" in said
    broker.start()
    assert 10_000 <= stream.ends()["examples"] <= 10_100


# --- live inputs ------------------------------------------------------------------------------------


def test_the_live_inputs_of_another_prefix_are_refused(stream: Stream) -> None:
    """By messages and by recordings, and only where it is a worker's group; --yes sends all the same."""
    stream.produce("examples", range(20))
    stream.labels()
    ok("record", "all.jsonl", log=None)
    other = ("--set", f"log.prefix={stream.prefix}other.")
    ok("topics", "create", "--partitions", str(PARTITIONS), *other, log=None)
    before = stream.ends()
    for arguments in (("inputs", "all.jsonl"), ("labels", "-")):
        refused = run("send", *arguments, *other, log=None, stdin=lines(range(3)))
        assert refused.exit_code == 5, refused.output
        assert f"live input of another worker, group '{stream.prefix}mistakebound'" in refused.stderr
        assert "topics.examples" in refused.stderr
    assert stream.ends() == before
    ok("send", "labels", "-", log=None, stdin=lines(range(3)))  # its own
    ok("send", "labels", "-", "--yes", *other, log=None, stdin=lines(range(3)))
    assert stream.ends()["labels"] == 6


def test_other_consumers_of_the_inputs_are_no_workers(stream: Stream) -> None:
    """Anybody may read a topic and commit offsets."""
    from confluent_kafka import Consumer, TopicPartition

    stream.produce("examples", range(5))
    consumer = Consumer({"bootstrap.servers": stream.bootstrap, "group.id": f"{stream.prefix}analytics"})
    consumer.commit(
        offsets=[TopicPartition(stream.settings.topic_name("examples"), 0, 1)], asynchronous=False
    )
    consumer.close()
    ok("send", "examples", "-", log=None, stdin=lines(range(5, 7)))
    assert stream.ends()["examples"] == 7


# --- the recipes ------------------------------------------------------------------------------------


def test_the_recipe_to_scale_keeps_later_labels_with_their_examples(stream: Stream) -> None:
    """Eight partitions instead of six: the labels that the same producers send afterwards are all applied, and the
    live topics hold what they held."""
    stream.produce("examples", range(40))
    stream.labels()
    before = stream.ends()
    follow("operations.md", "Scale", v2=f"{stream.prefix}v2.")
    assert stream.ends() == before
    scaled = stream.under(f"{stream.prefix}v2.")
    stream.produce("labels", range(40), settings=scaled)
    assert stream.labels(scaled) == {"applied": 40}


def test_the_recipe_to_restore_does_not_touch_the_live_topics(stream: Stream) -> None:
    """The copy holds every input once, in its own partition."""
    stream.produce("examples", range(40))
    stream.produce("labels", range(20))
    assert stream.labels() == {"applied": 20}
    before = stream.ends()
    restored = f"{stream.prefix}restored."
    follow("operations.md", "Backup", 0)
    follow("operations.md", "Backup", 1, restored=restored)
    assert stream.ends() == before == stream.ends(stream.under(restored))
    stream.produce("labels", range(20, 40), settings=stream.under(restored))
    assert stream.labels(stream.under(restored)) == {"applied": 40}


HEADING = "Labels that lie elsewhere than their examples"


def test_labels_elsewhere_are_refused_and_repaired_by_the_recipe(stream: Stream) -> None:
    """Examples by librdkafka, labels by Java: `run` ends with 5 until the labels are sent again."""
    stream.produce("examples", range(120))
    stream.produce("labels", range(120), "murmur2")
    refused = run("run", log=None)
    assert refused.exit_code == 5
    assert "of 120 sampled labels lie elsewhere than their examples" in refused.stderr
    assert run("topics", "check", log=None).exit_code == 3
    follow("late-labels.md", HEADING, 0)
    told = stream.labels()
    assert told["applied"] == 120
    assert told["applied"] + told["duplicate"] + told["parked"] == 240
    worker = start("run", "--set", "worker.slot=after")
    assert b'"event": "start"' in (worker.stderr.readline() if worker.stderr else b"")
    worker.terminate()
    worker.communicate(timeout=60)
    assert worker.returncode == 0


def test_a_stream_without_common_keys_is_repaired_under_another_prefix(stream: Stream) -> None:
    """Examples keyed by customer, labels by payment: what is there goes along, under its ids."""
    stream.produce("examples", range(120), "murmur2", lambda number: f"customer-{number % 30}")
    stream.produce("labels", range(60), "murmur2")
    assert run("run", log=None).exit_code == 5
    ok("record", "labels.jsonl", "--topics", "labels", log=None)
    refused = run("send", "labels", "labels.jsonl", "--rekey", "--yes", log=None)
    assert refused.exit_code == 5
    assert "are not their ids" in refused.stderr
    repaired = f"{stream.prefix}repaired."
    follow("late-labels.md", HEADING, 1, repaired=repaired)
    stream.produce("labels", range(60, 120), "murmur2", settings=stream.under(repaired))
    assert stream.labels(stream.under(repaired)) == {"applied": 120}


# --- while a worker runs ----------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["before it starts", "while it runs"])
def test_a_worker_says_loudly_that_labels_lie_elsewhere(stream: Stream, when: str) -> None:
    """On its page, in its log, as a metric, and it is not ready; but it lives, and predicts everything."""
    stream.produce("examples", range(120))
    if when == "before it starts":
        stream.produce("labels", range(120), "murmur2")
    worker = start("run", "--set", "worker.misplaced_labels=warn")
    assert worker.stderr is not None
    try:
        url = next(line["page"] for line in map(json.loads, worker.stderr) if line["event"] == "serving")
        if when == "while it runs":
            stream.produce("labels", range(120), "murmur2")
        deadline = time.monotonic() + 90
        while (answer := ask(url + "readyz"))[0] != 503 or "other partitions" not in answer[1]:
            assert time.monotonic() < deadline, answer
            time.sleep(0.2)
        assert ask(url + "healthz")[0] == 200
        misplaced = re.search(
            r"^mistakebound_misplaced_labels\S* (\S+)", ask(url + "metrics")[1], re.MULTILINE
        )
        assert misplaced is not None
        assert float(misplaced[1]) > 60
        notices = json.loads(ask(url + "api/status")[1])["worker"]["notices"]
        assert [one["level"] for one in notices if "other partitions" in one["text"]] == ["alarm"]
    finally:
        worker.terminate()
        _, said = worker.communicate(timeout=60)
    assert worker.returncode == 0
    assert b'"labels_misplaced"' in said
    assert stream.labels()["parked"] > 60


def ask(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
