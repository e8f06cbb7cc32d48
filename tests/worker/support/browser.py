"""A real headless Chromium, driven through its DevTools protocol over a pipe: no port, no driver, no library."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PATIENCE_S = 60.0
SWITCHES = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--remote-debugging-pipe",
)  # fmt: skip


class Browser:
    """One browser with one tab. `problems` collects errors of scripts and violations of the page's policy."""

    def __init__(self, profile: Path) -> None:
        """`profile`: a folder of its own. Raises AssertionError where there is no Chromium."""
        assert shutil.which("chromium"), "chromium is not on the PATH: apt-get install chromium"
        self.problems: list[str] = []
        self._number, self._buffer, self._replies = 0, b"", dict[int, Any]()
        (theirs_in, self._to), (self._from, theirs_out) = (_pipe(), _pipe())
        self._log = (profile.parent / "chromium.log").open("wb")
        self._process = subprocess.Popen(
            # the browser reads from 3 and writes to 4
            ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "bash", "chromium", *SWITCHES,
             f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(theirs_in, theirs_out), stdout=self._log, stderr=self._log, start_new_session=True,
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        (page,) = (each for each in self._call("Target.getTargets")["targetInfos"] if each["type"] == "page")
        attached = self._call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session: str | None = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    _session: str | None = None

    def open(self, url: str, ready: str) -> None:
        """Go there, and wait until an expression is truthy."""
        self.call("Page.navigate", url=url)
        self.wait(ready)

    def look(self, *, width: int = 1100, dark: bool = False, height: int = 900) -> None:
        """As a window of this size; a narrow one is a phone."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def ask(self, expression: str) -> Any:
        """The value of an expression on the page, a promise awaited. Raises AssertionError where it throws."""
        told = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def wait(self, expression: str) -> None:
        """Until an expression is truthy."""
        deadline = time.monotonic() + PATIENCE_S
        while not self.ask(f"!!({expression})"):
            assert time.monotonic() < deadline, f"{expression} is still false; {self.problems}"
            time.sleep(0.05)

    def screenshot(self, path: Path) -> None:
        """The whole page, as PNG."""
        told = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(told["data"]))

    def call(self, method: str, **parameters: Any) -> Any:
        """A command to the tab, and its result."""
        return self._call(method, self._session, **parameters)

    def _call(self, method: str, session: str | None = None, **parameters: Any) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while self._number not in self._replies:
            self._read()
        reply = self._replies.pop(self._number)
        assert "error" not in reply, f"{method}: {reply['error']}"
        return reply["result"]

    def _read(self) -> None:
        ready, _, _ = select.select([self._from], [], [], PATIENCE_S)
        assert ready, "the browser is silent"
        read = os.read(self._from, 1_000_000)
        assert read, f"the browser ended: {Path(self._log.name).read_text()[-1_000:]}"
        *messages, self._buffer = (self._buffer + read).split(b"\0")
        for message in map(json.loads, messages):
            if "id" in message:
                self._replies[message["id"]] = message
            elif message["method"] == "Runtime.exceptionThrown":
                self.problems.append(str(message["params"]["exceptionDetails"]))
            elif message["method"] == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
                said = message["params"]["entry"]["text"]
                if "net::ERR_CONNECTION" not in said:  # a worker that ended: the page tells it itself
                    self.problems.append(said)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.killpg(self._process.pid, 9)
        self._process.wait()
        os.close(self._to)
        os.close(self._from)
        self._log.close()


def _pipe() -> tuple[int, int]:
    """A pipe (read, write) whose descriptors are not 3 or 4."""
    ends = os.pipe()
    read, write = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return read, write
