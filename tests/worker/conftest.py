"""What several of these tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.polling import asked_often
from tests.worker.support.object_store import ObjectStore, running

__all__ = ["asked_often"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "object_store" in getattr(item, "fixturenames", ()):
            item.add_marker("long")  # the store takes seconds to start


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a log may lie."""
    return tmp_path / "log.db"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where checkpoints may lie."""
    return tmp_path / "checkpoints"


@pytest.fixture(scope="session")
def object_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """A real object store, with an empty bucket. Tests take a prefix of their own."""
    with running(tmp_path_factory.mktemp("store") / "seaweed") as started:
        yield started
