"""The log is chosen by its URL."""

from pathlib import Path

import pytest

from mistakebound.log import open_log
from mistakebound.log.protocol import Unreachable
from mistakebound.settings import LogSettings, Settings


@pytest.mark.parametrize(
    "url", [None, "", "kafka", "kafka:9092", "redis://x", "SQLITE:x", "sqlite", "sqlite:", "sqlite:///log.db"]
)
def test_another_url_is_refused_with_the_accepted_forms(url: str | None) -> None:
    """The error names the value and what could stand there."""
    with pytest.raises(Unreachable) as caught:
        open_log(Settings(log=LogSettings(url=url)))

    assert repr(url) in str(caught.value)
    assert "sqlite:FILE" in str(caught.value)


def test_opening_makes_no_file(tmp_path: Path) -> None:
    """A mistyped name leaves nothing behind; creating the topics makes the file."""
    path = tmp_path / "log.db"
    with open_log(Settings(log=LogSettings(url=f"sqlite:{path}"))) as log:
        assert set(log.describe().values()) == {None}
        assert list(tmp_path.iterdir()) == []
        log.create_topics(1, {})
        assert path.exists()


def test_a_path_may_hold_any_character(tmp_path: Path) -> None:
    """Question marks, spaces and percent signs in a file's name are only that."""
    path = tmp_path / "a b?mode=ro%41#ü.db"
    with open_log(Settings(log=LogSettings(url=f"sqlite:{path}"))) as log:
        log.create_topics(1, {})

    assert [found.name for found in tmp_path.iterdir()] == [path.name]


def test_the_memory_log_is_one_for_the_process_and_ends_with_its_last_user() -> None:
    """Who opens it second sees the same; after the last has closed, it is empty again."""
    settings = Settings(log=LogSettings(url="sqlite::memory:"))
    with open_log(settings) as first:
        first.create_topics(2, {})
        with open_log(settings) as second:
            assert second.partitions == 2
        assert first.partitions == 2
    with open_log(settings) as third:
        assert third.describe()["examples"] is None
