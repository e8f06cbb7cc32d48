"""A log in a sqlite file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mistakebound.log import open_log
from mistakebound.log.protocol import Log
from mistakebound.settings import LogSettings, Settings


def settings(path: Path) -> Settings:
    return Settings(log=LogSettings(url=f"sqlite:{path}"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


@pytest.fixture
def log(path: Path) -> Iterator[Log]:
    with open_log(settings(path)) as log:
        log.create_topics(2, {})
        yield log
