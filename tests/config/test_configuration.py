"""Settings from flags, environment and file: who wins, what is refused, what is never shown."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from mistakebound.config.checks import require_for_run
from mistakebound.config.load import Loaded, load
from mistakebound.config.problems import ConfigurationError, Problem
from mistakebound.settings import Settings


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _file(text: str, name: str = "mistakebound.toml") -> Path:
    path = Path(name)
    path.write_text(text)
    return path


def _load(*sets: str, environ: Mapping[str, str] | None = None, config: Path | None = None) -> Loaded:
    return load(config, sets, None, environ or {})


def _problems(
    *sets: str, environ: Mapping[str, str] | None = None, config: Path | None = None
) -> Sequence[Problem]:
    with pytest.raises(ConfigurationError) as refusal:
        load(config, sets, None, environ or {})
    return refusal.value.problems


def _only(*sets: str, environ: Mapping[str, str] | None = None, config: Path | None = None) -> Problem:
    problems = _problems(*sets, environ=environ, config=config)
    assert len(problems) == 1, [str(problem) for problem in problems]
    return problems[0]


def test_without_anything_every_setting_has_its_default() -> None:
    """An empty folder and an empty environment are a complete configuration, but for `run`."""
    loaded = _load()
    assert loaded.settings == Settings()
    assert {origin.kind for origin in loaded.origins.values()} == {"default"}


def test_flag_beats_environment_beats_file_beats_default() -> None:
    """Key by key, and each origin is kept."""
    _file('[learner]\nkind = "winnow"\neta = 0.2\ninitial_weight = 3\n[log]\nprefix = "file."\n')
    environ = {"MISTAKEBOUND_LEARNER__KIND": "perceptron", "MISTAKEBOUND_LEARNER__ETA": "0.3"}
    loaded = _load("learner.kind=balanced-winnow", environ=environ)
    learner = loaded.settings.learner
    assert (learner.kind, learner.eta, learner.initial_weight) == ("balanced-winnow", 0.3, 3.0)
    assert str(loaded.origins["learner.kind"]) == "flag --set"
    assert str(loaded.origins["learner.eta"]) == "environment MISTAKEBOUND_LEARNER__ETA"
    assert str(loaded.origins["learner.initial_weight"]) == "file mistakebound.toml"
    assert str(loaded.origins["learner.tie"]) == "default"


def test_the_log_flag_beats_everything() -> None:
    """`--log` is the flag used most; it wins over `--set log.url`."""
    loaded = load(None, ["log.url=sqlite:a.db"], "sqlite:b.db", {"MISTAKEBOUND_LOG__URL": "sqlite:c.db"})
    assert loaded.settings.log.url == "sqlite:b.db"
    assert str(loaded.origins["log.url"]) == "flag --log"


def test_the_last_of_two_flags_wins() -> None:
    """As users expect who add a flag at the end of a line."""
    assert _load("learner.eta=1", "learner.eta=2").settings.learner.eta == 2


def test_a_named_file_takes_the_place_of_the_default_one() -> None:
    """They are not merged."""
    _file('[log]\nprefix = "default."\n')
    named = _file("[learner]\neta = 0.5\n", "other.toml")
    settings = _load(config=named).settings
    assert (settings.log.prefix, settings.learner.eta) == ("", 0.5)


def test_a_named_file_must_exist() -> None:
    """A typo in --config must not run the defaults."""
    assert "missing.toml" in str(_only(config=Path("missing.toml")))


def test_a_file_that_is_not_toml_is_refused_with_its_line() -> None:
    """The parser's place is kept."""
    _file("[log]\nurl = kafka\n")
    assert "line 2" in str(_only())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("spam", "spam"),
        ('"spam"', "spam"),
        ("true", True),
        ("1", 1),
        ("-1", -1),
        ('"1"', "1"),
        ("1.5", "1.5"),
        ("a=b", "a=b"),
    ],
)
def test_a_flags_label_is_what_toml_would_make_of_it(text: str, value: object) -> None:
    """true is a boolean, 1 an integer, everything else text; quotes force text."""
    other = {bool: "false", int: "7", str: "other"}[type(value)]
    positive = _load(f"labels.positive={text}", f"labels.negative={other}").settings.labels.positive
    assert (positive, type(positive)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "delay"),
    [("3600", timedelta(hours=1)), ("0.5", timedelta(milliseconds=500)), ("P7D", timedelta(days=7))],
)
def test_durations_are_seconds_or_iso_8601(text: str, delay: timedelta) -> None:
    """In flags, in the environment and in the file alike."""
    assert _load(f"labels.max_delay={text}").settings.labels.max_delay == delay
    environ = {"MISTAKEBOUND_LABELS__MAX_DELAY": text}
    assert _load(environ=environ).settings.labels.max_delay == delay


