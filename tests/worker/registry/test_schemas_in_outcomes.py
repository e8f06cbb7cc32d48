"""Each schema is in `outcomes` once, and from then on nobody is asked: restarts, crashes, audit, recordings, epochs."""

import copy
import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pytest

from mistakebound.core.audit import Findings, audit
from mistakebound.core.messages.formats.schema_text import SchemaText, as_setting
from mistakebound.core.records import TOPICS
from mistakebound.core.replay.plan import carry_out
from mistakebound.core.replay.plan import planned as plan_of
from mistakebound.core.replay.recorded import Recorded
from mistakebound.log.protocol import Log
from mistakebound.settings import MessageSettings, Settings
from mistakebound.worker.epochs.reset import execute, planned
from mistakebound.worker.registry.written import written_schemas
from tests.commands.support.command_line import ok, run
from tests.core.support.audited import Lists
from tests.support.registry import StandIn, stand_in
from tests.worker.registry.support.shop import (
    PAYMENT,
    chargeback,
    outgoing,
    payment,
    reasons,
    schemas_written,
    send,
    send_json,
    settings_of,
    values,
)
from tests.worker.support.faulty import FaultyLog
from tests.worker.support.working import Recount, Run, altered, opened, settings_for, settings_on


@pytest.fixture
def registry() -> Iterator[StandIn]:
    with stand_in() as one:
        yield one


def audited(log: Log) -> Findings:
    records = {
        (topic, p): list(log.read(topic, p, log.low_watermark(topic, p)))
        for topic in TOPICS
        for p in range(log.partitions)
    }
    return audit(Lists(log.partitions, records), MessageSettings(), [], Findings())


def gone(settings: Settings) -> Settings:
    """The same, with nobody at the registry's place."""
    return altered(
        settings, registry={**settings.registry.model_dump(), "url": "http://127.0.0.1:9", "timeout": 1}
    )


def test_a_stream_in_avro_comes_to_what_it_comes_to_in_json(registry: StandIn) -> None:
    """Prediction by prediction, with the features in JSON and in the record's order."""
    settings, plain = settings_of(registry.url), settings_for()
    with opened(settings, 2) as log, opened(plain, 2) as other:
        send(log, registry.url, range(12))
        send_json(other, range(12))
        avro, in_json = Run(log, settings), Run(other, plain)
        assert avro.held.state.model.updates == in_json.held.state.model.updates != [0, 0]
        for p in range(2):
            assert values(log, "predictions", p) == values(other, "predictions", p)
            assert schemas_written(log, p) == ["1", "2"]
        assert values(log, "predictions", 0)[1]["features"] == {"amount": 3.0, "country": "XX"}
        assert audited(log).first == []


def test_the_id_in_a_header_is_a_guid(registry: StandIn) -> None:
    """And the value is the record alone."""
    settings = settings_of(registry.url)
    with opened(settings) as log:
        send(log, registry.url, range(3), in_header=True)
        Run(log, settings)
        assert schemas_written(log) == [registry.guid(1), registry.guid(2)]
        assert len(values(log, "predictions")) == 3
        assert audited(log).first == []


def test_a_restart_asks_nobody_for_what_the_log_holds(registry: StandIn) -> None:
    """Not even whether the registry is there."""
    settings = settings_of(registry.url)
    with opened(settings) as log:
        send(log, registry.url, range(4))
        Run(log, settings)
        send(log, registry.url, range(4, 8))
        Run(log, gone(settings))
        assert len(values(log, "predictions")) == 8
        assert schemas_written(log) == ["1", "2"]
        assert audited(log).first == []


def test_each_record_is_read_by_the_schema_it_was_written_by(registry: StandIn) -> None:
    """A field that a newer one adds is a feature from then on."""
    newer = copy.deepcopy(PAYMENT)
    newer["fields"][1]["type"]["fields"].append({"name": "items", "type": "int", "default": 3})
    settings = settings_of(registry.url)
    with opened(settings) as log:
        send(log, registry.url, range(2))
        send(log, registry.url, range(2, 4), schema=newer)
        send(log, registry.url, range(4, 6))
        Run(log, settings)
        features = [one["features"] for one in values(log, "predictions")]
        assert [one.get("items") for one in features] == [None, None, 3, 3, None, None]
        assert schemas_written(log) == ["1", "2", "3"]


def test_steps_that_are_made_again_write_their_schemas_again_and_only_those(registry: StandIn) -> None:
    """Whatever became of the first attempt: of each schema one copy is committed."""
    settings = settings_of(registry.url, batch={"max_records": 2, "max_delay": 0})
    for fault in ("stale", "failed", "unreachable", "unreachable though written"):
        fresh = settings_of(registry.url, batch=settings.batch.model_dump())
        with opened(fresh) as log:
            send(log, registry.url, range(6))
            Run(FaultyLog(log, {("commit", 0): fault, ("commit", 2): fault}), fresh)
            assert schemas_written(log) == ["1", "2"], fault
            assert [one["id"] for one in values(log, "predictions")] == [f"i{n}" for n in range(6)]
            Recount(log, fresh)
            assert audited(log).first == []


