"""A little of the fuzzing that `python -m tests.fuzz --minutes 10` does at length; and all that it found.

Hypothesis makes a failing case smaller. Each find has a test of its own, with the bytes that did it.
"""

import http.client
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st
from typer.testing import CliRunner

from mistakebound.commands.app import app
from mistakebound.config.load import load
from mistakebound.config.problems import ConfigurationError
from mistakebound.core.audit.compare import shown
from mistakebound.core.audit.replica import settings_of
from mistakebound.core.checkpoint_content import check_belongs, decode_checkpoint
from mistakebound.core.faults import BadLog, BadRecord, BadSnapshot
from mistakebound.core.ledger.ledger import Ledger
from mistakebound.core.ledger.rebuild import rebuild
from mistakebound.core.messages.dead_letters import dead_letter
from mistakebound.core.messages.schema import (
    Decision,
    Epoch,
    Inputs,
    Outcomes,
    RecoveryPoint,
    Update,
    Version,
    encode,
    read_outcomes,
    read_recovery_point,
    read_update,
)
from mistakebound.core.messages.tallies import Tallies, zero
from mistakebound.core.model.fold import Fold
from mistakebound.core.model.model import first_epoch
from mistakebound.core.records import Position, Record
from mistakebound.settings import LabelSettings, MessageSettings, Settings
from tests.fuzz.targets import TARGETS, Requests, _history, listening
from tests.support.tries import tried

COUNTS = {"inputs": 60, "own-records": 60, "positions": 30, "checkpoints": 60, "replays": 10, "commands": 8}
"""Cases of each target; of the rest, as many as this."""
REST = 60


@pytest.mark.parametrize("name", TARGETS)
def test_whatever_a_peer_sends_ends_with_a_name(name: str) -> None:
    """It ends as an outcome, a dead letter, or an error that says what is wrong; and the stream goes on."""
    _some(TARGETS[name], COUNTS.get(name, REST))


def test_whatever_a_peer_asks_is_answered_or_ended() -> None:
    """And the next request is served as ever."""
    with listening() as server:
        _some(Requests(server), REST)


