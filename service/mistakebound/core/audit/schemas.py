"""The schemas that one partition's records of one epoch are read by: those that its `outcomes` hold.

That the registry gave these texts is taken on trust; that the records come to what was decided by them is not.
"""

from collections.abc import Mapping

from mistakebound.core.audit.findings import Findings
from mistakebound.core.audit.partition_steps import RecordedStep
from mistakebound.core.messages.formats.schema_text import SchemaText


class WrittenSchemas:
    """Each is there from the step on with which it was written."""

    def __init__(self, partition: int, findings: Findings) -> None:
        self._partition, self._findings = partition, findings
        self._texts: dict[str, SchemaText] = {}
        self._offsets: dict[str, int] = {}
        self._last: Mapping[str, int] = {}
        self._looked_at: set[str] = set()

    def find(self, schema_id: str) -> SchemaText | None:
        """The schema of this id, as far as it is written."""
        self._looked_at.add(schema_id)
        return self._texts.get(schema_id)

    def begin(self, step: RecordedStep) -> None:
        """A partition step begins. A schema is written once, unless a worker found it no longer in the log."""
        again = sorted(step.schemas.keys() & self._last.keys())
        for name, (text, offset) in step.schemas.items():
            self._texts[name], self._offsets[name] = text, offset
        self._looked_at.clear()
        if step.schemas:
            self._findings.note("schemas that were written as the registry gave them were taken on trust")
            self._check(step, not again, f"schemas {', '.join(again)} are written a second time")

    def end(self, step: RecordedStep) -> None:
        """A partition step ends: what it wrote was needed, and it says where all are that it may rest on."""
        unused = sorted(step.schemas.keys() - self._looked_at)
        if step.schemas:
            self._check(step, not unused, f"no record of its names the schemas {', '.join(unused)}")
        said = step.schemas_at or {}
        if not said and not self._last and not step.schemas:
            return
        known = {name: at for name, at in self._last.items() if name in said} | {
            name: self._offsets[name] for name in step.schemas
        }
        lost = self._last.keys() - said.keys()
        if lost:
            self._findings.note("schemas that a worker no longer found in the log were taken on trust")
        wrong = [
            f"{name} is at {said.get(name)}, should be {known.get(name)}"
            for name in sorted(said.keys() | known.keys())
            if name not in known
            or name not in said
            or not (said[name] == known[name] if name in self._last else 0 <= said[name] <= known[name])
        ]
        self._check(step, not wrong, f"schemas_at: {'; '.join(wrong)}")
        self._last = said

    def _check(self, step: RecordedStep, holds: bool, text: str) -> None:
        self._findings.check("schemas", f"outcomes-{self._partition} offset {step.last_offset}", holds, text)
