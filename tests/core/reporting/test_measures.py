"""What a confusion comes to is what scikit-learn makes of the same predictions; of nothing there is no share."""

import math
import warnings
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mistakebound.core.messages.confusion import Confusion
from mistakebound.core.messages.costs import costs_of
from mistakebound.core.messages.tallies import Tally, zero
from mistakebound.core.reporting.measures import ConfusionReport, Measures, confusion_report
from mistakebound.core.step.confusions import Judged, add, counted
from mistakebound.settings import LabelSettings

SHARES = ("precision", "recall", "f1", "specificity", "balanced_accuracy", "kappa")


def tally(judged: Sequence[Judged], *, earlier: int = 0) -> Tally:
    """Of one partition; `earlier`: so many more were judged by a version that did not count so."""
    found = zero()
    found.labels["applied"] = len(judged) + earlier
    found.confusion = Confusion()
    add(found.confusion, counted(found.confusion, judged, Counter(judged)), classes_open=False)
    return found


def reported(*partitions: Sequence[Judged], classes: Sequence[Any] = ()) -> ConfusionReport:
    tallies = [tally(judged) for judged in partitions]
    return confusion_report(tallies, classes, sum(one.judged for one in tallies))


def oracle(pairs: Sequence[tuple[str, str]], positive: str | None) -> dict[str, float]:
    """By scikit-learn; its NaN where it is undefined."""
    from sklearn import metrics  # takes two seconds

    actual, said = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    names = sorted({*actual, *said, *([positive] if positive else [])})
    table = metrics.confusion_matrix(actual, said, labels=[*names, "another"])
    specificities = {}
    for place, name in enumerate(names):
        negatives = table.sum() - table[place].sum()
        false_alarms = table[:, place].sum() - table[place, place]
        specificities[name] = (negatives - false_alarms) / negatives if negatives else math.nan
    how: dict[str, Any] = {
        "labels": [positive] if positive else names,
        "average": "macro",
        "zero_division": math.nan,
    }
    known = [each for each in specificities.values() if not math.isnan(each)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "precision": metrics.precision_score(actual, said, **how),
            "recall": metrics.recall_score(actual, said, **how),
            "f1": metrics.f1_score(actual, said, **how),
            "specificity": specificities.get(positive, math.nan) if positive else sum(known) / len(known) if known else math.nan,
            "balanced_accuracy": metrics.balanced_accuracy_score(actual, said),
            "kappa": metrics.cohen_kappa_score(actual, said),
        }  # fmt: skip


def assert_as(found: Measures, expected: dict[str, float]) -> None:
    for name in SHARES:
        value = getattr(found, name)
        if value is None:
            assert math.isnan(expected[name]), name
        else:
            assert value == pytest.approx(expected[name], abs=1e-12), name


def judged_of(pairs: Sequence[tuple[str, str]]) -> list[Judged]:
    return [(actual, said, None, False) for actual, said in pairs]


def named(classes: int) -> st.SearchStrategy[list[tuple[str, str]]]:
    name = st.integers(0, classes - 1).map("c{:02}".format)
    return st.lists(st.tuples(name, name), min_size=1, max_size=80)


@given(named(2))
def test_two_classes_are_measured_as_scikit_learn_measures_them(pairs: list[tuple[str, str]]) -> None:
    """By the positive class, the first declared."""
    found = reported(judged_of(pairs), classes=("c01", "c00"))
    assert found.positive == "c01"
    assert_as(found.model.measures, oracle(pairs, "c01"))


@given(named(5), st.integers(1, 3))
def test_more_classes_are_measured_as_scikit_learn_measures_them(
    pairs: list[tuple[str, str]], partitions: int
) -> None:
    """Means over the classes, however the predictions lie in partitions."""
    parts = [judged_of(pairs[p::partitions]) for p in range(partitions)]
    found = reported(*parts, classes=("c04", "c02", "c00", "c01", "c03"))
    assert found.positive is None
    assert_as(found.model.measures, oracle(pairs, None))


