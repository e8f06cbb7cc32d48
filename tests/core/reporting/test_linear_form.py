"""A model as rows of weights: scikit-learn, given them, computes the scores that the worker would publish."""

import json
from random import Random
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier

from mistakebound.core.faults import BadRecord
from mistakebound.core.learners import KINDS
from mistakebound.core.messages.features import BIAS, Features, read
from mistakebound.core.model.model import Model
from mistakebound.core.reporting.linear_form import LinearForm, NotLinear, linear_form
from mistakebound.settings import Settings
from tests.core.support.every_kind import CASES, Case

LINEAR = {name: case for name, case in CASES.items() if KINDS[case.kind].sums}
OTHERS = {name: case for name, case in CASES.items() if not KINDS[case.kind].sums}


def learned(case: Case, rows: int = 60, **features: Any) -> Model:
    """A model after a stream of its own examples, over two partitions where it can have them."""
    rules = {**case.settings.features.model_dump(), **features}
    settings = Settings.model_validate({**case.settings.model_dump(), "features": rules})
    partitions = case.partitions(2)
    model = Model(settings, partitions)
    random = Random(7)
    for n in range(rows):
        raw, label = case.row(random)
        x = read_or_none(model, raw, case.tenant(random))
        if x is None:
            continue
        amount, predicted = model.decide(x, label)
        if amount:
            model.learner.fold(
                n % partitions, x, model._learned(label), n + 1, model._learned(predicted), amount
            )
        model.clock[n % partitions] += 1
    return model


def read_or_none(model: Model, raw: dict[str, float], tenant: Any) -> Features | None:
    """Features as the learner reads them; None where all are 0, and are to be normalised."""
    try:
        return model.features(json.dumps(raw).encode(), None if tenant is None else str(tenant))
    except BadRecord:
        return None


def in_sklearn(found: LinearForm) -> SGDClassifier:
    """As the page on learners has it."""
    linear = SGDClassifier()
    linear.classes_, linear.coef_, linear.intercept_ = map(
        np.array, (found.classes, found.coef, found.intercept)
    )
    return linear


def columns(found: LinearForm, x: Features) -> np.ndarray:
    """An example as the learner reads it, with a column for each feature that was exported."""
    values = dict(x)
    if BIAS not in found.features:
        values.pop(BIAS, None)
    return np.array([[values.get(name, 0.0) for name in found.features]])


def compare(model: Model, case: Case, seed: int = 3) -> None:
    """Fresh examples: equal scores, equal classes where no two scores are equal."""
    found = linear_form(model)
    linear, random = in_sklearn(found), Random(seed)
    for _ in range(40):
        x = read_or_none(model, case.features(random), case.tenant(random))
        if x is None or (found.unseen and not {name for name, _ in x} <= {*found.features, BIAS}):
            continue
        score = model.score(x)
        theirs = linear.decision_function(columns(found, x))[0]
        np.testing.assert_allclose(theirs, score, rtol=1e-9, atol=1e-9)
        if is_clear(theirs):
            assert linear.predict(columns(found, x))[0] == model.predict(score)


def is_clear(scores: Any) -> bool:
    """Whether no rounding decides the class."""
    others = np.sort(np.append(scores, 0.0) if np.ndim(scores) == 0 else scores)
    return bool(others[-1] - others[-2] > 1e-6)


@pytest.mark.parametrize("name", LINEAR)
def test_scikit_learn_computes_our_scores(name: str) -> None:
    """Of each learner whose score is a sum over the features, with its windows, averages, thresholds and classes."""
    compare(learned(LINEAR[name]), LINEAR[name])


@pytest.mark.parametrize(
    "features",
    [{"bias": False}, {"scale": {"a": (0.5, 2.0), "b": (-1.0, 0.25)}}, {"normalize": "unit"}, {"normalize": "unit", "bias": False}],
)  # fmt: skip
@pytest.mark.parametrize("name", ["averaged perceptron", "perceptron, three classes"])
def test_so_it_does_however_features_are_read(name: str, features: dict[str, Any]) -> None:
    """Scaled and normalised as the form says, BIAS among the columns where it is normalised too."""
    model = learned(LINEAR[name], **features)
    found = linear_form(model)
    assert (found.normalize, dict(found.scale)) == (
        features.get("normalize", "none"),
        features.get("scale", {}),
    )
    assert (BIAS in found.features) == (features == {"normalize": "unit"})
    compare(model, LINEAR[name])


def test_what_has_not_learned_says_nothing() -> None:
    """No column, and scores of 0."""
    found = linear_form(Model(LINEAR["perceptron"].settings, 1))
    assert (found.features, found.coef, found.intercept) == ((), ((),), (0.0,))


def test_a_winnow_with_a_number_as_threshold_has_a_weight_for_every_other_column() -> None:
    """That of a feature that no update has had."""
    settings = Settings.model_validate(
        {"learner": {"kind": "winnow", "threshold": 2.0, "initial_weight": 0.75}, "features": {"bias": False}}
    )
    model = Model(settings, 1)
    found = linear_form(model)
    assert (found.unseen, found.intercept) == (0.75, (-2.0,))
    assert model.score((("new", 4.0),)) == found.unseen * 4.0 + found.intercept[0]


@pytest.mark.parametrize("name", OTHERS)
def test_a_score_that_is_no_sum_is_refused(name: str) -> None:
    """By the learner's name."""
    with pytest.raises(NotLinear, match=f"learner.kind = {OTHERS[name].kind}"):
        linear_form(learned(OTHERS[name]))


def test_one_open_class_is_not_enough() -> None:
    """There is nothing to tell apart yet."""
    with pytest.raises(NotLinear, match="it knows 0 classes"):
        linear_form(Model(LINEAR["perceptron, open classes"].settings, 1))


def test_names_of_classes_and_features_may_hold_what_is_put_between_them() -> None:
    """The class `a` has a feature `b/c`, and the class `a/b` a feature `c`."""
    settings = Settings.model_validate(
        {
            "learner": {"kind": "perceptron"},
            "labels": {"classes": ["a", "a/b", "c"]},
            "features": {"bias": False},
        }
    )
    model = Model(settings, 1)
    for label, name in (("a/b", "c"), ("c", "b/c")):
        x = read({name: 1.0}, settings.features)
        model.learner.fold(0, x, label, 1, "a")
    found = linear_form(model)
    assert {*found.features} >= {"c", "b/c"}
    for name in ("c", "b/c"):
        row = [coef[found.features.index(name)] for coef in found.coef]
        assert row == model.score(((name, 1.0),))
