"""`health`: the worker's answer, or that there is none."""

import http.server
import socket
import threading
from collections.abc import Iterator

import pytest

from tests.commands.support.command_line import ok, run


class _Worker(http.server.BaseHTTPRequestHandler):
    """Alive, but not ready."""

    def do_GET(self) -> None:
        status, answer = (200, b"well\n") if self.path == "/healthz" else (503, b"rebuilding\n")
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@pytest.fixture
def worker() -> Iterator[str]:
    """The address of a worker."""
    with http.server.HTTPServer(("127.0.0.1", 0), _Worker) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_health_prints_the_workers_answer(worker: str) -> None:
    """Exit code 0 when well."""
    assert ok("health", "--set", f"http.address={worker}").stdout == "well\n"


def test_a_worker_that_is_not_ready_is_exit_code_3(worker: str) -> None:
    """The answer says why it is not ready."""
    result = run("health", "--ready", "--set", f"http.address={worker}")
    assert (result.exit_code, result.stdout) == (3, "rebuilding\n")


def test_nobody_at_the_address_is_exit_code_4() -> None:
    """The address is named."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        result = run("health", "--set", f"http.address={address}")
    assert result.exit_code == 4
    assert address in result.stderr
