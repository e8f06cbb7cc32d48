"""`replay` of what it cannot use: it says why and where, prints no rate of nothing, and ends with exit code 3."""

import json
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest
from typer.testing import Result

from mistakebound.core.records import Record
from mistakebound.core.replay.recording import encode, encode_header
from mistakebound.core.replay.replay import Row, as_stream
from mistakebound.settings import Settings
from tests.commands.support.command_line import ok, run


def replayed(content: str, *arguments: str, name: str = "rows.csv") -> Result:
    Path(name).write_text(content)
    return run("replay", name, *arguments, log=None)


def table(labels: Iterable[str]) -> str:
    """A CSV file: its first row is on line 2."""
    return "x,label\n" + "".join(f"{number % 5},{label}\n" for number, label in enumerate(labels))


def recorded(records: Iterable[Record]) -> str:
    Path("day.jsonl").write_bytes(encode_header(1) + b"".join(map(encode, records)))
    return "day.jsonl"


def stream(unknown: int = 0) -> list[Record]:
    """Twenty examples with their labels, the first `unknown` of which nobody declared."""
    rows = [Row(str(n), {"x": float(n % 4)}, "?" if n < unknown else n % 2 == 0) for n in range(20)]
    return list(as_stream(rows, Settings(), 1, 0))


# --- nothing was judged ---------------------------------------------------------------------------------

NOTHING = {
    "words.csv": table(["maybe", "never"] * 20),
    "other-numbers.csv": table(["7", "8"] * 20),
    "empty-labels.csv": table([""] * 20),
    "only-the-heads.csv": "x,label\n",
    "empty.jsonl": "",
    "empty.svm": "",
    "only-comments.svm": "# nothing\n",
    "no-labels-yet.jsonl": '{"features": ["a", "b"], "label": null}\n' * 3,
    "features.jsonl": '{"features": 3, "label": true}\n' * 3,
}


@pytest.mark.parametrize("name", NOTHING)
def test_a_file_of_which_nothing_is_judged_is_no_success(name: str) -> None:
    """Everything is printed all the same, then it is said that no label could be applied."""
    told = replayed(NOTHING[name], "--report", "report.json", name=name)
    report = json.loads(Path("report.json").read_text())

    assert told.exit_code == 3
    assert "no label could be applied, so nothing was judged" in told.stderr
    assert "0 of 0 labelled, rate -\n" in told.stdout
    assert "always majority  0, rate -\n" in told.stdout
    assert (report["labelled"], report["mistake_rate"]) == (0, None)
    assert report["baselines"]["majority"]["mistake_rate"] is None
    assert report["comparators"]["learner"]["mistake_rate"] is None


@pytest.mark.parametrize("content", ["x,label\n", table(["maybe", "never"] * 5)])
def test_passes_that_judge_nothing_do_not_converge(content: str) -> None:
    """No update was needed, for nothing was seen: neither converged nor not."""
    told = replayed(content, "--epochs", "5", "--report", "report.json")
    report = json.loads(Path("report.json").read_text())

    assert (report["converged"], len(report["passes"])) == (None, 1)
    assert "passes           1 (updates 0); nothing was judged\n" in told.stdout
    assert "converged" not in told.stdout


def test_the_tables_show_a_dash_for_a_rate_of_nothing() -> None:
    """Progress on stderr, and the comparison with other rules."""
    told = replayed("x,label\n", "--compare")

    assert [line.split() for line in told.stderr.splitlines()][1] == ["0", "0", "0", "-", "-", "-"]
    assert [line.split()[-5:-3] for line in told.stdout.splitlines() if "majority so far" in line] == [
        ["0", "-"]
    ]


@pytest.mark.parametrize("kept", ["examples", "labels", "neither"])
def test_a_recording_of_which_nothing_is_judged_is_no_success(kept: str) -> None:
    """Examples whose labels never came, labels of other examples, or no record at all."""
    file = recorded(record for record in stream() if record.topic == kept)
    told = run("replay", file, log=None)

    assert told.exit_code == 3
    assert "no label could be applied" in told.stderr


# --- what was left out ----------------------------------------------------------------------------------


def test_labels_drawn_by_coin_are_not_learned_with_half_a_percent_of_mistakes() -> None:
    """1 is true and 2 is nothing: that the rest is predicted well is no result."""
    random = Random(8)
    told = replayed(table(random.choice("12") for _ in range(400)), "--expect", "mistake_rate < 0.1")

    assert told.exit_code == 3
    assert "records were rejected; correct them, or allow as many with --max-invalid " in told.stderr
    assert "labels, unknown-label; the first, line " in told.stderr
    assert 'label is "2"; known: true, false; see [labels]' in told.stderr


