"""How many resolved ids each epoch remembers.

A rebuild goes over decisions of older epochs, and must forget what they forgot. Under the present epoch's limit alone,
ids would come back where that is the larger one.
"""

from collections.abc import Iterable

from mistakebound.core.messages.schema import Epoch
from mistakebound.settings import LabelSettings


def limits_of(epochs: Iterable[Epoch]) -> dict[int, int]:
    """Epoch -> its `labels.remember`."""
    return {epoch.epoch: _limit(epoch) for epoch in epochs}


def _limit(epoch: Epoch) -> int:
    match epoch.settings:
        case {"labels": {"remember": int(limit)}}:
            return limit
    return LabelSettings().remember
