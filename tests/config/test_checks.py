"""Checks that look at more than one setting, or at more than a type."""

from pathlib import Path

import pytest

from mistakebound.config.checks import cautions, require_for_run
from mistakebound.config.problems import ConfigurationError
from tests.config.support.loading import load_sets, problem_of


@pytest.mark.parametrize(
    ("sets", "key"),
    [
        (["labels.positive=1", "labels.negative=1"], "labels.positive"),
        (["labels.positive=spam"], "labels.positive"),
        (["labels.positive=1", "labels.negative=false"], "labels.positive"),
        (["learner.kind=averaged-perceptron", "learner.delay_policy=issued"], "learner.delay_policy"),
        (["http.address=localhost"], "http.address"),
        (["http.address=::1:9464"], "http.address"),
        (["http.address=localhost:99999"], "http.address"),
        (["checkpoint.url=s3://key:word@bucket"], "checkpoint.url"),
        (["checkpoint.url=gopher://bucket"], "checkpoint.url"),
        (["checkpoint.timeout=0"], "checkpoint.timeout"),
        (["log.url=localhost:9092"], "log.url"),
        (["log.url=kafka://localhost"], "log.url"),
        (["log.url=kafka://a:9092,b"], "log.url"),
        (["log.url=sqlite:"], "log.url"),
        (['features.include=["a", "b"]', 'features.exclude=["b"]'], "features.exclude"),
        (["features.include=[]"], "features.include"),
        (['features.exclude=[""]'], "features.exclude"),
        (["features.cross_shared=true"], "features.cross_shared"),
        (["features.cross=/id"], "features.cross"),
        (["features.cross=/features"], "features.cross"),
        (["features.cross=tenant"], "features.cross"),
        (["messages.id=id"], "messages.id"),
        (["learner.kind=percepton"], "learner.kind"),
        (["messages.format=avro", "messages.labels_format=json"], "messages.format"),
        (["messages.format=xml"], "messages.format"),
        (["messages.labels_format=protobuf"], "messages.labels_format"),
        (["messages.examples_message=a.B"], "messages.examples_message"),
        (["registry.username=me"], "registry.url"),
        (["registry.url=localhost:8081"], "registry.url"),
        (["registry.url=http://me:word@localhost:8081"], "registry.url"),
        (["registry.url=http://a:1", "registry.password=word"], "registry.username"),
        (
            ["registry.url=http://a:1", "registry.username=me", "registry.token_file=t"],
            "registry.token_file",
        ),
        (["registry.url=http://a:1", "registry.timeout=0"], "registry.timeout"),
        (["topics.labels=examples"], "topics.labels"),
        (["topics.examples=updates"], "topics.updates"),
        (["log.prefix=a.", "topics.predictions=a.dead-letters"], "topics.dead_letters"),
    ],
)
def test_what_does_not_hold_together_is_refused(sets: list[str], key: str) -> None:
    """The problem names the key to change, with a remedy."""
    problem = problem_of(*sets)
    assert problem.key == key
    assert problem.remedy


@pytest.mark.parametrize(
    "sets",
    [
        ["labels.positive=1", "labels.negative=-1"],
        ["labels.positive=spam", "labels.negative=ham"],
        ["learner.kind=perceptron", "learner.delay_policy=issued"],
        ['features.include=["a", "/b/*"]', 'features.exclude=["c"]'],
        ["messages.features="],
        ["features.cross=/tenant", "features.cross_shared=true"],
        ["features.cross=/features/tenant", "features.cross_shared=false"],
        ["http.address=[::1]:9464"],
        ["http.address="],
        ["checkpoint.url="],
        ["log.url=kafka://a:9092,b:9093"],
        ["log.url=sqlite::memory:"],
        ["topics.labels=examples", "topics.examples=labels"],
    ],
)
def test_what_holds_together_is_taken(sets: list[str]) -> None:
    """The counterparts of the refusals."""
    load_sets(*sets)


def test_an_unknown_learner_names_the_known_ones() -> None:
    """And suggests the one that was meant."""
    text = str(problem_of("learner.kind=percepton"))
    assert "Did you mean perceptron?" in text
    assert "winnow" in text


