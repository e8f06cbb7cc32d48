"""A request of a transaction that the network delivers late: its connection was lost, the client sent it again, and
the first copy arrives amid the next transaction.

Both clients have one epoch for all their transactions (they speak the protocol from before the second part of
KIP-890), so the broker cannot tell such a copy from a request of the next transaction.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from mistakebound.core.records import Outgoing, Position
from mistakebound.log import open_log
from mistakebound.log.kafka import KafkaLog
from mistakebound.log.protocol import Log, StaleGeneration
from mistakebound.settings import LogSettings, Settings
from tests.log.support.breaking import evict
from tests.log.support.broker import Broker
from tests.log.support.proxy import Kind, Proxy, Request, Wanted
from tests.log.support.worker import Worker, values

PARTITIONS = 2
FIRST = [Outgoing("predictions", p, b"k", b"first") for p in range(PARTITIONS)]
SECOND = [Outgoing("predictions", p, b"k", b"second") for p in range(PARTITIONS)]
CLIENTS = ("kafka", "kafka+confluent")


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


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, Proxy]]:
    """A broker, and a way to it that can lose requests."""
    with (
        Broker(tmp_path_factory.mktemp("proxied"), by_proxy=True) as broker,
        Proxy(broker.proxy_port, ("127.0.0.1", broker.behind_proxy)) as proxy,
    ):
        yield broker, proxy


@pytest.fixture
def proxy(proxied: tuple[Broker, Proxy]) -> Proxy:
    """Without anything left of the test before."""
    proxy = proxied[1]
    proxy.held.clear()
    proxy.delivered.clear()
    proxy.seen.clear()
    proxy._keep = proxy._before = None
    return proxy


@pytest.fixture
def log(proxied: tuple[Broker, Proxy], prefix: str) -> Iterator[KafkaLog]:
    """The log as it is, past the proxy."""
    with KafkaLog(Settings(log=LogSettings(url=f"kafka://{proxied[0].bootstrap}", prefix=prefix))) as opened:
        opened.create_topics(PARTITIONS, {})
        yield opened


@pytest.fixture
def start(log: Log, proxy: Proxy, prefix: str) -> Iterator[Callable[[str], Worker]]:
    """Start a worker whose way leads through the proxy."""
    with ExitStack() as held:

        def start(scheme: str) -> Worker:
            url = f"{scheme}://127.0.0.1:{proxy.port}"
            opened = held.enter_context(open_log(Settings(log=LogSettings(url=url, prefix=prefix))))
            worker = Worker(opened)
            held.callback(worker.close)
            return worker.start()

        yield start


def written(log: Log) -> list[list[bytes | None]]:
    return [values(log, "predictions", p) for p in range(PARTITIONS)]


def transactions(proxy: Proxy) -> list[bool]:
    """How the transactions that came through were asked to end: True for a commit."""
    return [request.commits for request in proxy.seen if request.is_a(Kind.END)]


def epochs(proxy: Proxy) -> int:
    return sum(request.is_a(Kind.INIT_PRODUCER_ID) for request in proxy.seen)


@pytest.mark.parametrize("arrives", ARRIVES)
@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("scheme", CLIENTS)
def test_a_late_copy_changes_nothing(
    log: Log, proxy: Proxy, start: Callable[[str], Worker], scheme: str, lost: str, arrives: str
) -> None:
    """Of a request of a committed transaction, wherever it arrives in the next one: both are whole."""
    worker = start(scheme)
    proxy.keep_back(LOST[lost])
    worker.commit(FIRST, metadata="first")
    assert len(proxy.held) == 1
    proxy.deliver_before(ARRIVES[arrives])

    worker.commit(SECOND, metadata="second")

    assert len(proxy.delivered) == 1, "the copy arrived"
    assert written(log) == [[b"first", b"second"]] * PARTITIONS
    assert worker.session.committed(range(PARTITIONS)) == dict.fromkeys(
        range(PARTITIONS), Position(0, 0, "second")
    )


@pytest.mark.parametrize("arrives", ARRIVES)
@pytest.mark.parametrize("scheme", CLIENTS)
def test_a_late_abort_changes_nothing(
    log: KafkaLog, proxy: Proxy, start: Callable[[str], Worker], scheme: str, arrives: str
) -> None:
    """A step of an old generation was aborted; the copy of that request does not abort the next step's outputs."""
    worker = start(scheme)
    worker.commit(FIRST, metadata="first")
    proxy.keep_back(abort)
    evict(log)
    with pytest.raises(StaleGeneration):
        worker.commit([Outgoing("predictions", 0, b"k", b"stale")])
    assert len(proxy.held) == 1
    while worker.session.poll(0.1).generation == worker.generation:
        pass
    worker.start()
    proxy.deliver_before(ARRIVES[arrives])

    worker.commit(SECOND, metadata="second")

    assert len(proxy.delivered) == 1, "the copy arrived"
    assert written(log) == [[b"first", b"second"]] * PARTITIONS
    assert worker.session.committed([0]) == {0: Position(0, 0, "second")}


@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("scheme", CLIENTS)
def test_a_copy_that_arrives_between_two_transactions_changes_nothing(
    log: Log, proxy: Proxy, start: Callable[[str], Worker], scheme: str, lost: str
) -> None:
    """Before the next epoch there is nothing that it could end or join."""
    worker = start(scheme)
    proxy.keep_back(LOST[lost])
    worker.commit(FIRST, metadata="first")
    proxy.deliver()

    assert written(log) == [[b"first"]] * PARTITIONS
    worker.commit(SECOND, metadata="second")

    assert written(log) == [[b"first", b"second"]] * PARTITIONS
    assert worker.session.committed([0]) == {0: Position(0, 0, "second")}


@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("scheme", CLIENTS)
def test_the_client_tells_that_it_sent_a_request_again(
    proxy: Proxy, start: Callable[[str], Worker], scheme: str, lost: str
) -> None:
    """Each kind of request: the next transaction has an epoch of its own, and nothing else costs one.

    Fails when a client stops telling: then nothing fences the copy.
    """
    worker = start(scheme)
    before = epochs(proxy)
    worker.commit(FIRST)
    worker.commit(FIRST)
    assert epochs(proxy) == before, "nothing was lost: the client stays"
    proxy.keep_back(LOST[lost])
    worker.commit(FIRST)

    worker.commit(FIRST)

    assert epochs(proxy) == before + 1
    assert transactions(proxy) == [True] * 4


@pytest.mark.parametrize("scheme", CLIENTS)
def test_the_clients_still_share_one_epoch_among_transactions(
    proxy: Proxy, start: Callable[[str], Worker], scheme: str
) -> None:
    """When a client ends its transactions by version 5 of EndTxn, the broker raises the epoch at every end, and late
    copies are refused without our help: then throw no client away any more."""
    worker = start(scheme)

    worker.commit(FIRST)

    versions = {int.from_bytes(each.frame[6:8], "big") for each in proxy.seen if each.is_a(Kind.END)}
    assert max(versions) < 5
