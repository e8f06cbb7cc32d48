"""What a session of either Kafka library owes the worker, on members that need no broker (`tests/log/support/members.py`)."""

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError
from kafka.coordinator.base import MemberState

from mistakebound.core.records import Position, Record, Transaction
from mistakebound.log.kafka.confluent.fetch import ConfluentFetcher
from mistakebound.log.kafka.confluent.session import ConfluentSession
from mistakebound.log.kafka.joining import Joining
from mistakebound.log.kafka.kafka_python.session import KafkaPythonSession
from mistakebound.log.kafka.write import Writer
from mistakebound.log.protocol import Polled, Refused, StaleGeneration, TransactionFailed, Unreachable
from tests.log.support.members import NAMES, FakeKafkaConsumer, FakeLibrdkafka, FakeSender, Group, Message
from tests.log.support.watched import Noted

EXAMPLES, LABELS = ("examples", 0), ("labels", 0)


@dataclass
class Joined:
    """A session, what its library gave it, and the group."""

    session: Any
    member: Any
    group: Group

    def given(self, *partitions: int, **more: Any) -> Polled:
        """Poll once after the group has assigned these."""
        self.member.give(*partitions, **more)
        polled: Polled = self.session.poll(0.0)
        return polled

    def placed(self, *partitions: int) -> int:
        """The same, and read each from its beginning; returns the generation."""
        generation = self.given(*partitions).generation
        for p in partitions:
            self.session.seek(p, 0, 0)
        return generation

    def shares_out(self) -> None:
        """The group begins anew; who gets what is not known yet."""
        if isinstance(self.member, FakeLibrdkafka):
            self.member.revoke()
        else:
            self.member._coordinator.rejoin_needed = True

    def wait_a_minute(self) -> None:
        """So that librdkafka's session looks at its topics again."""
        if isinstance(self.member, FakeLibrdkafka):
            self.session._looked_s -= 60

    def values(self) -> list[tuple[str, bytes | None]]:
        """What a poll brings."""
        records: list[Record] = self.session.poll(0.0).records
        return [(record.topic, record.value) for record in records]


def kafka_python(group: Group) -> Joined:
    member = group.member = FakeKafkaConsumer(group)
    cluster: Any = group
    return Joined(KafkaPythonSession(cluster, group.partitions, "slot", _writer(group)), member, group)


def librdkafka(group: Group) -> Joined:
    made: list[FakeLibrdkafka] = []

    def make(errors: Any) -> Any:
        made.append(FakeLibrdkafka(group, errors))
        return Noted(made[-1], group.watchdog)

    cluster: Any = group
    session = ConfluentSession(make, cluster, group.partitions, _writer(group), look_every_s=30.0)
    return Joined(session, made[0], group)


def _writer(group: Group) -> Writer:
    watchdog: Any = group.watchdog
    return Writer(lambda _: FakeSender(group), "an id", watchdog)


@pytest.fixture(params=[kafka_python, librdkafka], ids=["kafka-python", "librdkafka"])
def join(request: pytest.FixtureRequest) -> Callable[[Group], Joined]:
    joined: Callable[[Group], Joined] = request.param
    return joined


@pytest.fixture
def joined(join: Callable[[Group], Joined]) -> Joined:
    return join(Group())


def test_positions_are_read_once_what_is_open_under_the_slot_has_ended(joined: Joined) -> None:
    """A transaction whose end is not known may have been committed: without its positions its work would be done twice."""
    joined.placed(0)
    joined.group.committed = {0: Position(3, 3)}
    joined.group.pending = {0: Position(5, 4, "m")}

    assert joined.session.committed([0]) == {0: Position(5, 4, "m")}


def test_a_step_is_committed_with_the_membership_of_its_own_generation(joined: Joined) -> None:
    """The library may have a fresher one by then, and the broker would take it, though others own the partition."""
    generation = joined.placed(0)
    own = joined.member.membership
    joined.member.membership = "of a generation that nobody has polled"

    joined.session.commit(Transaction((), {0: Position(1, 1)}), generation)

    assert joined.group.memberships == [own]


def test_what_is_paused_is_not_delivered_and_is_not_lost(joined: Joined) -> None:
    """Also while the other input goes on; after `resume` every record comes, once."""
    joined.group.put("examples", 0, b"e0")
    joined.group.put("labels", 0, b"l0")
    joined.placed(0)
    joined.session.pause([EXAMPLES])

    assert joined.values() == [("labels", b"l0")]
    joined.group.put("examples", 0, b"e1")
    assert joined.values() == []

    joined.session.resume([EXAMPLES])
    assert joined.values() == [("examples", b"e0"), ("examples", b"e1")]
    assert joined.values() == []


