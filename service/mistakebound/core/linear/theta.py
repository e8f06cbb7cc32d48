"""Theta: the sum of y*x over the updates, and the weights that a learner derives from it.

Rows are kept per partition and folded in that partition's log order; a coordinate is the sum of its
rows in partition order; a score is the sum over the record's features in the record's order. All of
it by one float64 addition after the other (numpy's sum and dot, and Python 3.12's sum, round
differently), so two replicas at the same version hold the same bits.
"""

from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from math import copysign, isinf, isnan, sqrt
from struct import pack
from sys import float_info
from typing import Any, Literal

from mistakebound.core.journal import Journal
from mistakebound.core.linear.restarts import Apart, Restarts
from mistakebound.core.linear.window import Blocks, Window
from mistakebound.core.messages.features import Features

Tie = Literal["mistake", "positive", "negative"]

_MOST = float_info.max


def saturate(value: float) -> float:
    """The nearest finite float; opposite infinities cancel to 0. Keeps every score writable as JSON."""
    if -_MOST <= value <= _MOST:
        return value
    return 0.0 if isnan(value) else copysign(_MOST, value)


def predict(score: float, tie: Tie) -> bool:
    """The predicted class of a score: True is positive. A score of 0 is decided by `tie`."""
    return score > 0.0 or (score == 0.0 and tie == "positive")


def errs(score: float, positive: bool, tie: Tie) -> bool:
    """Whether a learner with this score must update on this label (lecture 6: y*score <= 0).

    With the ties `positive` and `negative`: exactly when the predicted class differs.
    """
    if tie == "mistake":
        return score <= 0.0 if positive else score >= 0.0
    return predict(score, tie) is not positive


def identity(theta: float) -> float:
    """The perceptron's weight with learning rate 1."""
    return theta


