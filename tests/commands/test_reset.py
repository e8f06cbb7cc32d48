"""The next epoch: planned first, begun on demand, from nothing or from an earlier version."""

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mistakebound.core.messages.schema import Base, Epoch, Update, encode, read_outcomes, read_prediction
from mistakebound.core.records import Outgoing, Transaction
from mistakebound.log import open_log
from mistakebound.log.protocol import Log, Receipt, Refused, TransactionFailed
from mistakebound.log.sqlite.session import SqliteSession
from mistakebound.settings import Settings
from mistakebound.worker.epochs.reset import execute, planned
from tests.commands.support.command_line import ok, run
from tests.commands.support.epochs import PATIENCE_S, everything, flags, read_updates, work_on
from tests.faults.support.recount import digest
from tests.log.support.place import forget_in_file
from tests.worker.support.faulty import FaultyLog
from tests.worker.support.working import Run, altered, example, label, only_takes_over, opened, stream

pytestmark = pytest.mark.usefixtures("quiet")

WINNOW = {"kind": "winnow"}


def own_fold(log: Log, counted: Mapping[int, list[int]]) -> str:
    """The perceptron's digest over the first updates of each epoch and partition, by plain sums."""
    rows = []
    for p in range(log.partitions):
        row: dict[str, float] = {}
        for each in read_updates(log, p):
            if isinstance(each, Update) and each.n <= counted.get(each.epoch, [0] * log.partitions)[p]:
                for name, value in {**json.loads(bytes(each.features)), "BIAS": 1.0}.items():
                    row[name] = row.get(name, 0.0) + (1.0 if each.label else -1.0) * value
        rows.append(row)
    return digest(rows)


def audited(settings: Settings) -> None:
    """Every number of the log can be made again from its topics."""
    ok("audit", "--log", settings.log.url or "", f"--set=log.prefix={settings.log.prefix}", log=None)


def reset(log: Log, settings: Settings, base: Base | None = None) -> None:
    plan = planned(log, settings, base)
    assert plan is not None
    execute(log, settings, plan, PATIENCE_S)


# --- the plan ---------------------------------------------------------------------------------------------


def test_the_plan_says_what_would_change_and_changes_nothing(settings: Settings) -> None:
    """The present epoch, the next one, what differs, what no longer counts and what stays."""
    with opened(settings, 2) as log:
        log.append([example(900, {"a": 1}, 1), example(901, {"a": 1}, 1)])
        held = work_on(log, settings).held.state
        before = everything(log)
        result = ok("reset", *flags(altered(settings, learner=WINNOW)), log=None)
        assert everything(log) == before
    updates = ",".join(map(str, held.model.updates))
    for line in (
        f"epoch 1, from nothing; updates by partition: {updates}",
        "epoch 2, from nothing",
        'learner.kind: "perceptron" -> "winnow"',
        f"of epoch 1, the last updates by partition: {updates} (they stay in the log)",
        "2 waiting examples and 0 parked labels",
    ):
        assert line in result.stdout
    assert "nothing was changed; with --execute epoch 2 begins" in result.stderr


def test_the_plan_as_json_holds_both_epochs_whole(settings: Settings) -> None:
    """With all settings of each, not only those that differ."""
    with opened(settings) as log:
        updates = work_on(log, settings).held.state.model.updates
        plan = json.loads(
            ok("reset", "--to", f"{updates[0] - 1}", "--json", *flags(settings), log=None).stdout
        )
        assert len(read_updates(log)) == updates[0] + 1
    assert plan["now"].pop("topics")["labels"]["partitions"] == 1
    assert plan["now"].pop("messages")["label"] == "/label"
    assert plan["now"] == {
        "epoch": 1,
        "format": 1,
        "settings": json.loads(encode(settings.of_epoch())),
        "base": None,
        "updates": updates,
    }
    assert plan["next"]["base"] == {"epoch": 1, "updates": [updates[0] - 1]}
    assert (plan["changes"], plan["counts_no_more"], plan["executed"]) == ({}, {"1": [1]}, False)


