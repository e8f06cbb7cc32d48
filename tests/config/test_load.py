"""Settings from flags, environment and file: who wins, and what is refused."""

from datetime import timedelta
from pathlib import Path

import pytest

from mistakebound.config.load import load
from mistakebound.config.problems import ConfigurationError
from mistakebound.settings import Settings
from tests.config.support.loading import load_sets, problem_of, problems_of, write


def test_without_anything_every_setting_has_its_default() -> None:
    """An empty folder and an empty environment are a complete configuration, but for `run`."""
    loaded = load_sets()
    assert loaded.settings == Settings()
    assert {origin.kind for origin in loaded.origins.values()} == {"default"}


def test_flag_beats_environment_beats_file_beats_default() -> None:
    """Key by key, and each origin is kept."""
    write('[learner]\nkind = "winnow"\neta = 0.2\ninitial_weight = 3\n[log]\nprefix = "file."\n')
    environ = {"MISTAKEBOUND_LEARNER__KIND": "perceptron", "MISTAKEBOUND_LEARNER__ETA": "0.3"}
    loaded = load_sets("learner.kind=balanced-winnow", environ=environ)
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
    assert load_sets("learner.eta=1", "learner.eta=2").settings.learner.eta == 2


def test_a_named_file_takes_the_place_of_the_default_one() -> None:
    """They are not merged."""
    write('[log]\nprefix = "default."\n')
    named = write("[learner]\neta = 0.5\n", "other.toml")
    settings = load_sets(config=named).settings
    assert (settings.log.prefix, settings.learner.eta) == ("", 0.5)


def test_a_named_file_must_exist() -> None:
    """A typo in --config must not run the defaults."""
    assert "missing.toml" in str(problem_of(config=Path("missing.toml")))


def test_a_file_that_is_not_toml_is_refused_with_its_line() -> None:
    """The parser's place is kept."""
    write("[log]\nurl = kafka\n")
    assert "line 2" in str(problem_of())


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
    positive = load_sets(f"labels.positive={text}", f"labels.negative={other}").settings.labels.positive
    assert (positive, type(positive)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "delay"),
    [("3600", timedelta(hours=1)), ("0.5", timedelta(milliseconds=500)), ("P7D", timedelta(days=7))],
)
def test_durations_are_seconds_or_iso_8601(text: str, delay: timedelta) -> None:
    """In flags, in the environment and in the file alike."""
    assert load_sets(f"labels.max_delay={text}").settings.labels.max_delay == delay
    environ = {"MISTAKEBOUND_LABELS__MAX_DELAY": text}
    assert load_sets(environ=environ).settings.labels.max_delay == delay


def test_text_settings_stay_text() -> None:
    """A prefix of digits is not a number."""
    assert load_sets("log.prefix=007").settings.log.prefix == "007"


