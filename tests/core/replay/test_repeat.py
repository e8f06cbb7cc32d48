"""A recording is repeated as it was recorded: the live stream's numbers, for any fleet; or run afresh, and that is said."""

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mistakebound.core.messages.schema import Base, encode, read_outcomes
from mistakebound.core.records import INPUTS, OUTPUTS, Record
from mistakebound.core.replay.plan import ASKED, Plan, carry_out, planned, report_as
from mistakebound.core.replay.recorded import NotAsRecorded, Recorded
from mistakebound.core.replay.replay import report_of
from mistakebound.core.reporting.report import Report
from mistakebound.core.step.step import Step
from mistakebound.settings import Settings
from tests.core.support.audited import Lists
from tests.core.support.every_kind import CASES, EVERY_CASE, Case
from tests.core.support.fleets import Fleet
from tests.support.tries import tried

NOTHING_GIVEN = Settings()


def worked(seed: int, case: Case | None = None) -> Fleet:
    fleet = Fleet(Random(seed), case)
    fleet.run()
    return fleet


def replayed(
    records: list[Record], partitions: int, settings: Settings = NOTHING_GIVEN, *, afresh: bool = False
) -> tuple[Plan, Report]:
    recorded = Recorded(records, partitions)
    plan = planned(recorded, settings, afresh=afresh)
    return plan, report_as(plan, report_of(carry_out(recorded, plan)))


@tried(300, deadline=None)
@given(st.integers(0, 2**32))
def test_a_fleets_recording_comes_out_as_the_live_stream_did(seed: int) -> None:
    """Any learner, workers, partitions, moves and deaths, any order of the file's lines: the report is the log's own.

    Nothing is given but the file.
    """
    fleet = worked(seed)

    plan, report = replayed(fleet.recording(), fleet.partitions)

    assert plan.afresh is None
    assert report.to_json() == fleet.live().to_json()


@EVERY_CASE
def test_predictions_updates_and_dead_letters_are_made_again_to_the_byte(case: Case) -> None:
    """For every learner: what each partition step writes is what was written, apart from where a rebuild would begin.

    `updates` of learners that do not average tell a clock of other partitions that nothing depends on.
    """
    fleet = worked(5, case)
    recorded = Recorded(fleet.recording(), fleet.partitions)
    steps: list[Step] = []

    carry_out(recorded, planned(recorded, NOTHING_GIVEN), taken=steps.append)

    made = Lists(fleet.partitions, {})
    for one in (output for step in steps for output in step.transaction.outputs):
        made.records[one.topic, one.partition].append(
            Record(one.topic, one.partition, 0, 0, one.key, one.value, one.headers)
        )
    for p in range(fleet.partitions):
        for topic in ("predictions", "dead-letters"):
            assert _contents(made, topic, p) == _contents(
                Lists(fleet.partitions, fleet.log.records), topic, p
            )
        written = [
            each for each in Lists(fleet.partitions, fleet.log.records).values("updates", p) if "n" in each
        ]
        for one, other in zip(made.values("updates", p), written, strict=True):
            assert one | {"clock": None} == other | {"clock": None}


def _contents(lists: Lists, topic: Any, partition: int) -> list[Any]:
    return [(each.key, each.value, each.headers) for each in lists.records[topic, partition]]


WANTED, ENOUGH = ("deaths", "moves", "side by side", "differs afresh"), 3


def test_the_fleets_do_what_fleets_do() -> None:
    """Several workers step at versions of which none is the newer one; workers die, partitions move."""
    seen: Counter[str] = Counter()
    for seed in range(120):
        fleet = worked(seed)
        seen["deaths"] += fleet.deaths
        seen["moves"] += fleet.moves
        versions = [
            read_outcomes(record).model.updates
            for p in range(fleet.partitions)
            for record in fleet.log.records["outcomes", p]
        ]
        seen["side by side"] += any(
            any(a < b for a, b in zip(one, other, strict=True))
            and any(a > b for a, b in zip(one, other, strict=True))
            for one in versions
            for other in versions
        )
        seen["differs afresh"] += (
            replace(replayed(fleet.recording(), fleet.partitions, afresh=True)[1], afresh=None)
            != fleet.live()
        )
        if min(seen[what] for what in WANTED) >= ENOUGH:
            return
    raise AssertionError(seen)


