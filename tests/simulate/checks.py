"""What must be true of the records when all is quiet: the audit, the recount, and the models that workers hold."""

from collections.abc import Iterable, Iterator
from typing import Any

from mistakebound.core.audit import Findings
from mistakebound.core.audit import audit as examine
from mistakebound.core.messages.schema import Update, read_update
from mistakebound.core.records import Position, Record, Topic
from mistakebound.settings import Settings
from mistakebound.worker.takeover import WorkerState
from tests.faults.support.recount import recount
from tests.simulate.broker import Broker


class Failure(AssertionError):
    """What must not have happened."""


class View:
    """The broker's records as they are, for those who check: a log, and an audit's source.

    Those that retention has deleted are shown, too: what was done with them must have been right.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.partitions = broker.partitions

    def read(self, topic: Topic, partition: int, start: int = 0, **_: Any) -> Iterator[Record]:
        log = self._broker.log((topic, partition))
        assert not log.open, f"a transaction is open in {topic}-{partition}"
        return iter(log.committed(start, log.end))

    def high_watermark(self, topic: Topic, partition: int) -> int:
        return self._broker.log((topic, partition)).end

    def group_positions(self) -> dict[int, Position | None]:
        return self._broker.positions(range(self.partitions))

    def positions(self) -> dict[int, Position | None]:
        return self.group_positions()

    def begins_late(self, topic: Topic, partition: int) -> bool:
        return False

    def goes_on(self, partition: int, after: int) -> bool:
        return next(self.read("outcomes", partition, after + 1), None) is not None


def updates_of(broker: Broker) -> list[int]:
    """Updates of each partition that are committed."""
    logs = (broker.log(("updates", p)) for p in range(broker.partitions))
    return [
        sum(isinstance(read_update(each), Update) for each in log.committed(0, log.stable)) for log in logs
    ]


def check_audit(broker: Broker, settings: Settings) -> None:
    """The audit finds nothing. Raises Failure."""
    view: Any = View(broker)
    findings = examine(view, settings.messages, (), Findings(3))
    if findings.differences:
        raise Failure(f"audit: {[each._asdict() for each in findings.first]}")


def check_records(broker: Broker, settings: Settings, held: Iterable[tuple[str, WorkerState]]) -> None:
    """The audit finds nothing, the recount agrees, and every worker holds the model that the log comes to, to the bit.

    `held`: what each worker held when it stopped, by its name; all had heard of all updates. Raises Failure.
    """
    view: Any = View(broker)
    check_audit(broker, settings)
    models = {name: each.state.model for name, each in held}
    digests = {name: model.digest() for name, model in models.items()}
    if len(set(digests.values())) > 1:
        raise Failure(f"the workers' models differ: {digests}")
    sent = sum(broker.log((topic, p)).end for topic in ("examples", "labels") for p in range(view.partitions))
    if settings.labels.remember <= sent:
        return  # an id that was forgotten may be predicted again, which the recount does not know
    found = recount(view, settings.labels.remember)
    for name, model in models.items():
        if digests[name] != found.digest:
            raise Failure(f"{name} holds {digests[name]}, the log {found.digest}")
        state = model.snapshot().state
        for rows, recounted in (("theta", found.theta), ("kappa", found.kappa)):
            if rows in state and _bits(state[rows]) != _bits(recounted):
                raise Failure(f"{rows} of {name} is not what the log comes to")


def _bits(rows: Any) -> list[dict[str, str]]:
    return [{name: float(value).hex() for name, value in row.items()} for row in rows]
