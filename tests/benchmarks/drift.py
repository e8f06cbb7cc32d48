"""What to do about drift: forget nothing, forget by a window, restart at a proved change, or at an alarm of ADWIN."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any

from river import drift, linear_model

from mistakebound.core.replay.replay import Row, replay_rows
from mistakebound.core.theorems.changes import proved_changes
from mistakebound.settings import Settings
from tests.benchmarks.drift_streams import MARGIN, made, real

Counts = tuple[int, int | None]
"""Mistakes, and restarts; None where there are none to count."""


def two_classes(rows: Sequence[Row]) -> bool:
    """Else each label is one of many, an integer."""
    return isinstance(rows[0].label, bool)


def ours(rows: Sequence[Row], **learner: Any) -> Counts:
    """The worker's own step, at zero delay."""
    labels = {} if two_classes(rows) else {"classes": sorted({row.label for row in rows})}
    settings = Settings.model_validate({"learner": learner, "labels": labels})
    state = replay_rows(rows, settings, 1)
    proved = proved_changes(state.model)
    return state.ledgers[0].tallies.life.mistakes, None if proved is None else proved.restarts


def river(rows: Sequence[Row], *, adwin: bool) -> Counts:
    """Its perceptron; with ADWIN on its mistakes, at whose alarms it is made anew."""
    if not adwin:
        return _mistakes(rows, linear_model.Perceptron(), lambda model: None), None
    alarms = 0
    wrapped: Any = None

    def look(model: Any) -> None:
        nonlocal alarms, wrapped
        alarms += wrapped is not None and model.model is not wrapped
        wrapped = model.model

    plain: Any = linear_model.Perceptron()
    model = drift.DriftRetrainingClassifier(plain, drift.ADWIN(), train_in_background=False)
    return _mistakes(rows, model, look), alarms


def _mistakes(rows: Sequence[Row], model: Any, look: Callable[[Any], None]) -> int:
    mistakes = 0
    for row in rows:
        mistakes += bool(model.predict_one(row.features)) is not row.label
        model.learn_one(row.features, row.label)
        look(model)
    return mistakes


WINDOWS = (50, 200, 1_000)
RESTART = {"gamma": MARGIN, "on_refuted": "restart"}
RULES: Mapping[str, Callable[[Sequence[Row]], Counts]] = {
    "perceptron": partial(ours, kind="perceptron"),
    **{f"perceptron, window {size}": partial(ours, kind="perceptron", window=size) for size in WINDOWS},
    "perceptron, restart": partial(ours, kind="perceptron", **RESTART),
    "averaged": partial(ours, kind="averaged-perceptron"),
    **{
        f"averaged, window {size}": partial(ours, kind="averaged-perceptron", window=size) for size in WINDOWS
    },
    "averaged, restart": partial(ours, kind="averaged-perceptron", **RESTART),
    "River perceptron": partial(river, adwin=False),
    "River perceptron, ADWIN": partial(river, adwin=True),
}


FOR_TWO = {name for name in RULES if name.startswith("River") or name.endswith("restart")}
"""Rules that know no more classes."""


def table(tell: Callable[[str], None] = lambda text: None) -> str:
    """Mistakes in percent of the examples, the mean over the seeds; in brackets the restarts of one stream."""
    streams = [*made(), *real()]
    cells: dict[str, list[str]] = {name: [] for name in RULES}
    for stream in streams:
        rows = [stream.rows(seed) for seed in range(stream.seeds)]
        tell(f"{stream.name}: {stream.seeds} x {len(rows[0])} examples")
        rules = {name: rule for name, rule in RULES.items() if two_classes(rows[0]) or name not in FOR_TWO}
        found = {name: _mean([rule(each) for each in rows], len(rows[0])) for name, rule in rules.items()}
        best = min(percent for percent, _ in found.values())
        for name in RULES.keys() - rules.keys():
            cells[name].append("")
        for name, (percent, restarts) in found.items():
            cells[name].append(_cell(percent, restarts, best=percent == best))
            tell(f"  {name}: {percent:.2f} {restarts}")
    heads = ["rule", *(stream.name for stream in streams)]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    lines += ["| " + " | ".join([name, *row]) + " |" for name, row in cells.items()]
    return "\n".join(lines)


def _mean(found: Sequence[Counts], examples: int) -> tuple[float, float | None]:
    restarts = [one for _, one in found if one is not None]
    return fmean(100 * mistakes / examples for mistakes, _ in found), fmean(restarts) if restarts else None


def _cell(percent: float, restarts: float | None, *, best: bool) -> str:
    shown = f"**{percent:.1f}**" if best else f"{percent:.1f}"
    return shown if restarts is None else f"{shown} ({restarts:g})"
