"""The schemas that buffered records name, fetched before a step reads them: a step itself asks nobody.

1. No step is made while the registry owes an answer for a record that is buffered: the worker waits, live and not ready,
   as it does for a broker.
2. An id that the registry does not know is asked for again after `registry.cache`; a schema never.
3. What `outcomes` has of a partition is used first: a registry is asked only for what the log does not hold.
4. Peers may name any number of ids. The registry is asked for about a second at a time, and the group is polled in between;
   of the ids that it does not know the newest are kept. To a step, an id that is not here is unknown: so the records that
   were asked about are decided by the answer, forgotten or not, and the next one that names the id has it asked for again.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable

import structlog

from mistakebound.core.messages.formats.framing import schema_id_of
from mistakebound.core.messages.formats.schema_text import SchemaText, of_setting
from mistakebound.core.records import Record
from mistakebound.core.step.schemas import Schemas
from mistakebound.log.protocol import Misconfigured, Unreachable
from mistakebound.settings import MessageSettings, Settings
from mistakebound.worker.registry.client import Registry, RegistryAway, RegistryRefused

AWAY_S = 600.0
"""How long a registry may be away before the worker gives up."""
ASK_AGAIN_S = 1.0
"""How soon it is asked again after it failed."""
ASKING_S = 1.0
"""How long it is asked, id after id, before the group is polled again."""
MOST_UNKNOWN = 10_000
"""How many ids are kept that it does not know."""
TELL_EVERY_S = 60.0
"""How often at most the worker's log says that there were such."""
SHOWN = 10
"""How many of them it names."""

_log = structlog.get_logger(__name__)

Fetch = Callable[[str], SchemaText | None]
"""Raises RegistryAway, RegistryRefused."""


class Prefetch:
    """What one worker's records name, and what is known of it."""

    def __init__(self, schemas: Schemas, fetch: Fetch | None, framed: Iterable[str], forget_s: float) -> None:
        """`fetch`: None where no registry is set. `framed`: the inputs whose records name schemas."""
        self.schemas = schemas
        self._fetch, self._framed, self._forget_s = fetch, frozenset(framed), forget_s
        self._wanted: dict[str, set[int]] = {}
        """By id: the partitions of buffered records that name it, and of which it is not known yet."""
        self._forget_at_s: OrderedDict[str, float] = OrderedDict()
        """When an answer that there is none ends; the oldest first, which end first."""
        self._untold: list[str] = []
        """Unknown ids since the last line about them: as many as it names."""
        self._untold_count = 0
        self._tell_at_s = 0.0
        self._away_s: float | None = None
        """Since when it has not answered; None while it does."""
        self._asked_s = 0.0
        self._answered = False
        self.away = False
        """Whether the registry owes an answer."""

    def note(self, records: Iterable[Record]) -> None:
        """These are buffered from now on."""
        if not self._framed:
            return
        for record in records:
            if record.topic in self._framed and (named := schema_id_of(record)) is not None:
                self._wanted.setdefault(named, set()).add(record.partition)

    def complete(self) -> bool:
        """Ask for what is missing; whether a step may be made. If not, the next call goes on where this one ended.

        Raises Unreachable, Misconfigured.
        """
        self._tell_unknown()
        if not self._wanted:
            return True
        now_s = time.monotonic()
        if self._away_s is not None and now_s - self._asked_s < ASK_AGAIN_S:
            return False
        self._asked_s = now_s
        self._forget_ended(now_s)
        for named in [*self._wanted]:
            if self._is_missing(named):
                try:
                    self._ask(named)
                except RegistryRefused as error:
                    if not self._answered:
                        raise Misconfigured(str(error)) from error
                    return self._wait(error, now_s)
                except RegistryAway as error:
                    return self._wait(error, now_s)
            del self._wanted[named]
            if self._wanted and time.monotonic() - now_s >= ASKING_S:
                self._is_back(now_s)
                self.away = True  # so that nobody restarts the worker for it, and has all asked for again
                return False
        self._is_back(now_s)
        return True

    def _is_missing(self, named: str) -> bool:
        if all(named in self.schemas.written.get(p, {}) for p in self._wanted[named]):
            return False
        return named not in self.schemas.fetched

    def _ask(self, named: str) -> None:
        found = None if self._fetch is None else self._fetch(named)
        self._answered = True
        self.schemas.fetched[named] = found
        if found is not None:
            _log.info("schema_fetched", schema=named, type=found.type, references=len(found.references))
            return
        self._forget_at_s[named] = time.monotonic() + self._forget_s
        if len(self._forget_at_s) > MOST_UNKNOWN:
            self._forget_oldest()
        self._untold_count += 1
        if len(self._untold) < SHOWN:
            self._untold.append(named)
        self._tell_unknown()

    def _forget_ended(self, now_s: float) -> None:
        while self._forget_at_s and next(iter(self._forget_at_s.values())) <= now_s:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        named, _ = self._forget_at_s.popitem(last=False)
        del self.schemas.fetched[named]

    def _tell_unknown(self) -> None:
        """The first at once; of all that follow soon after, how many."""
        if not self._untold or time.monotonic() < self._tell_at_s:
            return
        _log.warning("schema_unknown", schemas=self._untold, count=self._untold_count)
        self._untold, self._untold_count = [], 0
        self._tell_at_s = time.monotonic() + TELL_EVERY_S

    def _is_back(self, now_s: float) -> None:
        """It answers."""
        if self._away_s is not None:
            _log.info("registry_back", away_s=round(now_s - self._away_s, 1))
        self.away, self._away_s = False, None

    def _wait(self, error: Exception, now_s: float) -> bool:
        if self._away_s is None:
            self._away_s = now_s
            _log.warning("registry_unreachable", error=str(error))
        self.away = True
        if now_s - self._away_s > AWAY_S:
            raise Unreachable(f"the schema registry has been away for {AWAY_S:g} s: {error}") from error
        return False


def prefetch_of(settings: Settings) -> Prefetch:
    """What the settings ask for; inputs in JSON name no schemas. Raises BadSchema for a file's schema that is none."""
    schemas = Schemas(fetched={**file_schemas(settings.messages)})
    fetch = None if settings.registry.url is None else Registry(settings.registry).schema
    return Prefetch(schemas, fetch, framed_inputs(settings.messages), settings.registry.cache.total_seconds())


def framed_inputs(messages: MessageSettings) -> list[str]:
    """The inputs whose records name their schemas."""
    formats = {
        "examples": (messages.format, messages.examples_schema),
        "labels": (messages.labels_format or messages.format, messages.labels_schema),
    }
    return [topic for topic, (form, file) in formats.items() if form != "json" and file is None]


def file_schemas(messages: MessageSettings) -> dict[str, SchemaText]:
    """By id: the schemas that files gave. Raises BadSchema."""
    found = {}
    for value in (messages.examples_schema, messages.labels_schema):
        if value is not None:
            schema_id, text = of_setting(value)
            if text is not None:
                found[schema_id] = text
    return found
