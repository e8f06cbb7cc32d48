"""Starting warm: seeds form an epoch of their own, are never counted, and a worker goes on from them to the bit."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mistakebound.core.messages.schema import Base, Epoch, Update, read_outcomes
from mistakebound.core.replay.recording import encode, encode_header
from mistakebound.core.replay.replay import Row, as_stream, replay_rows, report_of
from mistakebound.log.protocol import Log, Refused, TransactionFailed
from mistakebound.settings import Settings
from mistakebound.worker.epochs.seeding import SeedPlan, execute, planned
from mistakebound.worker.takeover import fold_updates
from tests.commands.support.command_line import ok, run
from tests.commands.support.epochs import PATIENCE_S, everything, flags, read_updates, work_on
from tests.worker.support.faulty import FaultyLog
from tests.worker.support.working import Run, altered, opened, stream

pytestmark = pytest.mark.usefixtures("quiet")

KINDS = ("perceptron", "averaged-perceptron", "kernel-perceptron", "balanced-winnow")


def rows(count: int = 30, seed: int = 4) -> list[Row]:
    """Labelled examples like those of `stream`, with ids that come there too."""
    random = Random(seed)
    return [
        Row(f"i{number}", {"a": random.uniform(-1, 1), f"b{random.randrange(5)}": 1.0}, random.random() < 0.5)
        for number in range(count)
    ]


def seeded(log: Log, settings: Settings, count: int = 30, seed: int = 4) -> SeedPlan:
    plan = planned(log, settings, rows(count, seed))
    execute(log, settings, plan, PATIENCE_S)
    return plan


# --- what is written ------------------------------------------------------------------------------------


@pytest.mark.parametrize("partitions", [1, 3])
def test_seeds_are_an_epoch_of_their_own_on_which_the_next_is_based(
    settings: Settings, partitions: int
) -> None:
    """Each one marked, numbered without gaps, with what it was decided by; the next epoch counts from nothing."""
    with opened(settings, partitions) as log:
        plan = seeded(log, settings)
        for p in range(partitions):
            first, *seeds, last = read_updates(log, p)
            assert first == plan.seeds
            assert isinstance(last, Epoch)
            assert (last.epoch, last.base) == (2, Base(1, [len(each) for each in plan.updates]))
            assert seeds == plan.updates[p]
            assert seeds
            for n, each in enumerate(seeds, 1):
                assert isinstance(each, Update)
                assert (each.seed, each.epoch, each.n, each.model.updates[p]) == (True, 1, n, n - 1)


@pytest.mark.parametrize("kind", KINDS)
def test_the_seeded_model_is_the_textbooks_after_the_rows(settings: Settings, kind: str) -> None:
    """The same fold as a replay of the rows, to the bit."""
    settings = altered(settings, learner={"kind": kind})
    with opened(settings, 2) as log:
        seeded(log, settings)
        model = fold_updates(log, settings, None).model
        plain = replay_rows(rows(), settings, 2).model
        assert model.digest() == plain.digest()
        assert (model.updates, model.clock, model.epoch) == ([0, 0], [0, 0], 2)


def test_an_ordinary_update_says_nothing_of_seeds(settings: Settings) -> None:
    """Its bytes are the same as before seeds existed."""
    with opened(settings) as log:
        work_on(log, settings)
        assert not any(b"seed" in (record.value or b"") for record in log.read("updates", 0, 1))


# --- a worker afterwards --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_goes_on_from_seeds_to_the_bit_however_often_it_is_started(
    settings: Settings, kind: str, tmp_path: Path
) -> None:
    """Run through, or stopped and rebuilt from the log in between: the same predictions, tallies and model."""
    settings = altered(settings, learner={"kind": kind})
    other = altered(settings, log={**settings.log.model_dump(), "url": f"sqlite:{tmp_path / 'other.db'}"})
    with opened(settings, 2) as log, opened(other, 2) as reference:
        for each in (log, reference):
            seeded(each, settings)
        log.append(stream(60, partitions=2))
        reference.append(stream(60, partitions=2))
        steps = iter(range(1_000))
        small = altered(settings, batch={"max_records": 7})
        for stop in (3, 6, 9):
            Run(log, small, stopping=lambda idle, stop=stop: idle or next(steps) >= stop)  # type: ignore[misc]
        stopped, through = Run(log, small).held, Run(reference, small).held
        assert stopped.state.model.digest() == through.state.model.digest()
        assert stopped.state.model.version() == through.state.model.version()
        for p in range(2):
            assert stopped.state.ledgers[p].tallies == through.state.ledgers[p].tallies
            assert [one.value for one in log.read("predictions", p, 0)] == [
                one.value for one in reference.read("predictions", p, 0)
            ]


def test_no_seed_is_counted(settings: Settings) -> None:
    """Neither as a mistake nor as an update of the stream; and no theorem speaks of a warm start."""
    with opened(settings) as log:
        plan = seeded(log, settings)
        before = Run(log, settings).held.state
        assert sum(map(len, plan.updates)) > 5
        assert before.ledgers[0].tallies.life.mistakes == 0
        assert before.ledgers[0].tallies.life.updates == 0
        after = work_on(log, settings)
        tallies = after.held.state.ledgers[0].tallies
        own = [each for each in read_updates(log, 0) if isinstance(each, Update) and not each.seed]
        assert tallies.life.updates == tallies.epoch.updates == len(own) == own[-1].n
        outcomes = [read_outcomes(record) for record in log.read("outcomes", 0, 0)]
        applied = [d for each in outcomes for d in each.decisions if d.outcome == "applied"]
        assert tallies.life.mistakes == sum(d.label != d.prediction for d in applied)
        report = report_of(after.held.state)
        assert (report.bounds, report.margin_upper_bound) == ((), None)


def test_ids_of_seeds_are_free_in_the_stream(settings: Settings) -> None:
    """A seed was never predicted, so its id is no duplicate."""
    with opened(settings) as log:
        seeded(log, settings)
        held = work_on(log, settings, 20).held.state
        assert held.ledgers[0].tallies.life.examples["duplicate"] == 0
        assert held.ledgers[0].tallies.life.examples["labelled"] == 20


# --- after some work ------------------------------------------------------------------------------------


def test_what_was_learned_before_stays(settings: Settings, tmp_path: Path) -> None:
    """The seeds are learned after it; counts for life, waiting examples and offsets stay; checkpoints too old
    are no harm."""
    settings = altered(settings, checkpoint={"url": str(tmp_path / "checkpoints"), "every_updates": 1})
    with opened(settings, 2) as log:
        held = work_on(log, settings).held.state
        positions = log.group_positions()
        learned = fold_updates(log, settings, None).model
        updates = list(learned.updates)
        plan = seeded(log, settings)
        assert plan.seeds.base == Base(1, updates)
        assert log.group_positions() == positions
        for p, row in enumerate(plan.updates):
            for each in row:
                learned.learn(p, learned.features(bytes(each.features)), each.label, each.predicted)
        assert fold_updates(log, settings, None).model.digest() == learned.digest()
        again = Run(log, settings).held.state
        assert [ledger.tallies.life for ledger in again.ledgers.values()] == [
            ledger.tallies.life for ledger in held.ledgers.values()
        ]
        assert all(ledger.tallies.epoch.updates == 0 for ledger in again.ledgers.values())


@pytest.mark.parametrize("partitions", [1, 2])
def test_an_audit_finds_nothing_wrong(settings: Settings, partitions: int) -> None:
    """Before, between and after seeds every number can be made again from the log."""
    with opened(settings, partitions) as log:
        seeded(log, settings)
        work_on(log, settings)
        seeded(log, settings, seed=5)
        work_on(log, settings, first=100)
    told = ok("audit", *flags(settings), log=None)
    assert "seeds: what they were learned from is not in the log" in told.output


def test_a_second_seeding_follows_the_first(settings: Settings) -> None:
    """Even if no worker ran in between."""
    with opened(settings) as log:
        seeded(log, settings, 10)
        seeded(log, settings, 30)
        both = fold_updates(log, settings, None).model
        assert both.epoch == 4
        plain = replay_rows(
            [*rows(10), *(row._replace(id=f"again {row.id}") for row in rows(30))], settings, 1
        )
        assert both.digest() == plain.model.digest()


# --- refusals and faults --------------------------------------------------------------------------------


def test_other_settings_than_the_epochs_are_refused(settings: Settings) -> None:
    """Seeds are learned under the settings that go on."""
    with opened(settings) as log:
        work_on(log, settings)
        before = everything(log)
        with pytest.raises(Refused, match=r"learner\.kind"):
            planned(log, altered(settings, learner={"kind": "winnow"}), rows())
        assert everything(log) == before


def test_seeds_of_an_older_model_are_refused(settings: Settings) -> None:
    """A worker that learned meanwhile has another model than the one that decided them."""
    with opened(settings) as log:
        work_on(log, settings)
        plan = planned(log, settings, rows())
        work_on(log, settings, first=100)
        before = everything(log)
        with pytest.raises(Refused, match="stop all workers"):
            execute(log, settings, plan, PATIENCE_S)
        assert everything(log) == before


def test_a_running_worker_is_shut_out_and_goes_on_from_the_seeds(settings: Settings) -> None:
    """It gives up its open step and reads the log again; nothing is lost or counted twice."""
    with opened(settings) as log:
        work_on(log, settings)
        log.append(stream(40, first=100))
        plans: list[SeedPlan] = []
        small = altered(settings, batch={"max_records": 7})

        def once(held: Any) -> None:
            if not plans:
                plans.append(seeded(log, settings))

        held = Run(log, small, stepped=once).held.state
        assert held.model.epoch == plans[0].begins.epoch == 3
        assert held.ledgers[0].tallies.life.examples["labelled"] == 80
        assert held.model.digest() == fold_updates(log, settings, None).model.digest()
    ok("audit", *flags(settings), log=None)


@pytest.mark.parametrize("fault", ["failed", "fenced", "unreachable though written"])
def test_seeds_are_written_once_or_not_at_all(settings: Settings, fault: str) -> None:
    """Whether the transaction is given up, or only its answer is lost."""
    with opened(settings) as log:
        work_on(log, settings)
        faulty = FaultyLog(log, {("commit", 0): fault})
        plan = planned(faulty, settings, rows())
        if fault == "unreachable though written":
            with pytest.raises(Exception, match="answer"):
                execute(faulty, settings, plan, PATIENCE_S)
        else:
            execute(faulty, settings, plan, PATIENCE_S)
        found = [each for each in read_updates(log, 0) if isinstance(each, Update) and each.seed]
        assert found == plan.updates[0]
        assert fault in faulty.happened


def test_seeds_that_always_fail_leave_the_log_as_it_was(settings: Settings) -> None:
    """Everything is written in one transaction."""
    with opened(settings) as log:
        work_on(log, settings)
        before = everything(log)
        faulty = FaultyLog(log, {("commit", -1): "failed"})
        with pytest.raises(TransactionFailed):
            execute(faulty, settings, planned(faulty, settings, rows()), PATIENCE_S)
        assert everything(log) == before


# --- the command ----------------------------------------------------------------------------------------


ODD = (
    '{"id": "1", "features": {"a": 1}, "label": true}\n'
    '{"id": "2", "features": {"a": [1]}, "label": true}\n'
    '{"id": "3", "features": {"a": 1}, "label": "what"}\n'
)


def _csv() -> None:
    lines = ["id,a,b,label", *(f"s{n},{n % 3 - 1},{n % 2},{str(n % 3 > 1).lower()}" for n in range(20))]
    Path("warm.csv").write_text("\n".join(lines) + "\n")


def test_a_file_is_seeded_and_a_worker_starts(settings: Settings) -> None:
    """With --dry-run nothing is written."""
    _csv()
    with opened(settings, 2) as log:
        before = everything(log)
        dry = json.loads(ok("seed", "warm.csv", "--dry-run", "--json", *flags(settings), log=None).stdout)
        assert everything(log) == before
        told = json.loads(ok("seed", "warm.csv", "--json", *flags(settings), log=None).stdout)
        assert {**dry, "executed": True} == told
        assert (told["labelled"], told["unread"], told["epoch"]) == (20, 0, 2)
        assert work_on(log, settings).held.state.model.epoch == 2


def test_a_recordings_judged_examples_are_seeds_too(settings: Settings) -> None:
    """In the order in which their labels are applied, dealt to the log's partitions."""
    given = rows(20)
    lines = [encode(record) for record in as_stream(given, settings, 1, 4)]
    Path("day.jsonl").write_bytes(encode_header(1) + b"".join(lines))
    with opened(settings, 2) as log:
        ok("seed", "day.jsonl", *flags(settings), log=None)
        assert (
            fold_updates(log, settings, None).model.digest() == replay_rows(given, settings, 2).model.digest()
        )


