"""The bytes of a checkpoint in any store: a head that can be read alone, then the payload.

A line `mistakebound-checkpoint 1`, a line of JSON (`sha256` and `length` of the payload, `summary`), then the
payload. `service/mistakebound/core/checkpoint_content.py` says what is in the payload. The head is not covered by the
checksum: the summary may decide what is read, never what is believed.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

MAGIC = b"mistakebound-checkpoint 1\n"
MOST_HEAD_BYTES = 1_048_576


class InvalidCheckpointError(Exception):
    """These bytes are not a whole checkpoint. The text says what is wrong with them."""


def head(payload: bytes, summary: Mapping[str, Any]) -> bytes:
    """The bytes before the payload. Raises TypeError or ValueError if `summary` is not JSON."""
    header = {"sha256": hashlib.sha256(payload).hexdigest(), "length": len(payload), "summary": summary}
    return MAGIC + json.dumps(header, sort_keys=True, allow_nan=False).encode() + b"\n"


def parse(content: bytes) -> bytes:
    """The payload, its checksum verified. Raises InvalidCheckpointError."""
    header, begins = _header(content)
    payload = content[begins:]
    if len(payload) != header["length"]:
        raise InvalidCheckpointError(
            f"its payload has {len(payload)} bytes where its header says {header['length']}"
        )
    if hashlib.sha256(payload).hexdigest() != header["sha256"]:
        raise InvalidCheckpointError("its payload does not have the SHA-256 that its header says")
    return payload


def summary_of(beginning: bytes) -> Mapping[str, Any]:
    """The summary, from the first bytes of a checkpoint. Raises InvalidCheckpointError."""
    header, _ = _header(beginning)
    found: Mapping[str, Any] = header["summary"]
    return found


def _header(content: bytes) -> tuple[dict[str, Any], int]:
    """The second line, and where the third begins."""
    if not content.startswith(MAGIC):
        raise InvalidCheckpointError(f"it does not begin with {MAGIC.decode().strip()!r}")
    end = content.find(b"\n", len(MAGIC), len(MAGIC) + MOST_HEAD_BYTES)
    header: Any
    try:
        header = json.loads(content[len(MAGIC) : end]) if end >= 0 else None
    except (ValueError, RecursionError):
        header = None
    match header:
        case {"length": int(), "sha256": str(), "summary": dict()}:
            return header, end + 1
    raise InvalidCheckpointError("its second line is not a JSON object with length, sha256 and summary")
