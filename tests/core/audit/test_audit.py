"""The audit finds nothing in an honest log, whatever happened to its worker, and finds each thing that was altered."""

import json
import math
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from copy import copy, deepcopy
from random import Random
from typing import Any

import msgspec
import pytest
from msgspec import UNSET
from structlog.testing import capture_logs

from mistakebound.core.checkpoint_content import (
    FORMAT,
    Checkpoint,
    decode_checkpoint,
    encode_checkpoint,
    freeze,
    settings_digest,
)
from mistakebound.core.learners.kind import Averaging
from mistakebound.core.messages.schema import encode
from mistakebound.core.model.model import first_epoch
from mistakebound.core.records import Position, Record
from mistakebound.core.step.sizes import SizeLimits
from mistakebound.settings import OF_EPOCH
from tests.core.support.audited import Lists, of_history
from tests.core.support.every_kind import CASES, EVERY_CASE, Case
from tests.core.support.feeding import Feeder
from tests.core.support.histories import History

PARTITIONS = 2


@pytest.mark.long
def test_random_histories_are_clean() -> None:
    """Every outcome, restarts in every way, aborted transactions, any learner: nothing is found."""
    checked: Counter[str] = Counter()
    for seed in range(60):
        history = History(Random(seed), epochs=1 + seed % 4)
        with capture_logs():
            history.run()
        found = of_history(history).audit(*map(decode_checkpoint, history.checkpoints[:2]))
        assert found.first == [], f"history {seed}"
        checked += found.checked
    assert checked["checkpoint models"] > 40
    assert checked["checkpoint ledgers"] > 40
    assert checked["updates"] > 10
    assert checked["dead letters"] > 40


class Made:
    """A log of some work, and the worker's state after it."""

    def __init__(
        self,
        case: Case | None = None,
        sabotage: Callable[[Feeder], None] | None = None,
        of_earlier_version: int = 0,
        learner: Any = None,
    ) -> None:
        """`of_earlier_version`: so many of the first portions were worked off by one that counted less."""
        self._earlier = of_earlier_version
        sections: dict[str, Any] = {"learner": learner or {"kind": "averaged-perceptron"}}
        if case is not None:
            sections = case.settings.model_dump(include=set(OF_EPOCH))
        sections["labels"] = {
            **sections.get("labels", {}),
            "max_delay": 0.06,
            "parking": 0.02,
            "remember": 10,
        }
        self.partitions = PARTITIONS if case is None else case.partitions(PARTITIONS)
        self.feeder = Feeder(self.partitions, **sections)
        if sabotage is not None:
            sabotage(self.feeder)
        self.log = Lists(self.partitions, {})
        for p in range(self.partitions):
            self._keep("updates", p, encode(first_epoch(self.feeder.settings)))
        self._work(Random(1), case)

    def _work(self, random: Random, case: Case | None) -> None:
        def row() -> tuple[Any, Any]:
            if case is not None:
                return case.row(random)
            return {"a": random.uniform(-1, 1), "b": random.uniform(-1, 1)}, random.random() < 0.5

        def whose() -> dict[str, Any]:
            return {} if case is None else case.whose(random)

        rows = [(*row(), whose()) for _ in range(120)]
        portion: list[Record] = []
        for number in range(len(rows) + 9):
            now, p = 1_000 + 5 * number, number % self.partitions
            if number < len(rows):
                content = encode({"id": f"i{number}", "features": rows[number][0], **rows[number][2]})
                portion.append(self.feeder.record("examples", now, content, partition=p))
            late = number - 8
            if late >= 0 and late % 7:  # some labels never come
                p = late % self.partitions
                name, label = f"i{late}", rows[min(late, len(rows) - 1)][1]
                portion.append(self.feeder.label(name, now, label, partition=p))
            if number >= 18 and number % 5 == 0:  # some come again
                again = number - 18
                portion.append(self.feeder.label(f"i{again}", now, True, partition=again % self.partitions))
            gone = number - 16
            if (
                0 <= gone < 90 and gone % 7 == 0
            ):  # those that did not come, and some of nobody, with their content
                p = gone % self.partitions
                content = {"features": rows[gone][0], "prediction": rows[gone - 1][1], **rows[gone][2]}
                for name in (f"i{gone}", f"u{gone}"):
                    value = encode({"id": name, "label": rows[gone][1], **content})
                    portion.append(self.feeder.record("labels", now, value, partition=p))
            if number % 30 == 0:
                headers = (("trace", b"7"),)
                portion.append(self.feeder.record("labels", now, b"nonsense", partition=p, headers=headers))
            if number % 6 == 0:
                self._feed(portion)
                portion = []
        self._feed(portion)

    def _feed(self, portion: list[Record]) -> None:
        for record in portion:
            self.log.records[record.topic, record.partition].append(record)
        earlier, self._earlier = self._earlier > 0, self._earlier - 1
        for output in self.feeder.feed(*portion, max_records=5).outputs:
            self._keep(output.topic, output.partition, output.value, output.key, output.headers)
            if earlier and output.topic == "outcomes":
                self.log.rewrite("outcomes", output.partition, -1, _without_confusion)
        for ledger in self.feeder.state.ledgers.values() if earlier else ():
            tallies = ledger.tallies
            tallies.life.confusion = tallies.epoch.confusion = tallies.last_label = UNSET

    def _keep(self, topic: Any, p: int, value: Any, key: Any = None, headers: Any = ()) -> None:
        records = self.log.records[topic, p]
        records.append(Record(topic, p, len(records), 0, key, value, headers))

    def checkpoint(self) -> Checkpoint:
        state = self.feeder.state
        frozen = Checkpoint(
            FORMAT,
            "group",
            {},
            settings_digest(self.feeder.settings),
            [first_epoch(self.feeder.settings)],
            state.model.snapshot(),
            [len(self.log.records["updates", p]) for p in range(self.partitions)],
            {p: freeze(ledger) for p, ledger in state.ledgers.items()},
        )
        return decode_checkpoint(encode_checkpoint(frozen))