def test_a_checkpoint_need_not_know_the_schemas(registry: StandIn, tmp_path: Path) -> None:
    """They are read from the log, however far the worker goes back."""
    settings = settings_of(registry.url, checkpoint={"url": str(tmp_path), "every_updates": 1})
    with opened(settings) as log:
        send(log, registry.url, range(4))
        Run(log, settings)
        assert any(tmp_path.iterdir())
        send(log, registry.url, range(4, 6))
        Run(log, gone(settings))
        assert schemas_written(log) == ["1", "2"]
        assert len(values(log, "predictions")) == 6


def test_an_unknown_id_is_a_dead_letter_until_it_is_registered(registry: StandIn) -> None:
    """The audit finds both as they are: what was unknown is not read by what came later."""
    settings = settings_of(registry.url, registry={"cache": 0})
    with opened(settings) as log:
        send(log, registry.url, range(1))
        known, registry.schemas = registry.schemas, []
        Run(log, settings)
        assert reasons(log) == ["unknown-schema", "unknown-schema"]
        assert schemas_written(log) == []
        registry.schemas = known
        send(log, registry.url, range(1, 2))
        Run(log, settings)
        assert [one["id"] for one in values(log, "predictions")] == ["i1"]
        assert schemas_written(log) == ["1", "2"]
        assert audited(log).first == []


def test_a_new_epoch_writes_its_schemas_anew(registry: StandIn) -> None:
    """So a registry that was filled anew, with other schemas under old ids, is followed from there on."""
    settings = settings_of(registry.url)
    with opened(settings) as log:
        send(log, registry.url, range(3))
        Run(log, settings)
        other = altered(settings, learner={"kind": "averaged-perceptron"})
        plan = planned(log, other, None)
        assert plan is not None
        execute(log, other, plan, 5.0)
        send(log, registry.url, range(3, 6))
        Run(log, other)
        assert schemas_written(log) == ["1", "2", "1", "2"]
        assert written_schemas(log, 0, 2)[1].keys() == {"1", "2"}
        assert written_schemas(log, 0, 3) == ({}, {})
        assert audited(log).first == []


