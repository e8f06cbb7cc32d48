"""Tokens instead of passwords: a real broker, an issuer of signed JWTs, and both clients by the same options."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from mistakebound.commands.errors import code_of
from mistakebound.exit_codes import ExitCode
from mistakebound.log import open_log
from mistakebound.log.protocol import Log, Unreachable
from mistakebound.settings import Settings
from tests.security.support.issuer import AUDIENCE, SECRET, Issuer
from tests.security.support.secured import Secured
from tests.worker.support.working import Recount, Run, example, label

CLIENTS = ("kafka", "kafka+confluent")
PATIENCE_S = 60.0
SHORT_S = 12.0
"""A token's life. kafka-python logs in again 5 to 15 % before it is over, once the connection's requests are answered; later,
the broker ends the connection, which costs a rebuild, and of these a worker makes ten. So this share must be long enough on
a busy machine, too."""


@pytest.fixture(params=CLIENTS)
def scheme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def issuer(secured: Secured) -> Iterator[Issuer]:
    """As it usually is, before the test and after it."""
    yield secured.issuer
    secured.issuer.life_s, secured.issuer.audience = 300.0, AUDIENCE


def settings_of(secured: Secured, scheme: str, **more: Any) -> Settings:
    return secured.settings("oauth", f"oauth-{time.monotonic_ns()}.", scheme=scheme, **more)


class Work:
    """A worker at work on a stream that goes on: an example and its label, again and again."""

    def __init__(self, log: Log, settings: Settings) -> None:
        log.create_topics(1, {})
        self._log, self._settings = log, settings
        self.sent = 0

    def send(self) -> None:
        number, self.sent = self.sent, self.sent + 1
        at = round(time.time() * 1000)
        self._log.append([example(number, {"a": 1.0}, at), label(number, number % 2 == 0, at)])

    def until(self, met: Callable[[], bool], meanwhile: Callable[[], None]) -> None:
        """Work until `met()` holds and all is worked off; `meanwhile` is called again and again."""
        end = time.monotonic() + PATIENCE_S
        is_met = False

        def stopping(idle: bool) -> bool:
            nonlocal end, is_met
            assert time.monotonic() < end, f"the worker waits for {'its work' if is_met else 'something'}"
            if not is_met and met():
                # What piled up while clients logged in again takes its own time.
                end, is_met = time.monotonic() + PATIENCE_S, True
            if is_met:
                return idle
            meanwhile()
            return False

        Run(self._log, self._settings, stopping=stopping)
        assert len(Recount(self._log, self._settings).predicted) == self.sent


def test_a_worker_works_with_a_token(secured: Secured, issuer: Issuer, scheme: str) -> None:
    """Topics, inputs, transactions, the group: one token serves all connections of a log."""
    settings = settings_of(secured, scheme, sasl_oauth_scope="kafka", sasl_oauth_extensions="traceId=1")
    issuer.asked.clear()
    with open_log(settings) as log:
        work = Work(log, settings)
        for _ in range(20):
            work.send()
        work.until(lambda: True, lambda: None)

    assert [each["scope"] for each in issuer.asked] == ["kafka"]


def test_a_token_is_renewed_while_the_worker_works(secured: Secured, issuer: Issuer, scheme: str) -> None:
    """The broker ends sessions with their tokens: clients log in again in time, amid transactions, too."""
    issuer.life_s = SHORT_S
    settings = settings_of(secured, scheme)
    issuer.asked.clear()
    with open_log(settings) as log, capture_logs() as logs:
        work = Work(log, settings)
        work.until(lambda: len(issuer.asked) > 2, work.send)

    print(logs)


def test_an_issuer_that_is_away_stops_nobody_whose_token_is_valid(
    secured: Secured, issuer: Issuer, scheme: str
) -> None:
    """It is asked again until it answers; what is committed meanwhile is committed once."""
    issuer.life_s = 2 * SHORT_S
    settings = settings_of(secured, scheme)
    with open_log(settings) as log:
        work = Work(log, settings)
        work.send()
        work.until(lambda: True, lambda: None)
        with issuer.gone():
            asked = len(issuer.asked)
            work.until(lambda: len(issuer.asked) > asked, work.send)
        work.send()
        work.until(lambda: True, lambda: None)


def refused(settings: Settings) -> str:
    with pytest.raises(Unreachable) as refusal, open_log(settings) as log:
        log.read("examples", 0, 0)
    assert code_of(refusal.value) is ExitCode.UNREACHABLE
    return str(refusal.value)


def test_a_wrong_secret_is_named_and_not_shown(secured: Secured, issuer: Issuer, scheme: str) -> None:
    """At once: the issuer's answer does not change by asking again."""
    said = refused(settings_of(secured, scheme, sasl_oauth_client_secret="another one"))

    assert "kafka.sasl_oauth_client_id, kafka.sasl_oauth_client_secret" in said
    assert "'invalid_client', 'no such client, or another secret'" in said
    assert SECRET not in said
    assert "another one" not in said


