"""What `replay` was asked to do with labelled data; none of it applies to a recording."""

from collections.abc import Iterator
from typing import NamedTuple


class Wanted(NamedTuple):
    """The options of labelled data."""

    delay: int = 0
    epochs: int = 1
    shuffle: bool = False
    seed: int | None = None
    add_a_feature: bool = False

    def given(self) -> Iterator[str]:
        """The options that differ from their default, as they are typed."""
        for name, default in self._field_defaults.items():
            if getattr(self, name) != default:
                yield "--" + name.replace("_", "-")

    @property
    def order(self) -> int | None:
        """The seed of the shuffles; None for none."""
        return (self.seed or 0) if self.shuffle else None

    @property
    def passes(self) -> bool:
        """Whether the report lists the passes."""
        return self.epochs > 1 or self.shuffle