# --- parts of a recording -----------------------------------------------------------------------------------


def test_a_recording_of_inputs_alone_is_run_afresh() -> None:
    """Nothing says what a worker made of them; the report says why it was run anew."""
    fleet = worked(3)
    inputs = [record for record in fleet.recording() if record.topic in INPUTS]

    plan, report = replayed(inputs, fleet.partitions, fleet.settings)

    assert plan.afresh == report.afresh == "it holds no outcomes"
    assert replace(report, afresh=None) == replace(
        replayed(fleet.recording(), fleet.partitions, fleet.settings, afresh=True)[1], afresh=None
    )


def test_outcomes_without_updates_are_enough_in_the_first_epoch() -> None:
    """The settings, which only `updates` hold, must then be given."""
    fleet = worked(3)
    records = [record for record in fleet.recording() if record.topic in (*INPUTS, "outcomes")]

    plan, report = replayed(records, fleet.partitions, fleet.settings)

    assert plan.afresh is None
    assert report.to_json() == fleet.live().to_json()


@pytest.mark.parametrize(
    ("topic", "why"),
    [
        ("outcomes", "begins in the middle"),
        ("examples", "of partition 0 that were consumed"),
        ("labels", "of the"),
    ],
)
def test_a_recording_cut_by_retention_is_run_afresh(topic: str, why: str) -> None:
    """Its first outcomes or inputs are gone: the numbers before them cannot be made again."""
    fleet = worked(2, CASES["averaged perceptron"])
    cut = [
        record
        for record in fleet.recording()
        if record.topic != topic
        or record.offset > fleet.log.records["outcomes", 0][0].offset + 7 * (topic != "outcomes")
    ]

    plan, report = replayed(cut, fleet.partitions)

    assert why in str(plan.afresh)
    assert report.afresh == plan.afresh


def test_inputs_that_the_worker_had_not_come_to_are_left_out() -> None:
    """The numbers are those of the moment of the recording."""
    fleet = Fleet(Random(11))
    fleet.run(rounds=8)
    recorded = Recorded(fleet.recording(), fleet.partitions)
    plan = planned(recorded, NOTHING_GIVEN)

    state = carry_out(recorded, plan)

    assert report_as(plan, report_of(state)).to_json() == fleet.live().to_json()
    assert recorded.left > 0


@tried(100, deadline=None)
@given(st.integers(0, 2**32))
def test_what_was_written_while_the_recording_was_made_does_not_matter(seed: int) -> None:
    """Topics end at slightly different moments: a step may rest on updates whose own step came too late for the file."""
    fleet = Fleet(Random(seed))
    fleet.run(rounds=40)
    early = dict(fleet.log.next)
    live = {p: len(fleet.log.records["outcomes", p]) for p in range(fleet.partitions)}
    fleet.run(rounds=40)
    cut = fleet.random.randrange(fleet.partitions)
    records = [
        record
        for record in fleet.recording()
        if (record.topic, record.partition) != ("outcomes", cut) or record.offset < early["outcomes", cut]
    ]
    recorded = Recorded(records, fleet.partitions)
    plan = planned(recorded, NOTHING_GIVEN)

    report = report_as(plan, report_of(carry_out(recorded, plan)))

    assert (
        report.mistakes
        == sum(
            read_outcomes(last).tallies.life.mistakes  # type: ignore[union-attr]
            for p in range(fleet.partitions)
            if (last := ([*fleet.log.records["outcomes", p]][: live[p] if p == cut else None] or [None])[-1])
            is not None
        )
    )


