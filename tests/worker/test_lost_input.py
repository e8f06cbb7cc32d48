"""Inputs that are not those that the offsets belong to, and inputs whose unread records are gone."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from mistakebound.core.audit import Findings, audit
from mistakebound.core.messages.schema import Epoch, InputTopic, read_outcomes, read_update
from mistakebound.core.records import TOPICS, Outgoing, Record, TopicPartition, Transaction
from mistakebound.core.replay import plan as replay
from mistakebound.core.replay.recorded import Recorded
from mistakebound.log.protocol import Log, OffsetLost, Refused, TopicDescription
from mistakebound.settings import MessageSettings, Settings
from mistakebound.worker.epochs import reset, seeding
from mistakebound.worker.epochs.input_topics import refuse_other_topics
from tests.core.support.audited import Lists
from tests.log.support.place import forget_in_file
from tests.worker.support.working import (
    Recount,
    Run,
    altered,
    example,
    label,
    opened,
    settings_on,
    stream,
)

EXAMPLES = 20


@pytest.fixture(autouse=True)
def said() -> Iterator[list[Any]]:
    """What the worker logs."""
    with capture_logs() as said:
        yield said


@pytest.fixture
def settings(file: Path) -> Settings:
    return settings_on(file)


def epochs(log: Log) -> list[Epoch]:
    found = [read_update(record) for record in log.read("updates", 0, 0)]
    return [each for each in found if isinstance(each, Epoch)]


# --- other inputs -------------------------------------------------------------------------------------------


def renamed(settings: Settings) -> Settings:
    """The same prefix and group, other input topics."""
    return altered(settings, topics={"examples": "orders", "labels": "returns"})


@pytest.mark.parametrize("from_outcomes", [False, True])
def test_other_inputs_under_the_same_prefix_are_refused_by_name(
    settings: Settings, from_outcomes: bool
) -> None:
    """The offsets in `outcomes` are of the topics that the epoch began with: applied to others, they skip and repeat."""
    with opened(settings) as log:
        log.append(stream(EXAMPLES))
        Run(log, settings)
    other = renamed(settings)
    with opened(other) as log:
        log.append(stream(3 * EXAMPLES, seed=2))
        with pytest.raises(
            Refused, match=r"(?s)topics\.examples: now 'orders', the offsets are of '\S+examples'.*'returns'"
        ):
            Run(log, other, from_outcomes=from_outcomes)
        assert len(Recount(log, other).predicted) == EXAMPLES, "nothing was written"


def test_other_inputs_are_the_reason_whatever_else_differs(settings: Settings) -> None:
    """Whoever corrected the setting that is told first would be told of the next one, and do harm meanwhile."""
    with opened(settings) as log:
        log.append(stream(EXAMPLES))
        Run(log, settings)
    other = altered(renamed(settings), learner={"kind": "winnow"})
    with opened(other) as log, pytest.raises(Refused, match=r"topics\.examples: now 'orders'"):
        Run(log, other)


def test_an_epoch_names_its_inputs_and_so_do_those_that_follow(settings: Settings) -> None:
    """Name, id and partition count of both, whoever begins it: `run`, `seed` or `reset`."""
    with opened(settings, 2) as log:
        log.append(stream(EXAMPLES, partitions=2))
        Run(log, settings)
        plan = reset.planned(log, settings, None)
        assert plan is not None
        reset.execute(log, settings, plan, 5)
        seeding.execute(log, settings, seeding.planned(log, settings, []), 5)
        described = log.describe()["labels"]
        assert described is not None
        for epoch in epochs(log):
            assert isinstance(epoch.topics, dict)
            assert epoch.topics.keys() == {"examples", "labels"}
            told = msgspec.to_builtins(epoch.topics["labels"])
            assert told == {"name": described.name, "id": described.id, "partitions": 2}
        assert len(epochs(log)) == 4
        Run(log, settings)


def test_an_epoch_begins_over_other_inputs_only_when_told_that_they_hold_the_same(settings: Settings) -> None:
    """The way on after a move that kept the offsets; without the word of the operator no verb papers over it."""
    other = renamed(settings)
    with opened(settings) as log:
        log.append(stream(EXAMPLES))
        Run(log, settings)
        positions = log.group_positions()
    with opened(other) as log:
        log.append(stream(EXAMPLES))  # at the same offsets
        session = log.join("operator")
        session.poll(0.0)
        known = {p: each for p, each in positions.items() if each is not None}
        session.commit(Transaction((), known), 1)
        for asked in (lambda: reset.planned(log, other, None), lambda: seeding.planned(log, other, [])):
            with pytest.raises(Refused, match="the offsets are of"):
                asked()
        plan = reset.planned(log, other, None, same_records=True)
        assert plan is not None
        reset.execute(log, other, plan, 5)
        log.append([example(EXAMPLES, {"a": 1}, 5_000)])
        Run(log, other)
        assert len(list(log.read("predictions", 0, 0))) == EXAMPLES + 1


def test_a_worker_may_read_its_inputs_otherwise_than_the_epoch_began_and_every_step_says_so(
    settings: Settings, said: list[Any]
) -> None:
    """Producers change. The audit and a replay read each step as its worker did, and the next epoch holds the new pointers."""
    other = altered(settings, messages={"label": "/truth"})
    more = [
        each._replace(value=(each.value or b"").replace(b'"label"', b'"truth"'))
        for each in stream(EXAMPLES, seed=2, first=1_000)
    ]
    with opened(settings) as log:
        log.append(stream(EXAMPLES))
        Run(log, settings)
        assert not [each for each in said if each["event"] == "messages_changed"]
        before = len(list(log.read("outcomes", 0, 0)))
        log.append(more)
        held = Run(log, other).held.state
        changed = [each["changed"] for each in said if each["event"] == "messages_changed"]
        assert changed == [{"messages.label": ["/label", "/truth"]}]
        told = [read_outcomes(record).messages for record in log.read("outcomes", 0, 0)]
        assert [each and each["label"] for each in told] == [
            *[None] * before,
            *["/truth"] * (len(told) - before),
        ]
        records = {(t, p): list(log.read(t, p, 0)) for t in TOPICS for p in range(1)}
        assert audit(Lists(1, records), MessageSettings(), [], Findings()).first == []
        recorded = Recorded([each for of in records.values() for each in of], 1)
        plan = replay.planned(recorded, Settings())
        assert plan.afresh is None
        assert replay.carry_out(recorded, plan).model.digest() == held.model.digest()

        begins = reset.planned(log, other, None)
        assert begins is not None
        reset.execute(log, other, begins, 5)
        said.clear()
        Run(log, other)
        assert not [each for each in said if each["event"] == "messages_changed"]
        assert [epoch.messages["label"] for epoch in epochs(log) if epoch.messages] == ["/label", "/truth"]


@pytest.mark.parametrize("topic", ["examples", "labels"])
def test_an_input_that_was_made_anew_is_refused(settings: Settings, file: Path, topic: str) -> None:
    """It has the name and the partitions of the old one; its offsets belong to other records."""
    with opened(settings) as log:
        log.append(stream(EXAMPLES))
        Run(log, settings)
        name = settings.topic_name(topic)  # type: ignore[arg-type]
        with sqlite3.connect(file) as connection:
            connection.execute("UPDATE topics SET uid = 'another' WHERE name = ?", (name,))
        connection.close()
        log.append(stream(EXAMPLES, first=EXAMPLES))
        with pytest.raises(Refused, match=rf"topics\.{topic}: '{name}' was made anew: its id is another"):
            Run(log, settings)
        assert len(Recount(log, settings).predicted) == EXAMPLES


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (InputTopic("t", "id", 2), None),
        (InputTopic("t", "0000-0000", 2), None),
        (InputTopic("t", "other", 2), "made anew"),
        (InputTopic("t", "id", 3), "has 3 partitions, the offsets are of 2"),
        (InputTopic("u", "id", 2), "now 'u', the offsets are of 't'"),
    ],
)
def test_an_input_is_another_by_its_name_its_id_or_its_partitions(now: InputTopic, said: str | None) -> None:
    """A broker that gives no ids says nothing of them."""
    described = TopicDescription(now.name, now.id, now.partitions, {})
    log: Any = SimpleNamespace(describe=lambda: {"examples": described, "labels": described})
    then = InputTopic("t", "id", 2)
    epoch = Epoch(1, 1, {}, None, {"examples": then, "labels": then})
    if said is None:
        refuse_other_topics(log, epoch)
        return
    with pytest.raises(Refused, match=said):
        refuse_other_topics(log, epoch)


def test_an_epoch_after_one_without_pointers_holds_them_only_where_they_are_given(settings: Settings) -> None:
    """Whoever begins it may not know what the workers of an earlier version were told."""
    with opened(settings) as log:
        older = msgspec.json.encode(Epoch(1, 1, dict(settings.of_epoch())))
        log.exclusively(lambda: [Outgoing("updates", 0, None, older)])
        for given, held in (
            ({}, None),
            ({"label": "/truth"}, "/truth"),
            ({"label": "/truth"}, "/truth"),
        ):
            now = Settings.model_validate({**settings.model_dump(exclude={"messages"}), "messages": given})
            plan = reset.planned(log, now, None)
            assert plan is not None
            reset.execute(log, now, plan, 5)
            newest = epochs(log)[-1]
            assert (newest.messages["label"] if newest.messages else None) == held


def test_an_older_log_that_names_no_inputs_goes_on(settings: Settings) -> None:
    """Its epoch says nothing of topics, so there is nothing to compare."""
    with opened(settings) as log:
        older = msgspec.json.encode(Epoch(1, 1, dict(settings.of_epoch())))
        assert b"topics" not in older
        log.exclusively(lambda: [Outgoing("updates", 0, None, older)])
        log.append(stream(EXAMPLES))
        Run(log, settings)
        assert len(Recount(log, settings).predicted) == EXAMPLES


# --- deleted before it was read -------------------------------------------------------------------------------


class Kept:
    """Every record that was ever in the log, as a recording made in time holds them."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._records: dict[TopicPartition, dict[int, Record]] = {}

    def look(self) -> None:
        for topic in TOPICS:
            for p in range(self._log.partitions):
                of = self._records.setdefault((topic, p), {})
                for record in self._log.read(topic, p, self._log.low_watermark(topic, p)):
                    of.setdefault(record.offset, record)

    def audit(self, settings: Settings) -> Findings:
        self.look()
        records = {at: list(found.values()) for at, found in self._records.items()}
        return audit(Lists(self._log.partitions, records), settings.messages, [], Findings())


