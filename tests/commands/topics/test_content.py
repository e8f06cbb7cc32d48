"""Whether the worker could read what is in the inputs, told from a sample before the first record is taken."""

import json
from pathlib import Path
from typing import Any

import pytest

from mistakebound.commands.json_forms import TopicFinding
from mistakebound.commands.topics import content
from mistakebound.core.records import INPUTS, Record, Stream
from mistakebound.settings import Settings
from tests.commands.support.command_line import run
from tests.worker.registry.support.shop import outgoing, settings_of
from tests.worker.support.working import opened


def found(stream: Stream, *messages: Any, **settings: Any) -> TopicFinding:
    """Of these messages under these settings."""
    records = [
        Record(stream, 0, offset, 0, None, None if each is None else json.dumps(each).encode())
        for offset, each in enumerate(messages)
    ]
    read = content.readers(Settings.model_validate(settings), lambda _: None)
    return content.finding(stream, records, read[stream])


def test_what_can_be_read_is_well() -> None:
    """As is a topic in which nothing is yet."""
    assert found("examples", {"id": "a", "features": {"x": 1}}).found == "1 of 1 readable"
    assert found("labels", {"id": "a", "label": True}).verdict == "ok"
    assert found("labels").found == "no records yet"


def test_a_sample_of_which_nothing_can_be_read_fails() -> None:
    """The detail of a dead letter is the remedy, once for each reason."""
    whole = {"id": "a", "amount": 2, "customer": {"country": "DE"}}
    finding = found("examples", whole, whole, None, messages={"features": ""}, features={"exclude": ["id"]})
    assert (finding.verdict, finding.found) == (
        "failed",
        "0 of 3 readable; 2 bad-features, 1 tombstone",
    )
    assert finding.remedy.startswith("bad-features: feature 'customer' is an object")
    assert "; tombstone: " in finding.remedy


@pytest.mark.parametrize("bad", [{"id": "b"}, {"id": "b", "label": 3}, None])
def test_a_few_that_cannot_be_read_are_a_warning(bad: Any) -> None:
    """Deletes are ordinary in a table's topic."""
    finding = found("labels", {"id": "a", "label": True}, bad)
    assert finding.verdict == "warning"
    assert finding.found.startswith("1 of 2 readable; 1 ")


def test_what_the_learner_does_not_take_counts_too() -> None:
    """The learner of a theorem on truth values."""
    finding = found("examples", {"id": "a", "features": {"x": 0.5}}, learner={"kind": "elimination"})
    assert finding.verdict == "failed"


def test_without_an_answer_of_the_registry_nothing_is_said_of_content(tmp_path: Path) -> None:
    """A warning: `config check --online` asks the registry on its own account, and ends by what it says."""
    settings = settings_of("http://127.0.0.1:9", log={"url": f"sqlite:{tmp_path / 'log.db'}"})
    with opened(settings, 1) as log:
        log.append([outgoing(topic, 1, b"\0\0\0\0\1anything") for topic in INPUTS])
    config = tmp_path / "mistakebound.toml"
    config.write_text('[messages]\nformat = "avro"\n[registry]\nurl = "http://127.0.0.1:9"\ntimeout = 1\n')
    checks = json.loads(
        run("topics", "check", "--json", "--config", str(config), log=settings.log.url).stdout
    )
    assert [(one["topic"], one["found"], one["verdict"]) for one in checks if one["rule"] == "content"] == [
        ("examples", "not read", "warning"),
        ("labels", "not read", "warning"),
    ]
