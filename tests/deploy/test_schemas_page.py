"""The page on schemas: its example, run word by word on a real broker with a real registry; its other settings are valid."""

import os
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from mistakebound.settings import Settings
from tests.commands.support.command_line import ENVIRON, start
from tests.deploy.support.pages import DEPLOY, fenced, section
from tests.deploy.support.worked import PATIENCE_S, output

PAGE = DEPLOY / "schemas.md"
EXAMPLE = "Debezium in Avro, step by step"


def blocks(part: str, language: str) -> list[str]:
    return [text for name, text in fenced(section(PAGE, part)) if name == language]


def test_the_example_prints_what_it_says(
    kafka_bootstrap: str,
    apicurio_url: str,
    prefix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only the addresses and the topics' names are the test's own."""

    def placed(text: str) -> str:
        text = text.replace("localhost:9092", kafka_bootstrap).replace("http://localhost:8081", apicurio_url)
        return re.sub(r'(?<!"namespace": )"shop\.public\.(\w+)"(?=[,\n])', rf'"{prefix}shop.public.\1"', text)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(ENVIRON, "MISTAKEBOUND_HTTP__ADDRESS", "127.0.0.1:0")
    monkeypatch.setitem(ENVIRON, "MISTAKEBOUND_LOG__PREFIX", prefix)
    (settings,) = blocks(EXAMPLE, "toml")
    Path("mistakebound.toml").write_text(placed(settings))
    (commands,) = blocks(EXAMPLE, "sh")
    create, check, run = commands.splitlines()
    output(create)
    output(check)
    assert run == "mistakebound run"
    (program,) = blocks(EXAMPLE, "python")
    Path("produce.py").write_text(placed(program))
    subprocess.run([sys.executable, "produce.py"], check=True, timeout=PATIENCE_S, env=os.environ)
    (printed,) = blocks(EXAMPLE, "text")
    worker = start("run")
    try:
        deadline = time.monotonic() + 2 * PATIENCE_S
        labelled = False
        while not labelled and time.monotonic() < deadline:
            labelled = "labelled 2" in output("mistakebound status")
        assert labelled
        shown = "mistakebound tail predictions --from beginning --count 2 | cut -d , -f 1-5 | sort"
        assert output(shown) == printed
    finally:
        worker.kill()
        worker.communicate()


@pytest.mark.parametrize("part", ["A record of one's own", "Without a registry", "The registry"])
def test_the_settings_shown_are_settings(part: str) -> None:
    """By their names and kinds."""
    for text in blocks(part, "toml"):
        Settings.model_validate(tomllib.loads(text))
