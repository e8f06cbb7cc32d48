"""What a learner needs of the other settings, and of the number of partitions."""

from pathlib import Path

import pytest

from mistakebound import replay
from mistakebound.config.load import load
from mistakebound.config.problems import ConfigurationError
from mistakebound.core.replay.recording import encode_header
from mistakebound.settings import Settings
from tests.commands.support.command_line import ok, run


def _keys(*sets: str) -> list[str]:
    with pytest.raises(ConfigurationError) as refusal:
        load(None, sets, None, {})
    return [problem.key for problem in refusal.value.problems]


def _told(*sets: str) -> str:
    with pytest.raises(ConfigurationError) as refusal:
        load(None, sets, None, {})
    return str(refusal.value)


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


def test_labels_on_request_do_not_go_with_costs_that_are_learned_from() -> None:
    """The refusal names both settings, so that either can be left out."""
    told = _told("labels.ask=2", "labels.costs={false_negative=5}", "learner.cost_sensitive=true")

    assert "labels.ask = 2.0" in told
    assert "learner.cost_sensitive" in told
