"""What a sample of records tells of where its producers put them."""

import struct
import zlib
from collections.abc import Callable

import pytest

from mistakebound.core.records import Record, Topic
from mistakebound.log.partitioner import PARTITIONERS, Partitioner, partition_of
from mistakebound.log.placement import Rule, key_for, meeting, placement

PARTITIONS = 6


def records(
    place: Callable[[int], int],
    key: Callable[[int], bytes | None] = lambda number: b"tx-%d" % number,
    *,
    topic: Topic = "examples",
    count: int = 200,
    name: str = "tx-%d",
) -> list[Record]:
    """Of ids tx-0, tx-1 ..., under these keys in these partitions."""
    return [
        Record(topic, place(number), number, 0, key(number), b'{"id":"%s"}' % (name % number).encode())
        for number in range(count)
    ]


@pytest.mark.parametrize("name", PARTITIONERS)
def test_each_partitioner_is_told_by_what_it_does(name: Partitioner) -> None:
    """And by nothing else, in a sample of some size."""
    key = (lambda number: b"%d" % (number * 7)) if name == "modulo" else (lambda number: b"tx-%d" % number)
    found = placement(records(lambda n: PARTITIONERS[name](key(n), PARTITIONS), key), PARTITIONS)
    assert (found.rule, found.also, found.share) == (Rule(name), (), 1.0)


def test_the_key_of_a_public_report_goes_where_each_client_put_it() -> None:
    """kafkajs issue 1154: key TT0124 of 15 partitions is in 9 by librdkafka's default, and in 10 by Java's."""
    assert PARTITIONERS["crc32"](b"TT0124", 15) == 9
    assert PARTITIONERS["murmur2"](b"TT0124", 15) == 10


@pytest.mark.parametrize(
    ("form", "key"),
    [
        ("text", lambda number: b"%d" % number),
        ("json", lambda number: b'"%d"' % number),
        ("int64", lambda number: struct.pack(">q", number)),
        ("int32", lambda number: struct.pack(">i", number)),
    ],
)
def test_how_keys_spell_ids_is_told(form: str, key: Callable[[int], bytes]) -> None:
    """As Java's serializers of strings, JSON, longs and integers write them."""
    sampled = records(lambda n: partition_of(key(n), PARTITIONS), key, name="%d")
    found = placement(sampled, PARTITIONS)
    assert (found.rule, found.key_form) == (Rule("murmur2"), form)
    assert key_for("17", form) == key(17)  # type: ignore[arg-type]


def test_keys_that_are_not_ids_are_told() -> None:
    """A customer's number, say: the rule is known, the key of another id is not."""
    customer = lambda number: b"customer-%d" % (number % 50)  # noqa: E731
    found = placement(records(lambda n: partition_of(customer(n), PARTITIONS), customer), PARTITIONS)
    assert (found.rule, found.key_form) == (Rule("murmur2"), None)


def test_records_without_keys_may_be_placed_by_their_id() -> None:
    """By a producer that chooses the partition itself."""
    found = placement(records(lambda n: zlib.crc32(b"tx-%d" % n) % PARTITIONS, lambda _: None), PARTITIONS)
    assert (found.rule, found.keyed) == (Rule("crc32", "id"), False)


def test_empty_keys_are_no_keys() -> None:
    """librdkafka's default places them at random (its issue 4510)."""
    found = placement(records(lambda n: n % PARTITIONS, lambda _: b""), PARTITIONS)
    assert (found.rule, found.keyed, str(found)) == (None, False, "unkeyed (100% of 200)")


def test_one_key_a_thousand_times_tells_nothing_more_than_once() -> None:
    """A dominant key would else prove a rule that it fits by chance."""
    found = placement(records(lambda n: n % PARTITIONS, lambda n: b"k%d" % (n % 2)), PARTITIONS)
    assert found.rule is None


def test_a_small_sample_says_what_else_would_fit() -> None:
    """One record fits several rules."""
    partition = partition_of(b"a", 2)
    found = placement([Record("examples", partition, 0, 0, b"a", b'{"id":"a"}')], 2)
    assert found.rule == Rule("murmur2")
    assert set(found.also) == {
        Rule(name) for name, rule in PARTITIONERS.items() if rule(b"a", 2) == partition and name != "murmur2"
    }


def test_labels_apart_from_their_examples_are_proven_by_ids() -> None:
    """Not by keys: here both are placed by one rule, and the key bytes of an id differ (Avro keys under two schemas)."""
    avro = [lambda n, schema=schema: b"\0" + struct.pack(">I", schema) + b"tx-%d" % n for schema in (1, 2)]
    examples, labels = (
        records(lambda n, key=key: partition_of(key(n), PARTITIONS), key, topic=topic)  # type: ignore[misc]
        for key, topic in zip(avro, ("examples", "labels"), strict=True)
    )
    found = meeting(examples, labels)
    assert found.proven
    assert found.both == 200
    assert len(found.misplaced) > 100


def test_a_label_without_its_example_proves_nothing() -> None:
    """Nor does one that was sent again to where its example is."""
    examples = records(lambda n: n % PARTITIONS)
    early = [each._replace(topic="labels", value=b'{"id":"new-%d"}' % each.offset) for each in examples]
    stray = [each._replace(topic="labels", partition=(each.partition + 1) % PARTITIONS) for each in examples]
    again = [each._replace(topic="labels", offset=each.offset + 1000) for each in examples]
    assert meeting(examples, early).misplaced == ()
    assert meeting(examples, stray).proven
    assert meeting(examples, stray + again).misplaced == ()


@pytest.mark.parametrize(("apart", "proven"), [(4, False), (5, True), (9, True)])
def test_a_few_slips_prove_nothing(apart: int, proven: bool) -> None:
    """Five ids, and one in a hundred."""
    examples = records(lambda n: n % PARTITIONS)
    labels = [
        each._replace(topic="labels", partition=(each.partition + (n < apart)) % PARTITIONS)
        for n, each in enumerate(examples)
    ]
    found = meeting(examples, labels)
    assert (len(found.misplaced), found.proven) == (apart, proven)
    assert not meeting(examples * 1, labels[apart:]).proven
