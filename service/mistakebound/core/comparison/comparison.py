"""Two streams of predictions on the same ids: which is better, by how much, on what evidence, and where they differ.

A pair is an id that both predicted and whose label both were told. Pairs come in the order in which the stream time of the
later of the two labels has it, then in the first one's own. An id that comes again once it was forgotten is a pair only
the first time: whether the second time on one side is that of the other, nobody knows.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import msgspec

from mistakebound.core.comparison import evidence
from mistakebound.core.comparison.judged import Judged
from mistakebound.core.messages.costs import Costs
from mistakebound.core.messages.labels import spelled
from mistakebound.settings import LabelValue

NEWEST = 10
"""Ids shown on which they differ."""
MOST_KINDS = 20

Which = Literal["first", "second"]


class NotComparable(ValueError):
    """The two streams have no pairs, or contradict each other; the text says where and what to do."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two streams."""

    name: str
    """As it was given: a prefix, or a file."""
    learner: str | None
    """Of its newest epoch; None where that is not known."""
    judged: int
    """Ids predicted and labelled."""
    alone: int
    """Of them, those that the other side did not judge: not there, not labelled yet, or given up."""
    again: int
    """Judged predictions of ids that had been judged before; left out."""
    mistakes: int
    """On the pairs."""
    mistake_rate: float
    cost: float | None
    """Of these mistakes; null where `labels.costs` is not set."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A bet against "equally good": 2^n b! c!/(n + 1)!, n = b + c, which a fair stream ever brings to 20 with a
    probability of at most 1/20."""

    only_first_right: int
    """b: pairs on which the first was right and the second wrong."""
    only_second_right: int
    """c: the reverse."""
    fraction: str
    """Exact; with factorials where its digits are many."""
    decimal: float


@dataclass(frozen=True, slots=True)
class Since:
    """The first pair at which the evidence came to 20."""

    pair: int
    """Its number among all pairs; the first is 1."""
    id: str
    at: int
    """Stream time in ms at which its label was applied on the later side."""
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Difference:
    """A pair on which one side was right and the other wrong."""

    id: str
    at: int
    label: LabelValue
    first: LabelValue | None
    """What the first side predicted; null where it knew no class."""
    second: LabelValue | None


@dataclass(frozen=True, slots=True)
class DifferenceKind:
    """How often one side was right and the other wrong with the same label and the same predictions."""

    label: str
    """Classes as tables spell them; none is null."""
    first: str | None
    second: str | None
    count: int
    newest_id: str


@dataclass(frozen=True, slots=True)
class Promotion:
    """How the better side takes the other's place."""

    changes: Mapping[str, Any]
    """Settings of the other side's epoch that become those of the better one: their new values by key."""
    commands: tuple[str, ...]
    """What to type; empty where neither side is a log's."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that `compare` says: equal streams give equal bytes."""

    first: Side
    second: Side
    pairs: int
    both_right: int
    both_wrong: int
    better: Which | None
    """The one of fewer mistakes on the pairs; null where both made as many."""
    fewer_mistakes: int
    """By how many."""
    evidence: Evidence
    since: Since | None
    """Null: it never came to 20."""
    cheaper: Which | None
    """The one whose mistakes cost less; null where they cost the same, or nothing is said of costs."""
    kinds: tuple[DifferenceKind, ...]
    """On what they differ most: most frequent first."""
    newest: tuple[Difference, ...]
    """Ids on which they differ, newest first."""
    promotion: Promotion | None = None
    """Null where neither is better, or settings are not known."""

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


class _Pair(NamedTuple):
    """Sorted by `at`, then by `place`."""

    at: int
    place: int
    id: str
    label: LabelValue
    first: LabelValue | None
    second: LabelValue | None


class _Once(NamedTuple):
    """What one side judged, each id once."""

    of: dict[str, tuple[int, Judged]]
    """Its place among all, and it."""
    again: int


