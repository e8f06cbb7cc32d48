"""`mistakebound audit` on logs that workers left, on recordings of them, and on altered ones."""

import json
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mistakebound.commands import meter
from mistakebound.core.checkpoint_content import decode_checkpoint, encode_checkpoint
from mistakebound.core.messages.schema import FORMAT, Base, Epoch, encode
from mistakebound.core.records import TOPICS, Outgoing, Topic
from mistakebound.log.protocol import Log
from mistakebound.settings import Settings
from mistakebound.worker import loop
from mistakebound.worker.checkpoints.catalog import Catalog
from mistakebound.worker.checkpoints.envelope import parse
from mistakebound.worker.checkpoints.local import LocalCheckpointStore
from tests.commands.support.command_line import ok, run
from tests.support.tries import long
from tests.worker.support.faulty import FaultyLog
from tests.worker.support.working import Hurried, Run, altered, opened, settings_for, stream, written

URL = "sqlite:log.db"
FAULTS = {
    ("commit", 1): "failed",
    ("commit", 3): "unreachable though written",
    ("commit", 6): "stale",
    ("poll", 8): "rebalance",
    ("poll", 12): "unreachable",
}


@pytest.fixture(autouse=True)
def no_rest(quiet: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that met a fault goes on at once, and says nothing."""
    monkeypatch.setattr(loop, "time", Hurried())


def worked(learner: dict[str, Any] | None = None, partitions: int = 2, faults: Any = None) -> Settings:
    """A log of two runs with a restart between them, and checkpoints."""
    settings = settings_for(
        URL,
        log={"url": URL},
        learner=learner or {"kind": "averaged-perceptron"},
        labels={"max_delay": 0.03, "parking": 0.01, "remember": 20},
        checkpoint={"url": "checkpoints"},
        batch={"max_records": 16},
    )
    with opened(settings, partitions) as log:
        for first in (0, 60):
            log.append(stream(60, partitions=partitions, seed=first, first=first))
            Run(FaultyLog(log, faults or {}) if not first else log, settings)
    return settings


def audited(*arguments: str) -> dict[str, Any]:
    """What an audit that found nothing says."""
    found: dict[str, Any] = json.loads(ok("audit", "--json", *FLAGS, *arguments, log=URL).stdout)
    assert found["differences"] == {}
    return found


FLAGS = ("--set", "checkpoint.url=checkpoints")


@pytest.mark.parametrize(
    "learner",
    [
        {"kind": "averaged-perceptron"},
        {"kind": "perceptron", "delay_policy": "issued"},
        {"kind": "balanced-winnow"},
        {"kind": "kernel-perceptron", "budget": 10},
        {"kind": "margin-perceptron", "margin": 0.5},
    ],
    ids=lambda learner: learner["kind"],
)
def test_what_disturbed_and_restarted_workers_leave_is_clean(learner: dict[str, Any]) -> None:
    """Aborted transactions, rebuilds and a restart from a checkpoint; the checkpoints are checked too."""
    worked(learner, faults=FAULTS)
    found = audited()
    assert found["checked"]["predictions"] == 120
    assert found["checked"]["checkpoint models"] == 2
    assert found["checked"]["checkpoint ledgers"] == 4


def test_a_recording_is_audited_alike() -> None:
    """The same table from the file as from the log, checkpoints included; the group's positions are in the log alone."""
    worked()
    ok("record", "day.jsonl", log=URL)
    from_log = audited()
    files = [str(path) for path in written(Path("checkpoints"))]
    from_file = json.loads(ok("audit", "--json", "--recording", "day.jsonl", *files, log=None).stdout)
    assert from_log["checked"].pop("group positions") == 2
    assert from_file["checked"].pop("group positions") == 0
    assert from_file == from_log


POINTERS = {"id": "/order/id", "features": "/order/of", "label": "/paid"}


def nested(settings: Settings, count: int = 30) -> Settings:
    """The log's inputs are in an envelope, and the worker was told where."""
    settings = altered(settings, messages=POINTERS)
    with opened(settings) as log:
        for number in range(count):
            order = {"id": f"o{number}", "of": {"a": random.Random(number).uniform(-1, 1)}}
            log.append(
                [
                    Outgoing("examples", 0, b"k", encode({"order": order}), (), number),
                    Outgoing(
                        "labels", 0, b"k", encode({"order": order, "paid": number % 3 == 0}), (), number
                    ),
                ]
            )
        Run(log, settings)
    return settings


def test_inputs_are_read_by_the_pointers_that_the_epoch_holds() -> None:
    """Whoever audits or replays need not know them, and other ones that are given do no harm: they are named."""
    nested(settings_for(URL, log={"url": URL}, checkpoint={"url": ""}))
    assert audited()["checked"]["predictions"] == 30
    other = audited("--set", "messages.label=/label", "--set", "messages.id=/order/id")
    assert list(other["notes"]) == [
        "pointer messages.label was given as '/label', but epoch 1 began with '/paid': the latter was used"
    ]
    ok("record", "day.jsonl", log=URL)
    found = ok("replay", "day.jsonl", "--report", "report.json", log=None)
    assert "as recorded" in found.stderr
    assert json.loads(Path("report.json").read_text())["labelled"] == 30
    found = run("replay", "day.jsonl", "--set", "messages.label=/label", log=None)
    assert "messages.label is '/label', recorded '/paid'" in found.stderr


def test_a_log_whose_epoch_holds_no_pointers_is_read_by_those_given() -> None:
    """As earlier versions left it."""
    settings = settings_for(URL, log={"url": URL}, checkpoint={"url": ""})
    older = altered(settings, messages=POINTERS)
    with opened(older) as log:
        begun = encode(Epoch(1, FORMAT, dict(older.of_epoch())))
        assert b"/paid" not in begun
        log.exclusively(lambda: [Outgoing("updates", 0, None, begun)])
    nested(settings)
    sets = [part for name, at in POINTERS.items() for part in ("--set", f"messages.{name}={at}")]
    assert audited(*sets)["notes"] == {}


def test_a_label_that_an_earlier_version_refused_as_a_float_stays_refused() -> None:
    """Earlier versions took 1.0 for no integer: what they decided is no difference, and is noted."""
    settings = worked()
    with opened(settings, 2) as log:
        refused = b'{"id":"i7","label":1.5}'
        log.append([Outgoing("labels", 0, b"i7", refused), Outgoing("labels", 0, b"i7", refused)])
        Run(log, settings)
    ok("record", "day.jsonl", log=URL)
    lines = Path("day.jsonl").read_text()
    assert lines.count("1.5}") == 4  # two labels and their dead letters
    Path("day.jsonl").write_text(lines.replace("1.5}", "1.0}"))
    found = json.loads(ok("audit", "--json", "--recording", "day.jsonl", log=None).stdout)
    assert found["differences"] == {}
    assert found["notes"]["labels such as 1.0, which an earlier version refused, were left refused"] == 2


def test_epochs_are_audited_each_with_its_own_settings() -> None:
    """Labels across the border, and an epoch that starts from a version of another."""
    settings = worked()
    following = [
        altered(settings, labels={"max_delay": 0.05, "remember": 5}),
        altered(settings, learner={"kind": "perceptron", "delay_policy": "issued"}),
    ]
    with opened(settings, 2) as log:
        for number, (changed, base) in enumerate(zip(following, (None, Base(1, [5, 3])), strict=True), 2):
            record = encode(Epoch(number, FORMAT, dict(changed.of_epoch()), base))
            log.append(stream(20, delay=20, partitions=2, first=1_000 * number)[:20])
            Run(log, following[number - 3] if number > 2 else settings)
            log.exclusively(lambda record=record: [Outgoing("updates", p, None, record) for p in (0, 1)])
            log.append(stream(20, delay=20, partitions=2, first=1_000 * number)[20:])
            log.append(stream(60, partitions=2, seed=number, first=1_000 * number + 100))
            Run(log, changed)
    found = audited()
    assert found["checked"]["epochs"] == 8
    assert found["checked"]["checkpoint models"] == 2


def test_a_checkpoint_of_an_epoch_without_work_is_audited() -> None:
    """The epoch's tallies start at zero, and the new settings decide what is remembered, though no partition step says so."""
    settings = worked()
    changed = altered(settings, labels={"max_delay": 0.05, "remember": 5})
    with opened(settings, 2) as log:
        record = encode(Epoch(2, FORMAT, dict(changed.of_epoch())))
        log.exclusively(lambda: [Outgoing("updates", p, None, record) for p in (0, 1)])
        log.append(stream(20, delay=20, first=500)[:20])  # partition 0 only
        Run(log, changed)
    assert audited()["checked"]["checkpoint ledgers"] == 4


def test_progress_is_told_on_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    """The share of all partitions that is done; stdout is the table alone."""
    monkeypatch.setattr(meter, "FIRST_LINE_S", 0.0)
    monkeypatch.setattr(meter, "GROWTH", 0)
    worked()
    ok("record", "day.jsonl", log=URL)
    for result in (ok("audit", *FLAGS, log=URL), ok("audit", "--recording", "day.jsonl", log=None)):
        assert "  50%" not in result.stdout
        assert "partition 2 of 2" in result.stderr
        assert result.stderr.splitlines()[-1].startswith("100%")


# --- what is not so -----------------------------------------------------------------------------------------


def alter(settings: Settings, topic: Topic, change: Callable[[Any], None], newest: int = 3) -> None:
    """Change the value of a record of partition 0, counted from the newest, in the file itself."""
    with sqlite3.connect("log.db") as file:
        side = "SELECT sides.id FROM sides JOIN topics ON topics.id = topic WHERE name = ? AND partition = 0"
        ((number,),) = file.execute(side, (settings.topic_name(topic),)).fetchall()
        places = [
            row[0]
            for row in file.execute(
                "SELECT place FROM records WHERE place >> 44 = ? ORDER BY place", (number,)
            )
        ]
        ((value,),) = file.execute("SELECT value FROM records WHERE place = ?", (places[-newest],)).fetchall()
        message = json.loads(value)
        change(message)
        if message.get("gone"):
            file.execute("DELETE FROM records WHERE place = ?", (places[-newest],))
        else:
            text = json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode()
            file.execute("UPDATE records SET value = ? WHERE place = ?", (text, places[-newest]))
    file.close()


def applied(message: Any) -> Any:
    return next(each for each in message["decisions"] if each["outcome"] == "applied")


ALTERED: dict[str, tuple[Topic, Callable[[Any], None], str]] = {
    "a changed score": ("predictions", lambda m: m.update(score=m["score"] + 1e-9), "predictions"),
    "a changed class": ("predictions", lambda m: m.update(prediction=not m["prediction"]), "predictions"),
    "a missing prediction": ("predictions", lambda m: m.update(gone=True), "predictions"),
    "a missing update": ("updates", lambda m: m.update(gone=True), "update numbers"),
    "a stale model": ("updates", lambda m: m["model"]["updates"].__setitem__(0, 0), "update versions"),
    "another predicted class": ("updates", lambda m: m.update(predicted=not m["predicted"]), "updates"),
    "a changed tally": (
        "outcomes",
        lambda m: m["tallies"]["life"].update(mistakes=m["tallies"]["life"]["mistakes"] + 1),
        "tallies",
    ),
    "another outcome": ("outcomes", lambda m: applied(m).update(outcome="expired"), "decisions"),
    "a label counted twice": ("outcomes", lambda m: m["decisions"].append(applied(m)), "decisions"),
    "no JSON of the worker's": ("outcomes", lambda m: m.update(part="first"), "steps"),
}


QUICK = ("a changed score", "a missing update", "another outcome")


@pytest.mark.parametrize("what", [*QUICK, *long(*(what for what in ALTERED if what not in QUICK))])
def test_an_altered_log_and_its_recording_are_told(what: str) -> None:
    """Exit code 3; the table and the first differences say where and what."""
    topic, change, check = ALTERED[what]
    settings = worked()
    alter(settings, topic, change)
    ok("record", "day.jsonl", log=URL)
    for result in (run("audit", *FLAGS, log=URL), run("audit", "--recording", "day.jsonl", log=None)):
        assert result.exit_code == 3, result.output
        assert any(line.startswith(f"{check}: ") for line in result.stdout.splitlines()), result.stdout
        assert " difference" in result.stderr


def test_a_doubled_prediction_is_told() -> None:
    """A second prediction of an example, at the end or in the midst."""
    settings = worked()
    with opened(settings, 2) as log:
        last = list(log.read("predictions", 0, 0))[-1]
        log.exclusively(lambda: [Outgoing("predictions", 0, last.key, last.value, last.headers)])
    result = run("audit", *FLAGS, log=URL)
    assert result.exit_code == 3
    assert "no partition step wrote it" in result.stdout


def test_a_flipped_bit_in_a_checkpoint_is_told() -> None:
    """In the file: by its checksum. In content with a checksum of its own: by the fold."""
    worked()
    *_, path = written(Path("checkpoints"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
    result = run("audit", *FLAGS, log=URL)
    assert result.exit_code == 3
    assert "SHA-256" in result.stdout

    path.write_bytes(whole)
    found = decode_checkpoint(parse(whole))
    row = found.model.state["theta"][0]
    name = random.Random(1).choice(sorted(row))
    row[name] += 2**-40
    group = json.loads(whole.splitlines()[1])["summary"]
    store = Catalog(LocalCheckpointStore("checkpoints"), found.group, "slot")
    store.write(encode_checkpoint(found), group)
    result = run("audit", *FLAGS, log=URL)
    assert result.exit_code == 3
    assert f"theta of {name!r} in partition 0" in result.stdout


def test_another_logs_checkpoint_is_told_when_named_and_passed_over_in_the_folder() -> None:
    """Several logs may share a folder of checkpoints."""
    worked()
    ok("topics", "create", "--partitions", "2", log="sqlite:other.db")
    found = json.loads(ok("audit", "--json", *FLAGS, log="sqlite:other.db").stdout)
    assert found["notes"] == {"checkpoints of other logs in the folder": 2}
    named = str(written(Path("checkpoints"))[0])
    result = run("audit", named, log="sqlite:other.db")
    assert result.exit_code == 3
    assert "is not the one it was written for" in result.stdout


# --- what cannot be audited ---------------------------------------------------------------------------------


def test_a_log_that_nobody_worked_on_is_clean() -> None:
    """It holds no number that could be wrong."""
    ok("topics", "create", log=URL)
    assert audited()["checked"]["predictions"] == 0


def test_a_log_without_its_first_records_is_refused() -> None:
    """Nothing can be derived from a part; the remedy is named."""
    worked()
    with sqlite3.connect("log.db") as file:
        file.execute("UPDATE sides SET low = 3 WHERE partition = 1")
    file.close()
    result = run("audit", log=URL)
    assert result.exit_code == 5
    assert "starts at offset 3" in result.stderr


def test_a_recording_that_is_none_is_a_usage_error() -> None:
    """Named by line, or by file."""
    Path("none.jsonl").write_text("nonsense\n")
    assert run("audit", "--recording", "none.jsonl", log=None).exit_code == 2
    assert run("audit", "--recording", "missing.jsonl", log=None).exit_code == 2


def test_the_log_of_a_demo_is_clean() -> None:
    """All 1,250 pages, and their checkpoints."""
    ok("demo", "--once", log=None)
    result = ok(
        "audit", "--set", "checkpoint.url=mistakebound-demo.db-checkpoints", log="sqlite:mistakebound-demo.db"
    )
    assert "predictions            1250" in result.stdout
    assert "checkpoint models      1 " in result.stdout


def test_a_worker_that_goes_on_during_an_audit_is_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """What came after the audit began is left to the next one."""
    from mistakebound.commands.audit.sources import LogSource
    from mistakebound.core.audit import Findings, audit

    settings = worked()
    with opened(settings, 2) as log:
        log.append(stream(40, partitions=2, seed=9, first=5_000))
        source = _Interrupted(LogSource(log), log, settings)
        found = audit(source, settings.messages, (), Findings())
    assert source.ran
    assert found.first == []
    assert found.notes == {"the log went on meanwhile: later partition steps were not audited": 2}


class _Interrupted:
    """A worker works on once the first outcomes were asked for."""

    def __init__(self, source: Any, log: Log, settings: Settings) -> None:
        self._source, self._log, self._settings, self.ran = source, log, settings, False
        self._ends = {p: log.high_watermark("outcomes", p) for p in range(log.partitions)}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def read(self, topic: Topic, partition: int) -> Any:
        assert topic in TOPICS
        if topic != "outcomes":
            return self._source.read(topic, partition)
        if not self.ran:
            Run(self._log, self._settings)
            self.ran = True
        return self._log.read("outcomes", partition, 0, self._ends[partition])
