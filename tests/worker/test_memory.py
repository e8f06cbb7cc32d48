"""What the C library is asked for, in a process of its own: it decides once."""

import ctypes
import os
import subprocess
import sys

import pytest

from tests.support.project import python_path

THREADS = 8
PROGRAM = f"""
import ctypes, tempfile, threading
from mistakebound.worker.memory import share_heaps

share_heaps()
library, together = ctypes.CDLL(None), threading.Barrier({THREADS})
library.malloc.restype = ctypes.c_void_p

def allocate():
    together.wait()
    library.malloc(1_000)
    together.wait()

threads = [threading.Thread(target=allocate) for _ in range({THREADS})]
[each.start() for each in threads]
[each.join() for each in threads]
library.fopen.restype = ctypes.c_void_p
with tempfile.NamedTemporaryFile() as file:
    told = ctypes.c_void_p(library.fopen(file.name.encode(), b"w"))
    library.malloc_info(0, told)
    library.fclose(told)
    print(file.read().count(b"<heap nr="))
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"), reason="not on glibc")
@pytest.mark.parametrize(("asked", "heaps"), [({}, 2), ({"MALLOC_ARENA_MAX": "5"}, 5)])
def test_all_threads_share_two_heaps_unless_the_user_asks_for_more(asked: dict[str, str], heaps: int) -> None:
    """However many threads allocate at the same time."""
    there = {name: value for name, value in os.environ.items() if name != "MALLOC_ARENA_MAX"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=there | {"PYTHONPATH": python_path()} | asked,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.stdout.strip(), done.returncode) == (str(heaps), 0), done.stderr
