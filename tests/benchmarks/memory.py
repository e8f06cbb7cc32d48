"""How much memory a process holds."""

from pathlib import Path


def resident_bytes(pid: int) -> int:
    """Resident set of a process, as the kernel tells it."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


def most_waiting_bytes(record_bytes: float) -> float:
    """The goal: bytes that one waiting example may take, from those of its record."""
    return 1.5 * record_bytes + 200