def gaps(recount: Recount) -> list[tuple[str, int, int]]:
    return [
        ("examples" if each.label_offset is None else "labels", each.first, each.label_offset or each.source)
        for each in recount.decisions
        if each.first is not None
    ]


def test_unread_input_that_was_deleted_is_refused_until_told_to_skip_it(
    settings: Settings, file: Path, said: list[Any]
) -> None:
    """What is lost is counted once, logged, in the dead letters and in `outcomes`, and the audit knows of it."""
    with opened(settings) as log:
        kept = Kept(log)
        log.append(stream(EXAMPLES))
        Run(log, settings)
        kept.look()
        labels = log.high_watermark("labels", 0)
        log.append(example(EXAMPLES + number, {"a": 1}, 5_000 + number) for number in range(5))
        log.append(label(EXAMPLES + number, True, 6_000 + number) for number in range(5))
        forget_in_file(file)(settings.topic_name("examples"), 0, EXAMPLES + 2)
        forget_in_file(file)(settings.topic_name("labels"), 0, labels + 1)
        with pytest.raises(OffsetLost, match=r"--skip-to-oldest"):
            Run(log, settings)

        run = Run(log, settings, skip_to_oldest=True)

        assert run.metric('mistakebound_input_offsets_lost_total{stream="examples"}') == 2
        assert run.metric('mistakebound_input_offsets_lost_total{stream="labels"}') == 1
        assert [each["first"] for each in said if each["event"] == "input_lost"] == [EXAMPLES, labels]
        again = Run(log, settings)
        recount = Recount(log, settings)
        assert gaps(recount) == [("examples", EXAMPLES, EXAMPLES + 1), ("labels", labels, labels)]
        assert len(recount.predicted) == EXAMPLES + 3
        assert recount.tallies[0].life.examples["invalid"] == 1
        assert again.metric('mistakebound_input_offsets_lost_total{stream="examples"}') == 0
        letters = [dict(each.headers) for each in log.read("dead-letters", 0, 0)]
        reasons = [
            each["mistakebound.reason"] for each in letters if each["mistakebound.reason"] == b"deleted"
        ]
        assert len(reasons) == 2
        found = kept.audit(settings)
        assert found.first == []
        assert (
            found.notes["gaps in the input, deleted or damaged before it was read, were taken on trust"] == 2
        )


