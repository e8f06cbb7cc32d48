"""Laws that hold for every learner, in every form: the fold, what is kept of it, and the ways to run it."""

from collections.abc import Iterable
from math import inf
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from mistakebound.core.learners import KINDS, Learner
from mistakebound.core.learners.requirements import unmet
from mistakebound.core.messages.schema import encode
from mistakebound.core.model.fold import Fold
from mistakebound.core.model.model import first_epoch
from mistakebound.core.model.model_snapshot import Snapshot
from mistakebound.core.records import Record
from mistakebound.core.replay.replay import Row, replay_rows, report_of
from mistakebound.settings import OF_EPOCH
from tests.core.support.every_kind import CASES, EVERY_CASE, Case, parameters
from tests.core.support.feeding import Feeder
from tests.core.support.histories import History, bits
from tests.support.tries import long, tried

reals = st.floats(-1e6, 1e6)
wholes = st.integers(-8, 8).map(float)
"""Small whole numbers add up exactly, so orders and groupings of additions cannot matter."""

few = tried(5)


def said(learner: Learner, probes: Iterable[Any] = ((("a", 1.0), ("b", 1.0)), (("d", 1.0),), ())) -> Any:
    """All that can be asked of a learner, to the bit."""
    return (
        bits(learner.dump()),
        learner.digest(),
        bits(dict(learner.theta())),
        bits(dict(learner.weights())),
        [bits(learner.score(x, 100)) for x in probes],
    )


def rows(case: Case, count: int = 60, seed: int = 1) -> list[Row]:
    """Labelled examples that suit the learner."""
    random = Random(seed)
    return [Row(f"i{number}", *case.row(random), tenant=case.tenant(random)) for number in range(count)]


@EVERY_CASE
def test_the_settings_of_the_table_are_accepted(case: Case) -> None:
    """The table gives each learner every setting that it needs."""
    assert not list(unmet(case.settings, case.partitions(3)))


# --- what a learner is --------------------------------------------------------------------------------------


@EVERY_CASE
@few
@given(data=st.data())
def test_what_is_kept_as_messagepack_comes_back_to_the_bit(case: Case, data: Any) -> None:
    """And goes on to the same bits; what the loaded learner learns does not leak into the first."""
    before, after = data.draw(case.updates(reals)), data.draw(case.updates(reals, most=4))
    one, other = case.learner(3), case.learner(3)
    for update in before:
        one.fold(*update)
    kept = msgspec.msgpack.encode(one.dump())
    other.load(msgspec.msgpack.decode(kept))
    assert said(other) == said(one)
    for update in after:
        other.fold(*update)
    assert msgspec.msgpack.encode(one.dump()) == kept
    for update in after:
        one.fold(*update)
    assert said(other) == said(one)


@EVERY_CASE
@few
@given(data=st.data())
def test_loading_replaces_all_there_was(case: Case, data: Any) -> None:
    """A learner that has learned and then loads is the one that was dumped."""
    one, other = case.learner(2), case.learner(2)
    for update in data.draw(case.updates(reals, 2, most=6)):
        one.fold(*update)
    for update in data.draw(case.updates(reals, 2, most=6)):
        other.fold(*update)
    other.load(msgspec.msgpack.decode(msgspec.msgpack.encode(one.dump())))
    assert said(other) == said(one)


@EVERY_CASE
@few
@given(data=st.data())
def test_a_rollback_restores_every_bit(case: Case, data: Any) -> None:
    """Old values are put back, never subtracted; names, classes and mistakes seen only since then vanish."""
    before, during = data.draw(case.updates(reals)), data.draw(case.updates(reals))
    one, copy = case.learner(3), case.learner(3)
    for update in before:
        one.fold(*update)
        copy.fold(*update)
    for _ in range(2):
        one.begin()
        for update in during:
            one.fold(*update)
        one.rollback()
        assert said(one) == said(copy)
    for update in during:
        one.fold(*update)
        copy.fold(*update)
    assert said(one) == said(copy)


@EVERY_CASE
@few
@given(data=st.data())
def test_two_steps_are_taken_back_one_after_the_other(case: Case, data: Any) -> None:
    """The second is made while the first one is being committed; the group may move on meanwhile."""
    before, first, second = (data.draw(case.updates(reals)) for _ in range(3))
    one, without_any, with_first = (case.learner(3) for _ in range(3))
    for each, updates in ((one, before), (without_any, before), (with_first, [*before, *first])):
        for update in updates:
            each.fold(*update)
    for updates in (first, second):
        one.begin()
        for update in updates:
            one.fold(*update)
    one.rollback()
    assert said(one) == said(with_first)
    one.rollback()
    assert said(one) == said(without_any)