def test_each_reason_is_told_with_its_count_and_its_first_line() -> None:
    """In the text and in the report."""
    lines = ['{"features": {"a": 1}, "label": true}', '{"features": {"a": [1]}, "label": true}', "",
             '{"features": {"a": 1}, "label": "no"}', '{"features": {"a": 1}, "label": "yes"}']  # fmt: skip
    told = replayed("\n".join(lines), "--report", "report.json", name="rows.jsonl")
    report = json.loads(Path("report.json").read_text())

    assert told.exit_code == 3
    assert "rejected         1 example, bad-features; the first, line 2: " in told.stdout
    assert 'rejected         2 labels, unknown-label; the first, line 4: label is "no"' in told.stdout
    assert [(one["reason"], one["count"], one["first"]["line"]) for one in report["rejected"]] == [
        ("bad-features", 1, 2),
        ("unknown-label", 2, 4),
    ]


def test_a_line_is_the_files_whatever_the_order_and_the_partitions() -> None:
    """Shuffled, in passes, with private features, late, in three partitions."""
    labels = ["maybe" if n == 23 else "true" for n in range(40)]
    options = ("--shuffle", "--epochs=3", "--add-a-feature", "--delay=4", "--set=log.partitions=3")
    told = replayed(table(labels), *options)

    assert "rejected         1 label, unknown-label; the first, line 25: " in told.stdout


def test_rows_without_a_label_change_no_rate() -> None:
    """They are no examples that were predicted well: the counts are those of the labelled rows alone."""
    labelled = [
        f'{{"features": {{"x": {n % 5}}}, "label": {n % 3}}}'.replace(": 2}", ": -1}") for n in range(60)
    ]
    unlabelled = [line.replace('"label": -1', '"label": null') for line in labelled]
    kept = [line for line in labelled if '"label": -1' not in line]
    reports = [
        json.loads(replayed("\n".join(lines), "--json", "--max-invalid=99", name="rows.jsonl").stdout)
        for lines in (unlabelled, kept)
    ]

    some, all_of_them = ((one["labelled"], one["mistakes"], one["mistake_rate"]) for one in reports)
    assert some == all_of_them
    assert some[0] == 40
    assert [(one["reason"], one["count"]) for one in reports[0]["rejected"]] == [("missing-label", 20)]


def test_private_features_do_not_hide_what_cannot_be_read() -> None:
    """A number that no float can hold is the row's fault, not a bug."""
    lines = ['{"features": {"a": 1e999}, "label": true}', '{"features": {"a": 1}, "label": true}']
    told = replayed("\n".join(lines), "--add-a-feature", name="rows.jsonl")

    assert told.exit_code == 3
    assert "rejected         1 example, number-out-of-range; the first, line 1: " in told.stdout


def test_rows_that_share_an_id_are_not_dropped_without_a_word() -> None:
    """A customer's number is no row's id."""
    told = replayed("id,x,label\n7,1,true\n8,1,true\n7,0,false\n")

    assert told.exit_code == 3
    assert "1 example, duplicate-id; the first, line 4: the id '7' came before" in told.stdout


@pytest.mark.parametrize(("most", "code"), [("4", 3), ("5", 0), ("6", 0)])
def test_as_many_rejected_records_are_allowed_as_was_said(most: str, code: int) -> None:
    """In labelled data; they are told all the same."""
    told = replayed(table(["?"] * 5 + ["true"] * 5), "--max-invalid", most)

    assert told.exit_code == code
    assert "rejected         5 labels, unknown-label; the first, line 2: " in told.stdout


@pytest.mark.parametrize(("options", "code"), [((), 0), (("--max-invalid=5",), 0), (("--max-invalid=4",), 3)])
def test_a_recording_may_have_as_many_as_the_stream_had(options: tuple[str, ...], code: int) -> None:
    """A live stream has dead letters; they are told by partition and offset, and limited where that is asked for."""
    told = run("replay", recorded(stream(5)), *options, log=None)

    assert told.exit_code == code
    assert "rejected         5 labels, unknown-label; the first, labels-0 offset 0: " in told.stdout


def test_no_limit_makes_a_result_of_nothing() -> None:
    """Allowing every record does not judge one."""
    assert replayed(table(["?"] * 5), "--max-invalid", "100").exit_code == 3


