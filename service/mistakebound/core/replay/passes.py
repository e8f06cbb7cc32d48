"""The standard multi-epoch perceptron (lecture 6): pass after pass over the same rows, shuffled or not.

Passes end when one needs no update, or at the number asked for. Theta after each pass is compared with
those before: one that came back, with updates in between, is the witness of the cycling theorem. Every update
adds at least the margin to u.theta for a separator u, so there is none (as far as the additions were exact,
as those of whole numbers are). Unshuffled, the same pass must follow it again and again: the passes stop there.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import numpy as np

from mistakebound.core.ledger.ledger import Ledger
from mistakebound.core.replay.rejections import RowRejections
from mistakebound.core.replay.replay import Row, fresh, replay_rows
from mistakebound.core.reporting.report import Pass, Rejected
from mistakebound.core.step.state import State
from mistakebound.core.step.step import Step
from mistakebound.settings import Settings


class Rows(Protocol):
    """Rows that can be read again and again, in any order: a list of them, or a file."""

    def __iter__(self) -> Iterator[Row]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, place: int, /) -> Row: ...


class Passes(NamedTuple):
    """The result of the passes."""

    state: State
    """Tallies are of all passes together; waiting and remembered ids are of the last one."""
    passes: tuple[Pass, ...]
    converged: bool | None
    """None where no label could be applied: nothing was seen that could be agreed with."""
    cycle: tuple[int, int] | None
    """(earlier, later) pass after which theta was the same; 0 is before the first."""
    rejected: tuple[Rejected, ...]
    """What the first pass could not use; the others are of the same rows."""


def replay_passes(
    rows: Rows,
    settings: Settings,
    partitions: int,
    delay: int = 0,
    *,
    most: int = 1,
    seed: int | None = None,
    progress: Callable[[State], None] | None = None,
    taken: Callable[[Step], None] | None = None,
) -> Passes:
    """At most `most` passes; `seed` None keeps the order, else each pass has a permutation of its own.

    `taken` is shown the steps of the first pass only.
    """
    generator = None if seed is None else np.random.default_rng(seed)
    state = fresh(settings, partitions)
    done: list[Pass] = []
    seen = {state.model.digest(): 0}
    cycle: tuple[int, int] | None = None
    converged: bool | None = False
    rejections = RowRejections(partitions)

    def first_pass(step: Step) -> None:
        rejections.see(step)
        if taken is not None:
            taken(step)

    while len(done) < most:
        if done:
            _forget(state)
        order = rows if generator is None else (rows[int(n)] for n in generator.permutation(len(rows)))
        before = _counted(state)
        if done:
            replay_rows(order, settings, partitions, delay, progress, state=state)
        else:
            numbered = rejections.numbered(order)
            replay_rows(numbered, settings, partitions, delay, progress, first_pass, state)
        after = _counted(state)
        done.append(Pass(after.mistakes - before.mistakes, after.updates - before.updates))
        if done[-1].updates == 0:
            # The averaged kinds err with another vector than the one that needs no update.
            converged = done[-1].mistakes == 0 or state.model.learner.averaged if _judged(state) else None
            break
        first = seen.setdefault(state.model.digest(), len(done))
        forgot = state.model.window is not None and state.model.window.forgot
        if cycle is None and first < len(done) and not forgot:  # what was left out can bring any theta back
            cycle = (first, len(done))
        if cycle is not None and generator is None:
            break
    return Passes(state, tuple(done), converged, cycle, rejections.found())


def _counted(state: State) -> Pass:
    tallies = [ledger.tallies.life for ledger in state.ledgers.values()]
    return Pass(sum(one.mistakes for one in tallies), sum(one.updates for one in tallies))


def _judged(state: State) -> bool:
    return any(ledger.tallies.life.judged for ledger in state.ledgers.values())


def _forget(state: State) -> None:
    """The same ids come again: everything but the counts is forgotten."""
    for partition, old in state.ledgers.items():
        state.ledgers[partition] = Ledger(state.settings.labels)
        state.ledgers[partition].tallies = old.tallies
