"""`tail`: messages as they come, on the sqlite log."""

import json
import signal

import pytest

from mistakebound.core.records import Outgoing
from mistakebound.log import open_log
from mistakebound.settings import LogSettings, Settings
from tests.commands.support.command_line import LOG, ok, start

EXAMPLES = b'{"id":"a","features":{"x":1}}\n{"id":7,"features":{"x":2}}\n'


def test_tail_prints_messages_as_json_lines() -> None:
    """The value alone; what is not JSON in the recording's form, which escapes it."""
    ok("topics", "create")
    with open_log(Settings(log=LogSettings(url=LOG))) as log:
        log.append([Outgoing("labels", 0, b"k", b'{"id":1}'), Outgoing("labels", 0, b"k", b"\x1b[2J")])
    first, second = ok("tail", "labels", "--from", "beginning", "-c", "2").stdout.splitlines()
    assert first == '{"id":1}'
    assert json.loads(second)["payload"] == "\x1b[2J"
    assert "\x1b" not in second


@pytest.mark.long
def test_tail_ends_cleanly_by_ctrl_c() -> None:
    """Exit code 0: it is how the command is meant to end."""
    ok("topics", "create")
    ok("send", "examples", "-", stdin=EXAMPLES)
    process = start("tail", "examples", "--from", "beginning", "--log", LOG)
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        assert process.stdout.readline() == EXAMPLES.splitlines(keepends=True)[0]
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
        assert b"Traceback" not in process.stderr.read()
