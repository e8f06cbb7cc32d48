"""A trace goes on from an example to its prediction, on a real broker, with both clients."""

import time

import pytest

from tests.worker.support.headers import passes_headers_on
from tests.worker.support.working import opened, settings_for


@pytest.mark.parametrize("client", ["kafka", "kafka+confluent"])
def test_an_examples_traceparent_reaches_its_prediction(client: str, kafka_bootstrap: str) -> None:
    """And so do all its other headers."""
    settings = settings_for(f"{client}://{kafka_bootstrap}")
    with opened(settings) as log:
        passes_headers_on(log, settings, round(time.time() * 1000))
