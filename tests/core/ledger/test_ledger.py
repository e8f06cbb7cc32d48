"""Every example and every label ends in exactly one outcome: each of them, and the order of the rules."""

from typing import Any

import pytest

from mistakebound.core.messages.schema import Decision
from tests.core.support.feeding import Feeder

HOUR = 3_600_000


def feeder(**labels: Any) -> Feeder:
    """Small limits: an example waits 100 s, a label parks 10 s."""
    return Feeder(labels={"max_delay": 100, "parking": 10, **labels})


# --- labels -----------------------------------------------------------------------------------------


def test_a_label_of_a_waiting_example_is_applied() -> None:
    """The decision names both offsets, the label's value and the published class."""
    f = feeder()
    fed = f.feed(f.example("a", 1000), f.label("a", 2000))
    assert fed.decisions == [Decision("applied", "a", 0, 0, True, False)]
    assert not f.ledger.waiting
    f.balance()


def test_an_early_label_is_parked_and_applied_when_its_example_comes() -> None:
    """Parking is a decision too, with the time that its age counts from."""
    f = feeder()
    fed = f.feed(f.label("a", 1000), f.example("a", 2000))
    assert fed.decisions == [
        Decision("parked", "a", None, 0, True, None, 1000),
        Decision("applied", "a", 0, 0, True, False),
    ]
    assert [p["id"] for p in fed.predictions] == ["a"]
    assert not f.ledger.parked
    f.balance()


def test_the_prediction_of_an_early_labelled_example_has_not_seen_its_label() -> None:
    """Predict first, then learn."""
    f = Feeder(labels={"parking": 10}, learner={"kind": "perceptron"})
    fed = f.feed(f.label("a", 1000), f.example("a", 2000))
    assert (fed.predictions[0]["score"], fed.predictions[0]["model"]["updates"]) == (0.0, [0])
    assert fed.updates[0]["model"]["updates"] == [0]


def test_the_same_label_again_is_a_duplicate() -> None:
    """It changes nothing."""
    f = feeder()
    fed = f.feed(f.example("a", 1000), f.label("a", 2000), f.label("a", 3000), f.label("a", 4000, 1))
    assert fed.decided == [("applied", "a"), ("duplicate", "a"), ("duplicate", "a")]
    assert f.ledger.tallies.life.mistakes == 1
    f.balance()


def test_another_label_for_a_resolved_id_is_a_conflict() -> None:
    """The first one wins; the other is written down."""
    f = feeder()
    fed = f.feed(f.example("a", 1000), f.label("a", 2000), f.label("a", 3000, False))
    assert fed.decisions[-1] == Decision("conflict", "a", None, 1, False)
    assert f.ledger.tallies.life.actual == {"true": 1}
    f.balance()


def test_a_second_label_of_a_parked_id_is_a_duplicate_or_a_conflict() -> None:
    """The parked one stays."""
    f = feeder()
    fed = f.feed(f.label("a", 1000), f.label("a", 1001), f.label("a", 1002, False), f.example("a", 2000))
    assert fed.decided == [("parked", "a"), ("duplicate", "a"), ("conflict", "a"), ("applied", "a")]
    assert fed.decisions[-1].label is True
    f.balance()


def test_a_parked_label_is_unmatched_after_its_time() -> None:
    """At the age of exactly `labels.parking` it still stays."""
    f = feeder()
    fed = f.feed(f.label("a", 1000), f.example("x", 11_000))
    assert fed.decided == [("parked", "a")]
    fed = f.feed(f.example("y", 11_001), f.example("a", 11_001))
    assert fed.decisions == [Decision("unmatched", "a", None, 0, True)]
    assert set(f.ledger.waiting) == {"x", "y", "a"}
    f.balance()


def test_the_oldest_parked_label_is_unmatched_when_there_are_too_many() -> None:
    """At most `labels.max_parked` stay."""
    f = feeder(max_parked=2)
    fed = f.feed(*(f.label(name, 1000) for name in "abc"))
    assert fed.decided == [("parked", "a"), ("parked", "b"), ("parked", "c"), ("unmatched", "a")]
    assert list(f.ledger.parked) == ["b", "c"]
    f.balance()


def test_an_unmatched_id_is_not_remembered() -> None:
    """Its example may come yet, and is predicted."""
    f = feeder(max_parked=1)
    fed = f.feed(f.label("a", 1000), f.label("b", 1000), f.example("a", 2000), f.label("a", 3000))
    assert fed.decided == [("parked", "a"), ("parked", "b"), ("unmatched", "a"), ("applied", "a")]
    f.balance()


def test_a_label_after_its_examples_expiry_is_expired() -> None:
    """The id is remembered as expired."""
    f = feeder()
    fed = f.feed(f.example("a", 1000), f.label("a", 101_001), f.label("a", 101_001, False))
    assert fed.decisions == [
        Decision("expired", "a", 0),
        Decision("expired", "a", None, 0, True),
        Decision("expired", "a", None, 1, False),
    ]
    f.balance()


