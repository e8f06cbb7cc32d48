"""Secrets are masked wherever a setting or a text is shown."""

from pathlib import Path

import pytest

from mistakebound.config.keys import effective
from mistakebound.config.load import load
from mistakebound.config.masking import mask_text


def test_secrets_are_masked_in_what_is_shown(tmp_path: Path) -> None:
    """Nested ones too."""
    file = tmp_path / "mistakebound.toml"
    file.write_text('[kafka]\nssl_password = "hunter2"\n[kafka.nested]\ntoken = "hunter2"\nplain = "seen"\n')
    values = effective(load(file, (), None, {}).settings)
    assert values["kafka.ssl_password"] == "***"
    assert values["kafka.nested"] == {"token": "***", "plain": "seen"}


@pytest.mark.parametrize(
    "text",
    [
        "kafka://user:hunter2@host:9092 is down",
        "s3://bucket?secret_key=hunter2&region=x",
        "ssl_password='hunter2'",
        "https://hunter2@host/path",
    ],
)
def test_credentials_are_masked_in_any_text(text: str) -> None:
    """Errors of other libraries may quote what they were given."""
    assert "hunter2" not in mask_text(text)


def test_an_address_without_credentials_is_shown_as_it_is() -> None:
    """Masking does not hide what helps."""
    assert mask_text("kafka://host:9092,other:9092/x@y") == "kafka://host:9092,other:9092/x@y"
