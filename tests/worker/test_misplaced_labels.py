"""Labels in other partitions than their examples are told: by a sample at the start, and by what is held later on."""

import pytest
from structlog.testing import capture_logs

from mistakebound.core.records import Outgoing
from mistakebound.log.protocol import Log, Refused, Unreachable
from mistakebound.settings import Settings
from mistakebound.worker.events import Event, LabelsMisplaced, Settled, StateDropped
from mistakebound.worker.misplaced_labels import LOOK_EVERY_S, SAMPLE_AGAIN_S, MisplacedLabels
from tests.worker.support.working import Run, altered, example, label, opened, settings_for

PARTITIONS = 3


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def inputs(count: int, apart: int) -> list[Outgoing]:
    """Examples and their labels; the labels of the first `apart` lie in the next partition."""
    found = []
    for number in range(count):
        found.append(example(number, {"a": 1.0}, 1_000 + number, PARTITIONS))
        one = label(number, True, 1_000 + number, PARTITIONS)
        found.append(one._replace(partition=(one.partition + (number < apart)) % PARTITIONS))
    return found


class Watch:
    """On a log, with what it told."""

    def __init__(self, log: Log, settings: Settings) -> None:
        self.told: list[Event] = []
        self.clock = Clock()
        self.watch = MisplacedLabels(log, settings, self.told.append, clock=self.clock)

    def later(self, event: Event, seconds: float = LOOK_EVERY_S) -> list[Event]:
        self.clock.now_s += seconds
        self.watch.observe(event)
        return self.told


def test_a_start_is_refused_where_ids_prove_it() -> None:
    """With a place where it is seen, the remedy, and the setting that starts all the same. No id is in the message."""
    settings = settings_for()
    with opened(settings, PARTITIONS) as log:
        log.append(inputs(100, apart=40))
        with pytest.raises(Refused, match="40 of 100 sampled labels") as refusal:
            Watch(log, settings).watch.begin()
    for told in ("examples-2 offset 0", "labels-0 offset", "misplaced_labels", "late-labels.md"):
        assert told in str(refusal.value)
    assert "i0" not in str(refusal.value)


def test_the_settings_may_let_it_start() -> None:
    """It says so loudly, and looks again later: when the labels were sent again to their place, all is well."""
    settings = altered(settings_for(), worker={"misplaced_labels": "warn"})
    with opened(settings, PARTITIONS) as log, capture_logs() as lines:
        log.append(inputs(100, apart=40))
        watch = Watch(log, settings)
        watch.watch.begin()
        assert watch.told == [LabelsMisplaced(40)]
        assert [(line["event"], line["log_level"]) for line in lines] == [("labels_misplaced", "error")]
        log.append([label(number, True, 2_000, PARTITIONS) for number in range(40)])
        settled = Settled(Run(log, settings).held, 1)
        assert watch.later(settled) == [LabelsMisplaced(40)]
        assert watch.later(settled, SAMPLE_AGAIN_S) == [LabelsMisplaced(40), LabelsMisplaced(0)]


@pytest.mark.parametrize("apart", [0, 4])
def test_a_slip_stops_nothing(apart: int) -> None:
    """A few labels may be anybody's mistake; nothing is refused, and the worker is ready."""
    settings = settings_for()
    with opened(settings, PARTITIONS) as log, capture_logs() as lines:
        log.append(inputs(100, apart))
        watch = Watch(log, settings)
        watch.watch.begin()
        assert watch.told == []
        assert [line["log_level"] for line in lines] == ["warning"] * bool(apart)


def test_labels_without_examples_are_nothing_unusual() -> None:
    """Neither at the start nor later, however many there are."""
    settings = settings_for()
    with opened(settings, PARTITIONS) as log:
        log.append([label(number, True, 1_000, PARTITIONS) for number in range(200)])
        watch = Watch(log, settings)
        watch.watch.begin()
        assert watch.later(Settled(Run(log, settings).held, 1)) == []


def test_what_comes_while_the_worker_runs_is_told_and_taken_back() -> None:
    """By parked labels whose example waits in another partition; it goes when they do."""
    settings = altered(settings_for(), labels={"max_delay": 1000, "parking": 1})
    with opened(settings, PARTITIONS) as log:
        watch = Watch(log, settings)
        watch.watch.begin()
        log.append(inputs(100, apart=40))
        run = Run(log, settings)
        assert watch.later(Settled(run.held, 1), LOOK_EVERY_S - 1) == []
        assert watch.later(Settled(run.held, 1), 1) == [LabelsMisplaced(40)]
        assert watch.later(Settled(run.held, 1)) == [LabelsMisplaced(40)]
        log.append([example(1_000 + number, {}, 10_000, PARTITIONS) for number in range(PARTITIONS)])
        run = Run(log, settings)  # the parking is over
        assert watch.later(Settled(run.held, 1))[1:] == [LabelsMisplaced(0)]


def test_nothing_held_is_nothing_known() -> None:
    """Until the next assignment."""
    settings = settings_for()
    with opened(settings, PARTITIONS) as log:
        log.append(inputs(100, apart=40))
        watch = Watch(log, settings)
        watch.later(Settled(Run(log, settings).held, 1))
        assert watch.later(StateDropped()) == [LabelsMisplaced(40), LabelsMisplaced(0)]


def test_a_topic_that_cannot_be_sampled_stops_nothing() -> None:
    """The worker's own reading will say what is wrong, if it is still wrong then."""

    class Broken:
        partitions = PARTITIONS

        def low_watermark(self, *asked: object) -> int:
            raise Unreachable("no broker answers")

    watch = Watch(Broken(), settings_for())  # type: ignore[arg-type]
    with capture_logs() as lines:
        watch.watch.begin()
    assert [(line["event"], line["error"]) for line in lines] == [("labels_not_sampled", "no broker answers")]
