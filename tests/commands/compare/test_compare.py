"""`compare`: prefixes on a log, recordings, files of judged predictions; what it prints, and what it refuses."""

import json
import shlex
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from mistakebound.core.records import Outgoing
from mistakebound.settings import Settings
from tests.commands.support.command_line import ok, run
from tests.commands.support.epochs import flags
from tests.worker.support.working import Run, altered, example, label, opened

pytestmark = pytest.mark.usefixtures("quiet")

PAGES = str(files("mistakebound.commands.demo").joinpath("data/phishing.csv"))


def both(partitions: int = 1) -> tuple[Settings, Settings]:
    """A champion that predicts by a window of one update, and a challenger on the same topics; both have worked."""
    champion = Settings.model_validate(
        {
            "log": {"url": "sqlite:log.db", "prefix": "main."},
            "labels": {"max_delay": 1000},
            "learner": {"kind": "perceptron", "window": 1},
            "checkpoint": {"url": ""},
        }
    )
    challenger = altered(
        champion,
        log={"url": "sqlite:log.db", "prefix": "new."},
        topics={"examples": "main.examples", "labels": "main.labels"},
        learner={"kind": "averaged-perceptron"},
    )
    with opened(champion, partitions) as log:
        log.append(separable(300, partitions))
        Run(log, champion)
    with opened(challenger, partitions) as log:
        Run(log, challenger)
    return champion, challenger


