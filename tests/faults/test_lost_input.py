"""Inputs that a real broker lost or exchanged, with each client: refused by name, and passed only when told to.

The same on sqlite, where topics cannot be deleted: `tests/worker/test_lost_input.py`.
"""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition

from mistakebound.commands.errors import code_of
from mistakebound.core.records import INPUTS, OUTPUTS, Topic
from mistakebound.exit_codes import ExitCode
from mistakebound.log import open_log
from mistakebound.log.protocol import Refused
from mistakebound.settings import Settings
from tests.commands.support.command_line import ok, run
from tests.faults.support.chance import clients, of_client
from tests.log.support.broker import Broker
from tests.log.support.place import KEEP
from tests.worker.support.working import Recount, Run, altered, example, label, settings_for, stream
from tests.worker.test_lost_input import Kept, gaps

pytestmark = pytest.mark.kafka
EXAMPLES = 20


class Place:
    """A log on a broker, and an operator who may do anything to it."""

    def __init__(self, bootstrap: str, url: str) -> None:
        self.settings = settings_for(url)
        self.admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        self.log = open_log(self.settings)
        self.log.create_topics(1, KEEP)

    def at(self, topic: Topic) -> TopicPartition:
        return TopicPartition(self.settings.topic_name(topic), 0)

    def refusal(self, settings: Settings | None = None, **told: bool) -> str:
        """What a worker says that must refuse, and write nothing."""
        before = self.ends()
        wanted = settings or self.settings
        with open_log(wanted) as log, pytest.raises(Exception) as refused:
            Run(log, wanted, **cast("Any", told))
        assert code_of(refused.value) is ExitCode.REFUSED, repr(refused.value)
        assert self.ends() == before
        return str(refused.value)

    def ends(self) -> dict[Topic, int]:
        return {topic: self.log.high_watermark(topic, 0) for topic in OUTPUTS}

    def audited(self) -> Any:
        """What the audit says of the live log."""
        flags = ("--set", f"log.prefix={self.settings.log.prefix}", "--set", "checkpoint.url=")
        return json.loads(ok("audit", "--json", *flags, log=self.settings.log.url).stdout)

    def close(self) -> None:
        self.log.close()
        self.admin.close()


def make_anew(place: Place) -> None:
    names = [place.settings.topic_name(topic) for topic in INPUTS]
    place.admin.delete_topics(names)
    while not set(names) <= set(place.log.create_topics(1, KEEP)):
        pass  # the broker hears of their end a little later than the controller


