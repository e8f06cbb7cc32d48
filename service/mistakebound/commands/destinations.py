"""Where `send` puts records: in which partition each belongs, and whether the topics are somebody's live inputs.

An example and its label meet only in partitions of the same number, so records go where the stream's own producers
would put them, or nowhere. Everything is decided before the first record is sent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mistakebound.commands.errors import CommandError
from mistakebound.commands.output import number_of
from mistakebound.core.records import INPUTS, Outgoing, Record, Topic
from mistakebound.exit_codes import ExitCode
from mistakebound.log.partitioner import PARTITIONERS, Partitioner
from mistakebound.log.placement import (
    KeyForm,
    Placement,
    Rule,
    homes,
    id_of,
    key_for,
    placement,
    sample,
)
from mistakebound.log.protocol import Log, Refused
from mistakebound.settings import Settings

_NAME_IT = f"say by which partitioner your producers place keys: --partitioner {'|'.join(PARTITIONERS)}"
_KEYED_FILE = "send a recording instead (`mistakebound record`), which has keys; or give records their id as key everywhere"


@dataclass(frozen=True, slots=True)
class MessageDestination:
    """Where messages of one topic go, and under which keys."""

    rule: Rule
    key_form: KeyForm
    partitions: int
    why: str
    homes: Mapping[str, int] = field(default_factory=dict)
    """Ids of examples whose partition was seen: a label goes there, whatever the rule says."""

    @property
    def told(self) -> str:
        """For the user."""
        return f"{number_of(self.partitions, 'partition')}: {self.why}"

    def outgoing(self, topic: Topic, record_id: str, value: bytes) -> Outgoing | None:
        """The record; None where the rule or the form of key is not for this id."""
        key = key_for(record_id, self.key_form)
        place = self.homes.get(record_id, self.rule.place(key, record_id, self.partitions))
        return None if key is None or place < 0 else Outgoing(topic, place, key, value)


def for_messages(log: Log, settings: Settings, topic: Topic, asked: Partitioner | None) -> MessageDestination:
    """As the topics' own records are placed. Raises CommandError (exit code 5) where that cannot be told."""
    count = log.partition_count(topic)
    if asked is not None:
        return MessageDestination(Rule(asked), "text", count, f"by {asked}, as --partitioner says")
    if count == 1:
        return MessageDestination(Rule("murmur2"), "text", 1, "nothing to choose")
    found = {each: _sampled(log, each) for each in INPUTS}
    placed = {
        each: placement(records, log.partition_count(each), settings.messages.id)
        for each, records in found.items()
        if records is not None
    }
    told = next((each for each in INPUTS if each in placed and placed[each].records), None)
    if told is None:
        if hidden := [settings.topic_name(each) for each in INPUTS if found[each] is None]:
            raise _refused(
                f"how keys are placed cannot be told: {hidden[0]} may not be read", "grant Read on it"
            )
        return MessageDestination(Rule("murmur2"), "text", count, "by murmur2: there are no records yet")
    name, seen = settings.topic_name(told), placed[told]
    rule, key_form = _proven(name, seen)
    known = homes(found["examples"] or (), settings.messages.id) if topic == "labels" else {}
    return MessageDestination(rule, key_form, count, f"by {seen}, as those in {name}", known)


def _sampled(log: Log, topic: Topic) -> list[Record] | None:
    """None where the topic may not be read."""
    try:
        return sample(log, topic, log.partition_count(topic))
    except Refused:
        return None


def _proven(name: str, seen: Placement) -> tuple[Rule, KeyForm]:
    """The one rule, and how keys spell ids. Raises CommandError."""
    if seen.rule is None:
        if seen.keyed:
            wrong = f"the keys in {name} are placed by no partitioner that is known here"
            raise _refused(f"{wrong} (at best {seen.share:.0%} of {seen.records} by one)", _KEYED_FILE)
        raise _refused(f"records in {name} have no keys, and lie in no order of their ids", _KEYED_FILE)
    if seen.also and seen.rule != Rule("murmur2"):
        fitting = ", ".join(map(str, (seen.rule, *seen.also)))
        raise _refused(f"too few records in {name} ({seen.records}): {fitting} explain them all", "")
    if seen.keyed and seen.rule.hashed == "key" and seen.key_form is None:
        raise _refused(f"the keys in {name} are not their ids, so the key of an id is not known", _KEYED_FILE)
    return seen.rule, seen.key_form or "text"


@dataclass(frozen=True, slots=True)
class RecordingDestination:
    """Where a recording's records go: each to its partition there, by one rule, or as messages under their ids."""

    partitions: int
    pointer: str
    why: str
    rule: Rule | None = None
    messages: Mapping[Topic, MessageDestination] = field(default_factory=dict)
    """By topic, where ids become keys."""

    @property
    def told(self) -> str:
        """For the user."""
        return f"{number_of(self.partitions, 'partition')}: {self.why}"

    def outgoing(self, record: Record) -> Outgoing:
        """The record at its time, with its headers. One without an id is read by nobody, and may lie anywhere."""
        # A record without a time has none to keep: the log stamps it.
        at = record.timestamp_ms if record.timestamp_ms >= 0 else None
        place, key = record.partition, record.key
        if self.rule is not None or self.messages:
            found = id_of(record, self.pointer)
            place = -1
            if self.rule is not None and found is not None:
                place = self.rule.place(key or found.encode(), found, self.partitions)
            elif found is not None and record.value is not None:
                message = self.messages[record.topic].outgoing(record.topic, found, record.value)
                place, key = (place, key) if message is None else (message.partition, message.key)
        return Outgoing(record.topic, place, key, record.value, record.headers, at)


