"""A log under test: where it is, how to open it again, and how to make it forget its oldest records."""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from mistakebound.core.records import TOPICS, Topic
from mistakebound.log import open_log
from mistakebound.log.protocol import Log
from mistakebound.settings import LogSettings, Settings, TopicSettings

PARTITIONS = 3
KEEP = {topic: {"retention.ms": "-1"} for topic in TOPICS}  # the tests' record times lie in the past
Forget = Callable[[str, int, int], None]


@dataclass
class Place:
    """One broker, file or memory; `prefix` belongs to the test."""

    kind: str
    url: str
    prefix: str
    forget_records: Forget
    opened: list[Log] = field(default_factory=list)

    def open(self, more: str = "", **topics: str) -> Log:
        """Open the log, with `more` behind the test's prefix, without creating topics."""
        log = open_log(self.settings(more, **topics))
        self.opened.append(log)
        return log

    def create(self, more: str = "", partitions: int = PARTITIONS, **topics: str) -> Log:
        """Open the log and create its topics."""
        log = self.open(more, **topics)
        log.create_topics(partitions, KEEP)
        return log

    def settings(self, more: str = "", **topics: str) -> Settings:
        return Settings(
            log=LogSettings(url=self.url, prefix=self.prefix + more), topics=TopicSettings(**topics)
        )

    def forget(self, topic: Topic, partition: int, before: int) -> None:
        """Remove the records of a partition below offset `before`, as retention would."""
        self.forget_records(self.settings().topic_name(topic), partition, before)

    def close(self) -> None:
        for log in reversed(self.opened):
            log.close()


def forget_in_file(path: Path) -> Forget:
    def forget(name: str, partition: int, before: int) -> None:
        connection = sqlite3.connect(path)
        forget_in(connection, name, partition, before)
        connection.commit()
        connection.close()

    return forget


def forget_in(connection: sqlite3.Connection, name: str, partition: int, before: int) -> None:
    find = "SELECT sides.id FROM sides JOIN topics ON topics.id = topic WHERE name = ? AND partition = ?"
    side = connection.execute(find, (name, partition)).fetchone()[0]
    connection.execute(
        "DELETE FROM records WHERE place >= ? << 44 AND place < (? << 44) + ?", (side, side, before)
    )
    connection.execute("UPDATE sides SET low = ? WHERE id = ?", (before, side))


def forget_on_broker(bootstrap: str) -> Forget:
    def forget(name: str, partition: int, before: int) -> None:
        from kafka import KafkaAdminClient, TopicPartition

        admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        try:
            admin.delete_records({TopicPartition(name, partition): before})
        finally:
            admin.close()

    return forget