def test_a_token_for_others_is_refused_by_the_broker_and_named(
    secured: Secured, issuer: Issuer, scheme: str
) -> None:
    """A wrong audience: the issuer gave it, the broker does not take it."""
    issuer.audience = "billing"

    said = refused(settings_of(secured, scheme))

    assert "does not accept the token; compare its issuer, audience and scope" in said


def test_an_issuer_that_is_away_at_the_start_is_named(secured: Secured, issuer: Issuer, scheme: str) -> None:
    """Within the time that a broker has to answer."""
    with issuer.gone():
        said = refused(settings_of(secured, scheme))

    assert "/token gives no token now (503, 'temporarily_unavailable')" in said


def test_an_issuer_whose_certificate_nobody_trusts_is_not_asked(
    secured: Secured, issuer: Issuer, scheme: str
) -> None:
    """The secret would be told to whoever answers."""
    other = str(secured.certificates.foreign_authority)
    issuer.asked.clear()

    said = refused(settings_of(secured, scheme, sasl_oauth_cafile=other))

    assert "name in kafka.sasl_oauth_cafile the authority that signed it" in said
    assert issuer.asked == []


def of_file(path: Path) -> dict[str, Any]:
    """In place of an issuer."""
    names = ("url", "client_id", "client_secret", "cafile")
    return {**dict.fromkeys(f"sasl_oauth_{name}" for name in names), "sasl_oauth_jwt_path": str(path)}


@contextmanager
def mounted(path: Path, issuer: Issuer) -> Iterator[None]:
    """The file holds a fresh token every second, as a platform replaces it: at once, never in part."""
    ended = threading.Event()

    def replace() -> None:
        while True:
            new = path.with_suffix(".new")
            new.write_text(issuer.token() + "\n")
            new.replace(path)
            mounted_once.set()
            if ended.wait(1):
                return

    mounted_once = threading.Event()
    platform = threading.Thread(target=replace)
    platform.start()
    assert mounted_once.wait(PATIENCE_S)
    try:
        yield
    finally:
        ended.set()
        platform.join()


def test_a_token_in_a_file_is_read_again(
    secured: Secured, issuer: Issuer, scheme: str, tmp_path: Path
) -> None:
    """As platforms mount the identity of a workload, and replace it before it ends."""
    issuer.life_s = SHORT_S
    path = tmp_path / "jwt"
    settings = settings_of(secured, scheme, **of_file(path))
    with mounted(path, issuer), open_log(settings) as log:
        until = time.monotonic() + 1.5 * SHORT_S
        work = Work(log, settings)
        work.until(lambda: time.monotonic() > until, work.send)


def test_an_assertion_in_a_file_stands_for_the_secret(
    secured: Secured, issuer: Issuer, scheme: str, tmp_path: Path
) -> None:
    """The workload's own identity is exchanged for a token that the broker takes."""
    path = tmp_path / "jwt"
    path.write_text(issuer.token(audience="issuer"))
    issuer.asked.clear()
    more = {"sasl_oauth_client_secret": None, "sasl_oauth_jwt_path": str(path)}
    with open_log(settings_of(secured, scheme, **more)) as log:
        log.create_topics(1, {})

    (asked,) = issuer.asked
    assert asked["client_assertion"] == path.read_text()
    assert asked["authorization"] == ""


def test_a_missing_file_is_named(secured: Secured, scheme: str, tmp_path: Path) -> None:
    """It may be mounted a moment later: tried again until the time is up."""
    said = refused(settings_of(secured, scheme, **of_file(tmp_path / "none")))

    assert "kafka.sasl_oauth_jwt_path" in said
    assert "cannot be read: No such file or directory" in said
