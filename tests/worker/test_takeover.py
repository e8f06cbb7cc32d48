"""What a worker refuses to go on from, and what it gets over: lost, moved and foreign state."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from mistakebound.core.faults import BadLog
from mistakebound.core.messages.schema import Base, Epoch, encode
from mistakebound.core.records import Outgoing, Topic
from mistakebound.log.protocol import OffsetLost, Refused
from tests.core.support.histories import ledger_of
from tests.log.support.place import forget_in_file
from tests.worker.support.faulty import FaultyLog
from tests.worker.support.working import (
    Recount,
    Run,
    altered,
    example,
    label,
    only_takes_over,
    opened,
    rejected,
    settings_on,
    stream,
    written,
)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[list[Any]]:
    """What the worker logs."""
    with capture_logs() as said:
        yield said


def change(file: Path, statement: str, *values: Any) -> None:
    connection = sqlite3.connect(file)
    assert connection.execute(statement, values).rowcount > 0
    connection.commit()
    connection.close()


# --- offsets ------------------------------------------------------------------------------------------------


def test_lost_offsets_are_refused_with_the_remedy(file: Path) -> None:
    """Without the group's offsets every example would be predicted again: refused, with the way out."""
    settings = settings_on(file)
    with opened(settings) as log:
        log.append(stream(20))
        Run(log, settings)
        change(file, "DELETE FROM positions")
        with pytest.raises(Refused, match=r"no committed offset for partition 0.*--resume-from-outcomes"):
            Run(log, settings)


def test_lost_offsets_are_found_in_the_outcomes_when_told_so(file: Path) -> None:
    """From the newest outcomes it goes on as if nothing had been lost."""
    settings = settings_on(file)
    with opened(settings, 2) as log:
        log.append(stream(20, partitions=2))
        Run(log, settings)
        change(file, "DELETE FROM positions")
        log.append(stream(20, partitions=2, first=20))
        Run(log, settings, from_outcomes=True)
        assert len(Recount(log, settings).predicted) == 40
        Run(log, settings)  # the offsets are there again


def test_a_rebuild_after_lost_offsets_finds_idle_partitions_again(file: Path) -> None:
    """A partition without new input has committed no offset yet when the other's transaction fails."""
    settings = settings_on(file)
    with opened(settings, 2) as log:
        log.append(stream(20, partitions=2))
        Run(log, settings)
        change(file, "DELETE FROM positions")
        log.append([example(100, {"a": 1}, 5_000, 2)])
        faulty = FaultyLog(log, {("commit", 0): "failed", ("poll", 5): "rebalance"})
        Run(faulty, settings, from_outcomes=True)
        assert "failed" in faulty.happened
        assert len(Recount(log, settings).predicted) == 21


def test_offsets_that_were_lost_before_any_work_are_no_loss(file: Path) -> None:
    """A group that never committed starts where the inputs start, told to resume or not."""
    settings = settings_on(file)
    with opened(settings) as log:
        log.append(stream(20))
        forget_in_file(file)(settings.topic_name("examples"), 0, 5)
        Run(log, settings, from_outcomes=True)
        assert len(Recount(log, settings).predicted) == 15


@pytest.mark.parametrize("topic", ["predictions", "outcomes"])
def test_a_group_without_offsets_does_not_begin_over_either_output(file: Path, topic: Topic) -> None:
    """Predictions alone, or outcomes alone, are work as well: beginning again would predict their examples twice."""
    settings = settings_on(file)
    with opened(settings) as log:
        Run(log, settings)
        log.append(stream(5))
        log.exclusively(lambda: [Outgoing(topic, 0, None, b'{"part":1,"model":{},"decisions":[]}')])
        ends = log.high_watermark("predictions", 0)
        with pytest.raises(
            Refused, match=rf"no committed offset for partition 0, but {topic} holds its work"
        ):
            Run(log, settings)
        assert log.high_watermark("predictions", 0) == ends


@pytest.mark.parametrize(("which", "told"), [("metadata != ''", "3 and 20"), ("metadata = ''", "20 and 3")])
def test_an_offset_that_was_moved_for_one_input_is_refused(file: Path, which: str, told: str) -> None:
    """Of the examples or of the labels; the recovery point lies beside the offset of the examples."""
    settings = settings_on(file)
    with opened(settings) as log:
        log.append([example(number, {"a": 1}, 1_000 + number) for number in range(20)])
        log.append([label(number, True, 2_000 + number) for number in range(20)])
        Run(log, settings)
        change(file, f"UPDATE positions SET next = 3 WHERE {which}")
        with pytest.raises(BadLog, match=rf"offsets are {told};.*moved the offsets"):
            Run(log, settings)


def test_a_group_that_never_worked_begins_with_the_oldest_that_is_there(file: Path) -> None:
    """Of either input: what was deleted before that is nobody's loss."""
    settings = settings_on(file)
    with opened(settings) as log:
        log.append([example(number, {"a": 1}, 1_000 + number) for number in range(10)])
        log.append([label(number, True, 2_000 + number) for number in range(10)])
        forget_in_file(file)(settings.topic_name("examples"), 0, 2)
        forget_in_file(file)(settings.topic_name("labels"), 0, 3)
        run = Run(log, settings)
        tallies = run.held.state.ledgers[0].tallies.life
        assert (tallies.examples["consumed"], tallies.labels["consumed"]) == (8, 7)


