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


def test_ids_placed_differently_fail() -> None:
    """Examples from Java, labels from librdkafka: most labels would never meet their example."""
    finding = key_placement.finding(_keyed("examples", _murmur2), _keyed("labels", _crc32), 4)
    assert finding.verdict == "failed"
    assert "murmur2 (100% of 400)" in finding.found
    assert "CRC32 (100% of 400)" in finding.found
    assert "partitioner=murmur2_random" in finding.remedy


def test_what_the_settings_let_start_is_a_warning() -> None:
    """As `run` would only warn."""
    sampled = _keyed("examples", _murmur2), _keyed("labels", _crc32)
    assert key_placement.finding(*sampled, 4, misplaced="warn").verdict == "warning"


def test_other_rules_for_other_ids_are_a_warning() -> None:
    """The labels' examples were not seen: they may have been placed as the labels are."""
    labels = [each._replace(key=b"old-%d" % each.offset) for each in _keyed("labels", _crc32)]
    labels = [each._replace(partition=_crc32(each.key or b"")) for each in labels]
    finding = key_placement.finding(_keyed("examples", _murmur2), labels, 4)
    assert (finding.verdict, "CRC32 (100% of 400)" in finding.found) == ("warning", True)


def test_a_few_records_of_two_rules_that_fit_both_are_no_warning() -> None:
    """One example and one label by murmur2, where CRC32 would have chosen the same."""
    key = next(key for key in (b"tx-%d" % n for n in range(100)) if _crc32(key) == _murmur2(key))
    records = [Record("examples", _crc32(key), 0, 0, key, b"{}")]
    assert key_placement.finding(records, [records[0]._replace(topic="labels")], 4).verdict == "ok"


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
