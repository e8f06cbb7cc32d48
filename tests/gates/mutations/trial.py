"""Tests run on a copy of the source, with one line of it broken or none."""

import os
import select
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.gates.mutations.mutation import Mutation, Selected, code_of
from tests.support.project import ROOT, SOURCE, python_path

TRIAL_S = 300.0
"""What takes longer hangs."""
TEST_S = 60
"""The same for one test."""


def copy_to(folder: Path) -> None:
    """What the tests need."""
    for part in ("service", "tests", "pyproject.toml"):
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / part)


@contextmanager
def broken(copy: Path, one: Mutation) -> Iterator[None]:
    """Inside the block the copy has this mutation. Raises ValueError where there is nothing to break."""
    target = copy / one.file
    text = target.read_text()
    head, code = code_of(text)
    if one.old not in code:
        raise ValueError(f"{one.file} holds no {one.old!r} any more")
    target.write_text(head + code.replace(one.old, one.new, 1))
    try:
        yield
    finally:
        target.write_text(text)


def first_failure(copy: Path, tests: Sequence[Selected], *options: str) -> str:
    """The first test that fails, by name; empty for none. In a child of its own, where the heavy libraries are there
    already."""
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        found = "the child broke"
        try:
            os.setsid()
            os.close(told)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(1, 2)
            found = _first_failure(copy, tests, options)
        except BaseException as error:
            found = f"the child broke: {error!r}"
            raise
        finally:
            os.write(tell, found.encode())
            os._exit(0)
    os.close(tell)
    with os.fdopen(told, "rb") as pipe:
        ended, _, _ = select.select([pipe], [], [], TRIAL_S)
        if not ended:
            os.killpg(child, signal.SIGKILL)
        by = pipe.read().decode() if ended else f"nothing ended within {TRIAL_S:g} s"
    os.waitpid(child, 0)
    return by


def _first_failure(copy: Path, tests: Sequence[Selected], options: Sequence[str]) -> str:
    import pytest

    ours = {ROOT, SOURCE}
    elsewhere = [path for path in sys.path if Path(path or ".").resolve() not in ours]
    sys.path[:] = [*python_path(copy).split(os.pathsep), *elsewhere]
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", "mistakebound")]:
        del sys.modules[name]
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True

    class First:
        name = ""

        def pytest_sessionstart(self) -> None:
            from hypothesis import Phase, settings

            # A failure is enough; its simplest example would take minutes to find.
            found = Phase.explicit, Phase.reuse, Phase.generate
            settings.register_profile("unshrunk", parent=settings(), phases=found)
            settings.load_profile("unshrunk")

        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed and not self.name:
                file, colons, name = report.nodeid.partition("::")
                self.name = file.rpartition("/")[2] + colons + name

        def pytest_collectreport(self, report: pytest.CollectReport) -> None:
            if report.failed and not self.name:
                self.name = f"{report.nodeid}: cannot be collected"

    first = First()
    whole = [one.file for one in tests if not one.words]
    runs = [whole] if whole else []
    runs += [["-k", one.words, one.file] for one in tests if one.words]
    os.chdir(copy / "tests")
    for run in runs:
        if not first.name:
            usual = ["-x", "-q", "-p", "no:cacheprovider", f"--timeout={TEST_S}", *options]
            code = pytest.main([*usual, *run], plugins=[first])
            if (
                run is whole
                and code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
                and not first.name
            ):
                first.name = f"pytest ended with {code!r}"
    return first.name
