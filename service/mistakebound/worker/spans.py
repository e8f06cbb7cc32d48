"""A span for each step, by OpenTelemetry, where `worker.spans` asks for it. None for a record: that would cost more than it.

The library is an extra. Its own variables say where spans go (OTEL_EXPORTER_OTLP_ENDPOINT), how many of them
(OTEL_TRACES_SAMPLER), and what is added to them (OTEL_RESOURCE_ATTRIBUTES). It sends them in a thread of its own, and logs
what it cannot send; no step waits for it.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from mistakebound.settings import Settings
from mistakebound.worker import events
from mistakebound.worker.metrics.definitions import build_version

EXTRA = "otel"
EXPORTER = "opentelemetry.exporter.otlp.proto.http"
PATIENCE_S = 2.0
"""How long the end of a worker waits for the last spans to be sent; the drain has 10 s."""

_NS = 1_000_000_000


@contextmanager
def exported(settings: Settings, slot: str) -> Iterator[tuple[events.Observe, ...]]:
    """The observer that makes spans, if they are asked for; at the end the last ones are sent."""
    if not settings.worker.spans:
        yield ()
        return
    sdk: Any = import_module("opentelemetry.sdk.trace")
    export: Any = import_module("opentelemetry.sdk.trace.export")
    resources: Any = import_module("opentelemetry.sdk.resources")
    exporter: Any = import_module(f"{EXPORTER}.trace_exporter")
    of_worker = {
        "service.name": "mistakebound",
        "service.version": build_version(),
        "service.instance.id": slot,
        "mistakebound.prefix": settings.log.prefix,
        "messaging.consumer.group.name": settings.group,
    }
    # Later ones win: what the environment says of the service is what its operator wants it to be called.
    resource = resources.Resource(of_worker).merge(resources.OTELResourceDetector().detect())
    provider = sdk.TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(export.BatchSpanProcessor(exporter.OTLPSpanExporter()))
    try:
        yield (Spans(provider.get_tracer("mistakebound", build_version())).observe,)
    finally:
        # By itself it would wait for a collector that is away for longer than a worker may take to end.
        closing = threading.Thread(target=provider.shutdown, name="spans", daemon=True)
        closing.start()
        closing.join(PATIENCE_S)


class Spans:
    """An observer of the loop."""

    def __init__(self, tracer: Any, clock: Callable[[], float] = time.time) -> None:
        """`tracer` is OpenTelemetry's; `clock` gives the Unix time in s."""
        self._tracer = tracer
        self._clock = clock

    def observe(self, event: events.Event) -> None:
        """A committed step is a span, and so is one whose transaction failed, as an error."""
        match event:
            case events.StepCommitted(facts, totals, duration_s, at_s):
                counts = {
                    "examples": facts.consumed.get("examples", 0),
                    "labels": facts.consumed.get("labels", 0),
                    "mistakes": sum(facts.mistakes.values()),
                    "updates": sum(facts.updates.values()),
                }
                about = {f"mistakebound.{name}": count for name, count in counts.items()}
                self._end(duration_s, at_s, about | {"mistakebound.partitions": sorted(totals)})
            case events.TransactionEnded(result, duration_s) if result != "committed":
                self._end(duration_s, self._clock(), {"error.type": result}, result)

    def _end(self, duration_s: float, at_s: float, about: Mapping[str, Any], wrong: str = "") -> None:
        start_ns = round((at_s - duration_s) * _NS)
        span = self._tracer.start_span("step", attributes=about, start_time=start_ns)
        if wrong:
            trace: Any = import_module("opentelemetry.trace")
            span.set_status(trace.StatusCode.ERROR, f"the transaction is {wrong}, and the step is made again")
        span.end(round(at_s * _NS))
