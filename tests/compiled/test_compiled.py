"""Compiled, the worker is the same worker: the same bits, the same tests."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import compiled
from tests.support.project import python_path

pytestmark = [pytest.mark.compiler, pytest.mark.long, pytest.mark.timeout(900)]
INTERPRETED_ONLY = (
    "a_broken_rule_is_noticed or a_worker_that_does_wrong_is_found or one_update_not_made_is_one"
)
"""These break a rule in a module that they then call; compiled, it calls itself without looking."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with compiled modules."""
    made = tmp_path_factory.mktemp("compiled") / "checkout"
    compiled.checkout(made)
    return made


def ran(folder: Path, *arguments: str) -> str:
    """What a Python program of that checkout prints. If it fails, so does this, with its output."""
    there = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=there | {"PYTHONPATH": python_path(folder)},
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    said = [line for line in (done.stdout + done.stderr).splitlines() if "kafka.cluster" not in line]
    assert done.returncode == 0, "\n".join(said)[-12_000:]
    return done.stdout


def test_the_named_modules_are_compiled(folder: Path) -> None:
    """All of them, and nothing else; `--version` says so."""
    show = "import importlib, sys; [print(importlib.import_module(name).__file__) for name in sys.argv[1:]]"

    files = ran(folder, "-c", show, *compiled.named()).splitlines()

    assert [file for file in files if file.endswith(".py") or str(folder) not in file] == []
    assert len(list((folder / "service" / "mistakebound").rglob("*.so"))) == len(files)
    assert "compiled" in ran(folder, "-m", "mistakebound", "--version")


def test_the_same_bits_are_written(folder: Path) -> None:
    """Random histories of every learner, with crashes, give the same records and positions."""
    assert ran(folder, "-m", "tests.compiled.written") == ran(compiled.ROOT, "-m", "tests.compiled.written")


def test_the_core_passes_its_tests(folder: Path) -> None:
    """Rules, figures, textbooks and traces; and Kafka's record format, to the byte."""
    quiet = ("-q", "-p", "no:cacheprovider", "-k", f"not ({INTERPRETED_ONLY})")

    ran(folder, "-m", "pytest", *quiet, "tests/core", "tests/log/kafka/test_batches.py")


@pytest.mark.kafka
def test_the_compiled_client_fails_as_the_interpreted_one(folder: Path) -> None:
    """What its library raises is caught, and reported in the same words."""
    ran(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/log/kafka/test_confluent.py")


@pytest.mark.kafka
@pytest.mark.faults
@pytest.mark.parametrize("client", ["kafka-python", "confluent"])
def test_killed_it_loses_and_doubles_nothing(folder: Path, client: str) -> None:
    """B1: worker and broker are killed again and again, and the log is recounted."""
    ran(folder, "-m", "tests.faults", "B1", "--short", "--client", client)
