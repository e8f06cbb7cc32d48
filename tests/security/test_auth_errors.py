"""Who gets in at which listener of a real broker, and what is said to those it refuses."""

import contextlib
import socket
from pathlib import Path

import pytest
from kafka.net.selector import NetworkSelector

from mistakebound.commands.app import app
from mistakebound.commands.errors import code_of
from mistakebound.exit_codes import ExitCode
from mistakebound.log.kafka import KafkaLog
from mistakebound.log.kafka.kafka_python import auth_errors
from mistakebound.log.protocol import LogError, Misconfigured, Unreachable
from tests.security.support.certificates import KEY_PASSWORD
from tests.security.support.secured import Secured


def turned_away(secured: Secured, door: str, code: ExitCode, **change: object) -> str:
    """The refusal of a client at this listener, with these changes to its options."""
    with pytest.raises(LogError) as refusal, KafkaLog(secured.settings(door, "p.", **change)):  # type: ignore[arg-type]
        pass
    assert code_of(refusal.value) is code
    return str(refusal.value)


@pytest.mark.parametrize("door", ["tls", "mtls", "scram"])
def test_the_right_certificate_or_password_opens_the_door(secured: Secured, door: str) -> None:
    """TLS, mutual TLS and SCRAM over TLS: the client is made, and the broker answers."""
    with KafkaLog(secured.settings(door, "p.")) as log:
        assert log._cluster.admin._client.list_topics() is not None


def test_a_key_may_be_encrypted(secured: Secured) -> None:
    """With the password that opens it."""
    key = str(secured.certificates.encrypted_key)
    with KafkaLog(secured.settings("mtls", "p.", ssl_keyfile=key, ssl_password=KEY_PASSWORD)):
        pass


def test_a_broker_of_an_unknown_authority_is_not_talked_to(secured: Secured) -> None:
    """Neither with another authority nor with the system's; the message names where to put the right one."""
    other = str(secured.certificates.foreign_authority)
    for authority in (other, None):
        said = turned_away(secured, "tls", ExitCode.UNREACHABLE, ssl_cafile=authority)
        assert secured.address("tls") in said
        assert "name in kafka.ssl_cafile the authority that signed it" in said


def test_a_broker_of_another_name_is_not_talked_to(secured: Secured) -> None:
    """The certificate is for the address, not for the name `localhost`."""
    said = turned_away(secured, "tls", ExitCode.UNREACHABLE, host="localhost")
    assert "not valid for 'localhost'" in said
    assert "log.url" in said
    assert "advertised.listeners" in said


def test_the_names_check_can_be_turned_off(secured: Secured) -> None:
    """On the user's own word."""
    with KafkaLog(secured.settings("tls", "p.", host="localhost", ssl_check_hostname=False)):
        pass


def test_an_expired_certificate_of_the_broker_is_named(secured: Secured) -> None:
    """Not as an unknown authority: the remedy is another."""
    said = turned_away(secured, "expired", ExitCode.UNREACHABLE)
    assert "certificate has expired" in said
    assert "renew the broker's certificate" in said


def test_a_missing_client_certificate_is_asked_for(secured: Secured) -> None:
    """By the names of both settings."""
    said = turned_away(secured, "mtls", ExitCode.UNREACHABLE, ssl_certfile=None, ssl_keyfile=None)
    assert "kafka.ssl_certfile and its key in kafka.ssl_keyfile" in said


@pytest.mark.parametrize("which", ["foreign_client", "expired_client"])
def test_a_client_certificate_that_the_broker_does_not_accept_is_named(secured: Secured, which: str) -> None:
    """Of an authority that the broker does not trust, or of yesterday."""
    pair = getattr(secured.certificates, which)
    change = {"ssl_certfile": str(pair.certificate), "ssl_keyfile": str(pair.key)}
    said = turned_away(secured, "mtls", ExitCode.UNREACHABLE, **change)
    assert "does not accept the certificate in kafka.ssl_certfile" in said