def test_everything_unread_may_be_gone(settings: Settings, file: Path) -> None:
    """The loss is committed though no record follows it: the next start needs no flag."""
    with opened(settings) as log:
        log.append(stream(EXAMPLES))
        Run(log, settings)
        log.append(example(EXAMPLES + number, {"a": 1}, 5_000) for number in range(5))
        forget_in_file(file)(settings.topic_name("examples"), 0, EXAMPLES + 5)
        Run(log, settings, skip_to_oldest=True)
        Run(log, settings)
        assert gaps(Recount(log, settings)) == [("examples", EXAMPLES, EXAMPLES + 4)]


def test_nothing_is_called_lost_where_nothing_is(settings: Settings, said: list[Any]) -> None:
    """Told to skip, a worker begins a log, and goes on in it, as any other does."""
    with opened(settings) as log:
        for first in (0, EXAMPLES):
            log.append(stream(EXAMPLES, first=first))
            Run(log, settings, skip_to_oldest=True)
        recount = Recount(log, settings)
        assert (gaps(recount), len(recount.predicted)) == ([], 2 * EXAMPLES)
        assert [each for each in said if each["event"] == "input_lost"] == []


def test_a_gap_that_the_decisions_make_up_is_found(settings: Settings, file: Path) -> None:
    """Records that were read already cannot have been lost."""
    with opened(settings) as log:
        kept = Kept(log)
        log.append(stream(EXAMPLES))
        Run(log, settings)
        kept.look()
        log.append(example(EXAMPLES + number, {"a": 1}, 5_000) for number in range(5))
        forget_in_file(file)(settings.topic_name("examples"), 0, EXAMPLES + 2)
        Run(log, settings, skip_to_oldest=True)
        kept.look()
        of = kept._records["outcomes", 0]
        told = next(offset for offset, each in of.items() if b'"first":20' in (each.value or b""))
        of[told] = of[told]._replace(value=(of[told].value or b"").replace(b'"first":20', b'"first":19'))
        found = kept.audit(settings)
        assert found.differing["decisions"] == 1
        assert "are called lost" in found.first[0].text


def test_nothing_is_skipped_where_an_input_ends_below_what_was_read(settings: Settings, file: Path) -> None:
    """There is nothing older to go on from: the topic is not what it was."""
    with opened(settings) as log:
        log.append(stream(EXAMPLES))
        Run(log, settings)
        connection = sqlite3.connect(file)
        connection.execute("UPDATE sides SET next = 3 WHERE id = 1")
        connection.execute("DELETE FROM records WHERE place >= (1 << 44) + 3 AND place < (2 << 44)")
        connection.commit()
        connection.close()
        with pytest.raises(OffsetLost, match="lies above its end"):
            Run(log, settings, skip_to_oldest=True)
