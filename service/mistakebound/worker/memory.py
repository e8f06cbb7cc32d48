"""What a worker that lives for weeks asks of those who keep its memory: Python's collector of cycles, and the C library."""

import ctypes
import gc
import os

from mistakebound.worker.events import Event, Revoked, StateDropped

HEAPS = 2
_ARENA_MAX = -8
"""glibc's M_ARENA_MAX."""


def share_heaps() -> None:
    """Have all threads share two heaps, where the C library is glibc and MALLOC_ARENA_MAX does not say otherwise.

    Call it before there are threads. By itself glibc makes a heap for each thread, up to eight for each core. A client's
    threads come and go, and what they leave lies scattered over all of them: on librdkafka memory grew by 4 MB an hour
    though nothing was held longer. It costs no time that could be measured.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "gnu_get_libc_version") and "MALLOC_ARENA_MAX" not in os.environ:
        library.mallopt(_ARENA_MAX, HEAPS)


def spare_the_collector() -> None:
    """What is there by now stays, and steps make no cycles: the collector of cycles need not look at much, nor often.

    By default it looks after every 700 new objects, amid steps of thousands of records: 6 % of a worker's time
    (compiled, kafka-python, on a backlog).
    """
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


def collect(event: Event) -> None:
    """Clients that failed, and what they say of each rebalance, are cycles, which hold sockets and memory; the collector
    by itself comes seldom."""
    if isinstance(event, (StateDropped, Revoked)):
        gc.collect()
