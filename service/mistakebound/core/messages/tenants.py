"""Counts by tenant over all partitions: the largest tenants, and all others together."""

from collections.abc import Collection
from dataclasses import dataclass

from mistakebound.core.messages.tallies import Tallies, TenantTally

SHOWN = 20
"""Tenants shown one by one."""


@dataclass(frozen=True, slots=True)
class TenantCounts:
    """One tenant's counts for life."""

    tenant: str | None
    """None: all others together."""
    examples: int
    """Examples predicted."""
    labelled: int
    mistakes: int
    mistake_rate: float | None
    """None where none is labelled."""
    updates: int
    complete: bool
    """Whether these are all of this tenant's counts. A partition counts its first tenants only one by one, so a tenant
    that came later there is among its others."""


def by_tenant(tallies: Collection[Tallies]) -> tuple[TenantCounts, ...]:
    """The `SHOWN` tenants of most examples, largest first, equal ones by name; then the others, if there are any."""
    sums: dict[str, TenantTally] = {}
    others = TenantTally()
    for each in tallies:
        for name, line in each.tenants.items():
            sums.setdefault(name, TenantTally()).add(line)
        if each.other_tenants is not None:
            others.add(each.other_tenants)
    ranked = sorted(sums, key=lambda name: (-sums[name].predicted, name))
    for name in ranked[SHOWN:]:
        others.add(sums[name])
    full = [each.tenants for each in tallies if each.other_tenants is not None]
    shown = [
        _counts(name, sums[name], complete=all(name in lines for lines in full)) for name in ranked[:SHOWN]
    ]
    if others != TenantTally():
        shown.append(_counts(None, others, complete=not full))
    return tuple(shown)


def _counts(tenant: str | None, line: TenantTally, *, complete: bool) -> TenantCounts:
    rate = line.mistakes / line.labelled if line.labelled else None
    return TenantCounts(tenant, line.predicted, line.labelled, line.mistakes, rate, line.updates, complete)
