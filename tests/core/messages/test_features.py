"""Features: every form that users write, in order, or a reason why not."""

import json
from math import fsum, sqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mistakebound.core.faults import REASONS, BadRecord
from mistakebound.core.messages.features import LARGEST, reader
from mistakebound.settings import FeatureSettings

PLAIN = FeatureSettings(bias=False)
finite = st.floats(-LARGEST, LARGEST)


def decode(raw: bytes, rules: FeatureSettings) -> tuple[tuple[str, float], ...]:
    """What a model reads."""
    return tuple(reader(rules)(raw))


def of(value: Any, **rules: Any) -> tuple[tuple[str, float], ...]:
    return decode(json.dumps(value).encode(), FeatureSettings(**{"bias": False, **rules}))


def refused(raw: bytes, **rules: Any) -> BadRecord:
    with pytest.raises(BadRecord) as caught:
        decode(raw, FeatureSettings(**rules))
    assert caught.value.reason in REASONS
    return caught.value


# --- forms ------------------------------------------------------------------------------------------


def test_an_object_of_numbers_keeps_names_values_and_order() -> None:
    """The record's own order is the order of every later sum."""
    assert of({"z": 1, "a": -2.5, "é": 0}) == (("z", 1.0), ("a", -2.5), ("é", 0.0))


def test_a_text_value_becomes_a_feature_of_its_own() -> None:
    """One of many: `colour=red` counts 1, and `colour=blue` is simply absent."""
    assert of({"colour": "red", "size": 3, "note": ""}) == (
        ("colour=red", 1.0),
        ("size", 3.0),
        ("note=", 1.0),
    )


def test_a_truth_value_counts_one_or_zero() -> None:
    """Booleans are numbers here."""
    assert of({"yes": True, "no": False}) == (("yes", 1.0), ("no", 0.0))


def test_an_array_of_numbers_is_named_by_place() -> None:
    """The first is "0"."""
    assert of([3, 0.5]) == (("0", 3.0), ("1", 0.5))


def test_tokens_count_one_each_and_repeats_add_up() -> None:
    """In the order in which they first appear."""
    assert of(["free", "money", "free"]) == (("free", 2.0), ("money", 1.0))


@pytest.mark.parametrize("nothing", [{}, []])
def test_no_features_are_features_too(nothing: Any) -> None:
    """Then BIAS alone decides, or the tie rule."""
    assert of(nothing) == ()
    assert of(nothing, bias=True) == (("BIAS", 1.0),)


def test_the_bias_comes_last() -> None:
    """It is a constant feature, added by the service."""
    assert of({"z": 2}, bias=True) == (("z", 2.0), ("BIAS", 1.0))


def test_a_null_is_skipped_where_the_settings_say_so() -> None:
    """`features.missing = 'skip'`."""
    assert of({"a": None, "b": 1}, missing="skip") == (("b", 1.0),)


# --- unit norm --------------------------------------------------------------------------------------


def test_unit_length_includes_the_bias() -> None:
    """(2, 2, BIAS 1) has length 3."""
    assert of({"a": 2, "b": 2}, bias=True, normalize="unit") == (("a", 2 / 3), ("b", 2 / 3), ("BIAS", 1 / 3))


@given(st.lists(st.floats(-1e6, 1e6).filter(lambda x: abs(x) > 1e-6), min_size=1, max_size=8), st.booleans())
def test_unit_vectors_have_length_one_and_their_direction(values: list[float], bias: bool) -> None:
    """Signs and ratios stay."""
    got = of(values, bias=bias, normalize="unit")
    assert sqrt(sum(x * x for _, x in got)) == pytest.approx(1.0)
    length = sqrt(sum(x * x for x in values) + bias)
    assert [x for _, x in got][: len(values)] == pytest.approx([x / length for x in values])


@pytest.mark.parametrize(
    ("tiny", "unit"),
    [
        ({"a": 1e-170}, [1.0]),
        ({"a": -2.7e-162}, [-1.0]),
        ({"a": 5e-324}, [1.0]),
        ({"a": 3e-165, "b": -4e-165}, [0.6, -0.8]),
        ({"a": 1e-320, "b": 0}, [1.0, 0.0]),
    ],
)
def test_values_whose_squares_vanish_have_a_direction_too(tiny: Any, unit: list[float]) -> None:
    """Down to the smallest number there is."""
    assert [x for _, x in of(tiny, normalize="unit")] == pytest.approx(unit, rel=1e-15)


@given(st.lists(finite | st.floats(-1, 1), max_size=8), st.integers(-323, 0), st.booleans())
def test_whatever_is_accepted_has_length_one(values: list[float], exponent: int, bias: bool) -> None:
    """Only zeros alone are refused."""
    scaled = [x * 10.0**exponent for x in values]
    try:
        got = of(scaled, bias=bias, normalize="unit")
    except BadRecord as fault:
        assert fault.reason == "zero-vector"
        assert not any(scaled)
    else:
        assert sqrt(fsum(x * x for _, x in got)) == pytest.approx(1.0, abs=1e-9)


@given(st.lists(st.floats(1e-100, 1e100), min_size=1, max_size=8))
def test_all_other_values_are_divided_by_their_length(values: list[float]) -> None:
    """To the bit, as the logs of earlier versions have it."""
    square = 0.0
    for x in values:
        square += x * x
    assert [x for _, x in of(values, normalize="unit")] == [x / sqrt(square) for x in values]


