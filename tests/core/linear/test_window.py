"""Forgetting on purpose: only the last updates of each partition count, in whole blocks, alike for every reader."""

import json
from math import inf
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mistakebound.core.checkpoint_content import _digest, settings_digest
from mistakebound.core.learners import KINDS
from mistakebound.core.learners.requirements import unmet
from mistakebound.core.learners.version_space import VersionSpace
from mistakebound.core.messages.schema import Base, Epoch, Update, Version, encode, read_update
from mistakebound.core.model.fold import Fold
from mistakebound.core.model.model import Model, first_epoch
from mistakebound.core.model.model_snapshot import Snapshot
from mistakebound.core.records import Record
from mistakebound.core.replay.passes import replay_passes
from mistakebound.core.replay.replay import Row, fresh, replay_rows, report_of
from mistakebound.core.theorems.claims import certificate, claims
from mistakebound.settings import Settings
from tests.core.support.feeding import Feeder
from tests.core.support.histories import bits
from tests.support.tries import long, tried

LINEAR = [name for name, kind in KINDS.items() if "window" in kind.parameters]
values = st.floats(-1e9, 1e9)
vectors = st.dictionaries(st.sampled_from("abc"), values, max_size=3).map(lambda x: tuple(x.items()))
few = tried(25)


def of(window: int | None, kind: str = "perceptron", **learner: Any) -> Settings:
    return Settings.model_validate(
        {"learner": {"kind": kind, "window": window, **learner}, "features": {"bias": False}}
    )


def learner(window: int, partitions: int = 2, kind: str = "perceptron", **more: Any) -> Any:
    return fresh(of(window, kind, **more), partitions).model.learner


def said(one: Any) -> Any:
    return bits(one.dump()), one.digest(), bits(dict(one.theta())), bits(dict(one.weights()))


# --- which updates count ------------------------------------------------------------------------------------


@given(st.integers(1, 300), st.integers(0, 1200))
def test_between_the_window_less_a_block_and_the_window_count(size: int, updates: int) -> None:
    """Blocks are a tenth of the window, at least one update; all count before there are as many."""
    one = learner(size, 1)
    for _ in range(updates):
        one.fold(0, (), True, 1, None)
    (counting,) = one.window.counting()
    block = max(1, size // 10)
    assert one.window.block == block
    if updates <= size:
        assert counting == updates
    else:
        assert size - block + 1 <= counting <= size
        assert (updates - counting) % block == 0, "whole blocks are left out"


def test_one_update_too_many_leaves_a_whole_block_out() -> None:
    """Of a window of 20 the blocks have two: 20 or 19 count from then on, in turn."""
    one = learner(20, 1)
    counting = []
    for _ in range(24):
        one.fold(0, (), True, 1, None)
        counting += one.window.counting()
    assert counting == [*range(1, 21), 19, 20, 19, 20]


@few
@given(st.lists(st.tuples(st.integers(0, 1), vectors, st.booleans()), max_size=90), st.integers(1, 45))
def test_what_counts_is_what_a_naive_refold_of_the_last_blocks_gives(log: Any, size: int) -> None:
    """Each block from zero, summed in order, coordinates summed over the partitions: to the bit."""
    one = learner(size)
    rows: list[dict[str, float]] = []
    for p, x, positive in log:
        one.fold(p, x, positive, 1, None)
    for p in range(2):
        own = [(x, positive) for q, x, positive in log if q == p]
        block = max(1, size // 10)
        gone = 0
        while len(own) - gone > size:
            gone += block
        row: dict[str, float] = {}
        blocks = [own[start : start + block] for start in range(gone, len(own), block)]
        folded = []
        for each in blocks:
            sums: dict[str, float] = {}
            for x, positive in each:
                for name, value in x:
                    sums[name] = sums.get(name, 0.0) + (0.0 if value == 0 else value if positive else -value)
            folded.append(sums)
        for sums in folded:
            for name, value in sums.items():
                row[name] = row.get(name, 0.0) + value
        rows.append(row)
    wanted: dict[str, float] = {}
    for row in rows:
        for name, value in row.items():
            wanted[name] = wanted.get(name, 0.0) + value
    assert bits(dict(sorted(one.theta().items()))) == bits(dict(sorted(wanted.items())))


def test_nothing_is_subtracted() -> None:
    """What was lost to rounding in the sum of all is there again when the large one is gone."""
    one = learner(2, 1)
    for value in (1e17, 1.0, 1.0):
        one.fold(0, (("a", value),), True, 1, None)
    assert one.theta() == {"a": 2.0}


def test_a_block_that_comes_back_is_added_up_in_its_place() -> None:
    """A step that is taken back leaves the same bits: sums of floats depend on their order."""
    one = learner(3, 1)
    for value in (1.0, 1e17, -1e17):
        one.fold(0, (("a", value),), True, 1, None)
    before = said(one)
    assert one.theta() == {"a": 0.0}, "the first is lost to rounding"
    one.begin()
    one.fold(0, (("a", 5.0),), True, 2, None)
    assert one.theta() == {"a": 5.0}
    one.rollback()
    assert said(one) == before


def test_a_weight_that_was_set_to_zero_for_good_comes_back_when_that_is_forgotten() -> None:
    """Littlestone's demotion to zero is -inf in theta; what is left of the window decides."""
    one = learner(2, 1, "littlestone-winnow", threshold=2.0, demotion="zero")
    one.fold(0, (("a", 1.0),), False, 1, None)
    one.fold(0, (("a", 1.0),), True, 2, None)
    assert one.theta() == {"a": -inf}
    one.fold(0, (("a", 1.0),), True, 3, None)
    assert one.theta() == {"a": 2.0}


def test_names_that_no_counting_update_has_vanish() -> None:
    """Memory is that of the window, however many names go by; an open class goes with its last update."""
    one = learner(30, 1)
    for number in range(500):
        one.fold(0, ((f"x{number}", 1.0),), True, 1, None)
    assert len(one.theta()) == one.window.counting()[0] <= 30
    assert sum(len(row) for blocks in one._theta.blocks.of for row in blocks.values()) <= 30
    assert len(one._theta.blocks.of[0]) <= 11
    many = Model(
        Settings.model_validate(
            {"learner": {"kind": "averaged-perceptron", "window": 1}, "labels": {"classes": "open"}}
        ),
        1,
    )
    for label in ("ape", "bee"):
        many.learner.fold(0, (("a", 1.0),), label, 1, None)
    assert many.learner.score((("a", 1.0),), 2) == [2.0], "only bee is known"


def test_the_average_is_that_of_learning_begun_after_what_was_left_out() -> None:
    """Theta and kappa forget the same updates; a fresh averaged perceptron on the rest gives the same bits."""
    one, other = learner(3, 1, "averaged-perceptron"), learner(3, 1, "averaged-perceptron")
    log = [(0, (("a", float(n)), ("b", 1.0)), n % 3 > 0, 2 * n, None) for n in range(1, 8)]
    for update in log:
        one.fold(*update)
    for update in log[-3:]:
        other.fold(*update)
    for x in ((("a", 1.0),), (("b", 2.0), ("a", -1.0))):
        assert bits(one.score(x, 40)) == bits(other.score(x, 40))


# --- who refuses, and what is said --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        ("kernel-perceptron", "learner.budget"),
        ("voted-perceptron", "averaged-perceptron"),
        ("elimination", "Leave it out"),
        ("con", "Leave it out"),
        ("halving", "Leave it out"),
    ],
)
def test_a_learner_that_cannot_forget_so_refuses(kind: str, remedy: str) -> None:
    """It gives the reason and what to do instead."""
    (found,) = [each for each in unmet(of(5, kind)) if each.key == "learner.window"]
    assert found.wrong.startswith(kind)
    assert remedy in found.remedy
    assert not [each for each in unmet(of(None, kind)) if each.key == "learner.window"]


