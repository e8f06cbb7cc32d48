"""Checkpoints in an object store that speaks S3. The only importer of obstore.

A put is whole or not there, and is made only where the name is free. Each call is given up after its time,
however often and slowly the store answers. Credentials, region and endpoint come from the environment
(`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL` ..., or the instance's or pod's role) and are never shown.
"""

import asyncio
import os
import uuid
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, GenericError
from obstore.store import S3Store

from service.worker.shelves import SUFFIX, CheckpointError

CONNECT_S = 5.0
RETRIES = 2
MOST_TOLD = 300

_T = TypeVar("_T")


class Bucket:
    """A `Shelf`. The bucket itself must exist."""

    def __init__(self, bucket: str, prefix: str, timeout_s: float) -> None:
        """Nothing is asked of the store. Raises CheckpointError where the environment is no configuration."""
        self._bucket, self._prefix, self._timeout_s = bucket, prefix, timeout_s
        try:
            self._store = S3Store(
                bucket,
                client_options={
                    "allow_http": _unencrypted(os.environ),
                    "timeout": timedelta(seconds=timeout_s),
                    "connect_timeout": timedelta(seconds=min(CONNECT_S, timeout_s)),
                },
                retry_config={"max_retries": RETRIES, "retry_timeout": timedelta(seconds=timeout_s)},
            )
        except (BaseError, ValueError) as error:
            raise self._unusable(_told(error)) from None

    def prepare(self) -> None:
        """A store may be away when the work begins: the first call that needs it tells."""

    def probe(self) -> None:
        name = f".{uuid.uuid4().hex}.tmp"
        self.create(name, b"", b"")
        self.delete(name)

    def names(self) -> list[str]:
        found = self._wait(lambda: obstore.list_with_delimiter_async(self._store, self._prefix or None))
        names = [each["path"].rpartition("/")[2] for each in found["objects"]]
        return sorted(name for name in names if name.endswith(SUFFIX))

    def beginning(self, name: str, length: int) -> bytes:
        async def get() -> bytes:
            try:
                found = await obstore.get_range_async(self._store, self._key(name), start=0, length=length)
            except GenericError as error:
                if "416" in str(error):  # an empty object has no first byte
                    return b""
                raise
            return bytes(found)

        return self._wait(get)

    def read(self, name: str) -> tuple[bytes, float]:
        async def get() -> tuple[bytes, float]:
            result = await obstore.get_async(self._store, self._key(name))
            return bytes(await result.bytes_async()), result.meta["last_modified"].timestamp()

        return self._wait(get)

    def size(self, name: str) -> int:
        return self._wait(lambda: obstore.head_async(self._store, self._key(name)))["size"]

    def create(self, name: str, head: bytes, payload: bytes) -> None:
        content = head + payload
        self._wait(lambda: obstore.put_async(self._store, self._key(name), content, mode="create"))

    def delete(self, name: str) -> None:
        self._wait(lambda: obstore.delete_async(self._store, self._key(name)))

    def rename(self, name: str, to: str) -> None:
        self._wait(lambda: obstore.rename_async(self._store, self._key(name), self._key(to)))

    def sweep(self) -> None:
        """A put that was cut off is nowhere."""

    def where(self, name: str = "") -> str:
        return f"s3://{self._bucket}/{self._key(name)}"

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    def _wait(self, call: Callable[[], Awaitable[_T]]) -> _T:
        async def bounded() -> _T:
            async with asyncio.timeout(self._timeout_s):
                return await call()

        try:
            return asyncio.run(bounded())
        except FileNotFoundError as error:
            raise FileNotFoundError(_told(error)) from None
        except AlreadyExistsError as error:
            raise FileExistsError(_told(error)) from None
        except TimeoutError:
            raise self._unusable(f"no answer within checkpoint.timeout, {self._timeout_s:g} s") from None
        except BaseError as error:
            raise self._unusable(_told(error)) from None

    def _unusable(self, reason: str) -> CheckpointError:
        return CheckpointError(
            f"checkpoint.url: cannot use {self.where()}: {reason}; see that the bucket exists, that "
            "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL are its own and allow to "
            "list, get, put and delete, or set another with --set checkpoint.url=URL (empty for none)"
        )


def _unencrypted(environment: Mapping[str, str]) -> bool:
    """Whether the endpoint that is set asks for it by its own scheme."""
    return any(
        name.startswith("AWS_ENDPOINT") and url.startswith("http://") for name, url in environment.items()
    )


def _told(error: Exception) -> str:
    """The first line of what the library says. The rest repeats it for programmers, or is the store's page."""
    text: Any = str(error).split("\n", 1)[0]
    return str(text).split(": <", 1)[0][:MOST_TOLD].rstrip()
