"""`send`: messages from a file into the sqlite log."""

import json

import pytest

from tests.commands.support.command_line import ok, run

EXAMPLES = b'{"id":"a","features":{"x":1}}\n{"id":7,"features":{"x":2}}\n'


def test_messages_are_sent_under_their_id() -> None:
    """Integers as their decimal string, so that an example and its label share a partition."""
    ok("topics", "create", "--partitions", "2")
    assert "sent 2 records" in ok("send", "examples", "-", stdin=EXAMPLES).stderr
    lines = ok("tail", "examples", "--from", "beginning", "-c", "2", "--json").stdout.splitlines()
    assert {json.loads(line)["key"] for line in lines} == {"a", "7"}


def test_the_id_is_found_where_messages_id_points() -> None:
    """Existing messages need no change."""
    ok("topics", "create")
    ok("send", "examples", "-", "--set", "messages.id=/after/pk~1id", stdin=b'{"after":{"pk/id":"z"}}\n')
    line = ok("tail", "examples", "--from", "beginning", "-c", "1", "--json").stdout
    assert json.loads(line)["key"] == "z"


@pytest.mark.parametrize(
    "line",
    [b"not json\n", b"{}\n", b'{"id":null}\n', b'{"id":true}\n', b'{"id":1.5}\n', b"[1]\n", b'{"id":""}\n'],
)
def test_a_line_without_an_id_stops_sending_by_number(line: bytes) -> None:
    """Exit code 2; what came before it is sent, as the message says."""
    ok("topics", "create")
    result = run("send", "examples", "-", stdin=EXAMPLES + line)
    assert result.exit_code == 2
    assert "sent 2 records" in result.stderr
    assert "line 3: " in result.stderr


def test_only_inputs_can_be_sent() -> None:
    """The worker's own topics are the worker's own."""
    ok("topics", "create")
    assert run("send", "updates", "-", stdin=EXAMPLES).exit_code == 2


def test_a_missing_file_is_a_usage_error() -> None:
    """Named, without a traceback."""
    result = run("send", "examples", "missing.jsonl")
    assert result.exit_code == 2
    assert "missing.jsonl" in result.stderr
