"""Every test runs in an empty folder of its own, without settings from the environment."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from mistakebound.settings import Settings
from tests.support.folders import empty_folder
from tests.support.polling import asked_often
from tests.worker.support.working import settings_for

__all__ = ["asked_often", "empty_folder"]


@pytest.fixture
def quiet() -> Iterator[None]:
    """No worker's log lines."""
    with capture_logs():
        yield


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Of a log in a file."""
    return settings_for(f"sqlite:{tmp_path / 'log.db'}")
