"""A worker whose producing client breaks in the middle of a transaction: never committed with records missing.

Each fault happens to the third transaction of a worker on a real broker, once, on the real client. What
the client itself makes of it, and what one transaction of the log does, is in `tests/log/kafka/test_client_traps.py`.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.admin import MemberToRemove
from kafka.errors import KafkaError, KafkaTimeoutError
from kafka.producer.transaction_manager import TransactionalRequestResult

from mistakebound.log.kafka import KafkaLog, timeouts
from mistakebound.log.kafka.kafka_python import append
from mistakebound.log.kafka.kafka_python import send as sending
from mistakebound.log.kafka.write import Writer
from mistakebound.log.protocol import Fenced, LogError, StaleGeneration, TransactionFailed
from tests.commands.support.command_line import ok
from tests.log.support.breaking import expire, lose_a_sequence_number
from tests.log.support.place import KEEP
from tests.worker.support.working import Recount, Run, settings_for, stream

EXAMPLES = 60
SLOT = "slot"
BROKEN = 3
"""The number of the transaction that breaks: there is something before it and something behind it."""


def nothing(*_: Any) -> None:
    """What happens where a fault does nothing."""


@dataclass(frozen=True)
class Fault:
    """What happens around the second partition of the transaction, while the first is on the broker; instead
    of the commit; and instead of the abort."""

    raises: type[LogError]
    """What the transaction ends with."""
    before: Callable[[Any], None] = nothing
    after: Callable[[Any], None] = nothing
    commit: Callable[[Any], Any] | None = None
    abort: Callable[[Any], Any] | None = None


def bump_while_committing(producer: Any) -> Any:
    """The commit is asked for, and before it is sent the epoch is bumped: the broker aborts."""
    manager = producer._transaction_manager
    with manager._lock:
        result = manager.begin_commit()
        manager.bump_producer_id_and_epoch()
    return result


def never(producer: Any) -> Any:
    """The request is lost, and nobody answers."""
    return TransactionalRequestResult()


def commit_and_lose_the_answer(producer: Any) -> Any:
    """Everything is written; the worker never hears of it."""
    producer.commit_transaction()
    raise KafkaTimeoutError("no answer")


def fail(producer: Any) -> Any:
    raise KafkaError("not in this state")


def take_the_id(producer: Any) -> None:
    """Another process begins with the same transactional id."""
    other = type(producer)(
        bootstrap_servers=producer.config["bootstrap_servers"],
        transactional_id=producer.config["transactional_id"],
    )
    try:
        other.init_transactions()
    finally:
        append.discard(other)


def throw_the_member_out(producer: Any) -> None:
    """The group gives its partitions to others, and it has not heard of it yet."""
    group = producer.config["transactional_id"].removesuffix(f"-{SLOT}")
    admin = KafkaAdminClient(bootstrap_servers=producer.config["bootstrap_servers"])
    try:
        members = admin.describe_groups([group])[group]["members"]
        admin.remove_group_members(group, [MemberToRemove(each["member_id"]) for each in members])
    finally:
        admin.close()


FAULTS = {
    "a batch expires": Fault(TransactionFailed, after=expire),
    "the epoch is bumped in the transaction": Fault(TransactionFailed, before=lose_a_sequence_number),
    "the epoch is bumped while it commits": Fault(TransactionFailed, commit=bump_while_committing),
    "another process takes the id": Fault(Fenced, before=take_the_id),
    "the group has moved on": Fault(StaleGeneration, before=throw_the_member_out),
    "the abort fails": Fault(TransactionFailed, after=expire, abort=fail),
    "the abort is never answered": Fault(TransactionFailed, after=expire, abort=never),
    "the commit is lost": Fault(TransactionFailed, commit=never),
    "the answer to the commit is lost": Fault(TransactionFailed, commit=commit_and_lose_the_answer),
}


@dataclass
class Breaking:
    """Lets the fault happen to the transaction whose turn it is."""

    fault: Fault
    transactions: int = 0
    sent: int = 0
    raised: list[tuple[int, type[LogError]]] = field(default_factory=list)
    """Which transactions ended with what."""

    def install(self, patch: pytest.MonkeyPatch) -> None:
        write, send = Writer.write, sending.send

        def watched_write(writer: Any, outputs: Any, positions: Any, member: Any) -> Any:
            self.transactions += bool(positions)  # an epoch is begun without
            self.sent = 0
            if self.breaks():
                assert len(outputs) > 1
                producer = writer.settle()._producer
                replace(producer, "begin_commit", self.fault.commit)
                replace(producer, "begin_abort", self.fault.abort)
            try:
                return write(writer, outputs, positions, member)
            except LogError as error:
                self.raised.append((self.transactions, type(error)))
                raise

        def watched_send(producer: Any, partition: Any, records: Any) -> Any:
            self.sent += 1
            if not self.breaks() or self.sent != 2:
                return send(producer, partition, records)
            producer.flush()
            self.fault.before(producer)
            batches = send(producer, partition, records)
            self.fault.after(producer)
            return batches

        patch.setattr(Writer, "write", watched_write)
        patch.setattr(sending, "send", watched_send)

    def breaks(self) -> bool:
        return self.transactions == BROKEN


def replace(producer: Any, name: str, stub: Callable[[Any], Any] | None) -> None:
    """Let `stub` happen instead of this method of the producer's transaction manager, once."""
    manager = producer._transaction_manager
    if stub is None:
        return

    def once() -> Any:
        delattr(manager, name)
        return stub(producer)

    setattr(manager, name, once)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits in the same order, shorter. A busy machine answers within them: nothing but the fault may break."""
    monkeypatch.setattr(timeouts, "REQUEST_MS", 1_500)
    monkeypatch.setattr(timeouts, "DELIVERY_MS", 2_000)
    monkeypatch.setattr(timeouts, "FLUSH_S", 3)
    monkeypatch.setattr(timeouts, "COMMIT_S", 1.5)
    monkeypatch.setattr(timeouts, "ABORT_S", 1.5)


@pytest.mark.kafka
@pytest.mark.parametrize("name", FAULTS)
def test_a_broken_transaction_is_whole_or_absent(
    kafka_bootstrap: str, prefix: str, name: str, hasty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transaction ends with a named error, the worker gets over it, and each input is done once."""
    settings = settings_for(
        f"kafka://{kafka_bootstrap}",
        batch={"max_records": 20},
        kafka={"linger_ms": 400},
        log={"url": f"kafka://{kafka_bootstrap}", "prefix": prefix},
    )
    breaking = Breaking(FAULTS[name])
    with KafkaLog(settings) as log:
        log.create_topics(1, KEEP)
        log.append(stream(EXAMPLES))
        breaking.install(monkeypatch)

        run = Run(log, settings)

        assert breaking.raised == [(BROKEN, FAULTS[name].raises)]
        recount = Recount(log, settings)
        assert sorted(record_id for record_id, _ in recount.predicted) == sorted(
            f"i{number}" for number in range(EXAMPLES)
        )
        assert run.held.state.model.digest() == recount.digest
    flags = ("--set", f"log.prefix={prefix}", "--set", "checkpoint.url=")
    found = json.loads(ok("audit", "--json", *flags, log=settings.log.url).stdout)
    assert found["checked"]["predictions"] == EXAMPLES
