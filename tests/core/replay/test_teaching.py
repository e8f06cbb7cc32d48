"""Lecture 6's protocols: their figures, and that they find what they promise, on every small conjunction."""

from itertools import islice, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mistakebound.core.replay.teaching import (
    BadConcept,
    Conjunction,
    Shown,
    by_queries,
    from_nature,
    from_teacher,
    labelled,
    lesson_plan,
    parsed,
    random_examples,
)

LECTURE = parsed("x2 and x3 and x4 and x5 and x100", 100)
EIGHT = (
    ({*range(1, 101)}, True),
    ({1, 2, 3}, False),
    ({1, 2, 3, 4, 5, 99, 100}, True),
    ({1, 3, 4, 5, 99, 100}, False),
    ({1, 2, 3, 4, 5, 100}, True),
    ({1, 3, 99, 100}, False),
    ({*range(1, 99), 100}, True),
    ({2, 4, 99, 100}, False),
)
"""The lecture's examples, by their variables that are 1 (those it does not print as 0 or 1 are 0 or 1 at will)."""


def every_conjunction(variables: int) -> list[Conjunction]:
    """Each variable in, negated or out: 3^n."""
    return [
        Conjunction(
            frozenset(sign * number for number, sign in enumerate(signs, 1) if sign),
            variables,
        )
        for signs in product((-1, 0, 1), repeat=variables)
    ]


def every_example(variables: int) -> list[tuple[bool, ...]]:
    return list(product((False, True), repeat=variables))


# --- I ----------------------------------------------------------------------------------------------


def test_100_queries_find_the_lectures_conjunction() -> None:
    """The first asks whether x100 is in: all ones but x100, and the answer is no."""
    lesson = by_queries(LECTURE.holds, 100)

    assert len(lesson.shown) == 100
    assert lesson.shown[0] == Shown((True,) * 99 + (False,), False)
    assert lesson.shown[1] == Shown((True,) * 98 + (False, True), True)
    assert lesson.hypothesis == LECTURE
    assert lesson.proved


@pytest.mark.parametrize("concept", every_conjunction(4), ids=str)
def test_n_queries_find_any_conjunction_from_any_positive_example(concept: Conjunction) -> None:
    """Whichever of its variables are negated."""
    for example in every_example(4):
        if concept.holds(example):
            lesson = by_queries(concept.holds, 4, example)
            assert (len(lesson.shown), lesson.hypothesis) == (4, concept)


# --- II ---------------------------------------------------------------------------------------------


def test_six_examples_teach_the_lectures_conjunction() -> None:
    """k + 1: its variables alone, then each of them missing."""
    lesson = from_teacher(lesson_plan(LECTURE, monotone=True), 100, monotone=True)

    assert len(lesson.shown) == 6
    assert lesson.shown[0].example == tuple(number in {2, 3, 4, 5, 100} for number in range(1, 101))
    assert [one.positive for one in lesson.shown] == [True] + 5 * [False]
    assert lesson.hypothesis == LECTURE
    assert lesson.proved


def test_seven_examples_teach_it_where_it_may_be_general() -> None:
    """k + 2: a second positive example says which variables do not matter."""
    concept = parsed("x2 and not x3 and x4 and not x5 and x100", 100)
    lesson = from_teacher(lesson_plan(concept, monotone=False), 100, monotone=False)

    assert [one.positive for one in lesson.shown] == [True, True] + 5 * [False]
    assert lesson.hypothesis == concept
    assert lesson.proved


@pytest.mark.parametrize("concept", every_conjunction(3), ids=str)
def test_no_other_conjunction_agrees_with_what_a_teacher_shows(concept: Conjunction) -> None:
    """Among all 27 over three variables; among the monotone ones, for those, by one example less."""
    for monotone in {False, concept.monotone}:
        plan = list(lesson_plan(concept, monotone=monotone))
        rivals = [one for one in every_conjunction(3) if one.monotone or not monotone]
        agreeing = [one for one in rivals if all(one.holds(x) is label for x, label in plan)]
        k = len(concept.literals)

        assert agreeing == [concept]
        assert len(plan) == (k + 1 if monotone or k == 3 else k + 2)
        assert all(concept.holds(x) is label for x, label in plan)
        lesson = from_teacher(plan, 3, monotone=monotone)
        assert (lesson.hypothesis, lesson.proved) == (concept, True)


def test_less_than_the_teachers_examples_prove_nothing() -> None:
    """Without the last one, its variable may be missing."""
    plan = list(lesson_plan(LECTURE, monotone=True))[:-1]

    assert not from_teacher(plan, 100, monotone=True).proved


# --- III --------------------------------------------------------------------------------------------


def test_the_lectures_eight_examples_leave_one_variable_too_many() -> None:
    """Mistakes at the third and fifth; x1 was 1 whenever the label was."""
    shown = [Shown(tuple(n in ones for n in range(1, 101)), label) for ones, label in EIGHT]
    lesson = from_nature(shown, 100, monotone=True)

    assert str(lesson.hypothesis) == "x1 and x2 and x3 and x4 and x5 and x100"
    assert lesson.mistakes == 2
    assert not lesson.proved


@given(st.integers(0, 2**32), st.sampled_from(every_conjunction(5)))
def test_elimination_keeps_every_literal_of_the_concept(seed: int, concept: Conjunction) -> None:
    """It strikes out only what a positive example denies; at most n + 1 mistakes."""
    shown = labelled(concept, islice(random_examples(5, seed), 40))
    lesson = from_nature(shown, 5, monotone=False)

    assert concept.literals <= lesson.hypothesis.literals
    assert lesson.mistakes <= 6


def test_nature_stops_where_the_bystander_sees_the_concept() -> None:
    """The same seed gives the same examples."""
    concept = parsed("x1 and not x3", 8)
    one, again = (
        from_nature(labelled(concept, random_examples(8, 7)), 8, monotone=False, target=concept)
        for _ in range(2)
    )

    assert one == again
    assert one.hypothesis == concept


def test_before_a_positive_example_the_hypothesis_is_all_literals() -> None:
    """Which no example satisfies where they may be negated."""
    lesson = from_nature([Shown((True, False), False)], 2, monotone=False)

    assert lesson.hypothesis.literals == {1, 2, -1, -2}
    assert lesson.mistakes == 0


# --- the text ---------------------------------------------------------------------------------------


def test_a_conjunction_reads_as_it_is_written() -> None:
    """`true` is the empty one."""
    assert str(parsed(" x3 and  not x10 and x1 ", 10)) == "x1 and x3 and not x10"
    assert parsed("true", 3).holds((False,) * 3)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("x2 or x3", "not a literal"),
        ("", "not a literal"),
        ("x2 and", "not a literal"),
        ("not not x2", "not a literal"),
        ("y2", "not a literal"),
        ("x0", "not one of the variables"),
        ("x6", "not one of the variables x1 to x5"),
        ("x2 and not x2", "no example is positive"),
    ],
)
def test_what_is_no_conjunction_is_refused(text: str, wrong: str) -> None:
    """With what is wrong."""
    with pytest.raises(BadConcept, match=wrong):
        parsed(text, 5)
