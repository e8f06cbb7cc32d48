"""Secrets never reach a screen or a log file: values are masked by their key's name, URLs by their form."""

import re
from collections.abc import Mapping
from typing import Any

from mistakebound.worker.known_secrets import MASK, hide, redacted

_SECRET_NAME = re.compile(r"password|passwd|secret|token|credential", re.IGNORECASE)
_URL_CREDENTIALS = re.compile(r"(?<=://)[^/?#\s]*(?=@)")
_URL_QUERY_SECRET = re.compile(
    r"([?&][^=&\s]*(?:password|secret|token|key|signature)[^=&\s]*=)([^&#\s]+)", re.IGNORECASE
)
_CONFIG_SECRET = re.compile(
    r"((?:password|secret|token)\w*\s*=\s*)(\"[^\"]*\"|'[^']*'|[^\s;]+)", re.IGNORECASE
)


def is_secret(key: str) -> bool:
    """Whether a key's name says that its value must not be shown; that of a file which holds a secret may."""
    return _SECRET_NAME.search(key) is not None and not key.endswith("_file")


def mask_text(text: str) -> str:
    """The text with `***` for known secrets, for credentials in URLs and in `password=...` pairs."""
    text = _URL_CREDENTIALS.sub(MASK, text)
    text = _URL_QUERY_SECRET.sub(rf"\g<1>{MASK}", text)
    return redacted(_CONFIG_SECRET.sub(rf"\g<1>{MASK}", text))


def hide_secrets(key: str, value: Any) -> None:
    """Remember the secrets that a setting's value holds, so that they appear in no output."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            hide_secrets(str(name), inner)
    elif isinstance(value, str):
        found = [value] if is_secret(key) else []
        for credentials in _URL_CREDENTIALS.findall(value):
            found += [credentials, credentials.partition(":")[2]]
        found += [secret for _, secret in _URL_QUERY_SECRET.findall(value)]
        for secret in found:
            hide(secret)


def mask(key: str, value: Any) -> Any:
    """The value as it may be shown; tables and lists are masked inside."""
    if value is not None and is_secret(key):
        return MASK
    if isinstance(value, str):
        return mask_text(value)
    if isinstance(value, Mapping):
        return {name: mask(str(name), inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [mask(key, inner) for inner in value]
    return value
