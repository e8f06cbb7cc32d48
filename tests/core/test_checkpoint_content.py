"""Snapshots: what was held comes back whole, and what is foreign or damaged is refused by name."""

from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from mistakebound.core.checkpoint_content import (
    FORMAT,
    Checkpoint,
    check_belongs,
    decode_checkpoint,
    describe_checkpoint,
    encode_checkpoint,
    freeze,
    settings_digest,
    thaw,
)
from mistakebound.core.faults import BadSnapshot
from mistakebound.core.ledger.entries import Waiting
from mistakebound.core.ledger.ledger import Ledger
from mistakebound.core.messages.schema import Update, Version, encode
from mistakebound.core.model.fold import Fold
from mistakebound.core.model.model import first_epoch
from mistakebound.core.records import TOPICS, Record
from mistakebound.settings import LabelSettings, Settings
from tests.core.support.every_kind import CASES, Case
from tests.core.support.histories import History, bits, ledger_of
from tests.support.tries import tried

IDS = {topic: f"id of {topic}" for topic in TOPICS}


def checkpoint_of(history: History) -> Checkpoint:
    return msgspec.structs.replace(history._checkpoint(), topics=IDS)


def after(random: Random, case: Case | None = None) -> History:
    """A history as it ended, with everything that its worker then holds; of any learner where none is named."""
    history = History(random, case)
    with capture_logs():
        history.run()
    return history


def restored(checkpoint: Checkpoint, settings: Settings, partitions: int) -> Fold:
    fold = Fold(settings, partitions, checkpoint.epochs)
    fold.restore(checkpoint.model, checkpoint.updates_next)
    return fold


@given(st.randoms(use_true_random=False))
@tried(40, suppress_health_check=list(HealthCheck))
def test_what_was_held_comes_back(random: Random) -> None:
    """Ledgers with their floors and their order, the model to the bit, epochs and positions."""
    history = after(random)
    held = history.worker
    back = decode_checkpoint(encode_checkpoint(checkpoint_of(history)))
    check_belongs(back, history.settings.group, IDS, history.partitions)
    fold = restored(back, history.settings, history.partitions)
    assert fold.epochs == held.fold.epochs
    assert fold.next_offsets == held.fold.next_offsets
    assert bits(fold.model.snapshot().state) == bits(held.state.model.snapshot().state)
    assert fold.model.version() == held.state.model.version()
    assert fold.model.digest() == held.state.model.digest()
    for p, ledger in held.state.ledgers.items():
        thawed = thaw(back.ledgers[p], history.settings.labels)
        assert ledger_of(thawed) == ledger_of(ledger)
        assert thawed.recovery_point() == ledger.recovery_point(), "floors come back too"
        assert (thawed.predictions_end, thawed.outcomes_end) == (ledger.predictions_end, ledger.outcomes_end)


def test_thousands_of_entries_come_back_each() -> None:
    """None is cut off, at either end: an id that was decided long ago is still known, and in its place."""
    ledger = Ledger(LabelSettings())
    for number in range(3_000):
        ledger.wait(Waiting(f"w{number}", number, 5, True, 1, b"{}", number, number))
        ledger.park(f"p{number}", number, False, None)
        ledger.remember(f"r{number}", None, number)
    content = encode_checkpoint(msgspec.structs.replace(made(), ledgers={0: freeze(ledger)}))

    back = thaw(decode_checkpoint(content).ledgers[0], LabelSettings())

    assert ledger_of(back) == ledger_of(ledger)
    assert back.recovery_point() == ledger.recovery_point()


