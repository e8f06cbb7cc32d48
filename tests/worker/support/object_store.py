"""A real object store that speaks S3, started here: SeaweedFS, whose program a wheel carries."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import obstore
import trustme
from obstore.store import S3Store

ACCESS, SECRET = "mistakebound-tests", "not-to-be-seen-anywhere"
BUCKET = "checkpoints"
START_S, STOP_S = 60.0, 20.0
PORTS = ("master.port", "volume.port", "filer.port", "s3.port", "admin.port")


class ObjectStore(NamedTuple):
    """A running store with an empty bucket."""

    endpoint: str
    encrypted: str
    """The same over TLS."""
    authority: Path
    """Who signed its certificate."""

    @property
    def environment(self) -> dict[str, str]:
        """What a worker must find in its environment to use it."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": ACCESS,
            "AWS_SECRET_ACCESS_KEY": SECRET,
        }

    def client(self) -> S3Store:
        """The test's own view of the bucket."""
        return S3Store(
            BUCKET,
            endpoint=self.endpoint,
            access_key_id=ACCESS,
            secret_access_key=SECRET,
            region="us-east-1",
            client_options={"allow_http": True, "timeout": "5s"},
            retry_config={"max_retries": 0},
        )


@contextmanager
def running(folder: Path) -> Iterator[ObjectStore]:
    """A store that keeps its data in `folder`, on free ports of 127.0.0.1."""
    (folder / "data").mkdir(parents=True)
    *ports, encrypted = free_ports(2 * len(PORTS) + 1)
    authority = _certified(folder)
    arguments = [f"-{name}={port}" for name, port in zip(PORTS, ports, strict=False)]
    arguments += [f"-{name}.grpc={port}" for name, port in zip(PORTS, ports[len(PORTS) :], strict=True)]
    command = [
        Path(sys.executable).with_name("weed"),
        *("mini", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={folder / 'data'}", f"-bucket={BUCKET}"),
        *(
            f"-s3.port.https={encrypted}",
            f"-s3.cert.file={folder / 'cert'}",
            f"-s3.key.file={folder / 'key'}",
        ),
        *("-s3.port.iceberg=0", "-s3.port.lance=0", "-webdav=false", "-admin.ui=false", *arguments),
    ]
    quiet = {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET}
    plain = f"http://127.0.0.1:{ports[PORTS.index('s3.port')]}"
    store = ObjectStore(plain, f"https://127.0.0.1:{encrypted}", authority)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **quiet}
        )
        try:
            _wait(process, store, folder / "log")
            yield store
        finally:
            process.kill()  # nothing in it is worth an orderly end
            process.wait(STOP_S)


@contextmanager
def silence() -> Iterator[str]:
    """The endpoint of a store that takes every connection and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def free_ports(count: int) -> list[int]:
    """Ports that nobody had a moment ago."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return found


def _certified(folder: Path) -> Path:
    """A key and a certificate in the folder, and beside them that of who signed it."""
    authority = trustme.CA()
    own = authority.issue_cert("127.0.0.1")
    own.private_key_pem.write_to_path(folder / "key")
    own.cert_chain_pems[0].write_to_path(folder / "cert")
    authority.cert_pem.write_to_path(folder / "authority")
    return folder / "authority"


def _wait(process: subprocess.Popen[bytes], object_store: ObjectStore, log: Path) -> None:
    """Until something can be put."""
    deadline = time.monotonic() + START_S
    while True:
        try:
            obstore.put(object_store.client(), "probe", b"x")
            obstore.delete(object_store.client(), "probe")
        except Exception as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the object store did not start: {log.read_text()[-4000:]}") from error
            time.sleep(0.05)
        else:
            return
