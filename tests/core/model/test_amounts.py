"""Updates whose amount is not 1: decided once, logged, folded as logged, and recomputed by the audit."""

from dataclasses import replace
from random import Random
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from mistakebound.core.faults import BadLog
from mistakebound.core.learners import KINDS, Learner
from mistakebound.core.linear.linear import Linear
from mistakebound.core.linear.theta import errs
from mistakebound.core.messages.features import Features
from mistakebound.core.messages.schema import Update, Version, encode, read_update
from mistakebound.core.model.fold import Fold
from mistakebound.core.model.model import first_epoch
from mistakebound.core.records import Record
from mistakebound.settings import LearnerSettings, Settings
from tests.core.support.audited import of_history
from tests.core.support.every_kind import CASES, Case
from tests.core.support.feeding import Feeder
from tests.core.support.histories import History, bits


def by_first_value(settings: LearnerSettings, partitions: int) -> Learner:
    """A perceptron that adds a third of y*x, or all of it where the example's first value is 1."""

    def amount(score: float, x: Features, positive: bool) -> float:
        if not errs(score, positive, "mistake"):
            return 0.0
        return 1.0 if next(iter(x), ("", 0.0))[1] == 1.0 else 1 / 3

    return Linear(settings, partitions, tie="mistake", amount=amount)


@pytest.fixture
def thirds(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A learner that gives amounts, by its page alone."""
    page = replace(KINDS["perceptron"], name="thirds", make=by_first_value, many=None)
    monkeypatch.setitem(KINDS, "thirds", page)  # type: ignore[arg-type]
    return {"kind": "thirds"}


def update(**more: Any) -> Update:
    return Update(1, 1, [1], "i", True, False, msgspec.Raw(b'{"a":1}'), 0, Version(1, [0]), **more)


def test_an_amount_of_one_is_not_written_and_one_that_is_absent_reads_as_one() -> None:
    """Logs written before there were amounts added all of y*x."""
    assert b"amount" not in encode(update())
    read = read_update(Record("updates", 0, 0, 0, None, encode(update())))
    assert isinstance(read, Update)
    assert read.amount == 1.0


@pytest.mark.parametrize("amount", [0, -1.5])
def test_an_update_of_nothing_is_no_record_of_the_worker(amount: float) -> None:
    """It would be an update from which nothing was learned."""
    with pytest.raises(BadLog):
        read_update(Record("updates", 0, 0, 0, None, encode(update(amount=amount))))


def test_the_amount_that_was_decided_is_logged_and_folded(thirds: dict[str, Any]) -> None:
    """From the log alone, to the bit; where all is added the record says nothing."""
    feeder = Feeder(1, learner=thirds, features={"bias": False})
    log = [Record("updates", 0, 0, 0, None, encode(first_epoch(feeder.settings)))]
    amounts = []
    for number, (value, label) in enumerate([(3.0, True), (1.0, False), (2.5, True), (-1.0, True)]):
        fed = feeder.feed(
            feeder.example(f"i{number}", 2 * number, {"a": value, "b": 0.1}),
            feeder.label(f"i{number}", 2 * number + 1, label),
        )
        amounts += [one.get("amount") for one in fed.updates]
        log += [
            Record("updates", 0, len(log), 0, None, output.value)
            for output in fed.outputs
            if output.topic == "updates"
        ]
    assert amounts == [1 / 3, None, 1 / 3, 1 / 3]
    fold = Fold(feeder.settings, 1)
    assert fold.fold(0, log)
    assert bits(fold.model.learner.dump()) == bits(feeder.model.learner.dump())
    assert fold.model.learner.theta()["a"] == 1 / 3 * 3.0 - 1.0 + 1 / 3 * 2.5 - 1 / 3


def test_the_audit_recomputes_the_amount(thirds: dict[str, Any]) -> None:
    """An honest log is clean; an update of another amount than was due is found."""
    settings = Settings.model_validate({"learner": thirds})
    case = Case(settings, CASES["perceptron"].truth)
    with capture_logs():
        history = History(Random(5), case)
        history.run()
    assert not of_history(history).audit().differences
    forged = of_history(history)
    place = next(n for n, value in enumerate(forged.values("updates", 0)) if "amount" in value)
    forged.rewrite("updates", 0, place, lambda value: value.update(amount=0.5))
    first = forged.audit().first[0]
    assert first.check == "updates"
    assert first.text.startswith("amount is 0.5, should be 0.333")
