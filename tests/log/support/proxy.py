"""A way to a broker, with what networks do to it: delay, little capacity, silence, and connections that end.

It knows Kafka's requests: it can keep one back, end its connection, and deliver it later. That is what a network
does that loses a connection and not what was under way on it. The client connects again and sends the request
again; the first copy arrives when nobody expects it.
"""

import queue
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.log.support.broker import Broker
from tests.log.support.requests import OF_TRANSACTIONS, Request

PATIENCE_S = 60.0
PACKET = 4_096
LOOK_S = 0.05


Wanted = Callable[[Request], bool]
Change = Callable[[Request, bytes], bytes]
"""From an answer, with its length, to the one that arrives in its place."""


@dataclass(frozen=True)
class Halt:
    """Where a request is to be met, and what is done there."""

    wanted: Wanted
    stop: Callable[[], None]
    answered: bool


@dataclass
class Weather:
    """How the network is at present, in both directions, for every connection."""

    delay_s: float = 0.0
    bytes_per_s: float = float("inf")
    """Of each connection, in these directions:"""
    narrow: frozenset[str] = frozenset({"requests", "answers"})
    silent: frozenset[str] = frozenset()
    """Directions, `requests` and `answers`, in which nothing arrives until it is over. Nobody is told."""


@dataclass
class Proxy:
    """Carries what comes to its port to `upstream`. A context manager: afterwards nothing of it runs."""

    port: int
    upstream: tuple[str, int]
    held: list[Request] = field(default_factory=list)
    """What was kept back and not delivered yet."""
    delivered: list[bytes] = field(default_factory=list)
    """The broker's answers to what was delivered late."""
    seen: list[Request] = field(default_factory=list)
    """The requests of transactions that were carried on, in order."""
    weather: Weather = field(default_factory=Weather)
    _keep: Wanted | None = None
    _before: Wanted | None = None
    _halt: "Halt | None" = None
    _changed: "tuple[Wanted, Change] | None" = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _sockets: list[socket.socket] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)

    def keep_back(self, wanted: Wanted) -> None:
        """Keep the next such request, and end its connection as if it had been lost."""
        with self._lock:
            self._keep = wanted

    def deliver_before(self, wanted: Wanted) -> None:
        """Deliver what is held right before the next such request."""
        with self._lock:
            self._before = wanted

    def deliver(self) -> None:
        """Deliver what is held, each on a connection of its own, and wait for the broker's answers."""
        with self._lock:
            held, self.held = self.held, []
        for each in held:
            with socket.create_connection(self.upstream, PATIENCE_S) as late:
                late.sendall(each.frame)
                self.delivered.append(_frame(late) or b"")

    def halt(self, wanted: Wanted, stop: Callable[[], None], *, answered: bool) -> None:
        """Call `stop` once when such a request has come: before it is carried on or, `answered`, when the broker has
        answered it and before the answer is carried back."""
        with self._lock:
            self._halt = Halt(wanted, stop, answered)

    def change_answers(self, wanted: Wanted, change: Change) -> None:
        """From now on answer such requests otherwise than the broker does: as another broker would."""
        with self._lock:
            self._changed = wanted, change

    def reset(self) -> None:
        """End all connections at once, as a router does that was started again."""
        with self._lock:
            sockets, self._sockets = self._sockets, []
        for each in sockets:
            with suppress(OSError):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            _end(each)

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._run(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            sockets = list(self._sockets)
        for each in sockets:
            _end(each)
        for thread in self._threads:
            thread.join(PATIENCE_S)

    def _run(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                broker = socket.create_connection(self.upstream, PATIENCE_S)
            except OSError:
                _end(client)
                continue
            broker.settimeout(None)
            for each in (client, broker):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._sockets += client, broker
            requests, answers = Way(self, "requests", broker), Way(self, "answers", client)
            halts: dict[bytes, Callable[[], None]] = {}
            changes: dict[bytes, Callable[[bytes], bytes]] = {}
            self._run(self._carry_requests, client, broker, requests, halts, changes)
            self._run(_carry_answers, broker, client, answers, halts, changes)
            self._run(requests.carry)
            self._run(answers.carry)

    def _carry_requests(
        self,
        client: socket.socket,
        broker: socket.socket,
        way: "Way",
        halts: dict[bytes, Callable[[], None]],
        changes: dict[bytes, Callable[[bytes], bytes]],
    ) -> None:
        """`halts`: the numbers of requests at whose answer something is called; `changes`: and whose answer is changed."""
        with _ending(client, broker, way), suppress(OSError):
            while (frame := _frame(client)) is not None:
                request = Request(frame)
                if self._is_kept(request):
                    break
                self._deliver_late(request)
                if any(request.is_a(kind) for kind in OF_TRANSACTIONS):
                    self.seen.append(request)
                self._halt_at(request, halts)
                if self._changed is not None and self._changed[0](request):
                    changes[request.number] = partial(self._changed[1], request)
                way.put(frame)

    def _is_kept(self, request: Request) -> bool:
        with self._lock:
            if self._keep is None or not self._keep(request):
                return False
            self._keep = None
            self.held.append(request)
            return True

    def _halt_at(self, request: Request, halts: dict[bytes, Callable[[], None]]) -> None:
        with self._lock:
            halt = self._halt
            if halt is None or not halt.wanted(request):
                return
            self._halt = None
        if halt.answered:
            halts[request.number] = halt.stop
        else:
            halt.stop()

    def _deliver_late(self, request: Request) -> None:
        with self._lock:
            if self._before is None or not self.held or not self._before(request):
                return
            self._before = None
        self.deliver()


def _carry_answers(
    broker: socket.socket,
    client: socket.socket,
    way: "Way",
    halts: dict[bytes, Callable[[], None]],
    changes: dict[bytes, Callable[[bytes], bytes]],
) -> None:
    with _ending(client, broker, way), suppress(OSError):
        while (frame := _frame(broker)) is not None:
            if stop := halts.pop(frame[4:8], None):
                stop()
            if change := changes.pop(frame[4:8], None):
                frame = change(frame)
            way.put(frame)


class Way:
    """One direction of one connection: what is put in arrives in order, as the weather allows."""

    def __init__(self, proxy: Proxy, direction: str, to: socket.socket) -> None:
        self._proxy, self._direction, self._to = proxy, direction, to
        self._under_way: queue.SimpleQueue[tuple[float, bytes] | None] = queue.SimpleQueue()
        self._over = False

    def put(self, data: bytes) -> None:
        self._under_way.put((time.monotonic() + self._proxy.weather.delay_s, data))

    def end(self) -> None:
        self._over = True
        self._under_way.put(None)

    def carry(self) -> None:
        """Until the connection ends."""
        with suppress(OSError):
            while (arriving := self._under_way.get()) is not None and not self._over:
                due, data = arriving
                time.sleep(max(0.0, due - time.monotonic()))
                for begin in range(0, len(data), PACKET):
                    packet = data[begin : begin + PACKET]
                    while self._direction in self._proxy.weather.silent and not self._over:
                        time.sleep(LOOK_S)
                    if self._direction in self._proxy.weather.narrow:
                        time.sleep(len(packet) / self._proxy.weather.bytes_per_s)
                    self._to.sendall(packet)


@contextmanager
def _ending(client: socket.socket, broker: socket.socket, way: Way) -> Iterator[None]:
    try:
        yield
    finally:
        way.end()
        _end(client)
        _end(broker)


def _frame(connection: socket.socket) -> bytes | None:
    """The next request or answer with its length; None at the end."""
    length = _exactly(connection, 4)
    if length is None:
        return None
    rest = _exactly(connection, struct.unpack(">i", length)[0])
    return None if rest is None else length + rest


def _exactly(connection: socket.socket, count: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < count:
        chunk = connection.recv(min(count - len(parts), 65_536))
        if not chunk:
            return None
        parts += chunk
    return bytes(parts)


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


@contextmanager
def proxied_broker(folder: Path) -> Iterator[tuple[Broker, Proxy]]:
    """A broker with its data in the folder, and a way to its second listener."""
    with (
        Broker(folder, by_proxy=True) as broker,
        Proxy(broker.proxy_port, ("127.0.0.1", broker.behind_proxy)) as proxy,
    ):
        yield broker, proxy
