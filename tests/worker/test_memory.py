"""What the C library is asked for, in a process of its own: it decides once."""

import ctypes
import os
import re
import subprocess
import sys

import pytest

from mistakebound.worker.memory import ASKED
from tests.support.project import python_path

pytestmark = pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"), reason="not on glibc")
THREADS = 8
PROGRAM = f"""
import ctypes, tempfile, threading
from mistakebound.worker.memory import keep_heaps_small

keep_heaps_small()
library, together = ctypes.CDLL(None), threading.Barrier({THREADS})
library.malloc.restype = library.fopen.restype = ctypes.c_void_p

def allocate():
    together.wait()
    library.malloc(1_000)
    together.wait()

def told():
    with tempfile.NamedTemporaryFile() as file:
        stream = ctypes.c_void_p(library.fopen(file.name.encode(), b"w"))
        library.malloc_info(0, stream)
        library.fclose(stream)
        return file.read().decode()

threads = [threading.Thread(target=allocate) for _ in range({THREADS})]
[each.start() for each in threads]
[each.join() for each in threads]
library.free(ctypes.c_void_p(library.malloc(4_000_000)))
before = told()
library.malloc(1_000_000)
print(before, "=== and with one large block more", told())
"""


def info(**asked: str) -> tuple[str, str]:
    """`malloc_info` after threads have come and a large block has gone, and after one more of these was taken."""
    variables = [variable for _, _, variable in ASKED]
    there = {name: value for name, value in os.environ.items() if name not in variables}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=there | {"PYTHONPATH": python_path()} | asked,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    before, after = done.stdout.split("===")
    return before, after


@pytest.mark.parametrize(("asked", "heaps"), [({}, 2), ({"MALLOC_ARENA_MAX": "5"}, 5)])
def test_all_threads_share_two_heaps_unless_the_user_asks_for_more(asked: dict[str, str], heaps: int) -> None:
    """However many threads allocate at the same time."""
    before, _ = info(**asked)

    assert before.count("<heap nr=") == heaps


@pytest.mark.parametrize(("asked", "mapped"), [({}, 1), ({"MALLOC_MMAP_THRESHOLD_": "2000000"}, 0)])
def test_large_blocks_stay_out_of_the_heaps_unless_the_user_wants_them_there(
    asked: dict[str, str], mapped: int
) -> None:
    """Also after a larger one was freed, from which glibc by itself would conclude that they come often."""
    before, after = (re.search('<total type="mmap" count="([0-9]+)"', each) for each in info(**asked))

    assert before and after
    assert int(after[1]) - int(before[1]) == mapped
