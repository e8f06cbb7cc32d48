"""`demo`: 1,250 real web pages as a stream with late labels, through the real worker."""

import threading
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mistakebound.commands.options import Config, Json, LogUrl, Sets, loaded

if TYPE_CHECKING:
    from mistakebound.core.records import Outgoing
    from mistakebound.core.replay.replay import Row
    from mistakebound.log.protocol import Log
    from mistakebound.settings import Settings

LOG = "sqlite:mistakebound-demo.db"
OUTSTANDING = 20
"""Labels come this many examples late."""
SPACING_MS = 500
"""Record time between two records: labels are about 20 s late."""
CHUNK = 50


def demo(
    once: Annotated[bool, typer.Option("--once", help="End after one pass, with a summary.")] = False,
    rate: Annotated[
        float | None,
        typer.Option("--rate", metavar="N", help="Examples a second; default 50; with --once no limit."),
    ] = None,
    only_producer: Annotated[
        bool,
        typer.Option(
            "--only-producer",
            help="Only send the pages, lap after lap under new ids: for workers that run elsewhere.",
        ),
    ] = False,
    late: Annotated[
        float | None,
        typer.Option(
            "--late", metavar="S", help="With --only-producer: labels come S seconds late; default 10."
        ),
    ] = None,
    flip_labels: Annotated[
        bool,
        typer.Option("--flip-labels", help="With --only-producer: the opposite labels, a drift to watch."),
    ] = False,
    withhold_labels: Annotated[
        bool,
        typer.Option(
            "--withhold-labels",
            help="With --only-producer: no labels; the next producer sends those that are missing.",
        ),
    ] = False,
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
    json: Json = False,
) -> None:
    """Watch the worker learn which web pages are phishing, from labels that come late.

    Kill it and start it again: it goes on where it was, and every number stays provable.
    """
    import sys

    from mistakebound.commands.output import message
    from mistakebound.commands.progress import Progress, summary
    from mistakebound.commands.topics.rules import wanted_config
    from mistakebound.config.checks import require_learner
    from mistakebound.core.replay.replay import report_of
    from mistakebound.log import open_log
    from mistakebound.worker.process import stop_on_signals, work

    settings, explicit = _settings(config, sets, log)
    if only_producer:
        _only_produce(
            settings,
            50.0 if rate is None else rate,
            once=once,
            late=late,
            flip_labels=flip_labels,
            withhold_labels=withhold_labels,
        )
        return
    _refuse_without_producer(late=late is not None, flip_labels=flip_labels, withhold_labels=withhold_labels)
    pace = rate if rate is not None else (0.0 if once else 50.0)
    progress = Progress(message)
    sent = threading.Event()
    failures: list[Exception] = []
    with stop_on_signals() as stop, open_log(settings) as reached:
        partitions = settings.log.partitions or (4 if (settings.log.url or "").startswith("kafka") else 1)
        require_learner(settings, partitions)
        reached.create_topics(partitions, wanted_config(settings))
        require_learner(settings, reached.partitions)
        message(f"log {settings.log.url}, {reached.partitions} partitions")
        producer = threading.Thread(
            target=_produce, args=(reached, settings, pace, stop, sent, failures), name="demo", daemon=True
        )
        producer.start()
        worker = work(
            reached,
            settings,
            lambda idle: stop.is_set() or bool(failures) or (once and idle and sent.is_set()),
            log_format="console",
            log_level="warning",
            next_free=not explicit,
            serving=lambda url: message(f"status page on {url}/, metrics on {url}/metrics"),
            stepped=lambda held: progress.look(held.state.ledgers.values()),
        )
        producer.join(timeout=5)
        if failures:
            raise failures[0]
        assert worker.held is not None
        report = report_of(worker.held.state)
    progress.finish(report)
    if json:
        sys.stdout.buffer.write(report.to_json())
    else:
        print(summary(report))


def _refuse_without_producer(**given: bool) -> None:
    """Options that only the endless stream has."""
    from mistakebound.commands.exit_codes import CommandError, ExitCode

    if named := [f"--{name.replace('_', '-')}" for name, told in given.items() if told]:
        raise CommandError(ExitCode.USAGE, f"{' and '.join(named)}: only with --only-producer")