def test_a_model_comes_back_with_all_that_its_theorem_asks_for() -> None:
    """The longest example, and what was decided by models that had folded more than is known here yet."""
    settings = Settings()
    epoch = first_epoch(settings)
    fold = Fold(settings, 2, [epoch])
    decided = Update(1, 1, [1, 0], "a", True, False, msgspec.Raw(b'{"a":3,"b":4}'), 0, Version(1, [0, 2]))
    assert fold.fold(0, [Record("updates", 0, 0, 0, None, encode(decided))])
    held = msgspec.structs.replace(
        made(), epochs=[epoch], settings=settings_digest(settings), model=fold.model.snapshot(),
        updates_next=fold.next_offsets,
    )  # fmt: skip

    back = restored(decode_checkpoint(encode_checkpoint(held)), settings, 2).model

    assert back.radius == fold.model.radius > 5
    assert (back.decided, back.needed) == (2, [0, 2])
    assert back.missing is None, "two updates of the other partition are not there yet"
    assert back.recent.dump() == fold.model.recent.dump()


def test_infinite_and_negative_zero_weights_keep_their_bits() -> None:
    """A snapshot's floats are bytes, not text."""
    history = after(Random(5))
    rows: dict[str, Any] = {
        name: [{"a": -0.0, "b": float("-inf"), "c": 5e-324}] * history.partitions
        for name in history.worker.state.model.snapshot().state
    }
    made = checkpoint_of(history)
    odd = msgspec.structs.replace(made, model=msgspec.structs.replace(made.model, state=rows))
    assert bits(decode_checkpoint(encode_checkpoint(odd)).model.state) == bits(rows)


def made() -> Checkpoint:
    return decode_checkpoint(encode_checkpoint(checkpoint_of(after(Random(7)))))


def test_a_checkpoint_of_another_group_is_refused() -> None:
    """The reason names both groups."""
    checkpoint = made()
    with pytest.raises(BadSnapshot, match="belongs to the group 'mistakebound', not 'other'"):
        check_belongs(checkpoint, "other", IDS, len(checkpoint.updates_next))


@pytest.mark.parametrize("topic", TOPICS)
def test_a_checkpoint_of_a_topic_made_anew_is_refused(topic: str) -> None:
    """A topic of the same name that was deleted and made again is another log; the reason names it."""
    checkpoint = made()
    with pytest.raises(BadSnapshot, match=f"the topic '{topic}' is not the one"):
        check_belongs(checkpoint, "mistakebound", {**IDS, topic: "anew"}, len(checkpoint.updates_next))


def test_a_checkpoint_of_another_partition_count_is_refused() -> None:
    """The reason names both counts."""
    checkpoint = made()
    known = len(checkpoint.updates_next)
    with pytest.raises(BadSnapshot, match=f"it has {known} partitions, the log has {known + 1}"):
        check_belongs(checkpoint, "mistakebound", IDS, known + 1)


@pytest.mark.parametrize("part", ["updates", "clock", "needed"])
def test_a_checkpoint_whose_parts_differ_in_partitions_is_refused(part: str) -> None:
    """A model of another shape is not put into use."""
    checkpoint = made()
    longer = [*getattr(checkpoint.model, part), 0]
    odd = msgspec.structs.replace(
        checkpoint, model=msgspec.structs.replace(checkpoint.model, **{part: longer})
    )
    with pytest.raises(BadSnapshot, match="partitions, the log has"):
        check_belongs(odd, "mistakebound", IDS, len(checkpoint.updates_next))


def test_a_checkpoint_with_a_partition_that_the_log_does_not_have_is_refused() -> None:
    """Its model has the right shape: only the ledgers tell."""
    checkpoint = made()
    known = len(checkpoint.updates_next)
    odd = msgspec.structs.replace(checkpoint, ledgers={known: next(iter(checkpoint.ledgers.values()))})
    with pytest.raises(
        BadSnapshot, match=rf"ledgers of the partitions \[{known}\], the log has {known} partitions"
    ):
        check_belongs(odd, "mistakebound", IDS, known)