@pytest.mark.parametrize(
    ("sets", "warned"),
    [
        (["learner.kind=winnow"], False),
        (["learner.kind=winnow", "learner.threshold=initial"], False),
        (["learner.kind=winnow", "learner.threshold=2.5"], False),
        (["learner.kind=winnow", "learner.threshold=0"], True),
        (["learner.kind=winnow", "learner.threshold=-1"], True),
        (["learner.kind=littlestone-winnow", "features.bias=false", "learner.threshold=2"], False),
        (["learner.kind=littlestone-winnow", "features.bias=false", "learner.threshold=0"], True),
        (
            [
                "learner.kind=littlestone-winnow",
                "features.bias=false",
                "learner.threshold=0",
                "learner.demotion=zero",
            ],
            False,
        ),
        (["learner.kind=balanced-winnow"], False),
    ],
)
def test_a_learner_that_can_hardly_say_no_is_warned_of(sets: list[str], warned: bool) -> None:
    """With the key, what follows from it, and what to set instead; it is allowed, since features may have both signs."""
    found = cautions(load_sets(*sets).settings)
    assert [each.key for each in found] == ["learner.threshold"] * warned
    assert all("predicts positive for every example" in each.wrong and each.remedy for each in found)


@pytest.mark.parametrize(
    ("sets", "keys"),
    [
        (["learner.kind=perceptron", "learner.threshold=0"], ["learner.threshold"]),
        (["learner.kind=perceptron", "learner.margin=1", "learner.eta=1"], ["learner.eta", "learner.margin"]),
        (["learner.kind=perceptron", "learner.margin=0"], []),
        (["learner.kind=margin-perceptron", "learner.margin=1"], []),
        (["learner.kind=winnow", "learner.learning_rate=2"], ["learner.learning_rate"]),
        (["learner.kind=perceptron", "learner.delay_policy=issued"], []),
    ],
)
def test_what_the_learner_does_not_read_is_warned_of(sets: list[str], keys: list[str]) -> None:
    """It does nothing, and is fixed with the epoch. The remedy names the learners that read it."""
    found = cautions(load_sets(*sets).settings)
    assert [each.key for each in found] == keys
    assert all("it is for " in each.remedy for each in found)


def test_a_delay_that_leaves_no_time_for_a_label_is_warned_of() -> None:
    """Every example would expire."""
    assert [each.key for each in cautions(load_sets("labels.max_delay=0").settings)] == ["labels.max_delay"]
    assert cautions(load_sets("labels.max_delay=0.001").settings) == []


ROW = "messages.features=/payload/after"


@pytest.mark.parametrize(
    ("sets", "keys"),
    [
        ([ROW, "messages.id=/payload/after/id"], ["messages.id"]),
        ([ROW, "messages.id=/payload/after/id", 'features.exclude=["i*"]'], []),
        ([ROW, "messages.id=/payload/after/key/id", 'features.include=["/key/*"]'], ["messages.id"]),
        ([ROW, "messages.id=/payload/id"], []),
        (["messages.features="], ["messages.id"]),
        (["messages.features=", 'features.exclude=["id"]'], []),
        (["messages.features=", 'features.include=["amount"]'], []),
        (['features.exclude=["a"]', "features.scale={a = [0, 1], b = [0, 1]}"], ["features.scale"]),
    ],
)
def test_an_id_among_the_features_is_warned_of(sets: list[str], keys: list[str]) -> None:
    """It would be a weight that is never used again; and so is a scale for what is not read."""
    found = cautions(load_sets(*sets).settings)
    assert [each.key for each in found] == keys
    assert all(each.remedy for each in found)


def test_run_needs_a_log_and_a_delay_and_says_both_at_once() -> None:
    """With an example of five lines; never a silent default."""
    with pytest.raises(ConfigurationError) as refusal:
        require_for_run(load_sets().settings)
    assert [problem.key for problem in refusal.value.problems] == ["log.url", "labels.max_delay"]
    example = Path("example.toml")
    example.write_text(str(refusal.value).partition("start from:\n")[2])
    assert len(example.read_text().strip().splitlines()) == 5
    require_for_run(load_sets(config=example).settings)
