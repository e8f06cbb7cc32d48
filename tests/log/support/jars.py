"""Jars, those of Apache Kafka 4.3.1 or of another list, fetched once into the user's cache and checked against it.

A jar stands in the folder under its final name only when whole and of the listed SHA-256.
"""

import contextlib
import fcntl
import hashlib
import io
import os
import tempfile
import time
from pathlib import Path

from maven_artifact.artifact import Artifact
from maven_artifact.downloader import Downloader

LISTED = Path(__file__).with_name("jars.txt")
ATTEMPTS = 4


def folder(listed: Path = LISTED, name: str = "kafka-4.3.1") -> Path:
    """Return the folder in the cache that holds every listed jar, after fetching what is missing.

    A list has a jar a line: Maven's coordinates and the SHA-256.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    jars = cache / "mistakebound" / name
    jars.mkdir(parents=True, exist_ok=True)
    with (jars / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test processes that start at once fetch each jar once
        for line in listed.read_text().splitlines():
            coordinates, sha256 = line.split()
            _, artifact, version = coordinates.split(":")
            jar = jars / f"{artifact}-{version}.jar"
            if not (jar.exists() and _sha256(jar) == sha256):
                fetch(coordinates, sha256, jar)
    return jars


def _sha256(jar: Path) -> str:
    return hashlib.sha256(jar.read_bytes()).hexdigest()


def fetch(coordinates: str, sha256: str, jar: Path) -> None:
    """Put what Maven Central has under these coordinates at `jar`, once it is whole. Raises RuntimeError where that fails."""
    problem = ""
    for attempt in range(ATTEMPTS):
        with tempfile.TemporaryDirectory(dir=jar.parent) as scratch:
            fetched = Path(scratch) / jar.name
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    Downloader().download(Artifact.parse(coordinates), filename=str(fetched))
            except Exception as error:  # noqa: BLE001  # whatever the network does: once more, then reported
                problem = str(error)
                time.sleep(attempt)
                continue
            found = _sha256(fetched)
            if found == sha256:
                fetched.replace(jar)
                return
            problem = f"its SHA-256 is {found}, the list says {sha256}"
    raise RuntimeError(
        f"cannot fetch {coordinates}: {problem}. Allow access to Maven Central; the broker of the tests is "
        "not needed where MISTAKEBOUND_TEST_BOOTSTRAP (host:port) names another"
    )
