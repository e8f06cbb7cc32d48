"""What the C library is asked for, each time in a process of its own, with heaps of its own."""

import ctypes
import os
import subprocess
import sys

import pytest

from tests.support.project import python_path

pytestmark = pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"), reason="not on glibc")
THREADS = 8
SHARING = f"""
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
TAKING_OVER = """
import ctypes
from pathlib import Path
from mistakebound.worker.events import Assigned
from mistakebound.worker.memory import give_back

library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p

def resident_kib():
    return int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0])

blocks = [ctypes.c_void_p(library.malloc(100_000)) for _ in range(1_000)]
[ctypes.memset(each, 1, 100_000) for each in blocks]
[library.free(each) for each in blocks[:-1]]  # what lies highest stays, and all beneath it with it
before = resident_kib()
give_back(Assigned(epoch=1, totals={}))
print(before - resident_kib())
"""


def printed(program: str, **asked: str) -> str:
    """What a process with this program prints, where the environment asks for no more than this."""
    there = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=there | {"PYTHONPATH": python_path()} | asked,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(("asked", "heaps"), [({}, 2), ({"MALLOC_ARENA_MAX": "5"}, 5)])
def test_all_threads_share_two_heaps_unless_the_user_asks_for_more(asked: dict[str, str], heaps: int) -> None:
    """However many threads allocate at the same time."""
    assert int(printed(SHARING, **asked)) == heaps


def test_what_a_takeover_left_free_goes_back_to_the_machine() -> None:
    """Of the 98,000 KiB that were freed nearly all; by itself glibc would keep them."""
    assert int(printed(TAKING_OVER)) > 90_000
