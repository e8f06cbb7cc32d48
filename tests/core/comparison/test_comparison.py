"""Two streams of predictions, paired by id."""

import json

import jsonschema
import pytest

from mistakebound.commands.json_schemas import schema_of
from mistakebound.core.comparison.comparison import Comparison, NotComparable, compare
from mistakebound.core.comparison.judged import (
    Judged,
    JudgedError,
    begin,
    encode,
    encode_header,
    judged_outcomes,
)
from mistakebound.core.messages import schema as messages
from mistakebound.core.messages.costs import costs_of
from mistakebound.core.messages.schema import Decision, Inputs, Outcomes, RecoveryPoint, Version
from mistakebound.core.messages.tallies import Tallies, zero
from mistakebound.core.records import Record
from mistakebound.settings import LabelSettings

NAMES, LEARNERS = ("champion", "challenger"), ("perceptron", None)


def side(predictions: str, labels: str, first: int = 0) -> list[Judged]:
    """Labels and predictions as digits, a ms apart; `first` is the number of the first id."""
    pairs = zip(predictions, labels, strict=True)
    return [
        Judged(10 + first + n, f"i{first + n}", label == "1", prediction == "1")
        for n, (prediction, label) in enumerate(pairs)
    ]


def compared(first: str, second: str, labels: str) -> Comparison:
    return compare(NAMES, LEARNERS, side(first, labels), side(second, labels))


def test_pairs_are_counted_by_who_was_right() -> None:
    """Both, neither, one or the other."""
    found = compared("1100", "1010", "1111")

    assert (found.pairs, found.both_right, found.both_wrong) == (4, 1, 1)
    assert (found.evidence.only_first_right, found.evidence.only_second_right) == (1, 1)
    assert (found.first.mistakes, found.second.mistakes) == (2, 2)
    assert (found.better, found.fewer_mistakes) == (None, 0)
    assert (found.evidence.fraction, found.evidence.decimal) == ("2/3", pytest.approx(2 / 3))


def test_the_better_one_is_told_with_since_when() -> None:
    """Eight times right where the other is wrong is not enough: 256/9 is 28, after seven it is 16."""
    found = compared("1" * 9, "0" * 8 + "1", "1" * 9)

    assert (found.better, found.fewer_mistakes) == ("first", 8)
    assert found.since is not None
    assert (found.since.pair, found.since.id, found.since.at) == (8, "i7", 17)
    assert found.since.evidence.fraction == found.evidence.fraction == "256/9"
    assert compared("1" * 7, "0" * 7, "1" * 7).since is None


def test_evidence_once_reached_is_told_even_when_it_is_lost_again() -> None:
    """It was reached at that pair, and fair streams seldom do at any."""
    found = compared("1" * 8 + "0" * 8, "0" * 8 + "1" * 8, "1" * 16)

    assert found.since is not None
    assert found.since.pair == 8
    assert found.evidence.decimal < 1
    assert found.better is None


def test_pairs_come_in_the_order_in_which_the_later_side_knew_them() -> None:
    """The second one was told the first label last."""
    labels = "1" * 8
    late = [one._replace(at=99) if one.id == "i0" else one for one in side("0" * 8, labels)]
    found = compare(NAMES, LEARNERS, side("1" * 8, labels), late)

    assert found.since is not None
    assert (found.since.id, found.since.at) == ("i0", 99)
    assert found.newest[0].id == "i0"


def test_ids_on_one_side_alone_are_counted_and_left_out() -> None:
    """A challenger that began later, and whose labels are behind."""
    found = compare(NAMES, LEARNERS, side("11111", "11111"), side("0000", "1111", first=3))

    assert (found.pairs, found.first.alone, found.second.alone) == (2, 3, 2)


def test_an_id_that_comes_again_is_a_pair_once() -> None:
    """The first time."""
    twice = [*side("11", "11"), *side("00", "11")]
    found = compare(NAMES, LEARNERS, twice, side("00", "11"))

    assert (found.pairs, found.first.judged, found.first.again) == (2, 2, 2)
    assert found.first.mistakes == 0


def test_what_they_differ_on_most_comes_first() -> None:
    """By label and both predictions, each with its newest id; and the newest ids of all."""
    found = compared("1110", "0001", "1101")

    assert [(one.label, one.first, one.second, one.count, one.newest_id) for one in found.kinds] == [
        ("true", "true", "false", 2, "i1"),
        ("false", "true", "false", 1, "i2"),
        ("true", "false", "true", 1, "i3"),
    ]
    assert [one.id for one in found.newest] == ["i3", "i2", "i1", "i0"]


def test_two_wrong_predictions_are_no_evidence_even_when_they_differ() -> None:
    """Of more classes than two."""
    one = [Judged(1, "a", "red", "blue"), Judged(2, "b", "red", None)]
    two = [Judged(1, "a", "red", "green"), Judged(2, "b", "red", "red")]
    found = compare(NAMES, LEARNERS, one, two)

    assert (found.both_wrong, found.evidence.only_second_right) == (1, 1)
    assert found.kinds[0].first is None


