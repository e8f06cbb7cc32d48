"""A real broker for tests, with a controller of its own, as child processes of this one.

A killed broker starts again on what it had on disk. Nothing is left behind: a `Broker` is a context manager.

Why two processes: a broker that is also its own controller comes back believing that it still leads,
is then fenced, and while it is, its transaction coordinator takes partitions without a leader for
deleted ones. It drops the markers of a transaction that was just committed, which then hangs for ever.
Started only after the controller has fenced its predecessor, a broker writes those markers.
"""

import signal
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.log.support.node import (
    PROPERTIES,
    READY,
    START_S,
    Node,
    as_broker,
    as_controller,
    free_ports,
    reaches,
    start_anew,
    voters,
)

__all__ = ["PROPERTIES", "READY", "START_S", "Broker", "Node", "free_ports", "reaches"]

FENCED = "Fencing broker 1"


class Broker:
    """One broker and its controller. `start`, `stop` (clean), `kill`, `restart`, `pause`, `resume` the broker."""

    def __init__(self, folder: Path, *, by_proxy: bool = False) -> None:
        """`by_proxy`: with a second listener, which it advertises at `proxy_port`, where a proxy must listen."""
        self._folder = folder
        self._by_proxy = by_proxy
        self.proxy_port = self.behind_proxy = 0
        """Where clients of the second listener connect, and where that listener is."""
        self._port = 0
        self._controller: Node | None = None
        self._broker: Node | None = None

    @property
    def bootstrap(self) -> str:
        """Its address, `127.0.0.1:port`; the same after a restart."""
        return f"127.0.0.1:{self._port}"

    @property
    def folder(self) -> Path:
        """Where its data lies, somewhere below."""
        return self._folder

    @property
    def pid(self) -> int:
        """Process id of the broker."""
        return self._node.pid

    def start(self) -> None:
        """Return when the broker answers. A port taken in the meantime: once more on others."""
        if self._broker is not None:
            self._broker.start()
            self._wait_until_it_answers()
            return
        for attempt in range(3):
            self._set_up(self._folder / str(attempt))
            try:
                self._wait_until_it_answers()
            except RuntimeError:
                self._end()
                if attempt == 2:
                    raise
            else:
                return

    def stop(self) -> None:
        """End it cleanly (SIGTERM), as an operator does."""
        self._node.end(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once (SIGKILL), as a power cut does."""
        self._node.end(signal.SIGKILL)

    def restart(self) -> None:
        """Kill it and start it again on the same data and address."""
        assert self._controller is not None
        fenced = self._controller.output().count(FENCED)
        self.kill()
        end = time.monotonic() + START_S
        while self._controller.output().count(FENCED) == fenced:
            assert time.monotonic() < end, "the controller did not notice that its broker is gone"
            time.sleep(0.1)
        self.start()

    def pause(self) -> None:
        """Let it hang (SIGSTOP): connections stay open and nothing answers."""
        self._node.send(signal.SIGSTOP)

    def resume(self) -> None:
        self._node.send(signal.SIGCONT)

    @property
    def _node(self) -> "Node":
        assert self._broker is not None, "the broker was never started"
        return self._broker

    def _set_up(self, folder: Path) -> None:
        self._port, controller, self.proxy_port, self.behind_proxy = free_ports(4)
        common = {**PROPERTIES, **voters(controller)}
        broker = {**common, **as_broker(1, self._port)}
        if self._by_proxy:
            broker["listeners"] += f",PROXIED://127.0.0.1:{self.behind_proxy}"
            broker["advertised.listeners"] += f",PROXIED://127.0.0.1:{self.proxy_port}"
            broker["listener.security.protocol.map"] += ",PROXIED:PLAINTEXT"
        self._controller = Node(folder / "controller", {**common, **as_controller(controller)})
        self._broker = Node(folder / "broker", broker)
        start_anew(self._controller, self._broker)

    def _wait_until_it_answers(self) -> None:
        self._node.wait_until_it_answers(self.bootstrap)

    def _end(self) -> None:
        for node in (self._broker, self._controller):
            if node is not None:
                node.end(signal.SIGKILL)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
