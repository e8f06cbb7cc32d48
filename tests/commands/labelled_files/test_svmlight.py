"""svmlight files: an index counts once, a value is a number."""

import json
from pathlib import Path

import pytest

from tests.commands.support.command_line import ok, run


def refusal(text: str) -> str:
    """The message of a replay that ends with exit code 2."""
    Path("rows.svm").write_text("+1 1:1\n" + text + "\n")
    told = run("replay", "rows.svm", log=None)
    assert (told.exit_code, told.stdout) == (2, ""), told.output
    return told.stderr


def test_an_index_given_twice_is_refused() -> None:
    """The last one used to win."""
    assert "line 2: index 3 comes twice" in refusal("-1 3:1 4:2 3:5 # comment")


@pytest.mark.parametrize(
    "pair", ["1:nan", "1:inf", "1:-Infinity", "1:1_0", "1:x", "1:", "1", ":1", "1:2:3", "1:١"]
)
def test_a_value_is_a_number(pair: str) -> None:
    """By the rules of JSON, not Python's."""
    assert f"line 2: {pair!r} is not index:value" in refusal(f"-1 {pair}")


@pytest.mark.parametrize("index", ["01", "+1", "-1", "1_0", "1.0"])
def test_an_index_has_one_spelling(index: str) -> None:
    """01 would be another feature than 1."""
    assert f"line 2: {index!r} is no index" in refusal(f"-1 {index}:1")


def test_a_line_without_a_label_is_refused() -> None:
    """Its first feature is no label."""
    assert "line 2: it begins with '1:0.5'; write the label first" in refusal("1:0.5 2:1")


def test_a_number_beyond_float64_is_an_invalid_example() -> None:
    """As on the stream; an index 0, a name and a query id are read."""
    Path("rows.svm").write_text("+1 qid:3 0:1 name:2\n\n# nothing\n-1 1:1e400\n")
    report = json.loads(ok("replay", "rows.svm", "--json", "-q", "--max-invalid=1", log=None).stdout)
    assert (report["labelled"], report["example_outcomes"]["invalid"]) == (1, 1)