def test_a_checkpoint_whose_state_is_another_learners_is_refused() -> None:
    """Also one of another count of partitions: the reason names the learner."""
    history = after(Random(7), CASES["perceptron"])
    checkpoint = decode_checkpoint(encode_checkpoint(checkpoint_of(history)))
    rows = checkpoint.model.state
    for state in ({}, None, [1], {name: [*each, {}] for name, each in rows.items()}, {"theta": [{"a": "b"}]}):
        odd = msgspec.structs.replace(
            checkpoint, model=msgspec.structs.replace(checkpoint.model, state=state)
        )
        with pytest.raises(BadSnapshot, match=f"is not that of {history.settings.learner.kind}"):
            restored(odd, history.settings, history.partitions)


def test_another_format_is_refused() -> None:
    """The reason names the format and the one that is read."""
    newer = encode_checkpoint(msgspec.structs.replace(made(), format=FORMAT + 1))
    with pytest.raises(BadSnapshot, match=r"format 2 is not 1, which this version reads"):
        decode_checkpoint(newer)


@pytest.mark.parametrize("content", [b"", b"\x80", b"\xc1", b"not a checkpoint", b"\x93\x01\x02\x03"])
def test_what_is_no_checkpoint_is_refused(content: bytes) -> None:
    """Whatever else a file may hold."""
    with pytest.raises(BadSnapshot, match="the content is not a checkpoint of this version"):
        decode_checkpoint(content)


def test_a_checkpoint_made_with_other_settings_than_its_epoch_has_is_refused() -> None:
    """Settings decide every result, so they are sealed too."""
    checkpoint = made()
    newest = checkpoint.epochs[-1]
    odd = msgspec.structs.replace(newest, settings={**newest.settings, "learner": {"kind": "winnow"}})
    with pytest.raises(BadSnapshot, match="its newest epoch is not the one it was made in"):
        decode_checkpoint(encode_checkpoint(msgspec.structs.replace(checkpoint, epochs=[odd])))


def test_a_truncated_checkpoint_is_refused() -> None:
    """At every length short of the whole."""
    content = encode_checkpoint(made())
    for length in range(0, len(content), 7):
        with pytest.raises(BadSnapshot):
            decode_checkpoint(content[:length])


@pytest.mark.long
def test_damaged_bytes_are_refused_or_harmless() -> None:
    """Whatever bytes are flipped, putting the checkpoint to use raises nothing but BadSnapshot."""
    refused = 0
    for seed in range(6):
        history = after(Random(seed))
        content = encode_checkpoint(checkpoint_of(history))
        random = Random(seed)
        for _ in range(1_500):
            damaged = bytearray(content)
            for _ in range(random.choice((1, 1, 2, 8))):
                damaged[random.randrange(len(damaged))] ^= 1 << random.randrange(8)
            try:
                found = decode_checkpoint(bytes(damaged))
                check_belongs(found, history.settings.group, IDS, history.partitions)
                fold = Fold(history.settings, history.partitions, found.epochs)
                if fold.model.epoch == found.model.epoch:
                    fold.restore(found.model, found.updates_next)
                fold.model.digest()
                for ledger in found.ledgers.values():
                    thaw(ledger, history.settings.labels).recovery_point()
                describe_checkpoint(found)
            except BadSnapshot:
                refused += 1
    assert refused > 1_000


def test_a_checkpoint_can_be_described() -> None:
    """What a person wants to know of it is plain JSON."""
    checkpoint = made()
    shown = msgspec.json.decode(msgspec.json.encode(describe_checkpoint(checkpoint)))
    assert shown["group"] == "mistakebound"
    assert shown["updates"] == checkpoint.model.updates
    assert set(shown["partitions"]) == {str(p) for p in checkpoint.ledgers}


def test_settings_of_one_epoch_have_one_digest() -> None:
    """What an epoch fixes changes the digest, and nothing else does."""
    plain = Settings.model_validate({"labels": {"max_delay": 5}})
    assert settings_digest(plain) == settings_digest(
        Settings.model_validate({"labels": {"max_delay": "PT5S"}, "batch": {"max_records": 7}})
    )
    assert settings_digest(plain) != settings_digest(Settings.model_validate({"labels": {"max_delay": 6}}))
