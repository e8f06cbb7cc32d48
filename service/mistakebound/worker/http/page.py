"""The status page at `/`, and the same as JSON at `/api/status`: one worker, its own partitions.

Everything comes from the newest snapshot of the loop, the metrics and the worker's health; the loop never
waits for a request. The page is static: its script asks `/api/status` every two seconds.
"""

import time
from dataclasses import fields
from importlib.resources import files

import msgspec

from mistakebound.core.messages.inputs import declared
from mistakebound.core.records import TOPICS
from mistakebound.core.reporting.status import Behind, Status, WorkerStatus, schema, status
from mistakebound.settings import Settings
from mistakebound.worker.health import Health, HealthCheck
from mistakebound.worker.http.first_commands import first_commands
from mistakebound.worker.http.notices import notices
from mistakebound.worker.http.server import Page, Pages
from mistakebound.worker.http.snapshot import Snapshots
from mistakebound.worker.metrics.definitions import build_version
from mistakebound.worker.metrics.metrics import Metrics

_ASSETS = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/classes.js": ("classes.js", "text/javascript; charset=utf-8"),
    "/figures.js": ("figures.js", "text/javascript; charset=utf-8"),
    "/asked.js": ("asked.js", "text/javascript; charset=utf-8"),
    "/model.js": ("model.js", "text/javascript; charset=utf-8"),
    "/tenants.js": ("tenants.js", "text/javascript; charset=utf-8"),
    "/reliability.js": ("reliability.js", "text/javascript; charset=utf-8"),
    "/write.js": ("write.js", "text/javascript; charset=utf-8"),
    "/chart.js": ("chart.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
_JSON = "application/json"


def pages(
    snapshots: Snapshots, settings: Settings, slot: str, metrics: Metrics, health: HealthCheck
) -> Pages:
    """By path: the page with its assets, the status, and its schema."""
    shape = msgspec.json.encode(schema()) + b"\n"

    def answer_status() -> tuple[bytes, str]:
        whole = status_of(snapshots, settings, slot, metrics, health(), time.time())
        return msgspec.json.encode(whole.as_dict()) + b"\n", _JSON

    return {
        **{path: _asset(name, kind) for path, (name, kind) in _ASSETS.items()},
        "/api/status": answer_status,
        "/api/status.schema.json": lambda: (shape, "application/schema+json"),
    }


def _asset(name: str, content_type: str) -> Page:
    body = files("mistakebound.worker.http").joinpath("page_assets", name).read_bytes()
    return lambda: (body, content_type)


def status_of(
    snapshots: Snapshots, settings: Settings, slot: str, metrics: Metrics, health: Health, now_s: float
) -> Status:
    """Everything that is known at this Unix time."""
    shown = snapshots.newest
    learned = shown.learned
    checkpoint = metrics.checkpoint() if settings.checkpoint.url else None
    owned = {each.partition for each in shown.partitions}
    behind = {p: Behind(**both) for p, both in metrics.behind().items() if p in owned and len(both) == 2}
    margin = settings.learner.gamma
    window = None if learned is None else learned.window_margin_upper_bound
    max_delay = settings.labels.max_delay
    own = {field.name for field in fields(WorkerStatus)}
    loop = {field.name: getattr(shown, field.name) for field in fields(shown) if field.name in own}
    return status(
        shown.report,
        behind,
        shown.epoch,
        WorkerStatus(
            slot=slot,
            group=settings.group,
            prefix=settings.log.prefix,
            topics={topic: settings.topic_name(topic) for topic in TOPICS},
            classes=declared(settings.labels),
            first_commands=first_commands(settings),
            version=build_version(),
            state=health.state,
            live=health.live,
            ready=health.ready,
            reason=health.reason,
            now=now_s,
            started_at=snapshots.started_at,
            max_delay_seconds=None if max_delay is None else max_delay.total_seconds(),
            checkpoint=checkpoint,
            hypothesis=None if learned is None else learned.hypothesis,
            no_bound=None if learned is None else learned.no_bound,
            window_margin_upper_bound=window,
            declared_margin=margin,
            **loop,
            notices=notices(
                health,
                shown.report.bounds,
                (margin, shown.report.margin_upper_bound, window),
                shown.partitions,
                shown.history,
                checkpoint,
                snapshots.started_at,
                now_s,
                shown.report,
            ),
        ),
    )
