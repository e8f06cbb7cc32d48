"""The demo keeps to topics, groups and folders of its own, whatever a user's settings say, and says what it left aside."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from mistakebound.commands.demo.own_settings import read_own
from mistakebound.commands.demo.pages import read_pages
from mistakebound.core.records import TOPICS, Outgoing, Record
from mistakebound.log import open_log
from mistakebound.settings import Settings
from tests.commands.support.command_line import ok, run
from tests.worker.support.working import settings_on

HERE = ("--set", "http.address=127.0.0.1:0")
USERS = """
[log]
url = "sqlite:mine.db"
prefix = "prod."
partitions = 3

[topics]
examples = "payments"
labels = "chargebacks"

[messages]
id = "/payment/id"
features = "/payment/features"
label = "/fraud"

[learner]
kind = "halving"
concepts = "conjunctions"
variables = 3

[features]
bias = false

[labels]
classes = ["good", "bad"]
max_delay = "P30D"

[checkpoint]
url = "mine"

[worker]
group = "prod"
slot = "a"
"""


def mine() -> Settings:
    """The user's settings."""
    return Settings.model_validate(
        {
            "log": {"url": "sqlite:mine.db", "prefix": "prod."},
            "topics": {"examples": "payments", "labels": "chargebacks"},
        }
    )


@pytest.fixture
def users_log() -> Settings:
    """A log with one example of the user's, in topics of the user's names."""
    settings = mine()
    with open_log(settings) as log:
        log.create_topics(1, {})
        log.append([Outgoing("examples", 0, b"tx-1", b'{"id": "tx-1", "features": {"a": 1}}', (), 1_000)])
    return settings


def everything(settings: Settings) -> list[Record]:
    with open_log(settings) as log:
        return [one for topic in TOPICS for p in range(log.partitions) for one in log.read(topic, p, 0)]


def summary(text: str) -> str:
    """What does not depend on the speed of the machine."""
    return text[text.index("learner ") :]


@pytest.fixture
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """What the demo prints in an empty folder; the test then goes on in another one."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "users").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    printed = summary(ok("demo", "--once", *HERE, log=None).stdout)
    monkeypatch.chdir(tmp_path / "users")
    yield printed


def test_a_users_file_changes_nothing_about_the_demo(plain: str) -> None:
    """Neither where it works nor what it learns: the user's log holds what it held, and no folder is made."""
    settings = mine()
    with open_log(settings) as log:
        log.create_topics(1, {})
    before = everything(settings)
    Path("mistakebound.toml").write_text(USERS)

    done = ok("demo", "--once", *HERE, log=None)

    assert summary(done.stdout) == plain
    assert everything(settings) == before == []
    assert not Path("mine").exists()
    told = done.stderr.partition("ignored for the demo, of mistakebound.toml: ")[2].splitlines()[0]
    assert {
        "checkpoint.url",
        "labels.classes",
        "learner.kind",
        "log.url",
        "messages.id",
        "topics.examples",
    } <= {each.strip(",;") for each in told.split()}


def test_a_users_variables_change_nothing_about_the_demo(
    plain: str, monkeypatch: pytest.MonkeyPatch, users_log: Settings
) -> None:
    """They are named as well."""
    before = everything(users_log)
    for name, value in (
        ("LOG__URL", "sqlite:mine.db"),
        ("LOG__PREFIX", "prod."),
        ("TOPICS__EXAMPLES", "payments"),
        ("LABELS__MAX_DELAY", "P30D"),
        ("WORKER__GROUP", "prod"),
    ):
        monkeypatch.setenv(f"MISTAKEBOUND_{name}", value)

    done = ok("demo", "--once", *HERE, log=None)

    assert summary(done.stdout) == plain
    assert everything(users_log) == before
    assert (
        "of environment: labels.max_delay, log.prefix, log.url, topics.examples, worker.group" in done.stderr
    )


def test_settings_that_are_the_demos_anyway_are_not_named() -> None:
    """The container that sends the demo's pages has the variables of its worker."""
    environ = {
        "MISTAKEBOUND_LOG__PREFIX": "demo.",
        "MISTAKEBOUND_LABELS__MAX_DELAY": "P1D",
        "MISTAKEBOUND_LOG__URL": "kafka://k:1",
    }
    assert read_own(None, (), "kafka://k:1", environ, confirmed=False).ignored == []


def test_a_users_file_that_cannot_be_read_does_not_stop_the_demo() -> None:
    """It is the user's, and not the demo's; a file that is named must be right."""
    Path("mistakebound.toml").write_text("nonsense\n[")
    ok("demo", "--once", *HERE, log=None)

    assert run("demo", "--once", "--config", "mistakebound.toml", *HERE, log=None).exit_code == 2


@pytest.mark.parametrize("more", [["--once"], ["--only-producer"]])
def test_nothing_is_sent_among_others_records(more: list[str], users_log: Settings) -> None:
    """Even where every flag says so: the pages would be predicted and learned as if they were the user's."""
    before = everything(users_log)
    there = [f"--set=topics.{topic.replace('-', '_')}={users_log.topic_name(topic)}" for topic in TOPICS]

    refused = run("demo", *more, "--yes", *there, *HERE, log="sqlite:mine.db")

    assert refused.exit_code == 5
    assert "payments-0 of sqlite:mine.db holds records that are not the demo's" in refused.stderr
    assert "b'tx-1'" in refused.stderr
    assert everything(users_log) == before


def test_labels_of_others_are_seen_as_well(tmp_path: Path) -> None:
    """Of ids that the demo has too."""
    settings = settings_on(tmp_path / "mine.db", log={"url": f"sqlite:{tmp_path / 'mine.db'}"})
    with open_log(settings) as log:
        log.create_topics(1, {})
        value = json.dumps({"id": "page-0001", "fraud": True}).encode()
        log.append([Outgoing("labels", 0, b"page-0001", value, (), 1_000)])

    assert run("demo", "--once", *HERE, log=settings.log.url).exit_code == 5


