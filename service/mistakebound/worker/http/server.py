"""`/metrics`, `/healthz` and `/readyz` over HTTP, for scrapers and probes; and pages for people.

1. An open port proves nothing: `/healthz` and `/readyz` answer 200 or 503 as `health` judges.
2. GET and HEAD of these three paths and of the pages, one request per connection; all else is refused.
3. No peer can tie up memory or threads: request heads of at most 8 KiB within 5 s, 16 connections at once.
4. A browser may load only what comes from here; no other site may frame a page or read it. On a loopback
   address, pages are served only under names of this machine: a site whose name was pointed at 127.0.0.1
   (DNS rebinding) gets no page.
5. Requests are not logged.
"""

import errno
import io
import ipaddress
import json
import re
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import urlsplit

from mistakebound.worker.health import HealthCheck
from mistakebound.worker.http.tls import Tls
from mistakebound.worker.known_secrets import redacted
from mistakebound.worker.metrics.metrics import Metrics

MOST_HEAD_BYTES = 8_192
MOST_HEAD_S = 5.0
MOST_CONNECTIONS = 16
MOST_TRIES = 100
"""Ports tried by `next_free`."""
GUARDS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers that restrict the browser, sent with every answer."""

Page = Callable[[], tuple[bytes, str]]
"""Gives a body and its content type. Called in any thread, several at a time."""
Pages = Mapping[str, Page]
"""By path."""


class AddressError(Exception):
    """The address cannot be listened on (exit code 4). The text says why and what to do."""


class AddressBusy(AddressError):
    """Another process listens there."""


def parse_address(text: str) -> tuple[str, int]:
    """`host:port` or `[ipv6]:port` to its parts. Raises ValueError, naming the setting."""
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if bracketed:
        host = host[1:-1]
    if not (colon and host and port.isascii() and port.isdigit() and int(port) <= 65_535) or (
        ":" in host and not bracketed
    ):
        raise ValueError(
            f"http.address: {text!r} is not host:port with a port up to 65535; "
            "write for example 127.0.0.1:9464, or [::1]:9464, or 127.0.0.1:0 for any free port"
        )
    return host, int(port)


def serve(
    address: str,
    metrics: Metrics,
    health: HealthCheck,
    pages: Pages | None = None,
    *,
    tls: Tls | None = None,
    next_free: bool = False,
) -> "Server":
    """Listen on `address` and answer in daemon threads until `close`.

    Port 0 takes any free one. With `next_free`, a busy port is skipped for the next, up to 100 tries.
    Raises ValueError for a malformed address, AddressBusy, AddressError.
    """
    host, port = parse_address(address)
    last = min(port + MOST_TRIES - 1, 65_535) if next_free and port else port
    for candidate in range(port, last + 1):
        try:
            return Server(host, candidate, metrics, health, pages or {}, tls)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise AddressError(
                    f"http.address: cannot listen on {address}: {error.strerror or error}; "
                    "choose an address of this machine and a port above 1023, or leave it empty for none"
                ) from error
    tried = f"{host}:{port}" if last == port else f"ports {port} to {last} of {host}"
    raise AddressBusy(
        f"http.address: {tried} in use by another process; "
        "stop it, or choose another with --set http.address=HOST:PORT (port 0 takes any free one)"
    )


class Server(socketserver.ThreadingTCPServer):
    """A listening server; `close` it, or use it as a context."""

    allow_reuse_address = True  # a restart need not wait for old connections to time out
    allow_reuse_port = False  # else a second worker would share the port unnoticed
    daemon_threads = True
    block_on_close = False
    request_queue_size = MOST_CONNECTIONS

    def __init__(
        self, host: str, port: int, metrics: Metrics, health: HealthCheck, pages: Pages, tls: Tls | None
    ) -> None:
        self.metrics, self.health, self.pages, self._host, self.tls = metrics, health, pages, host, tls
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self.address_family, *_, found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        super().__init__((str(found[0]), port), _Handler)
        self._guarded = ipaddress.ip_address(str(self.server_address[0])).is_loopback
        self._thread = threading.Thread(target=self.serve_forever, args=(0.1,), name="http", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """Where it listens, as `host:port` with the actual port."""
        host, port = str(self.server_address[0]), self.server_address[1]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @property
    def url(self) -> str:
        """The URL, without a path."""
        return f"{'http' if self.tls is None else 'https'}://{self.address}"

    def close(self) -> None:
        """Stop listening; the port is free when this returns. Safe to call twice."""
        self.shutdown()
        self._thread.join()
        self.server_close()

    def __exit__(self, *error: object) -> None:
        self.close()

    def admits_host(self, host: str | None) -> bool:
        """Whether pages are served under this Host header; browsers always send one."""
        if host is None or not self._guarded:
            return True
        name = host.rpartition(":")[0] if re.search(r":\d*$", host) else host
        return name.lower() in ("localhost", self._host.lower()) or _is_ip(name.strip("[]"))

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            if self.tls is not None:
                request = self.tls.wrapped(request, MOST_HEAD_S)
            super().process_request_thread(request, client_address)
        except OSError:
            """A failed handshake is not logged."""
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Not logged: the peer went away or sent nonsense."""


