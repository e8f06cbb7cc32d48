"""A file is read as often as needed, in any order, from disk: its size is not bounded by memory."""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from mistakebound.commands.audit.sources import open_recording
from mistakebound.commands.errors import CommandError
from mistakebound.commands.input_files import LINE_BYTES, Form, open_input_file, spooled
from mistakebound.commands.labelled_files.labelled_file import LabelledFile
from mistakebound.settings import LabelSettings
from tests.commands.support.command_line import ENVIRON, ok

TEXTS: dict[Form, str] = {
    "csv": 'a,text,label\n1,"x\n\ny",1\n\n2,ü,0\r\n3,z,1\n',
    "svmlight": "# head\n+1 1:1\n\n-1 2:2 # ü\r\n+1 3:3\n",
    "jsonl": '\n{"features": [1], "label": true}\n\n{"features": ["ü"], "label": 0}\r\n{"features": [3], "label": 1}',
}


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("form", ["csv", "svmlight", "jsonl"])
def test_rows_are_the_same_one_by_one_as_in_a_row(form: Form, mark: bytes) -> None:
    """By their place, in any order, with the line on which each begins."""
    Path("rows").write_bytes(mark + TEXTS[form].encode())
    with open_input_file("rows") as file:
        rows = LabelledFile(file, form, LabelSettings())
        whole = list(rows)
        assert [rows[place] for place in (2, 0, 1, 2)] == [whole[2], whole[0], whole[1], whole[2]]
        assert len(rows) == len(whole) == 3
        lines = TEXTS[form].split("\n")
        begin = {
            "csv": ("1,", "2,", "3,"),
            "svmlight": ("+1 1", "-1", "+1 3"),
            "jsonl": ('{"features": [1]', '{"features": ["', '{"features": [3]'),
        }
        assert [
            lines[(row.line or 0) - 1].startswith(text) for row, text in zip(whole, begin[form], strict=True)
        ] == [True] * 3


def test_two_readings_of_one_file_do_not_disturb_each_other() -> None:
    """Each knows its own place."""
    Path("rows").write_text("a,label\n" + "".join(f"{n},1\n" for n in range(20_000)))
    with open_input_file("rows") as file:
        rows = LabelledFile(file, "csv", LabelSettings())
        for number, (one, other) in enumerate(zip(rows, rows, strict=True)):
            assert one == other
            assert one.features == {"a": float(number)}


def test_a_line_end_may_fall_between_two_blocks() -> None:
    """Wherever a block ends, CR LF is one line end and CR another."""
    ends = 4_096 + 8_192  # of the second block
    for padding in range(ends - 4, ends + 4):
        Path("rows").write_bytes(b"x" * padding + b"\r\n\r\nb\rc\r")
        with open_input_file("rows") as file:
            assert list(file.lines()) == [b"x" * padding + b"\r\n", b"\r\n", b"b\r", b"c\r"]


@pytest.mark.parametrize("opened", [lambda: spooled([b"a,label"]), lambda: open_recording("day.jsonl")])
def test_where_no_temporary_file_can_be_made_the_remedy_is_named(
    opened: Callable[[], AbstractContextManager[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container whose root is read-only: no bug of ours, but something to set."""

    def none_is_usable() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", none_is_usable)
    with pytest.raises(CommandError, match="TMPDIR names another"), opened():
        pass


def test_a_line_without_an_end_is_refused() -> None:
    """It is hardly a text, and is not held in memory."""
    with Path("rows").open("wb") as file:
        file.truncate(LINE_BYTES * 4)
    with open_input_file("rows") as opened, pytest.raises(CommandError, match="has a line of more than"):
        list(opened.lines())


@pytest.mark.parametrize(
    "options", [("--epochs", "3"), ("--shuffle", "--epochs", "2"), ("--add-a-feature",), ("--fit-scale",)]
)
def test_what_comes_through_a_pipe_can_be_read_again(options: tuple[str, ...]) -> None:
    """It gives the same as the file."""
    Path("rows.csv").write_text("a,b,label\n" + "".join(f"{n % 7},{n % 3},{n % 2}\n" for n in range(50)))
    os.mkfifo("pipe")
    writer = threading.Thread(target=lambda: Path("pipe").write_bytes(Path("rows.csv").read_bytes()))
    writer.start()
    arguments = ("--from", "csv", *options, "-q", "--json")
    from_pipe = ok("replay", "pipe", *arguments, log=None).stdout
    writer.join()
    assert from_pipe == ok("replay", "rows.csv", *arguments, log=None).stdout


MEASURED = """
import re, sys
from pathlib import Path
from mistakebound.commands.app import app
try:
    app(sys.argv[1:])
except SystemExit as end:
    peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
    print(peak.group(1), end.code)
"""


def _peak_mb(rows: int, form: Form, options: tuple[str, ...]) -> float:
    """The most memory that a process needed to replay so many rows."""
    with Path("rows").open("w") as file:
        if form == "csv":
            file.write("a,b,c,note,label\n")
        for n in range(rows):
            a, b, c, label = n % 7 - 3, n % 5 / 8, n % 11, n % 3 % 2
            if form == "csv":
                file.write(f"{a},{b},{c},{'n' * 200},{label}\n")
            elif form == "svmlight":
                file.write(f"{label} 1:{a} 2:{b} 3:{c} # {'n' * 200}\n")
            else:
                file.write(
                    json.dumps({"features": {"a": a, "b": b, "c": c}, "label": label, "n": "n" * 200}) + "\n"
                )
    ignored = ("--ignore", "note") if form == "csv" else ()
    sets = ("--set", "labels.remember=100", "--set", "learner.kind=perceptron")
    command = [
        sys.executable,
        "-c",
        MEASURED,
        "replay",
        "rows",
        "--from",
        form,
        "-q",
        *sets,
        *ignored,
        *options,
    ]
    done = subprocess.run(command, env=ENVIRON, capture_output=True, text=True, check=True)
    peak_kb, code = done.stdout.split()[-2:]
    assert code == "0"
    return int(peak_kb) / 1e3


@pytest.mark.parametrize(
    ("form", "options"),
    [
        ("csv", ()),
        ("csv", ("--shuffle",)),
        pytest.param("csv", ("--fit-scale",), marks=pytest.mark.long),
        pytest.param("csv", ("--epochs", "2"), marks=pytest.mark.long),
        pytest.param("svmlight", ("--shuffle",), marks=pytest.mark.long),
        pytest.param("jsonl", ("--shuffle",), marks=pytest.mark.long),
    ],
    ids=str,
)
def test_a_file_is_never_held_in_memory(form: Form, options: tuple[str, ...]) -> None:
    """15,000 rows more, 3 MB on disk and some 15 MB as Python's objects, need hardly more memory."""
    small, large = (_peak_mb(rows, form, options) for rows in (5_000, 20_000))
    assert large - small < 4
