"""Choosing features: by name, by pattern, by pointer into nested objects; what is not chosen is never looked at."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from mistakebound.core.faults import BadRecord
from mistakebound.core.messages.columns import Columns, columns_of
from mistakebound.core.messages.features import reader
from mistakebound.core.replay.replay import Row, replay_rows
from mistakebound.settings import FeatureSettings, Settings
from tests.core.support.feeding import Feeder

ROW = {"id": 7, "amount": 2.5, "created_at": 1_700_000_000_000_000, "updated_at": None, "country": "DE"}


def of(value: Any, **rules: Any) -> dict[str, float]:
    """Features as a model reads them."""
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return dict(reader(FeatureSettings(**{"bias": False, **rules}))(raw))


@pytest.mark.parametrize(
    ("rules", "names"),
    [
        ({"exclude": ["id", "*_at"]}, ["amount", "country=DE"]),
        ({"exclude": ["/id", "/*_at"]}, ["amount", "country=DE"]),
        ({"include": ["amount"]}, ["amount"]),
        ({"include": ["a*", "c*"], "exclude": ["*_at"]}, ["amount", "country=DE"]),
        ({"include": ["*"], "exclude": ["*"]}, []),
        ({"include": ["AMOUNT", "amoun", "mount"]}, []),
    ],
)
def test_members_are_chosen_by_name(rules: dict[str, Any], names: list[str]) -> None:
    """In the record's order. A category is chosen by its member's name; case counts, and so does every letter."""
    assert list(of(ROW, **rules)) == names


@pytest.mark.parametrize("value", [None, {"a": 1}, [1, "x"], "text", 10**400])
def test_what_is_excluded_may_hold_anything(value: Any) -> None:
    """It would be a dead letter else; so would a number that no float64 holds, or a name that is reserved."""
    assert of({"a": 1, "other": value, "BIAS": 3}, exclude=["other", "BIAS"]) == {"a": 1.0}
    assert of(b'{"a": 1, "other": 1e999}', exclude=["other"]) == {"a": 1.0}


NESTED = {
    "after": {"amount": 3, "id": 4, "place": {"city": "Bonn", "zip": None}},
    "op": "c",
    "after/amount": 1,
}


@pytest.mark.parametrize(
    ("rules", "features"),
    [
        ({"include": ["/after/amount"]}, {"after/amount": 3}),
        ({"include": ["/after/*"], "exclude": ["/after/id", "/after/place"]}, {"after/amount": 3}),
        ({"include": ["/after/place/city", "op"]}, {"after/place/city=Bonn": 1, "op=c": 1}),
        ({"include": ["/*/*"], "exclude": ["/*/place", "/after/id"]}, {"after/amount": 3}),
        ({"include": ["/after/amount"], "exclude": ["after"]}, {}),
        ({"include": ["after~1amount", "/after~1amount"]}, {"after/amount": 1}),
        ({"include": ["/nothing/here"]}, {}),
    ],
)
def test_pointers_reach_into_nested_objects(rules: dict[str, Any], features: dict[str, float]) -> None:
    """A nested value is named by its pointer without the first slash."""
    assert of(NESTED, **rules) == features


def test_an_object_that_is_chosen_whole_is_no_feature() -> None:
    """As where everything is read: name what is in it."""
    with pytest.raises(BadRecord, match="'after' is an object"):
        of(NESTED, include=["after"])


def test_two_values_of_one_name_are_refused() -> None:
    """One is nested, the other's own name has a slash."""
    with pytest.raises(BadRecord, match="both named 'after/amount'"):
        of(NESTED, include=["/after/amount", "/after~1amount"])


def test_tokens_and_places_are_chosen_by_name_too() -> None:
    """An array's numbers are named by their place."""
    assert of(["free", "money", "the"], exclude=["the"]) == {"free": 1.0, "money": 1.0}
    assert of([5, None, 7], exclude=["1"]) == {"0": 5.0, "2": 7.0}


def test_what_is_kept_is_kept_as_it_was_written() -> None:
    """Text for text: 2.50 stays 2.50."""
    columns = columns_of(FeatureSettings(exclude=("id",)))
    assert columns is not None
    assert columns.kept(b'{"id": 1, "a": 2.50, "b": [ 1 ]}') == b'{"a":2.50,"b":[ 1 ]}'
    assert columns.kept(b"[1, 2]") == b"[1, 2]"
    assert columns.kept(b"nonsense") == b"nonsense"


names = st.text(alphabet="ab/~*", max_size=4)
values = st.recursive(
    st.integers(0, 9), lambda inner: st.dictionaries(names, inner, max_size=3), max_leaves=8
)
patterns = st.lists(names.filter(bool), max_size=3).map(tuple)


@given(st.dictionaries(names, values, max_size=4), patterns, patterns)
def test_what_was_kept_once_is_kept_again(value: dict[str, Any], include: Any, exclude: Any) -> None:
    """A worker chooses when it reads an example, and again when it learns from it."""
    columns = Columns(include or None, exclude)
    once = columns.kept(json.dumps(value).encode())
    assert columns.kept(once) == once


def test_everything_is_read_where_nothing_is_chosen() -> None:
    """As before there was a choice."""
    assert columns_of(FeatureSettings()) is None


def test_patterns_that_match_nothing_are_known() -> None:
    """Whoever misspells one should hear of it."""
    columns = Columns(["amount", "/after/*"], ["ID", "*_at"])
    columns.kept(json.dumps(ROW).encode())
    assert columns.idle == {"/after/*", "ID"}
    columns.kept(json.dumps(NESTED).encode())
    assert columns.idle == {"ID"}


# --- on the stream -----------------------------------------------------------------------------------------


def test_what_is_not_chosen_is_not_kept() -> None:
    """Neither in predictions and updates, nor of what a very late label brings along."""
    f = Feeder(learner={"kind": "perceptron"}, features={"exclude": ["email"]}, labels={"parking": 1})
    own = {"features": {"a": 2, "email": "x@example.com"}, "prediction": False}
    fed = f.feed(
        f.example("a", 1, {"a": 1, "email": None}),
        f.label("a", 2),
        f.label("b", 3, False, **own),
        f.example("z", 9_000),
    )
    assert [one["features"] for one in fed.predictions] == [{"a": 1}, {"a": 1}]
    assert [one["features"] for one in fed.updates] == [{"a": 1}, {"a": 2}]
    assert all(b"email" not in (output.value or b"") for output in fed.outputs)


def test_what_an_older_epoch_kept_is_chosen_from_when_it_is_learned_from() -> None:
    """An example that waits from before a `reset` may hold more than the new settings read."""
    f = Feeder(learner={"kind": "perceptron"}, features={"exclude": ["b"], "bias": False})
    f.feed(f.example("a", 1))
    (entry,) = f.ledger.waiting.values()
    f.ledger.restore([replace(entry, features=b'{"a": 1, "b": 2}')], [])
    f.feed(f.label("a", 2))
    assert f.model.learner.theta() == {"a": 1.0}


@pytest.mark.parametrize("raw", [False, True])
def test_rows_of_a_file_are_read_where_the_whole_message_is_the_features(raw: bool) -> None:
    """A row's id is then its record's key."""
    settings = Settings.model_validate(
        {"messages": {"features": ""}, "features": {"exclude": ["id"]}, "learner": {"kind": "perceptron"}}
    )
    features: Any = Raw(b'{"a": 2}') if raw else {"a": 2}
    state = replay_rows([Row("x-1", features, True)], settings, 1)
    assert state.ledgers[0].tallies.life.labels["applied"] == 1
    assert state.model.learner.theta() == {"a": 2.0, "BIAS": 1.0}
