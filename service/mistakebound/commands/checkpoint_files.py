"""Checkpoints as the command line names them: all in `checkpoint.url`, or single ones by path or URL."""

from mistakebound.commands.errors import CommandError
from mistakebound.core.checkpoint_content import Checkpoint, decode_checkpoint
from mistakebound.core.faults import BadSnapshot
from mistakebound.settings import CheckpointSettings
from mistakebound.worker.checkpoints.envelope import InvalidCheckpointError, parse
from mistakebound.worker.checkpoints.open_store import open_store
from mistakebound.worker.checkpoints.store import CheckpointStore, split

ASK_S = 30.0
"""How long a store named on the command line may take for one answer."""


def open_own_store(rules: CheckpointSettings) -> CheckpointStore | None:
    """The store at `checkpoint.url`; None where no checkpoints are kept."""
    return open_store(rules.url, rules.timeout.total_seconds()) if rules.url else None


def read_checkpoint(file: str) -> Checkpoint:
    """Raises CommandError where the file cannot be read, BadSnapshot where it is not a whole checkpoint."""
    url, name = split(file)
    try:
        content, _ = open_store(url, ASK_S).read(name)
    except ValueError as error:
        raise CommandError(f"{file}: {error}") from None
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror or error}") from None
    try:
        return decode_checkpoint(parse(content))
    except InvalidCheckpointError as error:
        raise BadSnapshot(str(error)) from None
