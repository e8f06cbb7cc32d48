"""Folding `updates`: one model from any reader, however the log was cut and wherever epochs begin."""

from collections.abc import Iterable
from random import Random
from typing import Any

import msgspec
import pytest

from mistakebound.core.faults import BadLog, BadSnapshot
from mistakebound.core.messages.schema import FORMAT, Base, Epoch, Update, Version, encode, read_update
from mistakebound.core.model.fold import Fold
from mistakebound.core.model.model import Model
from mistakebound.core.records import INPUTS, Record
from mistakebound.core.replay.replay import Row, as_stream, fresh
from mistakebound.core.step.merge import Merge
from mistakebound.core.step.step import step
from mistakebound.settings import Settings
from tests.core.support.histories import bits
from tests.support.tries import long

KINDS = ("perceptron", "averaged-perceptron", "winnow", "balanced-winnow")


def of(kind: str = "perceptron", **more: Any) -> Settings:
    return Settings.model_validate({"learner": {"kind": kind}, "labels": {"max_delay": 100}, **more})


def epoch(number: int, base: Base | None = None, written_as: int = FORMAT, kind: str = "perceptron") -> Epoch:
    return Epoch(number, written_as, dict(of(kind).of_epoch()), base)


def update(number: int, n: int, *, x: float = 1.0, label: bool = True, clock: tuple[int, ...] = ()) -> Update:
    features = msgspec.Raw(encode({"a": x}))
    times = list(clock) or [n]
    version = Version(number, [0] * len(times))
    return Update(number, n, times, f"id{n}", label, not label, features, n, version)


def records(*messages: Epoch | Update, partition: int = 0, start: int = 0) -> list[Record]:
    """As the log has them, with a marker's gap after each."""
    return [
        Record("updates", partition, start + 2 * place, 0, None, encode(message))
        for place, message in enumerate(messages)
    ]


def folded(*messages: Epoch | Update, settings: Settings | None = None) -> Fold:
    """What a reader holds at the end: started afresh as often as a fold asks for it."""
    fold = Fold(settings or of(), 1)
    while not fold.fold(0, records(*messages)):
        fold = Fold(settings or of(), 1, fold.epochs.values())
    return fold


def weight(fold: Fold, name: str = "a") -> float:
    return fold.model.learner.theta().get(name, 0.0)


# --- epochs ---------------------------------------------------------------------------------------------


def test_nothing_is_known_before_the_first_epoch() -> None:
    """An empty log has no epoch, and no model of one."""
    fold = Fold(of(), 1)
    assert fold.fold(0, [])
    assert fold.epoch is None


def test_the_first_epoch_needs_no_fresh_start() -> None:
    """The first epoch record is taken up on the way, and what follows is folded."""
    fold = Fold(of(), 1)
    assert fold.fold(0, records(epoch(1), update(1, 1), update(1, 2)))
    assert fold.epoch == epoch(1)
    assert fold.model.updates == [2]
    assert weight(fold) == 2.0
    assert fold.next_offsets == [5]


def test_updates_of_older_epochs_do_not_count() -> None:
    """A new epoch begins with an empty model."""
    fold = folded(epoch(1), update(1, 1), update(1, 2), epoch(2), update(2, 1, x=7.0))
    assert (fold.model.epoch, fold.model.updates, fold.model.clock) == (2, [1], [1])
    assert weight(fold) == 7.0


def test_a_late_update_of_an_older_epoch_does_not_count() -> None:
    """Nothing that follows a new epoch's record can change it by speaking of the old one."""
    fold = folded(epoch(1), epoch(2), update(1, 1, x=100.0), update(2, 1, x=7.0))
    assert weight(fold) == 7.0


def test_a_newer_epoch_on_the_way_asks_for_a_fresh_start() -> None:
    """A fold under way cannot take back what the newer epoch does not count."""
    fold = Fold(of(), 1, [epoch(1)])
    assert fold.fold(0, records(epoch(1), update(1, 1)))
    assert not fold.fold(0, records(epoch(2), update(2, 1), start=4))
    again = Fold(of(), 1, fold.epochs.values())
    assert again.model.epoch == 2
    assert again.fold(0, records(epoch(1), update(1, 1), epoch(2), update(2, 1, x=3.0)))
    assert weight(again) == 3.0


def test_an_epoch_record_may_come_again() -> None:
    """Epoch records of every partition, or read again, change nothing."""
    fold = Fold(of(), 2)
    assert fold.fold(0, records(epoch(1), update(1, 1, clock=(1, 0))))
    assert fold.fold(1, records(epoch(1), update(1, 1, clock=(1, 1)), partition=1))
    assert fold.model.updates == [1, 1]


