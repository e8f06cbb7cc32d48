"""What topics must be like, rule by rule, judged from their descriptions."""

from datetime import timedelta

import pytest

from mistakebound.commands.json_forms import TopicFinding
from mistakebound.commands.topics.rules import findings, wanted_config
from mistakebound.core.records import TOPICS, Topic
from mistakebound.log.protocol import TopicDescription
from mistakebound.settings import LabelSettings, LogSettings, Settings

DAY_MS = 86_400_000
WITH_DELAY = Settings(log=LogSettings(url="kafka://x:1"), labels=LabelSettings(max_delay=timedelta(days=7)))
WITHOUT_DELAY = Settings(log=LogSettings(url="kafka://x:1"))


def _described(settings: Settings = WITH_DELAY, **changes: str) -> dict[Topic, TopicDescription | None]:
    """Topics as `topics create` makes them on a broker, with changes written topic__setting=value."""
    wanted = wanted_config(settings)
    described: dict[Topic, TopicDescription | None] = {}
    for topic in TOPICS:
        config = {"message.timestamp.after.max.ms": "3600000", **wanted[topic]}
        for change, value in changes.items():
            name, _, rule = change.partition("__")
            if name == topic.replace("-", "_"):
                config[rule.replace("_", ".")] = value
        described[topic] = TopicDescription(topic, "id", 4, config)
    return described


def _not_ok(
    described: dict[Topic, TopicDescription | None], settings: Settings = WITH_DELAY
) -> list[TopicFinding]:
    return [finding for finding in findings(described, settings) if finding.verdict != "ok"]


@pytest.mark.parametrize("settings", [WITH_DELAY, WITHOUT_DELAY])
def test_created_topics_pass(settings: Settings) -> None:
    """`topics create` makes what `topics check` wants."""
    assert _not_ok(_described(settings), settings) == []


def test_without_a_delay_nothing_is_ever_deleted() -> None:
    """Only the user knows how long labels take."""
    assert {config["retention.ms"] for config in wanted_config(WITHOUT_DELAY).values()} == {"-1"}


def test_updates_and_outcomes_are_kept_for_ever() -> None:
    """The model and the tallies are recounted from them."""
    wanted = wanted_config(WITH_DELAY)
    assert {topic for topic in TOPICS if wanted[topic]["retention.ms"] == "-1"} == {"updates", "outcomes"}


@pytest.mark.parametrize(
    ("change", "value", "topic", "verdict"),
    [
        ("examples__cleanup_policy", "compact", "examples", "failed"),
        ("updates__cleanup_policy", "compact,delete", "updates", "failed"),
        ("dead_letters__cleanup_policy", "compact", "dead-letters", "failed"),
        ("updates__retention_ms", str(3650 * DAY_MS), "updates", "failed"),
        ("updates__retention_bytes", "1000000", "updates", "failed"),
        ("predictions__retention_ms", str(8 * DAY_MS - 1), "predictions", "failed"),
        ("outcomes__retention_ms", str(7 * DAY_MS), "outcomes", "failed"),
        ("outcomes__retention_ms", str(8 * DAY_MS), "outcomes", "warning"),
        ("labels__retention_ms", "0", "labels", "failed"),
        ("labels__retention_bytes", "1000000", "labels", "warning"),
        ("examples__message_timestamp_type", "LogAppendTime", "examples", "failed"),
        ("labels__message_timestamp_type", "LogAppendTime", "labels", "failed"),
        ("labels__message_timestamp_after_max_ms", "3600001", "labels", "warning"),
    ],
)
def test_a_setting_that_breaks_a_guarantee_is_found(
    change: str, value: str, topic: str, verdict: str
) -> None:
    """Each with a remedy to copy."""
    found = _not_ok(_described(**{change: value}))
    assert [(finding.topic, finding.verdict) for finding in found] == [(topic, verdict)]
    assert "--add-config" in found[0].remedy


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("predictions__retention_ms", str(8 * DAY_MS)),
        ("labels__retention_ms", "-1"),
        ("examples__retention_ms", "1"),
        ("dead_letters__retention_ms", "1"),
        ("predictions__message_timestamp_type", "LogAppendTime"),
    ],
)
def test_a_setting_that_breaks_nothing_is_left_alone(change: str, value: str) -> None:
    """The check judges only what the guarantees need."""
    assert _not_ok(_described(**{change: value})) == []


def test_limited_retention_without_a_known_delay_is_a_warning() -> None:
    """A value that the log does not tell cannot be judged."""
    described = _described(WITHOUT_DELAY, labels__retention_ms="604800000")
    found = _not_ok(described, WITHOUT_DELAY)
    assert [(finding.topic, finding.verdict) for finding in found] == [("labels", "warning")]


def test_a_missing_topic_is_found() -> None:
    """With the command that makes it."""
    described = _described()
    described["outcomes"] = None
    (finding,) = _not_ok(described)
    assert (finding.topic, finding.verdict) == ("outcomes", "failed")
    assert "topics create" in finding.remedy


def test_unequal_partition_counts_are_found() -> None:
    """The odd one is named."""
    described = _described()
    described["labels"] = TopicDescription("labels", "id", 6, wanted_config(WITH_DELAY)["labels"])
    assert ("labels", "partitions", "6", "4") in [
        (finding.topic, finding.rule, finding.found, finding.wanted) for finding in _not_ok(described)
    ]