@pytest.mark.parametrize("key", ["log.prefix", "topics.examples", "topics.updates", "worker.group"])
@pytest.mark.parametrize("more", [["--once"], ["--only-producer"]])
def test_another_place_must_be_confirmed(key: str, more: list[str]) -> None:
    """Nothing is made before."""
    refused = run("demo", *more, "--set", f"{key}=payments", *HERE)

    assert refused.exit_code == 2
    assert f"--set {key}=payments" in refused.stderr
    assert "--yes" in refused.stderr
    assert not Path("log.db").exists()


def test_a_demo_that_has_sent_all_says_how_to_begin_afresh() -> None:
    """A second one in the same folder would else be silent, and print the same numbers at once."""
    first = ok("demo", "--once", *HERE, log=None)
    again = ok("demo", "--once", *HERE, log=None)

    assert "in the log already" not in first.stderr
    assert "all 1,250 pages are in the log already, and none is sent again\n" in again.stderr
    assert "delete mistakebound-demo.db and what begins with mistakebound-demo.db- beside it" in again.stderr
    assert Path("mistakebound-demo.db").exists()
    assert Path("mistakebound-demo.db-checkpoints").is_dir()
    assert "(mistakebound-demo.db-checkpoints too)" in again.stderr
    assert again.stdout == first.stdout


def test_a_confirmed_prefix_is_taken() -> None:
    """The topics are there, with the demo's pages in them."""
    ok("demo", "--once", "--yes", "--set", "log.prefix=show.", *HERE)

    settings = Settings.model_validate({"log": {"url": "sqlite:log.db", "prefix": "show."}})
    with open_log(settings) as log:
        assert log.high_watermark("predictions", 0) == len(read_pages())


def test_a_demo_goes_on_in_topics_that_hold_its_own_pages() -> None:
    """The endless ones too, those with labels the wrong way round too."""
    ok("demo", "--once", *HERE)
    first = ok("demo", "--once", "--json", *HERE).stdout

    assert json.loads(first)["labelled"] == len(read_pages())
    assert ok("demo", "--once", "--json", *HERE).stdout == first


def test_on_kafka_the_demo_has_a_prefix_and_a_group_of_its_own_and_no_folder() -> None:
    """A production worker beside it would lose its partitions, its slot or its checkpoints otherwise."""
    Path("mistakebound.toml").write_text(USERS + '\n[kafka]\nsecurity_protocol = "SSL"\n')

    settings = read_own(None, (), "kafka://h:9092", {}, confirmed=False).settings

    assert settings.group == "demo.mistakebound"
    assert settings.worker.slot is None
    assert {settings.topic_name(topic) for topic in TOPICS} == {f"demo.{topic}" for topic in TOPICS}
    assert settings.checkpoint.url == ""
    assert settings.kafka == {"security_protocol": "SSL"}
    assert settings.messages == Settings().messages


def test_an_address_of_the_users_worker_is_no_address_of_the_demos(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one in the file is left to the worker; the one in a variable is where the search for a port begins."""
    with socket.create_server(("127.0.0.1", 0)) as busy:
        address = f"127.0.0.1:{busy.getsockname()[1]}"
        Path("mistakebound.toml").write_text(f'[http]\naddress = "{address}"\n')
        assert read_own(None, (), None, {}, confirmed=False).settings.http == Settings().http

        monkeypatch.setenv("MISTAKEBOUND_HTTP__ADDRESS", address)
        assert "status page on" in ok("demo", "--once", log=None).stderr
        assert run("demo", "--once", "--set", f"http.address={address}", log=None).exit_code == 4


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The present folder takes no files, not even root's: it is gone."""
    (gone := tmp_path / "gone").mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()


def test_a_demo_that_cannot_write_here_writes_where_a_variable_has_checkpoints(
    nowhere: None, tmp_path: Path
) -> None:
    """As in the image, whose one writable folder is that of the checkpoints; nothing is left aside then."""
    own = read_own(None, (), None, {"MISTAKEBOUND_CHECKPOINT__URL": str(tmp_path)}, confirmed=False)

    assert own.settings.log.url == f"sqlite:{tmp_path}/mistakebound-demo.db"
    assert own.settings.checkpoint.url == f"{tmp_path}/mistakebound-demo.db-checkpoints"
    assert own.ignored == []


@pytest.mark.parametrize("folder", ["s3://bucket/checkpoints", "/proc/nowhere"])
def test_a_demo_that_can_write_nowhere_says_so(nowhere: None, folder: str) -> None:
    """It names its log as ever, and opening that fails."""
    own = read_own(None, (), None, {"MISTAKEBOUND_CHECKPOINT__URL": folder}, confirmed=False)

    assert own.settings.log.url == "sqlite:mistakebound-demo.db"


def test_a_demo_that_cannot_go_on_says_how_to_begin_again() -> None:
    """Its file was written with another learner, or by another version."""
    ok("demo", "--once", *HERE, log=None)

    refused = run("demo", "--once", "--set", "learner.kind=winnow", *HERE, log=None)
    assert refused.exit_code == 5
    assert "learner.kind is 'winnow'" in refused.stderr
    assert "delete mistakebound-demo.db" in refused.stderr

    for left in Path().glob("mistakebound-demo.db*"):
        for file in left.iterdir() if left.is_dir() else ():
            file.unlink()
        left.rmdir() if left.is_dir() else left.unlink()
    ok("demo", "--once", "--set", "learner.kind=winnow", *HERE, log=None)
