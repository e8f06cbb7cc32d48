"""A trace goes on from an example to its prediction, on the sqlite log."""

from pathlib import Path

import pytest

from tests.worker.support.headers import passes_headers_on
from tests.worker.support.working import opened, settings_on


@pytest.mark.parametrize("size", [1, 4_000])
def test_an_examples_traceparent_reaches_its_prediction(tmp_path: Path, size: int) -> None:
    """And so do all its other headers, whatever the steps."""
    settings = settings_on(tmp_path / "log.db", batch={"max_records": size})
    with opened(settings) as log:
        passes_headers_on(log, settings, 1_000)
