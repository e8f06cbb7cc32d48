"""Schemas are there before a step needs them; while the registry owes an answer, no step is made."""

import json
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mistakebound.core.messages.formats.schema_text import SchemaText
from mistakebound.core.records import Record
from mistakebound.core.step.schemas import Schemas
from mistakebound.log.protocol import Log, Misconfigured, Unreachable
from mistakebound.settings import Settings
from mistakebound.worker.checkpoints.schedule import CheckpointSchedule
from mistakebound.worker.events import show_all
from mistakebound.worker.health import Health, HealthLimits, Heartbeat
from mistakebound.worker.loop import Worker
from mistakebound.worker.metrics.metrics import Metrics
from mistakebound.worker.registry import prefetch
from mistakebound.worker.registry.client import RegistryAway, RegistryRefused
from mistakebound.worker.registry.prefetch import Prefetch, prefetch_of
from tests.support.registry import StandIn, stand_in
from tests.worker.registry.support.shop import outgoing, reasons, send, settings_of, values
from tests.worker.support.working import Hurried, Run, opened

TEXT = SchemaText("AVRO", '"string"')


@pytest.fixture
def registry() -> Iterator[StandIn]:
    with stand_in() as one:
        yield one


def framed(number: int, partition: int = 0) -> Record:
    return Record("examples", partition, 0, 0, None, b"\0" + number.to_bytes(4))


class Answers:
    """A registry whose next answers are these; the last one is given again and again."""

    def __init__(self, *answers: SchemaText | Exception | None) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    def __call__(self, schema_id: str) -> SchemaText | None:
        self.asked.append(schema_id)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Hurried:
    found = Hurried()
    monkeypatch.setattr(prefetch, "time", found)
    return found


def test_a_schema_is_asked_for_once_and_an_unknown_id_again_after_a_while(clock: Hurried) -> None:
    """Ids never change their schema; but a new one may be known a moment later than its record."""
    answers = Answers(TEXT, None)
    one = Prefetch(Schemas(), answers, ["examples"], 60.0)
    for _ in range(3):
        one.note([framed(1), framed(2)])
        assert one.complete()
    assert answers.asked == ["1", "2"]
    assert one.schemas.fetched == {"1": TEXT, "2": None}
    clock.sleep(61)
    one.note([framed(1), framed(2)])
    assert one.complete()
    assert answers.asked == ["1", "2", "2"]


def test_what_the_log_of_every_partition_holds_is_not_asked_for() -> None:
    """What another partition holds does not count: each is read by its own."""
    answers = Answers(TEXT)
    one = Prefetch(Schemas(written={0: {"1": TEXT}}), answers, ["examples"], 60.0)
    one.note([framed(1, 0)])
    assert one.complete()
    assert answers.asked == []
    one.note([framed(1, 0), framed(1, 1)])
    assert one.complete()
    assert answers.asked == ["1"]


def test_an_answer_that_does_not_come_is_waited_for(clock: Hurried) -> None:
    """Asked again once a second; after ten minutes the worker gives up."""
    answers = Answers(RegistryAway("no answer"), RegistryAway("429"), TEXT)
    one = Prefetch(Schemas(), answers, ["examples"], 60.0)
    one.note([framed(1)])
    assert not one.complete()
    assert one.away
    assert not one.complete()
    assert len(answers.asked) == 1
    clock.sleep(1)
    assert not one.complete()
    clock.sleep(1)
    assert one.complete()
    assert not one.away
    never = Prefetch(Schemas(), Answers(RegistryAway("no answer")), ["examples"], 60.0)
    never.note([framed(1)])
    assert not never.complete()
    clock.sleep(601)
    with pytest.raises(Unreachable, match="schema registry has been away for 600 s: no answer"):
        never.complete()


