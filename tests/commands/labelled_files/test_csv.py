"""CSV as people have it: read as it is written, or refused with the line and what to do."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands.support.command_line import ok, run

PERCEPTRON = ("--set", "learner.kind=perceptron")


def write(text: str | bytes, name: str = "rows.csv") -> None:
    Path(name).write_bytes(text.encode() if isinstance(text, str) else text)


def report_of(*arguments: str, name: str = "rows.csv") -> dict[str, Any]:
    """What a replay of the file reports, whatever it rejects."""
    told = ok("replay", name, "--quiet", "--json", "--max-invalid=9", *PERCEPTRON, *arguments, log=None)
    report: dict[str, Any] = json.loads(told.stdout)
    return report


def features_of(*arguments: str, name: str = "rows.csv") -> list[str]:
    """The names of the numbers that a fitted scale knows: the columns that vary."""
    lines = ok("replay", name, "--fit-scale", *arguments, log=None).stdout.splitlines()
    return [line.split('"')[1] for line in lines[1:]]


def refusal(*arguments: str, name: str = "rows.csv") -> str:
    """The message of a replay that ends with exit code 2."""
    told = run("replay", name, *arguments, log=None)
    assert (told.exit_code, told.stdout) == (2, ""), told.output
    return told.stderr


# --- what is ambiguous ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "label", "id"])
def test_a_column_named_twice_is_refused(name: str) -> None:
    """Neither is silently the one that counts; ignored, it does no harm."""
    write(f"id,a,label,{name}\nx,1,1,2\ny,2,0,1\n")
    assert f"line 1: the header names `{name}` twice, in columns " in refusal()
    if name == "a":
        assert report_of("--ignore", "a")["labelled"] == 2


@pytest.mark.parametrize("cell", ["nan", "NaN", "Nan", "inf", "-Infinity", "INF", " +nan "])
@pytest.mark.parametrize("missing", ["reject", "skip"])
def test_what_is_no_number_and_no_category_is_refused(cell: str, missing: str) -> None:
    """It used to become null, and to vanish where nulls are skipped."""
    write(f"a,b,label\n1,2,1\n{cell},2,0\n")
    told = refusal("--set", f"features.missing={missing}")
    assert f"line 3: `a` is {cell!r}" in told
    assert "leave the cell empty" in told


@pytest.mark.parametrize("missing", ["reject", "skip"])
@pytest.mark.parametrize("cell", ["1e400", "-1e400"])
def test_a_number_beyond_float64_is_an_invalid_example_as_on_the_stream(missing: str, cell: str) -> None:
    """It is never a missing one."""
    write(f"a,b,label\n1,2,1\n{cell},2,0\n")
    told = run("replay", "rows.csv", "--json", "-q", "--set", f"features.missing={missing}", log=None)
    report = json.loads(told.stdout)
    assert (report["labelled"], report["example_outcomes"]["invalid"]) == (1, 1)


@pytest.mark.parametrize("cell", ["1_0", "١٢", "1,5"])
def test_what_only_python_takes_for_a_number_is_a_category(cell: str) -> None:
    """JSON has no such number: `1_0` is not 10."""
    write(f'a,b,label\n"{cell}",1,1\n"{cell}",2,0\n')
    assert features_of() == ["b"]  # a number `a` would vary with the row below
    write(f'a,b,label\n"{cell}",1,1\n3,2,0\n')
    assert features_of() == ["b"]


@pytest.mark.parametrize("cell", ["1", " 1", "1 ", "+1", "1.", "01", "1e0", "1E+00", "1.0"])
def test_a_number_may_be_spelled_in_the_usual_ways(cell: str) -> None:
    """With blanks around it, too, as after `, `."""
    write(f"a,label\n{cell},1\n3,0\n")
    assert '"a" = [2.0, 1.0]' in ok("replay", "rows.csv", "--fit-scale", log=None).stdout


def test_a_decimal_comma_is_refused() -> None:
    """Between semicolons it is no category."""
    write("a;label\n1;1\n1,5;0\n")
    told = refusal("--delimiter", ";")
    assert "line 3: `a` is '1,5': a number with a decimal comma?; write it with a point" in told


def test_a_column_without_a_name_is_refused() -> None:
    """The index that a data frame wrote would be learned from: it is left out, or taken as the id, if asked for."""
    write(",a,label\n0,1,1\n1,2,0\n")
    assert "line 1: column 1 has no name" in refusal()
    assert features_of("--ignore", "") == ["a"]
    assert features_of("--id", "") == ["a"]


def test_an_empty_id_is_refused() -> None:
    """It used to be the row's number, which may be another row's id."""
    write("id,a,label\n2,1,1\n,2,0\n")
    assert "line 3: the id is empty" in refusal()
    assert report_of("--ignore", "id")["labelled"] == 2


# --- what is no CSV ---------------------------------------------------------------------------------------


def test_a_cell_may_be_long() -> None:
    """As long as a record may be; 131,072 characters used to be a traceback."""
    write("a,text,label\n1,short,1\n2," + "x" * 200_000 + ",0\n")
    assert report_of()["labelled"] == 2


def test_a_quote_that_is_never_closed_is_named_by_its_line() -> None:
    """Not by the last line of the file."""
    write('a,b,label\n1,x,1\n2,"x,0\n' + "3,x,1\n" * 100)
    assert "line 3: it is not CSV" in refusal()
    write('a,b,label\n1,x,1\n2,"x"y,0\n3,x,1\n')
    assert "line 3: it is not CSV" in refusal()


def test_a_quoted_cell_may_span_lines_and_a_row_is_named_by_the_first() -> None:
    """Whatever came before it."""
    write('a,text,label\n1,"one\ntwo",1\n\n2,x,0,9\n')
    assert "line 5: it has 4 cells, the header 3" in refusal()
    write('a,text,label\n1,"one\ntwo",1\n2,"one\ntwo",0\n')
    assert report_of()["labelled"] == 2


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_may_end_as_any_system_ends_them(end: str) -> None:
    """Spreadsheets still write all three; a line end within quotes is data."""
    write(end.join(["a,label", "1,1", '"x' + end + 'y",0', "2,1", ""]))
    assert report_of()["labelled"] == 3


def test_bytes_that_are_not_utf8_are_named_by_line() -> None:
    """And by their place in it."""
    write(b"a,label\n1,1\nM\xfcller,0\n")
    assert "line 3: it is not UTF-8 at its byte 2 (0xfc); save the file as UTF-8" in refusal()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"\x1f\x8b\x08\x00", "gzip"),
        (b"PK\x03\x04\x14", "spreadsheet"),
        ("a,label\n1,1\n".encode("utf-16"), "UTF-16"),
    ],
)
def test_a_file_that_is_no_text_is_told_by_its_kind(content: bytes, told: str) -> None:
    """With what to do."""
    write(content)
    assert told in refusal()


def test_an_empty_file_and_one_without_a_label_are_refused() -> None:
    """There is nothing to judge."""
    write("")
    assert "line 1: the file is empty" in refusal()
    write("a,b\n1,2\n")
    assert "line 1: the header has no column `label`: ['a', 'b']; rename" in refusal()


# --- options ----------------------------------------------------------------------------------------------

ROWS = "key,age,city,churned,note\nk1,1,A,yes,x\nk2,2,B,no,y\nk2,3,A,yes,z\n"


def test_columns_are_named_by_options() -> None:
    """The label's, the id's, and those to leave out: repeated, or with commas between."""
    write(ROWS)
    classes = ("--set", 'labels.positive="yes"', "--set", 'labels.negative="no"')
    one = report_of("--label", "churned", "--id", "key", "--ignore", "note", "--ignore", "city", *classes)
    same = report_of("--label", "churned", "--id", "key", "--ignore", "note,city", *classes)
    only = report_of("--label", "churned", "--id", "key", "--features", "age", *classes)

    assert one == same == only
    assert one["example_outcomes"]["duplicate"] == 1  # k2 twice
    assert report_of("--label", "churned", *classes)["labelled"] == 3
    assert features_of("--label", "churned", "--features", "age,city") == ["age"]


def test_a_name_with_a_comma_is_quoted() -> None:
    """As CSV has it."""
    write('"a,b",c,label\n1,1,1\n2,2,0\n')
    assert features_of("--ignore", '"a,b"') == ["c"]
    assert features_of("--features", '"a,b"') == ["a,b"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--label", "no"), "no column `no`"),
        (("--id", "no"), "no column `no`: ['id', 'a', 'label']; correct --id"),
        (("--features", "no"), "correct --features"),
        (("--ignore", "no"), "correct --ignore"),
        (("--features", "a,label"), "`label` is asked for as two things"),
        (("--features", "a,a"), "`a` is asked for as two things"),
        (("--id", "a", "--ignore", "a"), "`a` is asked for as two things"),
        (("--ignore", '"a'), "--ignore: '\"a' is no list of columns"),
        (("--delimiter", ",,"), "--delimiter: ',,' is no delimiter"),
        (("--delimiter", ""), "--delimiter: '' is no delimiter"),
    ],
)
def test_an_option_that_the_file_contradicts_is_refused(options: tuple[str, ...], told: str) -> None:
    """A slip never leaves a column out, or in."""
    write("id,a,label\n1,1,1\n2,2,0\n")
    assert told in refusal(*options)


@pytest.mark.parametrize(("option", "between"), [(";", ";"), ("tab", "\t"), ("\\t", "\t"), ("|", "|")])
def test_a_delimiter_can_be_given_and_is_guessed_in_the_message_only(option: str, between: str) -> None:
    """A header of one column says which delimiter it looks like."""
    write(between.join(["id", "a", "label"]) + "\n" + between.join(["x", "1", "1"]) + "\n")
    told = refusal()
    assert "looks as if its delimiter were" in told
    assert f"add --delimiter {'tab' if between == chr(9) else repr(between)}" in told
    assert report_of("--delimiter", option)["labelled"] == 1


def test_tsv_is_separated_by_tabs() -> None:
    """Its name says so."""
    write("a\tlabel\n1\t1\n2\t0\n", "rows.tsv")
    assert report_of(name="rows.tsv")["labelled"] == 2


@pytest.mark.parametrize(
    "option", [("--label", "a"), ("--id", "a"), ("--features", "a"), ("--ignore", "a"), ("--delimiter", ";")]
)
def test_columns_are_refused_where_there_are_none(option: tuple[str, str]) -> None:
    """An option without effect would be one misunderstood."""
    write("+1 1:1\n", "rows.svm")
    assert f"{option[0]}: an svmlight line begins with its label" in refusal(*option, name="rows.svm")


def test_seed_and_fit_scale_read_alike() -> None:
    """Every verb that reads labelled files takes the options."""
    write("key;age;churned\na;1;1\nb;2;0\nc;3;1\n")
    options = ("--delimiter", ";", "--id", "key", "--label", "churned")
    ok("topics", "create")
    told = json.loads(ok("seed", "rows.csv", *options, "--json", "--set", "labels.max_delay=60").stdout)
    assert (told["labelled"], told["unread"]) == (3, 0)
    assert features_of(*options) == ["age"]
    wrong = run("seed", "rows.csv", "--set", "labels.max_delay=60")
    assert (wrong.exit_code, "--delimiter ';'" in wrong.stderr) == (2, True)


# --- features that are chosen by the settings -----------------------------------------------------------------

EXCLUDING = ("--set", 'features.exclude=["b", "C"]')


def test_what_the_settings_exclude_is_not_learned_and_not_scaled() -> None:
    """It may hold anything; a pattern that matches no column is told."""
    write("a,b,label\n1,,1\n2,5,0\n4,x,1\n")
    told = ok("replay", "rows.csv", "--quiet", "--json", *PERCEPTRON, *EXCLUDING, log=None)
    assert json.loads(told.stdout)["labelled"] == 3
    assert "features.exclude: 'C' matches no feature" in told.stderr
    assert "'b'" not in told.stderr
    assert features_of(*EXCLUDING) == ["a"]


def test_a_feature_of_its_own_would_not_be_included() -> None:
    """`--add-a-feature` and `features.include` cannot both have their way."""
    write("a,label\n1,1\n2,0\n")
    assert "features.include would leave it out" in refusal(
        "--add-a-feature", "--set", 'features.include=["a"]'
    )
