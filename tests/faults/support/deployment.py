"""One log with a worker on it that is killed and started again, and what must be true afterwards."""

import re
import signal
import urllib.request
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from prometheus_client.parser import text_string_to_metric_families

from mistakebound.commands.topics.rules import wanted_config
from mistakebound.core.records import INPUTS, Outgoing
from mistakebound.log import open_log
from mistakebound.log.protocol import Log, LogError
from mistakebound.settings import LogSettings, Settings
from tests.faults.support.chance import of_client, sized
from tests.faults.support.children import Child, Children, until
from tests.faults.support.recount import Recount, digest, recount

PARTITIONS = 4
PATIENCE_S = sized(60.0, 180.0)
NAMED_ENDS = (4, 6, 7)
"""A worker may end with one of these when its broker dies under it; a supervisor starts it again."""


class Deployment:
    """A log of its own with topics, and a worker on it; several ask for slots of their own."""

    def __init__(
        self, url: str, prefix: str, children: Children, *sets: str, partitions: int = PARTITIONS
    ) -> None:
        """`sets` as `--set` takes them; `labels.max_delay` must be among them."""
        self.children = children
        self.settings = Settings(log=LogSettings(url=url, prefix=prefix))
        self.options = ["--log", url]
        for each in (
            f"log.prefix={prefix}", "http.address=127.0.0.1:0", "worker.slot=slot",
            "checkpoint.url=checkpoints", *sets,
        ):  # fmt: skip
            self.options += ["--set", each]
        self.log: Log = open_log(self.settings)
        self.log.create_topics(partitions, wanted_config(self.settings))
        self.partitions = partitions

    def worker(self, *sets: str, first: str = "") -> Child:
        """Start one; `sets` and `first` are its own (see `Child`)."""
        own = [part for each in sets for part in ("--set", each)]
        options = [of_client(each) for each in self.options]
        return self.children.start("run", *options, *own, first=first)

    def send(self, records: Sequence[Outgoing]) -> None:
        assert self.log.append(records) == len(records)

    def consumed(self) -> int:
        """Input records behind the committed positions; -1 while the log cannot say."""
        try:
            positions = self.log.group_positions()
        except LogError:
            return -1
        return sum(0 if at is None else at.examples + at.labels for at in positions.values())

    def positions(self) -> dict[int, tuple[int, int] | None]:
        """Committed (examples, labels) of each partition."""
        found = self.log.group_positions()
        return {p: None if at is None else (at.examples, at.labels) for p, at in found.items()}

    def works(self, child: Child) -> None:
        """Wait until the worker has committed something new."""
        before = self.consumed()
        until(lambda: self.consumed() > before, PATIENCE_S, "more is consumed", child)

    def works_off(self, child: Child) -> None:
        """Wait until the worker has consumed everything there is."""
        total = self.sent()
        until(lambda: self.consumed() == total, PATIENCE_S, f"{total} records are consumed", child)

    def newest_checkpoint(self) -> Any:
        """What `checkpoint show` says about it."""
        newest = max((self.children.home / "checkpoints").glob("*.checkpoint"))
        return self.children.json("checkpoint", "show", str(newest), "--top", "100000")

    def sent(self) -> int:
        return sum(self.log.high_watermark(topic, p) for topic in INPUTS for p in range(self.partitions))

    def lasting(self, child: Child, met: Callable[[], bool], wanted: str) -> Child:
        """Wait until `met`, starting the worker again where it ended as it may; the worker at last."""
        workers = [child]

        def revived() -> bool:
            if (code := workers[-1].code) is not None:
                assert code in NAMED_ENDS, workers[-1].last_words()
                assert len(workers) < 5, f"ended {len(workers)} times: {workers[-1].last_words()}"
                workers.append(self.worker())
            return met()

        try:
            until(revived, PATIENCE_S, wanted)
        except AssertionError as error:
            raise AssertionError(f"{error}; {workers[-1].last_words()}") from None
        return workers[-1]

    def finish(self, child: Child) -> None:
        """Let the worker work everything off and stop it as a supervisor does; it must end well."""
        total = self.sent()
        child = self.lasting(child, lambda: self.consumed() == total, f"{total} records are consumed")
        address_of(child)  # before that it does not know about signals yet
        child.signal(signal.SIGTERM)
        assert child.ends(15) == 0, child.last_words()

    def prove(self) -> Recount:
        """Recount the log, and compare with what `status` says and with the model that the worker held
        at its end, which its newest checkpoint keeps."""
        found = recount(self.log)
        held = self.newest_checkpoint()
        assert digest([held["largest_weights"]]) == held["digest"] == found.digest
        assert held["updates"] == found.updates
        told = self.children.json("status", "--model", "--json", *self.options)
        assert told["model"]["digest"] == found.digest
        assert told["model"]["updates"] == found.updates
        assert told["mistakes"] == found.mistakes
        assert (told["waiting"], told["parked"]) == (found.waiting, found.parked)
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.log.close()


def address_of(worker: Child) -> str:
    """Where the worker serves its pages, as it says itself."""
    found = until(
        lambda: re.search(r"\"metrics\": \"(http://\S+)/metrics\"", worker.err()), 30, "it serves", worker
    )
    return str(found[1])


def assigned(worker: Child) -> Child:
    """Wait until the worker has taken its partitions over."""
    until(lambda: '"event": "assigned"' in worker.err(), PATIENCE_S, "partitions are assigned", worker)
    return worker


def page(worker: Child) -> bytes:
    """The worker's metrics, in text format."""
    with urllib.request.urlopen(f"{address_of(worker)}/metrics", timeout=10) as answer:
        return bytes(answer.read())


def total(worker: Child, name: str, **labels: str) -> float:
    """The sum of a sample over the series with these labels."""
    return sum(
        sample.value
        for family in text_string_to_metric_families(page(worker).decode())
        for sample in family.samples
        if sample.name == f"mistakebound_{name}" and labels.items() <= sample.labels.items()
    )
