"""Metrics, page and probes over TLS: who may look, what is bounded, and what wrong files say."""

import shutil
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from http.client import HTTPResponse, HTTPSConnection
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mistakebound.commands.app import app
from mistakebound.settings import HttpSettings
from mistakebound.worker.health import Health
from mistakebound.worker.http import server as http
from mistakebound.worker.http.tls import Tls, TlsError, tls_of
from mistakebound.worker.metrics.metrics import Metrics
from tests.security.support.certificates import KEY_PASSWORD, Certificates, Pair

PROBES = ("/healthz", "/readyz")
CLOSED = ("/metrics", "/", "/api/status", "/nothing-there")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("http"))


def healthy() -> Health:
    from mistakebound.worker.health import HealthLimits, Heartbeat

    return Heartbeat().health(HealthLimits())


def listening(tls: Tls | None) -> http.Server:
    metrics = Metrics(["true", "false"], "perceptron", "digest")
    pages = {path: lambda: (b"page", "text/plain") for path in ("/", "/api/status")}
    return http.serve("127.0.0.1:0", metrics, healthy, pages, tls=tls)


@pytest.fixture
def open_to_all(certificates: Certificates) -> Iterator[http.Server]:
    """Shows a certificate and asks for none."""
    with listening(Tls(str(certificates.server.certificate), str(certificates.server.key), None)) as server:
        yield server


@pytest.fixture
def closed(certificates: Certificates) -> Iterator[http.Server]:
    """Asks for a certificate of the authority."""
    files = (certificates.server.certificate, certificates.server.key, certificates.authority)
    with listening(Tls(*map(str, files))) as server:
        yield server


def ask(server: http.Server, path: str, certificates: Certificates, shown: Pair | None = None) -> int:
    """The answer's status. Raises what the handshake does."""
    context = ssl.create_default_context(cafile=str(certificates.authority))
    if shown is not None:
        context.load_cert_chain(shown.certificate, shown.key)
    host, _, port = server.address.rpartition(":")
    connection = HTTPSConnection(host, int(port), timeout=10, context=context)
    try:
        connection.request("GET", path)
        response: HTTPResponse = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()


def test_everything_is_served_over_tls(open_to_all: http.Server, certificates: Certificates) -> None:
    """With a certificate that any client verifies; the address says so."""
    assert open_to_all.url.startswith("https://127.0.0.1:")
    assert ask(open_to_all, "/metrics", certificates) == 200
    assert ask(open_to_all, "/", certificates) == 200
    assert ask(open_to_all, "/healthz", certificates) in (200, 503)


def test_in_the_clear_nothing_is_served(open_to_all: http.Server) -> None:
    """A client that speaks HTTP to a TLS port gets no answer, or a TLS alert."""
    host, _, port = open_to_all.address.rpartition(":")
    with socket.create_connection((host, int(port)), 10) as plain:
        plain.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        try:
            received = plain.recv(4096)
        except ConnectionError:
            received = b""
    assert b"HTTP/" not in received


