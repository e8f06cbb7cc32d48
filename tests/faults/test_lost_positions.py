"""Data gone from a real broker: the worker refuses (exit code 5) with the remedy, and writes nothing.

Going on would predict an example twice, or skip one. On sqlite: `tests/worker/test_takeover.py`.
"""

import json
import re
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pytest
from kafka import KafkaAdminClient, OffsetAndMetadata, TopicPartition

from mistakebound.commands.errors import code_of
from mistakebound.core.messages.schema import Epoch, encode
from mistakebound.core.records import INPUTS, OUTPUTS, Outgoing, Topic
from mistakebound.exit_codes import ExitCode
from mistakebound.log.kafka import KafkaLog
from mistakebound.settings import Settings
from tests.commands.support.command_line import ok
from tests.faults.support.children import Children
from tests.faults.support.deployment import Deployment, assigned
from tests.faults.support.stream import SETTINGS
from tests.log.support.place import KEEP
from tests.worker.support.working import Recount, Run, example, label, settings_for, stream

pytestmark = pytest.mark.kafka
EXAMPLES = 20


@dataclass(frozen=True)
class Place:
    """A log whose inputs a worker has processed, and an operator who may do anything to it."""

    settings: Settings
    log: KafkaLog
    admin: KafkaAdminClient

    def at(self, topic: Topic) -> TopicPartition:
        return TopicPartition(self.settings.topic_name(topic), 0)

    def make_anew(self, *topics: Topic) -> None:
        """Delete topics and create them again, as one clears a test system."""
        self.admin.delete_topics([self.settings.topic_name(topic) for topic in topics])
        while set(self.log.create_topics(1, KEEP)) != {self.settings.topic_name(topic) for topic in topics}:
            pass  # the broker hears of their end a little later than the controller

    def ends(self) -> Mapping[Topic, int]:
        return {topic: self.log.high_watermark(topic, 0) for topic in OUTPUTS}

    def refusal(self, settings: Settings | None = None) -> str:
        """What a worker says that must refuse, and write nothing."""
        before = self.ends()
        with pytest.raises(Exception) as refused:
            Run(self.log, settings or self.settings)
        assert code_of(refused.value) is ExitCode.REFUSED, repr(refused.value)
        assert self.ends() == before
        return str(refused.value)

    def whole(self, examples: int) -> None:
        """Each example is predicted once, and the audit finds nothing."""
        predicted = [record_id for record_id, _ in Recount(self.log, self.settings).predicted]
        assert sorted(predicted) == sorted(f"i{number}" for number in range(examples))
        flags = ("--set", f"log.prefix={self.settings.log.prefix}", "--set", "checkpoint.url=")
        found = json.loads(ok("audit", "--json", *flags, log=self.settings.log.url).stdout)
        assert found["checked"]["predictions"] == examples


def add_partitions(at: Deployment, admin: KafkaAdminClient) -> None:
    admin.create_partitions({at.settings.topic_name(topic): 3 for topic in (*INPUTS, *OUTPUTS)})


def make_inputs_anew(at: Deployment, admin: KafkaAdminClient) -> None:
    """With records beyond what was read of the old ones: no offset is out of range."""
    names = [at.settings.topic_name(topic) for topic in INPUTS]
    admin.delete_topics(names)
    while not set(names) <= set(at.log.create_topics(at.partitions, KEEP)):
        pass  # as above
    at.log.append(stream(EXAMPLES, partitions=at.partitions))


CHANGES = [
    pytest.param(add_partitions, r"at start 2.*take another prefix and replay", id="partitions added"),
    pytest.param(make_inputs_anew, r"made anew", id="topics made anew"),
]


@pytest.fixture
def place(kafka_bootstrap: str) -> Iterator[Place]:
    settings = settings_for(f"kafka://{kafka_bootstrap}")
    admin = KafkaAdminClient(bootstrap_servers=kafka_bootstrap)
    try:
        with KafkaLog(settings) as log:
            log.create_topics(1, KEEP)
            log.append(stream(EXAMPLES))
            Run(log, settings)
            yield Place(settings, log, admin)
    finally:
        admin.close()


def more(place: Place) -> None:
    """Examples that the worker has not read yet."""
    place.log.append(example(EXAMPLES + number, {"a": 1}, 5_000) for number in range(3))


# --- the group's offsets -----------------------------------------------------------------------------------


def test_expired_offsets_are_refused_until_told_to_resume(place: Place) -> None:
    """Only the newest outcomes say how far the group had come; the worker uses them on demand."""
    place.admin.delete_group_offsets(place.settings.group, [place.at(topic) for topic in INPUTS])
    more(place)

    assert "--resume-from-outcomes" in place.refusal()

    Run(place.log, place.settings, from_outcomes=True)
    place.whole(EXAMPLES + 3)