def test_the_cheaper_one_may_be_the_one_of_more_mistakes() -> None:
    """Missing a positive costs ten times a false alarm: three of these are cheaper than one of those."""
    costs = costs_of(LabelSettings(costs={"false_positive": 0.1, "false_negative": 1}))
    first, second, labels = "0111", "1000", "1000"
    found = compare(NAMES, LEARNERS, side("0000", labels), side("1111", labels), costs)

    assert (found.first.mistakes, found.first.cost) == (1, 1.0)
    assert (found.second.mistakes, found.second.cost) == (3, 0.3)
    assert (found.better, found.cheaper) == ("first", "second")
    alike = compare(NAMES, LEARNERS, side(first, labels), side(first, labels), costs)
    assert (alike.cheaper, alike.first.cost) == (None, alike.second.cost)
    unsaid = compare(NAMES, LEARNERS, side(first, labels), side(second, labels))
    assert (unsaid.cheaper, unsaid.first.cost) == (None, None)


def test_nothing_in_common_is_an_error() -> None:
    """It says how many ids each has."""
    with pytest.raises(NotComparable, match=r"no labelled id in common \(2 and 1 ids\)"):
        compare(NAMES, LEARNERS, side("11", "11"), side("1", "1", first=5))


def test_a_side_without_predictions_is_an_error() -> None:
    """It is named."""
    with pytest.raises(NotComparable, match="challenger holds no prediction that a label has judged"):
        compare(NAMES, LEARNERS, side("11", "11"), [])


def test_other_labels_for_one_id_are_an_error() -> None:
    """They did not judge the same stream."""
    with pytest.raises(NotComparable, match="id 'i1' has the label true in 'champion' and false in"):
        compare(NAMES, LEARNERS, side("11", "11"), side("11", "10"))


def test_true_and_1_are_two_labels() -> None:
    """As they are on the stream."""
    with pytest.raises(NotComparable, match="has the label true"):
        compare(NAMES, LEARNERS, [Judged(1, "a", True, True)], [Judged(1, "a", 1, 1)])


def test_its_json_is_as_the_schema_says() -> None:
    """With evidence and without."""
    for found in (compared("1" * 9, "0" * 9, "1" * 9), compared("1", "1", "1")):
        jsonschema.validate(json.loads(json.dumps(found.as_dict())), schema_of("compare"))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**found.as_dict(), "pairs": "many"}, schema_of("compare"))


# --- judged predictions -------------------------------------------------------------------------------


def outcomes(part: int, *decisions: Decision, at: int | None = None) -> Record:
    """A part of a step; the last one where `at` is given."""
    rest = {} if at is None else {
        "order": [1], "at": at, "inputs": Inputs(0, 0), "recovery_point": RecoveryPoint(0, 0, 0),
        "tallies": Tallies(zero(), zero()),
    }  # fmt: skip
    value = messages.encode(Outcomes(part, Version(1, [0]), list(decisions), **rest))  # type: ignore[arg-type]
    return Record("outcomes", 0, 0, 0, None, value)


APPLIED = Decision("applied", "a", 0, 0, True, False)
LATE = Decision("applied_late", "b", None, 1, True, True)
OTHERS = (Decision("parked", "c", None, 2, True, at=5), Decision("expired", "d", 3), Decision("invalid"))


def test_only_labels_that_were_applied_judge() -> None:
    """From memory or late; each at the end of its whole step."""
    records = [outcomes(0, APPLIED, *OTHERS), outcomes(1, LATE, at=7)]

    assert list(judged_outcomes(records)) == [Judged(7, "a", True, False), Judged(7, "b", True, True)]


def test_a_step_that_was_torn_and_made_again_counts_once() -> None:
    """Its first parts are passed over."""
    records = [outcomes(0, APPLIED), outcomes(0, APPLIED, at=7)]

    assert [one.id for one in judged_outcomes(records)] == ["a"]


def test_a_file_of_judged_predictions_is_read_as_it_was_written() -> None:
    """With its settings."""
    judged = [Judged(1, "é", "x", None), Judged(2, "b", True, False), Judged(3, "c", 7, 8)]
    header, found = begin([encode_header({"learner": {"kind": "winnow"}}), *map(encode, judged)])

    assert header.settings["learner"]["kind"] == "winnow"
    assert list(found) == judged


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([], "line 1: no header"),
        ([b"{}\n"], "line 1: no header"),
        ([b'{"mistakebound-judged":2,"settings":{}}\n'], "line 1: format 2 is unknown"),
        ([encode_header({}), b'{"at":1,"id":"a","label":true}\n'], "line 2: .*prediction"),
        ([encode_header({}), b"\xff\n"], "line 2: "),
    ],
)
def test_what_is_no_such_file_is_told_by_its_line(lines: list[bytes], told: str) -> None:
    """And which command writes one."""
    with pytest.raises(JudgedError, match=told) as caught:
        list(begin(lines)[1])
    assert "replay FILE --judged" in str(caught.value)
