"""Proved changes of a model: which learners have them, how they are added up, and what a report says."""

import json
from math import sqrt
from random import Random
from typing import Any

import jsonschema
import msgspec
import pytest

from mistakebound.commands.render_report import render_report
from mistakebound.core.faults import BadSnapshot
from mistakebound.core.learners import KINDS
from mistakebound.core.model.model import Model
from mistakebound.core.model.model_snapshot import Snapshot
from mistakebound.core.replay.replay import Row, replay_rows, report_of
from mistakebound.core.reporting.status import schema, status
from mistakebound.core.theorems.changes import ProvedChange, ProvedChanges, proved_changes
from mistakebound.settings import Settings

GAMMA = 0.15
NAMES = "abcdefghij"


def settings_of(**sections: Any) -> Settings:
    learner = {"kind": "perceptron", "gamma": GAMMA, **sections.pop("learner", {})}
    return Settings.model_validate({"learner": learner, "features": {"bias": False}, **sections})


def rows(flips: int, each: int = 400, seed: int = 1) -> list[Row]:
    """Parts of separable data, each with the labels of the one before turned round."""
    random, found = Random(seed), list[Row]()
    while len(found) < each * (flips + 1):
        x = {name: random.uniform(-1, 1) for name in NAMES}
        margin = sum(x.values()) / sqrt(len(NAMES))
        if abs(margin) >= GAMMA:
            number = len(found)
            found.append(Row(str(number), x, (margin > 0) is (number // each % 2 == 0)))
    return found


@pytest.mark.parametrize("flips", [0, 1, 3])
@pytest.mark.parametrize("kind", ["perceptron", "averaged-perceptron", "voted-perceptron", "balanced-winnow"])
def test_at_most_as_many_changes_are_proved_as_there_were(flips: int, kind: str) -> None:
    """Whatever the learner; a perceptron, whose updates go on, proves each."""
    state = replay_rows(rows(flips), settings_of(learner={"kind": kind}), 1)
    found = proved_changes(state.model)

    assert found is not None
    assert found.count <= flips
    if kind == "perceptron":
        assert found.count == flips


@pytest.mark.parametrize("delay", [0, 40])
def test_each_partition_proves_its_own_and_the_stream_has_changed_as_often_as_the_most(delay: int) -> None:
    """One reversal, seen in each partition, is one change and not three. It happens where labels are applied, so a
    delay changes nothing. (A learner that updates often proves much: each partition has to do it alone.)"""
    often = {"kind": "margin-perceptron", "margin": 10.0}
    state = replay_rows(rows(1, 900), settings_of(learner=often), 3, delay)
    found = proved_changes(state.model)

    assert found is not None
    assert found.count == max(found.by_partition) == 1
    assert sum(found.by_partition) >= 2
    for one in found.newest:
        assert 1 <= one.first < one.update <= state.model.updates[one.partition]


CAN = {
    "perceptron", "averaged-perceptron", "voted-perceptron", "margin-perceptron", "one-sided-perceptron",
    "normalized-margin-perceptron", "balanced-winnow", "winnow",
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_learners_whose_proof_is_known_have_them(kind: str) -> None:
    """Where two classes and a margin are declared."""
    more = {"margin-perceptron": {"margin": 1.0}, "winnow": {"threshold": "initial"}}.get(kind, {})
    needed = {"variables": 2, "threshold": 2.0} if kind in ("littlestone-winnow",) else {}
    if kind in ("elimination", "con", "halving"):
        needed = {"variables": 2, "concepts": "conjunctions"}
    settings = Settings.model_validate({"learner": {"kind": kind, "gamma": GAMMA, **more, **needed}})

    assert (proved_changes(Model(settings, 1)) is not None) is (kind in CAN)


@pytest.mark.parametrize(
    "sections",
    [
        {"learner": {"gamma": None}},
        {"labels": {"classes": ["a", "b", "c"]}},
        {"labels": {"classes": "open"}},
        {"learner": {"kind": "winnow", "threshold": 1.0}},
    ],
)
def test_without_a_declaration_or_a_proof_nothing_is_said(sections: dict[str, Any]) -> None:
    """The report has no such field, as before."""
    model = Model(settings_of(**sections), 1)

    assert proved_changes(model) is None
    assert model.snapshot().changes is None


def test_a_report_tells_them_where_a_margin_is_declared() -> None:
    """In JSON, as the schema says, and for people: how many, and which update proved each."""
    told = report_of(replay_rows(rows(1), settings_of(), 1))
    none = report_of(replay_rows(rows(0), settings_of(), 1))
    silent = report_of(replay_rows(rows(1), settings_of(learner={"gamma": None}), 1))

    assert told.proved_changes is not None
    (change,) = told.proved_changes.newest
    assert json.loads(told.to_json())["proved_changes"] == {
        "count": 1, "by_partition": [1],
        "newest": [{"partition": 0, "first": change.first, "update": change.update}],
        "restarts": None,
    }  # fmt: skip
    jsonschema.validate(json.loads(msgspec.json.encode(status(told, {}, None).as_dict())), schema())
    assert schema()["$defs"]["ProvedChanges"]["required"] == ["count", "by_partition", "newest"]
    assert f"at least 1 proved, with the margin declared, by update {change.update}\n" in render_report(told)
    assert "none proved, with the margin declared" in render_report(none)
    assert "proved_changes" not in silent.as_dict()
    assert "changes " not in render_report(silent)


def test_updates_that_the_epoch_is_based_on_are_no_part_of_a_stretch() -> None:
    """They were judged by nobody in this epoch."""
    from mistakebound.core.messages.schema import Update, Version, encode

    model = Model(settings_of(), 1, epoch=2)
    raw = msgspec.Raw(encode({"a": 1.0}))
    for n in (1, 2):
        model.inherit(0, Update(1, n, [n], "i", n == 1, None, raw, n, Version(1, [n - 1])))
    model.learn(0, (("a", 1.0),), True, False)

    assert model.changes is not None
    assert (model.changes.stretches[0].first, model.changes.stretches[0].updates) == (1, 1)
    assert proved_changes(model) == ProvedChanges(0, (0,), ())


def test_they_come_back_from_a_checkpoint() -> None:
    """And a checkpoint of an earlier version, which has none, is refused: the log is read instead."""
    made = replay_rows(rows(1), settings_of(), 1).model
    held = msgspec.msgpack.encode(made.snapshot())
    again = Model(settings_of(), 1)
    again.restore(msgspec.msgpack.decode(held, type=Snapshot))
    assert proved_changes(again) == proved_changes(made)

    earlier = msgspec.msgpack.decode(held)
    del earlier["changes"]
    old = msgspec.convert(earlier, Snapshot)
    with pytest.raises(BadSnapshot, match="before proved changes were counted"):
        Model(settings_of(), 1).restore(old)
    Model(settings_of(learner={"gamma": None}), 1).restore(old)


def test_the_one_who_follows_proves_the_same_as_the_one_who_learned() -> None:
    """By the updates alone, from whatever version on."""
    from mistakebound.core.messages.schema import Update, read_update
    from mistakebound.core.records import Record

    updates: list[Update] = []

    def see(step: Any) -> None:
        for one in step.transaction.outputs:
            if one.topic == "updates":
                found = read_update(Record("updates", one.partition, 0, 0, one.key, one.value))
                assert isinstance(found, Update)
                updates.append(found)

    made = replay_rows(rows(3), settings_of(), 1, taken=see).model
    follower = Model(settings_of(), 1)
    for update in updates:
        follower.follow(0, msgspec.structs.replace(update, epoch=follower.epoch))

    assert proved_changes(follower) == proved_changes(made)
    assert proved_changes(made) == ProvedChanges(3, (3,), tuple(proved_changes(made).newest))  # type: ignore[union-attr]
    assert isinstance(proved_changes(made).newest[0], ProvedChange)  # type: ignore[union-attr]