def test_a_refusal_ends_a_worker_that_never_had_an_answer_and_no_other(clock: Hurried) -> None:
    """A wrong password is told at once; one that is being replaced is waited for."""
    refused = RegistryRefused("correct registry.username")
    one = Prefetch(Schemas(), Answers(refused), ["examples"], 60.0)
    one.note([framed(1)])
    with pytest.raises(Misconfigured, match=r"registry\.username"):
        one.complete()
    other = Prefetch(Schemas(), Answers(TEXT, refused, TEXT), ["examples"], 60.0)
    other.note([framed(1), framed(2)])
    assert not other.complete()
    clock.sleep(1)
    assert other.complete()


def watched(
    log: Log, settings: Settings, stopping: Callable[[bool, Health], bool], heartbeat: Heartbeat | None = None
) -> None:
    """Run a worker that is asked with its health whether it stops."""
    beat = heartbeat or Heartbeat()
    checkpoints = CheckpointSchedule(
        log, settings, "slot", Metrics(["true", "false"], "perceptron", "digest")
    )
    Worker(
        log,
        settings,
        "slot",
        observe=show_all(beat.observe, checkpoints.observe),
        checkpoints=checkpoints,
        stopping=lambda idle: stopping(idle, beat.health(HealthLimits())),
        prefetch=prefetch_of(settings),
    ).run()


@pytest.mark.parametrize("status", [429, 503])
def test_while_the_registry_is_away_a_worker_is_live_and_not_ready(registry: StandIn, status: int) -> None:
    """Nothing is a dead letter by that, and it goes on when the registry is back."""
    settings = settings_of(registry.url)
    seen: list[Health] = []
    with opened(settings) as log:
        send(log, registry.url, range(3))
        registry.status = status

        def stopping(idle: bool, health: Health) -> bool:
            if "registry" in health.reason and registry.status is not None:
                seen.append(health)
                registry.status = None
            return idle

        watched(log, settings, stopping)
        assert [(one.live, one.ready) for one in seen] == [(True, False)]
        assert reasons(log) == []
        assert len(values(log, "predictions")) == 3


def test_a_registry_that_accepts_and_never_answers_is_away(registry: StandIn) -> None:
    """No longer than `registry.timeout` for each attempt: the worker polls its group in between."""
    settings = settings_of(registry.url, registry={"timeout": 0.3})
    reason: list[str] = []
    with opened(settings) as log:
        send(log, registry.url, range(1))
        registry.silent.set()
        began = time.monotonic()

        def stopping(idle: bool, health: Health) -> bool:
            if "registry" in health.reason:
                reason.append(health.reason)
            return bool(reason) or time.monotonic() - began > 60

        watched(log, settings, stopping)
        assert reason
        assert values(log, "predictions") == []


def test_records_of_every_kind_side_by_side_never_end_the_work(registry: StandIn) -> None:
    """A tombstone, JSON, a cut frame, other bytes: each a dead letter; what is framed is read."""
    settings = settings_of(registry.url)
    odd: list[bytes | None] = [
        None,
        b"",
        json.dumps({"id": "x"}).encode(),
        b"\0\0\0",
        b"\0\0\0\0\1",
        b"\xff" * 40,
    ]
    with opened(settings) as log:
        send(log, registry.url, range(1))
        for topic in ("examples", "labels"):
            for number, value in enumerate(odd, 1):
                log.append([outgoing(topic, number, value)])  # type: ignore[arg-type]
        send(log, registry.url, range(10, 12))
        Run(log, settings)
        assert len(values(log, "predictions")) == 3
        each = ["tombstone", "not-framed", "not-framed", "not-framed", "schema-mismatch", "not-framed"]
        assert sorted(reasons(log)) == sorted(each * 2)


def test_nothing_is_asked_where_inputs_are_json(caplog: pytest.LogCaptureFixture) -> None:
    """The default."""
    caplog.set_level(logging.DEBUG)
    answers: Any = Answers(RegistryAway("no"))
    one = Prefetch(Schemas(), answers, [], 60.0)
    one.note([framed(1)])
    assert one.complete()
    assert answers.asked == []