@pytest.mark.parametrize("partitions", [3, *long(1)])
@EVERY_CASE
@few
@given(data=st.data())
def test_what_was_folded_for_good_stays_when_later_updates_are_taken_back(
    case: Case, partitions: int, data: Any
) -> None:
    """A fold keeps no journal; a step after it does, of its own updates only."""
    updates = case.updates(reals, partitions)
    before, during = data.draw(updates), data.draw(updates)
    one, copy = case.learner(partitions), case.learner(partitions)
    copy.begin()
    one.begin(undoable=False)
    for update in before:
        one.fold(*update)
        copy.fold(*update)
    one.begin()
    for update in during:
        one.fold(*update)
    one.rollback()
    assert said(one) == said(copy)


@EVERY_CASE
@few
@given(data=st.data())
def test_a_decision_is_by_the_newest_updates_on_features_scored_before_them(case: Case, data: Any) -> None:
    """A score that is remembered is of one version only."""
    one, copy = case.learner(1), case.learner(1)
    x, updates = data.draw(case.vectors(reals)), data.draw(case.updates(reals, 1))
    labels = (True, False) if case.binary else case.labels
    for update in updates:
        one.score(x, 100)
        one.fold(*update)
        copy.fold(*update)
        assert [one.decide(x, label) for label in labels] == [copy.decide(x, label) for label in labels]
    one.begin()
    for update in updates:
        one.fold(*update)
    one.score(x, 100)
    one.rollback()
    assert [one.decide(x, label) for label in labels] == [copy.decide(x, label) for label in labels]


@EVERY_CASE
@few
@given(data=st.data())
def test_deciding_and_scoring_change_nothing(case: Case, data: Any) -> None:
    """Only a fold does."""
    one = case.learner(3)
    for update in data.draw(case.updates(reals)):
        one.fold(*update)
    before = said(one)
    for x in data.draw(st.lists(case.vectors(reals), max_size=4)):
        one.predict(one.score(x, 100))
        for label in (True, False) if case.binary else case.labels:
            one.decide(x, label)
    assert said(one) == before


@EVERY_CASE
@few
@given(data=st.data(), order=st.randoms(use_true_random=False))
def test_any_interleaving_of_the_partitions_gives_the_same_bits(case: Case, data: Any, order: Any) -> None:
    """Each row is folded in its partition's order; between partitions there is no order."""
    log = data.draw(case.updates(reals))
    one, other = case.learner(3), case.learner(3)
    for update in log:
        one.fold(*update)
    rest = [[update for update in log if update[0] == p] for p in range(3)]
    while any(rest):
        other.fold(*order.choice([left for left in rest if left]).pop(0))
    assert said(one) == said(other)


ORDERED = {"kernel-perceptron", "voted-perceptron"}
"""Their hypothesis is a list."""
COMMUTATIVE = [
    name for name, case in CASES.items() if case.kind not in ORDERED and case.settings.learner.window is None
]
"""Under a window it matters which updates are the last."""


@pytest.mark.parametrize("case", parameters(COMMUTATIVE))
@few
@given(data=st.data())
def test_the_fold_commutes(case: Case, data: Any) -> None:
    """Where additions are exact, any order of the updates gives the same state: it is their sum, or meet."""
    log = data.draw(case.updates(wholes))
    one, other = case.learner(3), case.learner(3)
    for update in log:
        one.fold(*update)
    for update in data.draw(st.permutations(log)):
        other.fold(*update)
    assert one.dump() == other.dump()
    assert one.digest() == other.digest()


@pytest.mark.parametrize("case", parameters(COMMUTATIVE))
@few
@given(data=st.data())
def test_the_hypothesis_does_not_depend_on_who_owned_the_examples(case: Case, data: Any) -> None:
    """Dealt to other partitions, the same updates give the same digest."""
    log = data.draw(case.updates(wholes))
    one, other = case.learner(3), case.learner(3)
    for update in log:
        one.fold(*update)
        other.fold(data.draw(st.integers(0, 2)), *update[1:])
    assert one.digest() == other.digest()


