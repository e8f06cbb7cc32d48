"""Schemas are there before a step needs them; while the registry owes an answer, no step is made."""

import json
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

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


class Stopped(Hurried):
    """A clock that moves only where somebody sleeps: a busy machine changes nothing."""

    def monotonic(self) -> float:
        return 1_000.0 + self._skipped_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Hurried:
    found = Stopped()
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


class Slow(Answers):
    """One that takes its time for each answer."""

    def __init__(self, clock: Hurried, takes_s: float, *answers: SchemaText | Exception | None) -> None:
        super().__init__(*answers)
        self._clock, self._takes_s = clock, takes_s

    def __call__(self, schema_id: str) -> SchemaText | None:
        self._clock.sleep(self._takes_s)
        return super().__call__(schema_id)


def test_it_is_asked_for_a_second_at_a_time_and_goes_on_where_it_stopped(clock: Hurried) -> None:
    """The group is polled in between; what arrives then is asked for, too, and nothing twice."""
    answers = Slow(clock, 0.25, None)
    one = Prefetch(Schemas(), answers, ["examples"], 0.0)
    one.note(map(framed, range(10)))
    assert not one.complete()
    assert answers.asked == ["0", "1", "2", "3"]
    assert one.away
    one.note([framed(10)])
    assert not one.complete()
    assert one.complete()
    assert answers.asked == [str(number) for number in range(11)]
    assert not one.away


def test_answers_that_take_longer_than_a_second_come_one_at_a_time(clock: Hurried) -> None:
    """Every call brings one, however slow."""
    answers = Slow(clock, 4.0, TEXT)
    one = Prefetch(Schemas(), answers, ["examples"], 60.0)
    one.note(map(framed, range(3)))
    assert [one.complete() for _ in range(3)] == [False, False, True]
    assert answers.asked == ["0", "1", "2"]


def test_a_slow_registry_that_answers_is_never_given_up(clock: Hurried) -> None:
    """The time that it may be away begins anew with each second of answers."""
    answers = Slow(clock, 400.0, RegistryAway("429"), None, RegistryAway("429"), None)
    one = Prefetch(Schemas(), answers, ["examples"], 60.0)
    one.note(map(framed, range(3)))
    assert [one.complete() for _ in range(5)] == [False] * 4 + [True]


def test_only_the_newest_unknown_ids_are_kept_and_every_schema(
    monkeypatch: pytest.MonkeyPatch, clock: Hurried
) -> None:
    """Peers may name any number of ids; registries hold few."""
    monkeypatch.setattr(prefetch, "MOST_UNKNOWN", 10)
    answers = Answers(TEXT, None)
    one = Prefetch(Schemas(), answers, ["examples"], 60.0)
    one.note(map(framed, range(40)))
    assert one.complete()
    assert one.schemas.fetched == {"0": TEXT} | {str(number): None for number in range(30, 40)}
    assert len(one._forget_at_s) == 10
    one.note([framed(0), framed(29), framed(30)])
    assert one.complete()
    assert answers.asked[40:] == ["29", "30"]  # which made room for 29


def test_unknown_ids_leave_the_memory_when_their_time_is_up(clock: Hurried) -> None:
    """With the next one that is asked for."""
    one = Prefetch(Schemas(), Answers(TEXT, None), ["examples"], 60.0)
    one.note(map(framed, range(40)))
    assert one.complete()
    assert len(one.schemas.fetched) == 40
    clock.sleep(61)
    one.note([framed(40)])
    assert one.complete()
    assert one.schemas.fetched == {"0": TEXT, "40": None}
    assert list(one._forget_at_s) == ["40"]


def test_of_many_unknown_ids_a_line_a_minute_tells(clock: Hurried) -> None:
    """The first at once, then how many, and some of them."""
    one = Prefetch(Schemas(), Answers(None), ["examples"], 0.0)
    with capture_logs() as lines:
        one.note(map(framed, range(1000)))
        assert one.complete()
        clock.sleep(59)
        assert one.complete()
        assert [(line["schemas"], line["count"]) for line in lines] == [(["0"], 1)]
        clock.sleep(2)
        for _ in range(2):
            assert one.complete()
    assert [(line["schemas"], line["count"]) for line in lines[1:]] == [
        ([str(number) for number in range(1, 11)], 999)
    ]


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


def test_forgotten_answers_decide_as_if_they_were_there(
    registry: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each unknown id is a dead letter, is asked for once a batch, and holds up nothing for good."""
    monkeypatch.setattr(prefetch, "MOST_UNKNOWN", 1)
    monkeypatch.setattr(prefetch, "ASKING_S", 0.0)
    settings = settings_of(registry.url, registry={"cache": 0})
    with opened(settings) as log:
        unknown = [outgoing("examples", n, framed(1000 + n).value) for n in range(5)]
        log.append(unknown)  # type: ignore[arg-type]
        send(log, registry.url, range(10, 12))
        before = len(registry.asked)
        Run(log, settings)
        asked = [path.partition("?")[0] for path in registry.asked[before:]]
        assert [asked.count(f"/schemas/ids/{1000 + n}") for n in range(5)] == [1] * 5
        assert reasons(log) == ["unknown-schema"] * 5
        assert [one["id"] for one in values(log, "predictions")] == ["i10", "i11"]


def test_a_worker_that_has_much_to_ask_is_live_and_not_ready(
    registry: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes round meanwhile; a restart would ask for all again."""
    monkeypatch.setattr(prefetch, "ASKING_S", 0.0)
    settings = settings_of(registry.url)
    seen: list[Health] = []
    with opened(settings) as log:
        log.append([outgoing("examples", n, framed(1000 + n).value) for n in range(5)])  # type: ignore[arg-type]

        def stopping(idle: bool, health: Health) -> bool:
            if "registry owes answers" in health.reason:
                seen.append(health)
            return idle

        watched(log, settings, stopping)
        assert len(seen) >= 3
        assert {(one.live, one.ready) for one in seen} == {(True, False)}
        assert reasons(log) == ["unknown-schema"] * 5


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
