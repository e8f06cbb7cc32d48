"""What the topics must be like for the guarantees to hold. Pure: descriptions in, findings out."""

from collections.abc import Iterator, Mapping
from datetime import timedelta

from mistakebound.commands.json_forms import TopicFinding
from mistakebound.core.records import INPUTS, TOPICS, Topic
from mistakebound.log.protocol import TopicDescription
from mistakebound.settings import Settings

DAY = timedelta(days=1)
UNLIMITED = "-1"
_WEEK = timedelta(days=7)
_HOUR_MS = 3_600_000
_KEPT: tuple[Topic, ...] = ("predictions", "outcomes", "labels")
"""Topics that are read again for a rebuild, or for a label that comes at the last moment."""
_CANNOT_TELL = "the log does not tell; grant DESCRIBE_CONFIGS on the topic, or look yourself"


def wanted_config(settings: Settings) -> dict[Topic, dict[str, str]]:
    """Topic settings that pass every rule, for new topics.

    Without `labels.max_delay` everything is kept for ever. With it, records are kept a day longer than that,
    and at least a week; but `updates` and `outcomes` for ever: the model and its tallies are recounted from
    them, and the oldest remembered id may be of any age.
    """
    delay = settings.labels.max_delay
    limited = UNLIMITED if delay is None else str(_ms(max(delay + DAY, _WEEK)))
    return {
        topic: {
            "cleanup.policy": "delete",
            "message.timestamp.type": "CreateTime",
            "retention.bytes": UNLIMITED,
            "retention.ms": UNLIMITED if topic in ("updates", "outcomes") else limited,
        }
        for topic in TOPICS
    }


def default_partitions(settings: Settings) -> int:
    """How many partitions new topics get, where nothing else says."""
    return 4 if (settings.log.url or "").startswith("kafka") else 1


def findings(
    described: Mapping[Topic, TopicDescription | None], settings: Settings
) -> Iterator[TopicFinding]:
    """Every rule on every topic it concerns, in topic order."""
    for topic in TOPICS:
        description = described.get(topic)
        if description is None:
            remedy = "run `mistakebound topics create`"
            yield TopicFinding(topic, "exists", "missing", settings.topic_name(topic), "failed", remedy)
            continue
        expected = next(other.partitions for other in map(described.get, TOPICS) if other is not None)
        remedy = "counts must be equal and never change: choose a new log.prefix and create all topics anew"
        found = str(description.partitions)
        yield _fail_unless(found == str(expected), topic, "partitions", found, str(expected), remedy)
        # A sqlite file keeps everything as it was written, whatever its topics' settings say.
        if not (settings.log.url or "").startswith("sqlite:"):
            yield from _check_config(topic, description, settings.labels.max_delay)


def _check_config(
    topic: Topic, description: TopicDescription, max_delay: timedelta | None
) -> Iterator[TopicFinding]:
    yield _check_equal(topic, description, "cleanup.policy", "delete")
    if topic == "updates":
        yield _check_equal(topic, description, "retention.ms", UNLIMITED)
        yield _check_equal(topic, description, "retention.bytes", UNLIMITED)
    if topic in _KEPT:
        yield _check_retention(topic, description, max_delay)
        rule, found = "retention.bytes", description.config.get("retention.bytes")
        remedy = f"a size limit deletes regardless of age; {_alter(description, rule, UNLIMITED)}"
        yield _warn_unless(found in (None, UNLIMITED), topic, rule, found, UNLIMITED, remedy)
    if topic in INPUTS:
        yield _check_equal(topic, description, "message.timestamp.type", "CreateTime")
        rule = "message.timestamp.after.max.ms"
        found = description.config.get(rule)
        alter = _alter(description, rule, str(_HOUR_MS))
        remedy = f"a record from the future expires waiting examples at once; {alter}"
        holds = found is not None and int(found) <= _HOUR_MS
        yield _warn_unless(holds, topic, rule, found, f"<= {_HOUR_MS}", remedy)


def _check_equal(topic: Topic, description: TopicDescription, rule: str, wanted: str) -> TopicFinding:
    found = description.config.get(rule)
    if found is None:
        return _warn_unless(False, topic, rule, None, wanted, _CANNOT_TELL)
    return _fail_unless(found == wanted, topic, rule, found, wanted, _alter(description, rule, wanted))


def _check_retention(
    topic: Topic, description: TopicDescription, max_delay: timedelta | None
) -> TopicFinding:
    rule = "retention.ms"
    found = description.config.get(rule)
    unlimited = found == UNLIMITED
    if max_delay is None:
        wanted, remedy = "labels.max_delay plus a day", "set labels.max_delay, to have this checked"
        return _warn_unless(unlimited, topic, rule, found, wanted, remedy)
    least = _ms(max_delay + DAY)
    if found is None:
        return _warn_unless(False, topic, rule, None, f">= {least}", _CANNOT_TELL)
    enough = unlimited or int(found) >= least
    if topic == "outcomes" and enough:
        # A restart reads back to the oldest remembered id; ids are remembered by number, not by age.
        remedy = f"a slow partition may need older ones; {_alter(description, rule, UNLIMITED)}"
        return _warn_unless(unlimited, topic, rule, found, f">= {least}" if unlimited else UNLIMITED, remedy)
    return _fail_unless(enough, topic, rule, found, f">= {least}", _alter(description, rule, str(least)))


def _warn_unless(
    holds: bool, topic: Topic, rule: str, found: str | None, wanted: str, remedy: str
) -> TopicFinding:
    if holds:
        return TopicFinding(topic, rule, found or "?", wanted, "ok")
    return TopicFinding(topic, rule, found or "?", wanted, "warning", remedy)


def _fail_unless(holds: bool, topic: Topic, rule: str, found: str, wanted: str, remedy: str) -> TopicFinding:
    if holds:
        return TopicFinding(topic, rule, found, wanted, "ok")
    return TopicFinding(topic, rule, found, wanted, "failed", remedy)


def _alter(topic: TopicDescription, rule: str, value: str) -> str:
    alter = f"kafka-configs.sh --alter --entity-type topics --entity-name {topic.name}"
    return f"{alter} --add-config {rule}={value}"


def _ms(value: timedelta) -> int:
    return value // timedelta(milliseconds=1)
