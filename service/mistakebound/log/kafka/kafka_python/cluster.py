"""What the log asks of a cluster beside reads, transactions and membership, whichever client does those."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from mistakebound.log.kafka.kafka_python.admin import Admin
from mistakebound.log.kafka.kafka_python.connect import Connection
from mistakebound.log.kafka.kafka_python.observe import Observer
from mistakebound.log.kafka.names import Names
from mistakebound.log.kafka.watchdog import Watchdog
from mistakebound.settings import Settings


@dataclass(frozen=True)
class Cluster:
    """One cluster and one group on it. Not thread-safe."""

    names: Names
    connection: Connection
    watchdog: Watchdog
    admin: Admin
    observer: Observer

    @classmethod
    def of(cls, settings: Settings, bark: Callable[[str], None]) -> Self:
        """Connect. Raises Unreachable for a silent address, Refused and Misconfigured for wrong settings."""
        names, connection, watchdog = Names.of(settings), Connection(settings), Watchdog(bark)
        admin = Admin(connection, names, watchdog)
        return cls(names, connection, watchdog, admin, Observer(connection, names, watchdog))

    def close(self) -> None:
        """Release connections, and stop watching."""
        self.observer.close()
        self.admin.close()
        self.watchdog.close()
