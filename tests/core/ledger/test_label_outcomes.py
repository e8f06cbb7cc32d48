"""The tables of label outcomes are complete, and the step and the rebuild do what they say, row by row."""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, get_args

import pytest
from msgspec.structs import asdict

from mistakebound.core.audit.reference_ledger import ReferenceLedger
from mistakebound.core.audit.reference_ledger import Waiting as AuditedExample
from mistakebound.core.faults import BadLog
from mistakebound.core.ledger import label_outcomes
from mistakebound.core.ledger.label_outcomes import OF_EXAMPLES, OF_LABELS, OUTCOMES, Effect, Known
from mistakebound.core.ledger.ledger import Ledger
from mistakebound.core.ledger.rebuild import rebuild
from mistakebound.core.messages.labels import Carried
from mistakebound.core.messages.schema import (
    Decision,
    Inputs,
    Outcomes,
    RecoveryPoint,
    Version,
    encode,
    read_recovery_point,
)
from mistakebound.core.messages.tallies import EXAMPLE_OUTCOMES, LABEL_OUTCOMES
from mistakebound.core.records import Position, Record
from tests.core.support.feeding import Feeder
from tests.core.support.histories import ledger_of
from tests.core.support.memory_log import MemoryLog

OWN: dict[str, Any] = {"features": {"a": 2}, "prediction": False}
EARLIER: Mapping[Known, Callable[[Feeder], list[Record]]] = {
    "waiting": lambda f: [f.example("a", 1)],
    "given up": lambda f: [f.example("a", 1), f.example("x", 200_000)],
    "same label": lambda f: [f.example("a", 1), f.label("a", 1, True)],
    "other label": lambda f: [f.example("a", 1), f.label("a", 1, False)],
    "unknown": lambda f: [],
}
"""What makes this known of the id `a`."""
ROWS = [(known, content) for known in EARLIER for content in (False, True)]


def feeder() -> Feeder:
    """An example waits 100 s, a label parks 10 s."""
    return Feeder(labels={"max_delay": 100, "parking": 10})


def outcome(known: Known, content: bool) -> str:
    """What the step makes of a label of `a`, when that much is known of it."""
    f = feeder()
    f.feed(*EARLIER[known](f))
    return f.feed(
        f.label("a", 200_000 if known == "given up" else 2, True, **(OWN if content else {}))
    ).decided[-1][0]


def outcome_of_parked(content: bool) -> str:
    """What the step makes of a parked label whose time is over."""
    f = feeder()
    f.feed(f.label("a", 1, True, **(OWN if content else {})))
    return f.feed(f.example("x", 10_002)).decided[-1][0]


# --- what becomes of a label --------------------------------------------------------------------------


def test_every_case_has_an_outcome_and_every_outcome_an_effect() -> None:
    """No state of an id is left out, and no outcome; only `invalid` comes before an id is known."""
    assert set(OUTCOMES) == set(get_args(Known)) == {*EARLIER, "never came"}
    assert {each for row in OUTCOMES.values() for each in row} | {"invalid"} == set(OF_LABELS)
    assert set(OF_LABELS) == {*LABEL_OUTCOMES, "parked"}
    assert set(OF_EXAMPLES) == {*EXAMPLE_OUTCOMES} - {"labelled"}


@pytest.mark.parametrize(("known", "content"), ROWS)
def test_the_step_decides_as_the_table_says(known: Known, content: bool) -> None:
    """Whatever is known of the id, and whatever the label brings."""
    assert outcome(known, content) == OUTCOMES[known][content]


@pytest.mark.parametrize("content", [False, True])
def test_a_parked_label_is_settled_as_the_table_says(content: bool) -> None:
    """When its time is over."""
    assert outcome_of_parked(content) == OUTCOMES["never came"][content]


