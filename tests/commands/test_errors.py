"""Every error ends the process with the code that the help documents."""

import pytest

from mistakebound.commands.errors import CommandError, code_of
from mistakebound.config.problems import ConfigurationError
from mistakebound.core.faults import BadLog, BadSnapshot
from mistakebound.core.replay.recording import RecordingError
from mistakebound.exit_codes import ExitCode
from mistakebound.log import protocol


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigurationError([]), 2),
        (RecordingError(1, "wrong", "right it"), 2),
        (CommandError("no", ExitCode.CHECK_FAILED), 3),
        (BadSnapshot("no"), 3),
        (protocol.Unreachable("no"), 4),
        (protocol.LogError("no"), 4),
        (protocol.Refused("no"), 5),
        (protocol.OffsetLost("no"), 5),
        (BadLog("no"), 5),
        (protocol.Fenced("no"), 6),
        (protocol.TransactionFailed("no"), 7),
        (RuntimeError("no"), 1),
        (KeyError("no"), 1),
    ],
)
def test_an_error_has_its_exit_code(error: Exception, code: int) -> None:
    """Supervisors tell by it whether to restart."""
    assert code_of(error) == code


def test_every_exit_code_has_a_meaning() -> None:
    """The help is made from them."""
    assert all(code.meaning for code in ExitCode)
