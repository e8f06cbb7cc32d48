"""One worker as a process: its metrics and health, its checkpoints, its signals, its loop."""

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from types import FrameType
from typing import Any

import structlog

from mistakebound.core.checkpoint_content import settings_digest
from mistakebound.core.messages.labels import spelled
from mistakebound.core.records import TOPICS
from mistakebound.exit_codes import ExitCode
from mistakebound.log.protocol import Log
from mistakebound.settings import Settings
from mistakebound.worker import early_stop, logs, spans
from mistakebound.worker.announcements import Announcements
from mistakebound.worker.checkpoints.schedule import CheckpointSchedule
from mistakebound.worker.epochs.epochs import epoch_without_waiting
from mistakebound.worker.events import Observe, after_commits, show_all
from mistakebound.worker.first_rejections import FirstRejections
from mistakebound.worker.health import HealthLimits, Heartbeat
from mistakebound.worker.http.page import pages
from mistakebound.worker.http.server import serve
from mistakebound.worker.http.snapshot import Snapshots
from mistakebound.worker.http.tls import tls_of
from mistakebound.worker.idle_patterns import IdlePatterns
from mistakebound.worker.loop import Worker
from mistakebound.worker.memory import give_back
from mistakebound.worker.metrics.definitions import build_version
from mistakebound.worker.metrics.metrics import Metrics
from mistakebound.worker.metrics.model_insight import ModelInsight
from mistakebound.worker.misplaced_labels import MisplacedLabels
from mistakebound.worker.registry.prefetch import prefetch_of
from mistakebound.worker.takeover import NOTHING, Accepted, WorkerState

DRAIN_S = 10.0
"""How long a drain may take."""

LEVELS: dict[int, str | None] = {signal.SIGUSR1: "debug", signal.SIGUSR2: None}
"""Signals that change what is logged; None: as at the start."""

_log = structlog.get_logger(__name__)


class Stop(threading.Event):
    """Set by a signal."""

    def __init__(self) -> None:
        super().__init__()
        self.reason = ""
        """The signal's name."""
        self.begun = False
        """Whether the log is open. Before that there is nothing to finish, and a signal ends the process with 0 at once:
        a log that is away is waited for."""


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """An event that SIGTERM or SIGINT sets. A second signal ends the process at once, and so does a drain
    that takes longer than 10 s: no result is lost, the log has them all. SIGUSR1 has the worker log all it can, SIGUSR2
    what it was started with.

    A separate thread receives the signals: Python's handlers would wait while the main thread is inside a
    library, for example while sqlite waits for its lock.
    """
    stop = Stop()
    waking, woken = socket.socketpair()
    waking.setblocking(False)

    def heard() -> int:
        """The next signal that asks for an end; 0 where none comes any more."""
        while (number := woken.recv(1)[0]) in LEVELS:
            logs.set_level(LEVELS[number])
        return number

    def watch() -> None:
        number = heard()
        if closing.is_set():
            return
        stop.reason = signal.Signals(number).name
        stop.set()
        if not stop.begun:
            os._exit(ExitCode.DONE)
        woken.settimeout(DRAIN_S)
        try:
            heard()
        except TimeoutError:
            os._exit(ExitCode.GAVE_UP)
        if not closing.is_set():
            os._exit(ExitCode.INTERRUPTED)

    closing = threading.Event()
    watcher = threading.Thread(target=watch, name="signals", daemon=True)
    watcher.start()
    # First the wake-up, then the handlers: with a handler that does nothing and no wake-up a signal would be lost.
    wakeup = signal.set_wakeup_fd(waking.fileno())
    before = {number: signal.signal(number, _ignore) for number in (signal.SIGTERM, signal.SIGINT, *LEVELS)}
    try:
        yield stop
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():  # the work is over: nothing ends early any more
            signal.signal(number, signal.SIG_IGN if handler is early_stop.end else handler)
        closing.set()
        waking.send(b"\0")
        watcher.join()
        waking.close()
        woken.close()


