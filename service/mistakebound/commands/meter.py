"""How far a command is, on stderr: on a terminal one line that is written again and again, else a few lines.

Off a terminal the first comes after 10 s, and each next one when the command has taken twice as long: a run of a day
writes fourteen.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from mistakebound.commands.output import is_screen, print_message, rewrite

SCREEN_S = 0.2
"""Between two pictures on a terminal."""
FIRST_LINE_S = 10.0
GROWTH = 2
"""Of the time until the next line, off a terminal."""
LOOK_EVERY = 64
"""Records between two looks at the clock."""

Each = TypeVar("Each")


class Meter:
    """Writes what it is told, if it is time; for a `with`, which takes the line away at the end."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` in s."""
        self._clock, self._began_s = clock, clock()
        self._screen = is_screen(sys.stderr)
        self._next_s = SCREEN_S if self._screen else FIRST_LINE_S

    def __enter__(self) -> "Meter":
        return self

    def __exit__(self, *error: object) -> None:
        if self._screen:
            rewrite("")

    def show(self, text: Callable[[float], str]) -> None:
        """`text` is given the seconds since the beginning."""
        passed_s = self._clock() - self._began_s
        if passed_s < self._next_s:
            return
        if self._screen:
            self._next_s = passed_s + SCREEN_S
            rewrite(text(passed_s))
        else:
            self._next_s = GROWTH * passed_s
            print_message(text(passed_s))

    def counted(
        self, each: Iterable[Each], verb: str, total: Callable[[], int | None] = lambda: None
    ) -> Iterator[Each]:
        """What is given, unchanged; shows how many came, and a rate. `verb`, as "sending"; `total` if it is known."""
        count = 0

        def text(passed_s: float) -> str:
            known = total()
            of = "" if not known else f" of about {known:,}"
            return f"{verb}: {count:,}{of} records, {count / passed_s:,.0f} a second"

        for one in each:
            yield one
            count += 1
            if count % LOOK_EVERY == 0:
                self.show(text)