# --- the worker's own step ----------------------------------------------------------------------------------


@EVERY_CASE
@pytest.mark.parametrize("wished", [3, *long(1)])
def test_the_fold_of_the_log_is_the_workers_own_model(case: Case, wished: int) -> None:
    """To the bit, with the version and the radius, from the records of `updates` alone."""
    partitions = case.partitions(wished)
    feeder = Feeder(partitions, **case.settings.model_dump(include=set(OF_EPOCH)))
    logs = {
        p: [Record("updates", p, 0, 0, None, encode(first_epoch(feeder.settings)))] for p in range(partitions)
    }
    for number, row in enumerate(rows(case)):
        p = number % partitions
        fed = feeder.feed(
            feeder.example(row.id, 2 * number, row.features, tenant=row.tenant, partition=p),
            feeder.label(row.id, 2 * number + 1, row.label, partition=p),
        )
        assert not fed.dead_letters
        for output in fed.outputs:
            if output.topic == "updates":
                logs[p].append(Record("updates", p, len(logs[p]), 0, None, output.value))
    fold = Fold(feeder.settings, partitions)
    for p in reversed(range(partitions)):
        assert fold.fold(p, logs[p])
    assert bits(fold.model.snapshot().state) == bits(feeder.model.snapshot().state)
    assert fold.model.updates == feeder.model.updates
    assert sum(fold.model.updates) > 0
    assert fold.model.radius == feeder.model.radius
    assert fold.model.digest() == feeder.model.digest()


@EVERY_CASE
def test_a_checkpoint_holds_the_whole_model(case: Case) -> None:
    """Written and read as a file's content, it goes on to the same predictions."""
    partitions = case.partitions(2)
    first, rest = rows(case, 40), rows(case, 20, seed=2)
    state = replay_rows(first, case.settings, partitions)
    held = msgspec.msgpack.decode(msgspec.msgpack.encode(state.model.snapshot()), type=Snapshot)
    fold = Fold(case.settings, partitions, [first_epoch(case.settings)])
    fold.restore(held, [0] * partitions)
    for row in rest:
        raw = encode(row.features)
        x = fold.model.features(raw, None if row.tenant is None else str(row.tenant))
        assert bits(fold.model.score(x)) == bits(state.model.score(x))
        assert fold.model.decide(x, row.label) == state.model.decide(x, row.label)
    assert fold.model.digest() == state.model.digest()


@pytest.mark.long
@EVERY_CASE
def test_a_restart_anywhere_goes_on_to_the_same_bits(case: Case) -> None:
    """From recovery points, checkpoints and outcomes, after steps taken back: like the worker that never stopped."""
    transactions = 0
    for seed in range(6):
        with capture_logs():
            history = History(Random(seed), case)
            history.run()
        transactions += history.transactions
    assert transactions > 15


@EVERY_CASE
@pytest.mark.parametrize("delay", [7, *long(0)])
def test_the_same_rows_give_the_same_report(case: Case, delay: int) -> None:
    """Byte for byte; at any partition count the same counts of mistakes, where there may be several."""
    reports = [
        report_of(replay_rows(rows(case), case.settings, 1, delay)),
        report_of(replay_rows(rows(case), case.settings, 1, delay)),
    ]
    assert reports[0].to_json() == reports[1].to_json()
    assert (reports[0].labelled, reports[0].learner) == (60, case.kind)


@pytest.mark.parametrize(
    "case", parameters(name for name, case in CASES.items() if (case.settings.learner.window or inf) > 2)
)
def test_it_learns(case: Case) -> None:
    """On labels that follow a rule of its own kind it ends up wrong less often than chance."""
    random = Random(4)
    long = [
        Row(str(number), *case.row(random, noise=0.0), tenant=case.tenant(random)) for number in range(400)
    ]
    early, whole = (
        report_of(replay_rows(part, case.settings, case.partitions(2))).mistakes
        for part in (long[:200], long)
    )
    classes = 2 if case.binary else 3
    assert whole - early < 200 * (1 - 1 / classes) / 2
    assert early > 0


def test_every_kind_says_what_it_is() -> None:
    """Source, bound, and what the bound speaks of."""
    for name, kind in KINDS.items():
        assert kind.source, name
        assert kind.bound, name
        assert set(kind.needs) <= set(kind.parameters), name
