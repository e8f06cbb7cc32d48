"""The worker and its checkpoints: a shortcut for the fold, and never the truth."""

import errno
import os
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from mistakebound.worker.checkpoints.local import LocalCheckpointStore
from tests.log.support.place import forget_in_file
from tests.worker.support.working import (
    Recount,
    Run,
    altered,
    only_takes_over,
    opened,
    rejected,
    settings_on,
    stream,
    written,
)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[list[Any]]:
    """What the worker logs."""
    with capture_logs() as said:
        yield said


def test_a_corrupt_checkpoint_is_set_aside_and_the_log_is_folded(file: Path, folder: Path) -> None:
    """The file is kept under another name, and nothing is lost."""
    settings = settings_on(file, checkpoint={"url": str(folder)})
    with opened(settings) as log:
        log.append(stream(20))
        digest = Run(log, settings).held.state.model.digest()
        (newest,) = written(folder)
        newest.write_bytes(newest.read_bytes()[:-1] + b"?")
        run = Run(log, settings)
        assert rejected(folder) == [newest.name + ".rejected"]
        assert run.held.state.model.digest() == digest == Recount(log, settings).digest


def test_a_checkpoint_of_another_log_is_set_aside(file: Path, folder: Path, tmp_path: Path) -> None:
    """The same names, other topics: the checkpoint says nothing of them."""
    settings = settings_on(file, checkpoint={"url": str(folder)})
    with opened(settings) as log:
        log.append(stream(20))
        Run(log, settings)
    elsewhere = altered(settings, log={**settings.log.model_dump(), "url": f"sqlite:{tmp_path / 'other.db'}"})
    with opened(elsewhere) as log:
        log.append(stream(30, seed=2))
        run = Run(log, elsewhere)
        assert len(rejected(folder)) == 1
        assert run.held.state.model.digest() == Recount(log, elsewhere).digest
        assert len(Recount(log, elsewhere).predicted) == 30


def test_a_checkpoint_of_another_group_is_left_alone(file: Path, folder: Path) -> None:
    """A folder may be shared: another group's files are neither used nor moved."""
    settings = settings_on(file, checkpoint={"url": str(folder)})
    with opened(settings) as log:
        log.append(stream(20))
        Run(log, settings)
    other = settings_on(file, checkpoint={"url": str(folder)})
    with opened(other) as log:
        log.append(stream(20))
        Run(log, other)
    assert not rejected(folder)
    assert len(written(folder)) == 2


@pytest.mark.parametrize("more", [40, 4])
def test_a_checkpoint_newer_than_the_log_is_not_trusted(file: Path, folder: Path, more: int) -> None:
    """A log restored from a copy is behind the checkpoint; what it holds is the truth."""
    settings = settings_on(file, checkpoint={"url": str(folder)})
    copy = file.with_suffix(".copy")
    with opened(settings) as log:
        log.append(stream(20))
        Run(log, settings)
        digest = Recount(log, settings).digest
    shutil.copy(file, copy)
    with opened(settings) as log:
        log.append(stream(more, first=20))
        Run(log, settings)
    for leftover in file.parent.glob("log.db*"):
        leftover.unlink()
    shutil.copy(copy, file)
    with opened(settings) as log:
        run = Run(log, settings, stopping=only_takes_over)
        assert run.held.state.model.digest() == digest
        log.append(stream(10, first=20, seed=9))
        Run(log, settings)
        assert len(Recount(log, settings).predicted) == 30


def test_the_checkpoint_before_a_damaged_one_is_used(file: Path, folder: Path) -> None:
    """Two are kept for this."""
    settings = settings_on(
        file, batch={"max_records": 10}, checkpoint={"url": str(folder), "every_updates": 1}
    )
    with opened(settings) as log:
        log.append(stream(60))
        Run(log, settings)
        older, newest = written(folder)
        newest.write_bytes(b"")
        run = Run(log, settings, stopping=only_takes_over)
        assert rejected(folder) == [newest.name + ".rejected"]
        assert older.exists()
        assert run.metric("mistakebound_checkpoint_size_bytes") > 0
        assert run.held.state.model.digest() == Recount(log, settings).digest


def test_a_folder_that_cannot_be_written_to_at_the_start_is_a_warning(
    file: Path, folder: Path, quiet: list[Any]
) -> None:
    """As at work: a restart must not turn a lost shortcut into an outage. The warning names folder and remedy."""
    folder.write_text("a file")
    settings = settings_on(file, checkpoint={"url": str(folder)})
    with opened(settings) as log:
        log.append(stream(20))
        run = Run(log, settings)
        assert len(Recount(log, settings).predicted) == 20
    first = next(said for said in quiet if said["event"] == "checkpoint_failed")
    assert re.search(r"checkpoint\.url: cannot use .*FOLDER", first["error"])
    assert run.metric('mistakebound_checkpoints_total{result="failure"}') == 2, "at the start, and at the end"


def test_a_read_only_folder_is_still_read_at_the_start(
    file: Path, folder: Path, quiet: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lies there spares the log as ever; only new checkpoints fail."""

    def refuse(store: LocalCheckpointStore) -> Any:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    settings = settings_on(file, checkpoint={"url": str(folder)})
    with opened(settings) as log:
        log.append(stream(60))
        Run(log, settings)
        forget_in_file(file)(settings.topic_name("updates"), 0, log.high_watermark("updates", 0) - 1)
        log.append(stream(20, first=60))
        monkeypatch.setattr(LocalCheckpointStore, "_begin", refuse)
        run = Run(log, settings)  # the log alone would not do
        assert run.metric("mistakebound_checkpoint_size_bytes") > 0, "it was read"
    assert any("Read-only file system" in str(said.get("error")) for said in quiet)


def test_a_folder_that_becomes_unwritable_is_a_warning(file: Path, folder: Path, quiet: list[Any]) -> None:
    """Work goes on without checkpoints, is warned of once in a while, not at every step, and is counted."""
    settings = settings_on(
        file, batch={"max_records": 5}, checkpoint={"url": str(folder), "every_updates": 1}
    )
    steps: list[Any] = []

    def spoil(held: Any) -> None:
        steps.append(held)
        if len(steps) == 3:
            for thread in threading.enumerate():
                if thread.name == "checkpoint":  # the one under way would fail, too, or in the midst of this
                    thread.join()
            shutil.rmtree(folder)
            folder.write_text("a file now")

    with opened(settings) as log:
        log.append(stream(60))
        run = Run(log, settings, stepped=spoil)
        assert len(Recount(log, settings).predicted) == 60
    failures = [said for said in quiet if said["event"] == "checkpoint_failed"]
    assert len(failures) == 2, "one at the first attempt, one at the end"
    assert run.metric('mistakebound_checkpoints_total{result="failure"}') == 2


@pytest.mark.parametrize("topic", ["outcomes", "predictions", "updates"])
def test_a_checkpoint_covers_what_was_deleted(file: Path, folder: Path, topic: str) -> None:
    """With a checkpoint nothing before it is needed any more."""
    settings = settings_on(file, batch={"max_records": 10}, checkpoint={"url": str(folder)})
    with opened(settings) as log:
        log.append(stream(60))
        digest = Run(log, settings).held.state.model.digest()
        forget_in_file(file)(settings.topic_name(topic), 0, log.high_watermark(topic, 0) - 1)  # type: ignore[arg-type]
        run = Run(log, settings, stopping=only_takes_over)
        assert run.held.state.model.digest() == digest
        assert not rejected(folder)