@tried(200, deadline=None)
@given(st.integers(0, 2**32))
def test_a_recording_whose_end_was_lost_is_repeated_as_far_as_it_goes_or_not_at_all(seed: int) -> None:
    """A copy that broke off between two lines: the counts are those of its newest outcomes, or it says that they are not."""
    fleet = worked(seed)
    records = fleet.recording()
    kept = records[: fleet.random.randrange(len(records) + 1)]
    newest = {record.partition: record for record in kept if record.topic == "outcomes"}
    tallies = [read_outcomes(record).tallies for record in newest.values()]

    try:
        plan, report = replayed(kept, fleet.partitions, fleet.settings)
    except NotAsRecorded:
        return

    if plan.afresh is None:
        assert report.mistakes == sum(each.life.mistakes for each in tallies if each is not None)


# --- epochs -------------------------------------------------------------------------------------------------


@tried(60, deadline=None)
@given(st.integers(0, 2**32))
@example(162)  # a label of an id that was forgotten, and is parked again
def test_a_recording_of_several_epochs_is_repeated_through_all_of_them(seed: int) -> None:
    """Each with its own settings, and with the version that it is based on; ids that wait go on into the next."""
    random = Random(seed)
    fleet = Fleet(random, CASES["averaged perceptron"])
    fleet.run(rounds=random.randrange(1, 40))
    based = random.random() < 0.5
    base = Base(1, [_updates(fleet, p) // 2 for p in range(fleet.partitions)]) if based else None
    learner = {"learner": {"kind": "averaged-perceptron" if based else "margin-perceptron", "margin": 0.5}}
    kept = fleet.settings.model_dump(include={"features", "batch"})
    labels = fleet.settings.labels.model_dump() | {"max_delay": 0.02}
    for _ in range(random.choice((1, 1, 2))):  # the first of two may see no work
        labels["remember"] = random.choice((1, 2, 3, 5, 1000))
        fleet.begin_epoch(Settings.model_validate({**kept, **learner, "labels": labels}), base)
        base = None
        fleet.run(rounds=random.choice((0, 0, 10)))
    fleet.run()
    recording = fleet.recording()

    plan, report = replayed(recording, fleet.partitions)

    assert plan.afresh is None
    assert report.to_json() == fleet.live().to_json()
    found = Lists(fleet.partitions, {**fleet.inputs, **fleet.log.records}).audit()
    assert found.first == []
    assert not any("remember" in note for note in found.notes)


def _updates(fleet: Fleet, partition: int) -> int:
    return len(fleet.log.records["updates", partition]) - 1


def test_an_epoch_that_remembers_more_brings_no_id_back() -> None:
    """What the one before had forgotten stays so, though a worker that takes over reads its decisions again."""
    random = Random(82845)
    fleet = Fleet(random, CASES["averaged perceptron"])
    fleet.run(rounds=20)
    labels = fleet.settings.labels.model_dump()
    labels["remember"] += 2
    fleet.begin_epoch(Settings.model_validate({**fleet.settings.model_dump(), "labels": labels}))
    fleet.run()

    plan, report = replayed(fleet.recording(), fleet.partitions)

    assert plan.afresh is None
    assert report.to_json() == fleet.live().to_json()


# --- settings -----------------------------------------------------------------------------------------------


def test_settings_come_from_the_recording_unless_given() -> None:
    """Learner, features and labels; what decides nothing, such as the size of batches, comes from whoever asks."""
    fleet = worked(3)

    plan, _ = replayed(
        fleet.recording(), fleet.partitions, Settings.model_validate({"batch": {"max_records": 2}})
    )

    assert plan.recorded
    assert plan.settings.of_epoch() == fleet.settings.of_epoch()
    assert plan.settings.batch.max_records == 2


def test_given_settings_that_are_the_recorded_ones_change_nothing() -> None:
    """As from the configuration file that the worker had."""
    fleet = worked(3)
    given = Settings.model_validate(fleet.settings.model_dump())

    plan, report = replayed(fleet.recording(), fleet.partitions, given)

    assert plan.afresh is None
    assert report.to_json() == fleet.live().to_json()


def test_another_learner_runs_the_inputs_afresh() -> None:
    """What is not given stays as recorded, but for the other learner's own keys; each difference is named."""
    fleet = Fleet(Random(3), CASES["averaged perceptron"])
    fleet.run()
    given = Settings.model_validate({"learner": {"kind": "margin-perceptron", "margin": 2.0}})

    plan, report = replayed(fleet.recording(), fleet.partitions, given)

    assert "learner.kind is 'margin-perceptron', recorded 'averaged-perceptron'" in str(report.afresh)
    assert plan.settings.labels == fleet.settings.labels
    assert plan.settings.learner.tie == "mistake"


def test_a_setting_that_differs_runs_the_inputs_afresh() -> None:
    """The other keys of its table are the recording's."""
    fleet = worked(3)
    given = Settings.model_validate({"labels": {"remember": 77, "ask": 2}})

    plan, _ = replayed(fleet.recording(), fleet.partitions, given)

    assert plan.afresh == (
        f"labels.ask is 2.0, recorded unset; labels.remember is 77, recorded {fleet.settings.labels.remember}"
    )
    assert plan.settings.labels.parking == fleet.settings.labels.parking


def test_what_is_asked_to_run_afresh_says_so() -> None:
    """With the recording's settings."""
    fleet = worked(3)

    plan, report = replayed(fleet.recording(), fleet.partitions, afresh=True)

    assert report.afresh == ASKED
    assert plan.settings.of_epoch() == fleet.settings.of_epoch()


# --- recordings that do not follow --------------------------------------------------------------------------


def _altered(topic: str, change: Any) -> tuple[list[Record], int]:
    fleet = worked(2, CASES["averaged perceptron"])
    log = Lists(fleet.partitions, {**fleet.inputs, **fleet.log.records})
    place = len(log.records[topic, 0]) // 2  # type: ignore[index]
    log.rewrite(topic, 0, place, change)  # type: ignore[arg-type]
    return [record for records in log.records.values() for record in records], fleet.partitions


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("its tallies of life are", lambda value: value["tallies"]["life"].update(mistakes=99)),
        (
            "decision",
            lambda value: value["decisions"].append(
                value["decisions"][0] if value["decisions"] else {"outcome": "expired"}
            ),
        ),
        ("updates", lambda value: value["model"]["updates"].__setitem__(0, 10_000)),
        ("it consumed", lambda value: value["order"].__setitem__(0, 10_000)),
        ("stream time", lambda value: value.update(at=1)),
        ("partitions", lambda value: value["model"]["updates"].append(0)),
    ],
)
def test_a_recording_whose_inputs_come_to_something_else_is_refused(what: str, change: Any) -> None:
    """With the place of the first difference, and what to do; never with other numbers than it says."""
    records, partitions = _altered("outcomes", change)

    with pytest.raises(NotAsRecorded, match=rf"outcomes-0 offset \d+: .*{what}.*--afresh"):
        replayed(records, partitions)


