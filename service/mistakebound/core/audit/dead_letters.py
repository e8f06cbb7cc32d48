"""Dead letters of one partition, against the records that could not be read."""

from mistakebound.core.audit.findings import Findings
from mistakebound.core.audit.topics_read import Ahead, Source
from mistakebound.core.faults import BadRecord
from mistakebound.core.messages.schema import Decision
from mistakebound.core.records import Lost, Record

OVERSIZE = "oversize"
LOST = ("deleted", "damaged")


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
            told = _told(letter)
            topic, offset = told.get("mistakebound.topic", ""), told.get("mistakebound.offset", "")
            if not offset.isdigit() or int(offset) > self._newest.get(topic, -1):
                return
            self._next.take()
            self._findings.note(
                "dead letters that are there twice, of a torn transaction and of its repetition"
            )

    def expect_gap(self, gap: Lost) -> None:
        """What was lost must be the next dead letter, too; only the worker knew whether it was deleted or damaged."""
        letter = self._next.peek()
        reason = (dict(letter.headers).get("mistakebound.reason") or b"").decode() if letter else ""
        self.expect(gap, reason if reason in LOST else LOST[0])

    def expect(self, record: Record, reason: str) -> None:
        """A record that could not be read must be the next dead letter."""
        self._pass_repeated()
        letter = self._next.peek()
        headers = _told(letter)
        source = headers.get("mistakebound.topic"), headers.get("mistakebound.offset")
        if letter is not None and source == (record.topic, str(record.offset)):
            self._next.take()
            self._newest[record.topic] = record.offset
            found = headers.get("mistakebound.reason")
            parts = ("key", letter.key, record.key), ("value", letter.value, record.value)
            whole = all(
                f"mistakebound.{name}-length" in headers or was == should  # where it was not cut
                for name, was, should in parts
            )
            text = f"reason {found!r} or its content is wrong; {record.location} is {reason}"
            self._findings.check("dead letters", letter.location, found == reason and whole, text)
        elif self._whole:
            where = (record.topic, record.partition, record.offset)
            self._findings.check(
                "dead letters", record.location, False, f"no dead letter of {where} ({reason}) comes next"
            )
        else:
            self._findings.note("dead letters that the log no longer keeps")


def _told(letter: Record | None) -> dict[str, str]:
    """What the worker says in the headers."""
    return {
        name: (value or b"").decode(errors="replace")
        for name, value in (() if letter is None else letter.headers)
        if name.startswith("mistakebound.")
    }
