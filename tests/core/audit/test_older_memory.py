"""Earlier versions brought forgotten ids back: a rebuild took one limit of remembered ids for all epochs."""

from collections import Counter
from random import Random

import pytest

from mistakebound.core.audit.findings import BROUGHT_BACK, Findings
from mistakebound.core.audit.reference_ledger import ReferenceLedger
from mistakebound.core.checkpoint_content import FORMAT, Checkpoint, freeze, settings_digest
from mistakebound.settings import LabelSettings, Settings
from mistakebound.worker import ledgers
from mistakebound.worker.takeover import epochs_of
from tests.core.support.audited import Lists
from tests.core.support.every_kind import CASES
from tests.core.support.fleets import Fleet


@pytest.fixture
def _one_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers rebuild as earlier versions did."""
    right = ledgers.limits_of

    def newest(epochs: object) -> dict[int, int]:
        limits = right(epochs)  # type: ignore[arg-type]
        return dict.fromkeys(limits, limits[max(limits)])

    monkeypatch.setattr(ledgers, "limits_of", newest)


def raised(seed: int, by: int = 2) -> Fleet:
    """A fleet's log whose second epoch remembers more."""
    fleet = Fleet(Random(seed), CASES["averaged perceptron"])
    fleet.run(rounds=20)
    labels = fleet.settings.labels.model_dump()
    labels["remember"] += by
    fleet.begin_epoch(Settings.model_validate({**fleet.settings.model_dump(), "labels": labels}))
    fleet.run()
    return fleet


def audited(fleet: Fleet) -> Findings:
    """The audit of its log, and of a checkpoint of one who takes all over."""
    worker = fleet._take_over(range(fleet.partitions))
    checkpoint = Checkpoint(
        FORMAT,
        fleet.settings.group,
        {},
        settings_digest(fleet.settings),
        epochs_of(worker.fold),
        worker.state.model.snapshot(),
        worker.fold.next_offsets,
        {p: freeze(ledger) for p, ledger in worker.state.ledgers.items()},
    )
    return Lists(fleet.partitions, {**fleet.inputs, **fleet.log.records}).audit(checkpoint)


@pytest.mark.usefixtures("_one_limit")
def test_what_an_earlier_version_brought_back_is_no_difference() -> None:
    """It is noted, with every decision that rests on it, and in its checkpoints; all else is still checked."""
    seen: Counter[str] = Counter()
    for seed in (82845, *range(25)):
        found = audited(raised(seed))
        assert found.first == [], f"fleet {seed}"
        seen.update(found.notes)
    assert seen[BROUGHT_BACK] > 5


def test_only_what_a_larger_limit_would_still_remember_is_believed() -> None:
    """And its first label tells a duplicate from a conflict."""

    def outcome(record_id: str, label: bool) -> str | None:
        made = ledger.brought_back(record_id, 9, label, None)
        return None if made is None else made.outcome

    ledger = ReferenceLedger(LabelSettings(remember=1), 2)
    for record_id in ("a", "b", "c"):
        ledger.resolve(record_id, True)
    assert outcome("b", True) is None, "the epoch's own limit is the smaller one"
    ledger.rule(LabelSettings(remember=2))
    assert [outcome("b", True), outcome("b", False)] == ["duplicate", "conflict"]
    assert outcome("a", True) is None, "two that are newer come before it"
    assert outcome("c", True) is None, "it is known in any case"
    ledger.resolve("d", True)
    assert outcome("b", True) is None


def test_this_version_brings_none_back() -> None:
    """The same fleets, whose workers keep to each epoch's own limit: nothing is found, and nothing taken on trust."""
    for seed in (82845, *range(25)):
        found = audited(raised(seed))
        assert found.first == [], f"fleet {seed}"
        assert BROUGHT_BACK not in found.notes