def _without_confusion(value: Any) -> None:
    tallies = value["tallies"]
    tallies.pop("last_label", None)
    del tallies["life"]["confusion"], tallies["epoch"]["confusion"]


@EVERY_CASE
def test_every_learner_is_clean(case: Case) -> None:
    """For each kind: scores, updates made and not made, and the checkpoint's rows."""
    made = Made(case)
    found = made.log.audit(made.checkpoint())
    assert found.first == []
    assert found.checked["predictions"] == 120
    assert found.checked["updates"] > 0
    assert found.checked["labels without update"] > 0


@pytest.fixture(scope="module")
def _made() -> Made:
    made = Made()
    assert made.log.audit(made.checkpoint()).first == []
    return made


@pytest.fixture
def made(_made: Made) -> Made:
    """Work of two partitions; a test may alter its topics."""
    made = copy(_made)
    made.log = deepcopy(_made.log)
    return made


# --- altered topics -----------------------------------------------------------------------------------------


def renumber(records: list[Record]) -> None:
    records[:] = [record._replace(offset=offset) for offset, record in enumerate(records)]


def missing_update(log: Lists) -> None:
    del log.records["updates", 0][4]


def missing_last_update(log: Lists) -> None:
    del log.records["updates", 1][-1]


def update_twice(log: Lists) -> None:
    log.records["updates", 0].insert(4, log.records["updates", 0][4])
    renumber(log.records["updates", 0])


def extra_update(log: Lists) -> None:
    last = log.records["updates", 0][-1]
    log.records["updates", 0].append(last._replace(offset=last.offset + 1))
    log.rewrite("updates", 0, -1, lambda value: value.update(n=value["n"] + 1))


def misses_own_update(log: Lists) -> None:
    def change(value: Any) -> None:
        value["model"]["updates"][0] -= 1

    log.rewrite("updates", 0, 4, change)


def goes_back(log: Lists) -> None:
    def change(value: Any) -> None:
        value["model"]["updates"][1] = 0

    log.rewrite("updates", 0, -1, change)


def wrong_predicted(log: Lists) -> None:
    log.rewrite("updates", 0, 3, lambda value: value.update(predicted=not value["predicted"]))


def wrong_clock(log: Lists) -> None:
    def change(value: Any) -> None:
        value["clock"][0] += 1

    log.rewrite("updates", 0, 3, change)


