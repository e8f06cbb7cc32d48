"""Open classes are few and short, however their labels arrive, so that the tallies always can be written."""

from collections import Counter
from random import Random

import pytest
from structlog.testing import capture_logs

from mistakebound.core.checkpoint_content import decode_checkpoint
from mistakebound.core.messages.inputs import CLASS_NAMES_BYTES
from mistakebound.core.messages.schema import encode
from mistakebound.core.step.sizes import SizeLimits
from tests.core.step.test_sizes import size
from tests.core.support.audited import of_history
from tests.core.support.every_kind import CASES
from tests.core.support.feeding import Fed, Feeder
from tests.core.support.histories import History
from tests.support.tries import long

LONGEST = 128
"""Bytes of a class's name, at most; as JSON a control character takes six."""


def feeder(limits: SizeLimits | None = None, **labels: object) -> Feeder:
    return Feeder(
        limits=limits,
        learner={"kind": "perceptron"},
        labels={"classes": "open", "parking": 1, **labels},
        batch={"max_records": 4_000},
    )


def reasons(fed: Fed) -> list[bytes | None]:
    return [dict(each.headers)["mistakebound.reason"] for each in fed.dead_letters]


def test_a_class_counts_from_when_its_label_is_parked() -> None:
    """Labels that came first bring no more classes than others; each record has one outcome."""
    f = feeder(max_classes=2)
    fed = f.feed(*(f.label(name, 1, name) for name in "abcab"), *(f.example(name, 2) for name in "abcab"))
    assert reasons(fed) == [b"unknown-label"]
    assert Counter(outcome for outcome, _ in fed.decided) == {
        "parked": 2,
        "invalid": 1,
        "duplicate": 2 + 2,
        "applied": 2,
    }
    assert f.ledger.tallies.life.actual == {"a": 1, "b": 1}
    f.balance()


def test_a_class_whose_parked_labels_all_ended_unmatched_makes_room() -> None:
    """The class is no longer known, so another may take its place."""
    f = feeder(max_classes=1)
    assert reasons(f.feed(f.label("1", 0, "a"), f.label("2", 0, "a"), f.label("3", 1, "b"))) == [
        b"unknown-label"
    ]
    fed = f.feed(f.label("4", 2_000, "b"))
    assert [outcome for outcome, _ in fed.decided] == ["unmatched", "unmatched", "parked"]
    assert reasons(f.feed(f.label("5", 2_000, "a"))) == [b"unknown-label"]
    f.balance()


def test_a_step_taken_back_takes_its_classes_back() -> None:
    """Nothing of a transaction that was given up counts."""
    f = feeder(max_classes=1)
    f.feed(f.example("x", 0))
    before = f.next.copy()
    one = f.label("1", 1, "a")
    f.feed(one)
    f.state.rollback([0])
    f.next = before
    assert not f.ledger.parked_classes
    assert reasons(f.feed(f.label("1", 1, "b"))) == []
    assert set(f.ledger.parked_classes) == {"b"}


@pytest.mark.parametrize("largest", [120_000, *long(1_000_000)])
@pytest.mark.parametrize("first", ["labels", "examples"])
def test_no_class_names_make_the_tallies_too_large(first: str, largest: int) -> None:
    """1,000 names of 128 control characters would: those beyond the limit are dead letters, the rest goes on."""
    f = feeder(SizeLimits(outcomes=largest))
    names = ["\x01" * (LONGEST - 4) + f"{number:04}" for number in range(1_000)]
    labels = [f.label(name[-4:], 1, name) for name in names]
    examples = [f.example(name[-4:], 1) for name in names]
    batches = (labels, examples) if first == "labels" else (examples, labels)
    outputs, told = [], set[bytes | None]()
    for batch in batches:
        fed = f.feed(*batch)
        outputs += fed.outputs
        told |= set(reasons(fed))
    assert told == {b"unknown-label" if largest == 1_000_000 else b"oversize"}
    assert all(size(output) <= largest for output in outputs if output.topic == "outcomes")
    for known in (f.ledger.tallies.life.actual, f.ledger.tallies.epoch.actual):
        assert sum(len(encode(name)) for name in known) <= CLASS_NAMES_BYTES
        assert len(known) >= (300 if largest == 1_000_000 else 20)
    f.balance()
    assert reasons(f.feed(f.label("again", 2, names[0]))) == []


@pytest.mark.long
def test_random_histories_keep_the_limit_and_the_audit_agrees() -> None:
    """Labels early, late, twice and unmatched, restarts in every way: never a class too many, no finding."""
    refused = 0
    for seed in range(40):
        history = History(Random(seed), CASES["perceptron, open classes"], {"max_classes": 1 + seed % 2})
        with capture_logs():
            history.run()
        for p, ledger in history.worker.state.ledgers.items():
            assert len({*ledger.tallies.life.actual, *ledger.parked_classes}) <= 1 + seed % 2
            refused += sum(
                dict(each.headers)["mistakebound.reason"] == b"unknown-label"
                for each in history.log.records["dead-letters", p]
            )
        found = of_history(history).audit(*map(decode_checkpoint, history.checkpoints[:2]))
        assert found.first == [], f"history {seed}"
    assert refused > 40
