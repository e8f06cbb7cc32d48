"""The promise after crashes, on the sqlite log: the worker is killed, and every number is derived again."""

import pytest

from tests.faults.conftest import Deploy
from tests.faults.support.chance import chance_of, examples
from tests.faults.support.killing import KILLED_OFTEN, feed_and_kill
from tests.faults.support.stream import SETTINGS, stream

pytestmark = pytest.mark.long


def test_a_worker_killed_five_times_loses_and_doubles_nothing_on_sqlite(on_sqlite: Deploy) -> None:
    """Killed at random moments, it goes on where it was; a recount of the file agrees with all it says."""
    chance = chance_of("killed on sqlite")
    records = stream(examples(10_000), chance.randrange(2**32))
    place = on_sqlite(*SETTINGS, *KILLED_OFTEN)
    feed_and_kill(place, records, chance, kills=5)
    found = place.prove()
    assert found.labels["applied"] > 0.9 * examples(10_000)
    assert found.mistakes > 0.1 * examples(10_000)
    assert all(found.examples[name] for name in ("expired", "evicted", "duplicate", "invalid")), found
    assert all(found.labels[name] for name in ("duplicate", "conflict", "expired", "unmatched", "invalid"))
