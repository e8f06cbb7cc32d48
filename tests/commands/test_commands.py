"""The command line as users meet it: output, messages and exit codes, on the sqlite log."""

import http.server
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mistakebound.commands.app import VERBS
from tests.commands.support.command_line import ENVIRON, LOG, ok, run, start


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith("MISTAKEBOUND_"):
            monkeypatch.delenv(name)


# --- the frame --------------------------------------------------------------------------------------


def test_alone_it_prints_the_help() -> None:
    """Nobody has to know --help; the exit codes are in it."""
    result = ok(log=None)
    assert "Commands:" in result.stdout
    assert "Exit codes: 0 done; 1 a bug" in result.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb: str) -> None:
    """With the options that all share, or its own verbs; some read no settings."""
    text = ok(verb, "--help", log=None).stdout
    assert "--config" in text or "Commands:" in text or verb in ("learners", "teach")


def test_help_imports_nothing_slow() -> None:
    """It answers at once."""
    code = (
        "import sys; from typer.testing import CliRunner; from mistakebound.commands.app import app; "
        "CliRunner().invoke(app, ['--help']); "
        "print(sorted({'pydantic', 'numpy', 'kafka', 'msgspec'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, env=ENVIRON, timeout=60
    )
    assert result.stdout.strip() == b"[]"


def test_the_version_is_printed() -> None:
    """For bug reports."""
    assert ok("--version", log=None).stdout.startswith("mistakebound ")


def test_an_unknown_verb_or_option_is_a_usage_error() -> None:
    """Exit code 2, on stderr."""
    for arguments in (["recrod"], ["record", "--frm"], ["tail"]):
        result = run(*arguments, log=None)
        assert (result.exit_code, result.stdout) == (2, "")


@pytest.mark.long
def test_a_bug_shows_its_traceback_and_exits_1() -> None:
    """A bug report needs it."""
    code = (
        "import mistakebound.commands.health as h; h.read_settings = lambda *a: 1 / 0\n"
        "import sys; sys.argv = ['mistakebound', 'health']\n"
        "from mistakebound.__main__ import main; main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=False, env=ENVIRON, timeout=60
    )
    assert result.returncode == 1
    assert b"ZeroDivisionError" in result.stderr


def test_a_command_without_a_log_says_how_to_name_one() -> None:
    """Exit code 2; never a silent default."""
    result = run("topics", "check", log=None)
    assert result.exit_code == 2
    assert "log.url: missing" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    """`mistakebound record - | head -1`."""
    ok("topics", "create")
    ok(
        "send",
        "examples",
        "-",
        stdin=b"".join(b'{"id":%d,"pad":"%s"}\n' % (n, b"x" * 900) for n in range(500)),
    )
    process = start("record", "-", "--log", LOG)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=60) == 0
    assert b"Error" not in process.stderr.read()
    process.stderr.close()


# --- config -----------------------------------------------------------------------------------------


def test_config_check_tells_all_that_run_needs() -> None:
    """Exit code 2 with every missing key."""
    result = run("config", "check", log=None)
    assert result.exit_code == 2
    assert "log.url" in result.stderr
    assert "labels.max_delay" in result.stderr
    assert ok("config", "check", "--set", "labels.max_delay=P1D").stdout == ""


def test_config_check_online_asks_the_log() -> None:
    """Exit code 3 while topics are missing."""
    arguments = ("config", "check", "--online", "--set", "labels.max_delay=P1D")
    assert run(*arguments).exit_code == 3
    ok("topics", "create")
    ok(*arguments)


def test_config_show_has_value_and_origin_of_every_key() -> None:
    """As a table and as JSON; secrets are masked."""
    Path("mistakebound.toml").write_text("[learner]\neta = 0.5\n")
    flags = ("--set", "kafka.sasl_plain_password=hunter2")
    shown = json.loads(ok("config", "show", "--json", *flags).stdout)
    assert shown["learner.eta"] == {"value": 0.5, "origin": "file", "from": "mistakebound.toml"}
    assert shown["log.url"] == {"value": LOG, "origin": "flag", "from": "--log"}
    assert shown["learner.tie"] == {"value": "mistake", "origin": "default", "from": None}
    assert shown["kafka.sasl_plain_password"]["value"] == "***"
    table = ok("config", "show", *flags).stdout
    assert "hunter2" not in table
    assert len(table.splitlines()) == len(shown) + 1


def test_config_schema_is_json_schema() -> None:
    """Printed without any configuration at hand."""
    assert json.loads(ok("config", "schema", log=None).stdout)["title"] == "mistakebound.toml"


# --- topics -----------------------------------------------------------------------------------------


def test_a_dry_run_creates_nothing() -> None:
    """The plan alone is printed."""
    assert "create" in ok("topics", "create", "--dry-run").stdout
    assert not Path("log.db").exists()


def test_created_topics_pass_the_check() -> None:
    """And creating twice changes nothing."""
    ok("topics", "create", "--partitions", "3")
    assert "all topics exist" in ok("topics", "create").stderr
    checks = json.loads(ok("topics", "check", "--json").stdout)
    assert {check["verdict"] for check in checks} == {"ok"}
    assert {check["found"] for check in checks if check["rule"] == "partitions"} == {"3"}


def test_another_partition_count_is_refused() -> None:
    """Exit code 5: keys would change their place."""
    ok("topics", "create", "--partitions", "3")
    result = run("topics", "create", "--partitions", "4")
    assert result.exit_code == 5
    assert "new log.prefix" in result.stderr


def test_missing_topics_fail_the_check() -> None:
    """Exit code 3, with the remedy."""
    result = run("topics", "check")
    assert result.exit_code == 3
    assert "topics create" in result.stderr


def test_topics_schema_prints_a_schema_for_each_message() -> None:
    """One topic's, or all."""
    every = json.loads(ok("topics", "schema", log=None).stdout)
    assert set(every) >= {"examples", "labels", "predictions", "outcomes", "updates"}
    assert json.loads(ok("topics", "schema", "examples", log=None).stdout) == every["examples"]
    assert run("topics", "schema", "other", log=None).exit_code == 2


# --- health -----------------------------------------------------------------------------------------


class _Worker(http.server.BaseHTTPRequestHandler):
    """Alive, but not ready."""

    def do_GET(self) -> None:
        status, answer = (200, b"well\n") if self.path == "/healthz" else (503, b"rebuilding\n")
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@pytest.fixture
def worker() -> Iterator[str]:
    """The address of a worker."""
    with http.server.HTTPServer(("127.0.0.1", 0), _Worker) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_health_prints_the_workers_answer(worker: str) -> None:
    """Exit code 0 when well."""
    assert ok("health", "--set", f"http.address={worker}").stdout == "well\n"


def test_a_worker_that_is_not_ready_is_exit_code_3(worker: str) -> None:
    """And its answer says why."""
    result = run("health", "--ready", "--set", f"http.address={worker}")
    assert (result.exit_code, result.stdout) == (3, "rebuilding\n")


def test_nobody_at_the_address_is_exit_code_4() -> None:
    """The address is named."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        result = run("health", "--set", f"http.address={address}")
    assert result.exit_code == 4
    assert address in result.stderr
