"""Chance and sizes of the runs in this folder, settable from outside.

`MISTAKEBOUND_SEED` repeats a run's random choices (each test prints its seed; the processes' timing is
not repeated). `MISTAKEBOUND_FAULTS_EXAMPLES` sets how many examples a run has.
"""

import os
import random


def chance_of(name: str) -> random.Random:
    """A source of chance of one test's own."""
    seed = os.environ.get("MISTAKEBOUND_SEED") or str(random.randrange(2**32))
    print(f"MISTAKEBOUND_SEED={seed}  # {name}")
    return random.Random(f"{seed} {name}")


def examples(short: int) -> int:
    """How many examples to run; `short` where nothing else is asked for."""
    return int(os.environ.get("MISTAKEBOUND_FAULTS_EXAMPLES") or short)