def test_a_schema_that_does_not_fit_outcomes_is_unknown(
    registry: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was decided by it could not be derived again."""
    settings = settings_of(registry.url)
    long = {**PAYMENT, "doc": "x" * 5_000}
    with opened(settings) as log:
        send(log, registry.url, range(1), schema=long)
        monkeypatch.setattr(type(log), "max_record_bytes", lambda self, topic: 4_000)
        Run(log, settings)
        assert reasons(log) == ["unknown-schema"]
        assert schemas_written(log) == ["2"]


def test_the_audit_tells_a_schema_that_was_altered_and_one_that_is_missing(registry: StandIn) -> None:
    """It rests on what the log holds, and on nothing else."""
    settings = settings_of(registry.url)
    with opened(settings) as log:
        send(log, registry.url, range(4))
        Run(log, settings)
        records = {(topic, 0): list(log.read(topic, 0, 0)) for topic in TOPICS}

    def differing(change: object) -> set[str]:
        lists = Lists(1, records)
        place = next(n for n, one in enumerate(lists.values("outcomes", 0)) if "1" in one.get("schemas", {}))
        lists.rewrite("outcomes", 0, place, change)  # type: ignore[arg-type]
        return set(lists.audit().differing)

    def swap(value: dict[str, object]) -> None:
        text = json.dumps(PAYMENT).replace("amount", "amounts")
        value["schemas"] = {"1": {"type": "AVRO", "text": text}}

    def other_id(value: dict[str, object]) -> None:
        value["schemas"] = {"9": {"type": "AVRO", "text": json.dumps(PAYMENT)}}

    assert "predictions" in differing(swap)
    assert {"schemas", "dead letters"} <= differing(other_id)


def test_a_recording_is_replayed_and_audited_by_itself(registry: StandIn, tmp_path: Path) -> None:
    """Without a registry, and without settings."""
    settings = settings_on(tmp_path / "log.db", messages={"format": "avro"}, registry={"url": registry.url})
    with opened(settings, 2) as log:
        send(log, registry.url, range(8))
        ledgers = Run(log, settings).held.state.ledgers
        mistakes = sum(ledger.tallies.life.mistakes for ledger in ledgers.values())
    registry.status = 500
    file, url = str(tmp_path / "all.jsonl"), f"sqlite:{tmp_path / 'log.db'}"
    prefix = f"log.prefix={settings.log.prefix}"
    ok("record", file, "--set", prefix, log=url)
    report = json.loads(ok("replay", file, "--json", "--set", "labels.max_delay=1000", log=None).stdout)
    assert report["mistakes"] == mistakes > 0
    assert report.get("afresh") is None
    again = json.loads(
        ok("replay", file, "--json", "--afresh", "--set", "labels.max_delay=1000", log=None).stdout
    )
    assert again["labelled"] == 8
    found = json.loads(ok("audit", "--recording", file, "--json", log=None).stdout)
    assert found["differences"] == {}
    assert found["checked"]["schemas"] > 0
    assert json.loads(ok("status", "--json", "--set", prefix, log=url).stdout)["labelled"] == 8


def test_a_file_is_a_schema_like_another_and_may_be_replaced(tmp_path: Path) -> None:
    """Plain Avro: each step is read by the file that its worker had."""
    first, second = copy.deepcopy(PAYMENT), copy.deepcopy(PAYMENT)
    second["fields"][1]["type"]["fields"][0]["name"] = "price"
    settings = settings_for(messages=in_file(first))
    with opened(settings) as log:
        for number in range(4):
            log.append([outgoing("examples", number, plain(PAYMENT, payment(number)))])
            log.append([outgoing("labels", number, json.dumps(chargeback(number)).encode())])
            Run(log, settings)
            settings = altered(settings, messages=in_file(second)) if number == 1 else settings
        names = [next(iter(one["features"])) for one in values(log, "predictions")]
        assert names == ["amount", "amount", "price", "price"]
        assert len(schemas_written(log)) == len(set(schemas_written(log))) == 2
        assert audited(log).first == []


def test_a_topic_that_turns_from_json_to_avro_is_read_on(registry: StandIn) -> None:
    """Within the epoch: each step says how its inputs were read. What is left of the JSON is no Avro."""
    plain_settings = settings_for()
    with opened(plain_settings) as log:
        send_json(log, range(3))
        Run(log, plain_settings)
        settings = altered(plain_settings, messages={"format": "avro"}, registry={"url": registry.url})
        send(log, registry.url, range(3, 6))
        send_json(log, range(6, 7))
        Run(log, settings)
        assert len(values(log, "predictions")) == 6
        assert reasons(log) == ["not-framed", "not-framed"]
        assert audited(log).first == []
        records = [one for topic in TOPICS for one in log.read(topic, 0, 0)]
        recorded = Recorded(records, 1)
        plan = plan_of(recorded, Settings())
        assert plan.afresh is None
        assert carry_out(recorded, plan).ledgers[0].tallies.life.examples["labelled"] == 6


def test_retention_takes_a_schema_and_the_registry_is_asked_again(registry: StandIn) -> None:
    """It is written again, with the step that needs it."""
    settings = settings_of(registry.url)
    with opened(settings) as log:
        send(log, registry.url, range(3))
        Run(log, settings)
        newest = max(record.offset for record in log.read("outcomes", 0, 0))
        there, texts = written_schemas(log, 0, 1)
        assert there.keys() == texts.keys() == {"1", "2"}
        log.low_watermark = lambda topic, partition: newest if topic == "outcomes" else 0  # type: ignore[method-assign]
        assert written_schemas(log, 0, 1) == ({}, {})


def test_a_recording_of_inputs_alone_asks_the_registry(registry: StandIn, tmp_path: Path) -> None:
    """Nothing else knows what its records are; without one, they are dead letters."""
    settings = settings_on(tmp_path / "log.db", messages={"format": "avro"}, registry={"url": registry.url})
    with opened(settings) as log:
        send(log, registry.url, range(5))
    file, url = str(tmp_path / "inputs.jsonl"), f"sqlite:{tmp_path / 'log.db'}"
    ok("record", file, "--topics", "examples,labels", "--set", f"log.prefix={settings.log.prefix}", log=url)
    flags = ["--set", "labels.max_delay=1000", "--set", "messages.format=avro", "--json"]
    asked = ok("replay", file, *flags, "--set", f"registry.url={registry.url}", log=None)
    assert json.loads(asked.stdout)["labelled"] == 5
    registry.status = 503
    away = run("replay", file, *flags, "--set", f"registry.url={registry.url}", log=None)
    assert (away.exit_code, "503" in away.stderr) == (4, True)


def test_labelled_data_is_json_whatever_the_topics_hold(tmp_path: Path) -> None:
    """`replay` of a file runs with the settings of the worker, whose topics are in Avro."""
    rows = tmp_path / "rows.jsonl"
    rows.write_text(
        "".join(json.dumps({"features": {"a": n % 2}, "label": bool(n % 2)}) + "\n" for n in range(6))
    )
    flags = ["--set", "messages.format=avro", "--set", "registry.url=http://127.0.0.1:9"]
    report = json.loads(ok("replay", str(rows), "--from", "jsonl", "--json", *flags, log=None).stdout)
    assert report["labelled"] == 6


def in_file(schema: Any) -> dict[str, str]:
    text = as_setting(SchemaText("AVRO", json.dumps(schema)))
    return {"format": "avro", "labels_format": "json", "examples_schema": text}


def plain(schema: Any, value: Any) -> bytes:
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()
