"""A request of a transaction that the network delivers late: its connection was lost, the client sent it again, and
the first copy arrives amid the next transaction.

Both clients have one epoch for all their transactions (they speak the protocol from before the second part of
KIP-890), so the broker cannot tell such a copy from a request of the next transaction.
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from mistakebound.core.records import Outgoing, Position
from mistakebound.log import open_log
from mistakebound.log.kafka import KafkaLog
from mistakebound.log.protocol import StaleGeneration
from mistakebound.settings import LogSettings, Settings
from tests.faults.support.chance import clients
from tests.log.support.breaking import evict
from tests.log.support.broker import Broker
from tests.log.support.proxy import Proxy, Wanted
from tests.log.support.requests import Kind, Request
from tests.log.support.worker import Worker, values

PARTITIONS = 2
FIRST = [Outgoing("predictions", p, b"k", b"first") for p in range(PARTITIONS)]
SECOND = [Outgoing("predictions", p, b"k", b"second") for p in range(PARTITIONS)]
SCHEMES = [{"kafka-python": "kafka", "confluent": "kafka+confluent"}[client] for client in clients()]


def a(kind: Kind) -> Wanted:
    """Any request of this kind."""
    return lambda request: request.is_a(kind)


def commit(request: Request) -> bool:
    return request.is_a(Kind.END) and request.commits


def abort(request: Request) -> bool:
    return request.is_a(Kind.END) and not request.commits


LOST = {
    "the partitions": a(Kind.ADD_PARTITIONS),
    "the group": a(Kind.ADD_OFFSETS),
    "the positions": a(Kind.OFFSETS),
    "the commit": commit,
}
ARRIVES = {
    "before the outputs": a(Kind.PRODUCE),
    "amid the outputs": a(Kind.ADD_OFFSETS),
    "before the positions": a(Kind.OFFSETS),
    "before the commit": commit,
}


pytestmark = pytest.mark.kafka


@pytest.fixture
def proxy(proxied: tuple[Broker, Proxy]) -> Proxy:
    """Without anything left of the test before."""
    proxy = proxied[1]
    proxy.held.clear()
    proxy.delivered.clear()
    proxy.seen.clear()
    proxy._keep = proxy._before = None
    return proxy


@dataclass
class Way:
    """A worker whose way to the broker leads through the proxy, and the log as it is, past the proxy."""

    log: KafkaLog
    worker: Worker
    _before: list[int] = field(default_factory=lambda: [0] * PARTITIONS)

    def written(self) -> list[list[bytes | None]]:
        """What this test's transactions wrote, by partition."""
        everything = [values(self.log, "predictions", p) for p in range(PARTITIONS)]
        return [each[done:] for each, done in zip(everything, self._before, strict=True)]

    def begin(self) -> Worker:
        """The worker for another test."""
        self._before = [len(values(self.log, "predictions", p)) for p in range(PARTITIONS)]
        return self.worker

    def both_are_whole(self) -> None:
        """Both transactions are there, and the second one's positions."""
        assert self.written() == [[b"first", b"second"]] * PARTITIONS
        assert self.worker.session.committed(range(PARTITIONS)) == dict.fromkeys(
            range(PARTITIONS), Position(0, 0, "second")
        )


@pytest.fixture(scope="module", params=SCHEMES)
def way(request: pytest.FixtureRequest, proxied: tuple[Broker, Proxy]) -> Iterator[Way]:
    """One by each client, for all tests of this module."""
    broker, proxy = proxied
    prefix = f"late-{uuid.uuid4().hex[:12]}."
    direct = Settings(log=LogSettings(url=f"kafka://{broker.bootstrap}", prefix=prefix))
    proxying = Settings(log=LogSettings(url=f"{request.param}://127.0.0.1:{proxy.port}", prefix=prefix))
    with KafkaLog(direct) as log:
        log.create_topics(PARTITIONS, {})
        with open_log(proxying) as opened:
            worker = Worker(opened).start()
            yield Way(log, worker)
            worker.close()


def transactions(proxy: Proxy) -> list[bool]:
    """How the transactions that came through were asked to end: True for a commit."""
    return [request.commits for request in proxy.seen if request.is_a(Kind.END)]


def epochs(proxy: Proxy) -> int:
    return sum(request.is_a(Kind.INIT_PRODUCER_ID) for request in proxy.seen)


@pytest.mark.parametrize("arrives", ARRIVES)
@pytest.mark.parametrize("lost", LOST)
def test_a_late_copy_changes_nothing(way: Way, proxy: Proxy, lost: str, arrives: str) -> None:
    """Of a request of a committed transaction, wherever it arrives in the next one: both are whole."""
    worker = way.begin()
    proxy.keep_back(LOST[lost])
    worker.commit(FIRST, metadata="first")
    assert len(proxy.held) == 1
    proxy.deliver_before(ARRIVES[arrives])

    worker.commit(SECOND, metadata="second")

    assert len(proxy.delivered) == 1, "the copy arrived"
    way.both_are_whole()


@pytest.mark.parametrize("arrives", ARRIVES)
def test_a_late_abort_changes_nothing(way: Way, proxy: Proxy, arrives: str) -> None:
    """A step of an old generation was aborted; the copy of that request does not abort the next step's outputs."""
    worker = way.begin()
    worker.commit(FIRST, metadata="first")
    proxy.keep_back(abort)
    evict(way.log)
    with pytest.raises(StaleGeneration):
        worker.commit([Outgoing("predictions", 0, b"k", b"stale")])
    assert len(proxy.held) == 1
    while worker.session.poll(0.1).generation == worker.generation:
        pass
    worker.start()
    proxy.deliver_before(ARRIVES[arrives])

    worker.commit(SECOND, metadata="second")

    assert len(proxy.delivered) == 1, "the copy arrived"
    way.both_are_whole()


@pytest.mark.parametrize("lost", LOST)
def test_a_copy_that_arrives_between_two_transactions_changes_nothing(
    way: Way, proxy: Proxy, lost: str
) -> None:
    """Before the next epoch there is nothing that it could end or join."""
    worker = way.begin()
    proxy.keep_back(LOST[lost])
    worker.commit(FIRST, metadata="first")
    proxy.deliver()

    assert way.written() == [[b"first"]] * PARTITIONS
    worker.commit(SECOND, metadata="second")

    way.both_are_whole()


@pytest.mark.parametrize("lost", LOST)
def test_the_client_tells_that_it_sent_a_request_again(way: Way, proxy: Proxy, lost: str) -> None:
    """Each kind of request: the next transaction has an epoch of its own, and nothing else costs one.

    Fails when a client stops telling: then nothing fences the copy.
    """
    worker = way.begin()
    before = epochs(proxy)
    worker.commit(FIRST)
    worker.commit(FIRST)
    assert epochs(proxy) == before, "nothing was lost: the client stays"
    proxy.keep_back(LOST[lost])
    worker.commit(FIRST)

    worker.commit(FIRST)

    assert epochs(proxy) == before + 1
    assert transactions(proxy) == [True] * 4


def test_the_clients_still_share_one_epoch_among_transactions(way: Way, proxy: Proxy) -> None:
    """When a client ends its transactions by version 5 of EndTxn, the broker raises the epoch at every end, and late
    copies are refused without our help: then throw no client away any more."""
    worker = way.begin()

    worker.commit(FIRST)

    versions = {int.from_bytes(each.frame[6:8], "big") for each in proxy.seen if each.is_a(Kind.END)}
    assert max(versions) < 5
