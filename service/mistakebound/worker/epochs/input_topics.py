"""The topics that the group's offsets belong to: named when an epoch begins, compared at every start.

An offset says nothing without its topic. Where an input was deleted and made again, or the settings name another
one, the same offsets belong to other records: some would be skipped, others predicted twice.
"""

from msgspec import UNSET

from mistakebound.core.messages.schema import Epoch, InputTopic
from mistakebound.core.records import INPUTS
from mistakebound.log.protocol import Log, Refused

NO_ID = frozenset("0-")
"""What an id is made of that a broker older than topic ids gives."""


def input_topics(log: Log) -> dict[str, InputTopic]:
    """Both inputs as the log knows them now. Raises Refused where one is missing."""
    found = log.describe()
    named: dict[str, InputTopic] = {}
    for topic in INPUTS:
        known = found[topic]
        if known is None:
            raise Refused(f"topic {topic!r} is missing; create it with `mistakebound topics create`")
        named[topic] = InputTopic(known.name, known.id, known.partitions)
    return named


def refuse_other_topics(log: Log, epoch: Epoch) -> None:
    """Raises Refused, by name, where the inputs are not those that the epoch began with."""
    if epoch.topics is UNSET:
        return
    now = input_topics(log)
    wrong = [
        f"topics.{topic}: {reason}"
        for topic, then in epoch.topics.items()
        if topic in now and (reason := _difference(then, now[topic])) is not None
    ]
    if wrong:
        listed = "\n  ".join(wrong)
        raise Refused(
            f"the committed offsets belong to other topics than the inputs of now (epoch {epoch.epoch} names "
            f"its own):\n  {listed}\nSet the names back; or take another log.prefix, where the new topics are "
            "read from their beginning. Only if they hold the same records at the same offsets, as after a move "
            "to another cluster that keeps offsets: `mistakebound reset --same-records`"
        )


def _difference(then: InputTopic, now: InputTopic) -> str | None:
    if then.name != now.name:
        return f"now {now.name!r}, the offsets are of {then.name!r}"
    if then.id != now.id and not (_unknown(then.id) or _unknown(now.id)):
        return f"{now.name!r} was made anew: its id is {now.id}, the offsets are of the one with {then.id}"
    if then.partitions != now.partitions:
        return f"{now.name!r} has {now.partitions} partitions, the offsets are of {then.partitions}: keys lie elsewhere"
    return None


def _unknown(topic_id: str) -> bool:
    return set(topic_id) <= NO_ID
