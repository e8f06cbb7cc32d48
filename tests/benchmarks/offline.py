"""Without a broker: a replay beside other learners' loops, and the speed of a recovery. CPU time, medians."""

import json
import time
from collections.abc import Callable
from statistics import median

import msgspec
from river.evaluate import progressive_val_score
from river.linear_model import Perceptron
from river.metrics import Accuracy

from mistakebound.commands.labelled_files.columns import Columns
from mistakebound.commands.labelled_files.jsonl_rows import JsonRows
from mistakebound.commands.labelled_files.labels_seen import LabelsSeen
from mistakebound.commands.labelled_files.text_lines import TextLines
from mistakebound.core.ledger.ledger import Ledger
from mistakebound.core.ledger.rebuild import rebuild
from mistakebound.core.messages.schema import encode, read_recovery_point
from mistakebound.core.model.fold import Fold
from mistakebound.core.model.model import Model, first_epoch
from mistakebound.core.records import Position, Record
from mistakebound.core.replay.replay import Row, replay_rows
from mistakebound.core.step.step import Step
from mistakebound.settings import Settings
from tests.benchmarks.offline_peers import scikit_learn, vowpal_wabbit
from tests.benchmarks.workload import Workload, labelled

OURS = "mistakebound"
PROGRESSIVE = "River, progressive_val_score on json"
"""As its guide has it; plain `River` is the least that gives the same numbers."""
PERCEPTRON = Settings.model_validate({"learner": {"kind": "perceptron"}})


def table(rounds: int) -> str:
    """All of it as Markdown."""
    head = ("what", "us a row", "spread", "mistakes", "ours, times as fast", "spread")
    return "\n".join(
        (
            f"| {' | '.join(head)} |",
            "|---" * len(head) + "|",
            replays(10, 5_000, rounds),
            replays(1_000, 500, rounds),
            "",
            recovery(10_000, rounds),
        )
    )


def replays(features: int, rows: int, rounds: int) -> str:
    """Rows of the table, in us a labelled row; every row includes parsing. Interleaved."""
    lines = [
        encode({"id": record_id, "features": x, "label": label})
        for record_id, x, label in labelled(Workload(rows, features))
    ]

    def ours() -> int:
        reader = JsonRows(Columns(), LabelsSeen("true, false", lambda label: True, typed=True))
        state = replay_rows(reader.rows(TextLines(iter(lines))), PERCEPTRON, 1)
        return sum(ledger.tallies.life.mistakes for ledger in state.ledgers.values())

    def river() -> int:
        model, mistakes = Perceptron(), 0
        for line in lines:
            row = msgspec.json.decode(line)
            mistakes += model.predict_one(row["features"]) != row["label"]
            model.learn_one(row["features"], row["label"])
        return mistakes

    def progressive() -> int:
        rows_read = ((row["features"], row["label"]) for row in map(json.loads, lines))
        accuracy = progressive_val_score(rows_read, Perceptron(), Accuracy())
        return round((1 - accuracy.get()) * rows)

    mistakes = {OURS: ours(), "River": river(), "scikit-learn, partial_fit": scikit_learn(lines)}
    mistakes[PROGRESSIVE] = progressive()
    assert mistakes[OURS] == mistakes["River"] == mistakes[PROGRESSIVE], (
        "the same algorithm makes the same mistakes"
    )
    spent: dict[str, list[float]] = {}
    for _ in range(rounds):
        took = {OURS: _cpu_s(ours), "River": _cpu_s(river)}
        took[PROGRESSIVE] = _cpu_s(progressive)
        took["scikit-learn, partial_fit"] = _cpu_s(lambda: scikit_learn(lines))
        for how, (took_s, count) in vowpal_wabbit(lines).items():
            name = f"Vowpal Wabbit, {how}"
            took[name], mistakes[name] = took_s, count
        for name, seconds_spent in took.items():
            spent.setdefault(name, []).append(seconds_spent)
    rows_of_table = []
    for name, seconds in spent.items():
        each = [one / rows * 1e6 for one in seconds]
        faster = [other / one for one, other in zip(spent[OURS], seconds, strict=True)]
        rows_of_table.append(
            f"| {name}, {features:,} features | {median(each):.1f} | {min(each):.1f} to {max(each):.1f} "
            f"| {mistakes[name] / rows:.1%} | {median(faster):.2f} | {min(faster):.2f} to {max(faster):.2f} |"
        )
    return "\n".join(rows_of_table)


def fold_us() -> float:
    """Processor time in us to read an update of ten features and to fold it, without a log; the least of five."""
    updates = _replayed(10_000)[0]["updates"]
    spent = min(_cpu_s(lambda: Fold(PERCEPTRON, 1).fold(0, updates)) for _ in range(5))
    return spent / len(updates) * 1e6


def recovery(rows: int, rounds: int) -> str:
    """Updates folded, and predictions and outcomes applied, a second of CPU."""
    logs, position = _replayed(rows)
    updates = len(logs["updates"]) - 1

    def fold() -> None:
        found = Fold(PERCEPTRON, 1)
        assert found.fold(0, logs["updates"])
        assert found.model.updates == [updates]

    def again() -> None:
        ledger = Ledger(PERCEPTRON.labels)
        model = Model(PERCEPTRON, 1)
        rebuild(
            ledger,
            position,
            read_recovery_point(position),
            {model.epoch: PERCEPTRON.labels.remember},
            logs["predictions"],
            logs["outcomes"],
        )

    folded = updates / median(_cpu_s(fold) for _ in range(rounds))
    applied = len(logs["predictions"]) / median(_cpu_s(again) for _ in range(rounds))
    return (
        f"recovery: {folded:,.0f} updates/s folded, {applied:,.0f} predictions/s applied with their outcomes"
    )


def _replayed(rows: int) -> tuple[dict[str, list[Record]], Position]:
    """What a worker's topics hold after so many rows, by topic, and its position."""
    logs: dict[str, list[Record]] = {
        "updates": [Record("updates", 0, 0, 0, None, encode(first_epoch(PERCEPTRON)))]
    }
    positions: list[Position] = []

    def keep(step: Step) -> None:
        positions.append(step.transaction.positions[0])
        for each in step.transaction.outputs:
            log = logs.setdefault(each.topic, [])
            log.append(Record(each.topic, 0, len(log), 0, each.key, each.value))

    work = labelled(Workload(rows, noise=0.5))
    replay_rows((Row(*each) for each in work), PERCEPTRON, 1, 1_000, taken=keep)
    return logs, positions[-1]


def _cpu_s(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began
