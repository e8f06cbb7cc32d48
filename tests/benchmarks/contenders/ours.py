"""`mistakebound run`, in this process, until the stream is worked off.

`options.scheme` is that of `log.url`: `kafka` (default) or `kafka+confluent`.
"""

from typing import Any

from mistakebound.core.step import step
from mistakebound.log import open_log
from mistakebound.settings import Settings
from mistakebound.worker.memory import share_heaps, spare_the_collector
from mistakebound.worker.process import work
from mistakebound.worker.takeover import WorkerState
from tests.benchmarks.contenders.task import Clock, Task


def session_of(scheme: str) -> Any:
    """The class whose `poll` brings the records."""
    if scheme == "kafka":
        from mistakebound.log.kafka.kafka_python.session import KafkaPythonSession

        return KafkaPythonSession
    from mistakebound.log.kafka.confluent.session import ConfluentSession

    return ConfluentSession


def main(task: Task) -> None:
    scheme = task.options.get("scheme", "kafka")
    settings = Settings.model_validate(
        {
            "log": {"url": f"{scheme}://{task.bootstrap}", "prefix": task.prefix},
            "topics": {"examples": task.examples, "labels": task.labels},
            "labels": {"max_delay": "P7D", **task.options.get("labels", {})},
            "learner": {"kind": "perceptron", **task.options.get("learner", {})},
            "batch": task.options.get("batch", {}),
            "http": {"address": ""},
            "checkpoint": {"url": ""},
            "worker": {"slot": "slot"},
        }
    )
    clock, ended, transactions = Clock(task.records), False, 0
    session = session_of(scheme)
    poll, commit = session.poll, session.commit

    def timed(self: Any, timeout_s: float) -> Any:
        polled = poll(self, timeout_s)
        if polled.records:
            clock.start()
        return polled

    def stepped(held: WorkerState) -> None:
        nonlocal ended
        if ended:
            return
        lives = [ledger.tallies.life for ledger in held.state.ledgers.values()]
        labelled = sum(life.examples["labelled"] for life in lives)
        clock.reached(labelled)
        if labelled >= task.records:
            ended = True
            updates = sum(held.state.model.updates)
            mistakes = sum(life.mistakes for life in lives)
            built = not (step.__file__ or "").endswith(".py")
            clock.done(
                labelled, mistakes=mistakes, updates=updates, transactions=transactions, compiled=built
            )

    def counted(self: Any, transaction: Any, generation: int) -> Any:
        nonlocal transactions
        transactions += 1
        return commit(self, transaction, generation)

    session.poll, session.commit = timed, counted
    share_heaps()  # as the command does
    with open_log(settings) as log:
        spare_the_collector()
        work(log, settings, lambda idle: ended, log_format="json", log_level="error", stepped=stepped)


if __name__ == "__main__":
    main(Task.given())
