"""Without a broker: a replay beside River's progressive loop, and the speed of a recovery. CPU time, medians."""

import time
from collections.abc import Callable
from statistics import median

import msgspec
from river.linear_model import Perceptron

from service.commands.labelled import from_jsonl
from service.core.fold import Fold
from service.core.ledger import Ledger
from service.core.messages import encode
from service.core.model import Model, first_epoch
from service.core.records import Outgoing, Record
from service.core.recover import read_marks, rebuild
from service.core.replay import Row, replay_rows
from service.core.step import Step
from service.settings import Settings
from tests.benchmarks.workload import Workload, labelled

PERCEPTRON = Settings.model_validate({"learner": {"kind": "perceptron"}})


def replays(features: int, rows: int, rounds: int) -> str:
    """One row of the table, in us a labelled row; parsing is part of it on both sides."""
    lines = [
        encode({"id": identity, "features": x, "label": label})
        for identity, x, label in labelled(Workload(rows, features))
    ]

    def ours() -> int:
        state = replay_rows(from_jsonl(lines), PERCEPTRON, 1)
        return sum(ledger.tallies.life.mistakes for ledger in state.ledgers.values())

    def river() -> int:
        model, mistakes = Perceptron(), 0
        for line in lines:
            row = msgspec.json.decode(line)
            mistakes += model.predict_one(row["features"]) != row["label"]
            model.learn_one(row["features"], row["label"])
        return mistakes

    assert ours() == river(), "the same algorithm makes the same mistakes"
    spent = [(_cpu_s(ours), _cpu_s(river)) for _ in range(rounds)]
    mine, theirs = (median(each) / rows * 1e6 for each in zip(*spent, strict=True))
    ratio = median(other / one for one, other in spent)
    return f"| replay, {features} features | {mine:.1f} us | River {theirs:.1f} us | {ratio:.2f} |"


def recovery(rows: int, rounds: int) -> str:
    """Updates folded, and predictions and outcomes applied, a second of CPU."""
    outputs: list[Outgoing] = []

    def keep(step: Step) -> None:
        outputs.extend(step.transaction.outputs)
        positions.append(step.transaction.positions[0])

    positions: list = []  # type: ignore[type-arg]
    work = labelled(Workload(rows, noise=0.5))
    replay_rows((Row(*each) for each in work), PERCEPTRON, 1, 1_000, taken=keep)
    logs: dict[str, list[Record]] = {
        "updates": [Record("updates", 0, 0, 0, None, encode(first_epoch(PERCEPTRON)))]
    }
    for each in outputs:
        log = logs.setdefault(each.topic, [])
        log.append(Record(each.topic, 0, len(log), 0, each.key, each.value))
    updates, position = len(logs["updates"]) - 1, positions[-1]

    def fold() -> None:
        found = Fold(PERCEPTRON, 1)
        assert found.fold(0, logs["updates"])
        assert found.model.updates == [updates]

    def again() -> None:
        ledger = Ledger(PERCEPTRON.labels)
        model = Model(PERCEPTRON, 1)
        rebuild(ledger, position, read_marks(position), model.epoch, logs["predictions"], logs["outcomes"])

    folded = updates / median(_cpu_s(fold) for _ in range(rounds))
    applied = len(logs["predictions"]) / median(_cpu_s(again) for _ in range(rounds))
    return f"| recovery | {folded:,.0f} updates/s folded | {applied:,.0f} predictions/s applied with their outcomes | |"


def _cpu_s(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began
