"""Labels: how a class is spelled, and what a label record may carry of its example."""

import json
from functools import lru_cache
from typing import NamedTuple

from mistakebound.settings import LabelValue


@lru_cache(maxsize=4_096, typed=True)
def spelled(label: bool | int | str) -> str:
    """A class as metrics and tables spell it: `true`, `false`, `1`, `spam`."""
    return label if isinstance(label, str) else json.dumps(label)


class Carried(NamedTuple):
    """What a label record itself says of its example, for when the ledger no longer knows the example."""

    features: bytes
    """JSON text."""
    predicted: LabelValue | None
    """The published prediction, in the declared form; None where no class was known (open classes)."""
