"""A pattern that nothing matches is told by a running worker, once."""

from structlog.testing import capture_logs

from mistakebound.core.model.fold import Fold
from mistakebound.core.step.facts import StepFacts
from mistakebound.worker.idle_patterns import ENOUGH, IdlePatterns
from tests.core.support.feeding import Feeder
from tests.worker.support.events import committed, settled


def told(examples: int, **features: object) -> list[str]:
    """What is said of patterns by a worker that has read so many examples of `a` and `b`, and then as many again."""
    f = Feeder(features=features)
    watching = IdlePatterns(f.settings)
    with capture_logs() as logs:
        for _ in range(2):
            f.feed(f.example(f"i{f.next['examples', 0]}", 1, {"a": 1, "b": 2}))
            watching.observe(committed(StepFacts(consumed={"examples": examples})))
            watching.observe(settled(f.state, Fold(f.settings, 1)))
    return [entry["reason"] for entry in logs if entry["event"] == "pattern_matches_nothing"]


def test_a_pattern_that_matches_nothing_is_told_once() -> None:
    """With its key, whichever of the two it is; one that matches is not told."""
    first, second = told(ENOUGH, include=["a", "c"], exclude=["B*"])
    assert first.startswith("features.exclude: 'B*' matches no feature")
    assert second.startswith("features.include: 'c' matches no feature")


def test_nothing_is_told_of_a_few_examples() -> None:
    """A member may be rare."""
    assert told(ENOUGH // 3, exclude=["B*"]) == []
