"""Whatever an input can lead to fits its topic: sized before predicting, cut where it is a dead letter."""

from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mistakebound.core.faults import BadRecord
from mistakebound.core.messages.dead_letters import dead_letter, record_bytes
from mistakebound.core.model.model import Model
from mistakebound.core.records import Headers, Outgoing, Record
from mistakebound.core.step.sizes import SizeLimits, Sizes
from mistakebound.settings import Settings
from tests.core.support.feeding import Feeder

KAFKA_LARGEST = 1_048_450
"""The largest value that Kafka takes by its defaults."""


def size(output: Outgoing) -> int:
    return record_bytes(output.key, output.value, output.headers)


# --- open classes ---------------------------------------------------------------------------------------


def test_schemas_take_their_room_in_outcomes_where_records_name_some() -> None:
    """As many as a partition can have: a class is refused rather than a record written that the topic does not take."""
    rules = {"labels": {"classes": "open", "max_delay": 1000}, "learner": {"kind": "perceptron"}}
    in_json, in_avro = (
        Sizes(
            Model(Settings.model_validate({**rules, "messages": {"format": form}}), 1),
            SizeLimits(outcomes=60_000),
        )
        for form in ("json", "avro")
    )
    in_json.check_classes(10, 100, 100, of_tenants=False)
    with pytest.raises(BadRecord, match="in outcomes, which takes 60000"):
        in_avro.check_classes(10, 100, 100, of_tenants=False)


# --- examples -------------------------------------------------------------------------------------------


def test_an_example_too_large_for_its_prediction_is_a_dead_letter_that_fits() -> None:
    """It came in at the broker's limit; its prediction would be larger still."""
    f = Feeder()
    value = b'{"id":"a","features":{"x":"%s"}}' % (b"y" * (KAFKA_LARGEST - 33))
    fed = f.feed(f.record("examples", 1, value, key=b"a"))
    assert fed.decided == [("invalid", None)]
    assert not fed.predictions
    assert not f.ledger.waiting
    (dead,) = fed.dead_letters
    assert dict(dead.headers)["mistakebound.reason"] == b"oversize"
    assert b"max.message.bytes" in (dict(dead.headers)["mistakebound.detail"] or b"")
    assert size(dead) <= f.state.limits.dead_letters
    f.balance()


@pytest.mark.parametrize("topic", ["predictions", "updates"])
def test_each_output_topic_has_its_own_limit(topic: str) -> None:
    """The one that is too small is named."""
    f = Feeder(limits=SizeLimits(**{topic: 2000}))
    fed = f.feed(f.example("a", 1, ["x" * 2000]))
    (dead,) = fed.dead_letters
    assert f"bytes in {topic}, which takes 2000" in str(dict(dead.headers)["mistakebound.detail"])


def written(f: Feeder, record_id: str, features: str, headers: Headers = ()) -> list[Outgoing]:
    """What an example and its label lead to in `predictions` and `updates`."""
    fed = f.feed(f.example(record_id, 1, [features], headers=headers), f.label(record_id, 2))
    return [output for output in fed.outputs if output.topic in ("predictions", "updates")]


@pytest.mark.parametrize(
    "record_id", ["plain", "\x01" * 128, "\u00e9" * 64], ids=["plain", "control", "accents"]
)
@pytest.mark.parametrize("length", [0, 200, 900])
def test_what_is_just_taken_fits(record_id: str, length: int) -> None:
    """Ids of control characters are written six times as long; headers go along with the prediction."""
    limits = SizeLimits(predictions=3_000, updates=3_000)
    headers = (("h", b"x" * length),) if length else ()
    sizes = set[int]()
    for features in range(0, 3_000, 25):
        f = Feeder(limits=limits)
        outputs = written(f, record_id, "x" * features, headers)
        if not outputs:
            break
        sizes |= {size(output) for output in outputs}
    assert 1_500 < max(sizes) <= 3_000


texts = st.text(st.characters(codec="utf-8"), max_size=60)
headers = st.lists(st.tuples(texts, st.none() | st.binary(max_size=80)), max_size=3).map(tuple)


