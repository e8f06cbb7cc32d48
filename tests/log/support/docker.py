"""The same broker from its official image, where a Docker engine answers."""

import contextlib
import os
import socket
from collections.abc import Iterator

from tests.log.support.broker import PROPERTIES, START_S, free_ports, reaches

IMAGE = "apache/kafka:4.3.1"


def answers() -> bool:
    """Whether a Docker engine answers within two seconds."""
    import docker

    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if host.startswith("unix://") and not _listens(host.removeprefix("unix://")):
        return False
    client = docker.DockerClient(base_url=host, timeout=2)
    try:
        return bool(client.ping())
    except (docker.errors.DockerException, OSError):
        return False
    finally:
        client.close()


def _listens(path: str) -> bool:
    # Asked first, since Docker's client leaves its socket open when nobody listens.
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except OSError:
            return False
    return True


@contextlib.contextmanager
def broker() -> Iterator[str]:
    """Run the image until the block ends; yields `127.0.0.1:port`."""
    from testcontainers.core.container import DockerContainer

    # The port is chosen before the start: the broker must advertise it.
    (port,) = free_ports(1)
    container = DockerContainer(IMAGE).with_bind_ports(9092, port)
    ends = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": "1@localhost:9093",
        "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
    }
    for name, value in (PROPERTIES | ends).items():
        container = container.with_env("KAFKA_" + name.upper().replace(".", "_"), value)
    with container:
        bootstrap = f"127.0.0.1:{port}"
        if not reaches(bootstrap, START_S):
            raise RuntimeError(f"{IMAGE} does not answer at {bootstrap}:\n{container.get_logs()}")
        yield bootstrap