def test_a_label_at_exactly_the_longest_delay_is_applied() -> None:
    """An example expires when it is older than `labels.max_delay`."""
    f = feeder()
    assert f.feed(f.example("a", 1000), f.label("a", 101_000)).decided == [("applied", "a")]


def test_a_label_after_its_examples_eviction_is_expired() -> None:
    """The id is remembered as evicted."""
    f = feeder(max_waiting=1)
    fed = f.feed(f.example("a", 1000), f.example("b", 1000), f.label("a", 2000), f.label("b", 2000))
    assert fed.decided == [("evicted", "a"), ("expired", "a"), ("applied", "b")]
    assert fed.decisions[0] == Decision("evicted", "a", 0)
    f.balance()


# --- examples ---------------------------------------------------------------------------------------


def test_an_example_whose_id_waits_is_a_duplicate() -> None:
    """No second prediction; the first keeps its features."""
    f = feeder()
    fed = f.feed(f.example("a", 1000), f.example("a", 1001, {"b": 9}), f.label("a", 2000))
    assert fed.decisions[0] == Decision("duplicate", "a", 1)
    assert len(fed.predictions) == 1
    assert fed.updates[0]["features"] == {"a": 1}
    f.balance()


def test_an_example_whose_id_is_remembered_is_a_duplicate() -> None:
    """Whether it was labelled, expired or evicted."""
    f = feeder(max_waiting=1)
    f.feed(f.example("labelled", 1000), f.label("labelled", 1000), f.example("expired", 1000))
    f.feed(f.example("evicted", 101_001), f.example("waits", 101_001))
    fed = f.feed(*(f.example(name, 101_002) for name in ("labelled", "expired", "evicted", "waits")))
    assert [outcome for outcome, _ in fed.decided] == ["duplicate"] * 4
    assert fed.predictions == []
    f.balance()


def test_a_forgotten_id_may_be_used_again() -> None:
    """First resolved, first forgotten, beyond `labels.remember`."""
    f = feeder(remember=2)
    for name in "abc":
        f.feed(f.example(name, 1000), f.label(name, 1000))
    assert list(f.ledger.remembered) == ["b", "c"]
    fed = f.feed(f.example("a", 2000), f.example("b", 2000), f.label("a", 3000, False))
    assert fed.decided == [("duplicate", "b"), ("applied", "a")]
    assert list(f.ledger.remembered) == ["c", "a"]
    f.balance()


def test_a_forgotten_ids_late_label_is_parked_like_any_other() -> None:
    """Nothing distinguishes it from an early one."""
    f = feeder(remember=1)
    f.feed(f.example("a", 1000), f.label("a", 1000), f.example("b", 1000), f.label("b", 1000))
    assert f.feed(f.label("a", 2000)).decided == [("parked", "a")]
    f.balance()


def test_tombstones_are_invalid_in_both_inputs() -> None:
    """A record without a value deletes nothing here."""
    f = feeder()
    f.feed(f.example("a", 1000))
    fed = f.feed(f.record("examples", 1001, None, key=b"a"), f.record("labels", 1001, None, key=b"a"))
    assert fed.decisions == [Decision("invalid", None, 1), Decision("invalid", None, None, 0)]
    assert [dict(dead.headers)["mistakebound.reason"] for dead in fed.dead_letters] == [b"tombstone"] * 2
    assert set(f.ledger.waiting) == {"a"}
    f.balance()


# --- stream time ------------------------------------------------------------------------------------


def test_stream_time_never_goes_back() -> None:
    """It is the largest record time so far, of examples and labels alike, valid or not."""
    f = feeder()
    seen = []
    for record in (
        f.example("a", 5000),
        f.example("b", 3000),
        f.label("b", 7000),
        f.record("examples", 9000, b"{"),
        f.record("labels", 8000, None),
        f.example("c", -1),
    ):
        f.feed(record)
        seen.append(f.ledger.stream_time)
    assert seen == [5000, 5000, 7000, 9000, 9000, 9000]


def test_records_without_a_time_leave_stream_time_alone() -> None:
    """From the very first one: nothing is ever negative."""
    f = feeder()
    fed = f.feed(f.example("a", -1), f.label("a", -1), f.label("early", -1))
    assert [p["at"] for p in fed.predictions] == [0]
    assert fed.decided == [("applied", "a"), ("parked", "early")]
    assert f.ledger.stream_time == 0
    f.balance()