def test_an_epoch_that_is_based_on_updates_that_are_gone_is_refused(file: Path) -> None:
    """Its model would be another one than that which made the predictions."""
    settings = settings_on(file)
    with opened(settings) as log:
        log.append(stream(20))
        there = Run(log, settings).held.state.model.updates[0]
        follows = Epoch(2, 1, dict(settings.of_epoch()), Base(1, [there + 1]))
        log.exclusively(lambda: [Outgoing("updates", 0, None, encode(follows))])
        told = rf"updates-0 holds {there} of the {there + 1} updates of epoch 1 on which the present epoch is based"
        with pytest.raises(BadLog, match=told):
            Run(log, settings)


def test_moved_offsets_are_refused(file: Path) -> None:
    """OffsetSet that somebody has set are not those of the newest outcomes: both are named."""
    settings = settings_on(file)
    with opened(settings) as log:
        log.append(stream(20))
        Run(log, settings)
        change(file, "UPDATE positions SET next = 3 WHERE metadata != ''")
        with pytest.raises(
            BadLog, match=r"ends at Inputs\(examples=20, .*offsets are 3 and .*moved the offsets"
        ):
            Run(log, settings)


def test_offsets_of_another_program_are_refused(file: Path) -> None:
    """A committed offset without marks was not ours; the remedy is another group."""
    settings = settings_on(file)
    with opened(settings) as log:
        log.append(stream(20))
        Run(log, settings)
        change(file, "UPDATE positions SET metadata = 'theirs' WHERE metadata != ''")
        with pytest.raises(BadLog, match=r"'theirs' holds no recovery point.*choose another worker\.group"):
            Run(log, settings)


def test_a_takeover_knows_every_label_that_was_judged(file: Path) -> None:
    """Also those that taught nothing, of which `updates` says nothing: averages are taken over all of them."""
    settings = settings_on(file, learner={"kind": "averaged-perceptron"})
    with opened(settings) as log:
        log.append([example(number, {"a": 1}, 1_000 + 2 * number) for number in range(20)])
        log.append([label(number, True, 1_001 + 2 * number) for number in range(20)])
        run = Run(log, settings)
        assert run.held.state.model.updates == [1]
        assert run.held.state.model.clock == [20]

        again = Run(log, settings, stopping=only_takes_over).held.state.model

        assert again.clock == [20]
        assert again.digest() == run.held.state.model.digest()


# --- settings -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("checkpoints", [True, False])
def test_changed_settings_are_refused_by_key_and_values(file: Path, folder: Path, checkpoints: bool) -> None:
    """Each key with both values, whether a checkpoint of the former learner lies there or not."""
    settings = settings_on(file, checkpoint={"url": str(folder) if checkpoints else ""})
    with opened(settings) as log:
        log.append(stream(20))
        Run(log, settings)
        changed = altered(
            settings, learner={"kind": "averaged-perceptron"}, labels={"max_delay": 7, "ask": 2}
        )
        with pytest.raises(Refused) as refused:
            Run(log, changed)
        assert not rejected(folder)
        Run(log, settings)
    assert "learner.kind is 'averaged-perceptron', the epoch has 'perceptron'" in str(refused.value)
    assert "labels.max_delay is 7.0, the epoch has 1000.0" in str(refused.value)
    assert "labels.ask is 2.0, the epoch has none" in str(refused.value)
    assert "features" not in str(refused.value)


def test_settings_that_do_not_accept_the_logs_features_are_refused_as_changed(file: Path) -> None:
    """The reason is the changed key, not the feature that can no longer be read."""
    settings = settings_on(file, features={"missing": "skip"})
    with opened(settings) as log:
        log.append([example(1, {"a": 1, "b": None}, 10), label(1, True, 11)])
        Run(log, settings)
        assert Recount(log, settings).tallies[0].life.updates == 1
        with pytest.raises(Refused, match=r"features\.missing is 'reject', the epoch has 'skip'"):
            Run(log, altered(settings, features={"missing": "reject"}))


@pytest.mark.parametrize("checkpoints", [True, False])
def test_a_new_epoch_keeps_ledgers_and_starts_the_model_anew(
    file: Path, folder: Path, checkpoints: bool
) -> None:
    """Examples of the older epoch still get their labels: a mistake of theirs counts for life only."""
    settings = settings_on(file, checkpoint={"url": str(folder) if checkpoints else ""})
    with opened(settings) as log:
        log.append(stream(20))
        log.append([example(50, {"a": 1}, 5_000)])
        Run(log, settings)
        before = Recount(log, settings).tallies[0]
        changed = altered(settings, features={"bias": False})
        second = encode(Epoch(2, 1, dict(changed.of_epoch())))
        log.exclusively(lambda: [Outgoing("updates", 0, None, second)])
        log.append([label(50, value, 5_001) for value in (True, False)])
        run = Run(log, changed)
        ledger = run.held.state.ledgers[0]
        assert not rejected(folder), "the ledger of the older epoch's checkpoint was of use"
        assert run.held.state.model.epoch == 2
        assert ledger.tallies.epoch.labels["consumed"] == 2
        assert ledger.tallies.epoch.labels["applied"] == ledger.tallies.epoch.examples["labelled"] == 1
        assert ledger.tallies.epoch.mistakes == 0
        assert ledger.tallies.life.examples["labelled"] == before.life.examples["labelled"] + 1
        assert run.held.state.model.updates == [ledger.tallies.epoch.updates]
        again = Run(log, changed, stopping=only_takes_over)
        assert again.held.state.ledgers[0].tallies == ledger.tallies
        assert again.held.state.model.digest() == run.held.state.model.digest()


