"""The three protocols of lecture 6 by which a hidden conjunction over n Boolean variables can be learned.

I. The learner asks for labels of examples of its choice: n queries, exactly. A monotone conjunction is true of
   all ones; for a general one a positive example must be known.
II. A teacher who knows it gives the examples: k + 1 for k variables, k + 2 for k literals of either sign.
III. Nature gives random ones; the learner eliminates what a positive example denies. Never surely exact.

Variables are numbered from 1, examples are rows of n truth values, literals are +i or -i.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mistakebound.core.learners.elimination import Elimination
from mistakebound.settings import LearnerSettings

Example = tuple[bool, ...]


class BadConcept(ValueError):
    """The text is not a conjunction over these variables; the message says why."""


class Shown(NamedTuple):
    """An example and its label."""

    example: Example
    positive: bool


@dataclass(frozen=True, slots=True)
class Conjunction:
    """True where all of `literals` are; without literals, true of everything."""

    literals: frozenset[int]
    variables: int

    def holds(self, example: Example) -> bool:
        """The label of n truth values."""
        return all(example[abs(one) - 1] is (one > 0) for one in self.literals)

    @property
    def monotone(self) -> bool:
        """Whether nothing is negated."""
        return all(one > 0 for one in self.literals)

    def __str__(self) -> str:
        words = [f"x{one}" if one > 0 else f"not x{-one}" for one in sorted(self.literals, key=abs)]
        return " and ".join(words) or "true"


def parsed(text: str, variables: int) -> Conjunction:
    """`x2 and x3 and not x5`, or `true`. Raises BadConcept."""
    literals: set[int] = set()
    for part in () if text.strip() == "true" else text.split(" and "):
        *negation, name = part.split() or ("",)
        if negation not in ([], ["not"]) or name[:1] != "x" or not name[1:].isdecimal():
            raise BadConcept(f"{part.strip()!r} is not a literal: write x2 and x3 and not x5")
        number = int(name[1:])
        if not 1 <= number <= variables:
            raise BadConcept(f"{name} is not one of the variables x1 to x{variables}")
        literals.add(-number if negation else number)
    for one in sorted(literals):
        if -one in literals:
            raise BadConcept(f"x{abs(one)} and its negation: no example is positive")
    return Conjunction(frozenset(literals), variables)


@dataclass(frozen=True, slots=True)
class Lesson:
    """What was asked or given, in order, and what came of it."""

    shown: tuple[Shown, ...]
    hypothesis: Conjunction
    proved: bool
    """Whether no other conjunction of the class agrees with what was shown."""
    mistakes: int = 0
    """Protocol III: of the learner, on the way."""


# --- I ----------------------------------------------------------------------------------------------


def by_queries(label: Callable[[Example], bool], variables: int, positive: Example | None = None) -> Lesson:
    """Ask n queries of `label`, the last variable's first. `positive` None: the concept is monotone.

    Each query changes one variable of a positive example: where the label changes, its literal is in.
    """
    known = (True,) * variables if positive is None else positive
    shown: list[Shown] = []
    literals: set[int] = set()
    for number in range(variables, 0, -1):
        query = _flipped(known, number)
        shown.append(Shown(query, label(query)))
        if not shown[-1].positive:
            literals.add(number if known[number - 1] else -number)
    return Lesson(tuple(shown), Conjunction(frozenset(literals), variables), proved=True)


# --- II ---------------------------------------------------------------------------------------------


def lesson_plan(concept: Conjunction, *, monotone: bool) -> Iterator[Shown]:
    """What a teacher shows: what is sufficient, then that each literal of it is necessary.

    Sufficient: a positive example with every other variable off; where literals may be negated, a second
    one with every other variable on, which denies the literals of the first (none, where k = n).
    """
    first = tuple(number in concept.literals for number in range(1, concept.variables + 1))
    yield Shown(first, True)
    irrelevant = [n for n in range(1, concept.variables + 1) if not {n, -n} & concept.literals]
    if not monotone and irrelevant:
        yield Shown(_flipped(first, *irrelevant), True)
    for one in sorted(concept.literals, key=abs):
        yield Shown(_flipped(first, abs(one)), False)


def from_teacher(shown: Iterable[Shown], variables: int, *, monotone: bool) -> Lesson:
    """Keep the literals true in every positive example; a negative one that denies a single literal of
    these proves it necessary."""
    seen, literals = tuple(shown), _all_literals(variables, monotone)
    for one in seen:
        if one.positive:
            literals = {literal for literal in literals if _true(literal, one.example)}
    needed: set[int] = set()
    for one in seen:
        denied = {literal for literal in literals if not _true(literal, one.example)}
        if not one.positive and len(denied) == 1:
            needed |= denied
    return Lesson(seen, Conjunction(frozenset(literals), variables), proved=needed == literals)


# --- III --------------------------------------------------------------------------------------------


def random_examples(variables: int, seed: int) -> Iterator[Example]:
    """Every variable by a fair coin, for ever."""
    generator = np.random.default_rng(seed)
    while True:
        yield tuple(bool(bit) for bit in generator.integers(0, 2, variables))


def from_nature(
    shown: Iterable[Shown], variables: int, *, monotone: bool, target: Conjunction | None = None
) -> Lesson:
    """The learner `elimination` on examples as they come: predict, see the label, strike out.

    No more are taken once the hypothesis is `target`, which only a bystander can know.
    """
    names = [f"x{number}" for number in range(1, variables + 1)]
    concepts = "monotone-conjunctions" if monotone else "conjunctions"
    learner = Elimination(LearnerSettings(concepts=concepts, variables=tuple(names)), 1)
    literals = frozenset(_all_literals(variables, monotone))
    seen: list[Shown] = []
    mistakes = 0
    for one in shown:
        x = tuple((name, 1.0) for name, bit in zip(names, one.example, strict=True) if bit)
        must, predicted = learner.decide(x, one.positive)
        mistakes += predicted is not one.positive
        seen.append(one)
        if must:
            learner.fold(0, x, one.positive, 0, predicted)
            literals = frozenset(map(_literal, learner.weights()))
        if target is not None and literals == target.literals:
            break
    return Lesson(tuple(seen), Conjunction(literals, variables), proved=False, mistakes=mistakes)


def labelled(concept: Conjunction, examples: Iterable[Example]) -> Iterator[Shown]:
    """Each example with its label."""
    return (Shown(example, concept.holds(example)) for example in examples)


# --- examples ---------------------------------------------------------------------------------------


def _flipped(example: Sequence[bool], *numbers: int) -> Example:
    flipped = list(example)
    for number in numbers:
        flipped[number - 1] = not flipped[number - 1]
    return tuple(flipped)


def _all_literals(variables: int, monotone: bool) -> set[int]:
    numbers = range(1, variables + 1)
    return set(numbers) if monotone else {*numbers, *(-number for number in numbers)}


def _true(literal: int, example: Example) -> bool:
    return example[abs(literal) - 1] is (literal > 0)


def _literal(text: str) -> int:
    return -int(text.removeprefix("not x")) if text.startswith("not ") else int(text.removeprefix("x"))
