"""The faults of one run: which, when, to whom, for how long."""

from collections.abc import Collection
from random import Random
from typing import NamedTuple

CHAOS_S = 60.0
FAULTS = (
    "kill", "stop", "pause", "overtaken", "double", "broker away", "leader away", "leaders move", "broker stalls", "silence", "bad line", "evict", "clock",
    "torn checkpoint", "retention", "stranger", "disk full", "offsets lost",
)  # fmt: skip
"""A worker is killed, told to stop, paused, paused amid a takeover until others have gone on, or started a second time in its slot; brokers are away or answer nobody, one of several is, or others lead;
nothing arrives, or connections end all the time; the group throws a member out; a wall clock jumps; a checkpoint is cut off; old records are deleted as
far as nobody needs them; somebody else's transaction stays open; no batch is taken; the group's positions are deleted."""
OF_NETWORK = (
    "broker away",
    "leader away",
    "leaders move",
    "broker stalls",
    "silence",
    "bad line",
    "disk full",
)
OF_LOG = ("torn checkpoint", "retention", "stranger", "offsets lost")
LAST_S = (0.05, 1.0, 12.0)
LONG = {"broker away": 50.0, "stranger": 60.0}
"""These last long at times."""
LONG_SHARE = 0.3


class Strike(NamedTuple):
    """One fault of a run."""

    at_s: float
    fault: str
    slot: int
    lasts_s: float
    part: float
    """Drawn for the fault's own use, 0 to 1."""


def planned(chance: Random, slots: int, faults: Collection[str]) -> list[Strike]:
    """Faults of some of these kinds, one after another and on top of each other, for at most a minute."""
    if not faults:
        return []
    wanted = chance.sample(sorted(faults), chance.randint(1, len(faults)))
    rest_s = chance.choice((0.3, 2.0, 8.0))
    now_s, end_s = 0.0, chance.uniform(2, CHAOS_S)
    found = []
    while (now_s := now_s + chance.random() * rest_s) < end_s:
        lasts_s = chance.choice(LAST_S) * (0.5 + chance.random())
        fault = chance.choice(wanted)
        if fault in LONG and chance.random() < LONG_SHARE:
            lasts_s = LONG[fault] * (0.5 + chance.random())
        found.append(Strike(now_s, fault, chance.randrange(slots), lasts_s, chance.random()))
    return found
