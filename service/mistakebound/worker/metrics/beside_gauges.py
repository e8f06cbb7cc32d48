"""Labels asked for, and probabilities, for life, as gauges by partition: exported only where there are any."""

from mistakebound.core.step.facts import PartitionTotals
from mistakebound.worker.metrics.registry import Registry

_ASKED = {
    "asked_labelled": ("labelled", "Labels that were asked for and came, over the life of the partition."),
    "asked_missing": (
        "missing",
        "Labels that were asked for and never came, over the life of the partition.",
    ),
    "asked_mistakes": ("mistakes", "Mistakes among the labels that were asked for and came."),
    "estimated_mistakes": (
        "estimated_mistakes",
        "Mistakes among all examples predicted while labels were asked for, as those asked for estimate them.",
    ),
}
"""Exported only where labels are asked for: metric -> the count's name, and what it means."""
_PROBABLE = {
    "probabilities_judged": (
        "all_judged",
        "Probabilities to which a label came, over the life of the partition.",
    ),
    "positives_expected": (
        "expected_positive",
        "Positive labels among them that the probabilities expected.",
    ),
    "positives_observed": ("all_positive", "Positive labels among them."),
    "squared_error": (
        "squared_error",
        "Sum over them of the square of the probability less 1 or 0; over their number it is the Brier score.",
    ),
}
"""Exported only where probabilities were judged."""


class BesideGauges:
    """What comes of what predictions say beside their class."""

    def __init__(self, add: Registry) -> None:
        self._asked, self._probable = (
            {
                name: add.gauge("partition_" + metric, text, partition=())
                for metric, (name, text) in each.items()
            }
            for each in (_ASKED, _PROBABLE)
        )

    def export(self, partition: str, totals: PartitionTotals) -> None:
        """Show a partition's."""
        for gauges, counts in ((self._asked, totals.asked), (self._probable, totals.reliability)):
            if counts is not None:
                for name, gauge in gauges.items():
                    gauge.labels(partition).set(getattr(counts, name))

    def remove(self, partition: str) -> None:
        """The partition is another worker's."""
        for gauge in (*self._asked.values(), *self._probable.values()):
            gauge.remove(partition)
