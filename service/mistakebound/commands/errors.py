"""Errors of the command line, and the one place that says which error ends the process with which exit code."""

from mistakebound.exit_codes import ExitCode


class CommandError(Exception):
    """A command ends with this code and message; no traceback is shown."""

    def __init__(self, message: str, code: ExitCode = ExitCode.USAGE) -> None:
        super().__init__(message)
        self.code = code


def code_of(error: BaseException) -> ExitCode:
    """The exit code for an error; BUG for every error that nobody foresaw."""
    from mistakebound.config.problems import ConfigurationError
    from mistakebound.core.faults import BadLog, BadSnapshot
    from mistakebound.core.replay.recording import RecordingError
    from mistakebound.log import protocol
    from mistakebound.worker.checkpoints.store import CheckpointError
    from mistakebound.worker.http.server import AddressError
    from mistakebound.worker.http.tls import TlsError
    from mistakebound.worker.rebuilds import GaveUp

    if isinstance(error, CommandError):
        return error.code
    table: tuple[tuple[type[Exception], ExitCode], ...] = (
        (ConfigurationError, ExitCode.USAGE),
        (RecordingError, ExitCode.USAGE),
        (BadSnapshot, ExitCode.CHECK_FAILED),
        (protocol.Misconfigured, ExitCode.USAGE),
        (BadLog, ExitCode.REFUSED),
        (protocol.Refused, ExitCode.REFUSED),
        (protocol.Fenced, ExitCode.SLOT_TAKEN),
        (protocol.StaleGeneration, ExitCode.SLOT_TAKEN),
        (protocol.TransactionFailed, ExitCode.GAVE_UP),
        (protocol.LogError, ExitCode.UNREACHABLE),
        (AddressError, ExitCode.UNREACHABLE),
        (TlsError, ExitCode.USAGE),
        (CheckpointError, ExitCode.UNREACHABLE),
        (GaveUp, ExitCode.GAVE_UP),
    )
    return next((code for kind, code in table if isinstance(error, kind)), ExitCode.BUG)
