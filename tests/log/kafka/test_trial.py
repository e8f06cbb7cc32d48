"""Brokers without transactions: the real one, whose answers say so. It is told before the first record."""

import struct
import time
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from mistakebound.commands.app import app
from mistakebound.exit_codes import ExitCode
from mistakebound.log import open_log
from mistakebound.log.protocol import Refused
from mistakebound.settings import Settings
from tests.log.support.broker import Broker
from tests.log.support.proxy import Proxy, proxied_broker
from tests.log.support.requests import Kind, Request

SCHEMES = ("kafka", "kafka+confluent")
SOON_S = 20.0
REFUSED = 42
"""INVALID_REQUEST."""


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, Proxy]]:
    """A broker, and the way to it on which answers change."""
    with proxied_broker(tmp_path_factory.mktemp("proxied")) as both:
        yield both


@pytest.fixture
def proxy(proxied: tuple[Broker, Proxy]) -> Proxy:
    """As the broker is, until the test changes that."""
    proxied[1].change_answers(lambda _: False, lambda _, answer: answer)
    return proxied[1]


def settings(proxy: Proxy, prefix: str, scheme: str = "kafka") -> Settings:
    return Settings.model_validate({"log": {"url": f"{scheme}://127.0.0.1:{proxy.port}", "prefix": prefix}})


def without(*keys: int) -> "object":
    """An answer to ApiVersions that leaves these requests out."""

    def change(request: Request, answer: bytes) -> bytes:
        flexible = request.version >= 3
        begin, size = (11, 7) if flexible else (14, 6)  # after length, number, error, and how many there are
        many = answer[10] - 1 if flexible else struct.unpack(">i", answer[10:14])[0]
        assert many < 127, "the count takes another byte"
        entries = [answer[begin + size * i : begin + size * (i + 1)] for i in range(many)]
        rest = answer[begin + size * many :]
        kept = [each for each in entries if struct.unpack(">h", each[:2])[0] not in keys]
        count = bytes([len(kept) + 1]) if flexible else struct.pack(">i", len(kept))
        body = answer[4:10] + count + b"".join(kept) + rest
        return struct.pack(">i", len(body)) + body

    return change


def no_coordinator(request: Request, answer: bytes) -> bytes:
    """An answer to FindCoordinator that refuses."""
    number = answer[4:8]
    nowhere, error = struct.pack(">i", -1), struct.pack(">h", REFUSED)
    if request.version >= 4:
        one = b"\x01" + nowhere + b"\x01" + nowhere + error + b"\x00" + b"\x00"
        body = number + b"\x00" + struct.pack(">i", 0) + b"\x02" + one + b"\x00"
    elif request.version == 3:
        body = (
            number + b"\x00" + struct.pack(">i", 0) + error + b"\x00" + nowhere + b"\x01" + nowhere + b"\x00"
        )
    else:
        body = number + struct.pack(">i", 0) + error + struct.pack(">h", -1) + nowhere + b"\x00\x00" + nowhere
    return struct.pack(">i", len(body)) + body


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_broker_that_knows_no_requests_of_transactions_is_told_apart(
    proxy: Proxy, prefix: str, scheme: str
) -> None:
    """By the requests that it offers: as Event Hubs in its lower tiers, which has InitProducerId and no more."""
    proxy.change_answers(lambda request: request.is_a(Kind.API_VERSIONS), without(24, 25, 26, 28))
    with (
        open_log(settings(proxy, prefix, scheme)) as log,
        pytest.raises(Refused, match="AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, TxnOffsetCommit"),
    ):
        log.try_transactions()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_broker_that_knows_the_requests_and_refuses_them_is_told_apart(
    proxy: Proxy, prefix: str, scheme: str
) -> None:
    """By trying: as one whose transactions are switched off, and which has nobody to coordinate them."""
    proxy.change_answers(lambda request: request.is_a(Kind.FIND_COORDINATOR), no_coordinator)
    began = time.monotonic()
    with (
        open_log(settings(proxy, prefix, scheme)) as log,
        pytest.raises(Refused, match=r"begins no transaction: ask who coordinates .* InvalidRequestError"),
    ):
        log.try_transactions()
    assert time.monotonic() - began < SOON_S


@pytest.mark.parametrize("scheme", SCHEMES)
def test_config_check_tells_it_with_exit_code_3(proxy: Proxy, prefix: str, scheme: str) -> None:
    """Before the topics, which need not be there yet. The broker as it is has transactions."""
    url = str(settings(proxy, prefix, scheme).log.url)
    arguments = ("--log", url, "--set", f"log.prefix={prefix}", "--set", "labels.max_delay=P1D")
    said = CliRunner().invoke(app, ["config", "check", "--online", *arguments])
    assert "transactions: the log has them" in said.stderr

    proxy.change_answers(lambda request: request.is_a(Kind.API_VERSIONS), without(28))
    said = CliRunner().invoke(app, ["config", "check", "--online", *arguments])
    assert said.exit_code == ExitCode.CHECK_FAILED
    assert "the broker offers no transactions (it does not know TxnOffsetCommit)" in said.stderr
    assert "Managed brokers" in said.stderr