def test_rows_that_cannot_be_read_are_left_out_and_counted(settings: Settings) -> None:
    """As the stream would, with reasons and lines, if as many are allowed."""
    Path("odd.jsonl").write_text(ODD)
    with opened(settings):
        told = ok("seed", "odd.jsonl", "--max-invalid=2", *flags(settings), log=None).stdout
    first, *reasons = told.splitlines()
    assert first == "1 seed (by partition: 1) from 1 labelled example; 2 could not be used"
    assert [line.split(": ")[1] for line in reasons] == [
        "1 example, bad-features; the first, line 2",
        "1 label, unknown-label; the first, line 3",
    ]


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
@pytest.mark.parametrize(
    ("content", "allowed", "told"),
    [
        (ODD, (), "2 records were rejected"),
        (ODD, ("--max-invalid=1",), "2 records were rejected"),
        (ODD.replace("true", '"maybe"'), ("--max-invalid=9",), "no label could be applied"),
        ("", (), "no label could be applied"),
    ],
)
def test_a_file_that_cannot_be_learned_from_is_refused_before_anything_is_written(
    settings: Settings, content: str, allowed: tuple[str, ...], told: str, dry: tuple[str, ...]
) -> None:
    """Exit 3, with the plan printed, and the log as it was."""
    Path("odd.jsonl").write_text(content)
    with opened(settings, 2) as log:
        before = everything(log)
        result = run("seed", "odd.jsonl", "--json", *allowed, *dry, *flags(settings), log=None)
        assert everything(log) == before
    assert result.exit_code == 3
    assert told in result.stderr
    assert "nothing was written" in result.stderr
    assert json.loads(result.stdout)["executed"] is False


