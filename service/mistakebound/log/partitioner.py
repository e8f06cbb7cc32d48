"""Which partition a key belongs to: Kafka's default partitioner (murmur2), so that every log and every
Java producer put a key in the same place.

librdkafka's default (CRC32) differs: producers built on it must set `partitioner=murmur2_random`.
"""

import struct

_MASK = 0xFFFFFFFF
_MULTIPLIER = 0x5BD1E995
_SEED = 0x9747B28C


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
    """The partition of `key`, 0 <= it < `partitions`.

    A missing key counts as the empty one: Kafka's clients would choose at random, and then the same
    input would not give the same log twice.
    """
    return (murmur2(key or b"") & 0x7FFFFFFF) % partitions