def wrong_label_learned(log: Lists) -> None:
    log.rewrite("updates", 1, 3, lambda value: value.update(label=not value["label"]))


def doubled_prediction(log: Lists) -> None:
    records = log.records["predictions", 1]
    records.insert(10, records[9])
    renumber(records)


def doubled_last_prediction(log: Lists) -> None:
    last = log.records["predictions", 1][-1]
    log.records["predictions", 1].append(last._replace(offset=last.offset + 1))


def missing_prediction(log: Lists) -> None:
    del log.records["predictions", 0][7]


def last_bit_of_a_score(log: Lists) -> None:
    log.rewrite(
        "predictions", 0, -1, lambda value: value.update(score=math.nextafter(value["score"], math.inf))
    )


def other_class_predicted(log: Lists) -> None:
    log.rewrite("predictions", 0, -1, lambda value: value.update(prediction=not value["prediction"]))


def other_features_predicted(log: Lists) -> None:
    log.rewrite("predictions", 0, -1, lambda value: value["features"].update(a=0.5))


def other_version_predicted(log: Lists) -> None:
    def change(value: Any) -> None:
        value["model"]["updates"][1] -= 1

    log.rewrite("predictions", 0, -1, change)


def older_time_predicted(log: Lists) -> None:
    log.rewrite("predictions", 0, -1, lambda value: value.update(at=value["at"] - 1))


def _first(log: Lists, outcome: str) -> tuple[int, int]:
    """(place of the record, place of the decision)."""
    for place, value in enumerate(log.values("outcomes", 0)):
        for number, decision in enumerate(value["decisions"]):
            if decision["outcome"] == outcome:
                return place, number
    raise AssertionError(outcome)


def _decision(outcome: str, change: Callable[[list[Any], int], None]) -> Callable[[Lists], None]:
    def alter(log: Lists) -> None:
        place, number = _first(log, outcome)
        log.rewrite("outcomes", 0, place, lambda value: change(value["decisions"], number))

    return alter


def count_applied_twice(decisions: list[Any], number: int) -> None:
    decisions.insert(number, decisions[number])


def conflict(decisions: list[Any], number: int) -> None:
    decisions[number]["outcome"] = "conflict"


def other_label(decisions: list[Any], number: int) -> None:
    decisions[number]["label"] = not decisions[number]["label"]


def other_prediction(decisions: list[Any], number: int) -> None:
    decisions[number]["prediction"] = not decisions[number]["prediction"]


def _late_update(log: Lists) -> int:
    return next(place for place, value in enumerate(log.values("updates", 0)) if value.get("late"))


def late_update_twice(log: Lists) -> None:
    place = _late_update(log)
    log.records["updates", 0].insert(place, log.records["updates", 0][place])
    renumber(log.records["updates", 0])


def late_update_is_ordinary(log: Lists) -> None:
    log.rewrite("updates", 0, _late_update(log), lambda value: value.pop("late"))


def parked_content(log: Lists) -> None:
    for place, value in enumerate(log.values("outcomes", 0)):
        for number, decision in enumerate(value["decisions"]):
            if "features" in decision and decision["outcome"] == "parked":

                def change(value: Any, number: int = number) -> None:
                    value["decisions"][number]["features"] = {"a": 5}

                log.rewrite("outcomes", 0, place, change)
                return
    raise AssertionError("no parked label carries anything")


def forgotten(decisions: list[Any], number: int) -> None:
    del decisions[number]


def tally(log: Lists) -> None:
    log.rewrite("outcomes", 1, 5, lambda value: value["tallies"]["life"].update(mistakes=99))


def tally_of_epoch(log: Lists) -> None:
    log.rewrite("outcomes", 1, 5, lambda value: value["tallies"]["epoch"]["labels"].update(applied=99))


def _summary(**changes: Any) -> Callable[[Lists], None]:
    def alter(log: Lists) -> None:
        def change(value: Any) -> None:
            for name, (key, more) in changes.items():
                if key is None:
                    value[name] += more
                else:
                    value[name][key] += more

        log.rewrite("outcomes", 0, 8, change)

    return alter


