"""The ledgers in checkpoints, each compared with the audit's own ledger where the walk passes its place."""

from collections.abc import Mapping, Sequence

from mistakebound.core.audit.counts import Counts
from mistakebound.core.audit.findings import Findings
from mistakebound.core.audit.reference_ledger import ReferenceLedger
from mistakebound.core.checkpoint import LedgerSnapshot


class Ledgers:
    """Frozen ledgers that wait for the partition step they were made after."""

    def __init__(self) -> None:
        self._waiting: dict[int, list[tuple[str, int, LedgerSnapshot]]] = {}

    def expect(self, name: str, epoch: int, ledgers: Mapping[int, LedgerSnapshot]) -> None:
        """The ledgers of a checkpoint made in `epoch`."""
        for partition, frozen in ledgers.items():
            self._waiting.setdefault(partition, []).append((name, epoch, frozen))

    def compare(
        self,
        partition: int,
        last_offset: int,
        epoch: int,
        ledger: ReferenceLedger,
        counts: Counts,
        findings: Findings,
    ) -> None:
        """`last_offset`: of the newest `outcomes` record, -1 before the first; `epoch`: the one it is in now."""
        left = []
        for name, made_in, frozen in self._waiting.get(partition, ()):
            if (frozen.outcomes_end, made_in) != (last_offset + 1, epoch):
                left.append((name, made_in, frozen))
                continue
            wrong = _differences(frozen, ledger, counts)
            findings.check(
                "checkpoint ledgers", f"{name}, partition {partition}", not wrong, "; ".join(wrong)
            )
        if partition in self._waiting:
            self._waiting[partition] = left

    def finish(self, findings: Findings) -> None:
        """Those that stand where no partition step ended."""
        for partition, left in self._waiting.items():
            for name, _, frozen in left:
                empty = frozen.outcomes_end == 0 and not frozen.waiting and not frozen.parked
                findings.check(
                    "checkpoint ledgers",
                    f"{name}, partition {partition}",
                    empty,
                    f"it stands at outcomes offset {frozen.outcomes_end}, where no partition step ended",
                )


def _differences(frozen: LedgerSnapshot, ledger: ReferenceLedger, counts: Counts) -> list[str]:
    wrong = []
    waiting = [
        (e.id, e.source, e.at, e.predicted, e.epoch, e.features, e.updates) for e in ledger.waiting.values()
    ]
    recorded = [(e.id, e.source, e.at, e.predicted, e.epoch, e.features, e.updates) for e in frozen.waiting]
    if recorded != waiting:
        wrong.append(_first("waiting examples", recorded, waiting))
    parked = [(e.id, e.offset, e.label, e.at, e.carried) for e in ledger.parked.values()]
    recorded_parked = [(e.id, e.offset, e.label, e.at, e.carried) for e in frozen.parked]
    if recorded_parked != parked:
        wrong.append(_first("parked labels", recorded_parked, parked))
    remembered = [(record_id, entry.label) for record_id, entry in ledger.remembered.items()]
    recorded_ids = [(e.id, e.label) for e in frozen.remembered]
    if recorded_ids != remembered:
        wrong.append(_first("remembered ids", recorded_ids, remembered))
    if frozen.stream_time != ledger.now:
        wrong.append(f"stream time is {frozen.stream_time}, should be {ledger.now}")
    differences = counts.differences(frozen.tallies)
    wrong += [f"{name} is {one}, should be {two}" for name, (one, two) in differences.items()]
    return wrong


def _first(what: str, recorded: Sequence[object], made: Sequence[object]) -> str:
    if len(recorded) != len(made):
        return f"{len(recorded)} {what}, should be {len(made)}"
    one, other = next((a, b) for a, b in zip(recorded, made, strict=True) if a != b)
    return f"{what}: {str(one)[:80]} should be {str(other)[:80]}"