def compare(
    names: tuple[str, str],
    learners: tuple[str | None, str | None],
    first: Iterable[Judged],
    second: Iterable[Judged],
    costs: Costs | None = None,
) -> Comparison:
    """Pair both, and bet; add up what their mistakes cost. Raises NotComparable."""
    one, two = _once(first), _once(second)
    for name, side in zip(names, (one, two), strict=True):
        if not side.of:
            raise NotComparable(
                f"{name or 'the empty prefix'} holds no prediction that a label has judged; wait for labels, or give "
                "another prefix or file"
            )
    pairs = _pairs(names, one, two)
    bet, kinds = evidence.Bet(), Counter[tuple[str, str | None, str | None]]()
    both_right = both_wrong = 0
    since: Since | None = None
    differing: dict[tuple[str, str | None, str | None], str] = {}
    newest: list[Difference] = []
    for number, pair in enumerate(pairs, start=1):
        right, other = pair.first == pair.label, pair.second == pair.label
        if right is other:
            both_right += right
            both_wrong += not right
            continue
        bet.take(first=right)
        if since is None and bet.reached is not None:
            since = Since(number, pair.id, pair.at, _evidence(*bet.reached))
        kind = spelled(pair.label), _spelled(pair.first), _spelled(pair.second)
        kinds[kind] += 1
        differing[kind] = pair.id
        newest.append(Difference(pair.id, pair.at, pair.label, pair.first, pair.second))
    mistakes = both_wrong + bet.second, both_wrong + bet.first
    better: Which | None = None
    if bet.first != bet.second:
        better = "first" if bet.first > bet.second else "second"
    sides = [
        Side(
            name, learner, len(side.of), len(side.of) - len(pairs), side.again, wrong, wrong / len(pairs), cost
        )
        for name, learner, side, wrong, cost in zip(
            names, learners, (one, two), mistakes, _costs(pairs, costs), strict=True
        )
    ]  # fmt: skip
    cheaper: Which | None = None
    if costs is not None and sides[0].cost != sides[1].cost:
        cheaper = "first" if (sides[0].cost or 0.0) < (sides[1].cost or 0.0) else "second"
    return Comparison(
        first=sides[0],
        second=sides[1],
        pairs=len(pairs),
        both_right=both_right,
        both_wrong=both_wrong,
        better=better,
        fewer_mistakes=abs(bet.first - bet.second),
        evidence=_evidence(bet.first, bet.second),
        since=since,
        cheaper=cheaper,
        kinds=tuple(
            DifferenceKind(*kind, count, differing[kind])
            for kind, count in sorted(kinds.items(), key=lambda item: (-item[1], str(item[0])))[:MOST_KINDS]
        ),
        newest=tuple(reversed(newest[-NEWEST:])),
    )


def _once(side: Iterable[Judged]) -> _Once:
    found: dict[str, tuple[int, Judged]] = {}
    again = 0
    for place, one in enumerate(side):
        if one.id in found:
            again += 1
        else:
            found[one.id] = place, one
    return _Once(found, again)


def _pairs(names: tuple[str, str], one: _Once, two: _Once) -> list[_Pair]:
    pairs = []
    for record_id, (place, mine) in one.of.items():
        found = two.of.get(record_id)
        if found is None:
            continue
        theirs = found[1]
        if mine.label != theirs.label or type(mine.label) is not type(theirs.label):
            raise NotComparable(
                f"id {record_id!r} has the label {spelled(mine.label)} in {names[0]!r} and {spelled(theirs.label)} in "
                f"{names[1]!r}: they did not judge the same stream; compare what read the same labels"
            )
        at = max(mine.at, theirs.at)
        pairs.append(_Pair(at, place, record_id, mine.label, mine.prediction, theirs.prediction))
    if not pairs:
        raise NotComparable(
            f"{names[0]!r} and {names[1]!r} have no labelled id in common ({len(one.of)} and {len(two.of)} ids): both "
            "must have predicted the same examples; give a challenger the same input topics"
        )
    return sorted(pairs, key=lambda pair: pair[:2])


def _costs(pairs: list[_Pair], costs: Costs | None) -> tuple[float | None, float | None]:
    """What the mistakes of both cost, each exact but for one rounding."""
    if costs is None:
        return None, None
    made: tuple[Counter[tuple[str, str | None]], ...] = (Counter(), Counter())
    for pair in pairs:
        actual = spelled(pair.label)
        for counted, predicted in zip(made, (pair.first, pair.second), strict=True):
            counted[actual, _spelled(predicted)] += 1
    first, second = (costs.total((*one, count) for one, count in counted.items()) for counted in made)
    return first, second


def _evidence(first: int, second: int) -> Evidence:
    return Evidence(first, second, evidence.as_text(first, second), evidence.as_number(first, second))


def _spelled(label: LabelValue | None) -> str | None:
    return None if label is None else spelled(label)
