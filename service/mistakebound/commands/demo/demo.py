"""`demo`: 1,250 real web pages as a stream with late labels, for the real worker."""

import os
import sys
import threading
from typing import TYPE_CHECKING, Annotated

from typer import Option

from mistakebound.commands.errors import CommandError, code_of
from mistakebound.commands.options import Config, Json, LogUrl, Sets, open_log, print_cautions
from mistakebound.commands.output import number_of, print_message

if TYPE_CHECKING:
    from mistakebound.commands.demo.own_settings import Own
    from mistakebound.core.reporting.report import Report
    from mistakebound.settings import Settings

RATE = 50.0
"""Examples a second."""


def demo(
    once: Annotated[bool, Option("--once", help="End after one pass, with a summary.")] = False,
    rate: Annotated[
        float | None,
        Option("--rate", metavar="N", help="Examples a second; default 50; with --once no limit."),
    ] = None,
    only_producer: Annotated[
        bool,
        Option(
            "--only-producer", help="Only send the pages, again and again, for workers that run elsewhere."
        ),
    ] = False,
    late: Annotated[
        float | None,
        Option("--late", metavar="S", help="With --only-producer: labels come S seconds late; default 10."),
    ] = None,
    flip_labels: Annotated[
        bool,
        Option(
            "--flip-labels",
            help="The opposite labels for the second half of the pages, or with --only-producer for all: a drift to watch.",
        ),
    ] = False,
    withhold_labels: Annotated[
        bool,
        Option("--withhold-labels", help="With --only-producer: no labels; the next producer sends them."),
    ] = False,
    yes: Annotated[
        bool, Option("--yes", help="Confirm a prefix, topics or a group that --set names for the demo.")
    ] = False,
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
    json: Json = False,
) -> None:
    """Watch the worker learn which web pages are phishing, from labels that come late.

    Kill it and start it again: it goes on where it stopped, and every number stays provable. Its log is a file of its
    own, with --log its topics are: of mistakebound.toml and of variables it takes options of the Kafka client only.
    """
    from mistakebound.commands.demo.own_settings import declare_margin, read_own
    from mistakebound.commands.render_report import render_report

    own = read_own(config, sets or (), log, os.environ, confirmed=yes)
    settings = own.settings
    for each in own.ignored:
        print_message(f"ignored for the demo, {each}; --set and --log are for the demo")
    print_cautions(settings)
    endless = {"--late": late is not None, "--withhold-labels": withhold_labels}
    if only_producer:
        if once:
            raise CommandError("--once ends and --only-producer never does: leave one out")
        _only_produce(settings, rate, late, flip_labels=flip_labels, withhold_labels=withhold_labels)
        return
    if named := [name for name, is_given in endless.items() if is_given]:
        raise CommandError(f"{' and '.join(named)}: only with --only-producer")
    if flip_labels:
        own = declare_margin(own)
    pace = rate if rate is not None else (0.0 if once else RATE)
    report = _work(own, pace, once=once, flip_labels=flip_labels)
    if json:
        sys.stdout.buffer.write(report.to_json())
    else:
        print(render_report(report, brief=True))


def _work(own: "Own", pace: float, *, once: bool, flip_labels: bool) -> "Report":
    """Send the pages and run a worker, until a signal or, `once`, until all is worked off."""
    from mistakebound.commands.demo.pages import must_be_the_demos, read_pages, send, unsent
    from mistakebound.commands.progress import Progress
    from mistakebound.commands.topics.rules import default_partitions, wanted_config
    from mistakebound.config.checks import require_learner
    from mistakebound.core.faults import BadLog
    from mistakebound.core.replay.replay import report_of
    from mistakebound.log.protocol import Refused
    from mistakebound.worker.process import stop_on_signals, work

    settings = own.settings
    progress = Progress(print_message)
    sent = threading.Event()
    failures: list[Exception] = []
    with stop_on_signals() as stop, open_log(settings) as reached:
        stop.begun = True
        partitions = settings.log.partitions or default_partitions(settings)
        require_learner(settings, partitions)
        reached.create_topics(partitions, wanted_config(settings))
        require_learner(settings, reached.partitions)
        must_be_the_demos(reached, settings)
        print_message(f"log {settings.log.url}, {number_of(reached.partitions, 'partition')}")
        left = unsent(reached, settings, flip_labels=flip_labels)
        if not left:
            print_message(f"all {len(read_pages()):,} pages are in the log already, and none is sent again")
            print_message(f"to begin the demo afresh, {_afresh(settings)}")

        def produce() -> None:
            try:
                if send(reached, left, pace, stop):
                    sent.set()
            except Exception as error:  # noqa: BLE001 - the worker's thread ends with it
                failures.append(error)

        producer = threading.Thread(target=produce, name="demo", daemon=True)
        producer.start()
        try:
            worker = work(
                reached,
                settings,
                lambda idle: stop.is_set() or bool(failures) or (once and idle and sent.is_set()),
                log_format="console",
                log_level="warning",
                next_free=not own.is_address_given,
                serving=lambda url: print_message(f"status page on {url}/, metrics on {url}/metrics"),
                stepped=lambda held: progress.observe(held.state.ledgers.values()),
            )
        except (BadLog, Refused) as error:
            raise CommandError(
                f"{error}\nOr begin the demo afresh: {_afresh(settings)}.", code_of(error)
            ) from None
        producer.join(timeout=5)
        if failures:
            raise failures[0]
        assert worker.held is not None
        report = report_of(worker.held.state)
    progress.finish(report)
    return report


def _afresh(settings: "Settings") -> str:
    """How a demo that cannot go on begins again: what it did is worth nothing."""
    url = settings.log.url or ""
    if url.startswith("sqlite:"):
        file, folder = url.removeprefix("sqlite:"), settings.checkpoint.url
        return f"delete {file} and what begins with {file}- beside it ({folder} too)"
    return "give it another prefix: --set log.prefix=NAME. --yes"


def _only_produce(
    settings: "Settings", rate: float | None, late: float | None, *, flip_labels: bool, withhold_labels: bool
) -> None:
    """Send the stream without running a worker, until a signal. The topics must exist."""
    from mistakebound.commands.demo.endless import LATE_S, produce, repeat
    from mistakebound.commands.demo.pages import flip, must_be_the_demos, read_pages
    from mistakebound.core.records import INPUTS
    from mistakebound.worker.process import stop_on_signals

    rate = RATE if rate is None else rate
    if rate <= 0:
        raise CommandError(f"--rate {rate:g}: give examples a second, above 0")
    if late is not None and late < 0:
        raise CommandError(f"--late {late:g}: give seconds, 0 or more")
    stream = repeat(read_pages())
    with stop_on_signals() as stop, open_log(settings) as reached:
        stop.begun = True
        must_be_the_demos(reached, settings)
        print_message(f"sending {rate:g} examples a second to {settings.log.url}")
        produce(
            reached,
            settings,
            flip(stream) if flip_labels else stream,
            rate,
            stop,
            late_s=LATE_S if late is None else late,
            topics=INPUTS[:1] if withhold_labels else INPUTS,
        )
