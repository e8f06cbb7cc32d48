"""Keys go where Kafka's default partitioner puts them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mistakebound.log.partitioner import murmur2, partition_of


@pytest.mark.filterwarnings("ignore:.*_text is deprecated:DeprecationWarning")
@settings(deadline=None)
@given(key=st.binary(max_size=40))
def test_the_hash_is_that_of_kafka_python(key: bytes) -> None:
    """For keys of every length, with every tail."""
    from kafka.partitioner.default import murmur2 as theirs

    assert murmur2(key) == theirs(key) & 0xFFFFFFFF


@pytest.mark.parametrize(
    ("key", "expected"),
    [(b"21", -973932308), (b"foobar", -790332482), (b"a-little-bit-long-string", -985981536)],
)
def test_the_hash_is_that_of_apache_kafka(key: bytes, expected: int) -> None:
    """Values that Kafka's own tests of its hash state, as signed numbers."""
    assert murmur2(key) == expected & 0xFFFFFFFF


@settings(deadline=None)
@given(key=st.none() | st.binary(), partitions=st.integers(1, 1000))
def test_a_partition_is_within_the_count(key: bytes | None, partitions: int) -> None:
    """Also for a missing key, which always goes to the same partition."""
    assert 0 <= partition_of(key, partitions) < partitions
    assert partition_of(None, partitions) == partition_of(b"", partitions)