@pytest.fixture(params=clients())
def url(request: pytest.FixtureRequest, kafka_bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MISTAKEBOUND_FAULTS_CLIENT", request.param)
    return of_client(f"kafka://{kafka_bootstrap}")


@pytest.fixture
def place(kafka_bootstrap: str, url: str) -> Iterator[Place]:
    """Twenty examples are worked off, and their labels."""
    found = Place(kafka_bootstrap, url)
    try:
        found.log.append(stream(EXAMPLES))
        Run(found.log, found.settings)
        yield found
    finally:
        found.close()


@pytest.mark.parametrize("from_outcomes", [False, True])
def test_inputs_made_anew_while_no_worker_ran_are_refused_by_name(place: Place, from_outcomes: bool) -> None:
    """They have grown beyond the old offsets: nothing is out of range, and only their ids tell."""
    make_anew(place)
    place.log.append(stream(2 * EXAMPLES, seed=2))

    said = place.refusal(from_outcomes=from_outcomes)

    assert f"'{place.at('examples').topic}' was made anew" in said
    assert f"'{place.at('labels').topic}' was made anew" in said


@pytest.mark.parametrize("topic", INPUTS)
def test_one_input_made_anew_is_refused_by_name(place: Place, topic: Topic) -> None:
    """The group has lost its offset for that one alone."""
    name = place.settings.topic_name(topic)
    place.admin.delete_topics([name])
    while name not in place.log.create_topics(1, KEEP):
        pass

    assert f"'{name}' was made anew" in place.refusal()


@pytest.mark.parametrize("from_outcomes", [False, True])
def test_other_inputs_under_the_same_prefix_are_refused_by_name(place: Place, from_outcomes: bool) -> None:
    """The group has no offsets for them, and those in `outcomes` are of others."""
    names = {topic: f"{place.settings.log.prefix}other-{topic}" for topic in INPUTS}
    other = altered(place.settings, topics=names)
    with open_log(other) as log:
        log.create_topics(1, KEEP)
        log.append(stream(2 * EXAMPLES, seed=2))

    said = place.refusal(other, from_outcomes=from_outcomes)

    if from_outcomes:
        assert f"now '{names['examples']}', the offsets are of '{place.at('examples').topic}'" in said


def test_partitions_added_while_no_worker_ran_are_refused(place: Place) -> None:
    """All six topics have two now: keys lie elsewhere than the examples that wait."""
    place.admin.create_partitions({place.settings.topic_name(topic): 2 for topic in (*INPUTS, *OUTPUTS)})

    assert "has 2 partitions, the offsets are of 1" in place.refusal()


def test_unread_input_that_retention_deleted_is_passed_when_told_so(place: Place) -> None:
    """The loss is in `outcomes` once, whatever comes afterwards, and the audit knows of it."""
    kept = Kept(place.log)
    kept.look()
    labels = place.log.high_watermark("labels", 0)
    place.log.append(example(EXAMPLES + number, {"a": 1}, 5_000 + number) for number in range(5))
    place.log.append(label(EXAMPLES + number, True, 6_000 + number) for number in range(5))
    place.admin.delete_records({place.at("examples"): EXAMPLES + 2, place.at("labels"): labels + 1})

    assert "--skip-to-oldest" in place.refusal()

    run = Run(place.log, place.settings, skip_to_oldest=True)
    assert run.metric('mistakebound_input_offsets_lost_total{stream="examples"}') == 2
    Run(place.log, place.settings)
    recount = Recount(place.log, place.settings)
    assert gaps(recount) == [("examples", EXAMPLES, EXAMPLES + 1), ("labels", labels, labels)]
    assert len(recount.predicted) == EXAMPLES + 3
    assert kept.audit(place.settings).first == []


# --- damage -------------------------------------------------------------------------------------------------


@pytest.fixture(params=clients())
def damaged(
    request: pytest.FixtureRequest,
    broker: Broker,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Place]:
    """Of four batches of five examples, the disk has turned a bit in the second and in the last."""
    monkeypatch.setenv("MISTAKEBOUND_FAULTS_CLIENT", request.param)
    found = Place(broker.bootstrap, of_client(f"kafka://{broker.bootstrap}"))
    try:
        name = found.settings.topic_name("examples")
        append_batches(broker.bootstrap, name, 5)
        found.log.close()
        found.admin.close()
        broker.stop()
        (file,) = broker.folder.rglob(f"{name}-0/00000000000000000000.log")
        turn_a_bit(file, b'"i7"')
        turn_a_bit(file, b'"i17"')
        broker.start()
        found.log = open_log(found.settings)
        found.admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        yield found
    finally:
        found.close()


def append_batches(bootstrap: str, topic: str, count: int) -> None:
    """So many examples in each batch: the client waits until it is told to send."""
    with closing(KafkaProducer(bootstrap_servers=bootstrap, linger_ms=60_000)) as producer:
        for first in range(0, EXAMPLES, count):
            for number in range(count):
                one = example(first + number, {"a": 1}, 5_000 + number)
                producer.send(topic, one.value, key=one.key, partition=0, timestamp_ms=one.timestamp_ms)
            producer.flush(30)


def turn_a_bit(file: Path, text: bytes) -> None:
    content = file.read_bytes()
    assert content.count(text) == 1
    file.write_bytes(content.replace(text, bytes([text[0], text[1] ^ 1, *text[2:]])))


def test_a_damaged_batch_is_passed_when_told_so_and_nothing_else(damaged: Place) -> None:
    """Exactly its offsets are lost; those before and behind it are predicted, also where it is the last."""
    with pytest.raises(Refused, match=r"--skip-to-oldest"):
        Run(damaged.log, damaged.settings)

    Run(damaged.log, damaged.settings, skip_to_oldest=True)

    recount = Recount(damaged.log, damaged.settings)
    assert gaps(recount) == [("examples", 5, 9), ("examples", 15, 19)]
    whole = [*range(5), *range(10, 15)]
    assert [name for name, _ in recount.predicted] == [f"i{number}" for number in whole]
    letters = [dict(each.headers) for each in damaged.log.read("dead-letters", 0, 0)]
    assert [each["mistakebound.reason"] for each in letters] == [b"damaged", b"damaged"]
    assert [each["mistakebound.detail"] for each in letters] == [
        b"the batch of offsets 5 to 9 of examples-0 fails its checksum",
        b"the batch of offsets 15 to 19 of examples-0 fails its checksum",
    ]
    found = damaged.audited()
    assert found["differences"] == {}
    assert found["checked"]["predictions"] == len(whole)


def test_a_damaged_batch_that_no_worker_passed_is_named_with_the_ways_on(
    damaged: Place, tmp_path: Path
) -> None:
    """By topic, partition and offset. What a worker has read already it passes no more: only a copy helps."""
    name = damaged.settings.topic_name("examples")
    prefix = ("--set", f"log.prefix={damaged.settings.log.prefix}")

    found = run("record", str(tmp_path / "day.jsonl"), *prefix, log=damaged.settings.log.url)

    assert found.exit_code == ExitCode.REFUSED
    for part in (f"read {name}-0", "at offset 5 ", "from a replica", "audit --recording", "--skip-to-oldest"):
        assert part in found.stderr
    assert not (tmp_path / "day.jsonl").exists()