def test_the_offset_of_one_input_alone_is_refused(place: Place) -> None:
    """The other one was deleted; without both, the worker uses the newest outcomes on demand."""
    place.admin.delete_group_offsets(place.settings.group, [place.at("labels")])

    assert re.search(r"no position for \S+labels-0 .*delete the other one too", place.refusal())

    place.admin.delete_group_offsets(place.settings.group, [place.at("examples")])
    Run(place.log, place.settings, from_outcomes=True)
    place.whole(EXAMPLES)


@pytest.mark.parametrize("offset", [0, 1_000])
def test_offsets_that_somebody_set_are_refused_until_told_to_resume(place: Place, offset: int) -> None:
    """Back to the beginning or beyond the end: the recovery point beside the offsets is gone, the outcomes are not."""
    moved = {place.at(topic): OffsetAndMetadata(offset, "", -1) for topic in INPUTS}
    place.admin.alter_group_offsets(place.settings.group, moved)
    more(place)

    assert re.search(r"no recovery point.*--resume-from-outcomes", place.refusal())

    Run(place.log, place.settings, from_outcomes=True)
    place.whole(EXAMPLES + 3)


# --- records ----------------------------------------------------------------------------------------------------


def test_unread_data_that_retention_deleted_is_refused(place: Place) -> None:
    """They would be skipped: where the log starts and what is missing is named."""
    more(place)
    place.admin.delete_records({place.at("examples"): EXAMPLES + 2})

    said = place.refusal()

    assert place.at("examples").topic in said
    assert "deleted" in said
    assert "--resume-from-outcomes" not in said, "it would not help"


def test_data_that_was_read_before_retention_deleted_it_is_no_loss(place: Place) -> None:
    """Inputs are needed once."""
    for topic in INPUTS:
        place.admin.delete_records({place.at(topic): place.log.high_watermark(topic, 0)})
    more(place)

    Run(place.log, place.settings)

    predicted = [record_id for record_id, _ in Recount(place.log, place.settings).predicted]
    assert len(set(predicted)) == len(predicted) == EXAMPLES + 3


def test_predictions_that_retention_deleted_from_an_idle_partition_are_no_loss(place: Place) -> None:
    """With them it deletes the last transaction's marker, so that the log begins above the recovery point."""
    place.log.append([label(number, True, 2_000 + number) for number in range(EXAMPLES)])
    Run(place.log, place.settings)
    place.admin.delete_records({place.at("predictions"): place.log.high_watermark("predictions", 0)})
    more(place)

    state = Run(place.log, place.settings).held.state

    assert state.ledgers[0].tallies.life.examples["consumed"] == EXAMPLES + 3


# --- topics ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("topic", ["examples", "outcomes", "updates"])
def test_a_topic_made_anew_is_refused(place: Place, topic: Topic) -> None:
    """The others still tell of what was in it."""
    place.make_anew(topic)

    assert re.search(r"made anew|was deleted|truncated", place.refusal())


def test_all_topics_made_anew_are_a_new_beginning(
    place: Place, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Nothing of the old ones is in the way: offsets went with them, and the checkpoint is of other topics."""
    folder = str(tmp_path_factory.mktemp("checkpoints"))
    settings = Settings.model_validate({**place.settings.model_dump(), "checkpoint": {"url": folder}})
    Run(place.log, settings)
    place.make_anew(*INPUTS, *OUTPUTS)
    place.log.append(stream(EXAMPLES, seed=2))

    Run(place.log, settings)

    place.whole(EXAMPLES)


def test_unequal_partition_counts_are_refused(place: Place) -> None:
    """Keys of an example and its label could be apart."""
    place.admin.create_partitions({place.settings.topic_name("labels"): 2})

    assert re.search(r"labels 2.*take another log\.prefix", place.refusal())


@pytest.mark.parametrize(("change", "said"), CHANGES)
def test_topics_that_change_at_run_time_end_the_worker(
    kafka_bootstrap: str, prefix: str, children: Children, change: Callable[..., None], said: str
) -> None:
    """Exit code 5 with the remedy, once the client has heard of it; it asks again every so often."""
    quick = "kafka.metadata_max_age_ms=500"
    with Deployment(f"kafka://{kafka_bootstrap}", prefix, children, *SETTINGS, quick, partitions=2) as at:
        worker = assigned(at.worker())
        admin = KafkaAdminClient(bootstrap_servers=kafka_bootstrap)
        worker.signal(
            signal.SIGSTOP
        )  # asking between the end of a topic and the next one, it would tell of that
        try:
            change(at, admin)
        finally:
            admin.close()
            worker.signal(signal.SIGCONT)

        assert worker.ends(30) == ExitCode.REFUSED, worker.last_words()
    assert re.search(said, worker.err()), worker.last_words()
    assert "Traceback" not in worker.err()


# --- formats ---------------------------------------------------------------------------------------------------


def test_a_format_of_the_future_is_refused(place: Place) -> None:
    """A newer version has been here: this one stops before it misreads anything."""
    newer = encode(Epoch(2, 99, {}))
    place.log.exclusively(lambda: [Outgoing("updates", 0, None, newer)])

    assert re.search(r"updates-0 offset \d+ has format 99.*upgrade the worker", place.refusal())