class Theta:
    """Rows [P, features] of sums of y*x, their coordinates, and the weights derived from these.

    Sums and weights are derived only when asked for: a fold adds many times before anybody looks.
    With a window the rows are the sums of `blocks`, which then also take steps back; with restarts, of those blocks that
    count.
    """

    def __init__(
        self,
        partitions: int,
        weight: Callable[[float], float] = identity,
        window: Window | None = None,
        restarts: Restarts | None = None,
    ) -> None:
        self.rows: list[dict[str, float]] = [{} for _ in range(partitions)]
        self.blocks: Blocks | Apart | None = None if window is None else Blocks(window, self.rows)
        if restarts is not None:
            self.blocks = Apart(restarts, self.rows)
            restarts.tell.append(self._restarted)
        self.unseen = weight(0.0)
        """The weight of a feature that no update has had."""
        self._weight = weight
        # With one partition this is the row itself: no row holds -0.0, the one value that adding to 0 would change.
        self._sums: dict[str, float] = self.rows[0] if partitions == 1 else {}
        self._weights: dict[str, float] = self._sums if weight is identity else {}
        self._derived = self._weights is not self.rows[0]
        """Whether there is anything to derive: one partition's row is its own sum, and the perceptron's own weight."""
        self._stale: dict[str, None] = {}
        """Names whose rows changed after their sums and weights were derived."""
        self._journal: Journal[tuple[int, Features, list[float | None]]] = Journal()
        """For each addition to rows without a window: partition, what was added, and the coordinates before."""

    @property
    def sums(self) -> dict[str, float]:
        """Coordinates by name."""
        if self._stale:
            self._settle()
        return self._sums

    @property
    def weights(self) -> dict[str, float]:
        """Weights by name."""
        if self._stale:
            self._settle()
        return self._weights

    def add(self, partition: int, x: Features, scale: float) -> None:
        """Add scale * x to the partition's row, for k named values; an infinite scale leaves zeros alone."""
        if self.blocks is not None:
            self._changed(self.blocks.add(partition, x, scale))
            return
        row, known = self.rows[partition], self.rows[partition].get
        if self._journal.newest is not None:
            self._journal.newest.append((partition, x, [known(name) for name, _ in x]))
        if isinf(scale):
            x, scale = tuple((name, scale * value if value else 0.0) for name, value in x), 1.0
        # What `_changed` does, in the same pass: that and fewer passes elsewhere take 0.71 of the time to fold an update.
        stale = self._stale if self._derived else None
        for name, value in x:
            row[name] = known(name, 0.0) + scale * value
            if stale is not None:
                stale[name] = None

    def leave_out(self, partition: int, oldest: int) -> None:
        """The partition's blocks before this number no longer count."""
        assert isinstance(self.blocks, Blocks)
        self._changed(self.blocks.leave_out(partition, oldest))

    def _restarted(self) -> None:
        assert isinstance(self.blocks, Apart)
        self._changed(self.blocks.restart())

    def dump(self) -> Any:
        """The rows; with a window their blocks."""
        return self.rows if self.blocks is None else self.blocks.dump()

    def load(self, rows: Iterable[Any]) -> None:
        """Become what `dump` gave. Raises ValueError, TypeError, AttributeError for anything else."""
        loaded = (
            [{str(name): float(value) for name, value in row.items()} for row in rows]
            if self.blocks is None
            else self.blocks.load(rows)
        )
        if len(loaded) != len(self.rows):
            raise ValueError(f"{len(loaded)} rows for {len(self.rows)} partitions")
        for derived in (self._sums, self._weights, self._stale):
            derived.clear()
        for row, values in zip(self.rows, loaded, strict=True):
            row.clear()
            row.update(values)
            self._changed(row)
        self.begin()

    def begin(self, undoable: bool = True) -> None:
        if self.blocks is not None:
            self.blocks.begin(undoable)
        else:
            self._journal.begin(undoable)

    def rollback(self) -> None:
        """Restore (never subtract) what was changed since `begin`; names seen only since then vanish."""
        if self.blocks is not None:
            self._changed(self.blocks.rollback())
            return
        for partition, x, before in self._journal.take_back():
            row = self.rows[partition]
            for (name, _), old in zip(x, before, strict=True):
                if old is None:
                    row.pop(name, None)
                else:
                    row[name] = old
            self._changed(name for name, _ in x)

    def _changed(self, names: Iterable[str]) -> None:
        """Rows have changed at these names."""
        if self._derived:
            for name in names:
                self._stale[name] = None

    def _settle(self) -> None:
        """Derive stale sums and weights again from the rows; a name that is in no row vanishes."""
        rows, sums, weights, weight = self.rows, self._sums, self._weights, self._weight
        for name in self._stale:
            total, known = 0.0, False
            for row in rows:
                value = row.get(name)
                if value is not None:
                    total, known = total + value, True
            if not known:
                sums.pop(name, None)
                weights.pop(name, None)
                continue
            sums[name] = total
            if weights is not sums:
                weights[name] = weight(total)
        self._stale.clear()

    def digest(self) -> str:
        return digest(self.sums)

    def dot(self, x: Features) -> float:
        """w.x over k features, in their order."""
        if self._stale:
            self._settle()
        weights, unseen, total = self._weights, self.unseen, 0.0
        for name, value in x:
            total += weights.get(name, unseen) * value
        return total

    def size(self, x: Features) -> float:
        """The sum of the sizes of the terms of w.x over k features, in their order."""
        weights, unseen, total = self.weights, self.unseen, 0.0
        for name, value in x:
            total += abs(weights.get(name, unseen) * value)
        return total


def digest(sums: Mapping[str, float]) -> str:
    """SHA-256 in hex over the names whose theta is not 0, in UTF-8 byte order: name, zero byte, float64.

    Equal versions have equal digests on any worker.
    """
    seal = sha256()
    for name, value in sorted((name.encode(), value) for name, value in sums.items() if value != 0.0):
        seal.update(name + b"\0" + pack("<d", value))
    return seal.hexdigest()


def euclidean(x: Features) -> float:
    """||x||_2 of k features, by sequential addition."""
    square = 0.0
    for _, value in x:
        square += value * value
    return sqrt(square)


def largest(x: Features) -> float:
    """||x||_inf of k features."""
    return max((abs(value) for _, value in x), default=0.0)


def active(x: Features) -> float:
    """How many of k features are not 0."""
    return float(sum(value != 0.0 for _, value in x))


def signed(positive: bool) -> float:
    """y: what an update adds x times."""
    return 1.0 if positive else -1.0