def test_an_epoch_with_other_settings_is_passed_over() -> None:
    """Its updates are not read: present settings may not accept their features, and could not use them."""
    lenient = of(features={"missing": "skip"})
    old = Epoch(1, FORMAT, dict(lenient.of_epoch()))
    without = msgspec.structs.replace(update(1, 1), features=msgspec.Raw(b'{"a":null}'))
    fold = folded(old, without, epoch(2), update(2, 1, x=3.0))
    assert weight(fold) == 3.0
    assert folded(old, without).model.updates == [0]


def test_an_unknown_format_stops_the_reader() -> None:
    """A future version's epoch is not guessed at; the error names both formats and the remedy."""
    with pytest.raises(BadLog, match=r"updates-0 offset 0 has format 2; this version reads 1; upgrade"):
        folded(epoch(1, written_as=2))


def test_what_is_no_update_stops_the_reader() -> None:
    """Another program's record in `updates` is an error that names its place."""
    with pytest.raises(BadLog, match=r"updates-0 offset 6"):
        Fold(of(), 1).fold(0, [Record("updates", 0, 6, 0, None, b"hello")])


# --- a base ------------------------------------------------------------------------------------------------


def test_an_epoch_with_a_base_starts_from_that_version() -> None:
    """The first updates of the older epoch are folded as initial weights: they count as no updates and carry no clock."""
    old = [update(1, n, x=float(n)) for n in (1, 2, 3)]
    kind = "averaged-perceptron"
    based = epoch(2, Base(1, [2]), kind=kind)
    fold = folded(epoch(1, kind=kind), *old, based, update(2, 1, x=10.0), settings=of(kind))
    assert (fold.model.updates, fold.model.clock) == ([1], [1])
    assert weight(fold) == 1.0 + 2.0 + 10.0
    kappa = fold.model.learner.dump()["kappa"]
    assert kappa[0]["a"] == 10.0, "initial weights are paid for by no example of the new epoch"


def test_a_base_limits_each_partition_by_itself() -> None:
    """The version that an epoch starts from is a vector."""
    logs = {
        p: records(
            epoch(1),
            *(update(1, n, x=10.0**p, clock=(n, n)) for n in (1, 2, 3)),
            epoch(2, Base(1, [1, 3])),
            partition=p,
        )
        for p in (0, 1)
    }
    fold = Fold(of(), 2)
    while not all(fold.fold(p, log) for p, log in logs.items()):
        fold = Fold(of(), 2, fold.epochs.values())
    assert weight(fold) == 1.0 + 30.0
    assert fold.model.updates == [0, 0]


def test_bases_form_a_chain() -> None:
    """A base may itself have a base; each limits the epoch that it names."""
    fold = folded(
        epoch(1),
        update(1, 1, x=1.0),
        update(1, 2, x=100.0),
        epoch(2, Base(1, [1])),
        update(2, 1, x=2.0),
        update(2, 2, x=200.0),
        epoch(3, Base(2, [1])),
        update(3, 1, x=4.0),
    )
    assert weight(fold) == 1.0 + 2.0 + 4.0
    assert fold.model.updates == [1]


def test_an_epoch_without_base_ends_the_chain() -> None:
    """What lies before an epoch that started from nothing does not count, whoever is based on it."""
    fold = folded(
        epoch(1), update(1, 1, x=100.0), epoch(2), update(2, 1, x=2.0), epoch(3, Base(2, [1])), update(3, 1)
    )
    assert weight(fold) == 2.0 + 1.0


def test_a_base_of_a_first_epoch_read_alone_is_understood() -> None:
    """Whoever meets a based epoch first reads again from the start, with the base known."""
    fold = Fold(of(), 1)
    assert not fold.fold(0, records(epoch(2, Base(1, [1]))))
    assert fold.epochs.keys() == {2}


def test_a_gap_in_the_base_stops() -> None:
    """A base with a missing update would be another model."""
    with pytest.raises(BadLog, match=r"update 3 follows 1; some are missing"):
        folded(epoch(1), update(1, 1), update(1, 3), epoch(2, Base(1, [3])))


# --- numbers and clocks -----------------------------------------------------------------------------------


def test_a_known_update_is_skipped() -> None:
    """Reading from further back than needed changes nothing."""
    fold = Fold(of(), 1, [epoch(1)])
    log = records(epoch(1), update(1, 1), update(1, 2))
    assert fold.fold(0, log)
    before = bits(fold.model.snapshot().state)
    assert fold.fold(0, log)
    assert (fold.model.updates, bits(fold.model.snapshot().state)) == ([2], before)