@pytest.mark.parametrize("wrong", [{"sasl_plain_password": "another-one"}, {"sasl_plain_username": "nobody"}])
def test_a_wrong_user_or_password_is_named(secured: Secured, wrong: dict[str, str]) -> None:
    """At once, by the names of both settings and not by their values; the broker does not say which it was."""
    said = turned_away(secured, "scram", ExitCode.UNREACHABLE, **wrong)
    assert "kafka.sasl_plain_username and kafka.sasl_plain_password" in said
    assert not [value for value in wrong.values() if value in said]


def test_a_mechanism_that_the_broker_does_not_offer_is_named(secured: Secured) -> None:
    """Not as a wrong password."""
    said = turned_away(secured, "scram", ExitCode.UNREACHABLE, sasl_mechanism="SCRAM-SHA-256")
    assert "does not offer this kafka.sasl_mechanism" in said


def test_sasl_at_a_listener_without_it_is_named(secured: Secured) -> None:
    """The remedy is another protocol, or another port."""
    known = secured.options("scram")
    sasl = {name: value for name, value in known.items() if name.startswith(("sasl_", "security_"))}
    said = turned_away(secured, "tls", ExitCode.UNREACHABLE, **sasl)
    assert "takes no SASL" in said
    assert "kafka.security_protocol" in said


@pytest.mark.parametrize(
    ("door", "change"),
    [
        ("tls", {"security_protocol": None, "ssl_cafile": None}),
        ("inside", {"security_protocol": "SSL"}),
        ("scram", {"security_protocol": "SSL", "sasl_mechanism": None, "sasl_plain_username": None,
                   "sasl_plain_password": None}),
    ],
    ids=["plain at TLS", "TLS at plain", "no SASL at SASL"],
)  # fmt: skip
def test_another_protocol_than_the_listeners_is_named_in_bounded_time(
    secured: Secured, door: str, change: dict[str, object]
) -> None:
    """The broker only hangs up: the message names the protocol in use, which is the thing to look at."""
    said = turned_away(secured, door, ExitCode.UNREACHABLE, **change, bootstrap_timeout_ms=500)
    protocol = change["security_protocol"] or "PLAINTEXT"
    assert f"kafka.security_protocol, which is {protocol}" in said


def test_an_answer_is_read_before_the_end_that_follows_it() -> None:
    """A broker says why and hangs up at once: the client by itself would tell of the end only."""
    ours, theirs = socket.socketpair()
    with contextlib.closing(NetworkSelector()) as net, ours, theirs:
        ours.setblocking(False)
        transport = auth_errors._Plain(net, ours)
        theirs.sendall(b"why")
        theirs.close()
        assert transport._sock_recv() == (b"why", None)
        received, error = transport._sock_recv()
        assert received == b""
        assert "disconnected" in str(error)