def missing_step(log: Lists) -> None:
    del log.records["outcomes", 0][6]


def step_of_an_older_version(log: Lists) -> None:
    log.rewrite("outcomes", 0, -1, lambda value: value["model"]["updates"].__setitem__(1, 0))


def missing_dead_letter(log: Lists) -> None:
    del log.records["dead-letters", 0][0]


def other_reason(log: Lists) -> None:
    records = log.records["dead-letters", 0]
    headers = (("mistakebound.reason", b"bad-id"), *records[0].headers[1:])
    records[0] = records[0]._replace(headers=headers)


def _dead_letter(change: Callable[[dict[str, bytes | None]], None]) -> Callable[[Lists], None]:
    def alter(log: Lists) -> None:
        records = log.records["dead-letters", 0]
        headers = dict(records[0].headers)
        change(headers)
        records[0] = records[0]._replace(headers=tuple(headers.items()))

    return alter


def letter_of_nothing(log: Lists) -> None:
    last = log.records["dead-letters", 0][-1]
    # A mere copy might be of a step that was torn, and made again.
    headers = tuple(
        (name, b"1000000" if name == "mistakebound.offset" else value) for name, value in last.headers
    )
    log.records["dead-letters", 0].append(last._replace(offset=last.offset + 1, headers=headers))


def _record(topic: Any, **changes: Any) -> Callable[[Lists], None]:
    def alter(log: Lists) -> None:
        records = log.records[topic, 0]
        records[3] = records[3]._replace(**changes)

    return alter


def _unknown_field(topic: Any, *path: Any) -> Callable[[Lists], None]:
    def alter(log: Lists) -> None:
        def change(value: Any) -> None:
            for key in path:
                value = value[key]
            value["unknown"] = 1

        log.rewrite(topic, 0, 8, change)

    return alter


def a_field_twice(log: Lists) -> None:
    records = log.records["predictions", 0]
    value = (records[3].value or b"").replace(b'{"id":', b'{"id":"other","id":', 1)
    records[3] = records[3]._replace(value=value)


def later_prediction(log: Lists) -> None:
    records = log.records["predictions", 0]
    records[3] = records[3]._replace(timestamp_ms=records[3].timestamp_ms + 20_000)


def other_key(log: Lists) -> None:
    records = log.records["predictions", 0]
    records[3] = records[3]._replace(key=b"other")


