"""The rights that deploy/security.md tells to grant are enough, and none of them is too many."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mistakebound.commands.app import app
from mistakebound.commands.errors import code_of
from mistakebound.core.records import TOPICS, Outgoing
from mistakebound.exit_codes import ExitCode
from mistakebound.log import open_log
from mistakebound.log.kafka import KafkaLog
from mistakebound.log.partitioner import PARTITIONERS
from mistakebound.log.protocol import Refused
from mistakebound.settings import CheckpointSettings, Settings
from tests.security.support.rights import Right, commands, rights
from tests.security.support.secured import USERS, Secured
from tests.worker.support.working import Run, example, label

PATIENCE_S = 30.0
FOREVER = {topic: {"retention.ms": "-1"} for topic in TOPICS}
"""The records of these tests are from 1970."""


class Model:
    """Topics on the secured broker, seen by an administrator who may do everything."""

    def __init__(self, secured: Secured, prefix: str, log: KafkaLog, folder: Path) -> None:
        self.secured = secured
        self._checkpoints = str(folder)
        self.prefix = prefix
        self.log = log
        self._sent = 0

    def settings(self, user: str, scheme: str = "kafka") -> Settings:
        settings = self.secured.settings("scram", self.prefix, user, scheme=scheme)
        return settings.model_copy(update={"checkpoint": CheckpointSettings(url=self._checkpoints)})

    def rights(self, user: str) -> list[Right]:
        return rights(user, self.prefix)

    def send(self) -> None:
        """An example on which every learner errs, its label, and one that is none, for a dead letter."""
        number, self._sent = self._sent, self._sent + 1
        now = 1_000 + 2 * number
        wrong = Outgoing("labels", 0, None, b"nonsense", (), now + 1)
        self.log.append([example(number, {"a": 1.0}, now), label(number, number % 2 == 0, now), wrong])

    def work(self, scheme: str = "kafka") -> Run:
        """The worker, by its own rights, until all that was sent is decided."""
        settings, end = self.settings("worker", scheme), time.monotonic() + PATIENCE_S

        def stopping(idle: bool) -> bool:
            assert time.monotonic() < end, "the worker does not get on"
            at = self.log.group_positions()[0] if idle else None
            highs = [self.log.high_watermark(topic, 0) for topic in ("examples", "labels")]
            return at is not None and [at.examples, at.labels] == highs

        with open_log(settings) as log:
            return Run(log, settings, stopping=stopping)

    def command(self, user: str, *arguments: str, stdin: bytes = b"") -> Any:
        """What a verb answers to this user."""
        settings = self.settings(user)
        sets = [f"log.prefix={self.prefix}", "learner.kind=perceptron", "labels.max_delay=1000"]
        sets += [f"checkpoint.url={self._checkpoints}"]
        sets += [f"kafka.{name}={value}" for name, value in settings.kafka.items()]
        options = [part for one in sets for part in ("--set", one)]
        return CliRunner().invoke(app, [*arguments, "--log", str(settings.log.url), *options], input=stdin)


@pytest.fixture
def model(secured: Secured, prefix: str, tmp_path: Path) -> Iterator[Model]:
    """With its topics, of one partition each, and nobody's rights yet."""
    with ExitStack() as held:
        log = held.enter_context(KafkaLog(secured.settings("inside", prefix)))
        log.create_topics(1, FOREVER)  # type: ignore[arg-type]
        yield Model(secured, prefix, log, tmp_path / "checkpoints")


def names(said: str, right: Right) -> bool:
    """Whether a refusal names what to grant. A user who may not even see a topic is told that first."""
    if right.kind == "topic":
        seeing = f"Describe on topic {right.name} (Read and Write include it)"
        listed = rf"{right.operation} on topic [^;]*\b{re.escape(right.name)}[,;]"
        return seeing in said or re.search(listed, said) is not None
    return f"{right.operation} on {right.kind} {right.name}" in said


def test_the_worker_works_with_its_rights_and_not_without_any_of_them(model: Model) -> None:
    """From its first epoch on. Without one it ends with exit code 5, naming the right, and goes on as if
    nothing had been once that is granted again."""
    allowed = model.rights("worker")
    alike = [
        right for right in allowed if right.operation == "DescribeConfigs"
    ]  # asked of all in one request
    tried = [right for right in allowed if right not in alike[1:-1]]
    with model.secured.granted(allowed):
        model.send()
        model.work()
        for right in tried:
            model.send()
            with model.secured.revoked(right), pytest.raises(Refused) as refusal:
                model.work()
            assert code_of(refusal.value) is ExitCode.REFUSED
            assert names(str(refusal.value), right), f"without {right}: {refusal.value}"
        run = model.work()
    assert run.metric('mistakebound_partition_updates{partition="0"}') == 1 + len(tried)


def test_librdkafka_needs_no_other_rights_and_speaks_tls_too(model: Model) -> None:
    """By the same door, with the same settings, it goes on where kafka-python stopped, and back."""
    with model.secured.granted(model.rights("worker")):
        for updates, scheme in enumerate(("kafka", "kafka+confluent", "kafka"), 1):
            model.send()
            run = model.work(scheme)
            assert run.metric('mistakebound_partition_updates{partition="0"}') == updates


