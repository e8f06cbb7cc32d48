"""One transaction on a library that fails in every place: what becomes of its client, and who shuts out whom."""

from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from mistakebound.core.records import Outgoing, Position
from mistakebound.log.kafka import timeouts
from mistakebound.log.kafka.log import KafkaLog
from mistakebound.log.kafka.ports import Ends, fenced, given_up, moved_on
from mistakebound.log.kafka.write import Writer
from mistakebound.log.protocol import Fenced, LogError, TransactionFailed, Unreachable
from tests.log.support.unwatched import UNWATCHED
from tests.log.support.watched import Noted, Watched

OUTPUT = Outgoing("updates", 0, None, b"v")


class Broker:
    """Who holds the transactional id, what was committed, and what every client was asked."""

    def __init__(self) -> None:
        self.holder: object = None
        self.committed: list[bytes | None] = []
        self.senders: list[Sender] = []
        self.unreachable = False

    def sender(self, transactional_id: str) -> "Sender":
        self.senders.append(Sender(self))
        return self.senders[-1]


class Failure(Exception):
    """Of a library; its first argument is the error in the log's words."""


class Sender:
    """`mistakebound.log.kafka.ports.Sender`."""

    errors: ClassVar[tuple[type[Exception], ...]] = (Failure,)

    def __init__(self, broker: Broker) -> None:
        self._broker, self._records = broker, list[bytes | None]()
        self.calls: list[str] = []
        self.fails: dict[str, LogError] = {}
        self.again = False

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if name in self.fails:
            raise Failure(self.fails[name])

    def initialise(self) -> None:
        self.calls.append("initialise")
        if self._broker.unreachable:
            raise Unreachable("the broker is away")
        self._broker.holder = self

    def begin(self) -> None:
        self._records = []

    def send(self, topic_partition: Any, records: Any, timeout_s: float) -> None:
        self._records += [record.value for record in records]

    def flush(self, timeout_s: float) -> Ends:
        self._call("flush")
        return {("updates", 0): 1}

    def send_positions(self, positions: Any, member: Any, timeout_s: float) -> None:
        self._call("positions")

    def commit(self, timeout_s: float) -> None:
        self._call("commit")
        if self._broker.holder is not self:
            raise Failure(fenced("an id", "its epoch"))
        self._broker.committed += self._records

    def abort(self, timeout_s: float) -> None:
        self.calls.append("abort")

    def sent_again(self) -> bool:
        return self.again

    def explain(self, error: Exception) -> LogError:
        found: LogError = error.args[0]
        return found

    def discard(self) -> None:
        self.calls.append("discard")


def writer(broker: Broker) -> Writer:
    return Writer(broker.sender, "an id", UNWATCHED)


def test_a_client_that_cannot_take_the_id_is_closed_and_another_is_made_next_time() -> None:
    """Its threads would otherwise go on for ever, once a second while the broker is away."""
    broker = Broker()
    broker.unreachable = True
    one = writer(broker)
    with pytest.raises(Unreachable):
        one.settle()
    broker.unreachable = False

    one.settle()

    assert [each.calls for each in broker.senders] == [["initialise", "discard"], ["initialise"]]


@pytest.mark.parametrize("place", ["flush", "positions", "commit"])
@pytest.mark.parametrize(
    "failure",
    [moved_on(), given_up("an id", "why"), fenced("an id", "why")],
    ids=["stale", "given up", "fenced"],
)
def test_a_transaction_that_fails_is_aborted_and_costs_its_client(place: str, failure: LogError) -> None:
    """One that was fenced has nothing to abort: what was open under its id has ended."""
    broker = Broker()
    one = writer(broker)
    one.settle()
    (first,) = broker.senders
    first.fails[place] = failure

    with pytest.raises(type(failure)):
        one.write([OUTPUT], {0: Position(1, 1)}, "member")

    ended = ["discard"] if isinstance(failure, Fenced) else ["abort", "discard"]
    assert first.calls[first.calls.index(place) + 1 :] == ended
    one.write([OUTPUT], {0: Position(1, 1)}, "member")
    assert len(broker.senders) == 2
    assert broker.committed == [b"v"]