ALTERED: dict[str, tuple[Callable[[Lists], None], str]] = {
    "an update is missing": (missing_update, "update numbers"),
    "the last update is missing": (missing_last_update, "updates"),
    "an update is there twice": (update_twice, "update numbers"),
    "an update that follows from no label": (extra_update, "leftovers"),
    "an update by a model without an earlier one of its partition": (misses_own_update, "update versions"),
    "an update by a model that goes back": (goes_back, "update versions"),
    "the class that the deciding model gave": (wrong_predicted, "updates"),
    "an update's clock": (wrong_clock, "updates"),
    "an update's label": (wrong_label_learned, "updates"),
    "a prediction is there twice": (doubled_prediction, "predictions"),
    "the last prediction is there twice": (doubled_last_prediction, "leftovers"),
    "a prediction is missing": (missing_prediction, "predictions"),
    "the last bit of a score": (last_bit_of_a_score, "predictions"),
    "a predicted class": (other_class_predicted, "predictions"),
    "a prediction's features": (other_features_predicted, "predictions"),
    "a prediction's version": (other_version_predicted, "predictions"),
    "a prediction's stream time": (older_time_predicted, "predictions"),
    "a prediction's key": (other_key, "predictions"),
    "a label is counted twice": (_decision("applied", count_applied_twice), "decisions"),
    "a duplicate is called a conflict": (_decision("duplicate", conflict), "decisions"),
    "an applied label's value": (_decision("applied", other_label), "decisions"),
    "an expiry is not recorded": (_decision("expired", forgotten), "decisions"),
    "a late label is counted twice": (_decision("applied_late", count_applied_twice), "decisions"),
    "a late label is not counted": (_decision("applied_late", forgotten), "decisions"),
    "a late label's prediction": (_decision("applied_late", other_prediction), "decisions"),
    "a parked label's content": (parked_content, "decisions"),
    "a late update is there twice": (late_update_twice, "update numbers"),
    "a late update is called an ordinary one": (late_update_is_ordinary, "updates"),
    "a tally for life": (tally, "tallies"),
    "a tally of the epoch": (tally_of_epoch, "tallies"),
    "a partition step's stream time": (_summary(at=(None, 1)), "committed positions"),
    "a partition step's next offset": (_summary(inputs=("examples", 1)), "committed positions"),
    "recovery point p too high": (_summary(marks=("p", 9)), "committed positions"),
    "recovery point o too high": (_summary(marks=("o", 9)), "committed positions"),
    "recovery point s too low": (_summary(marks=("s", -1)), "committed positions"),
    "a partition step is missing": (missing_step, "predictions"),
    "a partition step's version goes back": (step_of_an_older_version, "step versions"),
    "a dead letter is missing": (missing_dead_letter, "dead letters"),
    "a dead letter's reason": (other_reason, "dead letters"),
    "a dead letter's detail": (
        _dead_letter(lambda headers: headers.update({"mistakebound.detail": b"says something else"})),
        "dead letters",
    ),
    "a dead letter's timestamp": (
        _dead_letter(lambda headers: headers.update({"mistakebound.timestamp": b"7"})),
        "dead letters",
    ),
    "a dead letter's partition": (
        _dead_letter(lambda headers: headers.update({"mistakebound.partition": b"7"})),
        "dead letters",
    ),
    "a dead letter's original headers": (
        _dead_letter(lambda headers: headers.update(trace=b"8")),
        "dead letters",
    ),
    "a header added to a dead letter": (
        _dead_letter(lambda headers: headers.update(more=b"1")),
        "dead letters",
    ),
    "a dead letter of which no record is the cause": (letter_of_nothing, "leftovers"),
    "an update's key": (_record("updates", key=b"other"), "record forms"),
    "a header added to an update": (_record("updates", headers=(("more", b"1"),)), "record forms"),
    "an unknown field in an update": (_unknown_field("updates"), "record forms"),
    "an outcomes record's key": (_record("outcomes", key=b"other"), "record forms"),
    "a header added to an outcomes record": (_record("outcomes", headers=(("more", None),)), "record forms"),
    "an unknown field in outcomes": (_unknown_field("outcomes", "decisions", 0), "record forms"),
    "an unknown field in tallies": (_unknown_field("outcomes", "tallies", "life"), "record forms"),
    "an unknown field in a prediction": (_unknown_field("predictions"), "predictions"),
    "an unknown field in a prediction's version": (_unknown_field("predictions", "model"), "predictions"),
    "a prediction's field twice": (a_field_twice, "predictions"),
    "a prediction's record time": (later_prediction, "predictions"),
}


@pytest.mark.parametrize("what", ALTERED)
def test_an_altered_record_is_found(what: str, made: Made) -> None:
    """Each by the check that is named for it."""
    alter, check = ALTERED[what]
    alter(made.log)
    found = made.log.audit(most=1_000)
    assert found.differing[check] > 0, found.first


@pytest.mark.parametrize(
    "what", ["the last bit of a score", "a prediction's key", "a duplicate is called a conflict"]
)
def test_one_difference_is_one_difference(what: str, made: Made) -> None:
    """What was published counts from there on, so that nothing follows from it."""
    ALTERED[what][0](made.log)
    assert made.log.audit().differences == 1


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from leaves(inner, (*path, place))
    else:
        yield path, value


