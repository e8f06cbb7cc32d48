"""A partition step that is made again: some of its predictions are published already."""

from mistakebound.core.ledger.entries import Published
from mistakebound.core.messages.schema import read_recovery_point
from mistakebound.core.step.merge import Merge
from mistakebound.core.step.step import Step, step
from tests.core.support.feeding import Feeder


def torn(f: Feeder, *sources: int) -> None:
    """From now on these examples count as predicted in a transaction that was torn."""
    published = Published(at=1, predicted=False, epoch=1, updates=0, floor=0)
    f.ledger.published, f.ledger.published_end = dict.fromkeys(sources, published), max(sources) + 1


def test_what_is_published_is_not_predicted_again_and_waits() -> None:
    """The step names the examples whose prediction was there before."""
    f = Feeder()
    torn(f, 1)

    fed = f.feed(f.example("a", 1), f.example("b", 1), f.example("c", 1))

    assert [each["id"] for each in fed.predictions] == ["a", "c"]
    assert list(f.ledger.waiting) == ["a", "b", "c"]
    assert [each.adopted for each in fed.outcomes] == [[1, 1]]


def test_an_example_of_a_known_id_is_a_duplicate_though_its_prediction_is_published() -> None:
    """The labels that had come before it may be others than in the step that was torn, and its id not forgotten yet.

    Taken for a first one, it would push the one that waits out of the ledger, or be judged by a second label.
    """
    f = Feeder()
    f.feed(f.example("a", 1), f.example("b", 1), f.label("b", 2))
    torn(f, 2, 3)

    fed = f.feed(f.example("a", 3), f.example("b", 3))

    assert fed.decided == [("duplicate", "a"), ("duplicate", "b")]
    assert [(entry.id, entry.source) for entry in f.ledger.waiting.values()] == [("a", 0)]
    assert [each.adopted for each in fed.outcomes] == [None]


def test_what_is_published_is_read_again_until_the_step_that_counts_it_is_committed() -> None:
    """The next step, made ahead, may have counted it already, and be taken back: a restart must find it all the same."""
    f = Feeder()
    torn(f, 3)
    f.next["predictions", 0] = 1
    records = [f.example("a", 1), f.example("b", 1), f.example("c", 1), f.example("d", 1)]
    labels = [f.label("a", 2), f.label("b", 2)]
    merge = Merge(range(1))
    merge.add(records)
    first, ahead = made(f, merge, 2), made(f, merge, 2)
    f.commit(first)
    f.state.rollback(ahead.partitions)
    merge = Merge(range(1))
    merge.add(labels)
    point = read_recovery_point(made(f, merge, 2).transaction.positions[0])
    assert (len(f.ledger.waiting), point.predictions) == (0, 0)


def made(f: Feeder, merge: Merge, most: int) -> Step:
    found = step(f.state, merge, f.everything, most)
    assert found is not None
    return found
