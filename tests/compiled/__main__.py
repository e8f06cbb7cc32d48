"""`python -m tests.compiled FOLDER`: a checkout with compiled modules."""

import argparse
from pathlib import Path

from tests import compiled


def main() -> None:
    """Make it, and say what to do with it."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.compiled",
        description=compiled.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, help="one that does not exist yet")
    folder: Path = parser.parse_args().folder.absolute()
    if folder.exists():
        parser.error(f"{folder} exists; name a folder that does not")
    compiled.checkout(folder)
    print(
        f"{len(compiled.named())} modules are compiled; for instance: cd {folder} && python -m tests.faults B1 --short"
    )


main()