def _some(target: Any, count: int) -> None:
    @tried(
        count,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @given(st.randoms(use_true_random=False))
    def fuzz(random: Random) -> None:
        target(random)

    fuzz()


# --- what was found -------------------------------------------------------------------------------------

DEEP = b"[" * 20_000 + b"]" * 20_000


def test_a_peers_header_does_not_pass_for_the_reason_of_a_dead_letter() -> None:
    """It is kept under another name: neither readers nor the audit take it for ours, first or last."""
    headers = (("mistakebound.reason", b"\xff"), ("trace", b"7"))
    letter = dead_letter(Record("labels", 0, 1, 2, None, b"x", headers), BadRecord("not-json", "why"), 10_000)
    assert [value for name, value in letter.headers if name == "mistakebound.reason"] == [b"not-json"]
    assert letter.headers[-2:] == (("original.mistakebound.reason", b"\xff"), ("trace", b"7"))


def outcomes_with(**change: Any) -> Record:
    message: dict[str, Any] = {
        "part": 0,
        "model": Version(1, [0]),
        "decisions": [],
        "order": [],
        "at": 0,
        "inputs": Inputs(0, 0),
        "recovery_point": RecoveryPoint(0, 0, 0),
        "tallies": Tallies(zero(), zero()),
    }
    return Record("outcomes", 0, 0, 0, None, encode(Outcomes(**(message | change))))


EMPTY = {"examples": {}, "labels": {}}


@pytest.mark.parametrize(
    "record",
    [
        outcomes_with(tallies=msgspec.Raw(encode({"life": EMPTY, "epoch": EMPTY}))),
        outcomes_with(at=None),
        outcomes_with(tallies=None),
        outcomes_with(decisions=[Decision("parked", "i")]),
        outcomes_with(decisions=[Decision("applied", None, 3, 4, True)]),
        outcomes_with(decisions=[Decision("expired")]),
        outcomes_with(decisions=[Decision("unmatched", "i")]),
    ],
)
def test_an_outcomes_record_that_lacks_something_stops_the_rebuild(record: Record) -> None:
    """By name, not by a crash: tallies without a count, a decision without its id or its place."""
    with pytest.raises(BadLog, match="outcomes"):
        rebuild(Ledger(LabelSettings()), Position(0, 0), RecoveryPoint(0, 0, 0), {1: 9}, [], [record])


@pytest.mark.parametrize(
    "value", [b'{"epoch":1,"format":1,"settings":' + DEEP + b"}", b'{"part":' + DEEP + b"}"]
)
def test_a_deeply_nested_record_of_the_worker_stops_the_reader(value: bytes) -> None:
    """By name."""
    read = read_update if b"format" in value else read_outcomes
    with pytest.raises(BadLog):
        read(Record("updates", 0, 0, 0, None, value))


def test_a_deeply_nested_checkpoint_is_refused() -> None:
    """By name."""
    with pytest.raises(BadSnapshot):
        decode_checkpoint(b"\x91" * 100_000)


def test_a_checkpoint_without_a_count_is_refused() -> None:
    """Before it is used: the next record would be counted on nothing."""
    good = next(each for number in range(60) for each in _history(number).checkpoints)
    plain = msgspec.msgpack.decode(good)
    next(iter(plain["ledgers"].values()))["tallies"]["life"] = EMPTY
    with pytest.raises(BadSnapshot, match="the counts lack"):
        decode_checkpoint(msgspec.msgpack.encode(plain))


def test_a_checkpoint_with_a_partition_that_the_log_has_not_is_refused() -> None:
    """Before the log is asked where that partition ends."""
    history = next(_history(number) for number in range(60) if _history(number).checkpoints)
    good = decode_checkpoint(history.checkpoints[0])
    strange = msgspec.structs.replace(good, ledgers={**good.ledgers, 9: next(iter(good.ledgers.values()))})
    with pytest.raises(BadSnapshot, match=r"partitions \[9\]"):
        check_belongs(strange, history.settings.group, {}, history.partitions)


def test_a_checkpoint_whose_rows_hold_an_infinite_count_is_refused() -> None:
    """An infinite count is no integer."""
    model = Fold(Settings.model_validate({"learner": {"kind": "perceptron"}}), 1).model
    with pytest.raises(BadSnapshot, match="its state is not that of perceptron"):
        model.restore(msgspec.structs.replace(model.snapshot(), recent=[[[1.0, [], float("inf")]]]))


def test_the_audit_tells_of_features_that_are_no_text() -> None:
    """They are copied as they stand in the record; nobody reads them to find that they differ."""
    assert shown(msgspec.Raw(b'{"a\xdd":1}')) == '{"a\\xdd":1}'


@pytest.mark.parametrize("metadata", ["", "{", "\udcff", '{"p":0,"o":0,"s":"x"}', "[" * 5_000])
def test_metadata_that_holds_no_recovery_point_is_refused(metadata: str) -> None:
    """Also where it is no text at all."""
    with pytest.raises(BadLog, match="holds no recovery point"):
        read_recovery_point(Position(0, 0, metadata))


@pytest.mark.parametrize(
    "change",
    [
        {"features": msgspec.Raw(b"[[]]")},
        {"features": msgspec.Raw(b"1")},
        {"label": "grey"},
        {"predicted": 7},
        {"clock": []},
        {"model": Version(1, [0, 0])},
    ],
)
def test_an_update_that_these_settings_never_made_stops_the_fold(change: dict[str, Any]) -> None:
    """By name: other features, other classes, another number of partitions."""
    made = Settings.model_validate({"learner": {"kind": "perceptron"}})
    update = Update(1, 1, [1], "i", True, False, msgspec.Raw(b'{"a":1}'), 0, Version(1, [0]))
    records = [encode(first_epoch(made)), encode(msgspec.structs.replace(update, **change))]
    with pytest.raises(BadLog, match="update 1"):
        Fold(made, 1).fold(0, [Record("updates", 0, n, 0, None, value) for n, value in enumerate(records)])


@pytest.mark.parametrize(
    "learner", [{"kind": "elimination", "concepts": "null"}, {"kind": "oracle"}, {"eta": "x"}]
)
def test_an_epoch_of_settings_that_no_worker_takes_ends_the_audit(learner: dict[str, Any]) -> None:
    """By name."""
    with pytest.raises(BadLog, match="the settings of epoch 1 are not valid"):
        settings_of(Epoch(1, 1, {"learner": learner, "features": {"bias": False}}), MessageSettings())


def test_deep_nesting_in_a_data_file_is_no_number(tmp_path: Path) -> None:
    """A label that nobody can read: the row is rejected, and the file no success."""
    file = tmp_path / "rows"
    file.write_bytes(b"+1 1:0.5\n" + b"[" * 20_000 + b" 1:0.5\n")
    told = CliRunner().invoke(app, ["replay", str(file), "--from", "svmlight"])
    assert told.exit_code == 3, told.output


@pytest.mark.parametrize("where", ["file", "flag", "environment"])
def test_deep_nesting_in_the_settings_is_reported(tmp_path: Path, where: str) -> None:
    """In the file, in a flag and in a variable."""
    file = tmp_path / "mistakebound.toml"
    deep = DEEP.decode()
    file.write_text(f"[labels]\nclasses = {deep if where == 'file' else '[1, 2]'}\n")
    with pytest.raises(ConfigurationError):
        load(
            file,
            [f"labels.classes={deep}"] if where == "flag" else [],
            None,
            {"MISTAKEBOUND_LABELS__CLASSES": deep} if where == "environment" else {},
        )


def test_a_number_of_variables_beyond_memory_is_reported() -> None:
    """Each variable has a name, which takes memory."""
    with pytest.raises(ConfigurationError, match=r"learner\.variables"):
        load(None, [f"learner.variables={2**62}", "learner.kind=halving"], None, {})


@pytest.fixture
def server() -> Iterator[Any]:
    with listening() as opened:
        yield opened


def test_an_accept_header_that_the_library_cannot_read_gets_the_plain_page(server: Any) -> None:
    """Not the answer that the page failed."""
    host, _, port = server.address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=10)
    connection.request("GET", "/metrics", headers={"Accept": "application/openmetrics-text;version=1 0.0"})
    answer = connection.getresponse()
    assert (answer.status, answer.getheader("Content-Type", "")[:10]) == (200, "text/plain")
    answer.read()
    connection.close()
