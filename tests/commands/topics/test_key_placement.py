"""Whether examples and labels of an id share a partition, told from a sample of keys."""

import zlib
from collections.abc import Callable

import pytest

from mistakebound.commands.topics import key_placement
from mistakebound.core.records import Record, Topic
from mistakebound.log.partitioner import partition_of


def _keyed(topic: Topic, place: Callable[[bytes], int], count: int = 400) -> list[Record]:
    keys = [f"tx-{number}".encode() for number in range(count)]
    return [Record(topic, place(key), number, 0, key, b"{}") for number, key in enumerate(keys)]


def _murmur2(key: bytes) -> int:
    return partition_of(key, 4)


def _crc32(key: bytes) -> int:
    return zlib.crc32(key) % 4


@pytest.mark.parametrize("place", [_murmur2, _crc32])
def test_inputs_placed_alike_pass(place: Callable[[bytes], int]) -> None:
    """Either partitioner will do."""
    assert key_placement.finding(_keyed("examples", place), _keyed("labels", place), 4).verdict == "ok"


def test_inputs_placed_differently_are_a_warning() -> None:
    """Examples from Java, labels from librdkafka: most labels would never meet their example."""
    finding = key_placement.finding(_keyed("examples", _murmur2), _keyed("labels", _crc32), 4)
    assert finding.verdict == "warning"
    assert "murmur2 (100% of 400)" in finding.found
    assert "CRC32 (100% of 400)" in finding.found
    assert "partitioner=murmur2_random" in finding.remedy


def test_keys_placed_by_no_rule_are_a_warning() -> None:
    """For example round robin."""
    finding = key_placement.finding(_keyed("examples", lambda key: key[-1] % 4), [], 4)
    assert "neither" in finding.found
    assert finding.verdict == "warning"


def test_records_without_keys_are_a_warning() -> None:
    """Producers spread them at random."""
    records = [record._replace(key=None) for record in _keyed("examples", _murmur2)]
    assert key_placement.finding(records, [], 4).verdict == "warning"


def test_one_partition_or_no_record_cannot_be_wrong() -> None:
    """A new log passes."""
    assert key_placement.finding([], [], 4).verdict == "ok"
    assert key_placement.finding(_keyed("examples", lambda _: 0), [], 1).verdict == "ok"
