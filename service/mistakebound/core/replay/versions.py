"""Models of one epoch at the versions with which recorded partition steps began.

A fleet holds one model for each worker, at different versions. Which worker did what is not recorded, and need not be: of
the models kept here the newest one serves that has folded nothing which the version asked for has not. So about as many
are kept as there were workers.
"""

from collections.abc import Callable
from operator import le

from mistakebound.core.messages.schema import Update, Version
from mistakebound.core.model.model import Model


class Versions:
    """The updates of each partition, and the models that follow them."""

    def __init__(self, fresh: Callable[[], Model], partitions: int) -> None:
        """`fresh` makes a model that has folded none of the epoch's updates."""
        self.updates: list[list[Update]] = [[] for _ in range(partitions)]
        self._fresh = fresh
        self._models: list[Model] = []

    def at(self, version: Version) -> Model:
        """A model of this version, to work with: it may go on from there. The updates up to it must be there."""
        model = self._nearest(version.updates)
        model.begin(undoable=False)
        for partition, n in enumerate(version.updates):
            for update in self.updates[partition][model.updates[partition] : n]:
                model.follow(partition, update)
        if version.clock is not None:
            model.wind(version.clock)
        return model

    def _nearest(self, updates: list[int]) -> Model:
        fitting = [model for model in self._models if all(map(le, model.updates, updates))]
        if not fitting:
            self._models.append(self._fresh())
            return self._models[-1]
        return max(fitting, key=lambda model: sum(model.updates))
