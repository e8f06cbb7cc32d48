"""Labels in files, as people spell them, and which settings declare those that are not declared."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands.support.command_line import ok


def counts(labels: list[str], *arguments: str, form: str = "csv") -> dict[str, Any]:
    """What a replay reports of rows with these labels, whatever it rejects."""
    if form == "csv":
        lines = ["a,label", *(f"{n},{label}" for n, label in enumerate(labels))]
    else:
        lines = [f"{label} 1:{n}" for n, label in enumerate(labels)]
    Path("rows").write_text("\n".join(lines) + "\n")
    options = ("--from", form, "--quiet", "--json", "--max-invalid=9", *arguments)
    told = ok("replay", "rows", *options, log=None)
    report: dict[str, Any] = json.loads(told.stdout)
    return report


@pytest.mark.parametrize("form", ["csv", "svmlight"])
@pytest.mark.parametrize(
    ("positive", "negative"),
    [
        *(
            ("1", "0"),
            ("1", "-1"),
            ("+1", "-1"),
            ("1.0", "0.0"),
            ("1.0", "-1.0"),
            ("+1.0", "-1.00"),
            ("1e0", "0e0"),
        ),
        *(("true", "false"), ("True", "False"), ("TRUE", "FALSE")),
    ],
)
def test_two_undeclared_classes_are_truth_in_its_usual_spellings(
    form: str, positive: str, negative: str
) -> None:
    """As pandas, R, spreadsheets and libsvm write it; all of them count."""
    report = counts([positive, negative, positive, positive], form=form)
    assert report["labels"]["applied"] == 4
    assert report == counts(["1", "0", "1", "1"], form=form)


@pytest.mark.parametrize("form", ["csv", "svmlight"])
@pytest.mark.parametrize(
    ("classes", "labels"),
    [
        ('["0","1","2"]', ["0", "1", "2", "1"]),
        ('["0","1","2"]', ["0.0", "1.0", "2.0", "1.0"]),
        ("[1,2,3]", ["1", "2", "3", "2"]),
        ("[1,2,3]", ["1.0", "2.0", "3.0", "+2"]),
        ("open", ["0", "1", "2", "1"]),
        ("open", ["true", "red", "-1", "1.0"]),
        ("[9007199254740993,1]", ["9007199254740993", "9007199254740993.0", "1", "1"]),
    ],
)
def test_the_declared_spelling_decides(form: str, classes: str, labels: list[str]) -> None:
    """A text file has no types: 1 is the class 1, or "1", or any text, as was declared."""
    report = counts(labels, "--set", f"labels.classes={classes}", form=form)
    assert report["labels"]["applied"] == len(labels)


@pytest.mark.parametrize(
    ("classes", "label"),
    [
        ('["1","1.0"]', "1.00"),
        ("[1,2]", "true"),
        ("[1,2]", "1_0"),
        ("[9007199254740993,1]", "9007199254740992"),
    ],
)
def test_what_means_no_class_or_two_is_none(classes: str, label: str) -> None:
    """It is refused as on the stream."""
    report = counts([label, "1"], "--set", f"labels.classes={classes}")
    assert (report["labels"]["applied"], report["labels"]["invalid"]) == (1, 1)


def test_an_empty_label_is_missing() -> None:
    """It is no class, not even where any text is one."""
    assert counts(["a", "", "a"], "--set", "labels.classes=open")["labels"]["invalid"] == 1


def advice(text: str, name: str = "rows.csv", *arguments: str) -> str:
    """What a replay says of labels that were not declared."""
    from tests.commands.support.command_line import run

    Path(name).write_text(text)
    return run("replay", name, "--quiet", *arguments, log=None).stderr


@pytest.mark.parametrize(
    ("labels", "sets"),
    [
        (["no", "yes", "no"], ['labels.positive="yes"', 'labels.negative="no"']),
        (["1", "2", "2"], ["labels.positive=2", "labels.negative=1"]),
        ([">50K", "<=50K"], ['labels.positive="<=50K"', 'labels.negative=">50K"']),
        (["it's", "not"], ['labels.positive="it\'s"', 'labels.negative="not"']),
        (["a", "b", "c"], ['labels.classes=["a", "b", "c"]']),
        (["3", "1", "2"], ["labels.classes=[1, 2, 3]"]),
    ],
)
def test_labels_that_are_not_declared_are_told_with_the_settings_to_write(
    labels: list[str], sets: list[str]
) -> None:
    """And with those settings every one of them is applied."""
    text = "a,label\n" + "".join(f'1,"{label}"\n' for label in labels)
    told = advice(text)
    written = [argument for one in sets for argument in ("--set", one)]

    assert "is none of the declared classes, true, false" in told
    for one in sets:
        quoted = one.replace("'", "'\\''")
        assert f"--set '{quoted}'" in told
    report = json.loads(ok("replay", "rows.csv", "-q", "--json", *written, log=None).stdout)
    assert report["labels"]["applied"] == len(labels)


def test_a_half_known_pair_is_told_whole() -> None:
    """Of 1 and 2, 1 is a truth value, yet the column is a pair of its own; the first that is not known is named."""
    told = advice("a,label\n1,1\n1,1\n1,2\n")
    assert 'line 4: the label "2" is none of the declared classes' in told
    assert "--set 'labels.positive=2' --set 'labels.negative=1'" in told


def test_typed_labels_are_told_in_their_type() -> None:
    """JSON's text stays text, and a fraction is no class."""
    told = advice('{"features": {}, "label": "1"}\n{"features": {}, "label": "0"}\n', "rows.jsonl")
    assert "--set 'labels.positive=1' --set 'labels.negative=0'" not in told
    assert "--set 'labels.positive=\"1\"' --set 'labels.negative=\"0\"'" in told
    assert "a class is text, an integer" in advice('{"features": {}, "label": 1.5}\n', "rows.jsonl")


def test_many_labels_are_asked_about() -> None:
    """A measurement is no class."""
    told = advice("a,label\n" + "".join(f"1,{n}.5\n" for n in range(30)))
    assert "The file has more than 20 labels: are they classes?" in told


@pytest.mark.parametrize("labels", [["1", "0"], ["True", "False"], ["1", "1"]])
def test_declared_labels_are_not_spoken_of(labels: list[str]) -> None:
    """However they are spelled."""
    assert advice("a,label\n" + "".join(f"1,{label}\n" for label in labels)) == ""