def test_reset_and_seed_need_what_the_worker_needs(model: Model) -> None:
    """They write to the same topics, in transactions of the same prefix."""
    row = json.dumps({"id": "s", "features": {"a": 1.0}, "label": True}).encode()
    with model.secured.granted(model.rights("worker")):
        model.send()
        model.work()
        done = model.command("worker", "reset", "--execute", "--set", "learner.tie=positive")
        assert done.exit_code == 0, done.output
        seeded = model.command(
            "worker", "seed", "-", "--from", "jsonl", "--set", "learner.tie=positive", stdin=row
        )
        assert seeded.exit_code == 0, seeded.output


def test_topics_are_created_with_their_right_and_not_without(
    secured: Secured, prefix: str, tmp_path: Path
) -> None:
    """Again with topics that are there already, and without each of its three operations."""
    with KafkaLog(secured.settings("inside", prefix)) as log:
        model = Model(secured, prefix, log, tmp_path / "none")
        allowed = model.rights("topics")
        with secured.granted(allowed):
            for right in allowed[:3]:
                if right.operation == "DescribeConfigs":
                    model.command("topics", "topics", "create", "--partitions", "1")
                with secured.revoked(right):
                    told = model.command("topics", "topics", "create", "--partitions", "1")
                assert told.exit_code == ExitCode.REFUSED, f"without {right}: {told.output}"
                assert names(told.output, right), f"without {right}: {told.output}"
            told = model.command("topics", "topics", "create")
        assert (told.exit_code, told.stderr) == (0, "all topics exist already\n")


READING = {
    "status": ["--model"],
    "audit": [],
    "tail": ["dead-letters", "--from", "beginning", "--count", "1"],
    "record": ["record.jsonl"],
    "topics": ["check"],
}


def test_what_only_reads_needs_only_rights_to_read(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each verb works; without a right at least one does not, and names it."""
    monkeypatch.chdir(tmp_path)
    with model.secured.granted(model.rights("worker")):
        model.send()
        model.work()
    allowed = model.rights("reader")
    with model.secured.granted(allowed):
        for verb, arguments in READING.items():
            told = model.command("reader", verb, *arguments)
            assert told.exit_code in (0, ExitCode.CHECK_FAILED), told.output
        for right in (each for each in allowed if each.name.endswith(("examples", "mistakebound"))):
            with model.secured.revoked(right):
                told = model.command("reader", "status" if right.kind == "group" else "audit")
            assert told.exit_code == ExitCode.REFUSED, f"without {right}: {told.output}"
            assert names(told.output, right), f"without {right}: {told.output}"


@pytest.mark.parametrize("user", ["worker", "reader"])
def test_transactions_are_tried_by_those_who_may(model: Model, user: str) -> None:
    """A worker's rights include it. Who only reads is told what was left out, and it is no failure."""
    with model.secured.granted(model.rights(user)):
        told = model.command(user, "config", "check", "--online")

    assert told.exit_code == 0, told.output
    if user == "worker":
        assert "transactions: the log has them" in told.stderr
    else:
        assert "whether the log has transactions was not tried" in told.stderr
        assert f"grant this user Write on transactional id {model.prefix}mistakebound-" in told.stderr


@pytest.mark.parametrize("topic", ["examples", "labels"])
def test_a_producer_needs_one_right(model: Model, topic: str) -> None:
    """To write to its own topic; the other one, and the worker's, are closed to it."""
    (right,) = model.rights(topic)
    line = json.dumps({"id": "i", "features": {"a": 1}, "label": True}).encode()
    with model.secured.granted([right]):
        sent = model.command(topic, "send", topic, "-", stdin=line)
        name = f"{model.prefix}{topic}"
        assert (sent.exit_code, sent.stderr) == (
            0,
            f"sending to {name}, 1 partition: nothing to choose\nsent 1 record\n",
        )
        other = "labels" if topic == "examples" else "examples"
        assert_denied(model, topic, other, line)
    assert_denied(model, topic, topic, line)


def assert_denied(model: Model, user: str, topic: str, line: bytes) -> None:
    told = model.command(user, "send", topic, "-", stdin=line)
    assert told.exit_code == ExitCode.REFUSED, told.output
    assert names(told.stderr, Right(user, "Write", "topic", f"{model.prefix}{topic}", False)), told.stderr


def test_a_producer_that_may_not_read_must_say_how_keys_are_placed(
    secured: Secured, prefix: str, tmp_path: Path
) -> None:
    """Where there are several partitions; before the first record, with both ways on."""
    line = json.dumps({"id": "i", "label": True}).encode()
    with KafkaLog(secured.settings("inside", prefix)) as log:
        log.create_topics(3, FOREVER)  # type: ignore[arg-type]
        model = Model(secured, prefix, log, tmp_path / "none")
        (right,) = model.rights("labels")
        with secured.granted([right]):
            told = model.command("labels", "send", "labels", "-", stdin=line)
            assert told.exit_code == ExitCode.REFUSED
            assert "may not be read" in told.stderr
            assert "grant Read on it" in told.stderr
            assert "--partitioner" in told.stderr
            sent = model.command("labels", "send", "labels", "-", "--partitioner", "crc32", stdin=line)
            assert sent.exit_code == 0, sent.output
        assert log.high_watermark("labels", PARTITIONERS["crc32"](b"i", 3)) == 1


def test_every_user_of_the_document_is_one_of_the_broker() -> None:
    """Otherwise its rights would not be tried at all."""
    assert {user for user in USERS if commands(user)} == set(USERS)
