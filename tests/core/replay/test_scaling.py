"""A static scale: fitted on data, applied before normalising, part of the epoch."""

from math import sqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from mistakebound.core.faults import BadRecord
from mistakebound.core.learners.requirements import unmet
from mistakebound.core.messages.features import read, reader
from mistakebound.core.model.model import first_epoch
from mistakebound.core.model.settings_diff import changes
from mistakebound.core.replay.replay import Row, replay_rows, report_of
from mistakebound.core.replay.scaling import fitted
from mistakebound.settings import FeatureSettings, Settings


def rules(scale: dict[str, Any], **more: Any) -> FeatureSettings:
    return FeatureSettings.model_validate({"scale": scale, **more})


def test_a_feature_is_moved_by_its_centre_and_divided_by_its_width() -> None:
    """Others, and BIAS, are left as they are; an absent one stays absent."""
    scaled = read({"a": 5, "b": 7, "c": 2}, rules({"a": (1, 2), "c": [2, 1], "absent": (9, 9)}))

    assert scaled == (("a", 2.0), ("b", 7.0), ("c", 0.0), ("BIAS", 1.0))


def test_every_form_of_features_is_scaled_by_name() -> None:
    """Places of an array, tokens, and the names that text features get."""
    bare = {"bias": False}
    assert read([4, 5], rules({"1": (1, 4)}, **bare)) == (("0", 4.0), ("1", 1.0))
    assert read(["x", "x"], rules({"x": (1, 0.5)}, **bare)) == (("x", 2.0),)
    assert read({"f": "red"}, rules({"f=red": (0, 0.5)}, **bare)) == (("f=red", 2.0),)


def test_scaling_comes_before_normalising() -> None:
    """The length is that of the scaled features, BIAS included."""
    found = read({"a": 7}, rules({"a": (1, 2)}, normalize="unit"))

    assert found == (("a", 3 / sqrt(10)), ("BIAS", 1 / sqrt(10)))


def test_a_scaled_value_beyond_the_largest_is_refused() -> None:
    """Like a value that was sent too large."""
    with pytest.raises(BadRecord) as refusal:
        reader(rules({"a": (0, 1e-20)}))(b'{"a": 1e90}')
    assert refusal.value.reason == "number-out-of-range"
    assert "once scaled" in refusal.value.detail


@pytest.mark.parametrize(
    "scale", [{"a": (0, 0)}, {"a": (0, -1)}, {"a": (0,)}, {"a": (float("nan"), 1)}, {"BIAS": (0, 1)}]
)
def test_a_scale_that_is_none_is_refused(scale: dict[str, Any]) -> None:
    """Width 0 would divide by it; BIAS is constant."""
    with pytest.raises(ValidationError):
        rules(scale)


def test_a_fitted_scale_gives_mean_0_and_deviation_1() -> None:
    """By hand: 1, 2, 3, 6 has mean 3 and variance 14/4."""
    examples = [read({"a": value}, FeatureSettings()) for value in (1, 2, 3, 6)]

    assert fitted(examples) == {"a": (3.0, sqrt(14 / 4))}


def test_a_feature_that_never_varies_where_it_is_present_is_left_as_it_is() -> None:
    """Categories, tokens and constants: scaled by their centre they would say the same as an absent feature."""
    decode = reader(FeatureSettings(bias=False))
    colours = [decode(b'{"colour": "red", "size": 1}'), decode(b'{"colour": "blue", "size": 2}')]

    assert fitted(colours) == {"size": (1.5, 0.5)}
    assert fitted([decode(b'["spam", "offer"]'), decode(b'["offer"]')]) == {}
    assert fitted([(("a", 0.1), ("b", float(n))) for n in range(10)]).keys() == {"b"}


def test_a_fitted_scale_keeps_what_categories_say() -> None:
    """A label that hangs on a category alone is learned as well with the fitted scale as without."""
    rows = [
        Row(str(n), {"colour": "red" if n % 3 else "blue", "size": float(n % 7)}, n % 3 == 0)
        for n in range(300)
    ]
    scale = fitted(read(row.features, FeatureSettings(bias=False)) for row in rows)
    averaged = {"learner": {"kind": "averaged-perceptron"}}
    reports = [
        report_of(
            replay_rows(rows, Settings.model_validate({**averaged, "features": {"scale": table}}), 1, 0)
        )
        for table in ({}, scale)
    ]

    assert reports[1].mistakes <= reports[0].mistakes


def test_absent_features_are_no_part_of_the_fit() -> None:
    """They stay absent when the others are scaled, as if they were at the centre."""
    assert fitted([(("a", 1.0),), (("a", 3.0), ("b", 5.0)), ()]) == {"a": (2.0, 1.0)}


@given(st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=20))
def test_whatever_was_fitted_is_a_scale(values: list[float]) -> None:
    """Any data can be fitted, and the settings take it."""
    found = fitted((("a", value),) for value in values)

    assert FeatureSettings.model_validate({"scale": found}).scale == found


def test_the_scale_is_part_of_the_epoch() -> None:
    """A worker with another one is refused, by the feature."""
    before = Settings.model_validate({"features": {"scale": {"a": (0, 1)}}})
    now = Settings.model_validate({"features": {"scale": {"a": (0, 2)}}})

    begun = first_epoch(before).settings
    assert changes(begun, before.of_epoch()) == []
    assert changes(begun, now.of_epoch()) == [("features.scale.a", [0.0, 1.0], [0.0, 2.0])]


def test_boolean_learners_take_no_scale() -> None:
    """Scaled values are not 0 and 1."""
    settings = Settings.model_validate(
        {"learner": {"kind": "elimination"}, "features": {"bias": False, "scale": {"a": (0, 1)}}}
    )

    assert [one.key for one in unmet(settings)] == ["features.scale"]