def test_an_empty_log_needs_no_reset(settings: Settings) -> None:
    """The command says so, and writes nothing."""
    with opened(settings) as log:
        result = ok("reset", "--execute", *flags(settings), log=None)
        assert read_updates(log) == []
    assert "nothing to reset" in result.stderr


def test_an_epoch_without_any_work_can_be_followed_by_another(settings: Settings) -> None:
    """Whoever started with a wrong setting on an idle stream is not stuck; there are no positions yet."""
    other = altered(settings, learner=WINNOW)
    with opened(settings, 2) as log:
        Run(log, settings)
        assert set(log.group_positions().values()) == {None}
        reset(log, other)
        assert set(log.group_positions().values()) == {None}
        assert work_on(log, other).held.state.model.epoch == 2


# --- execution ----------------------------------------------------------------------------------------------


def test_after_a_reset_the_new_settings_work_and_the_old_are_refused(settings: Settings) -> None:
    """This is the remedy that a worker names when it refuses changed settings."""
    other = altered(settings, learner=WINNOW)
    with opened(settings, 2) as log:
        work_on(log, settings)
        with pytest.raises(Refused, match=r"(?s)learner\.kind is 'winnow'.*`mistakebound reset --execute`"):
            Run(log, other)
        positions = log.group_positions()
        result = ok("reset", "--execute", *flags(other), log=None)
        assert "epoch 2 has begun" in result.stderr
        assert log.group_positions() == positions
        for p in range(2):
            begun = read_updates(log, p)[-1]
            assert isinstance(begun, Epoch)
            assert (begun.epoch, begun.format) == (2, 1)
            assert begun.settings == json.loads(encode(other.of_epoch()))
        with pytest.raises(
            Refused, match=r"epoch 2.*\n.*learner\.kind is 'perceptron', the epoch has 'winnow'"
        ):
            Run(log, settings)
        assert work_on(log, other, first=100).held.state.model.epoch == 2


def test_counts_for_life_go_on_and_those_of_the_epoch_start_at_zero(settings: Settings) -> None:
    """An example that waited is labelled under the new model; its mistake counts for life only."""
    other = altered(settings, learner={**settings.learner.model_dump(), "delay_policy": "issued"})
    with opened(settings) as log:
        log.append([example(900, {"a": 1}, 1)])
        before = work_on(log, settings).held.state.ledgers[0]
        prediction = next(
            each.prediction
            for each in map(read_prediction, log.read("predictions", 0, 0))
            if each.id == "i900"
        )
        reset(log, other)
        log.append([label(900, not prediction, 2_000)])
        held = Run(log, other).held.state
        after = held.ledgers[0].tallies
        audited(settings)
    assert after.epoch.labels["applied"] == after.epoch.labels["consumed"] == 1
    assert (after.epoch.mistakes, after.epoch.examples["consumed"]) == (0, 0)
    assert after.life.mistakes == before.tallies.life.mistakes + 1
    assert after.life.examples["consumed"] == before.tallies.life.examples["consumed"]
    assert (held.model.epoch, held.model.clock) == (2, [1])
    # The new model has no update: its score is 0, and that is an error by itself (tie = mistake).
    assert held.model.updates == [after.epoch.updates] == [1]


def test_remembered_ids_stay_remembered(settings: Settings) -> None:
    """A second label of a resolved id is a duplicate in the new epoch, too."""
    with opened(settings) as log:
        log.append([example(1, {"a": 1}, 10), label(1, True, 11)])
        Run(log, settings)
        reset(log, settings)
        log.append([label(1, True, 12), example(1, {"a": 1}, 13)])
        Run(log, settings)
        decisions = [
            each for record in log.read("outcomes", 0, 0) for each in read_outcomes(record).decisions
        ]
        assert [each.outcome for each in decisions] == ["applied", "duplicate", "duplicate"]