def moved(value: Any, up: bool) -> Any:
    """Another value, as near as may be."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + (1 if up else -1)
    if isinstance(value, float):
        return math.nextafter(value, math.inf if up else -math.inf)
    return 0 if value is None else value + "?"


@pytest.mark.long
def test_any_altered_value_is_found(made: Made) -> None:
    """Any field of any topic, altered as little as can be; only a lower recovery point is harmless."""
    random = Random(7)
    for _ in range(80):
        log = deepcopy(made.log)
        topic = random.choice(("examples", "labels", "predictions", "outcomes", "updates"))
        p = random.randrange(PARTITIONS)
        place = random.randrange(len(log.records[topic, p]))
        try:
            value = msgspec.json.decode(log.records[topic, p][place].value or b"")
        except msgspec.DecodeError:
            continue  # a label that was nonsense
        path, old = random.choice(list(leaves(value)))
        if path[0] == "marks" and path[1] in "po":
            continue
        new = moved(old, random.random() < 0.5)

        def change(value: Any, path: Any = path, new: Any = new) -> None:
            for key in path[:-1]:
                value = value[key]
            value[path[-1]] = new

        log.rewrite(topic, p, place, change)
        assert log.audit().differences > 0, (topic, p, place, path, old, new)


def test_scores_made_with_exp_may_be_off_by_four_units() -> None:
    """Processors round `exp` differently; the audit says how often, and more is a difference."""
    made = Made(CASES["balanced winnow"])

    def off_by(units: int) -> Lists:
        log = deepcopy(made.log)

        def change(value: Any) -> None:
            for _ in range(units):
                value["score"] = math.nextafter(value["score"], math.inf)

        log.rewrite("predictions", 0, -1, change)
        return log

    found = off_by(4).audit()
    assert found.first == []
    assert found.notes == {"scores within 4 units in the last place, not equal to the bit": 1}
    assert dict(off_by(6).audit().differing) == {"predictions": 1}


# --- the group's positions ----------------------------------------------------------------------------------


def _committed(log: Lists, p: int) -> Position:
    last = log.values("outcomes", p)[-1]
    return Position(last["inputs"]["examples"], last["inputs"]["labels"], encode(last["marks"]).decode())


def test_the_groups_positions_are_those_of_the_newest_outcomes(made: Made) -> None:
    """One transaction wrote both."""
    made.log.committed = {p: _committed(made.log, p) for p in range(PARTITIONS)}
    found = made.log.audit()
    assert found.first == []
    assert found.checked["group positions"] == PARTITIONS


@pytest.mark.parametrize(
    "moved_to",
    [
        lambda position: position._replace(examples=position.examples - 1),
        lambda position: position._replace(labels=position.labels + 1),
        lambda position: position._replace(metadata=position.metadata.replace('"s":', '"s":1')),
        lambda position: None,
    ],
    ids=["examples", "labels", "recovery point", "gone"],
)
def test_a_position_that_somebody_moved_is_found(moved_to: Callable[[Position], Any], made: Made) -> None:
    """A worker would refuse to go on, or read again from the wrong place."""
    made.log.committed = {p: _committed(made.log, p) for p in range(PARTITIONS)}
    made.log.committed[1] = moved_to(_committed(made.log, 1))
    found = made.log.audit()
    assert dict(found.differing) == {"group positions": 1}
    assert found.first[0].place.startswith("outcomes-1 offset ")


@pytest.mark.parametrize("largest", [0, 420, 600])
def test_dead_letters_of_a_topic_that_takes_little_are_no_difference(largest: int) -> None:
    """Cut, whole without the detail, or whole."""

    def take_little(feeder: Feeder) -> None:
        feeder.state.limits = SizeLimits(dead_letters=largest)

    made = Made(sabotage=take_little)
    letters = [dict(each.headers) for p in range(PARTITIONS) for each in made.log.records["dead-letters", p]]
    assert {"mistakebound.headers-dropped" in told for told in letters} == {largest == 0}
    assert {told["mistakebound.detail"] == b"" for told in letters} == {largest < 600}
    assert made.log.audit().first == []


def test_what_an_earlier_version_wrote_is_no_difference(made: Made) -> None:
    """It knew fewer counts, and no digest of a dead letter's detail, whose words were others."""
    for p in range(PARTITIONS):
        for place in range(len(made.log.records["outcomes", p])):
            made.log.rewrite("outcomes", p, place, _without_later_counts)
    _dead_letter(lambda headers: headers.pop("mistakebound.detail-sha256"))(made.log)
    _dead_letter(lambda headers: headers.update({"mistakebound.detail": b"as it was said then"}))(made.log)
    found = made.log.audit()
    assert {each.check for each in found.first} <= {"tallies"}  # where late labels were counted
    assert found.notes["dead letters' details of an earlier version were taken on trust"] == 1