def _ignore(number: int, frame: FrameType | None) -> None:
    """Does nothing: the watching thread gets a wake-up byte, which is written only if there is a handler."""


def work(
    log: Log,
    settings: Settings,
    stopping: Callable[[bool], bool],
    *,
    log_format: logs.LogFormat,
    log_level: str = "info",
    accepted: Accepted = NOTHING,
    interrupted: Callable[[], bool] = lambda: False,
    next_free: bool = False,
    serving: Callable[[str], None] | None = None,
    stepped: Callable[[WorkerState], None] | None = None,
    check_labels: bool = False,
) -> Worker:
    """Run one worker until `stopping(idle)`, with its pages and checkpoints; then return it.

    `next_free`: if the address is busy, take the next free port; `serving` is called with the URL; without it the URL
    is logged. `stepped` is called with the worker's state each time steps were committed and no other is under way. `check_labels`: first
    look in the topics whether labels lie where their examples are. Raises what `Worker.run` raises, AddressError
    and TlsError.
    """
    slot = settings.worker.slot or socket.getfqdn()
    classes = [spelled(value) for value in (settings.labels.positive, settings.labels.negative)]
    metrics = Metrics(
        classes,
        settings.learner.kind,
        settings_digest(settings),
        prefix=settings.log.prefix,
        worker={"group": settings.group, "slot": slot}
        | {topic: settings.topic_name(topic) for topic in ("examples", "labels")},
    )
    metrics.limits(settings.labels.max_waiting, settings.labels.max_parked)
    logs.configure(log_format, level=log_level, count=metrics.logged)
    _log.info("start", **_described(log, settings, slot))
    heartbeat, insight = Heartbeat(), ModelInsight(metrics)
    observers: list[Observe] = [
        metrics.observe,
        heartbeat.observe,
        insight.observe,
        FirstRejections().observe,
        give_back,
    ]
    if settings.features.include or settings.features.exclude:
        observers.append(IdlePatterns(settings).observe)
    health = partial(heartbeat.health, HealthLimits())
    metrics.readiness(lambda: health().ready)
    observers.append(Announcements(health).observe)
    explain, server = (lambda: 0), None
    if settings.http.address:
        snapshots = Snapshots(settings.learner.kind, lambda: insight.learned)
        observers.append(snapshots.observe)
        explain = snapshots.allowance
        served = pages(snapshots, settings, slot, metrics, health)
        tls = tls_of(settings.http)
        server = serve(settings.http.address, metrics, health, served, tls=tls, next_free=next_free)
    with server or nullcontext(), spans.exported(settings, slot) as of_steps:
        observers += of_steps
        if server is not None and serving is not None:
            serving(server.url)
        elif server is not None:
            _log.info("serving", page=f"{server.url}/", metrics=f"{server.url}/metrics")
        checkpoints = CheckpointSchedule(log, settings, slot, metrics)
        observers.append(checkpoints.observe)
        if stepped is not None:
            observers.append(after_commits(stepped))
        misplaced = MisplacedLabels(log, settings, show_all(*observers), interrupted=interrupted)
        observers.append(misplaced.observe)
        if check_labels:
            misplaced.begin()
        worker = Worker(
            log,
            settings,
            slot,
            observe=show_all(*observers),
            checkpoints=checkpoints,
            stopping=stopping,
            explain=explain,
            accepted=accepted,
            interrupted=interrupted,
            prefetch=prefetch_of(settings),
        )
        worker.run()
    return worker


def _described(log: Log, settings: Settings, slot: str) -> dict[str, Any]:
    """What an operator asks first of a worker that has started."""
    client = (settings.log.url or "").partition(":")[0]
    names = {"kafka": "kafka-python", "kafka+confluent": "confluent-kafka"}
    return {
        "version": build_version(),
        "client": names.get(client, client),
        "prefix": settings.log.prefix,
        "topics": {topic: settings.topic_name(topic) for topic in TOPICS},
        "partitions": log.partitions,
        "group": settings.group,
        "slot": slot,
        "learner": settings.learner.kind,
        "epoch": epoch_without_waiting(log),
    }