def test_age_counts_from_stream_time_whatever_the_producers_clock_says() -> None:
    """An example with an old record time, come late, waits as long as any other; expiry goes by offset."""
    f = feeder()
    f.feed(f.example("a", 500_000), f.example("old", 1000), f.example("b", 510_000))
    assert [entry.at for entry in f.ledger.waiting.values()] == [500_000, 500_000, 510_000]
    assert f.feed(f.example("x", 600_000)).decided == []
    assert f.feed(f.example("y", 600_001)).decided == [("expired", "a"), ("expired", "old")]
    assert f.feed(f.example("z", 610_001)).decided == [("expired", "b")]
    f.balance()


def test_without_a_longest_delay_nothing_expires() -> None:
    """As in a replay of labelled rows."""
    f = Feeder()
    assert f.feed(f.example("a", 0), f.label("a", 10 * 365 * 24 * HOUR)).decided == [("applied", "a")]


@pytest.mark.parametrize("at", [2**53, 2**61 + 300, 2**62 - 1, 2**63 - 12_000])
def test_one_millisecond_decides_at_any_time_that_a_record_can_have(at: int) -> None:
    """Producers may write any 64 bits: an age is exact where floats have no odd numbers any more."""
    f = Feeder(labels={"max_delay": 1, "parking": 10})
    assert f.feed(f.example("a", at), f.label("p", at), f.example("b", at + 1000)).decided == [
        ("parked", "p")
    ]
    assert f.feed(f.example("c", at + 1001)).decided == [("expired", "a")]
    assert f.feed(f.example("d", at + 10_000)).decided == [("expired", "b"), ("expired", "c")]
    assert f.feed(f.example("e", at + 10_001)).decided == [("unmatched", "p")]


# --- the order of the rules ---------------------------------------------------------------------------


def test_the_label_that_moves_time_meets_the_expiry_first() -> None:
    """(1) time, (2) expiry, then (4) the record: one millisecond decides."""
    f = feeder()
    f.feed(f.example("a", 1000))
    assert f.feed(f.label("a", 101_001)).decided == [("expired", "a"), ("expired", "a")]


def test_the_example_that_moves_time_meets_the_unparking_first() -> None:
    """(1) time, (3) unparking, then (4) the record."""
    f = feeder()
    f.feed(f.label("a", 1000))
    assert f.feed(f.example("a", 11_001)).decided == [("unmatched", "a")]
    assert set(f.ledger.waiting) == {"a"}


def test_expiry_comes_before_unparking() -> None:
    """(2) before (3), each oldest first."""
    f = feeder()
    f.feed(f.label("p", 1000), f.label("q", 1000), f.example("a", 1000), f.example("b", 1000))
    assert f.feed(f.example("x", 200_000)).decided == [
        ("expired", "a"), ("expired", "b"), ("unmatched", "p"), ("unmatched", "q"),
    ]  # fmt: skip
    f.balance()


def test_an_invalid_record_moves_time_too() -> None:
    """The five rules hold for each record, valid or not."""
    f = feeder()
    f.feed(f.example("a", 1000), f.label("p", 1000))
    fed = f.feed(f.record("labels", 200_000, b"{"))
    assert fed.decided == [("expired", "a"), ("unmatched", "p"), ("invalid", None)]
    f.balance()


def test_expiry_spares_an_eviction() -> None:
    """(2) before (5): what is too old makes room."""
    f = feeder(max_waiting=2)
    f.feed(f.example("a", 1000), f.example("b", 50_000))
    assert f.feed(f.example("c", 101_001)).decided == [("expired", "a")]
    f.balance()


def test_an_early_labelled_example_evicts_nobody() -> None:
    """(4) before (5): it is resolved before anything is counted."""
    f = feeder(max_waiting=1)
    f.feed(f.example("a", 1000), f.label("b", 1000))
    assert f.feed(f.example("b", 1000)).decided == [("applied", "b")]
    assert set(f.ledger.waiting) == {"a"}
    f.balance()


def test_memory_is_trimmed_after_every_decision() -> None:
    """An id forgotten by an expiry is new to the record that caused it."""
    f = feeder(remember=1)
    f.feed(f.example("a", 1000), f.label("a", 1000), f.example("b", 1000))
    fed = f.feed(f.example("a", 101_001))
    assert fed.decided == [("expired", "b")]
    assert [p["id"] for p in fed.predictions] == ["a"]
    f.balance()


def test_partitions_keep_time_and_ids_apart() -> None:
    """An id, an age or a limit of one partition means nothing in another."""
    f = Feeder(partitions=2, labels={"max_delay": 100, "parking": 10, "max_waiting": 1})
    fed = f.feed(f.example("a", 1000), f.example("a", 500_000, partition=1), f.label("a", 1000))
    assert fed.decided == [("applied", "a")]
    assert [ledger.stream_time for ledger in f.state.ledgers.values()] == [1000, 500_000]
    assert set(f.state.ledgers[1].waiting) == {"a"}
    f.balance()
