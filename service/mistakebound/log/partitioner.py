"""How producers choose a record's partition from its key: the rules that are in use, as pure functions.

This worker's own is Kafka's default, murmur2, so that every log and every Java producer put a key in the same place.
librdkafka's default (CRC32) differs: producers built on it must set `partitioner=murmur2_random`, or all producers
of a stream must use the same other rule.
"""

import struct
import zlib
from collections.abc import Callable, Mapping
from typing import Literal

_MASK = 0xFFFFFFFF
_MULTIPLIER = 0x5BD1E995
_SEED = 0x9747B28C
_FNV_OFFSET, _FNV_PRIME = 0x811C9DC5, 0x01000193


def murmur2(key: bytes) -> int:
    """The 32-bit murmur2 hash of `key` with Kafka's seed, as an unsigned number."""
    whole = len(key) // 4
    result = _SEED ^ len(key)
    for word in struct.unpack_from(f"<{whole}I", key):
        mixed = word * _MULTIPLIER & _MASK
        mixed = (mixed ^ mixed >> 24) * _MULTIPLIER & _MASK
        result = (result * _MULTIPLIER & _MASK) ^ mixed
    rest = key[whole * 4 :]
    if rest:
        result = (result ^ int.from_bytes(rest, "little")) * _MULTIPLIER & _MASK
    result = (result ^ result >> 13) * _MULTIPLIER & _MASK
    return result ^ result >> 15


def partition_of(key: bytes | None, partitions: int) -> int:
    """The partition of `key` by murmur2, 0 <= it < `partitions`.

    A missing key counts as the empty one: Kafka's clients would choose at random, and then the same
    input would not give the same log twice.
    """
    return (murmur2(key or b"") & 0x7FFFFFFF) % partitions


def _by_crc32(key: bytes, partitions: int) -> int:
    return zlib.crc32(key) % partitions


def _by_fnv1a(key: bytes, partitions: int) -> int:
    """The hash counts as a signed number, of which Sarama, and librdkafka after it, take the absolute value."""
    found = _FNV_OFFSET
    for byte in key:
        found = (found ^ byte) * _FNV_PRIME & _MASK
    return (found if found < 1 << 31 else (1 << 32) - found) % partitions


def _by_number(key: bytes, partitions: int) -> int:
    """Of a key that is a number in decimal digits; any other key belongs nowhere, which is -1."""
    return int(key) % partitions if key.isdigit() and len(key) <= 20 else -1


Partitioner = Literal["murmur2", "crc32", "fnv1a", "modulo"]
PARTITIONERS: Mapping[Partitioner, Callable[[bytes, int], int]] = {
    "murmur2": partition_of,
    "crc32": _by_crc32,
    "fnv1a": _by_fnv1a,
    "modulo": _by_number,
}
"""The likeliest first. murmur2: Java, kafka-python, KafkaJS, franz-go. crc32: librdkafka (confluent-kafka, kcat, .NET, PHP),
ruby-kafka. fnv1a: Sarama, and librdkafka's `fnv1a`. modulo: of a number, a partitioner that people write themselves."""
