"""A newcomer's way, by the pages alone: a stream in Avro or in Debezium's JSON, a broker that asks for tokens, a mistake rate.

The broker, the registry and the browser are real; who issues tokens is a stand-in, with signed ones.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.commands.support.command_line import ENVIRON, start
from tests.deploy.support.pages import DEPLOY, fenced, section
from tests.deploy.support.worked import PATIENCE_S, output
from tests.security.support.issuer import CLIENT, SECRET
from tests.security.support.secured import Secured
from tests.worker.support.browser import Browser
from tests.worker.support.page_shown import photograph, text, title, visit

pytestmark = pytest.mark.chromium
TOPIC = r'(?<!"namespace": )"shop\.public\.(\w+)"(?=[,\n])'


class Newcomer:
    """In an empty folder, with the addresses, files and topics of their own in place of those on the pages."""

    def __init__(self, secured: Secured, scheme: str, prefix: str, registry: str = "") -> None:
        secret = Path("secret").absolute()
        secret.write_text(SECRET)
        authority = str(secured.certificates.authority)
        self._logged_in = f"{scheme}://{secured.address('oauth')}"
        self._own = {
            "http://localhost:8081": registry,
            "localhost:9092": secured.address("inside"),  # of those who write the inputs
            "/etc/mistakebound/ca.pem": authority,
            "/etc/mistakebound/issuer.pem": authority,
            "https://issuer.example/realms/kafka/protocol/openid-connect/token": f"{secured.issuer.url}/token",
            'client_id = "mistakebound"': f'client_id = "{CLIENT}"',
            "/run/secrets/oauth": str(secret),
        }
        self._prefix = prefix

    def own(self, block: str) -> str:
        for there, here in self._own.items():
            block = block.replace(there, here)
        return re.sub(TOPIC, rf'"{self._prefix}shop.public.\1"', block)

    def settle(self, settings: str) -> None:
        """Write the settings of a page, and what the page on security says of tokens."""
        (tokens,) = (
            block for _, block in fenced(section(DEPLOY / "security.md", "SASL")) if "sasl_oauth_url" in block
        )
        settings, changed = re.subn(
            r'^url = "(sqlite|kafka):.*"', f'url = "{self._logged_in}"', settings, flags=re.M
        )
        assert changed == 1
        Path("mistakebound.toml").write_text(self.own(f"{settings}\n{tokens}"))


@contextmanager
def page_of_worker() -> Iterator[str]:
    """The address of the page, as the worker says it, of `mistakebound run`."""
    worker = start("run")
    try:
        assert worker.stderr is not None
        told = (json.loads(line) for line in worker.stderr)
        yield next(line["page"] for line in told if line["event"] == "serving")
    finally:
        worker.kill()
        worker.communicate()


def of_avro(newcomer: Newcomer) -> None:
    """Up to `mistakebound run`, by the page on schemas; the producer is the page's, too."""
    shown = dict(fenced(section(DEPLOY / "schemas.md", "Debezium in Avro, step by step")))
    newcomer.settle(shown["toml"])
    Path("produce.py").write_text(newcomer.own(shown["python"]))
    output(shown["sh"].removesuffix("mistakebound run\n"))
    subprocess.run([sys.executable, "produce.py"], check=True, timeout=PATIENCE_S, env=os.environ)
    assert output("mistakebound config check --online").count("2 of 2 readable") == 2


def of_debezium_json(newcomer: Newcomer) -> None:
    """Up to `mistakebound run`, by the page on envelopes."""
    blocks = fenced(section(DEPLOY / "envelopes.md", "Debezium, step by step"))
    settings, _, payments, chargebacks, _ = (block for language, block in blocks if language == "sh")
    inside = re.search(r"<<'EOF'\n(.*?)^EOF$", settings, re.M | re.S)
    assert inside is not None
    newcomer.settle(inside[1])
    output("mistakebound topics create; mistakebound config check --online")
    output(payments.partition("mistakebound tail")[0])
    output(chargebacks)


@pytest.mark.parametrize(
    ("form", "scheme"), [("avro", "kafka"), ("avro", "kafka+confluent"), ("debezium-json", "kafka")]
)
def test_the_pages_lead_to_a_mistake_rate(
    form: str,
    scheme: str,
    secured: Secured,
    prefix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """One of two payments is fraud, which a model that knows nothing does not see."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(ENVIRON, "MISTAKEBOUND_HTTP__ADDRESS", "127.0.0.1:0")
    monkeypatch.setitem(ENVIRON, "MISTAKEBOUND_LOG__PREFIX", prefix)
    if form == "avro":
        of_avro(Newcomer(secured, scheme, prefix, request.getfixturevalue("apicurio_url")))
    else:
        of_debezium_json(Newcomer(secured, scheme, prefix))

    with page_of_worker() as page, Browser(tmp_path / "profile") as browser:
        visit(browser, page)
        browser.wait("document.getElementById('mistakes-of').innerText.startsWith('in 2 labelled')")
        assert text(browser, "mistakes-of") == "in 2 labelled: 50.0 %"
        assert title(browser).startswith("50.0 % mistakes")
        photograph(browser, f"first-page-{form}")
        assert browser.problems == []
