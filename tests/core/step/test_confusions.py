"""Judged predictions by (actual, predicted): every pair of up to 20 classes, of more what came most often."""

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from mistakebound.core.audit.confusions import Confusions
from mistakebound.core.messages.confusion import MOST_HELD, MOST_TABLED, Confusion, Pairs
from mistakebound.core.step.confusions import Judged, add, counted
from tests.core.support.feeding import Feeder


def of(judged: list[Judged], *, portions: int = 1, classes_open: bool = False) -> Confusion:
    """Counted in so many portions."""
    confusion = Confusion()
    size = -(-len(judged) // portions) or 1
    for begin in range(0, len(judged), size):
        portion = judged[begin : begin + size]
        add(confusion, counted(confusion, portion, Counter(portion)), classes_open=classes_open)
    return confusion


def audited(judged: list[Judged], *, classes_open: bool = False) -> Confusion:
    made = Confusions()
    for actual, predicted, majority, differs in judged:
        made.judged(actual, predicted, majority, None if differs else actual, classes_open=classes_open)
    return made.made()


def streams(classes: int, most: int) -> st.SearchStrategy[list[Judged]]:
    name = st.integers(0, classes - 1).map("c{}".format)
    return st.lists(st.tuples(name, st.none() | name, st.none() | name, st.booleans()), max_size=most)


def test_every_pair_of_two_classes_is_counted() -> None:
    """The worker's predictions, and those of the majority so far."""
    f = Feeder(labels={"positive": "spam", "negative": "ham"}, learner={"kind": "averaged-perceptron"})
    for number, label in enumerate(["spam", "spam", "ham", "spam"]):
        f.feed(f.example(f"i{number}", number), f.label(f"i{number}", number, label))
    found = f.ledger.tallies.life.confusion
    assert found.classes == ["spam", "ham"]
    assert found.model.table == [[2, 1], [1, 0]]
    assert found.majority.table == [[2, 1], [1, 0]]
    assert found.last_label_mistakes == 3
    assert f.ledger.tallies.last_label == "spam"
    f.balance()


def test_an_epoch_counts_only_the_predictions_made_in_it() -> None:
    """As it does mistakes; the majority is then counted on the same examples."""
    f = Feeder()
    f.feed(f.example("a", 1), f.example("b", 2))
    f.state.model.epoch = 2
    f.ledger.tallies.begin_epoch()
    f.feed(f.label("a", 3), f.example("c", 4), f.label("c", 5))
    assert f.ledger.tallies.life.confusion.model.table == [[1, 1], [0, 0]]
    assert f.ledger.tallies.epoch.confusion.model.table == [[1]]
    assert f.ledger.tallies.epoch.confusion.majority.table == [[1]]


def test_a_step_taken_back_takes_its_counts_back() -> None:
    """Nothing of a transaction that was given up counts."""
    f = Feeder()
    f.feed(f.example("a", 1), f.label("a", 1))
    before = f.ledger.tallies.copy()
    f.feed(f.example("b", 2), f.label("b", 2, False))
    assert f.ledger.tallies != before
    f.state.rollback([0])
    assert f.ledger.tallies == before


def test_counts_that_an_earlier_version_did_not_write_begin_now() -> None:
    """What it judged is in none of them."""
    f = Feeder()
    f.feed(f.example("a", 1), f.label("a", 1))
    tallies = f.ledger.tallies
    tallies.life.confusion = tallies.epoch.confusion = tallies.last_label = UNSET
    f.feed(f.example("b", 2), f.label("b", 2))
    assert f.ledger.tallies.life.judged == 2
    assert f.ledger.tallies.life.confusion.model.table == [[1]]


@given(streams(4, 60) | streams(30, 400), st.integers(1, 7), st.booleans())
def test_counts_depend_on_the_order_alone(judged: list[Judged], portions: int, classes_open: bool) -> None:
    """However it was cut into steps; and the audit counts the same in its own way."""
    whole = of(judged, classes_open=classes_open)
    assert of(judged, portions=portions, classes_open=classes_open) == whole
    assert audited(judged, classes_open=classes_open) == whole


@given(streams(MOST_TABLED, 200))
def test_up_to_20_classes_every_count_is_exact(judged: list[Judged]) -> None:
    """Beside null, which is no class."""
    found = of(judged)
    for rule, column in ((found.model, 1), (found.majority, 2)):
        pairs = Counter((one[0], one[column]) for one in judged)
        assert {
            (actual, said): rule.table[row][place]
            for row, actual in enumerate(found.classes)
            for place, said in enumerate(found.classes)
            if rule.table[row][place]
        } == pairs


@pytest.mark.parametrize("seed", range(5))
def test_of_more_classes_totals_are_exact_and_counts_of_pairs_within_what_they_say(seed: int) -> None:
    """A pair that is held came from count - over to count times, one that is not at most as often as the rarest."""
    random = Random(seed)
    names = [f"c{number}" for number in range(40)]
    judged: list[Judged] = []
    for _ in range(5_000):
        actual, said = (names[min(39, int(random.expovariate(0.15)))] for _ in range(2))
        judged.append((actual, said, said, False))
    found = of(judged)
    assert found.model == found.majority
    assert not found.tabled
    pairs = Counter((one[0], one[1]) for one in judged)
    for place, name in enumerate(found.classes):
        assert found.actual[place] == sum(count for pair, count in pairs.items() if pair[0] == name)
        assert found.model.predicted[place] == sum(count for pair, count in pairs.items() if pair[1] == name)
        assert found.model.correct[place] == pairs[name, name]
    assert len(found.model.held) == MOST_HELD
    held = {(found.classes[one.actual], found.classes[one.predicted]): one for one in found.model.held}
    for pair, count in pairs.items():
        if pair in held:
            assert held[pair].count - held[pair].over <= count <= held[pair].count
        elif pair[0] != pair[1]:
            assert count <= found.model.held[-1].count
    assert any(one.over for one in found.model.held)


def test_classes_beyond_the_names_that_are_kept_count_as_null() -> None:
    """All labels still add up, and two such classes are not the same one."""
    judged: list[Judged] = [(f"{n:0200}", f"{n + n % 2:0200}", None, False) for n in range(600)]
    found = of(judged)
    assert found == audited(judged)
    assert None in found.classes
    assert len(found.classes) < 300
    assert sum(found.actual) == sum(found.model.predicted) == 600
    assert sum(found.model.correct) == 300


def test_open_classes_that_no_label_had_are_few() -> None:
    """Other partitions may have taught the model any number of them."""
    judged: list[Judged] = [("a", f"other{number}", "a", False) for number in range(50)]
    found = of(judged, classes_open=True)
    assert found == audited(judged, classes_open=True)
    assert len(found.classes) == 22
    assert found.model.predicted[found.classes.index(None)] == 30
    assert of(judged).model != found.model


def test_one_declared_class_with_a_name_too_long_is_counted_as_null() -> None:
    """Even as the first one."""
    name: Any = "x" * 60_000
    judged: list[Judged] = [(name, "b", "b", False), ("b", name, "b", False), (name, name, "b", False)]
    found = of(judged)
    assert found == audited(judged)
    assert found.classes == [None, "b"]
    assert (found.actual, found.model.predicted, found.model.correct) == ([2, 1], [2, 1], [1, 0])
    assert found.majority == Pairs([], [0, 3], [0, 1], found.majority.held)
