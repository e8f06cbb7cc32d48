"""Errors of the command line, and the one place that says with which exit code each error ends the process."""

from mistakebound.exit_codes import ExitCode


class CommandError(Exception):
    """Ends a command with this code and message; no traceback is shown."""

    def __init__(self, message: str, code: ExitCode = ExitCode.USAGE) -> None:
        super().__init__(message)
        self.code = code


def code_of(error: BaseException) -> ExitCode:
    """The exit code for an error; BUG for an error that nobody foresaw."""
    from mistakebound.config.problems import ConfigurationError
    from mistakebound.core.faults import BadLog, BadSnapshot, MissingLibrary
    from mistakebound.core.replay.recorded import NotAsRecorded
    from mistakebound.core.replay.recording import RecordingError
    from mistakebound.log import protocol
    from mistakebound.worker.checkpoints.store import CheckpointError
    from mistakebound.worker.http.server import AddressError
    from mistakebound.worker.http.tls import TlsError
    from mistakebound.worker.rebuilds import GaveUp

    if isinstance(error, CommandError):
        return error.code
    errors: dict[ExitCode, tuple[type[Exception], ...]] = {
        ExitCode.USAGE: (
            ConfigurationError,
            RecordingError,
            TlsError,
            protocol.Misconfigured,
            MissingLibrary,
        ),
        ExitCode.CHECK_FAILED: (BadSnapshot, NotAsRecorded),
        ExitCode.REFUSED: (BadLog, protocol.Refused),
        ExitCode.SLOT_TAKEN: (protocol.Fenced, protocol.StaleGeneration),
        ExitCode.GAVE_UP: (GaveUp, protocol.TransactionFailed),
        # Last, for all other errors of the log:
        ExitCode.UNREACHABLE: (AddressError, CheckpointError, protocol.LogError),
    }
    return next((code for code, kinds in errors.items() if isinstance(error, kinds)), ExitCode.BUG)