@pytest.mark.parametrize("checkpoints", [True, False])
def test_what_was_forgotten_stays_so_where_more_is_remembered(
    settings: Settings, tmp_path: Path, checkpoints: bool
) -> None:
    """The next epoch's worker reads older decisions again, and forgets as they were made under their own limit."""
    url = str(tmp_path / "checkpoints") if checkpoints else ""
    settings = altered(settings, checkpoint={"url": url}, labels={"max_delay": 1000, "remember": 1})
    with opened(settings) as log:
        waits = [example(0, {"a": 1}, 9)]  # and holds the recovery point below all that follows
        log.append(waits + [one(n, 1, 10) for n in (1, 2, 3) for one in (_example, label)])
        Run(log, settings)
        more = altered(settings, labels={"max_delay": 1000, "remember": 3})
        reset(log, more)
        log.append([label(2, True, 12), label(3, True, 12)])
        Run(log, more)
        held = Run(log, more).held.state
        assert list(held.ledgers[0].remembered) == ["i3"]
        assert list(held.ledgers[0].parked) == ["i2"], "nobody knows its example any more"
        audited(more)


def _example(number: int, value: float, now: int) -> Outgoing:
    return example(number, {"a": value}, now)


@pytest.mark.parametrize("checkpoints", [True, False])
def test_epochs_follow_each_other(settings: Settings, tmp_path: Path, checkpoints: bool) -> None:
    """A partition without work in an epoch counts nothing of older ones, with and without checkpoints."""
    url = str(tmp_path / "checkpoints") if checkpoints else ""
    settings = altered(settings, checkpoint={"url": url})
    with opened(settings, 2) as log:
        work_on(log, settings)
        reset(log, settings)
        log.append([example(2_000, {"a": 1}, 2_000), label(2_000, True, 2_001)])
        assert Run(log, settings).held.state.model.updates == [1, 0]
        reset(log, settings)
        held = Run(log, settings).held.state
        assert (held.model.epoch, held.model.updates, held.model.clock) == (3, [0, 0], [0, 0])
        assert [held.ledgers[p].tallies.epoch.updates for p in range(2)] == [0, 0]
        assert work_on(log, settings, first=3_000).held.state.model.epoch == 3
        audited(settings)


# --- back to an earlier version --------------------------------------------------------------------------


def test_labels_that_were_poisoned_can_be_rolled_back(settings: Settings) -> None:
    """The new epoch starts from the version before them: its model is the sum of the updates up to it."""
    with opened(settings, 2) as log:
        good = work_on(log, settings).held.state.model
        version, clean = list(good.updates), good.digest()
        poisoned = work_on(log, settings, first=500).held.state.model
        assert poisoned.digest() != clean
        ok("reset", "--to", ",".join(map(str, version)), "--execute", *flags(settings), log=None)
        held = Run(log, settings, stopping=only_takes_over).held.state
        assert held.model.digest() == clean == own_fold(log, {1: version})
        assert (held.model.epoch, held.model.updates, held.model.clock) == (2, [0, 0], [0, 0])
        after = work_on(log, settings, first=900).held.state.model
        assert after.digest() == own_fold(log, {1: version, 2: after.updates})


def test_a_version_of_an_epoch_that_itself_has_a_base(settings: Settings) -> None:
    """Each base limits its own epoch; a version of an older epoch passes over what came between."""
    with opened(settings) as log:
        first = work_on(log, settings).held.state.model.updates
        reset(log, settings, Base(1, [first[0] - 2]))
        second = work_on(log, settings, first=500).held.state.model.updates
        reset(log, settings, Base(0, [second[0] - 1]))
        third = work_on(log, settings, first=900).held.state.model
        assert third.digest() == own_fold(log, {1: [first[0] - 2], 2: [second[0] - 1], 3: third.updates})
        reset(log, settings, Base(1, [3]))
        assert Run(log, settings).held.state.model.digest() == own_fold(log, {1: [3]})
        work_on(log, settings, first=1_300)
        audited(settings)


