"""The settings as flat keys, and their JSON Schema."""

from mistakebound.config.keys import json_schema, keys


def test_every_setting_has_a_meaning() -> None:
    """deploy/configuration.md is made from this."""
    assert [key.name for key in keys().values() if not key.meaning] == []


def test_the_schema_takes_what_the_settings_take() -> None:
    """Durations as numbers or text; unknown keys are refused."""
    schema = json_schema()
    labels = schema["$defs"]["LabelSettings"]
    assert labels["additionalProperties"] is False
    assert labels["properties"]["parking"]["type"] == ["number", "string"]