@pytest.mark.parametrize(
    ("lines", "options", "told"),
    [
        (["3"] * 4, ("--max-invalid=9",), "no example could be read, so nothing was fitted"),
        ([], (), "no example could be read, so nothing was fitted: there is no example"),
        (
            ['{"a": 1}', '{"a": 2}', "3"],
            (),
            "1 record was rejected; correct it, or allow as many with --max-invalid 1",
        ),
    ],
)
def test_no_scale_is_fitted_on_what_cannot_be_read(
    lines: list[str], options: tuple[str, ...], told: str
) -> None:
    """What could be fitted is printed; the exit code says that it is not of all."""
    rows = "".join(f'{{"features": {text}, "label": true}}\n' for text in lines)
    found = replayed(rows, "--fit-scale", *options, name="rows.jsonl")

    assert found.exit_code == 3
    assert found.stdout.startswith("[features.scale]\n")
    assert told in found.stderr


# --- expectations ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("operator", ["<", "<=", "==", "!=", ">=", ">"])
@pytest.mark.parametrize("name", ["mistake_rate", "baselines.majority.mistake_rate"])
def test_no_expectation_of_a_rate_of_nothing_is_met(name: str, operator: str) -> None:
    """Whichever way it compares."""
    told = replayed("x,label\n", "--expect", f"{name} {operator} 0.2")

    assert told.exit_code == 3
    assert f"expected {name} {operator} 0.2, found null: nothing was judged" in told.stderr


@pytest.mark.parametrize("name", ["margin_upper_bound", "comparators.best_separator.margin_at_most"])
def test_no_expectation_of_what_is_not_known_is_met(name: str) -> None:
    """Null, or below something that is null: a failed check, not a wrong command."""
    told = replayed("x,label\n", "--report", "report.json", "--expect", f"{name} >= 0")

    assert told.exit_code == 3
    assert f"expected {name} >= 0, found null: nothing was judged" in told.stderr


def test_an_expectation_of_other_rules_says_how_to_have_them_compared() -> None:
    """They are compared only where that is asked for."""
    told = replayed(table(["true"] * 5), "--expect", "comparators.majority.mistakes == 1")

    assert told.exit_code == 2
    assert "add --compare" in told.stderr


def test_a_name_that_no_report_has_is_still_a_wrong_command() -> None:
    """As before: exit 2, not a failed check."""
    told = replayed(table(["true"] * 5), "--expect", "mistakes_rate < 0.2")

    assert told.exit_code == 2
    assert "the report has no number 'mistakes_rate'; did you mean mistake_rate?" in told.stderr


def test_the_end_of_a_name_is_enough_to_be_told_the_whole() -> None:
    """Measures are where the report has them, not where one looks first."""
    told = replayed(table(["true"] * 5), "--expect", "confusion.model.kappa_m > 0.2")

    assert told.exit_code == 2
    assert "did you mean confusion.model.measures.kappa_m?" in told.stderr


def test_all_that_failed_is_told_at_once() -> None:
    """What was rejected, and every expectation."""
    told = replayed(table(["?", "true"] * 5), "--expect", "mistakes <= 0", "--expect", "labelled == 10")

    assert told.exit_code == 3
    assert "5 records were rejected" in told.stderr
    assert "expected labelled == 10, found 5" in told.stderr


# --- worse than always the majority ---------------------------------------------------------------------


def test_a_learner_that_is_worse_than_always_the_majority_is_told_so() -> None:
    """The perceptron after one label: a mistake whenever the class changes, and after."""
    labels = ["true" if n % 3 == 1 else "false" for n in range(150)]
    told = ok_file(
        table(labels).replace("x", "nothing"), "--set=learner.kind=perceptron", "--report=report.json"
    )
    report = json.loads(Path("report.json").read_text())

    assert report["mistakes"] > report["baselines"]["majority"]["mistakes"]
    assert report["worse_than_majority"] is True
    assert ": the learner is worse than always the majority\n" in told.stdout


def test_of_a_few_labels_nobody_is_called_worse() -> None:
    """The first mistakes have to be made."""
    labels = ["true" if n % 3 == 1 else "false" for n in range(99)]
    told = ok_file(table(labels).replace("x", "nothing"), "--set=learner.kind=perceptron", "--json")

    assert "worse_than_majority" not in json.loads(told.stdout)


def ok_file(content: str, *arguments: str) -> Result:
    Path("rows.csv").write_text(content)
    return ok("replay", "rows.csv", *arguments, log=None)
