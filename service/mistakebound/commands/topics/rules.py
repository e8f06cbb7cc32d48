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


def findings(
    described: Mapping[Topic, TopicDescription | None], settings: Settings
) -> Iterator[TopicFinding]:
    """Every rule on every topic that it concerns, in topic order."""
    for topic in TOPICS:
        description = described.get(topic)
        if description is None:
            yield TopicFinding(
                topic,
                "exists",
                "missing",
                settings.topic_name(topic),
                "failed",
                "run `mistakebound topics create`",
            )
            continue
        yield _count(topic, description, described)
        # A sqlite file keeps everything as it was written, whatever its topics' settings say.
        if not (settings.log.url or "").startswith("sqlite:"):
            yield from _configured(topic, description, settings.labels.max_delay)


def _count(
    topic: Topic, description: TopicDescription, described: Mapping[Topic, TopicDescription | None]
) -> TopicFinding:
    expected = next(other.partitions for other in map(described.get, TOPICS) if other is not None)
    found = str(description.partitions)
    if description.partitions == expected:
        return TopicFinding(topic, "partitions", found, str(expected), "ok")
    remedy = "counts must be equal and never change: choose a new log.prefix and create all topics anew"
    return TopicFinding(topic, "partitions", found, str(expected), "failed", remedy)


def _configured(
    topic: Topic, description: TopicDescription, max_delay: timedelta | None
) -> Iterator[TopicFinding]:
    config = description.config
    yield _equal(topic, description, "cleanup.policy", "delete")
    if topic == "updates":
        yield _equal(topic, description, "retention.ms", UNLIMITED)
        yield _equal(topic, description, "retention.bytes", UNLIMITED)
    if topic in _KEPT:
        yield _retention(topic, description, max_delay)
        yield _retained_bytes(topic, description)
    if topic in INPUTS:
        yield _equal(topic, description, "message.timestamp.type", "CreateTime")
        yield _future(topic, config.get("message.timestamp.after.max.ms"), description.name)


def _equal(topic: Topic, description: TopicDescription, rule: str, wanted: str) -> TopicFinding:
    found = description.config.get(rule)
    if found is None:
        return _unknown(topic, rule, wanted)
    if found == wanted:
        return TopicFinding(topic, rule, found, wanted, "ok")
    return TopicFinding(topic, rule, found, wanted, "failed", _alter(description.name, rule, wanted))


def _retention(topic: Topic, description: TopicDescription, max_delay: timedelta | None) -> TopicFinding:
    found = description.config.get("retention.ms")
    if max_delay is None:
        wanted = "labels.max_delay plus a day"
        if found == UNLIMITED:
            return TopicFinding(topic, "retention.ms", found, wanted, "ok")
        return TopicFinding(
            topic,
            "retention.ms",
            found or "?",
            wanted,
            "warning",
            "set labels.max_delay, to have this checked",
        )
    least = _ms(max_delay + DAY)
    if found is None:
        return _unknown(topic, "retention.ms", f">= {least}")
    if topic == "outcomes" and found != UNLIMITED and int(found) >= least:
        # A restart reads back to the oldest remembered id; ids are remembered by number, not by age.
        remedy = (
            f"a slow partition may need older ones; {_alter(description.name, 'retention.ms', UNLIMITED)}"
        )
        return TopicFinding(topic, "retention.ms", found, UNLIMITED, "warning", remedy)
    if found == UNLIMITED or int(found) >= least:
        return TopicFinding(topic, "retention.ms", found, f">= {least}", "ok")
    return TopicFinding(
        topic,
        "retention.ms",
        found,
        f">= {least}",
        "failed",
        _alter(description.name, "retention.ms", str(least)),
    )


def _retained_bytes(topic: Topic, description: TopicDescription) -> TopicFinding:
    found = description.config.get("retention.bytes")
    if found is None or found == UNLIMITED:
        return TopicFinding(topic, "retention.bytes", found or "?", UNLIMITED, "ok")
    remedy = (
        f"a size limit deletes regardless of age; {_alter(description.name, 'retention.bytes', UNLIMITED)}"
    )
    return TopicFinding(topic, "retention.bytes", found, UNLIMITED, "warning", remedy)


def _future(topic: Topic, found: str | None, name: str) -> TopicFinding:
    rule, wanted = "message.timestamp.after.max.ms", f"<= {_HOUR_MS}"
    if found is not None and int(found) <= _HOUR_MS:
        return TopicFinding(topic, rule, found, wanted, "ok")
    remedy = f"a record from the future expires waiting examples at once; {_alter(name, rule, str(_HOUR_MS))}"
    return TopicFinding(topic, rule, found or "?", wanted, "warning", remedy)


def _unknown(topic: Topic, rule: str, wanted: str) -> TopicFinding:
    remedy = "the log does not tell; grant DESCRIBE_CONFIGS on the topic, or look yourself"
    return TopicFinding(topic, rule, "?", wanted, "warning", remedy)


def _alter(name: str, rule: str, value: str) -> str:
    return f"kafka-configs.sh --alter --entity-type topics --entity-name {name} --add-config {rule}={value}"


def _ms(value: timedelta) -> int:
    return value // timedelta(milliseconds=1)
