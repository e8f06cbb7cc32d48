"""A worker that is killed after each reset, on the sqlite log: what an epoch has forgotten stays forgotten."""

import json
import time

import pytest

from mistakebound.core.messages.schema import read_outcomes
from tests.faults.conftest import Deploy
from tests.faults.support.chance import chance_of, examples
from tests.faults.support.deployment import Deployment
from tests.faults.support.killing import KILLED_OFTEN
from tests.faults.support.stream import SETTINGS, stream

pytestmark = pytest.mark.long

REMEMBERED = (5, 3_000, 40)
"""By epoch. Second records of an id come up to 500 examples later."""


def test_a_worker_killed_after_each_reset_forgets_as_each_epoch_had_it(on_sqlite: Deploy) -> None:
    """Whatever it reads back from, log or checkpoint: the audit finds nothing, and takes no id on trust."""
    chance = chance_of("killed after a reset")
    records = stream(examples(3_000), chance.randrange(2**32))
    place = on_sqlite(*SETTINGS, *KILLED_OFTEN)
    share = len(records) // len(REMEMBERED) + 1
    for number, limit in enumerate(REMEMBERED):
        place.options += ["--set", f"labels.remember={limit}"]
        if number:
            place.children.ok("reset", "--execute", *place.options)
        mine = records[number * share : (number + 1) * share]
        half = len(mine) // 2
        worker = place.worker()
        for part in (mine[:half], mine[half:]):
            place.send(part)
            place.works(worker)
            time.sleep(chance.uniform(0, 0.1))
            worker.kill()
            worker = place.worker()
        place.finish(worker)

    told = json.loads(place.children.ok("audit", "--json", *place.options))

    assert told["differences"] == {}
    assert not [note for note in told["notes"] if "remember" in note]
    seconds = [_duplicates(place, epoch) for epoch in (1, 2)]
    assert seconds[1] > 2 * seconds[0], "the larger limit knows more second records"


def _duplicates(place: Deployment, epoch: int) -> int:
    return sum(
        decision.outcome in ("duplicate", "conflict")
        for p in range(place.partitions)
        for record in place.log.read("outcomes", p, 0)
        if (outcomes := read_outcomes(record)).model.epoch == epoch
        for decision in outcomes.decisions
    )
