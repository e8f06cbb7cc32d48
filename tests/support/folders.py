"""A fixture for tests that read settings or write files where they are run."""

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working folder is the test's own, and no variable sets anything."""
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith("MISTAKEBOUND_"):
            monkeypatch.delenv(name)
