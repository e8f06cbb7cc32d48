"""Predictions made again while their labels are awaited (Grzenda, Gomes & Bifet, DMKD 2020): continuous re-evaluation.

The wait of each example, in examples predicted meanwhile, is cut into as many bins as asked for. It is predicted when
it comes (the published prediction), again at the end of each bin, by the model as it is then, and for the last time
when its label comes, before the model learns from that.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from mistakebound.core.faults import BadRecord
from mistakebound.core.ledger.entries import Waiting
from mistakebound.core.messages.inputs import InputReader
from mistakebound.core.model.model import Model
from mistakebound.core.records import INPUTS, Record
from mistakebound.core.replay.passes import Rows
from mistakebound.core.replay.replay import EVERYTHING, as_stream, fresh, reader_of_rows
from mistakebound.core.reporting.report import Reevaluation
from mistakebound.core.step.merge import Merge
from mistakebound.core.step.step import step
from mistakebound.settings import LabelValue, Settings


@dataclass(slots=True)
class _Awaiting:
    """An example whose label has not come."""

    example: Waiting
    said: list[LabelValue | None] = field(default_factory=list)
    """The published prediction, and those at the ends of bins that are over."""


def reevaluate(rows: Rows, settings: Settings, partitions: int, delay: int, bins: int) -> Reevaluation:
    """Replay labelled rows once, `delay` examples outstanding, and predict each again at the ends of its `bins`.

    The replay is that of `replay_rows`, one record in each step.
    """
    state = fresh(settings, partitions)
    state.model.reader = reader = reader_of_rows(settings)
    merge = Merge(range(partitions), capacity=EVERYTHING)
    drained = {(topic, p) for topic in INPUTS for p in range(partitions)}
    awaiting: dict[tuple[int, str], _Awaiting] = {}
    due: dict[int, list[_Awaiting]] = {}
    found = _Counts(bins)
    last, number = len(rows) - 1, -1
    for record in as_stream(rows, settings, partitions, delay):
        ledger = state.ledgers[record.partition]
        labelled = None if record.topic == "examples" else _label(reader, record)
        if labelled is not None and labelled[0] in ledger.waiting:
            one = awaiting.pop((record.partition, labelled[0]))
            found.count(_said_at_last(state.model, one, labelled[1]), labelled[1])
        before = len(ledger.waiting)
        merge.add([record])
        while step(state, merge, drained, EVERYTHING) is not None:
            pass
        if record.topic == "examples":
            number += 1
            if len(ledger.waiting) > before:
                entry = ledger.waiting[reader.example(record)[0]]
                one = _Awaiting(entry, [entry.predicted])
                awaiting[record.partition, entry.id] = one
                for at in _ends(number, min(delay, last - number), bins):
                    due.setdefault(at, []).append(one)
            for one in due.pop(number, ()):
                one.said.append(_says(state.model, one))
    return found.result()


def _ends(number: int, wait: int, bins: int) -> Iterator[int]:
    """Up to which example each bin but the last goes, for one that waits while so many others are predicted."""
    return (number + wait * place // bins for place in range(1, bins))


def _label(reader: InputReader, record: Record) -> tuple[str, LabelValue] | None:
    try:
        return reader.label(record)[:2]
    except BadRecord:
        return None


def _says(model: Model, one: _Awaiting) -> LabelValue | None:
    return model.says(model.features(one.example.features, one.example.tenant))


def _said_at_last(model: Model, one: _Awaiting, label: LabelValue) -> list[LabelValue | None]:
    return [
        *one.said,
        _says(model, one) if model.reader.knows(label) else one.said[-1],
    ]


class _Counts:
    """What the predictions came to."""

    def __init__(self, bins: int) -> None:
        self._mistakes = [0] * (bins + 1)
        self._judged = self._changes = self._mended = self._spoiled = 0

    def count(self, said: list[Any], label: LabelValue) -> None:
        """One example's predictions, from the published to the last."""
        self._judged += 1
        for place, one in enumerate(said):
            self._mistakes[place] += one != label
        self._changes += sum(one != other for one, other in pairwise(said))
        self._mended += said[0] != label == said[-1]
        self._spoiled += said[0] == label != said[-1]

    def result(self) -> Reevaluation:
        judged = self._judged
        return Reevaluation(
            judged=judged,
            mistakes=tuple(self._mistakes),
            mistake_rates=tuple(count / judged if judged else None for count in self._mistakes),
            volatility=self._changes / judged if judged else None,
            mended=self._mended,
            spoiled=self._spoiled,
        )
