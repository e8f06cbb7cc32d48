"""Spans: one for each step, with what it did; sent to a collector, which may be away."""

import http.server
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import pytest

from mistakebound.config.checks import inconsistencies
from mistakebound.core.step.facts import StepFacts
from mistakebound.worker import spans
from mistakebound.worker.events import TransactionEnded
from mistakebound.worker.process import work
from mistakebound.worker.spans import Spans, exported
from tests.worker.support.events import committed
from tests.worker.support.working import opened, settings_for, stream

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


@contextmanager
def in_memory() -> Iterator[tuple[Spans, Any]]:
    """The observer, and OpenTelemetry's own exporter for tests."""
    sdk, export = import_module("opentelemetry.sdk.trace"), import_module("opentelemetry.sdk.trace.export")
    exporter = import_module("opentelemetry.sdk.trace.export.in_memory_span_exporter").InMemorySpanExporter()
    provider = sdk.TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(export.SimpleSpanProcessor(exporter))
    yield Spans(provider.get_tracer("test"), clock=lambda: 20.0), exporter
    provider.shutdown()


class Collector:
    """Takes spans as OTLP over HTTP."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        message = import_module(
            "opentelemetry.proto.collector.trace.v1.trace_service_pb2"
        ).ExportTraceServiceRequest
        requests = self.requests

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers["Content-Encoding"] == "gzip":
                    body = import_module("gzip").decompress(body)
                requests.append(message.FromString(body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Nothing."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> "Collector":
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


def test_a_committed_step_is_a_span() -> None:
    """From its beginning to the end of its commit, with counts and no id."""
    facts = StepFacts(consumed={"examples": 900, "labels": 100}, mistakes={"true": 7}, updates={"promote": 5})
    with in_memory() as (observer, exporter):
        observer.observe(committed(facts, {3: None, 1: None}, at_s=10.0))  # type: ignore[dict-item]
        (span,) = exporter.get_finished_spans()
    assert span.name == "step"
    assert (span.start_time, span.end_time) == (9_999_000_000, 10_000_000_000)
    assert dict(span.attributes) == {
        "mistakebound.examples": 900,
        "mistakebound.labels": 100,
        "mistakebound.mistakes": 7,
        "mistakebound.updates": 5,
        "mistakebound.partitions": (1, 3),
    }
    assert span.status.is_unset


def test_a_transaction_that_failed_is_a_span_with_an_error() -> None:
    """One that was committed is its step's span."""
    with in_memory() as (observer, exporter):
        observer.observe(TransactionEnded("committed", 1.0))
        observer.observe(TransactionEnded("fenced", 0.5))
        (span,) = exporter.get_finished_spans()
    assert (span.start_time, span.end_time) == (19_500_000_000, 20_000_000_000)
    assert dict(span.attributes) == {"error.type": "fenced"}
    assert (span.status.is_ok, span.status.description) == (
        False,
        "the transaction is fenced, and the step is made again",
    )


def test_a_worker_sends_a_span_for_each_step_and_none_for_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """To a collector, over HTTP, with whose spans they are; what the environment says of the service wins."""
    settings = settings_for(
        worker={"spans": True, "slot": "w-0"},
        http={"address": ""},
        log={"url": "sqlite::memory:", "prefix": "fraud."},
    )
    with Collector() as collector, opened(settings) as log:
        monkeypatch.setenv(ENDPOINT, collector.url)
        monkeypatch.setenv("OTEL_SERVICE_NAME", "fraud-model")
        records = stream(500)
        log.append(records)
        worker = work(log, settings, lambda idle: idle, log_format="console", log_level="error")
        steps = worker.held
        assert steps is not None
        batches = [each for request in collector.requests for each in request.resource_spans]
        found = [span for batch in batches for scope in batch.scope_spans for span in scope.spans]
    assert 1 <= len(found) < len(records) / 10

    def value(span: Any, name: str) -> int:
        return sum(each.value.int_value for each in span.attributes if each.key == f"mistakebound.{name}")

    assert sum(value(span, "examples") + value(span, "labels") for span in found) == len(records)
    of_worker = {each.key: each.value.string_value for each in batches[0].resource.attributes}
    assert (
        of_worker.items()
        >= {
            "service.name": "fraud-model",
            "service.instance.id": "w-0",
            "mistakebound.prefix": "fraud.",
            "messaging.consumer.group.name": "fraud.mistakebound",
        }.items()
    )


def test_a_collector_that_is_away_holds_up_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last spans are lost, and the worker ends in time."""
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", f"{2 * spans.PATIENCE_S:g}")
    settings = settings_for(worker={"spans": True})
    with exported(settings, "slot") as (observe,):
        observe(committed())
        begun_s = time.monotonic()
    assert time.monotonic() - begun_s < spans.PATIENCE_S + 1
    for sending in (each for each in threading.enumerate() if each.name == "spans"):
        sending.join()  # or it would log what it lost where later tests look


def test_without_the_setting_there_is_no_observer() -> None:
    """And nothing is imported, of what may not be installed."""
    before = set(sys.modules)
    with exported(settings_for(), "slot") as observers:
        assert observers == ()
    assert {name for name in set(sys.modules) - before if name.startswith("opentelemetry")} == set()


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the worker starts."""
    settings = settings_for(worker={"spans": True})
    assert list(inconsistencies(settings)) == []
    monkeypatch.setattr(spans, "EXPORTER", "opentelemetry.nothing.there")
    (problem,) = inconsistencies(settings)
    assert (problem.key, problem.remedy) == ("worker.spans", "Install `mistakebound[otel]`, or leave it out")
