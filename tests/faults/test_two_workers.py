"""Two workers that were given one slot: one ends with its own code, the other works, nothing is doubled."""

import pytest

from tests.faults.conftest import Deploy
from tests.faults.support.chance import chance_of
from tests.faults.support.children import until
from tests.faults.support.deployment import PATIENCE_S
from tests.faults.support.stream import SETTINGS, stream

pytestmark = pytest.mark.long

SLOT_TAKEN = 6


def test_of_two_workers_with_one_slot_one_ends(deploy: Deploy) -> None:
    """Whichever one ends, it says that the slot is taken, and each example is predicted once."""
    place = deploy(*SETTINGS, "batch.max_records=50")
    records = stream(3_000, chance_of("two workers").randrange(2**32))
    place.send(records[:1_000])
    first = place.worker()
    place.works(first)
    second = place.worker()
    pair = (first, second)
    until(
        lambda: '"event": "assigned"' in second.err() or any(one.code is not None for one in pair),
        PATIENCE_S,
        "the second has joined",
    )
    left_over = records[1_000:]

    def ended_by_the_other() -> bool:
        # Little by little: who has nothing to write is never shut out.
        place.send([left_over.pop(0) for _ in range(min(3, len(left_over)))])
        return any(one.code is not None for one in pair)

    until(ended_by_the_other, PATIENCE_S, "one of the two has ended")
    place.send(left_over)
    ended, left = pair if first.code is not None else (second, first)
    assert ended.code == SLOT_TAKEN, f"{ended.last_words()}\n{left.last_words()}"
    assert left.code is None, left.last_words()
    assert "worker.slot" in ended.err() or "run only one" in ended.err(), ended.last_words()
    place.finish(left)
    assert len(place.prove().predictions) == 3_000
