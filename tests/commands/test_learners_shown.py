"""`learners`, and what is refused before a learner starts: all at once, by the key to change."""

import json
from pathlib import Path

import pytest

from mistakebound import replay
from mistakebound.config.load import load
from mistakebound.config.problems import ConfigurationError
from mistakebound.core.learners import KINDS
from mistakebound.core.learners.concepts import NAMES
from mistakebound.core.learners.elimination import CLASSES
from mistakebound.core.replay.recording import encode_header
from mistakebound.settings import Settings
from tests.commands.support.command_line import ok, run

EXAMPLE = Settings().learner


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _keys(*sets: str) -> list[str]:
    with pytest.raises(ConfigurationError) as refusal:
        load(None, sets, None, {})
    return [problem.key for problem in refusal.value.problems]


def _told(*sets: str) -> str:
    with pytest.raises(ConfigurationError) as refusal:
        load(None, sets, None, {})
    return str(refusal.value)


def test_every_learner_is_listed_with_what_is_proved_of_it() -> None:
    """Source, settings, bound and sharing of each, as text and as JSON."""
    listed = json.loads(ok("learners", "--json", log=None).stdout)
    text = ok("learners", log=None).stdout

    assert [one["kind"] for one in listed] == list(KINDS)
    for one in listed:
        assert all(one[key] for key in ("source", "parameters", "bound", "bounds", "shared", "features"))
        assert all(hasattr(EXAMPLE, key) for key in one["parameters"])
        assert set(one["needs"]) <= set(one["parameters"])
        assert f"{one['kind']}\n  source      {one['source']}\n" in text


def test_every_concept_class_is_listed_with_the_learners_that_take_it() -> None:
    """By the names that `learner.concepts` takes."""
    listed = json.loads(ok("learners", "--concepts", "--json", log=None).stdout)

    assert {one["name"] for one in listed} == {*NAMES, *CLASSES}
    assert {one["name"] for one in listed if "elimination" in one["learners"]} == set(CLASSES)


def test_what_a_learner_needs_is_said_all_at_once() -> None:
    """Every key that does not go with it, each with a remedy."""
    keys = _keys("learner.kind=halving", "features.normalize=unit", "labels.classes=open")

    assert keys == [
        "learner.concepts",
        "learner.variables",
        "features.bias",
        "features.normalize",
        "labels.classes",
    ]


def test_a_class_too_large_is_refused_with_its_size() -> None:
    """Before anything is allocated."""
    told = _told(
        "learner.kind=con", "learner.concepts=conjunctions", "learner.variables=40", "features.bias=false"
    )

    assert str(3**40) in told


def test_voted_needs_one_partition_where_their_number_is_set() -> None:
    """It is known before the log is asked."""
    assert _keys("learner.kind=voted-perceptron", "log.partitions=2") == ["log.partitions"]
    load(None, ["learner.kind=voted-perceptron", "log.partitions=1"], None, {})


def test_voted_is_refused_where_the_log_has_more_partitions() -> None:
    """`run` and `demo` ask the log, `replay` the recording, the Python call too."""
    ok("topics", "create", "--partitions", "2")
    Path("day.jsonl").write_bytes(encode_header(2))
    voted = ("--set", "learner.kind=voted-perceptron")

    for told in (
        run("run", *voted, "--set", "labels.max_delay=PT1H"),
        run("demo", "--once", *voted),
        run("replay", "day.jsonl", *voted, log=None),
    ):
        assert told.exit_code == 2
        assert "voted-perceptron needs one partition" in told.stderr
    with pytest.raises(ConfigurationError, match="needs one partition"):
        replay("day.jsonl", Settings.model_validate({"learner": {"kind": "voted-perceptron"}}))


@pytest.mark.parametrize(
    ("given", "classes"),
    [
        ("open", "open"),
        ('["ham", "spam", "eggs"]', ("ham", "spam", "eggs")),
        ("[1, 2, 3]", (1, 2, 3)),
        ("[true, false]", (True, False)),
    ],
)
def test_classes_are_read_alike_from_flag_variable_and_file(given: str, classes: object) -> None:
    """A list as TOML writes it, or `open`."""
    written = '"open"' if given == "open" else given
    Path("mistakebound.toml").write_text(f"[labels]\nclasses = {written}\n")
    flag = load(Path("/dev/null"), [f"labels.classes={given}"], None, {})
    variable = load(Path("/dev/null"), [], None, {"MISTAKEBOUND_LABELS__CLASSES": given})
    file = load(None, [], None, {})

    for found in (flag, variable, file):
        assert found.settings.labels.classes == classes
        assert repr(found.settings.labels.classes) == repr(classes)


@pytest.mark.parametrize(
    "sets",
    [
        ['labels.classes=["a", "b", "a"]'],
        ['labels.classes=["a"]'],
        ["labels.classes=[]"],
        ['labels.classes=["a", 1]'],
        ["labels.classes=a"],
    ],
)
def test_classes_that_are_none_are_refused(sets: list[str]) -> None:
    """Two different ones at least, of one kind."""
    assert _keys(*sets) == ["labels.classes"]


def test_classes_and_a_positive_class_exclude_each_other() -> None:
    """One of them would be without effect."""
    assert _keys("labels.classes=open", "labels.positive=spam") == ["labels.positive"]


def test_concepts_come_from_a_file_and_the_epoch_holds_them() -> None:
    """Comments and blanks are left out; the file's name is nowhere."""
    Path("xor.txt").write_text("# two variables\n0110\n\n10 01  # the other\n")
    halving = ("learner.kind=halving", 'learner.variables=["a", "b"]', "features.bias=false")
    found = load(None, [*halving, "learner.concepts=@xor.txt"], None, {})

    assert found.settings.learner.concepts == "table:0110,1001"
    assert found.settings.of_epoch()["learner"]["concepts"] == "table:0110,1001"
    assert str(found.origins["learner.concepts"]) == "flag --set"


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        ("0110\n01x0\n", "file.txt, line 2: 'x' is neither 0 nor 1"),
        ("\n011\n", "file.txt, line 2: 3 digits"),
        ("0110\n01\n", "file.txt, line 2: 2 digits, the first table has 4"),
        ("# nothing\n", "file.txt holds no table"),
        ("01" * 2**18, "file.txt holds"),
        (b"\xff", "file.txt is not UTF-8"),
        (None, "file.txt cannot be read"),
    ],
)
def test_a_file_of_concepts_that_is_none_is_refused_by_file_and_line(
    content: str | bytes | None, wrong: str
) -> None:
    """It is one problem, beside the others."""
    if content is not None:
        Path("file.txt").write_bytes(content.encode() if isinstance(content, str) else content)
    told = _told("learner.concepts=@file.txt", "learner.eta=0")

    assert wrong in told
    assert "2 problems" in told
