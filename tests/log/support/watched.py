"""What a client is asked while a watchdog looks, and what while none does."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Watched:
    """`mistakebound.log.kafka.watchdog.Watchdog`, as far as clients use it."""

    def __init__(self) -> None:
        self._open = 0
        self.guards = False
        """Whether it is to guard the interpreter."""
        self.seen: set[str] = set()
        """Methods that were called within a limit."""
        self.unseen: set[str] = set()

    @contextmanager
    def limit(self, seconds: float, what: str) -> Iterator[None]:
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1

    def guard_interpreter(self) -> None:
        self.guards = True

    def note(self, name: str) -> None:
        """A method is called now."""
        (self.seen if self._open else self.unseen).add(name)


class Noted:
    """A client whose calls are noted."""

    def __init__(self, client: Any, watchdog: Watched) -> None:
        self._client, self._watchdog = client, watchdog

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        if not callable(found):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            self._watchdog.note(name)
            return found(*args, **kwargs)

        return call