def test_kafka_python_delivers_again_what_it_had_fetched_when_it_was_paused() -> None:
    """It sets that aside, and looks for it only while nothing is in line, not even a fetch that is exhausted."""
    joined = kafka_python(Group())
    joined.member.most = 1
    joined.group.put("examples", 0, b"e0", b"e1")
    joined.group.put("labels", 0, b"l0")
    joined.placed(0)
    assert joined.values() == [("examples", b"e0")]
    joined.session.pause([EXAMPLES])
    assert joined.values() == [("labels", b"l0")]

    joined.session.resume([EXAMPLES])

    assert joined.values() == [("examples", b"e1")]


def test_an_assignment_brings_no_records_and_waits_for_seek(joined: Joined) -> None:
    """Also the next one: what was read of a partition that left, or came back, belongs to nobody."""
    joined.group.put("examples", 0, b"e0")
    first = joined.given(0, 1)
    assert (first.partitions, list(first.records)) == ((0, 1), [])
    assert joined.values() == []
    joined.session.seek(0, 0, 0)
    assert joined.values() == [("examples", b"e0")]

    joined.group.put("examples", 0, b"e1")
    second = joined.given(0)
    assert second.generation > first.generation
    assert (second.partitions, list(second.records)) == ((0,), [])
    assert joined.values() == []
    joined.session.seek(0, 0, 0)
    assert joined.values() == [("examples", b"e0"), ("examples", b"e1")]


def test_a_new_generation_knows_of_no_pause(joined: Joined) -> None:
    """Whoever takes the partition over would not know to resume it."""
    joined.group.put("examples", 0, b"e0")
    joined.placed(0)
    joined.session.pause([EXAMPLES])
    joined.placed(0)

    assert joined.values() == [("examples", b"e0")]


def test_a_place_that_is_sought_while_paused_is_kept_until_it_is_resumed(joined: Joined) -> None:
    """Placing a partition does not resume it by the way."""
    joined.group.put("examples", 0, b"e0", b"e1")
    joined.placed(0)
    assert joined.values() == [("examples", b"e0"), ("examples", b"e1")]
    joined.session.pause([EXAMPLES])
    joined.session.seek(0, 1, 0)
    assert joined.values() == []

    joined.session.resume([EXAMPLES])
    assert joined.values() == [("examples", b"e1")]


def test_what_is_not_owned_is_neither_placed_nor_committed(joined: Joined) -> None:
    """Nothing is sent then."""
    generation = joined.placed(0)

    with pytest.raises(StaleGeneration, match="partition 1 is not owned"):
        joined.session.seek(1, 0, 0)
    with pytest.raises(StaleGeneration, match="partition 1 is not owned"):
        joined.session.commit(Transaction((), {1: Position(1, 1)}), generation)
    assert joined.group.memberships == []


def test_a_step_of_an_earlier_generation_is_not_sent(joined: Joined) -> None:
    """Whatever the partition: it left in between, and others may have worked on it."""
    earlier = joined.placed(0)
    joined.placed(0)

    with pytest.raises(StaleGeneration):
        joined.session.commit(Transaction((), {0: Position(1, 1)}), earlier)
    assert joined.group.memberships == []


def test_kafka_python_refuses_a_step_as_soon_as_its_library_has_heard_of_another_assignment() -> None:
    """Its own thread takes the assignment; the membership is a fresher one from then on."""
    joined = kafka_python(Group())
    generation = joined.placed(0)
    joined.member.give(0)
    joined.member.hear()

    with pytest.raises(StaleGeneration):
        joined.session.commit(Transaction((), {0: Position(1, 1)}), generation)
    assert joined.group.memberships == []


@pytest.mark.parametrize(("state", "rejoins"), [(MemberState.STABLE, 1), (MemberState.REBALANCING, 0)])
def test_kafka_python_joins_again_after_a_refusal_unless_it_does_already(state: Any, rejoins: int) -> None:
    """It would hear of it only with a heartbeat; and a join begun twice makes the whole group start over."""
    joined = kafka_python(Group())
    generation = joined.placed(0)
    joined.group.refuses = True
    joined.member._coordinator.state = state

    with pytest.raises(StaleGeneration):
        joined.session.commit(Transaction((), {0: Position(1, 1)}), generation)
    assert joined.member.rejoins == rejoins


def test_inputs_of_a_partition_that_the_group_parts_are_refused(joined: Joined) -> None:
    """Another program's assignment is in the group."""
    with pytest.raises(Refused, match=r"examples \[0\] and labels \[1\]: partitions must stay together"):
        joined.given(0, labels=[1])


