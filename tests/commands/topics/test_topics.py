"""`topics`: create, check, schema, on the sqlite log."""

import json
from pathlib import Path

from tests.commands.support.command_line import ok, run


def test_a_dry_run_creates_nothing() -> None:
    """The plan alone is printed."""
    assert "create" in ok("topics", "create", "--dry-run").stdout
    assert not Path("log.db").exists()


def test_created_topics_pass_the_check() -> None:
    """Creating them a second time changes nothing."""
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
