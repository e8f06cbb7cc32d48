"""One secured broker for all tests of this folder, and a model on it for those that need one."""

from collections.abc import Iterator

import pytest

from tests.security.support.secured import Secured


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "secured" in getattr(item, "fixturenames", ()):
            item.add_marker("kafka")


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Shared by the whole run: tests keep apart by their prefixes, and grant rights for those only."""
    with Secured(tmp_path_factory.mktemp("secured")) as broker:
        yield broker