def test_the_base_is_folded_under_the_new_settings(settings: Settings) -> None:
    """Theta is the sum of the same mistakes, whatever the new learner makes of it."""
    other = altered(settings, learner={"kind": "averaged-perceptron"})
    with opened(settings) as log:
        updates = work_on(log, settings).held.state.model.updates
        reset(log, other, Base(1, updates))
        assert Run(log, other).held.state.model.digest() == own_fold(log, {1: updates})
        work_on(log, other, first=500)
        audited(settings)


def test_a_base_that_old_settings_cannot_read_is_refused_as_changed(settings: Settings) -> None:
    """A worker of the old settings names the keys that differ, not the base."""
    lenient = altered(settings, features={"missing": "skip"})
    with opened(settings) as log:
        log.append([example(1, {"a": 1, "b": None}, 10), label(1, True, 11)])
        Run(log, lenient)
        reset(log, lenient, Base(1, [1]))
        with pytest.raises(Refused, match=r"features\.missing is 'reject', the epoch has 'skip'"):
            Run(log, settings)


@pytest.mark.parametrize(
    ("version", "code", "said"),
    [
        ("99,0", 5, "1:99,0 goes beyond what exists: partition 0 has"),
        ("0,0,0", 5, "names 3 partitions, the log has 2; give one number of updates for each"),
        ("7:0,0", 5, "there is no epoch 7 to start from; there are: 1"),
        ("0:1,1", 2, "the first epoch is 1"),
        ("1:", 2, "'1:' is not a version"),
        ("1,-2", 2, "is not a version"),
        ("latest", 2, "is not a version; write the updates of each partition"),
    ],
)
def test_versions_that_do_not_exist_are_refused(
    settings: Settings, version: str, code: int, said: str
) -> None:
    """Each with what there is instead; nothing is written."""
    with opened(settings, 2) as log:
        work_on(log, settings)
        before = everything(log)
        result = run("reset", f"--to={version}", "--execute", *flags(settings), log=None)
        assert (result.exit_code, result.stdout) == (code, "")
        assert said in result.stderr
        assert everything(log) == before


def test_an_epoch_may_start_from_all_updates_that_exist_and_from_no_more(settings: Settings) -> None:
    """One more in either partition is refused: no worker could ever fold it."""
    with opened(settings, 2) as log:
        work_on(log, settings)
        there = [sum(isinstance(each, Update) for each in read_updates(log, p)) for p in range(2)]
        for p in range(2):
            beyond = [count + (p == each) for each, count in enumerate(there)]
            told = (
                rf"goes beyond what exists: partition {p} has {there[p]} updates of epoch 1, not {beyond[p]}"
            )
            with pytest.raises(Refused, match=told):
                planned(log, settings, Base(1, beyond))
        assert planned(log, settings, Base(1, there)) is not None


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        (
            {"features": {"missing": "reject"}},
            r"cannot be read .*null(.|\n)*features\.missing would be 'reject'",
        ),
        (
            {"features": {"missing": "skip", "bias": False}, "learner": {"kind": "elimination"}},
            r"cannot be read (.|\n)*learner\.kind would be 'elimination', epoch 1 has 'perceptron'",
        ),
        (
            {"features": {"missing": "skip"}, "labels": {"positive": "bad", "negative": "good"}},
            r"is of class True, which its settings do not declare(.|\n)*labels\.positive would be 'bad'",
        ),
    ],
)
def test_a_base_that_the_new_settings_cannot_read_is_refused(
    settings: Settings, sections: Any, said: str
) -> None:
    """Features, learner, classes: the update that cannot be read, and the keys that differ."""
    lenient = altered(settings, features={"missing": "skip"})
    with opened(settings) as log:
        log.append([example(1, {"a": 0.5, "b": None}, 10), label(1, True, 11)])
        Run(log, lenient)
        other = altered(settings, **sections)
        with pytest.raises(Refused, match=said):
            planned(log, other, Base(1, [1]))
        assert planned(log, other, Base(1, [0])) is not None, "it need not read what it does not start from"


# --- others at work -----------------------------------------------------------------------------------------


