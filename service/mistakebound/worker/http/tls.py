"""TLS for the HTTP server: which certificate it shows, and who may read.

Guarantees:

1. TLS 1.2 or newer. A handshake is bounded in time and happens in the connection's own thread.
2. With `http.tls_client_authority`, only clients with a certificate of that authority see more than the
   probes; a client with a wrong certificate sees nothing. Probes need no certificate: a kubelet has none.
3. Files that changed are read again at the next connection. While they do not fit together, because they are
   being replaced, the previous ones stay in use.
"""

import re
import ssl
import threading
from pathlib import Path
from socket import socket

import structlog

from mistakebound.settings import HttpSettings

PROBES = ("/healthz", "/readyz")
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)

_log = structlog.get_logger(__name__)


class TlsError(Exception):
    """A file cannot be used; the text names its key under [http] (exit code 2)."""


def tls_of(http: HttpSettings) -> "Tls | None":
    """TLS as the settings ask for it; None for plain HTTP. Raises TlsError."""
    if http.tls_certificate is not None:
        return Tls(http.tls_certificate, http.tls_key, http.tls_client_authority)
    for name in ("tls_key", "tls_client_authority"):
        if getattr(http, name) is not None:
            raise TlsError(f"http.{name} has no effect without http.tls_certificate; set both or neither")
    return None


class Tls:
    """The server's side. Safe to use from any thread."""

    def __init__(self, certificate: str, key: str | None, client_authority: str | None) -> None:
        """Raise TlsError naming the file's key."""
        self._certificate, self._key, self._client_authority = certificate, key, client_authority
        self._lock = threading.Lock()
        self._seen = self._stamps()
        self._context = self._load()

    def wrapped(self, connection: socket, seconds: float) -> ssl.SSLSocket:
        """The connection after its handshake. Raises OSError; the connection is closed then."""
        talking = self._current().wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        try:
            talking.settimeout(seconds)
            talking.do_handshake()
        except BaseException:
            talking.close()
            raise
        return talking

    def admits(self, connection: object, path: str) -> bool:
        """Whether the client may see what is at this path."""
        if self._client_authority is None or path in PROBES:
            return True
        return isinstance(connection, ssl.SSLSocket) and bool(connection.getpeercert())

    def _current(self) -> ssl.SSLContext:
        with self._lock:
            if (stamps := self._stamps()) != self._seen:
                self._seen = stamps
                try:
                    self._context = self._load()
                except TlsError as error:
                    _log.warning("certificate_not_taken", error=str(error))
            return self._context

    def _stamps(self) -> list[tuple[int, int, int] | None]:
        paths = (self._certificate, self._key, self._client_authority)
        return [None if path is None else _stamp(path) for path in paths]

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        _check_readable("tls_certificate", self._certificate)
        if self._key is not None:
            _check_readable("tls_key", self._key)
        try:
            # With some password, even a wrong one: else OpenSSL would ask for one on the terminal.
            context.load_cert_chain(self._certificate, self._key, lambda: "")
        except (ssl.SSLError, ValueError) as error:
            if getattr(error, "reason", "") == "KEY_VALUES_MISMATCH":
                raise TlsError(
                    f"http.tls_key = {self._key!r} is not the key of http.tls_certificate = {self._certificate!r}"
                ) from None
            raise TlsError(
                f"http.tls_certificate = {self._certificate!r} with http.tls_key = {self._key!r} is not a "
                "certificate and its unencrypted key in PEM; the certificate comes first in its file, then "
                "those that signed it"
            ) from None
        if self._client_authority is not None:
            _check_readable("tls_client_authority", self._client_authority)
            try:
                context.load_verify_locations(self._client_authority)
            except ssl.SSLError:
                raise TlsError(
                    f"http.tls_client_authority = {self._client_authority!r} holds no certificate in PEM"
                ) from None
            context.verify_mode = ssl.CERT_OPTIONAL
        return context


def asking() -> ssl.SSLContext:
    """For a client that asks a worker on this machine and then checks with `is_shown` that it was the right one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def is_shown(certificate: str, connection: object) -> bool:
    """Whether the other end shows the first certificate in this file. Raises TlsError."""
    _check_readable("tls_certificate", certificate)
    found = _CERTIFICATE.search(Path(certificate).read_text("ascii", "replace"))
    if found is None:
        raise TlsError(f"http.tls_certificate = {certificate!r} holds no certificate in PEM")
    shown = connection.getpeercert(binary_form=True) if isinstance(connection, ssl.SSLSocket) else None
    return shown == ssl.PEM_cert_to_DER_cert(found.group())


def _check_readable(name: str, path: str) -> None:
    try:
        with Path(path).open("rb"):
            return
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise TlsError(
            f"http.{name} = {path!r} cannot be read ({reason}); name a file that this user may read"
        ) from None


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