def test_more_metadata_than_the_broker_takes_is_not_sent(joined: Joined) -> None:
    """It would leave the library's client useless; librdkafka sends a zero byte along."""
    generation = joined.placed(0)
    most = 4_095 if isinstance(joined.member, FakeLibrdkafka) else 4_096
    joined.session.commit(Transaction((), {0: Position(1, 1, "m" * most)}), generation)

    with pytest.raises(
        TransactionFailed, match=rf"takes {most + 1} bytes, a broker takes {most}; nothing was sent"
    ):
        joined.session.commit(Transaction((), {0: Position(1, 1, "m" * (most + 1))}), generation)
    assert joined.group.committed[0].metadata == "m" * most


def test_markers_behind_the_last_record_are_passed(joined: Joined) -> None:
    """An input is drained then; one that waits to be placed is neither drained nor counted."""
    joined.group.put("examples", 0, b"e0", b"e1")
    joined.group.markers[NAMES.to_broker["examples"], 0] = 2
    joined.placed(0)
    sides = [EXAMPLES, LABELS, ("examples", 1)]
    assert joined.session.drained(sides) == {LABELS}
    assert joined.session.undelivered(sides) == {EXAMPLES: 4, LABELS: 0}

    joined.values()
    assert joined.session.drained(sides) == {EXAMPLES, LABELS}

    joined.given(0)
    assert joined.session.undelivered(sides) == {}
    assert joined.session.drained(sides) == set()


def test_an_input_that_is_made_anew_amid_the_work_is_refused(joined: Joined) -> None:
    """Its offsets belong to other records now."""
    joined.placed(0)
    joined.values()
    joined.group.topic_ids[NAMES.to_broker["labels"]] = "another"
    joined.wait_a_minute()

    with pytest.raises(Refused, match=r"labels was made anew"):
        joined.values()


def test_an_input_that_gets_more_partitions_amid_the_work_is_refused(joined: Joined) -> None:
    """Its keys lie elsewhere from then on."""
    joined.placed(0)
    joined.group.partitions = 3
    joined.wait_a_minute()

    with pytest.raises(Refused, match=r"partition counts changed: .*examples 3, .*labels 3, at start 2"):
        joined.values()


def test_no_call_of_a_librdkafka_member_may_hang_unseen() -> None:
    """Each is answered by a thread of the library's, which others have seen standing still."""
    joined = librdkafka(Group())
    joined.group.put("examples", 0, b"e0")
    joined.placed(0)
    joined.values()
    joined.session.pause([EXAMPLES])
    joined.session.resume([EXAMPLES])
    joined.member.revoke()
    joined.session.close(1.0)

    calls = {"subscribe", "consume", "assign", "pause", "resume", "memberid", "close"}
    assert (joined.group.watchdog.seen, joined.group.watchdog.unseen) == (calls, set())


def test_a_session_may_be_closed_twice(joined: Joined) -> None:
    """Whoever cleans up need not know whether it was closed before."""
    joined.placed(0)
    joined.session.close(1.0)
    joined.session.close(1.0)

    assert joined.member.closed


def test_librdkafka_is_heard_out_before_it_closes() -> None:
    """Whatever it knows of the group and has not told, and however many records wait before that."""
    joined = librdkafka(Group())
    joined.group.put("examples", 0, *[b"e"] * 10)
    joined.placed(0)
    joined.member.give(0, 1)

    joined.session.close(1.0)

    assert joined.member.closed
    assert joined.member.assignment_due is None