@contextmanager
def at_work(settings: Settings) -> Iterator[list[BaseException | None]]:
    """A worker in a thread, with a connection of its own; how it ended, once it has."""
    stop, ended = threading.Event(), []

    def work() -> None:
        try:
            with open_log(settings) as log:
                Run(log, settings, stopping=lambda idle: stop.is_set())
            ended.append(None)
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            ended.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield ended
    finally:
        stop.set()
        thread.join(PATIENCE_S)
    assert not thread.is_alive()


def until(holds: Any, what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, f"still not: {what}"
        time.sleep(0.02)


def test_a_running_worker_is_shut_out_and_writes_nothing_afterwards(settings: Settings) -> None:
    """It joins once more, finds the new epoch, and refuses that epoch's settings."""
    other = altered(settings, learner=WINNOW)
    with opened(settings) as log, at_work(settings) as ended:
        log.append(stream(200))
        until(lambda: log.group_positions()[0] is not None, "the worker works")
        ok("reset", "--execute", *flags(other), log=None)
        log.append(stream(50, first=1_000))
        until(lambda: ended, "the worker has ended")
        assert isinstance(ended[0], Refused)
        messages = read_updates(log)
        assert isinstance(messages[-1], Epoch), "no update follows the new epoch's record"
        position = log.group_positions()[0]
        assert position is not None
        last = read_outcomes(list(log.read("outcomes", 0, 0))[-1])
        assert last.inputs is not None
        assert (last.inputs.examples, last.inputs.labels) == (position.examples, position.labels)
        assert last.model.epoch == 1
        assert Run(log, other).held.state.model.epoch == 2
        audited(settings)


def test_a_worker_that_comes_back_in_between_is_shut_out_again(settings: Settings) -> None:
    """An attempt that was fenced is made again: a fenced worker joins only once more."""
    with opened(settings) as log:
        work_on(log, settings)
        faulty = FaultyLog(log, {("commit", 0): "fenced", ("commit", 1): "failed"})
        reset(faulty, settings)
        assert "fenced" in faulty.happened
        assert [each.epoch for each in read_updates(log) if isinstance(each, Epoch)] == [1, 2]


def test_nothing_follows_updates_of_which_the_first_are_gone(settings: Settings, tmp_path: Path) -> None:
    """No worker could fold a new epoch from what is left, whatever it starts from."""
    file = tmp_path / "log.db"
    settings = altered(settings, log={"url": f"sqlite:{file}", "prefix": settings.log.prefix})
    with opened(settings) as log:
        work_on(log, settings)
        forget_in_file(file)(settings.topic_name("updates"), 0, 2)
        with pytest.raises(Refused, match="updates-0 starts at offset 2: its first updates were deleted"):
            planned(log, settings, None)


def test_an_epoch_is_begun_by_the_groups_only_member(settings: Settings) -> None:
    """While others have partitions it waits, and then it gives up: their work could not be shut out."""
    with opened(settings, 2) as log:
        work_on(log, settings)
        plan = planned(log, settings, None)
        assert plan is not None
        shared: Any = FaultyLog(log, {("poll", 0): "shrink"})
        with pytest.raises(Refused, match="only 1 of 2 partitions were given to this command within 0 s"):
            execute(shared, settings, plan, 0.0)
        assert [each.epoch for each in read_updates(log) if isinstance(each, Epoch)] == [1]

        execute(FaultyLog(log, {("poll", 0): "shrink"}), settings, plan, PATIENCE_S)  # type: ignore[arg-type]

        assert [each.epoch for each in read_updates(log) if isinstance(each, Epoch)] == [1, 2]


def test_before_any_work_a_worker_that_comes_in_between_shuts_the_epoch_out(settings: Settings) -> None:
    """There are no positions to fence with yet, so the group is asked once more within the transaction."""
    with opened(settings) as log:
        Run(log, settings)
        plan = planned(log, settings, None)
        assert plan is not None
        with pytest.raises(Refused, match="another worker joined the group meanwhile"):
            execute(FaultyLog(log, {("poll", 1): "rebalance"}), settings, plan, PATIENCE_S)  # type: ignore[arg-type]
        assert [each.epoch for each in read_updates(log) if isinstance(each, Epoch)] == [1]


def test_a_commit_whose_answer_was_lost_is_found_in_the_log(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next attempt sees that the epoch has begun, and does not begin another."""
    commit = SqliteSession.commit

    def silent(session: SqliteSession, transaction: Transaction, generation: int) -> Receipt:
        commit(session, transaction, generation)
        raise TransactionFailed("the broker fell silent at the very commit")

    with opened(settings) as log:
        updates = work_on(log, settings).held.state.model.updates
        monkeypatch.setattr(SqliteSession, "commit", silent)
        reset(log, settings, Base(0, updates))
        assert [each.epoch for each in read_updates(log) if isinstance(each, Epoch)] == [1, 2]


def test_an_epoch_that_began_after_the_plan_is_not_followed_blindly(settings: Settings) -> None:
    """What was planned is what is done, or nothing."""
    with opened(settings) as log:
        work_on(log, settings)
        plan = planned(log, settings, None)
        assert plan is not None
        reset(log, altered(settings, learner=WINNOW))
        with pytest.raises(Refused, match="another epoch has begun since the plan was made"):
            execute(log, settings, plan, PATIENCE_S)
        assert len([each for each in read_updates(log) if isinstance(each, Epoch)]) == 2


def test_lost_positions_are_not_papered_over(settings: Settings) -> None:
    """Without positions nothing could shut out older work, and no worker could go on either."""
    with opened(settings) as log:
        work_on(log, settings)
        renamed = altered(settings, worker={"group": "another"})
        with open_log(renamed) as other:
            result = run("reset", "--execute", *flags(settings, "worker.group=another"), log=None)
            assert result.exit_code == 5
            assert "no committed offset for partition 0" in result.stderr
            assert "--resume-from-outcomes" in result.stderr
            assert len([each for each in read_updates(other) if isinstance(each, Epoch)]) == 1


def test_what_run_would_need_reset_needs_too(settings: Settings) -> None:
    """An epoch without labels.max_delay could never be worked in; a log without one has none to give."""
    with opened(settings):
        pass
    result = run("reset", "--execute", *flags(settings)[:3], log=None)
    assert result.exit_code == 2
    assert "labels.max_delay: missing" in result.stderr


# --- status ---------------------------------------------------------------------------------------------


def test_status_shows_the_epoch_its_base_and_what_changed(settings: Settings) -> None:
    """Even before any work is done in it."""
    other = altered(settings, learner={"kind": "averaged-perceptron"})
    with opened(settings, 2) as log:
        updates = work_on(log, settings).held.state.model.updates
        said = ok("status", *flags(settings), log=None).stdout
        assert "\nepoch 1, from nothing\n" in said
        reset(log, other, Base(1, [2, 1]))
    said = ok("status", *flags(other), log=None).stdout
    assert 'epoch 2, from version 1:2,1\n  learner.kind: "perceptron" -> "averaged-perceptron"\n' in said
    assert "updates          " in said and "(epoch 2, by partition: 0, 0)" in said
    found = json.loads(ok("status", "--json", *flags(other), log=None).stdout)
    assert found["epoch"] == {
        "number": 2,
        "base": {"epoch": 1, "updates": [2, 1]},
        "changed": {"learner.kind": {"before": "perceptron", "after": "averaged-perceptron"}},
    }
    assert (found["model"]["epoch"], found["model"]["updates"]) == (2, [0, 0])
    assert found["updates"] == sum(updates), "for life"


def test_status_finds_the_epochs_among_many_updates(settings: Settings) -> None:
    """Whichever partitions their records are in."""
    with opened(settings) as log:
        for number in range(1, 6):
            work_on(log, settings, count=7 * number, first=1_000 * number)
            told = json.loads(ok("status", "--json", *flags(settings), log=None).stdout)
            assert told["epoch"]["number"] == number
            assert list(told["epoch"]["changed"]) == (["labels.max_parked"] if number > 1 else [])
            settings = altered(settings, labels={"max_delay": 1000, "max_parked": 100 + number})
            reset(log, settings)
