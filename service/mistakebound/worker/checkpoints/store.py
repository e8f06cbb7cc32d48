"""Where checkpoints are kept: a folder or an object store, named by one URL.

A path or `file:///path` is a folder (`local.py`), `s3://bucket/prefix` an object store that speaks S3
(`s3.py`). `tests/worker/checkpoints/test_stores.py` checks on each what `CheckpointStore` promises.
"""

from typing import NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

FORMS = "a folder's path, file:///path or s3://bucket/prefix"
SUFFIX, REJECTED = ".checkpoint", ".rejected"


class CheckpointError(Exception):
    """The store cannot be used, or did not answer in time. The text names it and the remedy."""


class CheckpointStore(Protocol):
    """A flat set of names with their bytes. Methods may be called from several threads.

    1. The bytes under a name are whole, and durable when `create` returns.
    2. A name is created once: the second to try gets an error, on whichever process or machine.
    3. Each call ends: when the file system answers, or within the timeout of an object store.

    All raise CheckpointError when the store itself is at fault.
    """

    def prepare(self) -> None:
        """Make the store ready before the work begins."""

    def probe(self) -> None:
        """Write something and delete it again."""

    def names(self) -> list[str]:
        """All names that end in `.checkpoint`, sorted; empty where the folder or prefix does not exist yet."""

    def beginning(self, name: str, length: int) -> bytes:
        """At most the first `length` bytes. Raises FileNotFoundError, or OSError for this name alone."""

    def read(self, name: str) -> tuple[bytes, float]:
        """All bytes, and when they were written (Unix, s). Raises as `beginning`."""

    def size(self, name: str) -> int:
        """Bytes under the name. Raises as `beginning`."""

    def create(self, name: str, head: bytes, payload: bytes) -> None:
        """Write both, one after the other, under a new name. Raises FileExistsError where it is taken."""

    def delete(self, name: str) -> None:
        """Delete a name; a missing one is no error."""

    def rename(self, name: str, to: str) -> None:
        """Rename. Raises FileNotFoundError, or OSError for this name alone."""

    def sweep(self) -> None:
        """Delete what writers left half-written when they died."""

    def where(self, name: str = "") -> str:
        """The store, or a name in it, as a path or URL for people."""


class Place(NamedTuple):
    """A checkpoint URL taken apart: a bucket and the prefix in it, or no bucket and a path."""

    bucket: str | None
    path: str


def place_of(url: str) -> Place:
    """Raises ValueError, saying what is wrong with the URL."""
    if "://" not in url:
        return Place(None, url)
    parts = urlsplit(url)
    if parts.query or parts.fragment:
        raise ValueError("a checkpoint URL has no query and no fragment")
    if "@" in parts.netloc:
        raise ValueError("credentials do not belong in the URL")
    match parts.scheme:
        case "file" if parts.netloc in ("", "localhost") and parts.path:
            return Place(None, unquote(parts.path))
        case "file":
            raise ValueError("a file URL has three slashes and an absolute path")
        case "s3" if parts.netloc:
            return Place(parts.netloc, parts.path.strip("/"))
        case "s3":
            raise ValueError("the bucket is missing")
    raise ValueError(f"checkpoints cannot be kept at {parts.scheme}://")


def split(text: str) -> tuple[str, str]:
    """A checkpoint's path or URL as the store's URL and the name in it."""
    place, slash, name = text.rpartition("/")
    return (place or "/", name) if slash else (".", name)