def test_kafka_options_pass_through_with_their_types() -> None:
    """Numbers and booleans are such; what names a person or a secret stays text."""
    loaded = load_sets(
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
    write("s3cret\n", "secret")
    loaded = load_sets(environ={"MISTAKEBOUND_KAFKA__SASL_PLAIN_PASSWORD_FILE": "secret"})
    assert loaded.settings.kafka == {"sasl_plain_password": "s3cret"}
    assert str(loaded.origins["kafka.sasl_plain_password"]).endswith("SASL_PLAIN_PASSWORD_FILE")


def test_any_setting_can_come_from_a_file() -> None:
    """Any key may be read from a file, not only secrets."""
    write("winnow\n", "kind")
    assert load_sets(environ={"MISTAKEBOUND_LEARNER__KIND_FILE": "kind"}).settings.learner.kind == "winnow"


def test_a_missing_secret_file_is_refused() -> None:
    """Not taken for an empty secret."""
    problem = problem_of(environ={"MISTAKEBOUND_KAFKA__SASL_PLAIN_PASSWORD_FILE": "/nowhere"})
    assert problem.key == "kafka.sasl_plain_password"
    assert "/nowhere" in str(problem)


@pytest.mark.parametrize("option", ["sasl_plain_password", "sasl_oauth_client_secret", "ssl_password"])
def test_a_secret_of_the_client_may_be_in_a_file_that_the_file_or_a_flag_names(option: str) -> None:
    """As the pages on security have it."""
    write("hunter22\n", "held")
    write(f'[kafka]\n{option}_file = "held"\n')
    assert load_sets().settings.kafka == {option: "hunter22"}
    Path("mistakebound.toml").unlink()
    assert load_sets(f"kafka.{option}_file=held").settings.kafka == {option: "hunter22"}


def test_a_secret_given_as_value_and_as_file_is_refused() -> None:
    """Nobody can tell which was meant."""
    write("b", "secret")
    name = "MISTAKEBOUND_KAFKA__SASL_PLAIN_PASSWORD"
    assert "given twice" in str(problem_of(environ={name: "a", name + "_FILE": "secret"}))


def test_all_problems_are_told_at_once() -> None:
    """From every source, each with key, value, origin and remedy."""
    write('[learner]\nkind = "perceptron"\ntie = "maybe"\n[nonsense]\nx = 1\n')
    environ = {"MISTAKEBOUND_BATCH__MAX_RECORDS": "0"}
    problems = problems_of("labels.max_delay=soon", "http.address=nowhere", "flag", environ=environ)
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
    assert f"Did you mean {meant}?" in str(problem_of(given))


def test_an_unknown_variable_is_refused() -> None:
    """In the environment as in the file."""
    assert "Did you mean learner.kind?" in str(problem_of(environ={"MISTAKEBOUND_LEARNER__KID": "x"}))


def test_a_variable_with_one_underscore_too_few_is_refused() -> None:
    """Otherwise it would silently have no effect."""
    assert "Name it MISTAKEBOUND_LOG__URL" in str(problem_of(environ={"MISTAKEBOUND_LOG_URL": "sqlite:a"}))


def test_variables_of_the_surroundings_are_left_alone() -> None:
    """Kubernetes sets these for a service named mistakebound."""
    environ = {"MISTAKEBOUND_SERVICE_HOST": "10.0.0.1", "MISTAKEBOUND_PORT_9464_TCP": "x", "PATH": "/bin"}
    assert load_sets(environ=environ).settings == Settings()


def test_a_table_cannot_be_a_value() -> None:
    """The remedy names the form."""
    assert "learner.NAME" in str(problem_of("learner=winnow"))


def test_a_value_shadowed_by_a_flag_is_not_judged() -> None:
    """What is not in effect cannot be wrong."""
    write('[learner]\ntie = "maybe"\n')
    assert load_sets("learner.tie=positive").settings.learner.tie == "positive"


def test_secrets_are_masked_in_problems() -> None:
    """A secret is known by its key's name, credentials in a URL by their form."""
    problems = problems_of(
        "kafak.sasl_plain_password=hunter2", "log.url=kafka://me:hunter2@host:9092", "sasl_password:hunter2"
    )
    text = str(ConfigurationError(problems))
    assert "hunter2" not in text
    assert "***" in text


@pytest.mark.parametrize(
    ("costs", "wrong"),
    [
        ("{false_positive=2, false_negative=-1}", "false_negative: must be greater than or equal to 0. "),
        ("{false_positive=2, false_negative='much'}", "false_negative: must be a valid number, "),
        ("{fox={cat=2, dog=-1}}", "fox.dog: must be greater than or equal to 0. "),
        ("{fox={cat=[2]}}", "fox.cat: must be a valid number. "),
        ("{fox=[2]}", "fox: must be a valid number. "),
    ],
)
def test_of_several_costs_the_wrong_one_is_named(costs: str, wrong: str) -> None:
    """With the key of its table, and only what is wrong with it."""
    problem = str(problem_of(f"labels.costs={costs}"))
    assert f"(flag --set): {wrong}" in problem
