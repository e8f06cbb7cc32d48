"""What several of these tests share."""

from collections.abc import Iterator

import pytest

from tests.operations.object_store import Store, running


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A real object store, with an empty bucket. Tests take a prefix of their own."""
    with running(tmp_path_factory.mktemp("store") / "seaweed") as started:
        yield started
