"""One checkpoint at a time, written in a thread of its own: a slow store must not hold up a step."""

import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple

from mistakebound.worker.checkpoints.catalog import Catalog


class Written(NamedTuple):
    """A checkpoint that became durable."""

    bytes: int
    duration_s: float
    at_s: float
    """Unix time."""


def begin_write(catalog: Catalog, payload: bytes, summary: Mapping[str, Any]) -> Future[Written]:
    """Begin to write; the result, or what was raised, comes later.

    A process that ends takes the thread with it; the store then holds no part of the checkpoint.
    """
    writing: Future[Written] = Future()

    def write() -> None:
        began_s = time.monotonic()
        try:
            catalog.write(payload, summary)
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that asks
            writing.set_exception(error)
        else:
            writing.set_result(Written(len(payload), time.monotonic() - began_s, time.time()))

    threading.Thread(target=write, name="checkpoint", daemon=True).start()
    return writing
