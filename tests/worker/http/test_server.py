"""The HTTP surface: what it answers, what it refuses, and what it does when the address is taken."""

import errno
import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from mistakebound.worker.health import Health
from mistakebound.worker.http import server as surface
from mistakebound.worker.http.server import AddressBusy, AddressError, Server, parse_address, serve
from mistakebound.worker.metrics.metrics import Metrics

READY = Health(True, True, "ok", "running", 0.0, ())
RESTORING = Health(True, False, "the worker is restoring", "restoring", 0.0, ())
STUCK = Health(False, False, "the loop has been silent for 400 s; restart the worker", "running", 400.0, ())


def metrics() -> Metrics:
    return Metrics(["true", "false"], "perceptron", "abc")


PAGES = {"/": lambda: (b"<!doctype html>", "text/html; charset=utf-8")}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serve("127.0.0.1:0", metrics(), lambda: READY, PAGES) as served:
        yield served


def ask(
    address: str, path: str, method: str = "GET", headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(address, timeout=10)
    try:
        connection.request(method, path, headers=headers or {})
        response = connection.getresponse()
        return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
    finally:
        connection.close()


def talk(address: str, sent: bytes) -> bytes:
    """Send these bytes, and no more; everything that comes back."""
    host, port = parse_address(address)
    with socket.create_connection((host, port), timeout=20) as connection:
        connection.sendall(sent)
        received = b""
        while chunk := connection.recv(65_536):
            received += chunk
        return received


def test_metrics_are_served_as_text(server: Server) -> None:
    """A scraper without wishes gets Prometheus' text format."""
    status, headers, body = ask(server.address, "/metrics")
    assert status == 200
    assert headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert b"mistakebound_build_info" in body


def test_metrics_are_served_as_openmetrics_when_asked_for(server: Server) -> None:
    """Prometheus asks for OpenMetrics first, and gets it."""
    accept = {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"}
    status, headers, body = ask(server.address, "/metrics?x=1", headers=accept)
    assert status == 200
    assert headers["content-type"].startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")


@pytest.mark.parametrize(
    ("health", "live", "ready"), [(READY, 200, 200), (RESTORING, 200, 503), (STUCK, 503, 503)]
)
def test_probes_answer_by_the_judgement(health: Health, live: int, ready: int) -> None:
    """An open port is not health: the status is the judgement's, and the body says why."""
    with serve("127.0.0.1:0", metrics(), lambda: health) as server:
        for path, status in (("/healthz", live), ("/readyz", ready)):
            answered, headers, body = ask(server.address, path)
            assert answered == status
            assert headers["content-type"] == "application/json"
            assert json.loads(body)["reason"] == health.reason


def test_the_judgement_is_asked_for_each_time() -> None:
    """A probe never sees yesterday's health."""
    said = [READY, STUCK]
    with serve("127.0.0.1:0", metrics(), lambda: said.pop(0)) as server:
        assert [ask(server.address, "/healthz")[0] for _ in range(2)] == [200, 503]


def test_pages_are_served_by_path(server: Server) -> None:
    """A page has its own content type, and no cache keeps it."""
    status, headers, body = ask(server.address, "/")
    assert (status, body) == (200, b"<!doctype html>")
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert headers["cache-control"] == "no-store"


def test_a_browser_is_told_to_load_nothing_from_elsewhere(server: Server) -> None:
    """No inline script, no foreign asset, no frame around it, no guessing of types."""
    _, headers, _ = ask(server.address, "/")
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:9464", 200),
        ("localhost", 200),
        ("LOCALHOST:80", 200),
        ("[::1]:9464", 200),
        ("192.168.1.7:9464", 200),
        ("rebound.example", 421),
        ("rebound.example:9464", 421),
        ("127.0.0.1.rebound.example", 421),
        ("", 421),
    ],
)
def test_a_name_turned_to_the_loopback_address_shows_no_page(server: Server, host: str, status: int) -> None:
    """DNS rebinding: a foreign site that resolves to 127.0.0.1 gets no page, and learns the remedy."""
    answered, _, body = ask(server.address, "/", headers={"Host": host})
    assert answered == status
    assert status == 200 or b"localhost" in body
    assert ask(server.address, "/metrics", headers={"Host": host})[0] == 200


def test_an_address_that_is_open_to_the_network_is_known_by_any_name() -> None:
    """In a container the worker cannot know the names under which it is reached."""
    with serve("0.0.0.0:0", metrics(), lambda: READY, PAGES) as open_to_all:
        port = open_to_all.address.rpartition(":")[2]
        assert ask(f"127.0.0.1:{port}", "/", headers={"Host": "worker-0.prod.example"})[0] == 200


@pytest.mark.parametrize("path", ["/metrics/", "/healthz/x", "/../metrics", "/favicon.ico", "/page"])
def test_other_paths_are_not_found(server: Server, path: str) -> None:
    """Only the three paths and the pages exist, and the answer names them."""
    status, _, body = ask(server.address, path)
    assert status == 404
    assert b"/metrics" in body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "BREW"])
def test_other_methods_are_refused(server: Server, method: str) -> None:
    """Nothing can be changed over HTTP."""
    status, headers, _ = ask(server.address, "/metrics", method)
    assert status == 405
    assert headers["allow"] == "GET, HEAD"


def test_head_has_the_headers_of_get_and_no_body(server: Server) -> None:
    """HEAD costs the peer nothing."""
    status, headers, body = ask(server.address, "/healthz", "HEAD")
    assert (status, body) == (200, b"")
    assert int(headers["content-length"]) == len(ask(server.address, "/healthz")[2])


