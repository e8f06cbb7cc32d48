"""Proved changes, derived again from `updates`: every stretch added up anew, and looked at after every update."""

from typing import Any

from mistakebound.core.audit.topics_read import Source
from mistakebound.core.messages.schema import Update, read_update
from mistakebound.core.model.model import Model
from mistakebound.core.theorems.claims import ROUNDING

KEPT = 10


def wrong_changes(source: Source, model: Model, recorded: Any) -> str:
    """What is wrong with a checkpoint's stretches of the updates that this model has folded; empty where nothing is.

    Raises BadLog, and BadRecord where an update cannot be read under the model's settings.
    """
    if model.changes is None:
        return "" if recorded is None else "it counts proved changes, which no margin was declared for"
    try:
        found = [
            (int(proved), [list(map(int, one)) for one in newest], int(first), int(updates), int(restarts))
            for proved, newest, first, updates, restarts, _, _ in recorded
        ]
    except (TypeError, ValueError):
        return "its stretches of updates cannot be read"
    made = [_stretches(source, model, partition) for partition in range(model.partitions)]
    for partition, (one, other) in enumerate(zip(found, made, strict=False)):
        if one != other:
            names = ("proved changes", "newest", "first", "updates", "restarts")
            name, (there, due) = next(
                (name, pair)
                for name, pair in zip(names, zip(one, other, strict=True), strict=True)
                if pair[0] != pair[1]
            )
            return f"its stretch of partition {partition} has {name} {there}, should be {due}"
    return "" if len(found) == len(made) else f"it has {len(found)} stretches for {len(made)} partitions"


def _stretches(source: Source, model: Model, partition: int) -> tuple[int, list[list[int]], int, int, int]:
    """Proved changes, the newest of them, and the present stretch: its first update, and how many."""
    settings, norm, gamma = model.settings.learner, model.kind.norm, model.settings.learner.gamma
    assert norm is not None
    assert gamma is not None
    closed: list[list[int]] = []
    members: list[int] = []
    seen = 0
    theta: dict[str, float] = {}
    known = 0
    for record in source.read("updates", partition):
        update = read_update(record)
        if not isinstance(update, Update) or update.epoch != model.epoch or update.n <= known:
            continue
        if update.n > model.updates[partition]:
            break
        known = update.n
        sign = 1.0 if update.label == model.classes[0] else -1.0
        for name, value in model.features(bytes(update.features), update.tenant):
            theta[name] = theta.get(name, 0.0) + sign * value
        seen = seen if members else update.restarts
        members.append(update.n)
        length = norm(settings, theta)
        if length is not None and length * ROUNDING < gamma * len(members):
            closed.append([members[0], update.n])
            members, theta, seen = [], {}, 0
    return len(closed), closed[-KEPT:], members[0] if members else 0, len(members), seen
