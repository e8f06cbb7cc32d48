"""What a worker that lives for weeks asks of those who keep its memory: Python's collector of cycles, and the C library."""

import ctypes
import gc
import os

from mistakebound.worker.events import Event, Revoked, StateDropped

_MMAP_THRESHOLD, _ARENA_MAX = -3, -8
"""glibc's M_MMAP_THRESHOLD and M_ARENA_MAX."""
ASKED = ((_ARENA_MAX, 2, "MALLOC_ARENA_MAX"), (_MMAP_THRESHOLD, 128 * 1024, "MALLOC_MMAP_THRESHOLD_"))
"""Parameters of the C library, their values, and the variables by which the environment asks for others."""


def keep_heaps_small() -> None:
    """Have all threads share two heaps, and keep blocks of 128 KiB and more out of them, where the C library is glibc
    and the environment does not say otherwise.

    Call it before there are threads. By itself glibc makes a heap for each thread, up to eight for each core. A client's
    threads come and go, and what they leave lies scattered over all of them: on librdkafka memory grew by 4 MB an hour
    though nothing was held longer. And by itself it takes blocks from a heap that are as large as any that was ever
    freed. What is fetched at each takeover leaves holes there, which small blocks break up: on kafka-python memory grew
    by 2 MB an hour. Neither costs time that could be measured.
    """
    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version"):
        return
    for parameter, value, variable in ASKED:
        if variable not in os.environ:
            library.mallopt(parameter, value)


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
