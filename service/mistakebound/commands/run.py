"""`run`: run the worker until it is told to stop."""

from typing import Annotated, Literal

from typer import Option

from mistakebound.commands.errors import code_of
from mistakebound.commands.options import Config, LogUrl, Sets, open_log, read_settings


def run(
    log_format: Annotated[
        Literal["json", "console"], Option("--log-format", help="How log lines on stderr look.")
    ] = "json",
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Option("--log-level", help="The lowest level that is logged."),
    ] = "info",
    resume_from_outcomes: Annotated[
        bool,
        Option(
            "--resume-from-outcomes",
            help="If the group's offsets were lost or moved, go on from the newest committed outcomes.",
        ),
    ] = False,
    skip_to_oldest: Annotated[
        bool,
        Option(
            "--skip-to-oldest",
            help="Pass input that was deleted or damaged before it was read; the loss is counted.",
        ),
    ] = False,
    predict_missing: Annotated[
        bool,
        Option(
            "--predict-missing",
            help="Predict again, marked, the counted examples whose predictions are missing.",
        ),
    ] = False,
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
) -> None:
    """Predict, learn from late labels, and keep every number provable.

    SIGTERM or Ctrl-C finishes the open step and exits 0; a second one stops at once.
    """
    import structlog

    from mistakebound.config.checks import cautions, require_for_run, require_learner
    from mistakebound.worker import logs
    from mistakebound.worker.http.tls import tls_of
    from mistakebound.worker.memory import share_heaps, spare_the_collector
    from mistakebound.worker.process import stop_on_signals, work
    from mistakebound.worker.takeover import Accepted

    share_heaps()
    logs.configure(log_format, level=log_level)
    settings = read_settings(config, sets, log)
    require_for_run(settings)
    tls_of(settings.http)  # before the log is touched
    log_of_run = structlog.get_logger("mistakebound.run")
    for each in cautions(settings):
        log_of_run.warning("caution", text=each)
    try:
        with stop_on_signals() as stop, open_log(settings) as reached:
            stop.begun = True
            require_learner(settings, reached.partitions)
            spare_the_collector()
            work(
                reached,
                settings,
                lambda idle: stop.is_set(),  # noqa: ARG005 - an idle worker waits for more
                log_format=log_format,
                log_level=log_level,
                accepted=Accepted(resume_from_outcomes, skip_to_oldest, predict_missing),
                interrupted=stop.is_set,
                check_labels=True,
            )
    except Exception as error:
        log_of_run.error("stopped", reason=str(error), exit_code=int(code_of(error)))
        raise
    log_of_run.info("stopped", reason=stop.reason, exit_code=0)
