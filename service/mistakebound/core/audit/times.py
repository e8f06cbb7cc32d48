"""Record times of predictions: of one transaction they never go back, and its `outcomes` are stamped last.

The log stamps records when they are written, so no time can be made again; and clocks of different workers, or of one that was
set back, need not agree from one record to the next. So a time is wrong only where the times before and behind it agree with each
other and not with it: a clock that was set back parts all that was written before from all that was written behind. Brokers that
stamp records themselves (LogAppendTime) take the partitions of a transaction in any order, within seconds.
"""

from mistakebound.core.audit.findings import Findings
from mistakebound.core.records import Record

NO_TIME = -(2**63)
"""Before every record time."""
SLACK_MS = 10_000
"""All records of a transaction are on the broker within so long, or it is given up."""
MOST = 0.01
"""Of the predictions: if more are out of time, the clocks are to blame."""


class Times:
    """One partition's predictions, shown in their order."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._before_ms = self._step_ms = NO_TIME
        self._of_step: list[Record] = []
        self._seen = 0
        self._wrong: list[tuple[str, str]] = []

    def begin(self, step_ms: int) -> None:
        """A partition step begins, whose last `outcomes` record has this time."""
        self._compare()
        self._before_ms, self._step_ms = self._step_ms, step_ms

    def see(self, record: Record) -> None:
        """A prediction of the partition step."""
        self._seen += 1
        self._of_step.append(record)

    def judge(self) -> None:
        """All were seen."""
        self._compare()
        if len(self._wrong) > max(1, MOST * self._seen):
            self._findings.note(
                "predictions are stamped by other clocks than their outcomes: their times were not compared"
            )
            return
        for place, text in self._wrong:
            self._findings.check("predictions", place, False, text)

    def _compare(self) -> None:
        """Each time with those beside it: of the step before, of the other predictions, of the `outcomes` behind them."""
        records, self._of_step = self._of_step, []
        times = [self._before_ms, *(record.timestamp_ms for record in records), self._step_ms]
        for record, before, behind in zip(records, times, times[2:], strict=False):
            if before <= behind and not before - SLACK_MS <= record.timestamp_ms <= behind + SLACK_MS:
                beside = (
                    f"{behind}, that of the record behind it"
                    if before == NO_TIME
                    else f"{before} and {behind}, those of the records beside it"
                )
                self._wrong.append(
                    (record.location, f"its record time {record.timestamp_ms} does not agree with {beside}")
                )
