"""How many cases are tried: all with --long, some without."""

from typing import Any

import pytest
from hypothesis import settings

LEAST = 3
"""The first examples that Hypothesis makes are the simplest."""


def tried(examples: int, **more: Any) -> settings:
    """Try a property on so many examples with --long; without it, on a fixed share of them."""
    share = settings().max_examples / 100
    return settings(max_examples=max(LEAST, round(examples * share)), **more)


def long(*values: Any) -> list[Any]:
    """Parameters that are left out without --long."""
    return [pytest.param(value, marks=pytest.mark.long) for value in values]
