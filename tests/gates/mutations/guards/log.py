"""Guards of both Kafka sessions."""

from collections.abc import Sequence

from tests.gates.mutations.mutation import Guard

LOG: Sequence[Guard] = (
    # So small that only these tests notice.
    Guard(
        "records deleted between question and read end a search",
        "log/oldest.py",
        "    if moved <= low:",
        "    if True:",
        "log/test_oldest.py::test_what_is_deleted_between_question_and_read_is_passed",
    ),
    Guard(
        "a log that another process makes is not waited for",
        "log/sqlite/database.py",
        'if error.sqlite_errorname != "SQLITE_BUSY" or ',
        "if True or ",
        "log/sqlite/test_processes.py::test_a_log_is_made_when_another_process_that_makes_the_same_file_is_done",
    ),
    Guard(
        "kafka-python: positions are read before the slot's transaction ended",
        "log/kafka/kafka_python/session.py",
        "        self._writer.settle()\n        return self._cluster.positions(",
        "        return self._cluster.positions(",
        "log/kafka/test_sessions.py::test_positions_are_read_once_what_is_open_under_the_slot_has_ended",
    ),
    Guard(
        "librdkafka: positions are read before the slot's transaction ended",
        "log/kafka/confluent/session.py",
        "        self._writer.settle()\n        return self._cluster.positions(",
        "        return self._cluster.positions(",
        "log/kafka/test_sessions.py::test_positions_are_read_once_what_is_open_under_the_slot_has_ended",
    ),
    Guard(
        "librdkafka: a step is committed with the membership of now",
        "log/kafka/confluent/session.py",
        "transaction.positions, self._member))",
        "transaction.positions, self._consumer.consumer_group_metadata()))",
        "log/kafka/test_sessions.py::test_a_step_is_committed_with_the_membership_of_its_own_generation",
    ),
    Guard(
        "librdkafka: what is paused is delivered",
        "log/kafka/confluent/session.py",
        "            if at in self._paused:\n                # It is not taken",
        "            if False:\n                # It is not taken",
        "log/kafka/test_sessions.py::test_librdkafka_may_deliver_what_is_paused_and_the_session_does_not",
    ),
    # Membership of the group, with each library.
    Guard(
        "kafka-python: an input delivers before it is placed",
        "log/kafka/kafka_python/session.py",
        "            self._consumer.pause(each)\n        self.assigned",
        "        self.assigned",
        "log/kafka/test_sessions.py::test_an_assignment_brings_no_records_and_waits_for_seek",
    ),
    Guard(
        "kafka-python: a seek resumes what is paused",
        "log/kafka/kafka_python/session.py",
        "                    if each not in self._paused:\n                        self._consumer.resume(each)",
        "                    self._consumer.resume(each)",
        "log/kafka/test_sessions.py::test_a_place_that_is_sought_while_paused_is_kept_until_it_is_resumed",
    ),
    Guard(
        "kafka-python: a pause outlives its generation",
        "log/kafka/kafka_python/session.py",
        "        self._paused.clear()\n",
        "",
        "log/kafka/test_sessions.py::test_a_new_generation_knows_of_no_pause",
    ),
    Guard(
        "kafka-python: what was set aside for a pause is never taken back",
        "log/kafka/kafka_python/session.py",
        "            fetcher._next_partition_records = None",
        "            pass",
        "log/kafka/test_sessions.py::test_kafka_python_delivers_again_what_it_had_fetched_when_it_was_paused",
    ),
    Guard(
        "kafka-python: a step is checked against the generation that was polled",
        "log/kafka/kafka_python/session.py",
        "check_transaction(transaction, generation, self._assignments.count,",
        "check_transaction(transaction, generation, self._generation,",
        "log/kafka/test_sessions.py::test_kafka_python_refuses_a_step_as_soon_as_its_library_has_heard_of_another_assignment",
    ),
    Guard(
        "kafka-python: what waits to be placed counts as drained",
        "log/kafka/kafka_python/session.py",
        "        self._held = set(self._owned)",
        "        self._held = set()",
        "log/kafka/test_sessions.py::test_markers_behind_the_last_record_are_passed",
    ),
    Guard(
        "kafka-python: a join under way is begun again",
        "log/kafka/kafka_python/session.py",
        "            if self._consumer._coordinator.state is MemberState.STABLE:",
        "            if True:",
        "log/kafka/test_sessions.py::test_kafka_python_joins_again_after_a_refusal_unless_it_does_already",
    ),
    Guard(
        "librdkafka: places outlive their generation",
        "log/kafka/confluent/session.py",
        "        self._next.clear()\n",
        "",
        "log/kafka/test_sessions.py::test_markers_behind_the_last_record_are_passed",
    ),
    Guard(
        "librdkafka: an assignment is fetched before it is placed",
        "log/kafka/confluent/session.py",
        "        consumer.assign([])\n",
        "",
        "log/kafka/test_sessions.py::test_an_assignment_brings_no_records_and_waits_for_seek",
    ),
    Guard(
        "librdkafka: what is placed again is no longer paused",
        "log/kafka/confluent/session.py",
        "        self._consumer.pause(self._fetched(self._paused))\n",
        "",
        "log/kafka/test_sessions.py::test_librdkafka_may_deliver_what_is_paused_and_the_session_does_not",
    ),
    Guard(
        "librdkafka: an error ends nothing",
        "log/kafka/confluent/session.py",
        "        elif not error.retriable() and error.code() not in PASSING:",
        "        elif False:",
        "log/kafka/test_sessions.py::test_librdkafka_goes_on_by_itself_or_the_poll_fails",
    ),
    Guard(
        "librdkafka: the zero byte after the metadata is not counted",
        "log/kafka/confluent/session.py",
        "METADATA_BYTES = 4_095",
        "METADATA_BYTES = 4_096",
        "log/kafka/test_sessions.py::test_more_metadata_than_the_broker_takes_is_not_sent",
    ),
    Guard(
        "librdkafka: markers behind the last record are never passed",
        "log/kafka/confluent/session.py",
        "                self._next[at] = max(self._next[at], message.offset())",
        "                pass",
        "log/kafka/test_sessions.py::test_markers_behind_the_last_record_are_passed",
    ),
    Guard(
        "librdkafka: an error behind records is passed over",
        "log/kafka/confluent/fetch.py",
        "                self._failed = found\n",
        "",
        "log/kafka/test_sessions.py::test_librdkafkas_reader_gives_what_came_before_an_error_and_then_the_error",
    ),
    # Transactions, with either library.
    Guard(
        "a client that cannot take its id is left open",
        "log/kafka/write.py",
        "        except LogError:\n            sender.discard()\n            raise",
        "        except LogError:\n            raise",
        "log/kafka/test_write.py::test_a_client_that_cannot_take_the_id_is_closed_and_another_is_made_next_time",
    ),
    Guard(
        "a client that was fenced is asked to abort",
        "log/kafka/write.py",
        "            if not isinstance(failure, Fenced):\n",
        "            if True:\n",
        "log/kafka/test_write.py::test_a_transaction_that_fails_is_aborted_and_costs_its_client",
    ),
    Guard(
        "who decides exclusively shuts nobody out before",
        "log/kafka/log.py",
        "                writer.settle()\n                outputs = decide()",
        "                outputs = decide()",
        "log/kafka/test_write.py::test_who_decides_exclusively_is_fenced_by_another_that_did_so_meanwhile",
    ),
)