@given(
    record_id=st.one_of(
        st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda text: len(text.encode()) <= 128),
        st.integers(1, 128).map("\x01".__mul__),
    ),
    features=st.lists(texts, max_size=20),
    key=st.none() | st.binary(max_size=200),
    headers=headers,
    partitions=st.sampled_from([1, 3, 40]),
    limit=st.integers(1400, 6000),
    labels=st.sampled_from([(True, False), ("spam" * 99, "\x01" * 99), (10**15, -(10**15))]),
)
def test_no_prediction_and_no_update_is_larger_than_its_topic_takes(
    record_id: str,
    features: list[str],
    key: bytes | None,
    headers: Headers,
    partitions: int,
    limit: int,
    labels: tuple[Any, Any],
) -> None:
    """At any size of key, headers, id and version vector: it is refused before anything is predicted."""
    f = Feeder(
        partitions,
        SizeLimits(predictions=limit, updates=limit),
        labels={"positive": labels[0], "negative": labels[1]},
    )
    f.model.updates, f.model.clock = [10**15] * partitions, [10**15] * partitions
    fed = f.feed(
        f.example(record_id, 10**12, features, key=key, headers=headers),
        f.label(record_id, 10**12, labels[0]),
    )
    assert [outcome for outcome, _ in fed.decided] in (["applied"], ["invalid", "parked"])
    for output in fed.outputs:
        if output.topic in ("predictions", "updates"):
            assert size(output) <= limit


# --- dead letters ---------------------------------------------------------------------------------------

FAULT = BadRecord("not-json", "says why")


def test_a_dead_letter_holds_the_record_as_it_was_and_where_it_came_from() -> None:
    """In its partition, own headers last."""
    own = (("trace", b"\xff"), ("nothing", None))
    dead = dead_letter(Record("labels", 3, 17, -1, b"k\xff", b"\x00v", own), FAULT, 10_000)
    assert dead == Outgoing(
        "dead-letters",
        3,
        b"k\xff",
        b"\x00v",
        (
            ("mistakebound.reason", b"not-json"),
            ("mistakebound.detail", b"says why"),
            ("mistakebound.topic", b"labels"),
            ("mistakebound.partition", b"3"),
            ("mistakebound.offset", b"17"),
            ("mistakebound.timestamp", b"-1"),
            ("mistakebound.detail-sha256", sha256(b"says why").hexdigest().encode()),
            *own,
        ),
    )


@pytest.mark.parametrize(
    ("key", "value"), [(None, b"v" * 5000), (b"k" * 5000, None), (b"k" * 5000, b"v" * 5000)]
)
def test_a_record_too_large_for_a_dead_letter_is_cut_with_length_and_digest(
    key: bytes | None, value: bytes | None
) -> None:
    """The whole can still be recognised; its own headers are dropped and counted."""
    dead = dead_letter(Record("examples", 0, 1, 2, key, value, (("big", b"h" * 900),)), FAULT, 2000)
    told = dict(dead.headers)
    assert told["mistakebound.headers-dropped"] == b"1"
    assert "big" not in told
    for name, whole, kept in (("key", key, dead.key), ("value", value, dead.value)):
        if whole is None:
            assert kept is None
            assert f"mistakebound.{name}-length" not in told
        else:
            assert kept is not None
            assert whole.startswith(kept)
            assert told[f"mistakebound.{name}-length"] == b"5000"
            assert told[f"mistakebound.{name}-sha256"] == sha256(whole).hexdigest().encode()
    assert 1500 < size(dead) + (0 if value else 1500) <= 2000 + (0 if value else 1500)


REFUSED = (
    st.none() | st.binary(max_size=3000),
    st.none() | st.binary(max_size=3000),
    headers,
    st.text(st.characters(codec="utf-8"), max_size=900),
)
"""Key, value, headers and detail of a record that becomes a dead letter."""


@given(
    *REFUSED,
    st.integers(1500, 4000),
)
def test_a_dead_letter_fits_and_is_whole_or_marked(
    key: bytes | None, value: bytes | None, headers: Headers, detail: str, largest: int
) -> None:
    """Of any record, for any reason."""
    dead = dead_letter(
        Record("examples", 0, 1, 2, key, value, headers), BadRecord("not-json", detail), largest
    )
    assert size(dead) <= largest
    if "mistakebound.value-length" not in dict(dead.headers) and value is not None:
        assert (dead.key, dead.value, dead.headers[7:]) == (key, value, headers)


