"""The schemas that a step may read records by, and which of them `outcomes` must hold.

Fetching them is not a step's work: whoever makes the step has put them here. A partition's `outcomes` hold each schema
that a record of the partition names, once in an epoch, with the first step that looks at it: what was decided is decided
again by the same texts, and nobody is asked.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mistakebound.core.ledger.entries import Shared
from mistakebound.core.ledger.ledger import Ledger
from mistakebound.core.messages.dead_letters import record_bytes
from mistakebound.core.messages.formats.schema_text import SchemaText
from mistakebound.core.messages.schema import Outcomes, Version, encode

MOST_SCHEMAS = 500
"""Of a partition and an epoch; each `outcomes` record names all of them."""
PART_NUMBER = 10**9


@dataclass(slots=True)
class Schemas:
    """By id. A schema in `written` is used before one that was fetched: it is what the log is read by."""

    fetched: dict[str, SchemaText | None] = field(default_factory=dict)
    """None: there is none of this id."""
    written: dict[int, dict[str, SchemaText]] = field(default_factory=dict)
    """By partition; at least those that its ledger says `outcomes` has."""

    def known(self, partition: int, schema_id: str, there: Mapping[str, Shared]) -> SchemaText | None:
        """The schema; `there`: those that `outcomes` has."""
        if schema_id in there:
            return self.written[partition][schema_id]
        return self.fetched.get(schema_id)


class StepSchemas:
    """Those of one partition step; it notes which ones must be written with it."""

    def __init__(
        self, schemas: Schemas, partition: int, ledger: Ledger, version: Version, largest: int
    ) -> None:
        """`largest`: bytes of the largest record that `outcomes` takes; `version`: with which the step began."""
        self._schemas, self._partition, self._ledger = schemas, partition, ledger
        self._version, self._largest = version, largest
        self.new: dict[str, SchemaText] = {}
        """To be written."""
        self._unfit: set[str] = set()

    def find(self, schema_id: str) -> SchemaText | None:
        """The schema of this id; None where there is none, or none that `outcomes` could hold."""
        found = self._schemas.known(self._partition, schema_id, self._ledger.schemas)
        if found is None or schema_id in self._ledger.schemas or schema_id in self.new:
            return found
        if schema_id in self._unfit or not self._fits(schema_id, found):
            self._unfit.add(schema_id)
            return None
        self.new[schema_id] = found
        return found

    def close(self) -> dict[str, SchemaText]:
        """The ledger knows from now on that they are written; returns them."""
        if self.new:
            ledger = self._ledger
            self._schemas.written.setdefault(self._partition, {}).update(self.new)
            ledger.schemas = {**ledger.schemas, **dict.fromkeys(self.new, ledger.outcomes_end)}
        return self.new

    def _fits(self, schema_id: str, text: SchemaText) -> bool:
        if len(self._ledger.schemas) + len(self.new) >= MOST_SCHEMAS:
            return False
        part = Outcomes(PART_NUMBER, self._version, [], schemas={schema_id: text})
        return record_bytes(None, encode(part), ()) <= self._largest
