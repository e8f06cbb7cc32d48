"""A watchdog that lets every call take its time, for clients that never wait."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

UNWATCHED: Any = SimpleNamespace(limit=lambda seconds, what: nullcontext())
"""`mistakebound.log.kafka.watchdog.Watchdog`, as far as reading and writing use it."""