@pytest.mark.parametrize("zero", [b"{}", b"[]", b'{"a": 0, "b": -0.0}', b"[0, 0]"])
def test_the_zero_vector_has_no_direction(zero: bytes) -> None:
    """With the bias it has one."""
    assert refused(zero, bias=False, normalize="unit").reason == "zero-vector"
    assert dict(decode(zero, FeatureSettings(normalize="unit")))["BIAS"] == 1.0


# --- refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "reason", "named"),
    [
        (b"3", "bad-features", "features is 3"),
        (b'"text"', "bad-features", "features is 'text'"),
        (b"true", "bad-features", "features is True"),
        (b'{"a": [1]}', "bad-features", "feature 'a' is an array"),
        (b'{"a": {"b": 1}}', "bad-features", "feature 'a' is an object"),
        (b"[1, true]", "bad-features", "feature '1' is True"),
        (b"[1, null]", "bad-features", "feature '1' is None"),
        (b'[1, "a"]', "bad-features", "feature '1' is 'a'"),
        (b'["a", 1]', "bad-features", "feature '0' is 'a'"),
        (b"[[1]]", "bad-features", "feature '0' is an array"),
        (b'{"BIAS": 1}', "bad-features", "'BIAS' is reserved"),
        (b'["a", "BIAS"]', "bad-features", "'BIAS' is reserved"),
        (b'{"a": "x", "a=x": 1}', "bad-features", "meets another feature"),
        (b'{"a": null}', "missing-feature", "feature 'a' is null"),
        (b'{"a": 1.1e100}', "number-out-of-range", "feature 'a' is 1.1e+100"),
        (b'{"a": -1.1e100}', "number-out-of-range", "feature 'a' is -1.1e+100"),
        (b"[1e999]", "number-out-of-range", "out of range"),
        (b"[%d]" % 10**101, "number-out-of-range", "a very large integer"),
        (b"[%s]" % (b"9" * 5000), "number-out-of-range", "out of range"),
        (b'{"a": NaN}', "not-json", "JSON is malformed"),
        (b"[Infinity]", "not-json", "JSON is malformed"),
        (b"[-Infinity]", "not-json", "JSON is malformed"),
        (b'{"a": 1', "not-json", "truncated"),
        (b'{"\xff": 1}', "not-json", "utf-8"),
        (b'{"a": "\\ud800, alone"}', "not-json", "surrogate"),
        (b"[" * 100_000, "not-json", "recursion"),
    ],
)
def test_what_is_no_features_is_refused_by_name(raw: bytes, reason: str, named: str) -> None:
    """The detail names the feature and the value, for whoever reads the dead letter."""
    fault = refused(raw)
    assert fault.reason == reason
    assert named in fault.detail
    assert len(fault.detail) < 300


@pytest.mark.parametrize("shape", [(b"[", b"]"), (b'{"a":', b"}")])
def test_nesting_of_any_depth_is_refused(shape: tuple[bytes, bytes]) -> None:
    """Also just below what the JSON decoder itself can take."""
    opening, closing = shape
    for depth in [2, 100, *range(900, 1010)]:
        middle = b"1" if opening != b"[" else b""
        assert refused(opening * depth + middle + closing * depth).reason in ("bad-features", "not-json")


@given(st.binary() | st.text().map(str.encode))
def test_any_bytes_are_features_or_refused(raw: bytes) -> None:
    """Nothing else is ever raised."""
    for rules in (PLAIN, FeatureSettings(normalize="unit", missing="skip")):
        try:
            assert all(abs(value) <= LARGEST for _, value in decode(raw, rules))
        except BadRecord as fault:
            assert fault.reason in REASONS


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just("BIAS"),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.just("BIAS"), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(json_values, st.sampled_from(["none", "unit"]), st.booleans(), st.sampled_from(["reject", "skip"]))
def test_any_json_is_features_or_refused(value: Any, normalize: str, bias: bool, missing: str) -> None:
    """NaN and infinities as Python writes them, too. Names come once each, numbers are finite."""
    rules = FeatureSettings.model_validate({"normalize": normalize, "bias": bias, "missing": missing})
    try:
        got = decode(json.dumps(value).encode(), rules)
    except BadRecord as fault:
        assert fault.reason in REASONS
        assert fault.detail
    else:
        assert len(dict(got)) == len(got)
        assert all(type(x) is float and abs(x) <= LARGEST for _, x in got)
        assert (got[-1:] == () or got[-1][0] == "BIAS") is bias or (not got and not bias)


@given(st.dictionaries(st.text().filter(lambda name: name != "BIAS"), finite, max_size=6))
def test_every_number_arrives_with_its_bits(values: dict[str, float]) -> None:
    """Subnormal, -0.0, 17 digits: `repr` tells them apart."""
    assert repr(of(values)) == repr(tuple(values.items()))


@pytest.mark.parametrize(
    "text", ["5e-324", "-0.0", "0.30000000000000004", "1e100", "2.2250738585072014e-308"]
)
def test_known_hard_numbers_arrive_with_their_bits(text: str) -> None:
    """The smallest subnormal, the negative zero, 17 digits, the largest allowed."""
    assert repr(decode(b'{"a":%s}' % text.encode(), PLAIN)) == f"(('a', {float(text)!r}),)"
