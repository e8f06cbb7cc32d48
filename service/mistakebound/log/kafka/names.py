"""What our topics are called on the broker."""

from collections.abc import Mapping
from dataclasses import dataclass

from mistakebound.core.records import TOPICS, Topic
from mistakebound.log.protocol import Refused
from mistakebound.settings import Settings

BrokerPartition = tuple[str, int]
"""A partition as the broker knows it: the topic's name there, and the number."""


@dataclass(frozen=True, slots=True)
class Names:
    """Logical topics and their names on the broker, both ways."""

    to_broker: Mapping[Topic, str]
    to_logical: Mapping[str, Topic]

    @classmethod
    def of(cls, settings: Settings) -> "Names":
        """Raise Refused where two logical topics share one name."""
        to_broker: dict[Topic, str] = {topic: settings.topic_name(topic) for topic in TOPICS}
        to_logical = {name: topic for topic, name in to_broker.items()}
        if len(to_logical) < len(to_broker):
            listed = ", ".join(f"{topic}={name}" for topic, name in to_broker.items())
            raise Refused(f"topics must have names of their own; `topics.*` gives {listed}")
        return cls(to_broker, to_logical)
