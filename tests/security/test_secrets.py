"""A secret comes from a file or the environment, and goes nowhere but to the broker."""

import io
import json
import logging
import signal
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from typer.testing import CliRunner

from mistakebound.commands.app import app
from mistakebound.core.records import TOPICS
from mistakebound.log.kafka import KafkaLog
from mistakebound.worker import known_secrets, logs
from tests.faults.support.children import Child, Children, until
from tests.faults.support.deployment import address_of, assigned
from tests.security.support.rights import rights
from tests.security.support.secured import Secured, password
from tests.security.test_rights import FOREVER
from tests.worker.support.working import stream

SECRET = 'pa55"\\wörd%/+ x'
"""With all that JSON, Python and URLs spell otherwise."""


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What other tests hid, and these, is known only within one test."""
    monkeypatch.setattr(known_secrets, "_hidden", {})


@pytest.fixture
def logging_restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


def spellings(secret: str) -> list[str]:
    return [
        secret,
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        repr(secret)[1:-1],
    ]


def assert_hidden(text: str, secret: str = SECRET) -> None:
    assert not [each for each in spellings(secret) if each in text], text


# In a process that runs on a real broker


def toml(secured: Secured, prefix: str, secret_file: Path) -> str:
    """Settings as users write them, the password in a file."""
    options = secured.options("scram", sasl_plain_password=None, sasl_plain_password_file=str(secret_file))
    lines = [f"{name} = {json.dumps(value)}" for name, value in options.items()]
    return "\n".join(
        [
            "[log]",
            f'url = "kafka://{secured.address("scram")}"',
            f'prefix = "{prefix}"',
            '[labels]\nmax_delay = 1000\n[http]\naddress = "127.0.0.1:0"\n[worker]\nslot = "slot"',
            "[kafka]",
            *lines,
        ]
    )


def test_no_output_of_a_running_worker_holds_the_password(
    secured: Secured, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither its log at the level of debugging nor its pages, its topics, its positions, its checkpoint,
    its recording; nor what the verbs print, well or ill."""
    secret = password("worker")
    secret_file = tmp_path / "password"
    secret_file.write_text(secret + "\n")
    (tmp_path / "mistakebound.toml").write_text(toml(secured, prefix, secret_file))
    children = Children(tmp_path)
    held: list[str] = []
    with KafkaLog(secured.settings("inside", prefix)) as log, secured.granted(rights("worker", prefix)):
        log.create_topics(1, FOREVER)  # type: ignore[arg-type]
        log.append(stream(20))
        try:
            worker = assigned(children.start("run", "--log-level", "debug"))
            until(lambda: consumed(log), 30, "all is consumed", worker)
            held += [
                fetched(worker, path) for path in ("/metrics", "/", "/api/status", "/healthz", "/readyz")
            ]
            # Inherited by nobody who lists processes.
            held.append(Path(f"/proc/{worker_pid(worker)}/cmdline").read_text())
            worker.signal(signal.SIGTERM)
            assert worker.ends(30) == 0, worker.last_words()
            wrong = children.start("run", "--set", f"kafka.sasl_plain_password={secret}x")
            assert wrong.ends(60) == 4, wrong.last_words()
        finally:
            children.kill()
        held += [each for child in (worker, wrong) for each in (child.out(), child.err())]
        monkeypatch.chdir(tmp_path)
        for arguments, code in (
            (("config", "show"), 0),
            (("config", "show", "--json"), 0),
            (("status", "--json", "--model"), 0),
            (("config", "check", "--set", f"kafka.sasl_plain_pasword={secret}"), 2),
            (("config", "check", "--set", f"labels.max_delay={secret}"), 2),
            (("run", f"kafka.sasl_plain_password={secret}"), 2),
        ):
            told = CliRunner().invoke(app, list(arguments))
            assert told.exit_code == code, told.output
            held.append(told.output)
        held.append(repr(log.group_positions()))
        held += [repr(list(log.read(topic, 0, 0))) for topic in TOPICS]
    files = [path for path in (tmp_path / "checkpoints").rglob("*") if path.is_file()]
    assert files
    held += [path.read_bytes().decode("latin-1") for path in files]
    assert len(held) > 20
    assert '"event": "assigned"' in "".join(held)
    for text in held:
        assert_hidden(text, secret)


def consumed(log: KafkaLog) -> bool:
    at = log.group_positions()[0]
    highs = [log.high_watermark(topic, 0) for topic in ("examples", "labels")]
    return at is not None and [at.examples, at.labels] == highs


def fetched(worker: Child, path: str) -> str:
    with urllib.request.urlopen(f"{address_of(worker)}{path}", timeout=10) as answer:
        return str(answer.headers) + answer.read().decode()


def worker_pid(worker: Child) -> int:
    return worker._process.pid


# In this process: what nobody foresaw


def command(*arguments: str, **kafka: str) -> Any:
    sets = [part for name, value in kafka.items() for part in ("--set", f"kafka.{name}={value}")]
    return CliRunner().invoke(app, [*arguments, *sets])