def test_a_command_ends_with_one_line_and_no_traceback(
    secured: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Like any other error of the user's."""
    from typer.testing import CliRunner

    monkeypatch.chdir(tmp_path)
    options = secured.options("scram", sasl_plain_password="another-one")
    sets = [part for name, value in options.items() for part in ("--set", f"kafka.{name}={value}")]
    told = CliRunner().invoke(app, ["status", "--log", f"kafka://{secured.address('scram')}", *sets])
    assert told.exit_code == ExitCode.UNREACHABLE
    (line,) = told.stderr.splitlines()
    assert "kafka.sasl_plain_password" in line


# Before any broker is asked


def misconfigured(**kafka: object) -> str:
    """What is wrong with these options; nobody listens at the address."""
    from mistakebound.settings import Settings

    with pytest.raises(Misconfigured) as refusal:
        KafkaLog(Settings.model_validate({"log": {"url": "kafka://127.0.0.1:1"}, "kafka": kafka}))
    assert code_of(refusal.value) is ExitCode.USAGE
    return str(refusal.value)


@pytest.mark.parametrize("name", ["ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_crlfile"])
def test_a_file_that_cannot_be_read_is_named_with_its_key(name: str, tmp_path: Path) -> None:
    """A missing one, a folder, and something that is no name of a file."""
    there = tmp_path / "there.pem"
    there.touch()
    for path in (str(tmp_path / "missing.pem"), str(tmp_path), "nul\0l", 7):
        given = {"ssl_certfile": str(there), name: path} if name == "ssl_keyfile" else {name: path}
        assert f"kafka.{name} = {path!r}" in misconfigured(security_protocol="SSL", **given)


def test_files_that_hold_something_else_are_named(secured: Secured, tmp_path: Path) -> None:
    """Text for an authority, another's key, a certificate without a key, a key that is locked."""
    text = tmp_path / "text.pem"
    text.write_text("certainly not a certificate")
    certificates = secured.certificates
    certificate = str(certificates.client.certificate)
    for given, wanted in (
        ({"ssl_cafile": str(text)}, "kafka.ssl_cafile"),
        ({"ssl_crlfile": str(text)}, "kafka.ssl_crlfile"),
        ({"ssl_certfile": str(text)}, "kafka.ssl_certfile"),
        ({"ssl_certfile": certificate}, "kafka.ssl_keyfile"),
        ({"ssl_certfile": certificate, "ssl_keyfile": str(certificates.server.key)}, "is not the key of"),
        (
            {"ssl_certfile": certificate, "ssl_keyfile": str(certificates.encrypted_key)},
            "set kafka.ssl_password",
        ),
        (
            {
                "ssl_certfile": certificate,
                "ssl_keyfile": str(certificates.encrypted_key),
                "ssl_password": "hunter22",
            },
            "kafka.ssl_password does not open",
        ),
    ):
        said = misconfigured(security_protocol="SSL", **given)
        assert wanted in said
        assert "hunter22" not in said


@pytest.mark.parametrize(
    ("kafka", "wanted"),
    [
        ({"security_protocol": "TLS"}, "kafka.security_protocol = 'TLS' does not exist"),
        ({"ssl_cafile": "ca.pem"}, "kafka.ssl_cafile would have no effect"),
        (
            {"security_protocol": "SSL", "sasl_plain_password": "x"},
            "kafka.sasl_plain_password would have no effect",
        ),
        ({"security_protocol": "SASL_SSL"}, "kafka.sasl_mechanism is missing"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM"}, "kafka.sasl_mechanism = 'SCRAM'"),
        (
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN"},
            "kafka.sasl_plain_username is missing",
        ),
        (
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_plain_username": "u"},
            "kafka.sasl_plain_password_file",
        ),
        ({"security_protocol": "SSL", "ssl_keyfile": "x.key"}, "kafka.ssl_keyfile has no effect without"),
        ({"ssl_context": "x"}, "kafka.ssl_context"),
        ({"sasl_oauth_token_provider": "x"}, "kafka.sasl_oauth_token_provider"),
    ],
)
def test_options_that_do_not_hold_together_are_named(kafka: dict[str, object], wanted: str) -> None:
    """What would be ignored, above all: whoever gives an authority does not mean to talk in the clear."""
    assert wanted in misconfigured(**kafka)


def test_one_of_several_servers_may_be_wrong(secured: Secured) -> None:
    """As in the middle of a change of certificates: the others are asked until they answer."""
    both = f"{secured.address('expired')},{secured.address('tls')}"
    settings = secured.settings("tls", "p.")
    changed = settings.model_copy(update={"log": settings.log.model_copy(update={"url": f"kafka://{both}"})})
    for _ in range(3):
        with KafkaLog(changed):
            pass


def test_all_of_several_servers_may_be_wrong(secured: Secured) -> None:
    """Then there is nothing to wait for."""
    both = f"{secured.address('expired')},{secured.address('expired', 'localhost')}"
    settings = secured.settings("tls", "p.")
    changed = settings.model_copy(update={"log": settings.log.model_copy(update={"url": f"kafka://{both}"})})
    with pytest.raises(Unreachable, match="the broker's certificate does not pass"):
        KafkaLog(changed)
