"""Every test in this folder kills something; what it started is gone when it ends."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.children import Children

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("faults")


@pytest.fixture
def children(tmp_path: Path) -> Iterator[Children]:
    """Starts commands in the test's own folder; kills what is left of them at the end."""
    started = Children(tmp_path)
    try:
        yield started
    finally:
        started.kill()
