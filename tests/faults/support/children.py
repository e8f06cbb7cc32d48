"""Child processes that a test may kill: each is ended by its pid whatever happens, and has last words."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.project import python_path

ENVIRON = {
    **{name: value for name, value in os.environ.items() if not name.startswith("MISTAKEBOUND_")},
    "PYTHONPATH": python_path(),
}
POLL_S = 0.02


class Child:
    """`python -m mistakebound ARGUMENTS` in the folder `home`, its output in files there.

    `first` is code that it runs before: to shorten a time limit that a test would otherwise wait for.
    """

    def __init__(self, home: Path, number: int, arguments: tuple[str, ...], first: str = "") -> None:
        self.arguments = arguments
        program = (
            ["-c", f"{first}\nfrom mistakebound.__main__ import main\nmain()"]
            if first
            else ["-m", "mistakebound"]
        )
        self._out, self._err = home / f"child-{number}.out", home / f"child-{number}.err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(
                [sys.executable, *program, *arguments],
                cwd=home,
                env=ENVIRON,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )

    @property
    def code(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._process.poll()

    @property
    def pid(self) -> int:
        return self._process.pid

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it at once and wait until it is gone. Nothing happens to one that has ended."""
        self._process.kill()
        self._process.wait(30)

    def ends(self, seconds: float) -> int:
        """Its exit code, which must come in time."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {seconds:g} s: {self.last_words()}") from None

    def out(self) -> str:
        return self._out.read_text(errors="replace")

    def err(self) -> str:
        return self._err.read_text(errors="replace")

    def last_words(self) -> str:
        tail = "\n".join(self.err().splitlines()[-25:])
        return f"`{' '.join(self.arguments)}` (exit code {self.code}) said at last:\n{tail}"


class Children:
    """All children of one test."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._started: list[Child] = []

    def start(self, *arguments: str, first: str = "") -> Child:
        child = Child(self.home, len(self._started), arguments, first)
        self._started.append(child)
        return child

    def ok(self, *arguments: str, seconds: float = 60) -> str:
        """The output of a command that must succeed."""
        child = self.start(*arguments)
        assert child.ends(seconds) == 0, child.last_words()
        return child.out()

    def json(self, *arguments: str) -> Any:
        """The same, for a command that prints JSON."""
        return json.loads(self.ok(*arguments))

    def kill(self) -> None:
        for child in self._started:
            child.kill()


def until(met: Callable[[], Any], seconds: float, wanted: str, child: Child | None = None) -> Any:
    """Wait until `met()` is true, and return it. Fails after so long, or once `child` has ended."""
    deadline = time.monotonic() + seconds
    while True:
        alive = child is None or child.code is None
        if found := met():
            return found
        said = "" if child is None else f"; {child.last_words()}"
        assert alive, f"the process ended while waiting until {wanted}{said}"
        assert time.monotonic() < deadline, f"waited {seconds:g} s in vain until {wanted}{said}"
        time.sleep(POLL_S)
