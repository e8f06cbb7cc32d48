"""The log on Kafka with librdkafka doing the work that grows with the stream."""

from collections.abc import Iterable, Sequence
from typing import Any

from mistakebound.core.records import INPUTS, Position, Topic
from mistakebound.log.kafka.confluent.clients import Clients
from mistakebound.log.kafka.confluent.read import Reader
from mistakebound.log.kafka.confluent.session import ConfluentSession
from mistakebound.log.kafka.confluent.transact import Writer
from mistakebound.log.kafka.log import KafkaLog
from mistakebound.log.kafka.positions import fetch_positions
from mistakebound.log.kafka.session import ask_for_ends
from mistakebound.log.protocol import Session, TopicDescription


class ConfluentLog(KafkaLog):
    """The same topics, group and rules; workers of either client may share a group."""

    _clients: Clients

    def _make_reader(self) -> Reader:
        self._clients = Clients(self._connection)
        return Reader(self._clients, self._names, self._admin, self._watchdog)

    def _make_writer(self, transactional_id: str) -> Writer:
        return Writer(self._clients, self._names, transactional_id, self._watchdog)

    def _make_session(self, partitions: int, slot: str, writer: Any) -> Session:
        asking = self._observing()
        places = [self._names.at(topic, p) for topic in INPUTS for p in range(partitions)]
        asking.assign(places)  # nothing is fetched without a poll; the client keeps knowing their leaders
        for topic in INPUTS:
            asking.partitions_for_topic(self._names.to_broker[topic])
        return ConfluentSession(
            self._clients,
            self._names,
            partitions,
            slot,
            writer,
            self._watchdog,
            positions=self._positions,
            ends=self._ends,
            topics=self._inputs,
            leave=self._admin.remove,
        )

    def _positions(self, partitions: Sequence[int]) -> dict[int, Position | None]:
        return fetch_positions(self._observing(), self._names, partitions, self._watchdog)

    def _ends(self, sides: Iterable[tuple[Topic, int]]) -> dict[tuple[Topic, int], int]:
        return ask_for_ends(self._observing(), self._names, sides, self._watchdog)

    def _inputs(self) -> dict[str, TopicDescription]:
        found = self._admin.describe()
        return {each.name: each for topic in INPUTS if (each := found[topic]) is not None}