def test_old_protocols_are_refused(open_to_all: http.Server) -> None:
    """TLS 1.2 is the oldest."""
    import warnings

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    host, _, port = open_to_all.address.rpartition(":")
    with (
        socket.create_connection((host, int(port)), 10) as plain,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        context.wrap_socket(plain)


def test_without_a_client_certificate_only_probes_are_answered(
    closed: http.Server, certificates: Certificates
) -> None:
    """A kubelet has none; everybody else is told what is missing."""
    for path in PROBES:
        assert ask(closed, path, certificates) in (200, 503)
    for path in CLOSED:
        assert ask(closed, path, certificates) == 403


def test_with_a_client_certificate_everything_is_answered(
    closed: http.Server, certificates: Certificates
) -> None:
    """One that the authority signed."""
    statuses = {path: ask(closed, path, certificates, certificates.client) for path in CLOSED}
    assert statuses == {"/metrics": 200, "/": 200, "/api/status": 200, "/nothing-there": 404}


@pytest.mark.parametrize("which", ["foreign_client", "expired_client"])
def test_a_wrong_client_certificate_gets_nothing(
    closed: http.Server, certificates: Certificates, which: str
) -> None:
    """Not even a probe: a client that shows a certificate is judged by it."""
    with pytest.raises((ssl.SSLError, ConnectionError)):
        ask(closed, "/healthz", certificates, getattr(certificates, which))


def test_a_handshake_that_never_comes_holds_nothing_up(
    open_to_all: http.Server, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each waits in its own thread, for so long; others are answered meanwhile, and then all places are free."""
    monkeypatch.setattr(http, "MOST_HEAD_S", 0.5)
    host, _, port = open_to_all.address.rpartition(":")
    silent = [socket.create_connection((host, int(port)), 10) for _ in range(http.MOST_CONNECTIONS - 1)]
    try:
        assert ask(open_to_all, "/metrics", certificates) == 200
        for each in silent:
            each.settimeout(10)
            assert each.recv(1) == b""
    finally:
        for each in silent:
            each.close()
    end = time.monotonic() + 10
    while sum(thread.name.startswith("Thread-") for thread in threading.enumerate()) > 1:
        assert time.monotonic() < end
        time.sleep(0.02)
    assert ask(open_to_all, "/metrics", certificates) == 200


def test_a_renewed_certificate_is_taken_and_half_a_one_is_not(
    certificates: Certificates, tmp_path: Path
) -> None:
    """While certificate and key do not fit together, the ones before go on."""
    certificate, key = tmp_path / "http.pem", tmp_path / "http.key"
    for source, target in ((certificates.expired.certificate, certificate), (certificates.expired.key, key)):
        shutil.copy(source, target)
    with listening(Tls(str(certificate), str(key), None)) as server:
        for source, target in (
            (certificates.server.certificate, certificate),
            (certificates.server.key, key),
        ):
            with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
                ask(server, "/metrics", certificates)
            shutil.copy(source, target)
        assert ask(server, "/metrics", certificates) == 200


@pytest.mark.parametrize("key", ["tls_certificate", "tls_key", "tls_client_authority"])
def test_a_file_that_cannot_be_used_is_named_with_its_key(
    certificates: Certificates, tmp_path: Path, key: str
) -> None:
    """A missing one, a folder, text."""
    text = tmp_path / "text.pem"
    text.write_text("certainly not PEM")
    good = {
        "tls_certificate": str(certificates.server.certificate),
        "tls_key": str(certificates.server.key),
        "tls_client_authority": str(certificates.authority),
    }
    for path in (str(tmp_path / "missing.pem"), str(tmp_path), str(text)):
        with pytest.raises(TlsError) as refusal:
            tls_of(HttpSettings.model_validate(good | {key: path}))
        assert f"http.{key} = {path!r}" in str(refusal.value)


def test_files_that_do_not_fit_together_are_named(certificates: Certificates) -> None:
    """Another's key, a locked key, a key without a certificate."""
    server, client = certificates.server, certificates.client
    for given, wanted in (
        ({"tls_certificate": str(server.certificate), "tls_key": str(client.key)}, "is not the key of"),
        (
            {"tls_certificate": str(client.certificate), "tls_key": str(certificates.encrypted_key)},
            "unencrypted",
        ),
        ({"tls_key": str(server.key)}, "http.tls_key has no effect"),
        ({"tls_client_authority": str(certificates.authority)}, "http.tls_client_authority has no effect"),
    ):
        with pytest.raises(TlsError, match=wanted):
            tls_of(HttpSettings.model_validate(given))
    assert KEY_PASSWORD not in str(given)


def test_without_a_certificate_it_is_http() -> None:
    """On the machine itself that is enough."""
    assert tls_of(HttpSettings()) is None


# The commands


def health(server: http.Server, pair: Pair, *more: str) -> Result:
    sets = (f"http.address={server.address}", f"http.tls_certificate={pair.certificate}", *more)
    return CliRunner().invoke(app, ["health", *[part for one in sets for part in ("--set", one)]])


def test_health_asks_over_tls(
    open_to_all: http.Server, closed: http.Server, certificates: Certificates
) -> None:
    """By the certificate itself, whatever names it holds; and where clients must show one, too."""
    for server in (open_to_all, closed):
        told = health(server, certificates.server)
        assert told.exit_code in (0, 3), told.output
        assert '"live"' in told.stdout


def test_health_does_not_trust_another_certificate(
    open_to_all: http.Server, certificates: Certificates
) -> None:
    """Somebody else listens there: exit code 4, though the same authority signed it."""
    told = health(open_to_all, certificates.client)
    assert told.exit_code == 4
    assert "http.tls_certificate" in told.stderr


def test_run_and_config_check_refuse_wrong_files(certificates: Certificates, tmp_path: Path) -> None:
    """Exit code 2 with the key's name, before the log is touched."""
    needed = (
        "labels.max_delay=60",
        f"http.tls_certificate={tmp_path / 'missing.pem'}",
        "http.address=127.0.0.1:0",
    )
    sets = [part for one in needed for part in ("--set", one)]
    for verb in (["config", "check"], ["run"]):
        told = CliRunner().invoke(app, [*verb, "--log", f"sqlite:{tmp_path / 'none.db'}", *sets])
        assert told.exit_code == 2, told.output
        assert "http.tls_certificate" in told.stderr
        assert "Traceback" not in told.output
    assert not (tmp_path / "none.db").exists()
