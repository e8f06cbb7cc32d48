"""`replay` of labelled data: passes, private features, a fitted scale, other rules beside the learner."""

import json
from importlib.resources import files
from pathlib import Path

import pytest

from mistakebound.config.load import load
from mistakebound.core.replay.recording import encode, encode_header
from mistakebound.core.replay.replay import Row, as_stream
from mistakebound.settings import Settings
from tests.commands.support.command_line import ok, run

XOR = "id,a,b,label\n1,0,0,false\n2,0,1,true\n3,1,0,true\n4,1,1,false\n"
PAGES = str(files("mistakebound.commands.demo").joinpath("data/phishing.csv"))
PERCEPTRON = ("--set", "learner.kind=perceptron")


@pytest.fixture(autouse=True)
def _xor() -> None:
    Path("xor.csv").write_text(XOR)


def _recording() -> str:
    rows = [Row(str(n), {"x": float(n % 4)}, n % 2 == 0) for n in range(20)]
    lines = [encode(record) for record in as_stream(rows, Settings(), 1, 3)]
    Path("day.jsonl").write_bytes(encode_header(1) + b"".join(lines))
    return "day.jsonl"


def test_a_cycle_is_told_and_reported() -> None:
    """XOR cannot be separated: theta comes back to where it began."""
    told = ok("replay", "xor.csv", "--epochs", "9", *PERCEPTRON, "--report", "report.json", log=None)
    report = json.loads(Path("report.json").read_text())

    assert "theta after pass 1 is theta after pass 0: the data is not separable" in told.stdout
    assert "for ever" in told.stdout
    assert (report["cycle"], report["converged"]) == ([0, 1], False)
    assert report["passes"] == [{"mistakes": 3, "updates": 4}]


def test_private_features_make_xor_converge() -> None:
    """As the lecture says."""
    told = ok("replay", "xor.csv", "--epochs", "99", "--add-a-feature", *PERCEPTRON, log=None)

    assert "converged: the last pass needed no update" in told.stdout


@pytest.mark.long
def test_shuffled_passes_give_the_same_report_every_time() -> None:
    """The seed is part of the command; the default is 0."""
    arguments = ("replay", PAGES, "--epochs", "2", "--shuffle", "--report", "-", "-q", *PERCEPTRON)
    one, zero, other = (
        ok(*arguments, *seed, log=None).stdout for seed in ((), ("--seed", "0"), ("--seed", "1"))
    )

    assert one == zero != other
    assert len(json.loads(one)["passes"]) == 2


def test_a_plain_replay_reports_no_passes() -> None:
    """A stream is read once, so nothing can converge."""
    report = json.loads(ok("replay", "xor.csv", "--json", log=None).stdout)

    assert (report["passes"], report["converged"], report["cycle"]) == ([], None, None)


@pytest.mark.parametrize(
    "option", [("--epochs", "2"), ("--shuffle",), ("--add-a-feature",), ("--delay", "1")]
)
def test_options_of_labelled_data_are_refused_for_a_recording(option: tuple[str, ...]) -> None:
    """A recording has its own order and delays."""
    told = run("replay", _recording(), *option, log=None)

    assert told.exit_code == 2
    assert option[0] in told.stderr


def test_a_seed_without_a_shuffle_is_refused() -> None:
    """The seed would have no effect."""
    assert run("replay", "xor.csv", "--seed", "1", log=None).exit_code == 2


def test_a_fitted_scale_can_be_used_as_it_is_printed() -> None:
    """The pages scaled so cost the perceptron 177 mistakes, raw ones 205."""
    Path("scale.toml").write_text(ok("replay", PAGES, "--fit-scale", log=None).stdout)
    scale = load(Path("scale.toml"), [], None, {}).settings.features.scale
    raw = ok("replay", PAGES, "--json", *PERCEPTRON, log=None).stdout
    scaled = ok("replay", PAGES, "--json", "--config", "scale.toml", *PERCEPTRON, log=None).stdout

    assert scale["is_popular"][0] == 0.5072
    assert (json.loads(raw)["mistakes"], json.loads(scaled)["mistakes"]) == (205, 177)


