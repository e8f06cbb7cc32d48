"""JSON Lines: ids, labels and features by the rules of the stream."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands.support.command_line import ok, run


def write(*lines: str) -> None:
    Path("rows.jsonl").write_text("\n".join(lines) + "\n")


def replayed(*arguments: str) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(
        ok("replay", "rows.jsonl", "-q", "--json", "--max-invalid=9", *arguments, log=None).stdout
    )
    return report


def refusal(*arguments: str) -> str:
    told = run("replay", "rows.jsonl", *arguments, log=None)
    assert (told.exit_code, told.stdout) == (2, ""), told.output
    return told.stderr


def test_a_null_id_is_no_id() -> None:
    """Such lines used to be duplicates of one another, named "None"."""
    write(*('{"id": null, "features": {"a": 1}, "label": true}',) * 3)
    assert replayed()["labelled"] == 3


@pytest.mark.parametrize("found", ["true", "1.5", "[1]", '{"a": 1}', '""'])
def test_an_id_is_text_or_an_integer(found: str) -> None:
    """As on the stream: `true` is not the text "True"."""
    write(
        '{"id": "a", "features": {"a": 1}, "label": true}',
        f'{{"id": {found}, "features": {{}}, "label": true}}',
    )
    assert f"line 2: id is {found.replace(': ', ':')}; an id is text, or an integer" in refusal()


def test_a_line_without_an_id_never_takes_that_of_another() -> None:
    """Lines without one are numbered: an id in their range is ambiguous, others are not."""
    bare, other = '{"features": {"a": 1}, "label": true}', '{"id": %s, "features": {"a": 1}, "label": true}'
    write(other % "3", bare, bare)
    assert "line 3: the id 3 may be that of another line" in refusal()
    write(other % '"x"', other % "90", bare, bare)
    assert replayed()["labelled"] == 4


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ('{"features": {"a": 1, "a": 2}, "label": true}', "a"),
        ('{"features": {"a": 1}, "label": true, "label": false}', "label"),
        ('{"features": {"a": 1}, "features": {"a": 1}, "label": true}', "features"),
        ('{"features": {"a": "x:y", "b": 1, "\\u0062": 2}, "label": true}', "b"),
        ('{"features": {"a": 1}, "label": true, "more": {"x": 1, "x": 1}}', "x"),
    ],
)
def test_a_name_given_twice_is_refused(line: str, name: str) -> None:
    """Which value is meant cannot be known."""
    write('{"features": {"a": "b:c"}, "label": true, "more": {"x": 1}}', line)
    assert f'line 2: an object has "{name}" twice' in refusal()


def test_members_are_named_by_options() -> None:
    """By name, or by a pointer as in the settings; the name may have a slash."""
    write(
        '{"key": "k", "data": {"in/put": {"a": 1}}, "fraud": true}',
        '{"key": "l", "data": {"in/put": [1]}, "fraud": 0}',
    )
    options = ("--id", "key", "--features", "/data/in~1put", "--label", "fraud")
    assert replayed(*options)["labelled"] == 2
    assert "line 1: it is not an object with features and label: nothing at /no" in refusal(
        *options[:4], "--label", "no"
    )
    assert "--ignore: JSON Lines have no columns" in refusal("--ignore", "a")
    assert "--features: JSON Lines have their features in one member" in refusal("--features", "a,b")


def test_a_private_feature_leaves_a_number_too_large_to_the_reader() -> None:
    """It is an invalid example with and without."""
    write('{"features": {"a": 1e999}, "label": true}', '{"features": {"a": 1}, "label": true}')
    assert replayed("--add-a-feature")["example_outcomes"]["invalid"] == 1


def test_a_byte_order_mark_is_no_part_of_the_file() -> None:
    """Of labelled data and of a recording alike."""
    row = b'{"features": {"a": 1}, "label": true}\n'
    Path("rows.jsonl").write_bytes(b"\xef\xbb\xbf" + row)
    assert replayed()["labelled"] == 1
    ok("topics", "create")
    ok("record", "day.jsonl")
    Path("rows.jsonl").write_bytes(b"\xef\xbb\xbf" + Path("day.jsonl").read_bytes())
    told = run("replay", "rows.jsonl", "-q", log=None)
    assert told.exit_code == 3
    assert "nothing was judged: there is no example\n" in told.stderr
