"""Vowpal Wabbit on a file of its own JSON lines, without a broker: `python -m ...contenders.vowpal FILE`.

Twice, with the same loss: the file parsed by its own native code, which is its fastest; and row by row
from Python, predicting before learning, each line parsed by it. Prints CPU seconds and mistakes of both;
the time to start up on no data is subtracted from the first.
"""

import json
import sys
import time
from pathlib import Path
from tempfile import NamedTemporaryFile

from vowpalwabbit import Workspace

OPTIONS = "--quiet --loss_function hinge --binary"


def main(path: Path) -> None:
    with NamedTemporaryFile() as empty:
        started, _ = whole_file(empty.name)
    native, mistakes = whole_file(str(path))
    rows, row_mistakes = row_by_row(path)
    found = {"native": (native - started, mistakes), "rows": (rows, row_mistakes)}
    print(json.dumps(found))


def whole_file(path: str) -> tuple[float, int]:
    began = time.process_time()
    model = Workspace(f"{OPTIONS} --json --no_stdin --data {path}")
    spent = time.process_time() - began
    mistakes = round(model.get_sum_loss())
    model.finish()
    return spent, mistakes


def row_by_row(path: Path) -> tuple[float, int]:
    lines = path.read_text().splitlines()
    model = Workspace(f"{OPTIONS} --json")
    mistakes, began = 0, time.process_time()
    for line in lines:
        example = model.parse(line)
        mistakes += model.predict(example) != example.get_simplelabel_label()
        model.learn(example)
        model.finish_example(example)
    spent = time.process_time() - began
    model.finish()
    return spent, mistakes


if __name__ == "__main__":
    main(Path(sys.argv[1]))
