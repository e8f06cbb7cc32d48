"""A contender's task, and its clock."""

import json
import resource
import sys
import time
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Task:
    """What to do, from the command line."""

    bootstrap: str
    prefix: str
    examples: str
    labels: str
    records: int
    options: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def given(cls) -> "Task":
        return cls(**json.loads(sys.argv[1]))


class Clock:
    """From the first record to the last commit, and from half of the examples to there."""

    def __init__(self, records: int) -> None:
        """`records`: labelled examples of the whole stream."""
        self._records = records
        self._began: tuple[float, float] | None = None
        self._half: tuple[float, float] | None = None
        self._behind_half = 0

    def start(self) -> None:
        """The first call counts."""
        if self._began is None:
            self._began = _now()

    def reached(self, labelled: int) -> None:
        """Tell how many examples are labelled so far; the first time it is half of them counts."""
        if self._half is None and 2 * labelled >= self._records:
            self._half, self._behind_half = _now(), self._records - labelled

    def done(self, labelled: int, **known: Any) -> None:
        """Print the result."""
        assert self._began is not None
        assert self._half is not None
        ended = _now()
        result = {
            "seconds": ended[0] - self._began[0],
            "cpu_seconds": ended[1] - self._began[1],
            "half_seconds": ended[0] - self._half[0],
            "half_cpu_seconds": ended[1] - self._half[1],
            "half_labelled": self._behind_half,
            "labelled": labelled,
            "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            **known,
        }
        print(json.dumps(result), flush=True)


def _now() -> tuple[float, float]:
    """Seconds on the clock, and of the processor in this process."""
    return time.perf_counter(), time.process_time()
