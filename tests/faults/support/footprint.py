"""The resources that a process uses, as the kernel counts them (Linux)."""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import NamedTuple


class Footprint(NamedTuple):
    """Of one process at one moment."""

    rss_kib: int
    files: int
    """Open file descriptors, sockets included."""
    threads: int


def footprint(pid: int) -> Footprint:
    process = Path("/proc") / str(pid)
    told = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    files = len(list((process / "fd").iterdir()))
    return Footprint(int(told["VmRSS"].split()[0]), files, int(told["Threads"]))


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The rise for each unit of the first coordinate: the median of the slopes between any two points (Theil and Sen).

    A heap grows in steps of some 300 KiB, of which the last come late. One of them within a quarter of an hour can lift
    the least-squares line by 2 MiB an hour. It moves this median less, and not at all unless it comes amid the time;
    what goes on growing moves both in full.
    """
    return median((y - b) / (x - a) for (a, b), (x, y) in combinations(points, 2))