@pytest.mark.parametrize(
    "sent", [b"GET /metrics HTTP/1.1\r\n" + b"X: " + b"a" * 100_000, b"GET /" + b"a" * 100_000]
)
def test_an_oversized_head_is_refused(server: Server, sent: bytes) -> None:
    """A peer cannot fill the worker's memory."""
    try:
        answer = talk(server.address, sent)
    except ConnectionError:  # the refusal may overtake what is still being sent
        answer = b"HTTP/1.0 431"
    assert answer.startswith(b"HTTP/1.0 431")
    assert ask(server.address, "/healthz")[0] == 200


@pytest.mark.parametrize(
    "sent", [b"\r\n", b"\x16\x03\x01\x02\x00\x01\r\n", b"GET\r\n", b"GET / HTTP/9\r\n\r\n"]
)
def test_nonsense_gets_an_answer_or_a_closed_connection(server: Server, sent: bytes) -> None:
    """A TLS client or a port scanner harms nothing."""
    talk(server.address, sent)
    assert ask(server.address, "/healthz")[0] == 200


def test_a_slow_peer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole head has one deadline: a peer that drips bytes cannot hold a thread."""
    monkeypatch.setattr(surface, "MOST_HEAD_S", 0.2)
    with serve("127.0.0.1:0", metrics(), lambda: READY) as server:
        assert talk(server.address, b"GET /metrics HT") == b""


def test_connections_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Peers beyond the limit are turned away at once, and served again when the others are gone."""
    monkeypatch.setattr(surface, "MOST_CONNECTIONS", 2)
    entered, leave = threading.Semaphore(0), threading.Event()

    def health() -> Health:
        entered.release()
        assert leave.wait(30)
        return READY

    with serve("127.0.0.1:0", metrics(), health) as server:
        peers = [threading.Thread(target=ask, args=(server.address, "/healthz")) for _ in range(2)]
        for peer in peers:
            peer.start()
            assert entered.acquire(timeout=30)
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            ask(server.address, "/metrics")
        leave.set()
        for peer in peers:
            peer.join(30)
        assert _in_time(lambda: ask(server.address, "/metrics")[0]) == 200


def _in_time(request: Callable[[], int]) -> int:
    for _ in range(200):
        try:
            return request()
        except (http.client.HTTPException, ConnectionError):  # the thread is about to end
            threading.Event().wait(0.05)
    return request()


def test_an_error_in_the_page_is_an_answer_and_the_server_goes_on() -> None:
    """A scrape that fails shows as failed in Prometheus."""
    said: list[Health] = []
    with serve("127.0.0.1:0", metrics(), lambda: said[0]) as server:
        status, _, body = ask(server.address, "/healthz")
        assert (status, body) == (500, b"IndexError: list index out of range\n")
        said.append(READY)
        assert ask(server.address, "/healthz")[0] == 200


def test_requests_are_not_logged(server: Server, capfd: pytest.CaptureFixture[str]) -> None:
    """A scrape every few seconds leaves no line, nor does a bad request."""
    ask(server.address, "/metrics")
    ask(server.address, "/nowhere")
    talk(server.address, b"nonsense\r\n\r\n")
    assert capfd.readouterr() == ("", "")


def test_a_busy_address_names_itself_and_the_remedy(server: Server) -> None:
    """A second worker on the same explicit address is told so, and what to set."""
    with pytest.raises(AddressBusy) as refused:
        serve(server.address, metrics(), lambda: READY)
    assert server.address in str(refused.value)
    assert "--set http.address" in str(refused.value)


def test_the_next_free_port_is_taken_when_allowed(server: Server) -> None:
    """The demo comes up beside another one, and says where."""
    with serve(server.address, metrics(), lambda: READY, next_free=True) as second:
        (_, first_port), (_, second_port) = parse_address(server.address), parse_address(second.address)
        assert first_port < second_port < first_port + surface.MOST_TRIES
        assert ask(second.address, "/healthz")[0] == 200


def test_the_search_for_a_free_port_ends(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the last try the refusal names the whole range."""

    def busy(*_: object) -> None:
        raise OSError(errno.EADDRINUSE, "Address already in use")

    monkeypatch.setattr(surface, "Server", busy)
    with pytest.raises(AddressBusy, match=r"ports 20000 to 20099 of 127\.0\.0\.1"):
        serve("127.0.0.1:20000", metrics(), lambda: READY, next_free=True)


def test_an_address_of_another_machine_is_refused_with_a_remedy() -> None:
    """A wrong host is a wrong setting, not a busy port."""
    with pytest.raises(AddressError, match="choose an address of this machine") as refused:
        serve("192.0.2.1:0", metrics(), lambda: READY)
    assert not isinstance(refused.value, AddressBusy)


@pytest.mark.parametrize(
    "text", ["", "9464", ":9464", "host:", "host:x", "host:65536", "::1:9464", "host:-1"]
)
def test_a_malformed_address_is_refused_with_an_example(text: str) -> None:
    """The message names the setting, the value and the right form."""
    with pytest.raises(ValueError, match=r"http\.address: .*127\.0\.0\.1:9464"):
        parse_address(text)


@pytest.mark.parametrize(
    ("text", "parts"), [("127.0.0.1:0", ("127.0.0.1", 0)), ("[::1]:9464", ("::1", 9464)), ("h:1", ("h", 1))]
)
def test_addresses_are_host_and_port(text: str, parts: tuple[str, int]) -> None:
    """IPv4, bracketed IPv6 and names."""
    assert parse_address(text) == parts


def test_the_port_is_free_after_closing() -> None:
    """A worker that drained leaves the address to its successor; closing twice is harmless."""
    first = serve("127.0.0.1:0", metrics(), lambda: READY)
    ask(first.address, "/healthz")
    first.close()
    first.close()
    with serve(first.address, metrics(), lambda: READY) as second:
        assert second.address == first.address
