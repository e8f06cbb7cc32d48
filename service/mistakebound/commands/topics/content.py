"""Would the worker be able to read what is in the inputs? Judged from a sample, by the reader that the worker has. Pure."""

from collections import Counter
from collections.abc import Callable, Sequence

from mistakebound.commands.json_forms import TopicFinding
from mistakebound.core.faults import BadRecord
from mistakebound.core.learners.requirements import accepted
from mistakebound.core.messages import features
from mistakebound.core.messages.formats.schema_text import Known
from mistakebound.core.messages.inputs import InputReader
from mistakebound.core.records import Record, Stream
from mistakebound.settings import Settings

RULE = "content"
_WANTED = "what [messages] and [features] describe"

Read = Callable[[Record], object]
"""Raises BadRecord."""


def readers(settings: Settings, known: Known) -> dict[Stream, Read]:
    """What reads a record of each input under these settings, with the schemas that are known."""
    reader = InputReader(settings.messages, settings.labels, settings.features)
    decoded, check = features.reader(settings.features), accepted(settings)

    def of_example(record: Record) -> None:
        _, raw, tenant = reader.example(record, known)
        x = decoded(raw, tenant)
        if check is not None:
            check(x)

    return {"examples": of_example, "labels": lambda record: reader.label(record, known)}


def finding(stream: Stream, records: Sequence[Record], read: Read) -> TopicFinding:
    """How many of the sample would become dead letters, and why. Failed where all would: nothing can be learned from that."""
    rejected: list[BadRecord] = []
    for record in records:
        try:
            read(record)
        except BadRecord as error:
            rejected.append(error)
    if not rejected:
        found = f"{len(records)} of {len(records)} readable" if records else "no records yet"
        return TopicFinding(stream, RULE, found, _WANTED, "ok")
    reasons = Counter(error.reason for error in rejected)
    listed = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
    details = {error.reason: error.detail for error in reversed(rejected)}
    return TopicFinding(
        stream,
        RULE,
        f"{len(records) - len(rejected)} of {len(records)} readable; {listed}",
        _WANTED,
        "failed" if len(rejected) == len(records) else "warning",
        "; ".join(f"{reason}: {details[reason]}" for reason, _ in reasons.most_common()),
    )


def untried(stream: Stream, why: str) -> TopicFinding:
    """Nothing is known of it."""
    return TopicFinding(stream, RULE, "not read", _WANTED, "warning", why)