def _is_ip(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class _TooLargeError(Exception):
    pass


class _Head(io.RawIOBase):
    """The bytes of one request's head: limited in number and in time, however slow the peer is."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._left = MOST_HEAD_BYTES
        self._deadline_s = time.monotonic() + MOST_HEAD_S

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left_s = self._deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        if not self._left:
            raise _TooLargeError
        self._connection.settimeout(left_s)
        count = self._connection.recv_into(memoryview(buffer)[: self._left])
        self._left -= count
        return count


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version = "mistakebound"
    sys_version = ""
    timeout = MOST_HEAD_S

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self.rfile = io.BufferedReader(_Head(self.connection), 1024)

    def handle(self) -> None:
        self.close_connection = True
        self.requestline, self.command, self.request_version = "", "", "HTTP/1.0"
        try:
            self.raw_requestline = self.rfile.readline()
            if not self.raw_requestline or not self.parse_request():
                return
        except _TooLargeError:
            self._answer(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, b"request head too large\n")
            return
        self.close_connection = True
        if self.command not in ("GET", "HEAD"):
            self._answer(HTTPStatus.METHOD_NOT_ALLOWED, b"only GET and HEAD are served\n")
            return
        self._route(urlsplit(self.path).path)

    def _route(self, path: str) -> None:
        try:
            if self.server.tls is not None and not self.server.tls.admits(self.connection, path):
                self._answer(HTTPStatus.FORBIDDEN, b"a client certificate is required\n")
            elif path == "/metrics":
                body, content_type = self.server.metrics.page(self.headers.get("Accept", ""))
                self._answer(HTTPStatus.OK, body, content_type)
            elif path in ("/healthz", "/readyz"):
                health = self.server.health()
                good = health.live if path == "/healthz" else health.ready
                body = json.dumps(health.as_json()).encode() + b"\n"
                status = HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE
                self._answer(status, body, "application/json")
            elif path not in self.server.pages:
                self._answer(HTTPStatus.NOT_FOUND, b"not here; try /, /metrics, /healthz or /readyz\n")
            elif self.server.admits_host(self.headers.get("Host")):
                self._answer(HTTPStatus.OK, *self.server.pages[path]())
            else:
                refusal = b"use the address or localhost as the host; or set http.address to the name of this host\n"
                self._answer(HTTPStatus.MISDIRECTED_REQUEST, refusal)
        except OSError:  # the peer went away
            raise
        except Exception as error:  # noqa: BLE001 - the scraper must see that the page failed
            text = redacted(f"{type(error).__name__}: {error}\n")
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, text.encode())

    def _answer(
        self, status: HTTPStatus, body: bytes, content_type: str = "text/plain; charset=utf-8"
    ) -> None:
        self.connection.settimeout(MOST_HEAD_S)
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Connection", "close")
        for name, value in GUARDS.items():
            self.send_header(name, value)
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is http.server's
        """Not logged: one line per scrape would bury the rest."""