def test_every_learner_takes_it_or_refuses() -> None:
    """No learner ignores the setting."""
    for name, kind in KINDS.items():
        refuses = any(each.key == "learner.window" for each in unmet(of(5, name)))
        assert refuses is not ("window" in kind.parameters), name
    assert not any(
        isinstance(learner(3, kind=name, threshold=1.0, gamma=0.1), VersionSpace) for name in LINEAR
    )


ROWS = [Row(str(n), {"a": 1 if n % 2 else -1}, n % 4 < 2) for n in range(200)]
"""Nothing separates them: there are always more mistakes."""


def test_a_theorem_is_shown_as_long_as_nothing_was_left_out() -> None:
    """Afterwards theta no longer holds all the updates that it counts; the certificate is of those that count."""
    for window, shown in ((None, True), (1_000, True), (20, False)):
        state = replay_rows(ROWS, of(window, gamma=0.5), 1)
        tallies = [ledger.tallies.epoch for ledger in state.ledgers.values()]
        assert bool(claims(state.model, tallies)) is shown, window
    sums = state.model.learner.theta()
    (counting,) = state.model.window.counting()  # type: ignore[union-attr]
    assert certificate(state.model) == abs(sums["a"]) / counting


def test_a_report_says_how_many_count() -> None:
    """Of each partition; null without a window."""
    told = json.loads(report_of(replay_rows(ROWS, of(20), 2)).to_json())["model"]
    assert told["window"] == 20
    assert all(19 <= count <= 20 for count in told["counting"])
    told = json.loads(report_of(replay_rows(ROWS, of(None), 2)).to_json())["model"]
    assert (told["window"], told["counting"]) == (None, None)


def test_a_theta_that_came_back_proves_nothing_under_a_window() -> None:
    """Forgetting brings it back on separable data too, so no cycle is claimed."""
    rows = [Row("1", {"a": 1, "b": 1}, True), Row("2", {"a": -1, "b": 1}, True)]
    found = replay_passes(rows, of(1), 1, most=8)
    assert not found.converged
    assert found.cycle is None
    assert replay_passes(rows, of(None), 1, most=8).converged


