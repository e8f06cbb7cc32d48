"""Kafka's codecs: what a producer may compress batches with, and what reading them needs.

Any producer may choose any codec at any time, so a worker starts only where it can read them all.
"""

from collections.abc import Callable, Mapping

import kafka.codec

CODECS: Mapping[str, Callable[[], bool]] = {
    "gzip": kafka.codec.has_gzip,
    "snappy": kafka.codec.has_snappy,
    "lz4": kafka.codec.has_lz4,
    "zstd": kafka.codec.has_zstd,
}
"""By the name that topics and producers know it by: whether the client has a library for it."""

NONE = "none"
"""Kafka's own name for batches that are not compressed; a TOML file cannot say `None`."""


def unreadable() -> list[str]:
    """The codecs that no library is installed for."""
    return [name for name, is_there in CODECS.items() if not is_there()]
