"""What a worker that lives for weeks asks of those who keep its memory: Python's collector of cycles, and the C library."""

import ctypes
import gc
import os

from mistakebound.worker.events import Assigned, Event, Revoked, StateDropped

HEAPS = 2
_ARENA_MAX = -8
"""glibc's M_ARENA_MAX."""
_LIBRARY = ctypes.CDLL(None)
_IS_GLIBC = hasattr(_LIBRARY, "gnu_get_libc_version")


def share_heaps() -> None:
    """Have all threads share two heaps, where the C library is glibc and MALLOC_ARENA_MAX does not say otherwise.

    Call it before there are threads. By itself glibc makes a heap for each thread, up to eight for each core. A client's
    threads come and go, and what they leave lies scattered over all of them: on librdkafka memory grew by 4 MB an hour
    though nothing was held longer. It costs no time that could be measured.
    """
    if _IS_GLIBC and "MALLOC_ARENA_MAX" not in os.environ:
        _LIBRARY.mallopt(_ARENA_MAX, HEAPS)


def spare_the_collector() -> None:
    """What is there by now stays, and steps make no cycles: the collector of cycles need not look at much, nor often.

    By itself it looks after every 700 new objects (since Python 3.13: 2,000), amid steps of thousands of records: on 3.11 6 %
    of a worker's time (compiled, kafka-python, on a backlog).
    """
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


def give_back(event: Event) -> None:
    """Give back what takeovers use.

    When one begins: a client that has failed, and what it notes of a rebalance, are cycles, which hold sockets and memory
    until the collector comes, and by itself it comes seldom.

    When it is over: glibc keeps the holes that large blocks leave in its heaps, and small ones break them up, so that on
    kafka-python memory grew by up to 4 MB an hour. (To map all large blocks, as MALLOC_MMAP_THRESHOLD_ can have it, keeps
    memory as flat, but costs 8 to 15 % of the time that a backlog takes.)
    """
    if isinstance(event, (StateDropped, Revoked)):
        gc.collect()
    elif isinstance(event, Assigned) and _IS_GLIBC:
        _LIBRARY.malloc_trim(0)