def crash(*arguments: object, **options: object) -> None:
    try:
        raise ValueError(f"the library said {SECRET} and {SECRET!r}")
    except ValueError as error:
        raise RuntimeError(json.dumps({"options": SECRET})) from error


def test_a_crash_shows_its_traceback_without_the_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 1; causes are shown and masked like the error itself."""
    monkeypatch.setattr("mistakebound.log.open_log", crash)
    told = command("status", "--log", "sqlite::memory:", sasl_plain_password=SECRET)
    assert told.exit_code == 1
    assert "Traceback" in told.stderr
    assert "the library said *** and '***'" in told.stderr
    assert_hidden(told.output)


@pytest.mark.usefixtures("logging_restored")
@pytest.mark.parametrize("form", ["json", "console"])
def test_log_lines_do_not_hold_it_whoever_writes_them(form: logs.LogFormat) -> None:
    """Our own events and their tracebacks, and libraries' warnings."""
    known_secrets.hide(SECRET)
    written = io.StringIO()
    logs.configure(form, level="debug", stream=written)
    structlog.get_logger("mistakebound.any").debug("event", value=SECRET, more={"password": SECRET})
    logging.getLogger("kafka.any").warning("options %r", {"sasl_plain_password": SECRET})
    options = {"sasl_plain_password": SECRET, "other": "harmless"}
    try:
        crash(options)
    except RuntimeError:
        structlog.get_logger("mistakebound.any").exception("failed")
    assert written.getvalue().count("***") >= 5
    assert "harmless" not in written.getvalue(), "a traceback holds no locals"
    assert_hidden(written.getvalue())


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", f"kafka.sasl_plain_password={SECRET}"],
        [f"kafka.sasl_plain_password={SECRET}"],
        ["run", "--set", f"kafka.sasl_plain_password:{SECRET}"],
        ["run", "--set", f"kafak.sasl_plain_password={SECRET}"],
        ["config", "check", "--log", "kafka://user:pa55word@host:9092"],
    ],
)
def test_a_slip_in_the_arguments_is_reported_without_the_secret(arguments: list[str]) -> None:
    """Usage errors repeat what was given."""
    told = command(*arguments)
    assert told.exit_code == 2
    assert_hidden(told.output, "pa55")


def test_a_secrets_file_can_be_named_in_the_file_the_environment_and_a_flag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each way leads to the same option; its origin is shown, its value is not."""
    monkeypatch.chdir(tmp_path)
    Path("held").write_text(SECRET + "\n")
    Path("mistakebound.toml").write_text('[kafka]\nsasl_plain_password_file = "held"\n')
    monkeypatch.setattr(
        "mistakebound.log.open_log", lambda settings: opened.append(settings.kafka) or crash()
    )
    opened: list[dict[str, str]] = []
    ways = (
        ({}, ()),
        ({"MISTAKEBOUND_KAFKA__SASL_PLAIN_PASSWORD_FILE": "held"}, ()),
        ({}, ("--set", "kafka.sasl_plain_password_file=held")),
    )
    for environment, arguments in ways:
        with monkeypatch.context() as within:
            for name, value in environment.items():
                within.setenv(name, value)
            command("status", "--log", "sqlite::memory:", *arguments)
            assert opened.pop() == {"sasl_plain_password": SECRET}
            shown = command("config", "show", *arguments)
            assert '"***"' in shown.stdout
            assert_hidden(shown.output)


def test_a_missing_secrets_file_is_reported_by_the_options_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not taken for an empty secret; both ways at once are refused."""
    monkeypatch.chdir(tmp_path)
    told = command("config", "check", sasl_plain_password_file="/nowhere")
    assert told.exit_code == 2
    assert "kafka.sasl_plain_password (flag --set): the file /nowhere cannot be read" in told.stderr
    Path("held").write_text(SECRET)
    Path("mistakebound.toml").write_text(
        '[kafka]\nsasl_plain_password = "pa55word"\nsasl_plain_password_file = "held"\n'
    )
    told = command("config", "check")
    assert "given twice" in told.stderr
    assert_hidden(told.output)
    assert_hidden(told.output, "pa55word")


def test_the_environments_object_store_keys_are_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are no settings, and a library may tell of them all the same."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setattr("mistakebound.log.open_log", crash)
    told = command("status", "--log", "sqlite::memory:")
    assert "Traceback" in told.stderr
    assert_hidden(told.output)


def test_short_values_take_no_harmless_text_with_them() -> None:
    """They are masked where their key is shown."""
    known_secrets.hide("abc")
    assert known_secrets.redacted("abcdef") == "abcdef"


def test_the_longest_secret_is_replaced_first() -> None:
    """Else the end of one that begins like another would be left."""
    known_secrets.hide("secret")
    known_secrets.hide("secret-and-more")
    assert known_secrets.redacted("secret-and-more secret") == "*** ***"
