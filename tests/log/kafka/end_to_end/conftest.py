"""The whole worker and its commands on a real broker."""

import time

import pytest

from mistakebound.core.records import Outgoing
from mistakebound.settings import Settings
from tests.worker.support.working import settings_for, stream


@pytest.fixture
def settings(kafka_bootstrap: str) -> Settings:
    return settings_for(f"kafka://{kafka_bootstrap}", labels={"max_delay": 1_000_000})


def inputs(count: int, *, first: int = 0) -> list[Outgoing]:
    """Of the last hour: a broker deletes what is older than its retention."""
    begun_ms = round(time.time() * 1000) - 3_600_000
    return [
        each._replace(timestamp_ms=begun_ms + (each.timestamp_ms or 0))
        for each in stream(count, partitions=2, first=first)
    ]