@pytest.mark.parametrize("known", [known for known in OUTCOMES if known != "waiting"])
@pytest.mark.parametrize("content", [False, True])
def test_the_step_reads_the_table(known: Known, content: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed row is a changed decision; only a waiting example is matched without it."""
    other = "duplicate" if OUTCOMES[known][content] == "conflict" else "conflict"
    monkeypatch.setitem(OUTCOMES, known, (other, other))  # type: ignore[arg-type]
    found = outcome_of_parked(content) if known == "never came" else outcome(known, content)
    assert found == other


@pytest.mark.parametrize(("known", "content"), ROWS)
def test_the_audits_own_copy_says_the_same(known: Known, content: bool) -> None:
    """It shares nothing with the table, so a broken row here is a difference there."""
    audited = ReferenceLedger(feeder().settings.labels)
    if known == "waiting":
        audited.waiting["a"] = AuditedExample("a", 0, 1, False, 1, b"{}", 0, 0, 0)
    elif known != "unknown":
        audited.resolve("a", {"given up": None, "same label": True, "other label": False}[known])
    made = audited.label("a", 5, True, Carried(b"{}", False) if content else None)
    assert ("applied" if made is None else made.outcome) == OUTCOMES[known][content]


@pytest.mark.parametrize("content", [False, True])
def test_the_audits_own_copy_says_the_same_of_parked_labels(content: bool) -> None:
    """Of a second one with the same value or another, and of one whose time is over."""
    audited = ReferenceLedger(feeder().settings.labels)
    carried = Carried(b"{}", False) if content else None
    audited.label("a", 5, True, carried)
    for label, known in ((True, "same label"), (False, "other label")):
        again = audited.label("a", 6, label, carried)
        assert again is not None
        assert again.outcome == OUTCOMES[known][content]
    audited.advance(10_001)
    due = audited.next_due()
    assert due is not None
    assert due.outcome == OUTCOMES["never came"][content]


# --- what a decision does -----------------------------------------------------------------------------


def eventful() -> tuple[Feeder, MemoryLog]:
    """Every decision there is, and something left in each of the three maps."""
    f, log = Feeder(labels={"max_delay": 100, "parking": 10, "max_waiting": 3}), MemoryLog(1)
    records = [
        f.example("applied", 1), f.label("applied", 1), f.label("applied", 1), f.label("applied", 1, False),
        f.label("early", 1), f.example("early", 2), f.example("early", 2), f.record("labels", 2, b"{"),
        f.record("examples", 2, b"{"), f.label("unmatched", 3), f.label("late", 3, **OWN), f.example("x", 10_004),
        *(f.example(f"evicts{n}", 20_000) for n in range(4)), f.label("x", 20_001, **OWN),
        f.example("y", 150_000), f.label("evicts0", 150_001), f.label("waits for z", 150_002),
    ]  # fmt: skip
    fed = f.feed(*records)
    for one in fed.steps:
        log.commit(one.transaction, marker=True)
    decided = {(each.outcome, each.label_offset is not None) for each in fed.decisions}
    assert decided == {(name, False) for name in OF_EXAMPLES} | {(name, True) for name in OF_LABELS}
    assert f.ledger.waiting
    assert f.ledger.parked
    return f, log


def rebuilt(f: Feeder, log: MemoryLog) -> dict[str, Any]:
    """All that a rebuild from the log's beginning holds."""
    position = log.positions[0]
    point = read_recovery_point(position)
    reads = log.read("predictions", 0, 0), log.read("outcomes", 0, 0)
    return ledger_of(
        rebuild(Ledger(f.settings.labels), position, replace_start(point), limits(f.ledger), *reads)
    )


def limits(ledger: Ledger) -> dict[int, int]:
    """Of the only epoch."""
    return {1: ledger.remember_at_most}


def replace_start(point: Any) -> Any:
    """The recovery point of the log's beginning: lower is always safe."""
    return type(point)(**dict.fromkeys(asdict(point), 0))


def test_a_rebuild_does_what_the_table_says() -> None:
    """Decisions of every kind, applied to an empty ledger, give what the step held."""
    f, log = eventful()
    assert rebuilt(f, log) == ledger_of(f.ledger)


EFFECTS = [
    (table, outcome, each.name)
    for table in ("OF_EXAMPLES", "OF_LABELS")
    for outcome, effect in getattr(label_outcomes, table).items()
    for each in fields(Effect)
    if getattr(effect, each.name) is True
]


@pytest.mark.parametrize(("table", "outcome", "effect"), EFFECTS)
def test_an_effect_taken_away_is_noticed(
    table: str, outcome: str, effect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rebuild reads every cell of the table."""
    f, log = eventful()
    rows = getattr(label_outcomes, table)
    monkeypatch.setitem(rows, outcome, replace(rows[outcome], **{effect: False}))
    assert rebuilt(f, log) != ledger_of(f.ledger)


def apply(decision: Decision) -> None:
    """Rebuild an empty ledger from one record with this decision."""
    value = encode(Outcomes(part=0, model=Version(1, [0]), decisions=[decision], inputs=Inputs(0, 0)))
    ledger, point = Ledger(feeder().settings.labels), RecoveryPoint(0, 0, 0)
    rebuild(ledger, Position(0, 0), point, limits(ledger), [], [Record("outcomes", 0, 0, 0, None, value)])


@pytest.mark.parametrize(
    "decision",
    [
        Decision("parked", "a", None, 5, True),
        Decision("applied", "a", None, 5, True),
        Decision("expired", "a"),
    ],
)
def test_a_decision_without_what_it_needs_is_refused(decision: Decision) -> None:
    """The rebuilt state would hold something that nobody could explain."""
    with pytest.raises(BadLog, match="lacks what such a decision has"):
        apply(decision)


@pytest.mark.parametrize("decision", [Decision("applied", "a", 3), Decision("forgotten", "a", None, 5, True)])
def test_a_decision_that_the_worker_never_makes_is_refused(decision: Decision) -> None:
    """An example alone is never applied, and an unknown outcome is not passed over."""
    with pytest.raises(BadLog, match="not one that the worker makes"):
        apply(decision)
