"""Checkpoints in an object store that speaks S3. The only importer of obstore.

A put is whole or not there, and is made only where the name is free. Each call ends within its time: no
attempt begins in the last two thirds of it, and none takes longer than these. Credentials, region and
endpoint come from the environment (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL` ..., or the role of the instance
or pod), and are never shown.
"""

import os
import uuid
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, GenericError
from obstore.store import S3Store

from mistakebound.worker.checkpoints.store import SUFFIX, CheckpointError

CONNECT_S = 5.0
RETRIES = 2
PANIC = "PanicException"
"""What obstore raises, and declares nowhere, where an endpoint or a region makes no URL. It is no Exception."""
MOST_CHARACTERS = 300
"""Of the library's message."""

_T = TypeVar("_T")


class S3CheckpointStore:
    """A `CheckpointStore`. The bucket itself must exist."""

    def __init__(self, bucket: str, prefix: str, timeout_s: float) -> None:
        self._bucket, self._prefix, self._timeout_s = bucket, prefix, timeout_s
        self._made: S3Store | None = None

    def prepare(self) -> None:
        """Only see that the environment configures a store: it may be away, and the first call that needs it finds out."""
        self._store()

    def probe(self) -> None:
        name = f".{uuid.uuid4().hex}.tmp"
        self.create(name, b"", b"")
        self.delete(name)

    def names(self) -> list[str]:
        found = self._ask(lambda: obstore.list_with_delimiter(self._store(), self._prefix or None))
        names = [each["path"].rpartition("/")[2] for each in found["objects"]]
        return sorted(name for name in names if name.endswith(SUFFIX))

    def beginning(self, name: str, length: int) -> bytes:
        def get() -> bytes:
            try:
                return bytes(obstore.get_range(self._store(), self._key(name), start=0, length=length))
            except GenericError as error:
                if "416" in str(error):  # an empty object has no first byte
                    return b""
                raise

        return self._ask(get)

    def read(self, name: str) -> tuple[bytes, float]:
        def get() -> tuple[bytes, float]:
            result = obstore.get(self._store(), self._key(name))
            return bytes(result.bytes()), result.meta["last_modified"].timestamp()

        return self._ask(get)

    def size(self, name: str) -> int:
        return self._ask(lambda: obstore.head(self._store(), self._key(name)))["size"]

    def create(self, name: str, head: bytes, payload: bytes) -> None:
        self._ask(lambda: obstore.put(self._store(), self._key(name), head + payload, mode="create"))

    def delete(self, name: str) -> None:
        self._ask(lambda: obstore.delete(self._store(), self._key(name)))

    def rename(self, name: str, to: str) -> None:
        self._ask(lambda: obstore.rename(self._store(), self._key(name), self._key(to)))

    def sweep(self) -> None:
        """Nothing: a put that was cut off leaves nothing behind."""

    def where(self, name: str = "") -> str:
        return f"s3://{self._bucket}/{self._key(name)}"

    def _store(self) -> S3Store:
        """Made when it is first needed: a set-up that is wrong is told then, as a store that is away."""
        if self._made is None:
            try:
                self._made = S3Store(
                    self._bucket,
                    client_options={
                        "allow_http": _unencrypted(os.environ),
                        "timeout": timedelta(seconds=self._timeout_s * 2 / 3),
                        "connect_timeout": timedelta(seconds=min(CONNECT_S, self._timeout_s)),
                    },
                    retry_config={
                        "max_retries": RETRIES,
                        "retry_timeout": timedelta(seconds=self._timeout_s / 3),
                    },
                )
            except (BaseError, ValueError) as error:
                raise self._unusable(_first_line(error)) from None
        return self._made

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    def _ask(self, call: Callable[[], _T]) -> _T:
        try:
            return call()
        except FileNotFoundError as error:
            raise FileNotFoundError(_first_line(error)) from None
        except AlreadyExistsError as error:
            raise FileExistsError(_first_line(error)) from None
        except BaseError as error:
            raise self._unusable(_first_line(error)) from None
        except BaseException as error:
            if type(error).__name__ != PANIC:
                raise
            raise self._unusable(_first_line(error)) from None

    def _unusable(self, reason: str) -> CheckpointError:
        return CheckpointError(
            f"checkpoint.url: cannot use {self.where()} in {self._timeout_s:g} s (checkpoint.timeout): {reason}; see that the bucket exists, that "
            "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL are its own and allow to "
            "list, get, put and delete, or set another with --set checkpoint.url=URL (empty for none)"
        )


def _unencrypted(environment: Mapping[str, str]) -> bool:
    """Whether the endpoint's own scheme asks for it."""
    return any(
        name.startswith("AWS_ENDPOINT") and url.startswith("http://") for name, url in environment.items()
    )


def _first_line(error: BaseException) -> str:
    """The first line of what the library says. The rest repeats it for programmers, or is the store's page."""
    return str(error).split("\n", 1)[0].split(": <", 1)[0][:MOST_CHARACTERS].rstrip()
