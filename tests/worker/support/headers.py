"""Headers of examples, which a worker passes on with its predictions."""

import json

from mistakebound.core.records import Outgoing
from mistakebound.log.protocol import Log
from mistakebound.settings import Settings
from tests.worker.support.working import Run

TRACE = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
"""The example of W3C's Trace Context."""


def passes_headers_on(log: Log, settings: Settings, now_ms: int) -> None:
    """Send examples with a `traceparent`, with several headers and with none; their predictions must have the same."""
    sent = {
        "traced": (("traceparent", TRACE),),
        "several": (("traceparent", TRACE), ("tracestate", b"vendor=1"), ("x", b"\xff\x00")),
        "none": (),
    }
    log.append(
        Outgoing(
            "examples",
            0,
            name.encode(),
            json.dumps({"id": name, "features": {"x": 1}}).encode(),
            headers,
            now_ms,
        )
        for name, headers in sent.items()
    )
    Run(log, settings)
    found = {(record.key or b"").decode(): record.headers for record in log.read("predictions", 0, 0)}
    assert found == sent