def test_a_gap_stops() -> None:
    """A skipped update would be a different model; the error names what is missing."""
    with pytest.raises(BadLog, match=r"updates-0: update 3 follows 1; some are missing"):
        folded(epoch(1), update(1, 1), update(1, 3))


def test_clocks_merge_by_the_larger_entry() -> None:
    """Each entry of the clock is what anybody has known of that partition."""
    fold = Fold(of("averaged-perceptron"), 3, [epoch(1, kind="averaged-perceptron")])
    fold.fold(0, records(update(1, 1, clock=(5, 2, 0))))
    fold.fold(1, records(update(1, 1, clock=(1, 7, 3)), partition=1))
    fold.fold(2, records(update(1, 1, clock=(4, 4, 4)), partition=2))
    assert fold.model.clock == [5, 7, 4]


def test_what_an_earlier_update_needed_is_still_needed_after_a_later_one() -> None:
    """Its model had folded updates that are not known here yet, though the next one's had not."""
    fold = Fold(of(), 2, [epoch(1)])
    newer = msgspec.structs.replace(update(1, 1, clock=(1, 2)), model=Version(1, [0, 2]))
    older = msgspec.structs.replace(update(1, 2, clock=(2, 0)), model=Version(1, [1, 0]))

    assert fold.fold(0, records(newer, older))

    assert fold.model.needed == [1, 2]
    assert fold.model.missing is None
    assert fold.fold(1, records(update(1, 1, clock=(0, 1)), update(1, 2, clock=(0, 2)), partition=1))
    assert fold.model.missing == 3, "of six pairs of updates three were known to the later one's model"


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_that_is_taken_back_leaves_the_model_as_it_was(kind: str) -> None:
    """All that a snapshot holds: also what a certificate is made of."""
    fold = Fold(of(kind), 2, [epoch(1, kind=kind)])
    assert fold.fold(0, records(update(1, 1, clock=(1, 0))))
    before = encode(msgspec.to_builtins(fold.model.snapshot()))
    fold.model.begin()
    fold.model.labelled(1)
    fold.model.learn(1, fold.model.features(b'{"a":7,"b":2}'), True, False)
    assert encode(msgspec.to_builtins(fold.model.snapshot())) != before
    assert fold.model.decided == 1

    fold.model.rollback()

    assert encode(msgspec.to_builtins(fold.model.snapshot())) == before


@pytest.mark.parametrize("part", ["clock", "model"])
def test_an_update_of_another_number_of_partitions_stops(part: str) -> None:
    """It is of another log; added up with these it would make a model that nobody else has."""
    odd = {"clock": [1, 0, 0], "model": Version(1, [0, 0, 0])}[part]
    foreign = msgspec.structs.replace(update(1, 1, clock=(1, 0)), **{part: odd})
    fold = Fold(of(), 2, [epoch(1)])
    with pytest.raises(BadLog, match=r"updates-0: update 1 is of another number of partitions"):
        fold.fold(0, records(foreign))
    assert fold.model.updates == [0, 0]


def test_the_average_counts_each_update_at_its_own_time() -> None:
    """kappa adds g * y * x with the g of the update's owner, whatever the reader knows by then."""
    fold = Fold(of("averaged-perceptron"), 2, [epoch(1, kind="averaged-perceptron")])
    fold.fold(1, records(update(1, 1, clock=(9, 9)), partition=1))
    fold.fold(0, records(update(1, 1, clock=(1, 2))))
    assert [row["a"] for row in fold.model.learner.dump()["kappa"]] == [3.0, 18.0]


# --- any reader, any order ----------------------------------------------------------------------------------


def worked(random: Random, kind: str, partitions: int) -> tuple[Model, dict[int, list[Record]]]:
    """A worker's model after a random stream with steps taken back on the way, and its `updates`."""
    settings = of(kind, batch={"max_records": random.choice((1, 3, 10))})
    rows = [
        Row(str(n), {"a": random.uniform(-1, 1), f"b{random.randrange(4)}": 0.1}, random.random() < 0.5)
        for n in range(random.randrange(40))
    ]
    stream = list(as_stream(rows, settings, partitions, random.choice((0, 1, 7))))
    state = fresh(settings, partitions)
    logs: dict[int, list[Record]] = {p: records(epoch(1, kind=kind), partition=p) for p in range(partitions)}
    drained = {(topic, p) for topic in INPUTS for p in range(partitions)}
    while True:
        merge = Merge(range(partitions))
        for record in stream:
            ledger = state.ledgers[record.partition]
            known = ledger.labels_next if record.topic == "labels" else ledger.examples_next
            merge.add([record] if record.offset >= known else [])
        result = step(state, merge, drained, settings.batch.max_records)
        if result is None:
            return state.model, logs
        if random.random() < 0.2:
            state.rollback(result.partitions)
            continue
        for outgoing in result.transaction.outputs:
            if outgoing.topic == "updates":
                log = logs[outgoing.partition]
                log.append(Record("updates", outgoing.partition, len(log), 0, None, outgoing.value))


