"""`config`: check, show, schema."""

import json
from pathlib import Path

from tests.commands.support.command_line import LOG, ok, run
from tests.support.registry import stand_in


def test_config_check_tells_all_that_run_needs() -> None:
    """Exit code 2 with every missing key."""
    result = run("config", "check", log=None)
    assert result.exit_code == 2
    assert "log.url" in result.stderr
    assert "labels.max_delay" in result.stderr
    assert ok("config", "check", "--set", "labels.max_delay=P1D").stdout == ""


def test_config_check_tells_problems_of_every_kind_at_once() -> None:
    """Of values, files, TLS and the log's client, and what is missing, each once."""
    wrong = ("learner.kind=x", "learner.concepts=@none", "labels.parking=soon", "http.tls_certificate=/none")
    options = ("kafka.foo=1", "kafka.enable_auto_commit=true")
    flags = [word for one in (*wrong, *options) for word in ("--set", one)]
    result = run("config", "check", *flags, log="kafka://127.0.0.1:9")
    first, *told = result.stderr.partition("\n\n")[0].splitlines()
    assert (result.exit_code, first) == (2, "7 problems in the configuration:")
    keys = [*(one.partition("=")[0] for one in (*wrong, *options)), "labels.max_delay"]
    assert sorted(each.split()[0].rstrip(":") for each in told) == sorted(keys)


def test_a_url_that_is_no_log_is_one_problem() -> None:
    """It is neither missing, too, nor told again by the client."""
    result = run("config", "check", "--set", "labels.max_delay=1", log="kafka://nowhere")
    assert (result.exit_code, result.stderr.count("log.url")) == (2, 1)


def test_settings_that_are_hardly_ever_wanted_are_warned_of() -> None:
    """By every verb that would learn with them; it is not an error."""
    Path("pages.csv").write_text("a,label\n1,true\n")
    winnow = ("--set", "learner.kind=winnow", "--set", "learner.threshold=0", "--set", "labels.max_delay=P1D")
    warning = "warning: learner.threshold = 0.0: where no feature is negative, winnow predicts positive"
    for verb in (["config", "check"], ["replay", "pages.csv"], ["demo", "--once", "--set=http.address="]):
        assert warning in ok(*verb, *winnow, log="sqlite:another.db").stderr, verb
        assert "warning" not in ok(*verb, "--set=labels.max_delay=P1D").stderr, verb


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


def test_config_check_online_asks_the_registry(tmp_path: Path) -> None:
    """Exit code 4 where it does not answer, 2 where it answers somebody else; nothing is asked without `--online`."""
    password = tmp_path / "password"
    password.write_text("wrong")
    with stand_in() as registry:
        registry.login = "me:right"
        given = ["messages.format=avro", f"registry.url={registry.url}", "registry.username=me"]
        given += [f"registry.password_file={password}", "labels.max_delay=P1D"]
        flags = [word for one in given for word in ("--set", one)]
        ok("topics", "create", *flags)
        ok("config", "check", *flags)
        assert registry.asked == []
        refused = run("config", "check", "--online", *flags)
        assert (refused.exit_code, "registry.username" in refused.stderr) == (2, True)
        password.write_text("right")
        ok("config", "check", "--online", *flags)
        registry.status = 503
        away = run("config", "check", "--online", *flags)
        assert (away.exit_code, "503" in away.stderr) == (4, True)
