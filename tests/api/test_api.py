"""The public names, `from mistakebound import ...`: settings as the command line reads them, and a replay."""

import subprocess
import sys
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import mistakebound
from mistakebound import ConfigurationError, RecordingError, Settings, load_settings, replay
from mistakebound.core.replay.recording import encode_header
from tests.api.support.recordings import recording_of, rows
from tests.support.project import python_path


def test_every_public_name_can_be_imported_and_is_listed() -> None:
    """`dir` shows them, and nothing else."""
    assert dir(mistakebound) == sorted(mistakebound.__all__)
    assert all(getattr(mistakebound, name) is not None for name in mistakebound.__all__)


def test_any_other_name_is_an_attribute_error() -> None:
    """As for any module."""
    with pytest.raises(AttributeError, match="has no attribute 'load_setings'"):
        getattr(import_module("mistakebound"), "load_setings")  # noqa: B009 - mypy knows that it is missing


def test_importing_the_package_imports_nothing_slow() -> None:
    """The command line begins with it."""
    code = "import sys, mistakebound; print(sorted({'pydantic', 'numpy', 'msgspec'} & set(sys.modules)))"
    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": python_path()},
        timeout=60,
    )

    assert found.stdout == "[]\n"


# --- load_settings ----------------------------------------------------------------------------------


def test_without_anything_the_defaults_are_loaded() -> None:
    """They are the defaults of `Settings`."""
    assert load_settings() == Settings()


def test_overrides_win_over_the_file(tmp_path: Path) -> None:
    """Key by key: what they do not name is the file's."""
    file = tmp_path / "mistakebound.toml"
    file.write_text('[labels]\nmax_delay = "P7D"\nparking = 60\n')

    for named in (file, str(file)):
        settings = load_settings(named, labels={"parking": 120}, learner={"kind": "winnow"})
        assert settings.labels.max_delay == timedelta(days=7)
        assert settings.labels.parking == timedelta(minutes=2)
        assert settings.learner.kind == "winnow"


def test_neither_the_environment_nor_the_folder_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test gives the same result everywhere."""
    (tmp_path / "mistakebound.toml").write_text('[learner]\nkind = "winnow"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MISTAKEBOUND_LEARNER__KIND", "halving")

    assert load_settings() == Settings()


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (
            {"learner": {"kind": "winow"}},
            'learner.kind = "winow" (argument load_settings): unknown learner. Did you mean winnow?',
        ),
        (
            {"labls": {"max_delay": 3}},
            "labls.max_delay = 3 (argument load_settings): unknown key. Did you mean labels.max_delay?",
        ),
        ({"labels": 3}, "labels = 3 (argument load_settings): a table cannot have a value. It is a table:"),
        (
            {"batch": {"max_records": 0}},
            "batch.max_records = 0 (argument load_settings): must be greater than or equal to 1. Meaning:",
        ),
    ],
)
def test_a_wrong_override_is_told_with_key_value_origin_and_remedy(
    overrides: dict[str, Any], told: str
) -> None:
    """As a flag would be."""
    with pytest.raises(ConfigurationError) as caught:
        load_settings(**overrides)
    assert told in str(caught.value)


def test_a_missing_file_is_told_as_the_argument_that_it_is() -> None:
    """With its remedy, and with all other problems."""
    with pytest.raises(ConfigurationError) as caught:
        load_settings("missing.toml", learner={"eta": 0})
    first, second = caught.value.problems
    assert (
        str(first)
        == 'file = "missing.toml" (argument load_settings): the file does not exist. Name an existing file'
    )
    assert second.key == "learner.eta"


# --- replay -----------------------------------------------------------------------------------------


def test_a_recordings_report_is_the_command_lines(tmp_path: Path) -> None:
    """From a path, its text or its lines; and as replaying the same rows gives it."""
    lines = recording_of(rows(50))
    file = tmp_path / "day.jsonl"
    file.write_bytes(b"".join(lines))

    reports = [replay(file), replay(str(file)), replay(lines), replay(iter(lines), load_settings())]

    assert reports[0].labelled == 50
    assert reports == [reports[0]] * 4


def test_settings_decide_how_is_learned() -> None:
    """Without settings, the defaults decide."""
    lines = recording_of(rows(50))
    assert replay(lines, load_settings(learner={"kind": "winnow"})).learner == "winnow"


def test_what_could_not_be_read_is_in_the_report() -> None:
    """Reasons with their counts, and the first one's place; typed, as everything is."""
    bad = [row._replace(label="?") if number in (3, 5) else row for number, row in enumerate(rows(50))]
    (one,) = replay(recording_of(bad)).rejected

    assert (one.stream, one.reason, one.count) == ("labels", "unknown-label", 2)
    assert (one.first.partition, one.first.offset, one.first.line) == (0, 3, None)
    assert one.detail.startswith('label is "?"; known: true, false')


def test_a_recording_of_which_nothing_is_judged_has_no_rate() -> None:
    """None, so that a test that compares it fails, and a type checker says so beforehand."""
    found = replay([encode_header(1)])

    assert (found.labelled, found.mistake_rate, found.baselines["majority"].mistake_rate) == (0, None, None)


def test_a_line_that_is_no_record_is_told_by_its_number() -> None:
    """RecordingError, a public name."""
    with pytest.raises(RecordingError, match="line 2"):
        replay([encode_header(1), b"nonsense\n"])


def test_settings_with_which_the_learner_cannot_run_are_refused() -> None:
    """As every verb refuses them."""
    voted = load_settings(learner={"kind": "voted-perceptron"})
    with pytest.raises(ConfigurationError, match="needs one partition"):
        replay([encode_header(2)], voted)