def test_a_setting_that_is_not_set_changes_no_digest() -> None:
    """A log that was begun before there was a window is the same log, and its checkpoints stay good."""
    old = dict(Settings().of_epoch())
    old["learner"] = {name: value for name, value in old["learner"].items() if name != "window"}
    assert _digest(old) == settings_digest(Settings())
    assert _digest(old) != settings_digest(of(5))


# --- everybody alike ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", LINEAR)
@few
@given(data=st.data())
def test_a_rollback_restores_every_bit(kind: str, data: Any) -> None:
    """Blocks left out in a step that is given up are there again, in their order; and it goes on alike."""
    unit = st.dictionaries(st.sampled_from("abc"), st.sampled_from([0.0, 1.0]), max_size=3)
    each = st.tuples(
        st.integers(0, 1), unit.map(lambda x: tuple(x.items())), st.booleans(), st.integers(1, 99)
    )
    log = data.draw(st.lists(each, max_size=60))
    size = data.draw(st.sampled_from([1, 3, 21, 35]))
    one, other = (learner(size, kind=kind, threshold=1.0, gamma=0.1) for _ in range(2))
    at = 0
    while at < len(log):
        step = data.draw(st.integers(1, 40))
        one.begin()
        for update in log[at : at + step]:
            one.fold(*update, None)
        if data.draw(st.booleans()):
            one.rollback()
            assert said(one) == said(other)
            one.begin()
            for update in log[at : at + step]:
                one.fold(*update, None)
        for update in log[at : at + step]:
            other.fold(*update, None)
        at += step
    assert said(one) == said(other)


def logged(random: Random, partitions: int, settings: Settings) -> tuple[Model, dict[int, list[Record]]]:
    """A worker's model after a stream of mostly mistakes, and its `updates`."""
    feeder = Feeder(partitions, **settings.model_dump(include={"learner", "features", "labels", "batch"}))
    logs = {
        p: [Record("updates", p, 0, 0, None, encode(first_epoch(feeder.settings)))] for p in range(partitions)
    }
    for number in range(150):
        p = random.randrange(partitions)
        features = {random.choice("abcde"): random.uniform(-1, 1), "z": random.choice((0.1, 1e17))}
        fed = feeder.feed(
            feeder.example(number, 2 * number, features, partition=p),
            feeder.label(number, 2 * number + 1, random.random() < 0.5, partition=p),
        )
        for output in fed.outputs:
            if output.topic == "updates":
                q = output.partition
                logs[q].append(Record("updates", q, len(logs[q]), 0, None, output.value))
    return feeder.model, logs


@pytest.mark.parametrize("kind", ["averaged-perceptron", *long("perceptron", "balanced-winnow")])
def test_any_reader_of_the_log_holds_the_same_bits(kind: str) -> None:
    """In any pieces, in any interleaving, from a snapshot anywhere on the way."""
    for seed in range(8):
        random = Random(seed)
        model, logs = logged(random, 2, of(random.choice((2, 7, 20, 33)), kind))
        fold = Fold(model.settings, 2)
        left = {p: list(log) for p, log in logs.items()}
        while any(left.values()):
            p = random.choice([p for p, rest in left.items() if rest])
            size = random.randrange(1, 30)
            assert fold.fold(p, left[p][:size])
            left[p] = left[p][size:]
            if random.random() < 0.3:
                content = msgspec.msgpack.encode(fold.model.snapshot())
                again = Fold(model.settings, 2, fold.epochs.values())
                again.restore(msgspec.msgpack.decode(content, type=Snapshot), fold.next_offsets)
                fold = again
        assert bits(fold.model.snapshot().state) == bits(model.snapshot().state)
        assert fold.model.digest() == model.digest()
        assert fold.model.window is not None
        assert fold.model.window.forgot


def test_updates_that_an_epoch_is_based_on_are_forgotten_in_time() -> None:
    """They were folded before the epoch's own updates, so they leave the window first."""
    settings = of(3)

    def update(epoch: int, n: int, x: float) -> Update:
        return Update(
            epoch, n, [n], str(n), True, False, msgspec.Raw(encode({"a": x})), n, Version(epoch, [0])
        )

    written = dict(settings.of_epoch())
    log = [
        Epoch(1, 1, written),
        *(update(1, n, 10.0**n) for n in range(1, 6)),
        Epoch(2, 1, written, Base(1, [4])),
        update(2, 1, 1.0),
    ]
    records = [Record("updates", 0, n, 0, None, encode(one)) for n, one in enumerate(log)]
    fold = Fold(settings, 1)
    while not fold.fold(0, records):
        fold = Fold(settings, 1, fold.epochs.values())
    assert fold.model.learner.theta() == {"a": 1_000.0 + 10_000.0 + 1.0}
    assert fold.model.updates == [1]
    assert isinstance(read_update(records[-1]), Update)
