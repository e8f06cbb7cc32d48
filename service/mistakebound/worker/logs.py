"""Structured logs on stderr: one event a line, with level and UTC time, as JSON or for people.

Libraries' loggers go the same way from WARNING on. Nothing is logged for each record, and no value that
`redaction` knows is ever logged, whoever logs it.
"""

import logging
import sys
from collections.abc import Callable
from typing import Any, Literal, TextIO

import structlog
from structlog.typing import EventDict, Processor

from mistakebound.worker.colours import are_wanted
from mistakebound.worker.known_secrets import redacted

_configured = "info"
"""The level that `configure` was told last."""

LogFormat = Literal["json", "console"]


def _is_no_move(record: logging.LogRecord) -> bool:
    """A client learns that a group's coordinator is another broker by asking the one before: no warning for anybody."""
    return "NotCoordinatorError" not in record.getMessage()


class _Handler(logging.StreamHandler[TextIO]):
    """Writes to a stream, and calls `count` with the level of every message."""

    def __init__(self, stream: TextIO, count: Callable[[str], None] | None) -> None:
        super().__init__(stream)
        self._count = count

    def emit(self, record: logging.LogRecord) -> None:
        if self._count is not None:
            self._count(record.levelname.lower())
        super().emit(record)

    def format(self, record: logging.LogRecord) -> str:
        return redacted(super().format(record))


def configure(
    log_format: LogFormat = "json",
    *,
    level: str = "info",
    count: Callable[[str], None] | None = None,
    stream: TextIO | None = None,
) -> None:
    """Send `structlog` and the standard library's logging to `stream` (stderr at the time of the call).

    `count` is called with the lower-case level of each message that is written. Calling again replaces
    the earlier set-up, so commands may begin before there are metrics to count into.
    """
    stream = stream if stream is not None else sys.stderr
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.UnicodeDecoder(),
    ]
    handler = _Handler(stream, count)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_render(log_format, stream),
            ],
        )
    )
    root = logging.getLogger()
    for earlier in [each for each in root.handlers if isinstance(each, _Handler)]:
        root.removeHandler(earlier)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("mistakebound").setLevel(level.upper())
    global _configured  # noqa: PLW0603 - as the logging that it speaks of, there is one for the process
    _configured = level
    # Every failure of a broker reaches us as an error, and so does every fencing: we say what it means, or nothing where
    # it is meant, as when workers that start together begin the first epoch. The client would log each attempt as well.
    for name in ("kafka.net", "kafka.producer"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    coordinator = logging.getLogger("kafka.coordinator")
    coordinator.removeFilter(_is_no_move)  # where this is called again
    coordinator.addFilter(_is_no_move)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def set_level(level: str | None) -> None:
    """From now on log this level and those above it; None: as `configure` was told. Said in a line of its own."""
    name = _configured if level is None else level
    logging.getLogger("mistakebound").setLevel(name.upper())
    structlog.get_logger(__name__).warning("log_level", level_now=name)


def _redact_inside(value: Any) -> Any:
    """Redact strings inside before they are quoted once more: what is quoted twice is not recognised."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, dict):
        return {name: _redact_inside(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_redact_inside(inner) for inner in value]
    return value


def _redact(logger: Any, name: str, event: EventDict) -> EventDict:  # noqa: ARG001 - a processor
    return {key: _redact_inside(value) for key, value in event.items()}


def _render(log_format: LogFormat, stream: TextIO) -> list[Processor]:
    if log_format == "json":
        # Without locals: they hold settings and records.
        trace = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
        return [
            structlog.processors.ExceptionRenderer(trace),
            _redact,
            structlog.processors.JSONRenderer(default=str),
        ]
    return [
        structlog.dev.ConsoleRenderer(
            colors=are_wanted(stream), exception_formatter=structlog.dev.plain_traceback
        )
    ]
