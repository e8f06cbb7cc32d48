"""`teach`: lecture 6's three protocols for a hidden conjunction, printing every example asked or given."""

from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Option

from mistakebound.commands.errors import CommandError
from mistakebound.commands.options import Json

if TYPE_CHECKING:
    from mistakebound.commands.json_forms import Taught
    from mistakebound.core.replay.teaching import Conjunction, Example, Lesson

Protocol = Literal["queries", "teacher", "nature"]


def teach(
    protocol: Annotated[
        Protocol, Argument(metavar="PROTOCOL", help="Who chooses the examples: I, II or III.")
    ],
    concept: Annotated[
        str, Option("--concept", metavar="TEXT", help="Such as 'x2 and x3 and not x5', or true.")
    ],
    variables: Annotated[
        int, Option("--variables", min=1, max=10_000, metavar="N", help="How many variables: x1 to xN.")
    ],
    positive: Annotated[
        str | None,
        Option(
            "--positive",
            metavar="BITS",
            help="queries: a known positive example, x1 first; allows negations.",
        ),
    ] = None,
    general: Annotated[
        bool, Option("--general", help="Do not tell the learner that nothing is negated.")
    ] = False,
    seed: Annotated[
        int, Option("--seed", min=0, metavar="N", help="nature: the seed of the random examples.")
    ] = 0,
    examples: Annotated[
        int, Option("--examples", min=0, metavar="N", help="nature: how many at most.")
    ] = 1_000,
    json: Json = False,
) -> None:
    """Learn a hidden conjunction; print the examples with their labels, and the hypothesis.

    I, queries: the learner asks N times. II, teacher: a teacher who knows it gives k + 1 examples for k variables,
    k + 2 where some may be negated. III, nature: random examples, until no literal is left to strike out, or --examples.
    """
    from itertools import islice

    from mistakebound.commands.output import print_form
    from mistakebound.core.replay import teaching

    try:
        hidden = teaching.parsed(concept, variables)
    except teaching.BadConcept as error:
        raise CommandError(f"--concept: {error}") from None
    monotone = hidden.monotone and not general and positive is None
    if protocol == "queries":
        lesson = teaching.by_queries(
            hidden.holds, variables, _parse_positive(hidden, positive, monotone=monotone)
        )
    elif positive is not None:
        raise CommandError("--positive is for queries")
    elif protocol == "teacher":
        plan = teaching.lesson_plan(hidden, monotone=monotone)
        lesson = teaching.from_teacher(plan, variables, monotone=monotone)
    else:
        shown = teaching.labelled(hidden, islice(teaching.random_examples(variables, seed), examples))
        lesson = teaching.from_nature(shown, variables, monotone=monotone, target=hidden)
    if json:
        print_form(_told(lesson, hidden, protocol))
    else:
        print(_render(lesson, hidden, protocol))


def _parse_positive(hidden: "Conjunction", positive: str | None, *, monotone: bool) -> "Example | None":
    """The positive example, without which a learner must assume that nothing is negated."""
    if positive is None:
        if monotone:
            return None
        raise CommandError(
            "a conjunction with negations can be found by queries only from a positive example: "
            f"add --positive BITS, {hidden.variables} digits"
        )
    if len(positive) != hidden.variables or set(positive) - {"0", "1"}:
        raise CommandError(f"--positive: {positive!r} is not {hidden.variables} digits of 0 and 1")
    example = tuple(bit == "1" for bit in positive)
    if not hidden.holds(example):
        raise CommandError(f"--positive: {hidden} is false of {positive}")
    return example


def _render_bits(example: "Example") -> str:
    """x1 first."""
    return "".join("1" if bit else "0" for bit in example)


def _told(lesson: "Lesson", hidden: "Conjunction", protocol: Protocol) -> "Taught":
    from mistakebound.commands.json_forms import ShownExample, Taught

    return Taught(
        protocol=protocol,
        concept=str(hidden),
        variables=hidden.variables,
        examples=[ShownExample(_render_bits(one.example), one.positive) for one in lesson.shown],
        count=len(lesson.shown),
        positive=sum(one.positive for one in lesson.shown),
        mistakes=lesson.mistakes,
        hypothesis=str(lesson.hypothesis),
        exact=lesson.hypothesis == hidden,
        proved=lesson.proved,
    )


def _render(lesson: "Lesson", hidden: "Conjunction", protocol: Protocol) -> str:
    lines = [f"{_render_bits(one.example)}  {int(one.positive)}" for one in lesson.shown]
    count_line = f"{len(lesson.shown)} {'queries' if protocol == 'queries' else 'examples'}"
    count_line += f", {sum(one.positive for one in lesson.shown)} positive"
    if protocol == "nature":
        count_line += f", {lesson.mistakes} mistakes on the way"
    if lesson.proved:
        end = "exactly: no other agrees with these"
    elif lesson.hypothesis == hidden:
        end = "exactly, though the learner cannot know it"
    else:
        end = f"an approximation of {hidden}"
    return "\n".join([*lines, count_line, f"h = {lesson.hypothesis}", end])
