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
    """From the first record to the last commit."""

    def __init__(self) -> None:
        self._began: tuple[float, float] | None = None

    def start(self) -> None:
        """The first call counts."""
        if self._began is None:
            self._began = time.perf_counter(), time.process_time()

    def done(self, labelled: int, **known: Any) -> None:
        """Print the result."""
        assert self._began is not None
        result = {
            "seconds": time.perf_counter() - self._began[0],
            "cpu_seconds": time.process_time() - self._began[1],
            "labelled": labelled,
            "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            **known,
        }
        print(json.dumps(result), flush=True)
