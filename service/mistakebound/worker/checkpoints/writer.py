"""One checkpoint at a time, written in a thread of its own: a slow store must not hold up a step."""

import threading
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from mistakebound.worker.checkpoints.catalog import Catalog
from mistakebound.worker.checkpoints.store import CheckpointError


class Written(NamedTuple):
    """How a write ended."""

    error: CheckpointError | None
    bytes: int
    duration_s: float
    at_s: float
    """Unix time."""


class CheckpointWriter:
    """A write that has begun. A process that ends takes the thread with it; the store then holds no part of it."""

    def __init__(self, catalog: Catalog, payload: bytes, summary: Mapping[str, Any]) -> None:
        self._ended: Written | BaseException | None = None
        self._thread = threading.Thread(
            target=self._write, args=(catalog, payload, summary), name="checkpoint", daemon=True
        )
        self._thread.start()

    def wait_for_end(self, wait_s: float) -> Written | None:
        """How it ended, waited for at most so long; None while it has not."""
        self._thread.join(wait_s)
        if self._thread.is_alive():
            return None
        if isinstance(self._ended, BaseException):
            raise self._ended
        return self._ended

    def _write(self, catalog: Catalog, payload: bytes, summary: Mapping[str, Any]) -> None:
        began = time.monotonic()
        error: CheckpointError | None = None
        try:
            catalog.write(payload, summary)
        except CheckpointError as failure:
            error = failure
        except BaseException as bug:  # noqa: BLE001 - raised again by the thread that asks
            self._ended = bug
            return
        self._ended = Written(error, len(payload), time.monotonic() - began, time.time())
