"""Dead letters of one partition, against the records that could not be read."""

from collections.abc import Iterator
from hashlib import sha256

from mistakebound.core.audit.findings import Findings
from mistakebound.core.audit.topics_read import Ahead, Source
from mistakebound.core.faults import BadRecord
from mistakebound.core.messages.schema import Decision
from mistakebound.core.records import NAME_NOT_UTF8, Lost, Record

OVERSIZE = "oversize"
LOST = ("deleted", "damaged")
OURS = "mistakebound."
"""Headers that begin so are the worker's."""


class DeadLetters:
    """They come in the order in which the records of both inputs were consumed."""

    def __init__(self, source: Source, partition: int, findings: Findings) -> None:
        self._next = Ahead(source.read("dead-letters", partition))
        self._whole = not source.begins_late("dead-letters", partition)
        self._findings = findings
        self._newest: dict[str, int] = {}
        """Input -> the newest of its records whose dead letter was met."""

    def check_fits(self, record: Record, recorded: Decision | None) -> None:
        """Raises BadRecord for a record that was refused as too large; `recorded` is the next recorded decision.

        How large the log's records may be only the worker knew: this is taken on trust.
        """
        if recorded is None or recorded.outcome != "invalid":
            return
        if record.offset != (recorded.label_offset if record.topic == "labels" else recorded.source):
            return
        letter = self._next.peek()
        if letter is not None and dict(letter.headers).get("mistakebound.reason") == OVERSIZE.encode():
            self._findings.note(f"{record.topic} refused as too large for the log were taken on trust")
            raise BadRecord(OVERSIZE, "as recorded")

    def _pass_repeated(self) -> None:
        """A step whose transaction was torn is made again, and so are its dead letters."""
        while (letter := self._next.peek()) is not None:
            topic, offset = (each or "" for each in _source_of(letter))
            if not offset.isdigit() or int(offset) > self._newest.get(topic, -1):
                return
            self._next.take()
            self._findings.note(
                "dead letters that are there twice, of a torn transaction and of its repetition"
            )

    def expect_gap(self, gap: Lost) -> None:
        """What was lost must be the next dead letter, too; only the worker knew whether it was deleted or damaged."""
        letter = self._next.peek()
        reason = "" if letter is None else _said(letter).get(f"{OURS}reason", "")
        self.expect(gap, BadRecord(reason if reason in LOST else LOST[0], ""))

    def expect(self, record: Record, fault: BadRecord) -> None:
        """A record that could not be read must be the next dead letter."""
        self._pass_repeated()
        letter = self._next.peek()
        if letter is not None and _source_of(letter) == (record.topic, str(record.offset)):
            self._next.take()
            self._newest[record.topic] = record.offset
            wrong = "; ".join(_differences(letter, record, fault))
            self._findings.check("dead letters", letter.location, not wrong, f"of {record.location}: {wrong}")
            if _said(letter).get(f"{OURS}detail-sha256") is None:
                self._findings.note("dead letters' details of an earlier version were taken on trust")
        elif self._whole:
            where = (record.topic, record.partition, record.offset)
            self._findings.check(
                "dead letters",
                record.location,
                False,
                f"no dead letter of {where} ({fault.reason}) comes next",
            )
        else:
            self._findings.note("dead letters that the log no longer keeps")

    def left(self) -> Record | None:
        """The next dead letter, of which no record is the cause."""
        self._pass_repeated()
        return self._next.peek()


def _said(letter: Record) -> dict[str, str]:
    """What the worker's own headers say."""
    return {
        name: "absent" if value is None else value.decode(errors="backslashreplace")
        for name, value in letter.headers
        if name.startswith(OURS)
    }


def _source_of(letter: Record) -> tuple[str | None, str | None]:
    said = _said(letter)
    return said.get(f"{OURS}topic"), said.get(f"{OURS}offset")


def _differences(letter: Record, record: Record, fault: BadRecord) -> Iterator[str]:
    """What is not as it should be, in the worker's headers, the sender's, key and value."""
    said, due = _said(letter), _due(letter, record, fault)
    for name in sorted({*said, *due}):
        if said.get(name) != due.get(name):
            yield f"{name} is {said.get(name, 'absent')!r}, should be {due.get(name, 'absent')!r}"
    if [name for name, _ in letter.headers if name.startswith(OURS)] != list(said):
        yield "the worker's headers are there twice"
    theirs = [pair for pair in letter.headers if not pair[0].startswith(OURS)]
    cut = f"{OURS}key-length" in said or f"{OURS}value-length" in said or f"{OURS}headers-dropped" in said
    if theirs != (
        [] if cut else [(_renamed(name), value) for name, value in record.headers if name != NAME_NOT_UTF8]
    ):
        yield "its other headers are not the sender's"
    for name, was, should in ("key", letter.key, record.key), ("value", letter.value, record.value):
        whole = was == should
        part = cut and was is not None and should is not None and should.startswith(was)
        if not (whole or part):
            yield f"its {name} is not the sender's"


def _renamed(name: str) -> str:
    """The sender's own headers never pass for the worker's."""
    return f"original.{name}" if name.startswith(OURS) else name


def _due(letter: Record, record: Record, fault: BadRecord) -> dict[str, str]:
    """What the worker's own headers should say.

    The words of a detail may change with the version, so they are held against the digest that came with them.
    """
    said = _said(letter)
    detail = said.get(f"{OURS}detail", "absent")
    due = {
        "reason": fault.reason,
        "detail": detail,
        "topic": record.topic,
        "partition": str(record.partition),
        "offset": str(record.offset),
        "timestamp": str(record.timestamp_ms),
    }
    if isinstance(record, Lost):  # of which nobody knows the time
        due["timestamp"] = said.get(f"{OURS}timestamp", "absent")
    if f"{OURS}detail-sha256" in said:
        whole = next((value for name, value in letter.headers if name == f"{OURS}detail"), None)
        due["detail-sha256"] = sha256(whole or b"").hexdigest()
    parts = [
        (name, part) for name, part in (("key", record.key), ("value", record.value)) if part is not None
    ]
    if any(f"{OURS}{name}-length" in said for name, _ in parts) or f"{OURS}headers-dropped" in said:
        if record.headers:
            due["headers-dropped"] = str(len(record.headers))
        for name, part in parts:
            due |= {f"{name}-length": str(len(part)), f"{name}-sha256": sha256(part).hexdigest()}
    return {OURS + name: value for name, value in due.items()}
