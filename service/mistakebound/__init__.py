"""mistakebound: predict at once, learn late and only from mistakes, prove every number.

Where things are: `core` decides (no I/O), `log` remembers (sqlite, Kafka), `worker` runs, `config` reads the
settings, `commands` asks; `settings` holds every default. Public, for users' own tests: `Settings`,
`load_settings`, `replay`, `Report` and what their signatures name (`ConfigurationError`, `RecordingError`).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mistakebound.api import load_settings, replay
    from mistakebound.config.problems import ConfigurationError
    from mistakebound.core.replay.recording import RecordingError
    from mistakebound.core.reporting.report import Report
    from mistakebound.settings import Settings

__all__ = ["ConfigurationError", "RecordingError", "Report", "Settings", "load_settings", "replay"]

_PUBLIC = {
    "ConfigurationError": "mistakebound.config.problems",
    "RecordingError": "mistakebound.core.replay.recording",
    "Report": "mistakebound.core.reporting.report",
    "Settings": "mistakebound.settings",
    "load_settings": "mistakebound.api",
    "replay": "mistakebound.api",
}


def __getattr__(name: str) -> Any:
    """Import what is public when it is asked for, so that `mistakebound --help` stays fast."""
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
