"""Record times of predictions: of one transaction they never go back, and its `outcomes` are stamped last.

The log stamps records when they are written, so no time can be made again; and clocks of different workers, or of one that was
set back, need not agree from one transaction to the next. Where brokers stamp records (LogAppendTime), those of two partitions may
disagree throughout: that is noted, and no difference.
"""

from mistakebound.core.audit.findings import Findings
from mistakebound.core.records import Record

NO_TIME = -(2**63)
"""Before every record time."""
MOST = 0.01
"""Of the predictions: if more are out of time, the clocks are to blame."""


class Times:
    """One partition's predictions, shown in their order."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._newest_ms = self._step_ms = NO_TIME
        self._seen = 0
        self._wrong: list[tuple[str, str]] = []

    def begin(self, step_ms: int) -> None:
        """A partition step begins, whose last `outcomes` record has this time."""
        self._newest_ms, self._step_ms = NO_TIME, step_ms

    def see(self, record: Record) -> None:
        """A prediction of the partition step."""
        time_ms = record.timestamp_ms
        self._seen += 1
        if time_ms > self._step_ms:
            text = f"its record time {time_ms} lies behind {self._step_ms}, that of the outcomes written after it"
            self._wrong.append((record.location, text))
        elif time_ms < self._newest_ms:
            text = f"its record time {time_ms} lies before {self._newest_ms}, that of the prediction written before it"
            self._wrong.append((record.location, text))
        else:
            self._newest_ms = time_ms

    def judge(self) -> None:
        """All were seen."""
        if len(self._wrong) > max(1, MOST * self._seen):
            self._findings.note(
                "predictions are stamped by other clocks than their outcomes: their times were not compared"
            )
            return
        for place, text in self._wrong:
            self._findings.check("predictions", place, False, text)