def _only_produce(
    settings: "Settings",
    rate: float,
    *,
    once: bool,
    late: float | None,
    flip_labels: bool,
    withhold_labels: bool,
) -> None:
    """The stream without a worker, until a signal. The topics must exist."""
    from mistakebound.commands.demo.endless import LATE_S, flipped, laps, produce
    from mistakebound.commands.exit_codes import CommandError, ExitCode
    from mistakebound.commands.output import message
    from mistakebound.core.records import INPUTS
    from mistakebound.log import open_log
    from mistakebound.worker.process import stop_on_signals

    if once:
        raise CommandError(ExitCode.USAGE, "--once ends and --only-producer never does: leave one out")
    if rate <= 0:
        raise CommandError(ExitCode.USAGE, f"--rate {rate:g}: give examples a second, above 0")
    if late is not None and late < 0:
        raise CommandError(ExitCode.USAGE, f"--late {late:g}: give seconds, 0 or more")
    stream = laps(rows())
    with stop_on_signals() as stop, open_log(settings) as reached:
        message(f"sending {rate:g} examples a second to {settings.log.url}")
        produce(
            reached,
            settings,
            flipped(stream) if flip_labels else stream,
            rate,
            stop,
            late_s=LATE_S if late is None else late,
            topics=INPUTS[:1] if withhold_labels else INPUTS,
        )


def _settings(config: "Config", sets: "Sets", log: "LogUrl") -> "tuple[Settings, bool]":
    """The demo's own defaults under whatever was given; and whether http.address was given."""
    from datetime import timedelta

    found = loaded(config, sets, log)
    given = {key for key, origin in found.origins.items() if origin.kind != "default"}
    settings = found.settings
    url = settings.log.url or LOG
    on_kafka = url.startswith("kafka")
    prefix = settings.log.prefix or ("demo." if on_kafka else "")
    changes: dict[str, Any] = {"log": settings.log.model_copy(update={"url": url, "prefix": prefix})}
    if settings.labels.max_delay is None:
        changes["labels"] = settings.labels.model_copy(update={"max_delay": timedelta(days=1)})
    if "batch.max_records" not in given:
        changes["batch"] = settings.batch.model_copy(update={"max_records": CHUNK})
    if "checkpoint.url" not in given and not on_kafka:
        beside = "" if ":memory:" in url else url.removeprefix("sqlite:") + "-checkpoints"
        changes["checkpoint"] = settings.checkpoint.model_copy(update={"url": beside})
    return settings.model_copy(update=changes), "http.address" in given


def rows() -> "list[Row]":
    """The pages, in file order."""
    from mistakebound.commands.labelled_files import from_csv, text_lines

    return list(
        from_csv(text_lines(files("mistakebound.commands.demo").joinpath("data/phishing.csv").read_bytes()))
    )


def _produce(
    log: "Log",
    settings: "Settings",
    rate: float,
    stop: threading.Event,
    sent: threading.Event,
    failures: list[Exception],
) -> None:
    """Send what an earlier run has not sent yet: what is in the topics already tells how far it came."""
    try:
        chunk: list[Outgoing] = []
        for record in unsent(log, settings):
            chunk.append(record)
            if rate <= 0 and len(chunk) >= CHUNK:
                log.append(chunk)
                chunk = []
            elif rate > 0:
                log.append(chunk)
                chunk = []
                stop.wait(0.5 / rate)  # an example and a label make two records
            if stop.is_set():
                return
        log.append(chunk)
        sent.set()
    except Exception as error:  # noqa: BLE001 - the worker's thread ends with it
        failures.append(error)


def unsent(log: "Log", settings: "Settings") -> "list[Outgoing]":
    """The stream's records that the topics do not hold yet, stamped from the time of the first run on."""
    import time

    from mistakebound.core.records import INPUTS, Outgoing
    from mistakebound.core.replay.replay import as_stream
    from mistakebound.log.partitioner import partition_of

    def place(number: int, key: bytes, partitions: int) -> int:  # noqa: ARG001 - as `as_stream` calls it
        return partition_of(key, partitions)

    partitions = log.partitions
    held = {(topic, p): log.high_watermark(topic, p) for topic in INPUTS for p in range(partitions)}
    first = next(iter(log.read("examples", 0, 0)), None) if held["examples", 0] else None
    stream = list(as_stream(rows(), settings, partitions, OUTSTANDING, place))
    begun_ms = (
        round(time.time() * 1000) - SPACING_MS * len(stream)
        if first is None
        else first.timestamp_ms - SPACING_MS * stream[0].timestamp_ms
    )
    return [
        Outgoing(one.topic, one.partition, one.key, one.value, (), begun_ms + SPACING_MS * one.timestamp_ms)
        for one in stream
        if one.offset >= held[one.topic, one.partition]
    ]