def test_a_damaged_recording_can_still_be_run_afresh() -> None:
    """Its inputs are as they were, whatever its outputs and settings are."""
    fleet = worked(2)
    records = [
        record if record.topic in INPUTS else record._replace(value=b"nonsense")
        for record in fleet.recording()
    ]
    given = Settings.model_validate(fleet.settings.model_dump())

    with pytest.raises(NotAsRecorded, match="is not a record of the worker"):
        replayed(records, fleet.partitions)
    plan, report = replayed(records, fleet.partitions, given, afresh=True)

    assert not plan.recorded
    assert report.examples > 0


def test_settings_of_a_newer_version_are_refused_by_name() -> None:
    """What they mean is not guessed."""
    fleet = worked(2)
    records = [
        record._replace(value=(record.value or b"").replace(b'"learner":{', b'"learner":{"newer":1,'))
        if record.topic == "updates"
        else record
        for record in fleet.recording()
    ]

    with pytest.raises(NotAsRecorded, match=r"learner\.newer"):
        replayed(records, fleet.partitions)


def test_outputs_are_not_needed_for_a_replay_afresh() -> None:
    """It is the inputs' alone, with or without them."""
    fleet = worked(2)
    inputs = [record for record in fleet.recording() if record.topic not in OUTPUTS]

    with_them = replayed(fleet.recording(), fleet.partitions, fleet.settings, afresh=True)[1]
    alone = replayed(inputs, fleet.partitions, fleet.settings, afresh=True)[1]

    assert encode(with_them.as_dict()) == encode(alone.as_dict())
