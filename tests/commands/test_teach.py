"""`teach`: the lecture's figures from the command line."""

import json

import pytest

from tests.commands.support.command_line import ok, run

LECTURE = ("--concept", "x2 and x3 and x4 and x5 and x100", "--variables", "100")
MIXED = ("--concept", "x1 and not x3", "--variables", "4")


@pytest.mark.parametrize(("protocol", "count"), [("queries", 100), ("teacher", 6)])
def test_the_lectures_conjunction_is_found_exactly(protocol: str, count: int) -> None:
    """It takes 100 queries, or 6 examples from a teacher."""
    told = json.loads(ok("teach", protocol, *LECTURE, "--json", log=None).stdout)

    assert (told["count"], len(told["examples"])) == (count, count)
    assert told["hypothesis"] == told["concept"] == LECTURE[1]
    assert (told["exact"], told["proved"]) == (True, True)


def test_every_example_is_printed_with_its_label() -> None:
    """x1 first; then the count, the hypothesis, and what it is worth."""
    assert ok("teach", "teacher", *MIXED, log=None).stdout.splitlines() == [
        "1000  1",
        "1101  1",
        "0000  0",
        "1010  0",
        "4 examples, 2 positive",
        "h = x1 and not x3",
        "exactly: no other agrees with these",
    ]


def test_nature_teaches_alike_for_the_same_seed() -> None:
    """Another seed teaches otherwise; the result may be an approximation."""
    one, again, other = (
        ok("teach", "nature", *LECTURE, "--seed", seed, "--json", log=None).stdout for seed in ("1", "1", "2")
    )
    few = ok("teach", "nature", *LECTURE, "--examples", "3", log=None).stdout

    assert one == again != other
    assert json.loads(one)["exact"]
    assert not json.loads(one)["proved"]
    assert "an approximation of x2" in few


def test_queries_for_a_general_conjunction_need_a_positive_example() -> None:
    """With the example, n queries are enough."""
    without = run("teach", "queries", *MIXED, log=None)
    found = json.loads(ok("teach", "queries", *MIXED, "--positive", "1101", "--json", log=None).stdout)

    assert without.exit_code == 2
    assert "--positive" in without.stderr
    assert (found["count"], found["exact"]) == (4, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ("queries", *MIXED, "--positive", "0000"),
        ("queries", *MIXED, "--positive", "11"),
        ("teacher", *MIXED, "--positive", "1000"),
        ("teacher", "--concept", "x9", "--variables", "4"),
        ("chance", *MIXED),
    ],
)
def test_what_cannot_be_taught_is_refused(arguments: tuple[str, ...]) -> None:
    """Exit 2, with the option to change."""
    told = run("teach", *arguments, log=None)

    assert told.exit_code == 2
    assert told.stderr
