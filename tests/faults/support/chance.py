"""Random choices, sizes and the workers' Kafka client in the tests of this folder, settable by variables.

`MISTAKEBOUND_SEED` repeats a run's random choices (each test prints its seed; the processes' timing is
not repeated). `MISTAKEBOUND_FAULTS_SIZE=full` asks for the full form of each test, which `python -m
tests.faults` does; `MISTAKEBOUND_FAULTS_EXAMPLES` sets how many examples a run has. With
`MISTAKEBOUND_FAULTS_CLIENT=confluent` the workers use librdkafka, and everything else stays the same.
`MISTAKEBOUND_FAULTS_WORKERS` and `MISTAKEBOUND_FAULTS_ROUNDS` set how many workers and rounds a test has that is told.
"""

import os
import random
from typing import TypeVar

Any = TypeVar("Any")


def chance_of(name: str) -> random.Random:
    """A source of chance of one test's own."""
    seed = os.environ.get("MISTAKEBOUND_SEED") or str(random.randrange(2**32))
    print(f"MISTAKEBOUND_SEED={seed}  # {name}")
    return random.Random(f"{seed} {name}")


def is_full() -> bool:
    """Whether the full form was asked for."""
    return os.environ.get("MISTAKEBOUND_FAULTS_SIZE") == "full"


CLIENT = "MISTAKEBOUND_FAULTS_CLIENT"
WORKERS = "MISTAKEBOUND_FAULTS_WORKERS"
ROUNDS = "MISTAKEBOUND_FAULTS_ROUNDS"


def clients() -> list[str]:
    """The clients by which workers are tried where both are: the one that was asked for, or each."""
    asked = os.environ.get(CLIENT)
    return [asked] if asked else ["kafka-python", "confluent"]


def of_client(url: str) -> str:
    """Where a worker finds this log, by the client that was asked for."""
    if os.environ.get(CLIENT) == "confluent":
        return url.replace("kafka://", "kafka+confluent://")
    return url


def sized(short: Any, full: Any) -> Any:
    """What a run takes: `full` where the full form was asked for."""
    return full if is_full() else short


def examples(short: int, full: int | None = None) -> int:
    """How many examples to run, where nothing else is asked for: `short`, or `full` in the full form."""
    asked = os.environ.get("MISTAKEBOUND_FAULTS_EXAMPLES")
    return int(asked) if asked else sized(short, short if full is None else full)


def workers(short: int) -> int:
    """How many workers a test has: `short`, where nothing else is asked for."""
    return int(os.environ.get(WORKERS) or short)


def rounds(short: int, full: int) -> int:
    """How many rounds a test has."""
    return int(os.environ.get(ROUNDS) or sized(short, full))
