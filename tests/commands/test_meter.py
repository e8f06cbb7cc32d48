"""How far a command is: one line on a terminal, few lines elsewhere."""

from pathlib import Path

import pytest

from mistakebound.commands import meter
from mistakebound.commands.meter import LOOK_EVERY, Meter
from tests.commands.support.command_line import ok
from tests.commands.support.terminal import on_terminal

LINES = b"".join(b'{"id":%d,"features":{"x":1}}\n' % n for n in range(4 * LOOK_EVERY))
DAY_S = 86_400


def test_off_a_terminal_a_day_writes_few_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """The first after 10 s; the interval doubles."""
    now_s = 0.0
    told = Meter(lambda: now_s)
    with told:
        for second in range(DAY_S):
            now_s = float(second)
            told.show(lambda passed_s: f"{passed_s:.0f} s")
    lines = capsys.readouterr().err.splitlines()
    assert lines[:3] == ["10 s", "20 s", "40 s"]
    assert len(lines) == 14


def test_what_is_counted_is_passed_on_unchanged() -> None:
    """In order, and lazily."""
    counted = Meter().counted(iter(range(1_000)), "reading")
    assert next(counted) == 0
    assert [*counted] == list(range(1, 1_000))


@pytest.mark.parametrize(("verb", "says"), [("send", "sending: "), ("record", "reading: ")])
def test_send_and_record_tell_how_far_they_are(monkeypatch: pytest.MonkeyPatch, verb: str, says: str) -> None:
    """On stderr; of what is read, about how much there is."""
    monkeypatch.setattr(meter, "FIRST_LINE_S", 0.0)
    ok("topics", "create")
    sent = ok("send", "examples", "-", stdin=LINES)
    told = sent if verb == "send" else ok("record", "day.jsonl")
    assert f"{says}{LOOK_EVERY}" in told.stderr
    assert told.stdout == ""
    if verb == "record":
        assert f"of about {4 * LOOK_EVERY} records" in told.stderr


def test_a_short_command_tells_nothing() -> None:
    """Only what takes its time."""
    ok("topics", "create")
    assert "sending:" not in ok("send", "examples", "-", stdin=LINES).stderr


@pytest.mark.long
def test_on_a_terminal_one_line_is_written_anew() -> None:
    """And is gone at the end."""
    ok("topics", "create")
    with Path("many.jsonl").open("wb") as file:
        file.writelines(b'{"id":%d,"features":{"x":1}}\n' % n for n in range(100_000))
    said = on_terminal("send", "examples", "many.jsonl", "--log", "sqlite:log.db")
    assert said.count("\r\x1b[Ksending: ") > 1
    assert said.endswith("\x1b[Ksent 100000 records\r\n\r\x1b[K\r")
