"""Records written and read as whole batches of the client, instead of one call for each record.

kafka-python 3.0.12 spends most of its time per record on what is the same for all records: it checks types,
takes locks, makes a future and asks for the time. Here the client's own batches are filled and handed to its own
accumulator; sequence numbers, retries, compression and acknowledgements stay with the client. What a fetch brought is
unpacked here instead of in the client, batch by batch: its code still checks checksums and keeps the list of aborted
transactions, what is asked of both stands here.

It buys: a job that only passes records on by the client's own calls takes 18 us of a processor for each, this
worker with its steps and its ledger 21, compiled 12 (deploy/performance.md). Of that, a record is decoded in 0.9 us
instead of 2.2 (compiled 0.1), and put into a batch in 0.4 instead of 1.4 (compiled 0.2), without the client's own send.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from kafka import TopicPartition as BrokerPartition
from kafka.consumer.fetcher import Fetcher, IsolationLevel
from kafka.errors import CorruptRecordError, KafkaTimeoutError
from kafka.producer.producer_batch import ProducerBatch
from kafka.record.memory_records import MemoryRecordsBuilder

from mistakebound.core.records import Lost, Outgoing, Record, Topic
from mistakebound.log.kafka.kafka_python.record_format import decoded, encoded

MAGIC = 2
"""The format of batches since Kafka 0.11."""
MOST_OFFSETS = 1_000_000
"""No batch takes more: a damaged one that says so is passed offset by offset."""


def send(
    producer: Any, broker_partition: BrokerPartition, records: Sequence[Outgoing]
) -> list[ProducerBatch]:
    """Hand the records of one partition over, in order; returns the batches that hold them."""
    producer.partitions_for(broker_partition.topic)  # waits until the client has looked up a topic new to it
    accumulator = producer._accumulator
    batches = list(_batches(producer, broker_partition, records))
    producer._transaction_manager.maybe_add_partition_to_transaction(broker_partition)
    with accumulator._tp_lock(broker_partition):
        accumulator._batches[broker_partition].extend(batches)
        for batch in batches:
            accumulator._incomplete.add(batch)
    producer._sender.wakeup()
    return batches


def end_of(batch: ProducerBatch) -> int:
    """Offset after the last record of a batch that was flushed. Raises what became of it otherwise."""
    future = batch.produce_future
    if not future.is_done:
        raise KafkaTimeoutError(f"a batch for {batch.topic_partition} was not acknowledged")
    if future.exception is not None:
        raise future.exception
    offset, _, error_of = future.value
    if error_of is not None:
        raise error_of(0)
    return int(offset) + int(batch.record_count)


def _batches(
    producer: Any, broker_partition: BrokerPartition, records: Iterable[Outgoing]
) -> Iterator[ProducerBatch]:
    config, now = producer._accumulator.config, round(time.time() * 1000)
    size = config["batch_size"]
    builder, buffer, count, first, newest = None, bytearray(), 0, 0, 0
    for record in records:
        stamp = now if record.timestamp_ms is None else record.timestamp_ms
        one = encoded(count, stamp - first, record)
        if builder is None or len(buffer) + len(one) > size:
            if builder is not None:
                yield _closed(broker_partition, builder, count, first, newest)
            producer._ensure_valid_record_size(len(one))
            builder = MemoryRecordsBuilder(MAGIC, config["compression_attrs"], size)
            buffer, count, first, newest = builder._builder._buffer, 0, stamp, stamp
            one = encoded(0, 0, record)
        buffer += one
        count += 1
        newest = max(newest, stamp)
    if builder is not None:
        yield _closed(broker_partition, builder, count, first, newest)


def _closed(
    broker_partition: BrokerPartition, builder: Any, count: int, first: int, newest: int
) -> ProducerBatch:
    inner = builder._builder
    inner._first_timestamp, inner._max_timestamp = first, newest
    inner._num_records, inner._last_offset = count, count - 1
    builder._next_offset = count
    return ProducerBatch(broker_partition, builder)


def deliver_records(consumer: Any, to_logical: Mapping[str, Topic], *, past_damage: bool = False) -> Any:
    """The consumer, whose polls deliver the core's records from now on.

    `past_damage`: in place of a batch that fails its checksum they give a `Lost` record.
    """
    consumer._fetcher.PartitionRecords = partial(_Fetched, to_logical, past_damage)
    return consumer


class _Fetched(Fetcher.PartitionRecords):  # type: ignore[misc]
    """What one fetch brought of one partition."""

    def __init__(
        self, to_logical: Mapping[str, Topic], past_damage: bool, *arguments: Any, **named: Any
    ) -> None:
        super().__init__(*arguments, **named)
        self._topic, self._past_damage = to_logical[self.topic_partition.topic], past_damage

    def _unpack_records(self, broker_partition: BrokerPartition, records: Any, *_: Any) -> Iterator[Record]:
        # One by one: a record that cannot be read must not take those before it with it.
        while (batch := records.next_batch()) is not None:
            if self.check_crcs and not batch.validate_crc():
                yield self._damaged(broker_partition, batch)
                continue
            if batch.magic != MAGIC:
                yield from self._old(batch)
                continue
            if not self._hidden(batch):
                self.bytes_read += batch.size_in_bytes
                self.records_read += batch.records_count
                for record in decoded(self._topic, broker_partition.partition, batch):
                    self.next_fetch_offset = record.offset + 1
                    yield record
            self.next_fetch_offset = batch.next_offset
        self.drain()

    def _damaged(self, broker_partition: BrokerPartition, batch: Any) -> Record:
        """What stands for a batch that fails its checksum. Raises CorruptRecordError unless it may be passed."""
        first, end = batch.base_offset, batch.next_offset
        if not self._past_damage:
            raise CorruptRecordError(f"the batch of {broker_partition} at offset {first} fails its checksum")
        # The checksum covers how many offsets the batch takes, and not where it begins.
        if not first < end <= first + MOST_OFFSETS:
            end = first + 1
        self.next_fetch_offset = end
        text = f"the batch of offsets {first} to {end - 1} of {self._topic}-{broker_partition.partition} fails its checksum"
        return Lost(
            self._topic, broker_partition.partition, end - 1, -1, None, None, (), first, "damaged", text
        )

    def _hidden(self, batch: Any) -> bool:
        """Whether the batch is a marker, or of a transaction that was aborted."""
        self.leader_epoch = batch.leader_epoch
        if self.isolation_level == IsolationLevel.READ_COMMITTED and batch.has_producer_id():
            self._consume_aborted_transactions_up_to(batch.last_offset)
            if self._contains_abort_marker(batch):
                self.aborted_producer_ids.discard(batch.producer_id)
            elif self._is_batch_aborted(batch):
                return True
        return bool(batch.is_control_batch)

    def _old(self, batch: Any) -> Iterator[Record]:
        """Records in a format from before Kafka 0.11, as a broker may still hold them."""
        for old in batch:
            if self.check_crcs and not old.validate_crc():
                raise CorruptRecordError(f"the record at offset {old.offset} fails its checksum")
            self.next_fetch_offset = old.offset + 1
            stamp = -1 if old.timestamp is None else old.timestamp
            yield Record(self._topic, self.topic_partition.partition, old.offset, stamp, old.key, old.value)
