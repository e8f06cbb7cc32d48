"""A stand-in for a schema registry: the part of Confluent's REST interface that serializers and the worker use, in memory.

Kept in the test's own process, so that a test can break it. What it answers was compared with a real one (Apicurio's), by
`tests/worker/registry/test_apicurio.py`, which runs the same records through both.
"""

import base64
import json
import ssl
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class StandIn:
    """Schemas by id, subjects with versions, and how the next answers are spoilt."""

    def __init__(self) -> None:
        self.schemas: list[dict[str, Any]] = []
        self.subjects: dict[str, list[int]] = {}
        self.asked: list[str] = []
        """Paths of all requests, in order."""
        self.status: int | None = None
        """Answer everything with this status."""
        self.silent = threading.Event()
        """Set: answer nothing until it is cleared."""
        self.login: str | None = None
        """`name:password`; others are sent away."""
        self.token: str | None = None
        self.url = ""

    def register(self, subject: str, schema: dict[str, Any]) -> int:
        """The id of a schema; the same for the same content."""
        content = {name: schema[name] for name in ("schema", "schemaType", "references") if schema.get(name)}
        if content not in self.schemas:
            self.schemas.append(content)
        found = self.schemas.index(content) + 1
        versions = self.subjects.setdefault(subject, [])
        if found not in versions:
            versions.append(found)
        return found

    def guid(self, number: int) -> str:
        return str(uuid.UUID(int=0xABC << 64 | number))

    def forget(self, number: int) -> None:
        """From now on nobody knows this id."""
        self.schemas[number - 1] = {}

    def answer(self, method: str, path: str, body: dict[str, Any] | None) -> tuple[int, Any]:
        parts = path.partition("?")[0].strip("/").split("/")
        found: tuple[int, Any] = 404, {"error_code": 404, "message": "HTTP 404 Not Found"}
        match method, parts:
            case "GET", ["subjects"]:
                found = 200, sorted(self.subjects)
            case "POST", ["subjects", subject, *_]:
                found = 200, self._registered(subject, self.register(subject, body or {}))
            case "GET", ["subjects", subject, "versions", version]:
                versions = self.subjects.get(subject, [])
                if 0 < int(version) <= len(versions):
                    found = 200, self._registered(subject, versions[int(version) - 1])
            case "GET", ["schemas", "ids", number]:
                found = self._schema(int(number))
            case "GET", ["schemas", "guids", guid]:
                known = range(1, len(self.schemas) + 1)
                found = self._schema(next((n for n in known if self.guid(n) == guid), 0))
        return found

    def _schema(self, number: int) -> tuple[int, Any]:
        if 0 < number <= len(self.schemas) and self.schemas[number - 1]:
            return 200, {**self.schemas[number - 1], "guid": self.guid(number)}
        return 404, {"error_code": 40403, "message": f"Schema {number} not found"}

    def _registered(self, subject: str, number: int) -> dict[str, Any]:
        version = self.subjects[subject].index(number) + 1
        return {
            "subject": subject,
            "id": number,
            "version": version,
            "guid": self.guid(number),
            **self.schemas[number - 1],
        }

    def refuses(self, authorization: str | None) -> bool:
        if self.login is not None:
            return authorization != "Basic " + base64.b64encode(self.login.encode()).decode()
        return self.token is not None and authorization != f"Bearer {self.token}"

    def __enter__(self) -> Self:
        return self


@contextmanager
def stand_in(context: ssl.SSLContext | None = None) -> Iterator[StandIn]:
    """One that answers at its `url`, over TLS where there is a context."""
    registry = StandIn()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            registry.asked.append(self.path)
            while registry.silent.is_set():
                threading.Event().wait(0.01)
            status, found = registry.status, {"error_code": registry.status, "message": "spoilt"}
            if status is None and registry.refuses(self.headers.get("Authorization")):
                status, found = 401, {"error_code": 401, "message": "Unauthorized"}
            if status is None:
                status, found = registry.answer(self.command, self.path, body)
            content = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            try:
                self.wfile.write(content)
            except OSError:  # who asked has gone
                self.close_connection = True

        do_GET = do_POST = _serve  # noqa: N815 - as the server calls them

        def log_message(self, *args: Any) -> None:
            """Not in a test's output."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    registry.url = f"http{'s' if context else ''}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        registry.silent.clear()
        server.shutdown()
        thread.join()
        server.server_close()