@pytest.mark.parametrize("place", ["flush", "positions", "commit"])
def test_a_transaction_that_is_refused_after_the_time_it_may_take_has_failed_and_nobody_took_its_id(
    place: str,
) -> None:
    """The broker ended it by its own clock, and answers as if the id had been taken. Nothing is left to abort."""
    broker, clock = Broker(), iter((100.0, 100.0 + timeouts.TRANSACTION_MS / 1000))
    one = Writer(broker.sender, "an id", UNWATCHED, clock.__next__)
    one.settle()
    (first,) = broker.senders
    first.fails[place] = fenced("an id", "why")

    with pytest.raises(TransactionFailed, match=r"the broker ended it: it took 10 s"):
        one.write([OUTPUT], {0: Position(1, 1)}, "member")

    assert first.calls[first.calls.index(place) + 1 :] == ["discard"]


@pytest.mark.parametrize("again", [False, True])
def test_a_client_that_had_to_send_a_request_again_is_not_used_again(again: bool) -> None:
    """Though its transaction was committed: the first copy may arrive amid the next one."""
    broker = Broker()
    one = writer(broker)
    one.settle()
    broker.senders[0].again = again

    one.write([OUTPUT], {}, None)
    one.write([OUTPUT], {}, None)

    assert len(broker.senders) == 1 + again
    assert broker.committed == [b"v", b"v"]


def exclusive(broker: Broker) -> Any:
    """A log of which only the writing is there."""
    log: Any = object.__new__(KafkaLog)
    log._cluster = SimpleNamespace(connection=SimpleNamespace(group="g"), watchdog=UNWATCHED)
    log._client = broker
    return log


def test_who_decides_exclusively_is_fenced_by_another_that_did_so_meanwhile() -> None:
    """It has looked at the log before the other one wrote, so nothing of it may be written."""
    broker = Broker()

    def decide() -> list[Outgoing]:
        exclusive(broker).exclusively(lambda: [Outgoing("updates", 0, None, b"winner")])
        return [OUTPUT]

    with pytest.raises(Fenced):
        exclusive(broker).exclusively(decide)
    assert broker.committed == [b"winner"]


def test_what_was_decided_exclusively_is_decided_again_where_nobody_knows_whether_it_was_written() -> None:
    """Once earlier holders of the id are shut out, the log says."""
    broker = Broker()
    decided = 0

    def decide() -> list[Outgoing]:
        nonlocal decided
        decided += 1
        if decided == 1:
            broker.senders[-1].fails["commit"] = given_up("an id", "silence")
        return [OUTPUT]

    assert exclusive(broker).exclusively(decide) == 1
    assert (decided, broker.committed) == (2, [b"v"])
    assert all(each.calls[-1] == "discard" for each in broker.senders)


def test_no_call_of_a_client_may_hang_for_ever() -> None:
    """An abort and a close neither: librdkafka has hung there, too, and the worker would stand still without a word."""
    broker, watchdog = Broker(), Watched()

    def make(transactional_id: str) -> Any:
        return Noted(broker.sender(transactional_id), watchdog)

    looked_after: Any = watchdog
    one = Writer(make, "an id", looked_after)
    one.write([OUTPUT], {0: Position(1, 1)}, None)
    broker.senders[0].fails["flush"] = given_up("an id", "why")
    with pytest.raises(TransactionFailed):
        one.write([OUTPUT], {}, None)
    broker.unreachable = True
    with pytest.raises(Unreachable):
        one.settle()

    assert watchdog.seen >= {"initialise", "send", "flush", "send_positions", "commit", "abort", "discard"}
    assert watchdog.unseen == {"explain"}