def test_counts_by_actual_and_predicted_begin_where_a_version_wrote_them() -> None:
    """Before that they are unknown, and what came before is in none of them."""
    made = Made(of_earlier_version=10)
    found = made.log.audit(made.checkpoint())
    assert found.first == []
    assert found.notes["steps of an earlier version, which did not count by (actual, predicted)"] > 10
    tallies = made.feeder.state.ledgers[0].tallies
    assert 0 < sum(map(sum, tallies.life.confusion.model.table)) < tallies.life.judged  # type: ignore[union-attr]


def _without_later_counts(value: Any) -> None:
    _without_confusion(value)
    for tally in value["tallies"].values():
        del tally["labels"]["applied_late"]


def test_another_cost_learned_is_found() -> None:
    """The amount of an update is the cost of its mistake."""
    made = Made(CASES["averaged perceptron, costs"])
    assert made.log.audit().first == []
    amounts = {value["amount"] for value in made.log.values("updates", 0)[1:]}
    assert amounts == {0.3, 25.0}
    made.log.rewrite("updates", 0, 3, lambda value: value.update(amount=25.3 - value["amount"]))
    found = made.log.audit()
    assert found.first[0].check == "updates"
    assert "amount is " in found.first[0].text


# --- workers that do wrong consistently ---------------------------------------------------------------------


def learns_not(feeder: Feeder) -> None:
    """The 9th label teaches nothing, and everything after it is as if that were right."""
    _decides(feeder, 9, lambda must: False)


def learns_always(feeder: Feeder) -> None:
    """One label teaches though the model is right."""
    _decides(feeder, 0, lambda must: True)


def _decides(feeder: Feeder, place: int, change: Callable[[float], float]) -> None:
    learner: Averaging = feeder.model.learner
    judge, asked = learner.judge, [0]

    def wrongly(x: Any, label: Any, clock: int) -> tuple[float, Any, Any]:
        amount, *said = judge(x, label, clock)
        if change(amount) != amount:
            asked[0] += 1
            if asked[0] == place or not place:
                amount = change(amount)
        return amount, *said

    learner.judge = wrongly  # type: ignore[method-assign]


def expires_late(feeder: Feeder) -> None:
    for ledger in feeder.state.ledgers.values():
        ledger.max_delay_ms += 40


def forgets_soon(feeder: Feeder) -> None:
    for ledger in feeder.state.ledgers.values():
        ledger.remember_at_most = 1


def scores_with_an_older_clock(feeder: Feeder) -> None:
    learner: Averaging = feeder.model.learner
    score = learner.score
    learner.score = lambda x, clock: score(x, max(0, clock - 1))  # type: ignore[method-assign]


def counts_too_many(feeder: Feeder) -> None:
    feeder.state.ledgers[0].tallies.life.mistakes = 1