# --- log starts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("topic", ["outcomes", "predictions"])
def test_a_log_that_starts_above_a_needed_position_is_refused(file: Path, topic: str) -> None:
    """What retention has deleted and the ledger needs is named, with the remedy."""
    settings = settings_on(file, batch={"max_records": 10})
    with opened(settings) as log:
        log.append([example(1000, {"a": 1}, 1_000)])  # waits all the time
        log.append(stream(60))
        Run(log, settings)
        forget_in_file(file)(settings.topic_name(topic), 0, log.high_watermark(topic, 0) - 1)  # type: ignore[arg-type]
        with pytest.raises(
            OffsetLost, match=rf"{topic}-0.*Partition 0 still needs .*checkpoint.* raise the retention"
        ):
            Run(log, settings)


@pytest.mark.parametrize("checkpoints", [False, True])
@pytest.mark.parametrize("labelled", [(1, 2), (1,)])
def test_predictions_of_examples_that_have_ended_may_be_deleted(
    file: Path, folder: Path, labelled: tuple[int, ...], checkpoints: bool
) -> None:
    """Nothing there is needed, wherever the recovery point is: what waits is found, and the work goes on."""
    settings = settings_on(file, checkpoint={"url": str(folder) if checkpoints else ""})
    with opened(settings) as log:
        log.append([example(1, {"a": 1}, 1_000), example(2, {"a": 1}, 1_000)])
        log.append([label(number, True, 1_001) for number in labelled])
        held = Run(log, settings).held.state
        forget_in_file(file)(settings.topic_name("predictions"), 0, len(labelled))
        again = Run(log, settings).held.state
        assert ledger_of(again.ledgers[0]) == ledger_of(held.ledgers[0])
        assert len(again.ledgers[0].waiting) == 2 - len(labelled)
        log.append(stream(10, first=2_000))
        assert Run(log, settings).held.state.ledgers[0].tallies.life.examples["consumed"] == 12
        assert log.high_watermark("predictions", 0) == 12


@pytest.mark.parametrize("topic", ["predictions", "outcomes"])
def test_a_checkpoint_takes_the_place_of_what_retention_has_deleted(
    file: Path, folder: Path, topic: Topic
) -> None:
    """The same ledger and model, and the work goes on; without the file the worker refuses and names it."""
    settings = settings_on(file, batch={"max_records": 10}, checkpoint={"url": str(folder)})
    with opened(settings) as log:
        log.append([example(1000, {"a": 1}, 1_000)])  # waits all the time
        log.append(stream(60))
        held = Run(log, settings).held.state
        forget_in_file(file)(settings.topic_name(topic), 0, log.high_watermark(topic, 0) - 1)
        again = Run(log, settings, stopping=only_takes_over).held.state
        assert ledger_of(again.ledgers[0]) == ledger_of(held.ledgers[0])
        assert again.model.digest() == held.model.digest()
        (kept,) = written(folder)[-1:]
        content = kept.read_bytes()
        for path in written(folder):
            path.unlink()
        with pytest.raises(OffsetLost, match=r"no checkpoint reaches beyond .*checkpoint\.url"):
            Run(log, settings)
        kept.write_bytes(content)
        log.append(stream(10, first=2_000))
        Run(log, settings)


def test_deleted_updates_are_refused(file: Path) -> None:
    """A model without its first updates would be another model; the ways out are named."""
    settings = settings_on(file)
    with opened(settings) as log:
        log.append(stream(60))
        Run(log, settings)
        forget_in_file(file)(settings.topic_name("updates"), 0, 5)
        with pytest.raises(Refused, match=r"updates-0 starts at offset 5: .*Restore a checkpoint, or take"):
            Run(log, settings)


def test_updates_that_others_wrote_are_refused(file: Path) -> None:
    """The newest tally says how many updates there must be."""
    settings = settings_on(file)
    with opened(settings) as log:
        log.append(stream(60))
        Run(log, settings)
        taken = [record.value for record in log.read("updates", 0, 1)]
        more = (taken[-1] or b"").replace(b'"n":%d' % len(taken), b'"n":%d' % (len(taken) + 1))
        log.exclusively(lambda: [Outgoing("updates", 0, None, more)])
        with pytest.raises(BadLog, match=r"updates-0 holds \d+ updates of epoch 1, but the tally"):
            Run(log, settings)
