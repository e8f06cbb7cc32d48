"""A fixture for tests that run a worker in their own process, on a log that only they write to."""

from collections.abc import Iterator

import pytest

from mistakebound.worker import loop


@pytest.fixture(scope="package", autouse=True)
def asked_often() -> Iterator[None]:
    """That nothing more comes is clear at once, and a log that a test takes away is asked for again soon."""
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(loop, "POLL_S", 0.02)
        changed.setattr(loop, "AWAY_REST_S", 0.02)
        yield