def test_a_member_that_does_not_join_again_is_given_up(
    joined: Joined, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be silent for ever. What is joined in time is not, however often, nor a poll that brings the assignment."""
    now_s = 0.0
    monkeypatch.setattr(joined.session, "_outside", Joining(300.0, lambda: now_s))
    for _ in range(3):
        joined.placed(0)
        assert joined.values() == []
        joined.shares_out()
        assert joined.values() == []
        now_s += 350.0
        assert joined.values() == []
    now_s += 50.0
    joined.placed(0)
    joined.shares_out()
    joined.values()
    now_s += 400.0

    with pytest.raises(Unreachable, match="has not let this worker in for 400 s"):
        joined.values()


@pytest.mark.parametrize("amid_a_rebalance", [False, True])
def test_a_member_that_cannot_leave_by_itself_is_removed(joined: Joined, amid_a_rebalance: bool) -> None:
    """Amid a rebalance the broker takes no leave from it, and the group would wait for a member that is gone."""
    joined.placed(0)
    if amid_a_rebalance and isinstance(joined.member, FakeLibrdkafka):
        joined.member.revoke()
    elif amid_a_rebalance:
        joined.member._coordinator.state = MemberState.REBALANCING

    joined.session.close(1.0)

    assert joined.member.closed
    assert joined.group.removed == (["member"] if amid_a_rebalance else [])


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (KafkaError._TRANSPORT, None),
        (KafkaError._ALL_BROKERS_DOWN, None),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, Refused),
        (KafkaError._BAD_MSG, Refused),
        (KafkaError._AUTO_OFFSET_RESET, Refused),
    ],
)
def test_librdkafka_goes_on_by_itself_or_the_poll_fails(code: int, told: type[Exception] | None) -> None:
    """An error that passes is none; the others are never passed over."""
    joined = librdkafka(Group())
    joined.placed(0)
    joined.member.errors_due = [Message((NAMES.to_broker["examples"], 0), 0, None, KafkaError(code))]
    if told is None:
        assert joined.values() == []
        return
    with pytest.raises(told, match="read examples and labels"):
        joined.values()


def test_librdkafka_may_be_refused_by_name_between_two_polls() -> None:
    """Errors that belong to no call end the next poll where they are for good."""
    joined = librdkafka(Group())
    joined.placed(0)
    joined.member.errors(KafkaError(KafkaError._TRANSPORT))
    assert joined.values() == []
    joined.member.errors(KafkaError(KafkaError._AUTHENTICATION))

    with pytest.raises(Unreachable, match=r"correct kafka\.security_protocol"):
        joined.values()


def test_librdkafka_may_deliver_what_is_paused_and_the_session_does_not() -> None:
    """What was on its way when the input was paused counts as not delivered: it comes again."""
    joined = librdkafka(Group())
    joined.group.put("examples", 0, b"e0", b"e1")
    joined.placed(0)
    joined.session.pause([EXAMPLES])
    joined.member.leaks = True
    # Paused before it was assigned: it is when the next poll assigns it.
    assert joined.values() == []
    assert joined.values() == []
    assert joined.session.undelivered([EXAMPLES]) == {EXAMPLES: 2}

    joined.session.resume([EXAMPLES])
    assert joined.values() == [("examples", b"e0"), ("examples", b"e1")]


def reading(group: Group) -> tuple[ConfluentFetcher, FakeLibrdkafka]:
    """librdkafka's reader, and what the library gave it."""
    member = FakeLibrdkafka(group, lambda error: None)
    consumer: Any = member
    again: Any = SimpleNamespace(record=None)
    return ConfluentFetcher(consumer, NAMES, again), member


def test_librdkafkas_reader_gives_what_came_before_an_error_and_then_the_error() -> None:
    """Passed over, it would leave a hole in what was read, such as a batch that is damaged."""
    group = Group()
    group.put("outcomes", 0, b"o0", b"o1")
    fetcher, member = reading(group)
    fetcher.start({("outcomes", 0): 0}, "read outcomes")
    member.errors_due = [Message((NAMES.to_broker["outcomes"], 0), 2, None, KafkaError(KafkaError._BAD_MSG))]

    assert [record.value for record in fetcher.fetch(0.0)] == [b"o0", b"o1"]
    with pytest.raises(Refused, match="read outcomes"):
        fetcher.fetch(0.0)
    fetcher.start({("outcomes", 0): 1}, "read outcomes")
    assert [record.value for record in fetcher.fetch(0.0)] == [b"o1"]


def test_librdkafkas_reader_asks_once_where_the_partitions_of_a_topic_are() -> None:
    """Left to itself the library asks once a second, and each topic of a takeover would wait for that."""
    fetcher, member = reading(Group())
    outcomes, updates = NAMES.to_broker["outcomes"], NAMES.to_broker["updates"]
    fetcher.start({("outcomes", 0): 0}, "read outcomes")
    fetcher.start({("outcomes", 1): 0}, "read outcomes")
    fetcher.start({("updates", 0): 0, ("updates", 1): 0, ("outcomes", 0): 0}, "follow")
    assert member.asked == [outcomes, updates]


def test_librdkafkas_reader_reads_where_nobody_told_it_of_a_topic() -> None:
    """The library finds out by itself, if later; and the next read asks again."""
    group = Group()
    group.put("outcomes", 0, b"o0")
    fetcher, member = reading(group)
    member.away = True
    fetcher.start({("outcomes", 0): 0}, "read outcomes")
    assert [record.value for record in fetcher.fetch(0.0)] == [b"o0"]

    member.away = False
    fetcher.start({("outcomes", 0): 0}, "read outcomes")
    fetcher.start({("outcomes", 0): 0}, "read outcomes")
    assert member.asked == [NAMES.to_broker["outcomes"]] * 2