def test_a_recording_without_a_judged_example_is_refused(settings: Settings) -> None:
    """Its dead letters are told, and allowed unless they are limited."""
    good, bad = rows(3), [row._replace(id="x" + row.id, label="?") for row in rows(2)]
    for name, given in (("some", [*good, *bad]), ("none", bad)):
        lines = [encode(record) for record in as_stream(given, settings, 1, 0)]
        Path(f"{name}.jsonl").write_bytes(encode_header(1) + b"".join(lines))
    with opened(settings, 2) as log:
        before = everything(log)
        none = run("seed", "none.jsonl", *flags(settings), log=None)
        limited = run("seed", "some.jsonl", "--max-invalid=1", *flags(settings), log=None)
        assert everything(log) == before
        some = ok("seed", "some.jsonl", *flags(settings), log=None)
    assert (none.exit_code, limited.exit_code) == (3, 3)
    assert "rejected: 2 labels, unknown-label; the first, labels-0 offset 3: " in some.stdout


def test_settings_that_the_epoch_holds_need_not_be_given_again(settings: Settings) -> None:
    """The log is enough; the pointers into messages go on too, as the workers' own settings have them."""
    _csv()
    told = altered(settings, learner={"kind": "winnow"}, messages={"label": "/truth"})
    with opened(told) as log:
        Run(log, told)
        place = ("--set", f"log.prefix={settings.log.prefix}")
        ok("seed", "warm.csv", *place, log=settings.log.url)
        *_, last = read_updates(log)
        assert isinstance(last, Epoch)
        assert last.epoch == 3
        assert last.settings == read_updates(log)[0].settings  # type: ignore[union-attr]
        assert last.messages == {**told.messages.recorded(), "label": "/truth"}
        Run(log, told)


def test_a_log_without_an_epoch_needs_what_a_worker_needs(settings: Settings) -> None:
    """There is nothing to take it from."""
    _csv()
    with opened(settings):
        told = run("seed", "warm.csv", "--set", f"log.prefix={settings.log.prefix}", log=settings.log.url)
    assert told.exit_code == 2
    assert "labels.max_delay" in told.stderr


def test_a_log_of_other_settings_is_refused_by_the_command(settings: Settings) -> None:
    """Exit 5, as `run` does."""
    _csv()
    with opened(settings) as log:
        work_on(log, settings)
    told = run("seed", "warm.csv", *flags(altered(settings, learner={"kind": "winnow"})), log=None)
    assert told.exit_code == 5
    assert "learner.kind" in told.stderr