def test_text_settings_stay_text() -> None:
    """A prefix of digits is not a number."""
    assert _load("log.prefix=007").settings.log.prefix == "007"


def test_kafka_options_pass_through_with_their_types() -> None:
    """Numbers and booleans are such; what names a person or a secret stays text."""
    loaded = _load(
        "kafka.security_protocol=SASL_SSL",
        "kafka.request_timeout_ms=40000",
        "kafka.ssl_check_hostname=false",
        "kafka.sasl_plain_username=123",
        "kafka.sasl_plain_password=456",
    )
    assert loaded.settings.kafka == {
        "security_protocol": "SASL_SSL",
        "request_timeout_ms": 40000,
        "ssl_check_hostname": False,
        "sasl_plain_username": "123",
        "sasl_plain_password": "456",
    }


def test_a_secret_comes_from_a_file() -> None:
    """The variable names the file; the line end that editors leave is not part of the secret."""
    _file("s3cret\n", "secret")
    loaded = _load(environ={"MISTAKEBOUND_KAFKA__SASL_PLAIN_PASSWORD_FILE": "secret"})
    assert loaded.settings.kafka == {"sasl_plain_password": "s3cret"}
    assert str(loaded.origins["kafka.sasl_plain_password"]).endswith("SASL_PLAIN_PASSWORD_FILE")


def test_any_setting_can_come_from_a_file() -> None:
    """Not only secrets."""
    _file("winnow\n", "kind")
    assert _load(environ={"MISTAKEBOUND_LEARNER__KIND_FILE": "kind"}).settings.learner.kind == "winnow"


def test_a_missing_secret_file_is_refused() -> None:
    """Not taken for an empty secret."""
    problem = _only(environ={"MISTAKEBOUND_KAFKA__SASL_PLAIN_PASSWORD_FILE": "/nowhere"})
    assert problem.key == "kafka.sasl_plain_password"
    assert "/nowhere" in str(problem)


def test_a_secret_given_as_value_and_as_file_is_refused() -> None:
    """Nobody can tell which was meant."""
    _file("b", "secret")
    name = "MISTAKEBOUND_KAFKA__SASL_PLAIN_PASSWORD"
    assert "given twice" in str(_only(environ={name: "a", name + "_FILE": "secret"}))


def test_all_problems_are_told_at_once() -> None:
    """From every source, each with key, value, origin and remedy."""
    _file('[learner]\nkind = "perceptron"\ntie = "maybe"\n[nonsense]\nx = 1\n')
    environ = {"MISTAKEBOUND_BATCH__MAX_RECORDS": "0"}
    problems = _problems("labels.max_delay=soon", "http.address=nowhere", "flag", environ=environ)
    text = {problem.key: str(problem) for problem in problems}
    assert set(text) == {
        "learner.tie",
        "nonsense.x",
        "batch.max_records",
        "labels.max_delay",
        "http.address",
        "--set",
    }
    assert '"maybe" (file mistakebound.toml): must be' in text["learner.tie"]
    assert "= 0 (environment MISTAKEBOUND_BATCH__MAX_RECORDS)" in text["batch.max_records"]
    assert '"soon" (flag --set): not a duration. Write seconds (3600) or ISO 8601' in text["labels.max_delay"]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("learner.knd=x", "learner.kind"),
        ("labels.max-delay=1", "labels.max_delay"),
        ("topics.dead-letters=x", "topics.dead_letters"),
        ("label.positive=x", "labels.positive"),
        ("Learner.Kind=x", "learner.kind"),
        ("eta=1", "learner.eta"),
    ],
)
def test_an_unknown_key_is_refused_with_the_one_meant(given: str, meant: str) -> None:
    """A slip is never silently without effect."""
    assert f"Did you mean {meant}?" in str(_only(given))