WRONG: dict[str, tuple[Callable[[Feeder], None], str]] = {
    "no update where one was due": (learns_not, "updates"),
    "updates where none was due": (learns_always, "labels without update"),
    "expires late": (expires_late, "decisions"),
    "forgets ids too soon": (forgets_soon, "decisions"),
    "scores with another version than it says": (scores_with_an_older_clock, "predictions"),
    "counts one mistake too many": (counts_too_many, "tallies"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_worker_that_does_wrong_is_found(what: str) -> None:
    """Its log agrees with itself throughout; only the audit's own work tells."""
    sabotage, check = WRONG[what]
    found = Made(sabotage=sabotage).log.audit()
    assert set(found.differing) >= {check}, found.first


def test_one_update_not_made_is_one_difference() -> None:
    """The rest of the log is what follows from the updates that there are."""
    found = Made(sabotage=learns_not).log.audit()
    assert dict(found.differing) == {"updates": 1}
    assert "where one was due" in found.first[0].text


# --- checkpoints --------------------------------------------------------------------------------------------


def flip_a_bit(state: Any) -> None:
    row = state["theta"][0]
    (bits,) = struct.unpack("<q", struct.pack("<d", row["a"]))
    (row["a"],) = struct.unpack("<d", struct.pack("<q", bits ^ 1))


def test_a_flipped_bit_in_a_checkpoint_is_found(made: Made) -> None:
    """The coordinate is named, with both values."""
    checkpoint = made.checkpoint()
    flip_a_bit(checkpoint.model.state)
    found = made.log.audit(checkpoint)
    assert dict(found.differing) == {"checkpoint models": 1}
    assert "theta of 'a' in partition 0" in found.first[0].text


@pytest.mark.parametrize(
    "what", ["waiting", "remembered", "tallies", "place", "version", "clock", "position"]
)
def test_an_altered_checkpoint_is_found(what: str, made: Made) -> None:
    """Held ids, tallies, and the places in the log at which it says it stands."""
    checkpoint = made.checkpoint()
    ledger = checkpoint.ledgers[1]
    if what == "waiting":
        ledger.waiting.pop()
    elif what == "remembered":
        ledger.remembered.pop(0)
    elif what == "tallies":
        ledger.tallies.life.mistakes += 1
    elif what == "place":
        made.log.records["outcomes", 1].pop()
    elif what == "version":
        checkpoint.model.updates[0] -= 1
    elif what == "clock":
        checkpoint.model.clock[0] -= 1
    elif what == "position":
        checkpoint.updates_next[0] -= 1
    found = made.log.audit(checkpoint)
    assert {"checkpoint ledgers", "checkpoint models"} & set(found.differing)


@pytest.fixture(scope="module")
def _proved() -> Made:
    return Made(learner={"kind": "perceptron", "gamma": 0.4})


def test_proved_changes_are_derived_again_and_found_as_they_are(_proved: Made) -> None:
    """Labels at random prove many."""
    checkpoint = _proved.checkpoint()
    assert min(one[0] for one in checkpoint.model.changes) > 1
    found = _proved.log.audit(checkpoint)
    assert found.first == []
    assert found.notes == {}


@pytest.mark.parametrize(
    ("place", "told"),
    [
        (0, "proved changes"),
        (1, "newest"),
        (2, "first"),
        (3, "updates"),
        (4, "restarts"),
        (5, "sums"),
        (6, "sums"),
    ],
)
def test_altered_proved_changes_in_a_checkpoint_are_found(place: int, told: str, _proved: Made) -> None:
    """The count, which updates proved it, and all of the present stretch."""
    checkpoint = _proved.checkpoint()
    one = checkpoint.model.changes[1]
    if place == 1:
        one[1][-1][1] += 1
    elif place == 6:
        one[6]["a"] = one[6].get("a", 0.0) + 0.5
    else:
        one[place] += 1
    found = _proved.log.audit(checkpoint)
    assert dict(found.differing) == {"checkpoint models": 1}
    assert told in found.first[0].text


def test_a_checkpoint_from_before_proved_changes_were_counted_is_noted(_proved: Made) -> None:
    """It is not wrong; a worker reads the log instead."""
    checkpoint = _proved.checkpoint()
    earlier = msgspec.structs.replace(
        checkpoint, model=msgspec.structs.replace(checkpoint.model, changes=None)
    )
    found = _proved.log.audit(earlier)
    assert found.first == []
    assert found.notes == {"checkpoints of an earlier version do not count proved changes": 1}


def test_proved_changes_that_nobody_declared_a_margin_for_are_found(made: Made) -> None:
    """They cannot be this model's."""
    checkpoint = made.checkpoint()
    added = msgspec.structs.replace(checkpoint.model, changes=[])
    found = made.log.audit(msgspec.structs.replace(checkpoint, model=added))
    assert dict(found.differing) == {"checkpoint models": 1}


def test_an_update_that_says_it_saw_another_number_of_restarts_is_found() -> None:
    """It would be added to other rows."""
    made = Made(learner={"kind": "perceptron", "gamma": 0.4, "on_refuted": "restart"})
    assert made.feeder.state.model.restarts > 1
    assert made.log.audit(made.checkpoint()).first == []
    records = made.log.records["updates", 1]
    place = next(n for n, record in enumerate(records) if b'"restarts":' in (record.value or b""))
    update = json.loads(records[place].value or b"")
    del update["restarts"]
    records[place] = records[place]._replace(value=encode(update))
    found = made.log.audit(most=1_000)
    assert any("restarts is 0, should be" in one.text for one in found.first if one.check == "updates")
