"""A worker that starts, or takes a partition over, reads on from where another slot's checkpoint stands."""

import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from mistakebound.core.checkpoint_content import decode_checkpoint, encode_checkpoint
from mistakebound.log.newest import FIRST_LOOK
from mistakebound.log.protocol import Log, Session
from mistakebound.settings import Settings
from mistakebound.worker.checkpoints import restore, schedule
from mistakebound.worker.checkpoints.catalog import Catalog
from mistakebound.worker.checkpoints.open_store import open_store
from mistakebound.worker.epochs.reset import execute, planned
from mistakebound.worker.metrics.metrics import Metrics
from mistakebound.worker.takeover import WorkerState, take_over
from tests.commands.support.command_line import ok, run
from tests.core.support.histories import ledger_of, model_of
from tests.support.tries import long
from tests.worker.support.object_store import BUCKET, SECRET, ObjectStore, silence
from tests.worker.support.working import Recount, Run, altered, only_takes_over, opened, settings_for, stream

PARTITIONS = 2


@pytest.fixture(params=["folder", *long("s3")])
def shared(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where all slots' checkpoints lie."""
    if request.param == "folder":
        return str(tmp_path / "checkpoints")
    for name, value in request.getfixturevalue("object_store").environment.items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/{uuid.uuid4().hex}"


@pytest.fixture(autouse=True)
def said(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What the workers log. Every ledger is worth borrowing here that spares a single record."""
    monkeypatch.setattr(restore, "WORTH_RECORDS", 0)
    with capture_logs() as logged:
        yield logged


def events(said: list[Any]) -> list[str]:
    return [each["event"] for each in said]


class Counted:
    """A log that remembers from where each partition was read."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.reads: list[tuple[str, int, int]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def read(self, topic: Any, partition: int, start: int, *more: Any, **named: Any) -> Any:
        self.reads.append((topic, partition, start))
        return self._log.read(topic, partition, start, *more, **named)


def settings_at(tmp_path: Path, url: str, **sections: Any) -> Settings:
    return settings_for(
        f"sqlite:{tmp_path / 'log.db'}",
        batch={"max_records": 10},
        checkpoint={"url": url, "timeout": 20, "every_updates": 1_000},
        **sections,
    )


def folded(settings: Settings) -> Settings:
    """The same without checkpoints."""
    return altered(settings, checkpoint={"url": ""})


def same(one: WorkerState, other: WorkerState) -> None:
    """To the bit."""
    assert model_of(one.state) == model_of(other.state)
    assert {p: ledger_of(each) for p, each in one.state.ledgers.items()} == {
        p: ledger_of(each) for p, each in other.state.ledgers.items()
    }


# --- a start ------------------------------------------------------------------------------------------------


def test_a_new_slot_starts_from_anothers_checkpoint(tmp_path: Path, shared: str) -> None:
    """It reads nothing that the checkpoint covers, and holds what a fold of the log gives."""
    settings = settings_at(tmp_path, shared)
    with opened(settings, PARTITIONS) as log:
        log.append(stream(60, partitions=PARTITIONS, delay=30))
        left = Run(log, settings, slot="one").held
        counted = Counted(log)
        started = Run(counted, settings, slot="two", stopping=only_takes_over).held
        same(started, left)
        same(started, Run(log, folded(settings), slot="three", stopping=only_takes_over).held)
    ends = {("updates", p): left.fold.next_offsets[p] for p in range(PARTITIONS)}
    for p, ledger in left.state.ledgers.items():
        ends |= {("predictions", p): ledger.predictions_end, ("outcomes", p): ledger.outcomes_end}
    begun: dict[tuple[str, int], int] = {}
    for topic, p, start in counted.reads:
        if topic != "outcomes" or (topic, p) not in begun:  # later on it is seen that the last step is there
            begun[topic, p] = start
    assert {side: begun[side] for side in ends} == ends


def test_a_checkpoint_of_the_epoch_before_brings_its_ledgers(tmp_path: Path, said: list[Any]) -> None:
    """The model starts anew; who waits and what was counted for life need not be read again."""
    settings = settings_at(tmp_path, str(tmp_path / "checkpoints"))
    with opened(settings, PARTITIONS) as log:
        log.append(stream(60, partitions=PARTITIONS))
        left = Run(log, settings, slot="one").held.state.ledgers[1]
        plan = planned(log, settings, None)
        assert plan is not None
        execute(log, settings, plan, 60.0)
        counted = Counted(log)
        started = Run(counted, settings, slot="two", stopping=only_takes_over).held
        same(started, Run(log, folded(settings), slot="three", stopping=only_takes_over).held)
    assert started.state.model.epoch == 2
    assert ("outcomes", 1, left.outcomes_end) in counted.reads
    assert not {"checkpoint_passed_over", "borrowed_ledger_left"} & set(events(said))


def test_our_own_checkpoint_is_enough_where_another_is_little_ahead(tmp_path: Path) -> None:
    """Another slot's model is read only when it spares more than a checkpoint may lag."""
    settings = settings_at(tmp_path, str(tmp_path / "checkpoints"))
    with opened(settings, PARTITIONS) as log:
        log.append(stream(30, partitions=PARTITIONS))
        older = Run(log, settings, slot="one").held.state.model.updates
        log.append(stream(30, partitions=PARTITIONS, first=30))
        newer = Run(log, settings, slot="two").held.state.model.updates
        assert sum(newer) > sum(older)
        at_ease, eager = (
            altered(settings, checkpoint={**settings.checkpoint.model_dump(), "every_updates": count})
            for count in (1_000, 1)
        )
        starts = []
        for chosen in (at_ease, eager):
            counted = Counted(log)
            Run(counted, chosen, slot="one", stopping=only_takes_over)
            starts.append(max(start for topic, p, start in counted.reads if (topic, p) == ("updates", 0)))
    assert starts[0] < starts[1]


# --- a takeover ---------------------------------------------------------------------------------------------


class Group:
    """A worker that holds partition 0, and the checkpoint of the one that had both."""

    def __init__(self, log: Log, settings: Settings) -> None:
        log.append(stream(60, partitions=PARTITIONS, delay=30))
        self.left = Run(log, settings, slot="one").held
        self.log, self.settings = Counted(log), settings
        self.catalog = Catalog(open_store(settings.checkpoint.url, 20), settings.group, "two")
        self.session: Session = log.join("two")
        while not self.session.poll(1.0).partitions:
            pass
        self.held = self._take((0,), None)

    def takes_the_other(self, *, borrow: bool = True) -> WorkerState:
        self.log.reads.clear()
        return self._take((0, 1), self.held, borrow=borrow)

    def lend(self, **changes: Any) -> None:
        """Put an altered copy of the checkpoint's second ledger in its place."""
        (name,) = self.catalog.store.names()
        (head,) = self.catalog.heads()
        content = decode_checkpoint(self.catalog.read(name).payload)
        ledgers = {**content.ledgers, 1: msgspec.structs.replace(content.ledgers[1], **changes)}
        altered = msgspec.structs.replace(content, ledgers=ledgers)
        self.catalog.store.delete(name)
        one = Catalog(self.catalog.store, self.settings.group, "one")
        one.write(encode_checkpoint(altered), head.summary)

    def _take(
        self, partitions: tuple[int, ...], held: WorkerState | None, *, borrow: bool = False
    ) -> WorkerState:
        metrics = Metrics([], "perceptron", "digest")
        lent = restore.Restore(self.log, self.settings, self.catalog, metrics).ledgers  # type: ignore[arg-type]
        more: Any = {"borrow": lent} if borrow else {}
        return take_over(self.log, self.session, self.settings, partitions, held, None, **more)  # type: ignore[arg-type]


@pytest.fixture
def group(tmp_path: Path, shared: str) -> Iterator[Group]:
    settings = settings_at(tmp_path, shared)
    with opened(settings, PARTITIONS) as log:
        made = Group(log, settings)
        yield made
        made.session.close(1.0)


def test_a_partition_taken_over_brings_its_ledger(group: Group, said: list[Any]) -> None:
    """Of a running worker, which has its model: only what came after the other slot's checkpoint is read."""
    held = group.takes_the_other()
    theirs = group.left.state.ledgers[1]
    reads = [read for read in group.log.reads if read[0] in ("predictions", "outcomes")]
    last_step = ("outcomes", 1, max(0, theirs.outcomes_end - FIRST_LOOK))
    assert reads == [
        ("predictions", 1, theirs.predictions_end),
        ("outcomes", 1, theirs.outcomes_end),
        last_step,
        ("outcomes", 1, theirs.outcomes_end - 2),
        ("predictions", 1, theirs.predictions_end),
    ], "and that the last step is there, with its predictions: it had none"
    same(held, group.left)
    assert len(theirs.waiting) == 0
    assert events(said).count("ledger_borrowed") == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"outcomes_end": 10**9},
        {"predictions_end": 10**9},
        {"examples_next": 1},
        {"outcomes_end": 0, "labels_next": 0},
    ],
    ids="+".join,
)
def test_a_borrowed_ledger_that_does_not_fit_is_left(
    group: Group, said: list[Any], changes: dict[str, int]
) -> None:
    """The log is read as if there were none; the checkpoint stays where it is: it is another's."""
    group.lend(**changes)
    names = group.catalog.store.names()
    held = group.takes_the_other()
    held.state.ledgers[
        1
    ].missing = 0  # by steps whose predictions were not read; all were searched, and none lacks any
    same(held, group.left)
    assert group.catalog.store.names() == names
    assert ("borrowed_ledger_left" in events(said)) is (changes != {"outcomes_end": 0, "labels_next": 0})