def test_an_unknown_variable_is_refused() -> None:
    """Also in the environment."""
    assert "Did you mean learner.kind?" in str(_only(environ={"MISTAKEBOUND_LEARNER__KID": "x"}))


def test_a_variable_with_one_underscore_too_few_is_refused() -> None:
    """It would be without effect."""
    assert "Name it MISTAKEBOUND_LOG__URL" in str(_only(environ={"MISTAKEBOUND_LOG_URL": "sqlite:a"}))


def test_variables_of_the_surroundings_are_left_alone() -> None:
    """Kubernetes sets these for a service named mistakebound."""
    environ = {"MISTAKEBOUND_SERVICE_HOST": "10.0.0.1", "MISTAKEBOUND_PORT_9464_TCP": "x", "PATH": "/bin"}
    assert _load(environ=environ).settings == Settings()


def test_a_table_cannot_be_a_value() -> None:
    """The remedy names the form."""
    assert "learner.NAME" in str(_only("learner=winnow"))


def test_a_value_shadowed_by_a_flag_is_not_judged() -> None:
    """What is not in effect cannot be wrong."""
    _file('[learner]\ntie = "maybe"\n')
    assert _load("learner.tie=positive").settings.learner.tie == "positive"


@pytest.mark.parametrize(
    ("sets", "key"),
    [
        (["labels.positive=1", "labels.negative=1"], "labels.positive"),
        (["labels.positive=spam"], "labels.positive"),
        (["labels.positive=1", "labels.negative=false"], "labels.positive"),
        (["learner.delay_policy=issued"], "learner.delay_policy"),
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
        (["messages.id=id"], "messages.id"),
        (["learner.kind=percepton"], "learner.kind"),
    ],
)
def test_what_does_not_hold_together_is_refused(sets: list[str], key: str) -> None:
    """By the key to change, with a remedy."""
    problem = _only(*sets)
    assert problem.key == key
    assert problem.remedy


@pytest.mark.parametrize(
    "sets",
    [
        ["labels.positive=1", "labels.negative=-1"],
        ["labels.positive=spam", "labels.negative=ham"],
        ["learner.kind=perceptron", "learner.delay_policy=issued"],
        ["http.address=[::1]:9464"],
        ["http.address="],
        ["checkpoint.url="],
        ["log.url=kafka://a:9092,b:9093"],
        ["log.url=sqlite::memory:"],
    ],
)
def test_what_holds_together_is_taken(sets: list[str]) -> None:
    """The counterparts of the refusals."""
    _load(*sets)


def test_an_unknown_learner_names_the_known_ones() -> None:
    """And the one meant."""
    text = str(_only("learner.kind=percepton"))
    assert "Did you mean perceptron?" in text
    assert "winnow" in text


def test_run_needs_a_log_and_a_delay_and_says_both_at_once() -> None:
    """With an example of five lines; never a silent default."""
    with pytest.raises(ConfigurationError) as refusal:
        require_for_run(_load().settings)
    assert [problem.key for problem in refusal.value.problems] == ["log.url", "labels.max_delay"]
    example = Path("example.toml")
    example.write_text(str(refusal.value).partition("start from:\n")[2])
    assert len(example.read_text().strip().splitlines()) == 5
    require_for_run(_load(config=example).settings)


def test_secrets_are_masked_in_problems() -> None:
    """By the key's name, and credentials in URLs by their form."""
    problems = _problems(
        "kafak.sasl_plain_password=hunter2", "log.url=kafka://me:hunter2@host:9092", "sasl_password:hunter2"
    )
    text = str(ConfigurationError(problems))
    assert "hunter2" not in text
    assert "***" in text