def separable(count: int, partitions: int) -> list[Outgoing]:
    """Examples with a feature for each of two bits, and whether both are set, labelled at once."""
    found = []
    for n in range(count):
        values = {"a": float(n % 2), "b": float(n // 2 % 2)}
        found += [example(n, values, n, partitions), label(n, n % 4 == 3, n, partitions)]
    return found


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_running_challenger_is_compared_by_its_prefix(partitions: int) -> None:
    """It reads the champion's topics and writes its own."""
    champion, _ = both(partitions)
    told = ok("compare", "main.", "new.", *flags(champion), log=None).stdout

    assert "pairs       300 labelled ids that both predicted" in told
    assert "'new.', averaged-perceptron" in told
    assert "better      the second ('new.')" in told
    assert "and not by chance" in told
    assert "mistakebound reset --execute --set learner.kind=averaged-perceptron" in told
    assert "from its settings, take out: learner.window" in told


def test_the_command_that_promotes_makes_the_champion_learn_like_the_challenger() -> None:
    """The next epoch has the challenger's learner, features and labels."""
    both()
    place = "--log", "sqlite:log.db"
    found = json.loads(ok("compare", "main.", "new.", "--json", *place, log=None).stdout)
    (command,) = found["promotion"]["commands"]
    assert found["promotion"]["changes"] == {"learner.kind": "averaged-perceptron", "learner.window": None}
    words = command.split()
    assert words[:2] == ["mistakebound", "reset"]
    ok(*words[1:], *place, log=None)

    status = json.loads(ok("status", "--json", "--set=log.prefix=main.", *place, log=None).stdout)
    assert status["learner"] == "averaged-perceptron"
    assert status["epoch"]["number"] == 2


def test_the_reset_of_a_challenger_names_the_topics_that_it_reads() -> None:
    """Where it is the worse one, and the prefix configured is the other's."""
    champion, _ = both()
    told = ok("compare", "new.", "main.", "--json", *flags(champion), log=None).stdout
    assert json.loads(told)["better"] == "first"

    challenger = [f"--set=log.prefix={'elsewhere.'}", "--log", "sqlite:log.db"]
    (command,) = json.loads(ok("compare", "main.", "new.", "--json", *challenger, log=None).stdout)[
        "promotion"
    ]["commands"]
    assert "--set log.prefix=main." in command
    assert "topics.examples" not in command


def test_tables_of_the_better_sides_settings_are_promoted_whole() -> None:
    """A scale, or costs that are learned from: the command begins an epoch that has them, too."""
    champion, challenger = both()
    scaled = altered(
        challenger,
        log={"url": "sqlite:log.db", "prefix": "scaled."},
        learner={"kind": "perceptron", "cost_sensitive": True},
        labels={"max_delay": 1000, "costs": {"false_negative": 3}},
        features={"scale": {"a": (0.5, 2)}},
    )
    with opened(scaled, 1) as log:
        Run(log, scaled)
    place = "--log", "sqlite:log.db"
    found = json.loads(ok("compare", "main.", "scaled.", "--json", *place, log=None).stdout)
    assert found["better"] == "second"
    assert found["promotion"]["changes"] == {
        "features.scale": {"a": [0.5, 2.0]},
        "labels.costs": {"false_negative": 3.0},
        "learner.cost_sensitive": True,
        "learner.window": None,
    }
    (command,) = found["promotion"]["commands"]
    ok(*shlex.split(command)[1:], *place, log=None)
    learner = {"kind": "perceptron", "cost_sensitive": True, "window": 1}  # to be taken out by hand
    settled = altered(champion, learner=learner, labels=scaled.labels, features=scaled.features)
    with opened(settled, 1) as log:
        assert Run(log, settled).held.state.model.epoch == 2


def test_a_log_and_its_recording_compare_alike() -> None:
    """Prefixes, recordings, and one of each."""
    champion, challenger = both(2)
    for settings, name in ((champion, "main.jsonl"), (challenger, "new.jsonl")):
        topics = [f"topics.{topic}=main.{topic}" for topic in ("examples", "labels")]
        ok("record", name, *flags(settings, *topics), log=None)

    def counted(first: str, second: str) -> dict[str, object]:
        found = json.loads(ok("compare", first, second, "--json", *flags(champion), log=None).stdout)
        for side in ("first", "second"):
            found[side].pop("name")
        found.pop("promotion")
        return dict(found)

    whole = counted("main.", "new.")
    assert whole["pairs"] == 300
    assert counted("main.jsonl", "new.jsonl") == whole
    assert counted("main.", "new.jsonl") == whole


def test_replays_of_labelled_data_are_compared_by_what_they_judged() -> None:
    """Two learners on one file; the same twice gives the same bytes."""
    replayed("a.jsonl", "--set", "learner.kind=averaged-perceptron")
    replayed("b.jsonl")
    told = ok("compare", "a.jsonl", "b.jsonl", "--json", log=None).stdout

    found = json.loads(told)
    assert found["first"] | {"name": ""} == {
        "name": "", "learner": "averaged-perceptron", "judged": 1250, "alone": 0, "again": 0,
        "mistakes": 145, "mistake_rate": 145 / 1250, "cost": None,
    }  # fmt: skip
    assert found["second"]["mistakes"] == 205
    assert found["better"] == "first"
    assert found["promotion"] == {"changes": {"learner.kind": "averaged-perceptron"}, "commands": []}
    assert ok("compare", "a.jsonl", "b.jsonl", "--json", log=None).stdout == told


def test_replayed_learners_are_told_apart_as_their_settings_are_written() -> None:
    """What the better one does not set has to be left out."""
    replayed("a.jsonl", "--set", "learner.kind=perceptron", "--set", "learner.window=2")
    replayed("b.jsonl", "--set", "learner.kind=averaged-perceptron", "--set", "learner.tie=positive")
    told = ok("compare", "a.jsonl", "b.jsonl", log=None).stdout
    assert told.splitlines()[-1] == (
        'To learn like the better one: set learner.kind = "averaged-perceptron", set learner.tie = "positive", '
        "leave out learner.window"
    )


def test_what_the_mistakes_cost_is_told_where_the_settings_say_it() -> None:
    """As they are set now, or as an epoch that learned from them had them."""
    costs = "--set=labels.costs={false_positive = 1, false_negative = 10}"
    replayed("a.jsonl", "--set", "learner.kind=averaged-perceptron")
    replayed("b.jsonl")
    told = ok("compare", "a.jsonl", "b.jsonl", costs, log=None).stdout
    found = json.loads(ok("compare", "a.jsonl", "b.jsonl", "--json", costs, log=None).stdout)

    assert found["second"]["cost"] > found["second"]["mistakes"]
    assert (found["better"], found["cheaper"]) == ("first", "first")
    assert f", cost {found['first']['cost']:g}" in told
    assert "cheaper     the first ('a.jsonl') by " in told

    replayed("c.jsonl", "--set=learner.cost_sensitive=true", costs)
    learned = json.loads(ok("compare", "c.jsonl", "b.jsonl", "--json", log=None).stdout)
    assert learned["second"]["cost"] == found["second"]["cost"]
    wrong = run("compare", "a.jsonl", "b.jsonl", "--set=labels.costs={cat = {dog = 5}}", log=None)
    assert wrong.exit_code == 2


def replayed(file: str, *options: str) -> None:
    ok("replay", PAGES, "-q", "--judged", file, *options, log=None)


def test_a_recording_replayed_afresh_is_compared_with_itself_as_recorded() -> None:
    """The same worker's step gives the same predictions, so they never differ."""
    champion, _ = both()
    ok("record", "day.jsonl", *flags(champion), log=None)
    ok("replay", "day.jsonl", "-q", "--judged", "again.jsonl", log=None)
    found = json.loads(ok("compare", "day.jsonl", "again.jsonl", "--json", log=None).stdout)

    assert (found["pairs"], found["kinds"], found["better"]) == (300, [], None)
    assert found["evidence"] == {
        "only_first_right": 0, "only_second_right": 0, "fraction": "1", "decimal": 1.0
    }  # fmt: skip


def test_its_json_is_as_its_schema_says() -> None:
    """Both of the command's own."""
    both()
    schema = json.loads(ok("compare", "--schema", log=None).stdout)
    found = json.loads(ok("compare", "main.", "new.", "--json").stdout)

    jsonschema.validate(found, schema)
    assert schema["title"] == "compare"


# --- bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("main.", "main."), 2, "'main.' is given twice"),
        (("", ""), 2, "'' is given twice"),
        (("a.jsonl", "./a.jsonl"), 2, "are one file"),
        (("a.jsonl", "nowhere.jsonl"), 2, "nowhere.jsonl cannot be read: there is no such file"),
        (("a.jsonl", PAGES), 2, "is neither a recording nor a file of judged predictions"),
        (("main.", "other."), 3, "under the prefix 'other.', so none has predicted there"),
        (("main.", "idle."), 3, "idle. holds no prediction that a label has judged"),
        (("main.", "a.jsonl"), 3, "have no labelled id in common (300 and 1250 ids)"),
        (("a.jsonl", "flipped.jsonl"), 3, "id 'page-0001' has the label"),
        (("a.jsonl", "broken.jsonl"), 2, "broken.jsonl: judged predictions, line 3"),
        (("a.jsonl",), 2, "Missing argument 'B'"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_told(words: tuple[str, ...], code: int, told: str) -> None:
    """Whose fault it is, and what to do."""
    champion, _ = both()
    with opened(altered(champion, log={"url": "sqlite:log.db", "prefix": "idle."})):
        pass
    replayed("a.jsonl")
    lines = Path("a.jsonl").read_text().splitlines(keepends=True)
    first = lines[1].replace('"label":true', '"label":0').replace('"label":false', '"label":true')
    Path("flipped.jsonl").write_text(lines[0] + first.replace('"label":0', '"label":false'))
    Path("broken.jsonl").write_text("".join(lines[:2]) + "{}\n")
    found = run("compare", *words)

    assert found.exit_code == code
    assert told in found.stderr
    assert not found.stdout


def test_judged_predictions_that_cannot_be_written_are_told() -> None:
    """Before the replay."""
    found = run("replay", PAGES, "--judged", "no/folder.jsonl", log=None)

    assert found.exit_code == 2
    assert "--judged: no/folder.jsonl cannot be written" in found.stderr