@pytest.mark.parametrize("classes", [2, 20, 21, 60])
def test_any_number_of_classes_is_measured_exactly(classes: int) -> None:
    """Beyond 20 the totals by class are enough."""
    random = Random(classes)
    names = [f"c{number:02}" for number in range(classes)]
    pairs = [(one := random.choice(names), one if random.random() < 0.6 else random.choice(names)) for _ in range(4_000)]  # fmt: skip
    found = reported(judged_of(pairs[::2]), judged_of(pairs[1::2]))
    assert (found.model.table is None) is (classes > 20)
    assert_as(found.model.measures, oracle(pairs, None))
    assert found.model.mistakes == sum(one != other for one, other in pairs)
    for one in found.model.largest:
        assert one.at_least <= pairs.count((one.actual, one.predicted)) <= one.at_most  # type: ignore[arg-type]
    assert len(found.model.largest) == min(20, classes * (classes - 1))


def test_shares_of_others_mistakes_are_right_by_hand() -> None:
    """4 mistakes where always the majority makes 5, and predicting the label before 8: 1/5 and 1/2 avoided."""
    judged: list[Judged] = [("a", "b", "b", True)] * 4 + [("a", "a", "b", True)] + [("a", "a", "a", True)] * 3
    measures = reported(judged, classes=("a", "b")).model.measures
    assert measures.kappa_m == float(Fraction(1, 5))
    assert measures.kappa_t == float(Fraction(1, 2))
    assert reported(judged, classes=("a", "b")).majority.measures.kappa_m == 0.0


@pytest.mark.parametrize("classes", [(), ("a", "b")])
def test_of_nothing_every_measure_is_unknown(classes: Sequence[Any]) -> None:
    """0 would be the worst there is, and 1 the best."""
    found = reported([], classes=classes)
    assert set(vars_of(found.model.measures)) == {None}
    assert (found.judged, found.unknown, found.model.largest) == (0, 0, ())


def vars_of(measures: Measures) -> list[float | None]:
    return [getattr(measures, name) for name in measures.__slots__]


def test_costs_are_those_of_the_mistakes_and_of_the_majoritys() -> None:
    """Of all partitions together; without costs there is none to tell."""
    judged: list[Judged] = [("a", "b", "a", True)] * 3 + [("b", "a", "a", True)] * 2
    costs = costs_of(LabelSettings(classes=("a", "b"), costs={"false_positive": 0.1, "false_negative": 10}))
    tallies = [tally(judged), tally(judged[:1])]
    found = confusion_report(tallies, ("a", "b"), costs=costs)
    assert (found.model.cost, found.majority.cost) == (40.2, 0.2)
    assert confusion_report(tallies, ("a", "b")).model.cost is None


def test_what_an_earlier_version_judged_is_unknown_and_not_0() -> None:
    """It is in no count and in no measure."""
    whole = confusion_report([tally([("a", "a", "b", False)] * 3, earlier=7), zero()], ("a", "b"), 10)
    assert (whole.judged, whole.unknown) == (3, 7)
    assert whole.model.measures.recall == 1.0


def test_a_class_that_is_none_is_no_class_and_its_prediction_a_mistake() -> None:
    """Open classes: nothing was known yet."""
    found = reported([("a", None, None, True), ("a", "a", "a", False)])
    assert found.classes == ("a", None)
    assert list(found.by_class) == ["a"]
    assert found.by_class["a"].recall == 0.5
    assert found.model.largest[0].predicted is None


def test_classes_of_an_older_epoch_make_measures_means() -> None:
    """There is no one positive class then; those declared come first, the others by name."""
    found = reported([("old", "z", None, False), ("yes", "no", None, False)], classes=("yes", "no"))
    assert found.classes == ("yes", "no", "old", "z", None)
    assert found.positive is None
