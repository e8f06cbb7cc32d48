"""What an older version left behind goes on: recordings replay to the same report, a log is worked on to the same bytes.

The files in `data` were written by the version before the package was named `mistakebound`: half of a stream worked
off, with its checkpoint, the other half as inputs, and what that version made of both.
"""

import base64
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mistakebound.core.records import TOPICS, Outgoing
from mistakebound.log import open_log
from mistakebound.log.protocol import Log
from mistakebound.settings import Settings
from tests.commands.support.command_line import ok
from tests.compatibility.support.older_files import DATA, lay_out, unpacked
from tests.worker.support.working import Run

RULES: dict[str, Any] = {"max_delay": 20, "parking": 10, "max_waiting": 60, "remember": 200}
SETS = [f"--set=labels.{key}={value}" for key, value in RULES.items()]
LEARNERS: dict[str, dict[str, Any]] = {
    "averaged": {"kind": "averaged-perceptron"},
    "kernel": {"kind": "kernel-perceptron", "budget": 20, "kernel": "polynomial"},
}
WHY = {("labels", "missing-id"): 2}
WRITTEN = "9dae1c7e9851be5477408c5d216cb775d8b24be6f283628bbad22b55f0ee6c39"
"""SHA-256 of all records of all topics after the whole stream."""


@pytest.mark.parametrize("name", LEARNERS)
def test_an_older_recording_replays_to_the_same_report(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the byte, the model's digest and the comparators included. Only the reasons for which its two labels were
    invalid are new: an older version counted these labels and did not say why."""
    monkeypatch.chdir(tmp_path)
    Path("day.jsonl").write_bytes(unpacked(f"{name}.jsonl.gz"))
    sets = [f"--set=learner.{key}={value}" for key, value in LEARNERS[name].items()]

    ok("replay", "day.jsonl", "--report", "report.json", *sets, *SETS, "--set=batch.max_records=37", log=None)

    report = msgspec.json.decode(Path("report.json").read_bytes())
    assert (
        report.pop("confusion")["judged"] == report.pop("confusion_of_epoch")["judged"] == report["labelled"]
    )
    why = {(one["stream"], one["reason"]): one["count"] for one in report.pop("rejected")}
    assert why == WHY
    older = msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"
    assert older == (DATA / f"{name}-report.json").read_bytes()


@pytest.mark.parametrize("checkpoint", ["with its checkpoint", "from the log alone"])
def test_an_older_log_is_worked_on(checkpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other half of the stream comes to the same status, and counts by class only what it judges; with the checkpoint, to the same bytes in every topic.

    From the log alone an entry's floor may be lower, which `marks` show.
    """
    monkeypatch.chdir(tmp_path)
    packed = ("mistakebound_one_000000000002.checkpoint.gz",) if checkpoint == "with its checkpoint" else ()
    lay_out("log.db.gz", *packed)
    settings = Settings.model_validate(
        {
            "log": {"url": "sqlite:log.db"},
            "labels": RULES,
            "batch": {"max_records": 37},
            "checkpoint": {"url": "checkpoints", "every_updates": 10},
        }
    )
    with open_log(settings) as log:
        log.append(_rest())
        Run(log, settings, slot="one")
        written = _digest(log)

    assert written == WRITTEN or checkpoint != "with its checkpoint"
    assert list(Path("checkpoints").glob("*.rejected")) == []
    status = json.loads(ok("status", "--model", "--json", *SETS, log="sqlite:log.db").stdout)
    confusion, of_epoch = status.pop("confusion"), status.pop("confusion_of_epoch")
    assert 0 < confusion["unknown"] == status["labelled"] - confusion["judged"] < status["labelled"]
    assert of_epoch["judged"] == confusion["judged"]
    assert status == json.loads((DATA / "status.json").read_text())


def _rest() -> Iterator[Outgoing]:
    for line in unpacked("rest.jsonl.gz").splitlines():
        topic, key, value, time_ms = json.loads(line)
        content = None if value is None else base64.b64decode(value)
        yield Outgoing(topic, -1, key.encode(), content, (), time_ms)


def _as_written_then(value: bytes | None) -> bytes:
    """Without the counts that are new."""
    content = msgspec.json.decode(value or b"null")
    content["tallies"].pop("last_label", None)
    for tally in content["tallies"].values():
        tally.pop("confusion", None)
    return msgspec.json.encode(content)


def _digest(log: Log) -> str:
    seal = hashlib.sha256()
    for topic in TOPICS:
        for p in range(log.partitions):
            for record in log.read(topic, p, 0):
                value = _as_written_then(record.value) if topic == "outcomes" else record.value
                whole = (topic, p, record.offset, record.key, value, record.headers)
                seal.update(repr(whole).encode())
    return seal.hexdigest()