def test_any_feature_name_can_be_printed_and_read_again() -> None:
    """As a key of TOML, whatever is in it."""
    name = 'a "b".c=\\ \t\x7fé'
    lines = [json.dumps({"features": {name: value}, "label": True}) for value in (1, 2, [1])]
    Path("odd.jsonl").write_text("\n".join(lines) + "\n")
    told = ok("replay", "odd.jsonl", "--fit-scale", "--max-invalid=1", log=None)
    Path("scale.toml").write_text(told.stdout)

    assert load(Path("scale.toml"), [], None, {}).settings.features.scale == {name: (1.5, 0.5)}
    assert "left out: 1 example, bad-features; the first, line 3: " in told.stderr


def test_a_recording_can_be_fitted_too() -> None:
    """The scale is fitted on the recording's examples."""
    assert ok("replay", _recording(), "--fit-scale", log=None).stdout.startswith(
        '[features.scale]\n"x" = [1.5, 1.118'
    )


def test_a_scale_can_be_given_as_a_flag_and_is_shown_as_toml() -> None:
    """An inline table; a wrong entry is named."""
    shown = ok("config", "show", "--set", "features.scale={a = [0, 2]}", log=None).stdout
    wrong = run("config", "show", "--set", "features.scale={a = [0, 0]}", log=None)

    assert '{"a" = [0.0, 2.0]}' in shown
    assert wrong.exit_code == 2
    assert "features.scale" in wrong.stderr
    assert "a: must be greater than 0" in wrong.stderr


@pytest.mark.long
def test_a_report_compares_the_learner_with_other_rules_alike_every_time() -> None:
    """Figures of the pages: 177 mistakes, 554 of the majority; nothing separates them."""
    Path("scale.toml").write_text(ok("replay", PAGES, "--fit-scale", log=None).stdout)
    arguments = ("replay", PAGES, "--config", "scale.toml", "-q", *PERCEPTRON, "--report", "-")
    one, again = (ok(*arguments, log=None).stdout for _ in range(2))
    found = json.loads(one)["comparators"]

    assert one == again
    assert (found["learner"]["mistakes"], found["majority"]["mistakes"]) == (177, 554)
    assert found["best_separator"]["separable"] is False
    assert found["regret"]["mistakes"] == 177 - found["best_separator"]["losses"]["mistakes"]
    assert found["logistic_regression"]["mistakes"] < 177
    assert ok(*arguments, "--expect", "comparators.majority.mistakes == 554", log=None).exit_code == 0


def test_rules_are_compared_only_where_that_is_asked_for() -> None:
    """A plain replay stays fast."""
    plain = ok("replay", "xor.csv", "--json", log=None)
    table = ok("replay", "xor.csv", "--compare", *PERCEPTRON, log=None).stdout

    assert json.loads(plain.stdout)["comparators"] is None
    assert [line.split("  ")[0] for line in table.splitlines()[-7:-1]] == [
        "perceptron",
        "majority so far",
        "last label",
        "logistic regression, rate 0.1",
        "best separator",
        "not separable: the best separator is the one of the least hinge loss",
    ]
    assert table.endswith("mistakes, 4 hinge loss\n")


def test_more_classes_than_two_are_not_compared() -> None:
    """The command says so, and the report holds no comparison."""
    Path("many.csv").write_text("x,label\n1,a\n2,b\n3,c\n")
    told = ok("replay", "many.csv", "--compare", "--set", "labels.classes=open", log=None)

    assert "for two classes" in told.stderr


@pytest.mark.parametrize(
    "line", ["5", "[1]", '{"label": true}', '{"features": {"a": 1}}', '{"features": {"a"', "x"]
)
def test_a_line_that_is_no_labelled_example_is_named(line: str) -> None:
    """It is the file's fault; nothing is learned from a part of it."""
    Path("rows.jsonl").write_text('{"features": {"a": 1}, "label": true}\n\n' + line + "\n")
    result = run("replay", "rows.jsonl", log=None)

    assert result.exit_code == 2
    assert "line 3: it is no" in result.stderr


def test_features_of_a_line_are_read_by_the_step_as_the_workers_are() -> None:
    """What it cannot take ends as an invalid example, and is no fault of the file."""
    lines = ['{"features": {"a": 1e999}, "label": true}', '{"id": 7, "features": {"a": 1}, "label": true}']
    Path("rows.jsonl").write_text("\n".join(lines))
    report = json.loads(ok("replay", "rows.jsonl", "--json", "--max-invalid=1", log=None).stdout)

    assert (report["examples"], report["labelled"]) == (2, 1)
    assert report["example_outcomes"]["invalid"] == 1
    assert report["rejected"][0]["first"]["line"] == 1