def test_a_ledger_whose_tallies_are_not_the_logs_is_left(group: Group, said: list[Any]) -> None:
    """A takeover counts the updates of the log, and believes no other count."""
    tallies = group.left.state.ledgers[1].tallies
    epoch = msgspec.structs.replace(tallies.epoch, updates=tallies.epoch.updates + 1)
    group.lend(tallies=msgspec.structs.replace(tallies, epoch=epoch))
    same(group.takes_the_other(), group.left)
    assert "borrowed_ledger_left" in events(said)


def test_what_the_log_gives_as_fast_is_not_borrowed(
    group: Group, said: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few records are read sooner than a checkpoint."""
    monkeypatch.setattr(restore, "WORTH_RECORDS", 1_000)
    same(group.takes_the_other(), group.left)
    assert "ledger_borrowed" not in events(said)


# --- a store that is away, slow or stuck -----------------------------------------------------------------------


def test_a_store_that_does_not_answer_stops_nothing(
    tmp_path: Path, object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch, said: list[Any]
) -> None:
    """The worker starts, works everything off and ends; it warns, and counts, and says nothing secret."""
    for name, value in object_store.environment.items():
        monkeypatch.setenv(name, value)
    settings = settings_at(tmp_path, f"s3://{BUCKET}/model")
    settings = altered(
        settings, checkpoint={"url": settings.checkpoint.url, "timeout": 0.1, "every_updates": 1}
    )
    with silence() as endpoint, opened(settings) as log:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        log.append(stream(60))
        done = Run(log, settings)
        assert len(Recount(log, settings).predicted) == 60
    assert {"checkpoints_unreadable", "checkpoint_failed"} <= set(events(said))
    assert SECRET not in repr(said)
    assert done.metric("mistakebound_checkpoint_read_failures_total") >= 1
    assert done.metric('mistakebound_checkpoints_total{result="failure"}') >= 2
    assert done.metric("mistakebound_checkpoint_pending_updates") == sum(done.held.state.model.updates)


BROKEN = {
    "a key without its secret": ("AWS_SECRET_ACCESS_KEY", None),
    "a switch that is none": ("AWS_SKIP_SIGNATURE", "perhaps"),
    "an endpoint that is none": ("AWS_ENDPOINT_URL", "nonsense"),
    "an endpoint without a host": ("AWS_ENDPOINT_URL", "http://"),
    "another's secret": ("AWS_SECRET_ACCESS_KEY", "wrong"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_store_that_is_wrongly_set_up_stops_nothing(
    what: str, tmp_path: Path, object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch, said: list[Any]
) -> None:
    """It is a lost shortcut, as a folder that cannot be written to: told in the log, by metrics, and by the check."""
    for name, value in object_store.environment.items():
        monkeypatch.setenv(name, value)
    name, wrong = BROKEN[what]
    monkeypatch.delenv(name) if wrong is None else monkeypatch.setenv(name, wrong)
    url = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    settings = settings_at(tmp_path, url)
    settings = altered(settings, checkpoint={"url": url, "timeout": 2, "every_updates": 1})
    with opened(settings) as log:
        log.append(stream(30))
        done = Run(log, settings)
        assert len(Recount(log, settings).predicted) == 30
    assert {"checkpoints_unreadable", "checkpoint_failed"} <= set(events(said))
    assert done.metric("mistakebound_checkpoint_read_failures_total") >= 1
    assert done.metric('mistakebound_checkpoints_total{result="failure"}') >= 1
    place = ("--set", f"checkpoint.url={url}", "--set", f"log.prefix={settings.log.prefix}")
    needed = ("--set", "labels.max_delay=1000", "--set", "checkpoint.timeout=2")
    checked = run("config", "check", "--online", *place, *needed, log=settings.log.url)
    assert checked.exit_code == 4
    assert f"cannot use {url}" in checked.output
    monkeypatch.setenv(name, object_store.environment.get(name, "false"))
    with opened(settings) as log:
        log.append(stream(10, first=100))
        assert Run(log, settings).metric('mistakebound_checkpoints_total{result="success"}') >= 1


class Stuck:
    """A store whose puts wait until they are let go."""

    def __init__(self, path: Path) -> None:
        self._store = open_store(str(path), 1.0)
        self.entered, self.let_go = threading.Event(), threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def create(self, *content: Any) -> None:
        self.entered.set()
        assert self.let_go.wait(60.0)
        self._store.create(*content)


@pytest.fixture
def stuck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stuck]:
    store = Stuck(tmp_path / "checkpoints")
    monkeypatch.setattr(schedule, "open_store", lambda url, timeout_s: store)
    yield store
    store.let_go.set()


def test_steps_go_on_while_a_checkpoint_is_written(tmp_path: Path, stuck: Stuck) -> None:
    """What the model held when the write began is what is written; what came since is in the next."""
    settings = settings_at(tmp_path, "anywhere")
    settings = altered(settings, batch={"max_records": 2}, checkpoint={"url": "anywhere", "every_updates": 1})
    during: list[int] = []

    def stepped(held: WorkerState) -> None:
        if stuck.entered.is_set():
            during.append(sum(held.state.model.updates))
        if len(during) == 5:
            stuck.let_go.set()

    with opened(settings) as log:
        log.append(stream(100))
        done = Run(log, settings, stepped=stepped)
        assert len(during) >= 5
        assert during[4] > during[0], "the model learned while the write was under way"
        newest = next(Catalog(stuck, settings.group, "slot").heads())  # type: ignore[arg-type]
        assert newest.summary["updates"] == done.held.state.model.updates
    assert done.metric("mistakebound_checkpoint_pending_updates") == 0


def test_a_drain_does_not_wait_for_a_stuck_store(
    tmp_path: Path, stuck: Stuck, said: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gives the checkpoint up, says so, and the worker ends: nothing is lost but time."""
    monkeypatch.setattr(schedule, "FINISH_S", 0.1)
    settings = settings_at(tmp_path, "anywhere")
    with opened(settings) as log:
        log.append(stream(20))
        done = Run(log, settings)
    assert events(said).count("checkpoint_abandoned") == 1
    assert done.metric('mistakebound_checkpoints_total{result="failure"}') == 1
    assert not stuck.let_go.is_set()


# --- commands -------------------------------------------------------------------------------------------------


def test_the_commands_look_into_the_store(tmp_path: Path, shared: str) -> None:
    """`checkpoint list`, `show`, `verify` and `audit` read it by the URL; `config check --online` tries it."""
    settings = settings_at(tmp_path, shared)
    with opened(settings) as log:
        log.append(stream(30))
        digest = Run(log, settings).held.state.model.digest()
    place = ("--set", f"checkpoint.url={shared}", "--set", f"log.prefix={settings.log.prefix}")
    url = f"sqlite:{tmp_path / 'log.db'}"
    listed = ok("checkpoint", "list", *place, log=url).stdout
    (name,) = open_store(shared, 20).names()
    assert name in listed
    assert "valid" in listed
    whole = open_store(shared, 20).where(name)
    assert digest in ok("checkpoint", "show", whole, log=None).stdout
    assert ok("checkpoint", "verify", whole, log=None).stdout == f"{whole}: valid\n"
    assert run("checkpoint", "show", whole + "x", log=None).exit_code == 2
    learning = ("--set", "learner.kind=perceptron", "--set", "labels.max_delay=1000")
    audited = ok("audit", *place, *learning, log=url).stdout
    assert "checkpoint models       1" in " ".join(audited.split()).replace(
        "checkpoint models 1", "checkpoint models       1"
    )
    checked = run("config", "check", "--online", *place, *learning, log=url)
    assert "the configuration is complete" in checked.output
    assert open_store(shared, 20).names() == [name]


def test_a_store_that_is_away_is_seen_by_the_commands(
    object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 4, with the place, the reason and the remedy, and nothing secret."""
    for name, value in object_store.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-" + SECRET)
    result = run("checkpoint", "list", "--set", f"checkpoint.url=s3://{BUCKET}/model")
    assert result.exit_code == 4
    assert f"cannot use s3://{BUCKET}/model" in result.output
    assert "403" in result.output
    assert SECRET not in result.output
