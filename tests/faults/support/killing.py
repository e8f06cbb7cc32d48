"""Feeds a worker and kills it at random moments, each after further progress was seen."""

import random
import time
from collections.abc import Sequence

from mistakebound.core.records import Outgoing
from tests.faults.support.deployment import Deployment

KILLED_OFTEN = ("batch.max_records=200", "checkpoint.every_updates=300")
"""Small steps, so that kills meet open transactions; checkpoints often enough to start from one."""
PIECES = 8


def feed_and_kill(
    place: Deployment,
    records: Sequence[Outgoing],
    chance: random.Random,
    *,
    kills: int,
) -> None:
    """Send `records`, the first half as a backlog and the rest piece by piece, and kill the worker
    `kills` times on the way. Then finish cleanly."""
    begun = time.monotonic()
    half = len(records) // 2
    place.send(records[:half])
    pieces = [records[at : at + half // PIECES + 1] for at in range(half, len(records), half // PIECES + 1)]
    worker = place.worker()
    for planned in moments(chance, kills, len(records)):
        moment = max(planned, place.consumed() + 1)
        # Enough is sent to come to the moment while there is work left.
        while pieces and sum(map(len, pieces)) > len(records) - 1.05 * moment - 500:
            place.send(pieces.pop(0))
        worker = place.lasting(worker, lambda now=moment: place.consumed() >= now, f"{moment} are consumed")
        time.sleep(chance.uniform(0, 0.1))
        worker.kill()
        print(f"{time.monotonic() - begun:.1f} s: killed beyond {moment} of {len(records)} records")
        worker = place.worker()
    for piece in pieces:
        place.send(piece)
    place.finish(worker)
    print(f"{time.monotonic() - begun:.1f} s: finished")


def moments(chance: random.Random, count: int, total: int) -> list[int]:
    """Random numbers of consumed records, one in each of `count` equal stretches of the first 90 %."""
    stretch = int(total * 0.9 / count)
    return [number * stretch + chance.randint(stretch // 10, stretch) for number in range(count)]
