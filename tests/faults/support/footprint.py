"""The resources that a process uses, as the kernel counts them (Linux)."""

from collections.abc import Sequence
from pathlib import Path
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
    """The least-squares line's rise for each unit of the first coordinate."""
    count = len(points)
    middle_x, middle_y = (sum(each[axis] for each in points) / count for axis in (0, 1))
    spread = sum((x - middle_x) ** 2 for x, _ in points)
    return sum((x - middle_x) * (y - middle_y) for x, y in points) / spread
