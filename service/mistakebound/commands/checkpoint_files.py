"""Checkpoints as the command line names them: all in `checkpoint.url`, or single ones by path, URL or name in there."""

from pathlib import Path

from mistakebound.commands.errors import CommandError
from mistakebound.commands.output import print_message
from mistakebound.config.load import Loaded
from mistakebound.core.checkpoint_content import Checkpoint, decode_checkpoint
from mistakebound.core.faults import BadSnapshot
from mistakebound.core.model.model import Model
from mistakebound.settings import CheckpointSettings, Settings
from mistakebound.worker.checkpoints.envelope import InvalidCheckpointError, parse
from mistakebound.worker.checkpoints.open_store import open_store
from mistakebound.worker.checkpoints.store import CheckpointStore, split

DEMO_LOG = "sqlite:mistakebound-demo.db"
"""Of the demo, where no other is named."""
ASK_S = 30.0
"""How long a store named on the command line may take for one answer."""


def open_own_store(rules: CheckpointSettings) -> CheckpointStore | None:
    """The store at `checkpoint.url`; None where no checkpoints are kept."""
    return open_store(rules.url, rules.timeout.total_seconds()) if rules.url else None


def beside(log_url: str) -> str:
    """The folder of the demo's checkpoints: beside its log, where that is a file; else empty."""
    is_file = log_url.startswith("sqlite:") and ":memory:" not in log_url
    return log_url.removeprefix("sqlite:") + "-checkpoints" if is_file else ""


def store_to_look_at(loaded: Loaded) -> CheckpointStore | None:
    """The store at `checkpoint.url`; where nothing gives that, and only a demo has left checkpoints here, the demo's."""
    rules = loaded.settings.checkpoint
    if loaded.origins["checkpoint.url"].kind == "default" and not Path(rules.url).exists():
        folder = beside(loaded.settings.log.url or DEMO_LOG)
        if folder and Path(folder).is_dir():
            print_message(f"no {rules.url} here; these are the demo's, in {folder}")
            rules = rules.model_copy(update={"url": folder})
    return open_own_store(rules)


def place_of(file: str, loaded: Loaded) -> str:
    """The path or URL of a checkpoint. One without a folder that is not here is meant as `checkpoint list` names it."""
    if "/" in file or Path(file).exists():
        return file
    store = store_to_look_at(loaded)
    return file if store is None else store.where(file)


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


def model_of(found: Checkpoint) -> Model:
    """The model that a checkpoint holds. Raises BadSnapshot."""
    model = Model(Settings.model_validate(found.epochs[-1].settings), len(found.updates_next))
    model.restore(found.model)
    return model
