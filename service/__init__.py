"""mistakebound: predict at once, learn late and only from mistakes, prove every number.

Where things are: `core` decides (no I/O), `log` remembers (sqlite, Kafka), `worker` runs, `commands`
asks, `settings` holds every default. For users' own tests: `service.replay`, `Report`, `Settings`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from service.core.report import Report
    from service.settings import Settings
    from service.worker.replaying import replay

__all__ = ["Report", "Settings", "replay"]

_PUBLIC = {
    "replay": "service.worker.replaying",
    "Report": "service.core.report",
    "Settings": "service.settings",
}


def __getattr__(name: str) -> Any:
    """Import what is public when it is asked for, so that `mistakebound --help` stays fast."""
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