@given(
    *REFUSED,
    st.integers(0, 1500),
)
def test_a_dead_letter_fits_wherever_its_fixed_parts_do(
    key: bytes | None, value: bytes | None, headers: Headers, detail: str, largest: int
) -> None:
    """Reason and source, lengths and digests of what was cut; never a detail or content in their place."""
    record = Record("examples", 0, 1, 2, key, value, headers)
    dead = dead_letter(record, BadRecord("not-json", detail), largest)
    fixed = dead_letter(record, BadRecord("not-json", ""), 0)
    assert (fixed.key or b"", fixed.value or b"") == (b"", b"")
    assert size(dead) <= max(largest, size(fixed))
    assert {name for name, _ in dead.headers} >= {name for name, _ in fixed.headers[:7]}


@pytest.mark.parametrize(("largest", "takes"), [(1200, 1200), (900, 900), (700, 700), (488, 602)])
def test_the_detail_of_a_dead_letter_goes_before_what_names_its_record(largest: int, takes: int) -> None:
    """Of a topic that takes little; the digest is of the detail that is there, as an audit holds it."""
    record = Record("examples", 0, 1, 1, b"k" * 5000, b"v" * 5000)
    dead = dead_letter(record, BadRecord("not-json", "d" * 600), largest)
    told = dict(dead.headers)
    assert size(dead) == takes
    assert told["mistakebound.reason"] == b"not-json"
    assert told["mistakebound.detail"] == (b"d" * 500 if largest == 1200 else b"")
    assert told["mistakebound.detail-sha256"] == sha256(told["mistakebound.detail"]).hexdigest().encode()
    assert told["mistakebound.value-length"] == b"5000"


def test_a_small_record_is_kept_whole_without_its_detail_where_the_marks_of_a_cut_take_more() -> None:
    """So it can be corrected and sent again."""
    record = Record("examples", 0, 1, 1, b"k", b"{")
    dead = dead_letter(record, BadRecord("not-json", "d" * 600), 488)
    assert (dead.key, dead.value) == (b"k", b"{")
    assert dict(dead.headers)["mistakebound.detail"] == b""
    assert size(dead) <= 488


# --- outcomes -------------------------------------------------------------------------------------------


def test_outcomes_come_in_numbered_parts_that_fit() -> None:
    """The last part alone has time, inputs, recovery point, tallies and order; together they hold every decision."""
    decisions = []
    for largest in (1_000_000, 3000):
        f = Feeder(limits=SizeLimits(outcomes=largest))
        ids = [f"{number:03}" + "\x01" * 125 for number in range(40)]
        fed = f.feed(*(f.example(name, 1) for name in ids), *(f.label(name, 2) for name in ids))
        outputs = [output for output in fed.outputs if output.topic == "outcomes"]
        assert all(size(output) <= largest for output in outputs)
        *first, last = fed.outcomes
        assert [one.part for one in fed.outcomes] == list(range(len(outputs)))
        assert all(one.model.updates == [0] for one in fed.outcomes)
        assert all(
            (one.at, one.inputs, one.recovery_point, one.tallies, one.order) == (None,) * 5 for one in first
        )
        assert (last.at, last.order) == (2, [40, 40])
        assert None not in (last.inputs, last.recovery_point, last.tallies)
        assert bool(first) is (largest == 3000)
        decisions.append(fed.decisions)
    assert decisions[0] == decisions[1]
    assert len(decisions[0]) == 40


def test_outcomes_are_the_last_record_of_their_partition_in_a_step() -> None:
    """So the newest outcomes record speaks for everything before it."""
    f = Feeder(partitions=2)
    fed = f.feed(
        *(f.example(n, n, partition=n % 2) for n in range(6)),
        *(f.label(n, n, partition=n % 2) for n in range(6)),
    )
    for p in range(2):
        topics = [output.topic for output in fed.outputs if output.partition == p]
        assert topics.index("outcomes") == len(topics) - 1
