"""What earlier versions wrote, packed in `data`."""

import gzip
from pathlib import Path

DATA = Path(__file__).parents[1] / "data"


def unpacked(name: str) -> bytes:
    """The content of `data/NAME`."""
    return gzip.decompress((DATA / name).read_bytes())


def lay_out(log: str, *checkpoints: str) -> None:
    """In the present folder: the log as `log.db`, and a folder `checkpoints`. The names are those of `data`, with `.gz`."""
    Path("log.db").write_bytes(unpacked(log))
    if checkpoints:
        Path("checkpoints").mkdir()
    for name in checkpoints:
        Path("checkpoints", name.removesuffix(".gz")).write_bytes(unpacked(name))