def interleaved(random: Random, logs: dict[int, list[Record]]) -> Iterable[tuple[int, list[Record]]]:
    """Random pieces of the partitions' logs, each partition in its order."""
    left = {p: list(log) for p, log in logs.items()}
    while left:
        p = random.choice(list(left))
        size = random.randrange(1, 4)
        yield p, left[p][:size]
        left[p] = left[p][size:]
        if not left[p]:
            del left[p]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("partitions", [2, *long(1, 5)])
def test_the_fold_is_the_workers_own_model_to_the_bit(kind: str, partitions: int) -> None:
    """Rows, sums and digest are equal, in any interleaving of the partitions; so are the numbers."""
    updates = 0
    for seed in range(15):
        random = Random(seed)
        model, logs = worked(random, kind, partitions)
        for _ in range(3):
            fold = Fold(model.settings, partitions)
            for p, piece in interleaved(random, logs):
                assert fold.fold(p, piece)
            assert bits(fold.model.snapshot().state) == bits(model.snapshot().state)
            assert bits(dict(fold.model.learner.weights())) == bits(dict(model.learner.weights()))
            assert fold.model.digest() == model.digest()
            assert fold.model.updates == model.updates
        updates += sum(model.updates)
    assert updates > 50


@pytest.mark.parametrize("kind", KINDS)
def test_a_fold_goes_on_from_a_snapshot_to_the_same_bits(kind: str) -> None:
    """Folding in two pieces with a snapshot between them is folding at once, a base included."""
    for seed in range(20):
        random = Random(seed)
        model, logs = worked(random, kind, 2)
        cuts = {p: random.randrange(1, len(log) + 1) for p, log in logs.items()}
        first = Fold(model.settings, 2)
        for p, log in logs.items():
            assert first.fold(p, log[: cuts[p]])
        content = msgspec.msgpack.encode(first.model.snapshot())
        second = Fold(model.settings, 2, first.epochs.values())
        second.restore(msgspec.msgpack.decode(content, type=type(model.snapshot())), first.next_offsets)
        for p, log in logs.items():
            assert second.fold(p, [record for record in log if record.offset >= second.next_offsets[p]])
        assert bits(second.model.snapshot().state) == bits(model.snapshot().state)
        assert second.model.digest() == model.digest()


def test_a_fold_from_a_snapshot_does_not_inherit_twice() -> None:
    """A snapshot of an epoch with a base holds the base's updates already."""
    log = records(epoch(1), update(1, 1, x=5.0), epoch(2, Base(1, [1])), update(2, 1))
    whole = Fold(of(), 1, [epoch(1), epoch(2, Base(1, [1]))])
    assert whole.fold(0, log)
    again = Fold(of(), 1, whole.epochs.values())
    again.restore(whole.model.snapshot(), [0])
    assert again.fold(0, log)
    assert weight(again) == weight(whole) == 6.0


def test_a_snapshot_of_another_learner_is_refused() -> None:
    """What it lacks is named, and the learner."""
    fold = Fold(of("averaged-perceptron"), 1, [epoch(1, kind="averaged-perceptron")])
    foreign = Fold(of(), 1, [epoch(1)]).model.snapshot()
    with pytest.raises(
        BadSnapshot, match=r"its state is not that of averaged-perceptron: KeyError\('kappa'\)"
    ):
        fold.restore(foreign, [0])


def test_every_update_says_which_model_decided_it() -> None:
    """A worker's updates are numbered without gaps, and carry the version before them and the time."""
    model, logs = worked(Random(3), "averaged-perceptron", 2)
    for p, log in logs.items():
        found = [read_update(record) for record in log]
        updates = [each for each in found if isinstance(each, Update)]
        assert [each.n for each in updates] == list(range(1, model.updates[p] + 1))
        assert all(each.model.updates[p] == each.n - 1 for each in updates)
