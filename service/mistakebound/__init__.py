"""mistakebound: predict at once, learn late and only from mistakes, prove every number.

Where things are: `core` decides (no I/O), `log` remembers (sqlite, Kafka), `worker` runs, `config` reads the
settings, `commands` is the command line; `settings` holds every default. The names in `__all__`, and what their
signatures name, are public, for users' own tests; everything else is private and may change with any version.
"""

from importlib import import_module

TYPE_CHECKING = (
    False  # checkers know the name; `typing` takes its time, and `early_stop` comes before what does
)
if TYPE_CHECKING:
    from mistakebound.api import load_settings, replay
    from mistakebound.config.problems import ConfigurationError
    from mistakebound.core.replay.recorded import NotAsRecorded
    from mistakebound.core.replay.recording import RecordingError
    from mistakebound.core.reporting.report import Report
    from mistakebound.settings import Settings
else:
    _HOMES = {
        "ConfigurationError": "mistakebound.config.problems",
        "NotAsRecorded": "mistakebound.core.replay.recorded",
        "RecordingError": "mistakebound.core.replay.recording",
        "Report": "mistakebound.core.reporting.report",
        "Settings": "mistakebound.settings",
        "load_settings": "mistakebound.api",
        "replay": "mistakebound.api",
    }

    def __getattr__(name):
        """Import a public name when it is first used, so that `mistakebound --help` stays fast."""
        if name in _HOMES:
            return getattr(import_module(_HOMES[name]), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__():
        return list(__all__)


__all__ = [
    "ConfigurationError",
    "NotAsRecorded",
    "RecordingError",
    "Report",
    "Settings",
    "load_settings",
    "replay",
]
