"""`labels.classes`: read alike from everywhere, and what is refused."""

from pathlib import Path

import pytest

from mistakebound.config.load import load
from mistakebound.config.problems import ConfigurationError


def _keys(*sets: str) -> list[str]:
    with pytest.raises(ConfigurationError) as refusal:
        load(None, sets, None, {})
    return [problem.key for problem in refusal.value.problems]


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
    """One of them would have no effect."""
    assert _keys("labels.classes=open", "labels.positive=spam") == ["labels.positive"]
