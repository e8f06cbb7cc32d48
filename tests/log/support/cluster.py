"""A real cluster for tests: three brokers and a controller, each a child process, with small heaps."""

import signal
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.log.support.node import PROPERTIES, Node, as_broker, as_controller, free_ports, start_anew, voters

REPLICATED = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}
"""Of a cluster of three, beside or instead of the above."""


class Cluster:
    """Three brokers and their controller; every topic has three replicas, of which two must be in step."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._nodes: dict[int, Node] = {}
        self._ports: dict[int, int] = {}
        self._controller: Node | None = None

    @property
    def numbers(self) -> tuple[int, ...]:
        """Their ids."""
        return tuple(self._nodes)

    @property
    def bootstrap(self) -> str:
        """Addresses of all three, divided by commas."""
        return ",".join(f"127.0.0.1:{port}" for port in self._ports.values())

    def start(self, *numbers: int) -> None:
        """Start these brokers again; they answer when it returns, and follow a little later."""
        for number in numbers:
            self._nodes[number].start()
        for number in numbers:
            self._nodes[number].wait_until_it_answers(f"127.0.0.1:{self._ports[number]}")

    def stop(self, number: int) -> None:
        """End one cleanly (SIGTERM): it hands its leaderships over first."""
        self._nodes[number].end(signal.SIGTERM)

    def kill(self, number: int) -> None:
        """End one at once (SIGKILL); what it led has other leaders once the controller has noticed."""
        self._nodes[number].end(signal.SIGKILL)

    def __enter__(self) -> Self:
        controller, *ports = free_ports(4)
        self._ports = dict(zip((1, 2, 3), ports, strict=True))
        common = {**PROPERTIES, **REPLICATED, **voters(controller)}
        self._controller = Node(
            self._folder / "controller", {**common, **as_controller(controller)}, heap="128m"
        )
        for number, port in self._ports.items():
            self._nodes[number] = Node(
                self._folder / str(number), {**common, **as_broker(number, port)}, heap="256m"
            )
        try:
            start_anew(self._controller, *self._nodes.values())
            for number, port in self._ports.items():
                self._nodes[number].wait_until_it_answers(f"127.0.0.1:{port}")
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        for node in (*self._nodes.values(), self._controller):
            if node is not None:
                node.end(signal.SIGKILL)
