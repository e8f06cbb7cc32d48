"""`learner.concepts = "@FILE"`: truth tables from a file."""

from pathlib import Path

import pytest

from mistakebound.config.load import load
from mistakebound.config.problems import ConfigurationError


def _told(*sets: str) -> str:
    with pytest.raises(ConfigurationError) as refusal:
        load(None, sets, None, {})
    return str(refusal.value)


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
