"""Judged predictions by tenant, for life, as gauges by partition."""

from collections.abc import Sequence

from mistakebound.core.messages.tenants import TenantCounts
from mistakebound.worker.metrics.registry import Registry

OTHER = "other"
_BY_TENANT = {
    "labelled": "Predictions for a tenant judged by their label, over the life of the partition: of its 20 largest "
    "tenants, and of all others together.",
    "mistakes": "Predictions for a tenant that differed from their label, over the life of the partition: likewise.",
}


class TenantGauges:
    """The largest tenants of a partition have series of their own; `other` is the rest, and a tenant of that name."""

    def __init__(self, add: Registry) -> None:
        self._gauges = {
            name: add.gauge("tenant_" + name, text, partition=(), tenant=())
            for name, text in _BY_TENANT.items()
        }
        self._shown: dict[str, set[str]] = {}
        """By partition."""

    def export(self, partition: str, tenants: Sequence[TenantCounts]) -> None:
        """Show these, and no longer those that are not among them."""
        if not tenants and partition not in self._shown:
            return
        shown = {OTHER if one.tenant is None else one.tenant for one in tenants}
        for name, gauge in self._gauges.items():
            sums = dict.fromkeys(shown, 0)
            for one in tenants:
                sums[OTHER if one.tenant is None else one.tenant] += getattr(one, name)
            for gone in self._shown.get(partition, set()) - shown:
                gauge.remove(partition, gone)
            for label, value in sums.items():
                gauge.labels(partition, label).set(value)
        self._shown[partition] = shown

    def remove(self, partition: str) -> None:
        """The partition is another worker's."""
        self.export(partition, ())
        self._shown.pop(partition, None)
