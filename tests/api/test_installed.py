"""The wheel beside a user's own code: their `service`, their tests, their type checker."""

import re
from pathlib import Path

import pytest

from tests.api.support.installed import Installed, build, install
from tests.api.support.recordings import recording_of, rows

pytestmark = pytest.mark.long

USERS_TEST = '''
"""What a user's own test of their settings looks like."""

from datetime import timedelta
from pathlib import Path

import pytest

import service
from mistakebound import ConfigurationError, RecordingError, Report, Settings, load_settings, replay

FOLDER = Path(__file__).parent


def test_a_day_is_learned_with_few_mistakes() -> None:
    settings: Settings = load_settings(FOLDER / "mistakebound.toml", labels={"max_delay": "P1D"})
    delay: timedelta | None = settings.labels.max_delay
    assert delay == timedelta(days=1)
    assert settings.learner.kind == service.KIND

    report: Report = replay(FOLDER / "day.jsonl", settings)
    assert report == replay((FOLDER / "day.jsonl").read_bytes().splitlines(keepends=True), settings)
    assert report.mistakes < report.baselines["majority"].mistakes
    assert all(bound.holds for bound in report.bounds)
    rate: float | None = report.mistake_rate
    assert rate is not None and rate < 0.2
    first: list[tuple[str, int, int | None]] = [
        (one.reason, one.count, one.first.offset) for one in report.rejected
    ]
    assert first == []
    worse: bool = report.worse_than_majority
    assert not worse


def test_what_is_wrong_is_told() -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_settings(learner={"kind": "winow"})
    assert [problem.key for problem in caught.value.problems] == ["learner.kind"]
    with pytest.raises(RecordingError):
        replay([b"nonsense"])
'''


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Built once for all."""
    return install(tmp_path_factory.mktemp("installed"))


@pytest.fixture
def users(tmp_path: Path) -> Path:
    """A user's folder: their package `service`, their settings, a recording, and a test."""
    (tmp_path / "service").mkdir()
    (tmp_path / "service" / "__init__.py").write_text('"""Theirs."""\n\nKIND = "perceptron"\n')
    (tmp_path / "mistakebound.toml").write_text('[learner]\nkind = "perceptron"\n')
    (tmp_path / "day.jsonl").write_bytes(b"".join(recording_of(rows(200))))
    (tmp_path / "test_learning.py").write_text(USERS_TEST)
    return tmp_path


def test_the_wheel_brings_one_package_of_one_name(installed: Installed) -> None:
    """Nothing called `service`, and no tests."""
    first, second = sorted(installed.names())
    assert first == "mistakebound"
    assert second.startswith("mistakebound-")
    assert second.endswith(".dist-info")


def test_the_metadata_tells_what_it_is_for_and_links_to_nothing_that_is_not_there(
    installed: Installed,
) -> None:
    """No public address is known, so the README's links to files beside it are their names."""
    told = installed.metadata()
    assert told["Requires-Python"] == ">=3.11"
    assert {"Typing :: Typed", "Programming Language :: Python :: 3.14"} <= set(told.get_all("Classifier"))
    assert "online-learning" in told["Keywords"]
    assert told.get_all("Project-URL") is None
    text = told.get_payload()
    assert text.startswith("# mistakebound")
    assert "](deploy/" not in text
    assert "learners (deploy/learners.md)" in text


def test_a_build_that_is_told_an_address_links_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the metadata, and in the README as an index shows it."""
    monkeypatch.setenv("PROJECT_URL", "https://forge.example/us/it/")
    told = Installed(build(tmp_path), tmp_path).metadata()
    assert "Homepage, https://forge.example/us/it" in told.get_all("Project-URL")
    links = re.findall(r"\]\((\S+?)\)", told.get_payload())
    files = "https://forge.example/us/it/blob/v0.1.0/"
    assert f"{files}deploy/learners.md" in links
    assert [link for link in links if not link.startswith("https://")] == []


def test_a_users_own_service_stays_theirs(installed: Installed, users: Path) -> None:
    """And `mistakebound` is the installed package, not the checkout."""
    code = "import service, mistakebound; print(service.__file__); print(mistakebound.__file__)"
    found = installed.run(users, "python", "-c", code)
    theirs, ours = found.stdout.splitlines()

    assert Path(theirs) == users / "service" / "__init__.py"
    assert Path(ours).is_relative_to(installed.environment)


@pytest.mark.parametrize("command", [("mistakebound",), ("python", "-m", "mistakebound")])
def test_the_command_runs_beside_it(installed: Installed, users: Path, command: tuple[str, ...]) -> None:
    """As `mistakebound` and as a module: the version, the help, and a replay."""
    version, help_, report = (
        installed.run(users, *command, *arguments)
        for arguments in (["--version"], ["--help"], ["replay", "day.jsonl", "--expect", "labelled == 200"])
    )

    assert version.stdout.startswith("mistakebound ")
    assert "Exit codes: 0 done" in help_.stdout
    assert (report.returncode, report.stdout.splitlines()[0].split()) == (0, ["learner", "perceptron"])


def test_the_demos_pages_and_the_status_pages_files_are_in_the_wheel(
    installed: Installed, tmp_path: Path
) -> None:
    """A demo serves and reads both."""
    found = installed.run(
        tmp_path, "mistakebound", "demo", "--once", "--json", "--set", "http.address=127.0.0.1:0"
    )
    assert found.returncode == 0, found.stderr
    assert '"labelled":1250' in found.stdout.replace(" ", "")


def test_a_users_test_runs(installed: Installed, users: Path) -> None:
    """With pytest, in their folder."""
    found = installed.run(users, "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_learning.py")
    assert found.returncode == 0, found.stdout + found.stderr


def test_a_users_test_is_typed(installed: Installed, users: Path) -> None:
    """`mypy --strict` finds nothing in it, and finds what is not there."""
    arguments = ["-m", "mypy", "--strict", "--python-executable", str(installed.python)]
    right = installed.run(users, "python", *arguments, "test_learning.py")
    (users / "test_wrong.py").write_text(
        "import mistakebound\n\nmistakebound.load_setings()\nmistakebound.replay(3)\n"
        "assert mistakebound.replay('day.jsonl').mistake_rate < 0.2\n"
    )
    wrong = installed.run(users, "python", *arguments, "test_wrong.py")

    assert right.returncode == 0, right.stdout + right.stderr
    assert 'Module has no attribute "load_setings"' in wrong.stdout
    assert 'Unsupported operand types for > ("float" and "None")' in wrong.stdout
    assert 'Argument 1 to "replay" has incompatible type "int"' in wrong.stdout
