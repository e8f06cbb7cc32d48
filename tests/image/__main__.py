"""The base image of these tests, made in a folder ahead of them; or why no container can be made here.

python -m tests.image prepare FOLDER
python -m tests.image remove FOLDER
"""

import sys
from pathlib import Path

from tests.image.engine import Engine, Unavailable


def main(what: str, folder: str) -> int:
    """Exit code 1 where containers are not to be had."""
    try:
        engine = Engine(Path(folder))
        if what == "prepare":
            engine.prepare()
        else:
            engine.close()
    except Unavailable as reason:
        print(f"no container can be made on this machine: {reason}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
