"""`messages.examples_schema = "@FILE"`: a schema from a file, and what each format needs to be installed."""

import json
from pathlib import Path

import pytest

from mistakebound.config import schema_files
from mistakebound.config.load import load
from mistakebound.config.problems import ConfigurationError
from mistakebound.core.messages.formats.schema_text import of_setting

AVRO = ("messages.format=avro", "messages.examples_schema=@a.avsc", "messages.labels_format=json")


def told(*sets: str) -> str:
    with pytest.raises(ConfigurationError) as refusal:
        load(None, sets, None, {})
    return str(refusal.value)


def test_a_schema_comes_from_a_file_and_the_log_knows_it_by_its_digest() -> None:
    """The file's name is nowhere: the file may change."""
    Path("a.avsc").write_text('"string"')
    messages = load(None, AVRO, None, {}).settings.messages
    schema_id, text = of_setting(messages.examples_schema or "")
    assert text is not None
    assert (text.type, text.text) == ("AVRO", '"string"')
    assert messages.recorded()["examples_schema"] == schema_id
    assert schema_id.startswith("sha256:")
    Path("a.avsc").write_text('"bytes"')
    assert load(None, AVRO, None, {}).settings.messages.recorded()["examples_schema"] != schema_id


def test_a_proto_file_may_import_those_beside_it() -> None:
    """Compiled once, with all of them."""
    Path("shop").mkdir()
    Path("shop/money.proto").write_text('syntax = "proto3"; message Money { double amount = 1; }')
    Path("shop/a.proto").write_text(
        'syntax = "proto3"; import "money.proto"; message A { Money features = 1; }'
    )
    sets = (
        "messages.format=protobuf",
        "messages.examples_schema=@shop/a.proto",
        "messages.labels_format=json",
    )
    _, text = of_setting(load(None, sets, None, {}).settings.messages.examples_schema or "")
    assert text is not None
    assert text.compiled is not None


def test_a_file_that_is_no_schema_is_one_problem_among_others() -> None:
    """With the file's name, and what protoc says."""
    Path("a.proto").write_text('syntax = "proto3"; message A { Nothing n = 1; }')
    proto = ("messages.format=protobuf", "messages.examples_schema=@a.proto", "messages.labels_format=json")
    found = told(*proto, "learner.eta=0")
    assert "a.proto does not compile" in found
    assert '"Nothing" is not defined' in found
    assert "learner.eta" in found
    assert "a.avsc cannot be read" in told(*AVRO)
    assert "names no file; write @" in told("messages.format=avro", "messages.examples_schema=a.avsc")
    Path("a.avsc").write_bytes(b"\xff")
    assert "is not UTF-8 text" in told(*AVRO)
    Path("a.avsc").write_text(json.dumps("x" * schema_files.LARGEST_BYTES))
    assert "at most 500000" in told(*AVRO)


@pytest.mark.parametrize("form", schema_files.LIBRARIES)
def test_a_format_whose_library_is_missing_names_the_extra(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So does a registry."""
    monkeypatch.setattr(schema_files, "find_spec", lambda name: None)
    found = told(f"messages.format={form}", "registry.url=http://a:1")
    assert f"messages.format = {form!r}" in found or f'messages.format = "{form}"' in found
    assert found.count("mistakebound[registry]") >= 2
    assert "registry.url" in found
