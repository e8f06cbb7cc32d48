"""What the topics must be like for the guarantees to hold. Pure: descriptions in, findings out."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from mistakebound.core.records import INPUTS, TOPICS, Topic
from mistakebound.log.protocol import TopicDescription
from mistakebound.settings import Settings

DAY = timedelta(days=1)
UNLIMITED = "-1"
_WEEK = timedelta(days=7)
_HOUR_MS = 3_600_000
_KEPT: tuple[Topic, ...] = ("predictions", "outcomes", "labels")
"""Topics a rebuild, or a label that comes at the last moment, reads again."""


@dataclass(frozen=True, slots=True)
class TopicFinding:
    """One rule on one topic."""

    topic: str
    """Logical name."""
    rule: str
    """The broker's name of the setting, or a word of ours."""
    found: str
    wanted: str
    verdict: Literal["ok", "warning", "failed"]
    remedy: str = ""
    """Empty when ok."""


def wanted_config(settings: Settings) -> dict[Topic, dict[str, str]]:
    """Topic settings that pass every rule, for new topics.

    Without `labels.max_delay` nothing is ever deleted. With it, a day more than that and at least a week
    is kept; `updates` and `outcomes` are kept for ever: the model and its tallies are recounted from
    them, and the oldest remembered id may be of any age.
    """
    common = {
        "cleanup.policy": "delete",
        "message.timestamp.type": "CreateTime",
        "retention.bytes": UNLIMITED,
    }
    delay = settings.labels.max_delay
    limited = UNLIMITED if delay is None else str(_ms(max(delay + DAY, _WEEK)))
    forever: tuple[Topic, ...] = ("updates", "outcomes")
    return {topic: {**common, "retention.ms": UNLIMITED if topic in forever else limited} for topic in TOPICS}


def default_partitions(settings: Settings) -> int:
    """Of new topics, where nothing else says how many."""
    return 4 if (settings.log.url or "").startswith("kafka") else 1


def findings(
    described: Mapping[Topic, TopicDescription | None], settings: Settings
) -> Iterator[TopicFinding]:
    """Every rule on every topic that it concerns, in topic order."""
    for topic in TOPICS:
        description = described.get(topic)
        if description is None:
            remedy = "run `mistakebound topics create`"
            yield TopicFinding(topic, "exists", "missing", settings.topic_name(topic), "failed", remedy)
            continue
        yield _check_count(topic, description, described)
        # A sqlite file keeps everything as it was written, whatever its topics' settings say.
        if not (settings.log.url or "").startswith("sqlite:"):
            yield from _check_config(topic, description, settings.labels.max_delay)


def _check_count(
    topic: Topic, description: TopicDescription, described: Mapping[Topic, TopicDescription | None]
) -> TopicFinding:
    expected = next(other.partitions for other in map(described.get, TOPICS) if other is not None)
    remedy = "counts must be equal and never change: choose a new log.prefix and create all topics anew"
    return _judge(
        topic,
        "partitions",
        str(description.partitions),
        str(expected),
        holds=description.partitions == expected,
        remedy=remedy,
    )


def _check_config(
    topic: Topic, description: TopicDescription, max_delay: timedelta | None
) -> Iterator[TopicFinding]:
    yield _check_equal(topic, description, "cleanup.policy", "delete")
    if topic == "updates":
        yield _check_equal(topic, description, "retention.ms", UNLIMITED)
        yield _check_equal(topic, description, "retention.bytes", UNLIMITED)
    if topic in _KEPT:
        yield _check_retention(topic, description, max_delay)
        yield _check_retained_bytes(topic, description)
    if topic in INPUTS:
        yield _check_equal(topic, description, "message.timestamp.type", "CreateTime")
        yield _check_future(topic, description)


def _check_equal(topic: Topic, description: TopicDescription, rule: str, wanted: str) -> TopicFinding:
    found = description.config.get(rule)
    if found is None:
        return _cannot_tell(topic, rule, wanted)
    remedy = _alter(description.name, rule, wanted)
    return _judge(topic, rule, found, wanted, holds=found == wanted, remedy=remedy)


def _check_retention(
    topic: Topic, description: TopicDescription, max_delay: timedelta | None
) -> TopicFinding:
    rule = "retention.ms"
    found = description.config.get(rule)
    unlimited = found == UNLIMITED
    if max_delay is None:
        wanted, remedy = "labels.max_delay plus a day", "set labels.max_delay, to have this checked"
        return _judge(topic, rule, found, wanted, holds=unlimited, otherwise="warning", remedy=remedy)
    least = _ms(max_delay + DAY)
    if found is None:
        return _cannot_tell(topic, rule, f">= {least}")
    enough = unlimited or int(found) >= least
    if topic == "outcomes" and enough:
        # A restart reads back to the oldest remembered id; ids are remembered by number, not by age.
        remedy = f"a slow partition may need older ones; {_alter(description.name, rule, UNLIMITED)}"
        wanted = f">= {least}" if unlimited else UNLIMITED
        return _judge(topic, rule, found, wanted, holds=unlimited, otherwise="warning", remedy=remedy)
    remedy = _alter(description.name, rule, str(least))
    return _judge(topic, rule, found, f">= {least}", holds=enough, remedy=remedy)


def _check_retained_bytes(topic: Topic, description: TopicDescription) -> TopicFinding:
    rule = "retention.bytes"
    found = description.config.get(rule)
    remedy = f"a size limit deletes regardless of age; {_alter(description.name, rule, UNLIMITED)}"
    holds = found in (None, UNLIMITED)
    return _judge(topic, rule, found, UNLIMITED, holds=holds, otherwise="warning", remedy=remedy)


def _check_future(topic: Topic, description: TopicDescription) -> TopicFinding:
    rule = "message.timestamp.after.max.ms"
    found = description.config.get(rule)
    alter = _alter(description.name, rule, str(_HOUR_MS))
    remedy = f"a record from the future expires waiting examples at once; {alter}"
    holds = found is not None and int(found) <= _HOUR_MS
    return _judge(topic, rule, found, f"<= {_HOUR_MS}", holds=holds, otherwise="warning", remedy=remedy)


def _cannot_tell(topic: Topic, rule: str, wanted: str) -> TopicFinding:
    remedy = "the log does not tell; grant DESCRIBE_CONFIGS on the topic, or look yourself"
    return _judge(topic, rule, None, wanted, holds=False, otherwise="warning", remedy=remedy)


def _judge(
    topic: Topic,
    rule: str,
    found: str | None,
    wanted: str,
    *,
    holds: bool,
    otherwise: Literal["warning", "failed"] = "failed",
    remedy: str,
) -> TopicFinding:
    return TopicFinding(
        topic, rule, found or "?", wanted, "ok" if holds else otherwise, "" if holds else remedy
    )


def _alter(name: str, rule: str, value: str) -> str:
    return f"kafka-configs.sh --alter --entity-type topics --entity-name {name} --add-config {rule}={value}"


def _ms(value: timedelta) -> int:
    return value // timedelta(milliseconds=1)
