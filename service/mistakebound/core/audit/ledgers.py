"""The ledgers in checkpoints, each compared with the audit's own when the walk reaches the same offset."""

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from mistakebound.core.audit.counts import Counts
from mistakebound.core.audit.findings import BROUGHT_BACK, Findings
from mistakebound.core.audit.reference_ledger import ReferenceLedger, Waiting
from mistakebound.core.checkpoint_content import LedgerSnapshot

# What a snapshot's entries and the audit's own have in common.
_WAITING = attrgetter("id", "source", "at", "predicted", "epoch", "features", "updates", "beside", "tenant")
_PARKED = attrgetter("id", "offset", "label", "at", "carried")


class Ledgers:
    """Ledgers from checkpoints, each waiting for the partition step after which it was made."""

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
        """Compare those made here. `last_offset`: of the newest `outcomes` record, -1 before the first; `epoch`: now."""
        left = []
        for name, made_in, frozen in self._waiting.get(partition, ()):
            if (frozen.outcomes_end, made_in) != (last_offset + 1, epoch):
                left.append((name, made_in, frozen))
                continue
            wrong = _differences(frozen, ledger, counts, findings)
            findings.check(
                "checkpoint ledgers", f"{name}, partition {partition}", not wrong, "; ".join(wrong)
            )
        if partition in self._waiting:
            self._waiting[partition] = left

    def finish(self, findings: Findings) -> None:
        """The ledgers left over stand where no partition step ended; only an empty one may."""
        for partition, left in self._waiting.items():
            for name, _, frozen in left:
                empty = frozen.outcomes_end == 0 and not frozen.waiting and not frozen.parked
                text = f"it stands at outcomes offset {frozen.outcomes_end}, where no partition step ended"
                findings.check("checkpoint ledgers", f"{name}, partition {partition}", empty, text)


def _as_kept(entry: Waiting, kept: Any) -> Waiting:
    """The entry as a checkpoint should have it. One from before its prediction was made again has what the first one said,
    which nobody knows any more."""
    if entry.again_at is None or kept is None:
        return entry
    if kept.at == entry.at:
        return entry._replace(
            predicted=kept.predicted, epoch=kept.epoch, updates=kept.updates, beside=kept.beside
        )
    return entry._replace(at=entry.again_at)


def _differences(
    frozen: LedgerSnapshot, ledger: ReferenceLedger, counts: Counts, findings: Findings
) -> list[str]:
    wrong = []
    kept = {entry.id: entry for entry in frozen.waiting if ledger.made_again}
    remembered = [(record_id, entry.label) for record_id, entry in ledger.remembered.items()]
    more = len(frozen.remembered) - len(remembered)
    if more > 0:
        forgotten = list(ledger.forgotten.items())[-more:]
        if forgotten and all(ledger.forgotten_of_old(record_id) is not None for record_id, _ in forgotten):
            remembered = [*((record_id, entry.label) for record_id, entry in forgotten), *remembered]
            findings.note(BROUGHT_BACK)
    for what, recorded, made in (
        (
            "waiting examples",
            list(map(_WAITING, frozen.waiting)),
            [_WAITING(_as_kept(entry, kept.get(entry.id))) for entry in ledger.waiting.values()],
        ),
        ("parked labels", list(map(_PARKED, frozen.parked)), list(map(_PARKED, ledger.parked.values()))),
        ("remembered ids", [(e.id, e.label) for e in frozen.remembered], remembered),
    ):
        if len(recorded) != len(made):
            wrong.append(f"{len(recorded)} {what}, should be {len(made)}")
        elif recorded != made:
            one, other = next(pair for pair in zip(recorded, made, strict=True) if pair[0] != pair[1])
            wrong.append(f"{what}: {str(one)[:80]} should be {str(other)[:80]}")
    if frozen.stream_time != ledger.now:
        wrong.append(f"stream time is {frozen.stream_time}, should be {ledger.now}")
    differences = counts.differences(frozen.tallies)
    wrong += [f"{name} is {one}, should be {two}" for name, (one, two) in differences.items()]
    return wrong