def for_recording(
    log: Log,
    settings: Settings,
    recorded: int,
    first: Sequence[Record],
    topics: Sequence[Topic],
    asked: Partitioner | None,
    rekey: bool,
) -> RecordingDestination:
    """Where the records go: to their own partitions, or, where there are more or fewer, by the rule that placed them.

    `recorded` is the recording's partition count, `first` its first records. `asked` names a partitioner instead;
    with `rekey` each record goes where a message with its id would. Raises CommandError (exit code 5).
    """
    counts = {topic: log.partition_count(topic) for topic in topics}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{settings.topic_name(topic)} {count}" for topic, count in counts.items())
        raise _refused(
            f"the topics have unequal partition counts: {listed}", "make topics anew, with one count"
        )
    count, pointer = counts[topics[0]], settings.messages.id
    if rekey:
        messages = {topic: for_messages(log, settings, topic, asked) for topic in topics}
        return RecordingDestination(
            count, pointer, f"ids become keys, {messages[topics[0]].why}", messages=messages
        )
    if asked is not None:
        return RecordingDestination(count, pointer, f"by {asked}, as --partitioner says", Rule(asked))
    if count == recorded:
        return RecordingDestination(count, pointer, "each in its partition of the recording")
    rule, why = _recorded_rule(settings, recorded, first)
    _agree_with_those_there(log, settings, topics, rule)
    return RecordingDestination(count, pointer, f"the recording has {recorded}: by {why}", rule)


def _recorded_rule(settings: Settings, recorded: int, first: Sequence[Record]) -> tuple[Rule, str]:
    """The rule that placed the recording's examples and labels alike. Raises CommandError."""
    if recorded == 1:
        return Rule("murmur2"), "murmur2 (one partition does not tell)"
    seen = [
        placement([record for record in first if record.topic == topic], recorded, settings.messages.id)
        for topic in INPUTS
    ]
    fitting = [(each.rule, *each.also) for each in seen if each.records]
    if not fitting:
        return Rule("murmur2"), "murmur2 (there are no records)"
    shared = [rule for rule in fitting[0] if rule is not None and all(rule in each for each in fitting)]
    if not shared or (len(shared) > 1 and shared[0] != Rule("murmur2")):
        found = f"examples {seen[0]}, labels {seen[1]}"
        raise _refused(
            f"which partitioner placed the recording's keys cannot be told ({found})",
            "send it to topics of as many partitions, where each record keeps its place",
        )
    return shared[0], f"{shared[0]}, as the recording's"


def _agree_with_those_there(log: Log, settings: Settings, topics: Sequence[Topic], rule: Rule) -> None:
    """Raise CommandError where records that are there already were placed by another rule."""
    for topic in topics:
        count = log.partition_count(topic)
        there = placement(_sampled(log, topic) or (), count, settings.messages.id)
        if there.records and rule not in (there.rule, *there.also):
            name = settings.topic_name(topic)
            raise _refused(f"the recording's keys are placed by {rule}, those in {name}: {there}", "")


def _refused(wrong: str, remedy: str) -> CommandError:
    otherwise = f"{remedy}, or {_NAME_IT}" if remedy else _NAME_IT
    return CommandError(f"{wrong}. Nothing was sent: {otherwise}", ExitCode.REFUSED)


# --- live inputs ------------------------------------------------------------------------------------


def refuse_live(log: Log, settings: Settings, topics: Sequence[Topic], first: Sequence[Record] = ()) -> None:
    """Raise CommandError (exit code 5) where another prefix's worker reads these topics, or where the recording, which
    begins with `first`, was made from them: its records would be there twice."""
    for group, inputs in log.other_readers().items():
        if live := [settings.topic_name(topic) for topic in topics if topic in inputs]:
            raise CommandError(
                f"{', '.join(live)}: live input of another worker, group {group!r}, which would get every record. "
                f"Nothing was sent: give these settings topics of their own (topics.examples, topics.labels: where they "
                "are set, log.prefix does not change them), or add --yes",
                ExitCode.REFUSED,
            )
    for record in _edges(first, topics):
        if record.partition < log.partition_count(record.topic) and _is_there(log, record):
            raise CommandError(
                f"{settings.topic_name(record.topic)} is the topic that the recording was made from: its record "
                f"{record.location} is there, and would be twice. Nothing was sent: name other topics (log.prefix; "
                "topics.examples and topics.labels, where they are set), or add --yes",
                ExitCode.REFUSED,
            )


def _edges(first: Sequence[Record], topics: Sequence[Topic]) -> list[Record]:
    """The first and the last that is at hand of each topic: retention may have taken the first."""
    own = [[record for record in first if record.topic == topic] for topic in topics]
    return [records[index] for records in own if records for index in (0, -1)]


def _is_there(log: Log, record: Record) -> bool:
    low = log.low_watermark(record.topic, record.partition)
    if not low <= record.offset < log.high_watermark(record.topic, record.partition):
        return False
    try:
        there = list(log.read(record.topic, record.partition, record.offset, record.offset + 1, wait_s=5.0))
    except Refused:
        return False
    return there == [record]
