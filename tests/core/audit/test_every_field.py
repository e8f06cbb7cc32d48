"""Whatever is altered in a recording is found, field by field and record by record; what leaves no trace is listed, with why."""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from mistakebound.commands.log_ranges import read_merged
from mistakebound.core.audit.findings import Finding
from mistakebound.core.records import INPUTS, TOPICS, Outgoing, Record
from mistakebound.core.replay.recording import RecordingError, begin, encode, encode_header
from tests.core.support.audited import Lists
from tests.support.tries import long
from tests.worker.support.working import Run, opened, settings_for

PARTITIONS = 2
OTHER = {"examples": "labels", "labels": "examples", "predictions": "updates", "updates": "outcomes"}
BEGUN_MS = 1_000
MINUTE_MS = 60_000

SETTINGS: dict[str, dict[str, Any]] = {
    "averaged": {"learner": {"kind": "averaged-perceptron"}},
    "probabilities": {"learner": {"kind": "averaged-perceptron"}, "predictions": {"probability": True}},
    "labels asked for": {"labels": {"ask": 1.0, "ask_seed": 4}},
    "restarts": {"learner": {"gamma": 2.5, "on_refuted": "restart"}},
    "tenants, costs": {
        "learner": {"cost_sensitive": True},
        "labels": {"costs": {"false_positive": 2, "false_negative": 7}},
        "features": {"cross": "/features/b"},
    },
}


def _inputs(first: int) -> Iterator[Outgoing]:
    """An example and its label of one partition; of the other: examples with headers, one of them twice, one never labelled and one that cannot be read; labels soon,
    twice, too late with and without content, before their example and of nobody."""
    yield _example(1, first, BEGUN_MS + 10 * first)
    yield _label(1, first, BEGUN_MS + 10 * first + 5, first == 0)
    for p in (0,):
        for n in range(first, first + 4):
            yield _example(p, n, BEGUN_MS + 10 * n)
            if n % 4 != 3:
                yield _label(p, n, BEGUN_MS + 10 * n + 5, n % 3 == 0)
        yield _example(p, first, BEGUN_MS + 10 * first + 36)
        yield _label(p, first, BEGUN_MS + 10 * first + 37, True)
        yield _label(p, first + 5, BEGUN_MS + 10 * first + 38, False)
        yield Outgoing("examples", p, b"bad", b'{"id":"bad"}', (("trace", b"x"),), BEGUN_MS + 10 * first + 39)
        yield Outgoing("labels", p, b"bad", b"nonsense", (), BEGUN_MS + 10 * first + 39)
        if first:
            content = {"features": {"a": 1.5, "b": "red"}, "prediction": False}
            yield _label(p, 3, BEGUN_MS + 10 * first + 39, True, **content)


def _example(p: int, n: int, at: int) -> Outgoing:
    value = json.dumps({"id": f"{p}-{n}", "features": {"a": n - 2.5, "b": "red"}}).encode()
    return Outgoing("examples", p, f"{p}-{n}".encode(), value, (("trace", b"%d" % n),), at)


def _label(p: int, n: int, at: int, label: bool, **content: Any) -> Outgoing:
    value = json.dumps({"id": f"{p}-{n}", "label": label, **content}).encode()
    return Outgoing("labels", p, f"{p}-{n}".encode(), value, (), at)


@pytest.fixture(scope="module", params=SETTINGS)
def lines(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    """A recording of what a worker made of them in several steps, as JSON objects without the header."""
    chosen = SETTINGS[request.param]
    settings = settings_for(
        learner={"kind": "perceptron", **chosen.get("learner", {})},
        labels={"max_delay": 0.03, "parking": 0.02, **chosen.get("labels", {})},
        predictions=chosen.get("predictions", {}),
        features=chosen.get("features", {}),
        batch={"max_records": 20},
    )
    with opened(settings, PARTITIONS) as log:
        for first in (0, 4):
            log.append(_inputs(first))
            Run(log, settings)
        found = [json.loads(encode(record)) for record in read_merged(log, TOPICS)]
    assert _audited(found) == []
    return found


def _audited(lines: list[dict[str, Any]]) -> list[Finding] | None:
    """The findings; None where the file is refused already, by line."""
    try:
        _, records = begin([encode_header(PARTITIONS), *(json.dumps(line).encode() for line in lines)])
        held: dict[Any, list[Record]] = {}
        for record in records:
            held.setdefault((record.topic, record.partition), []).append(record)
    except RecordingError:
        return None
    return Lists(PARTITIONS, held).audit(most=1_000).first


class Alteration(NamedTuple):
    """One field of one line, altered once."""

    path: tuple[Any, ...]
    """`payload` is followed by the way through its JSON."""
    how: str
    line: dict[str, Any]


def alterations(line: dict[str, Any]) -> Iterator[Alteration]:
    """Every field, altered as little as can be; every member taken out, one put in."""
    yield Alteration(("topic",), "other", {**line, "topic": OTHER.get(line["topic"], "predictions")})
    yield Alteration(("partition",), "other", {**line, "partition": 1 - line["partition"]})
    for name, step in (("offset", 1), ("ts", MINUTE_MS)):
        for by in (step, -step):
            yield Alteration((name,), "higher" if by > 0 else "lower", {**line, name: line[name] + by})
    yield Alteration(("key",), "other", {**line, "key": (line["key"] or "") + "?"})
    if line["key"] is not None:
        yield Alteration(("key",), "gone", {**line, "key": None})
    headers = line["headers"]
    yield Alteration(("headers",), "more", {**line, "headers": [*headers, ["more", "1"]]})
    for place, (name, value) in enumerate(headers):
        rest = headers[:place], headers[place + 1 :]
        yield Alteration(("headers", name), "gone", {**line, "headers": [*rest[0], *rest[1]]})
        for other in ([name + "?", value], [name, value + "?"], [name, None]):
            yield Alteration(("headers", name), "other", {**line, "headers": [*rest[0], other, *rest[1]]})
    yield Alteration(("payload",), "gone", {**line, "payload": None})
    try:
        whole = json.loads(line["payload"])
    except ValueError:
        yield Alteration(("payload",), "other", {**line, "payload": line["payload"] + "?"})
        return
    for path, how, content in _contents((), whole):
        payload = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
        yield Alteration(("payload", *path), how, {**line, "payload": payload})


def _contents(path: tuple[Any, ...], value: Any) -> Iterator[tuple[tuple[Any, ...], str, Any]]:
    """(way, how, the whole with that altered)."""
    if isinstance(value, dict):
        yield path, "more", {**value, "more": 1}
        for name, inner in value.items():
            yield (*path, name), "gone", {key: each for key, each in value.items() if key != name}
            for way, how, other in _contents((*path, name), inner):
                yield way, how, {**value, name: other}
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield (*path, place), "gone", [*value[:place], *value[place + 1 :]]
            for way, how, other in _contents((*path, place), inner):
                yield way, how, [*value[:place], other, *value[place + 1 :]]
    elif isinstance(value, bool):
        yield path, "other", not value
    elif isinstance(value, int | float):
        yield path, "higher", value + 1
        if "tallies" not in path:
            yield path, "lower", value - 1
    else:
        yield path, "other", "?" if value is None else value + "?"


# --- what leaves no trace -----------------------------------------------------------------------------------


class Untraceable(NamedTuple):
    """Alterations that nobody can tell from an honest recording."""

    why: str
    of: Callable[[dict[str, Any], Alteration], bool]


def _input(line: dict[str, Any]) -> bool:
    return line["topic"] in INPUTS


UNTRACEABLE = (
    Untraceable(
        "an input's record time sets stream time alone, and only where it is the largest so far",
        lambda line, one: _input(line) and one.path == ("ts",),
    ),
    Untraceable(
        "a label's key and headers are copied nowhere",
        lambda line, one: (
            line["topic"] == "labels" and one.path[0] in ("key", "headers") and not _unread(line)
        ),
    ),
    Untraceable(
        "of an example whose id came before, only the id is read",
        lambda line, one: (
            "again" in line and one.path[0] in ("key", "headers", "payload") and one.path != ("payload", "id")
        ),
    ),
    Untraceable(
        "members that the settings do not name are not read",
        lambda line, one: line["topic"] == "labels" and (one.path, one.how) == (("payload",), "more"),
    ),
    Untraceable(
        "without an id in the value the key is the id, and here it is the same",
        lambda line, one: _input(line) and (one.path, one.how) == (("payload", "id"), "gone"),
    ),
    Untraceable(
        "the log stamps records when they are written; clocks differ, so only times of one transaction can be compared",
        lambda line, one: (
            not _input(line) and one.path == ("ts",) and (line["topic"], one.how) != ("predictions", "higher")
        ),
    ),
    Untraceable(
        "brokers put markers between records, so that offsets have gaps; nothing comes after the last record",
        lambda line, one: (
            not _input(line) and (one.path, one.how) == (("offset",), "higher") and "last" in line
        ),
    ),
    Untraceable(
        "a rebuild may begin anywhere up to what it needs first",
        lambda line, one: one.path in (("payload", "marks", "p"), ("payload", "marks", "o")),
    ),
    Untraceable(
        "which updates and labels of other partitions a step knew shows in what it published and learned; these did neither, "
        "or learned from labels that needed no update, whatever the others' updates were",
        lambda line, one: (
            line["topic"] == "outcomes"
            and one.path[1:2] == ("model",)
            and ("idle" in line or ("without update" in line and _of_another(line, one.path)))
        ),
    ),
    Untraceable(
        "earlier versions did not write it",
        lambda line, one: (
            one.how == "gone" and one.path[-1] in ("applied_late", "mistakebound.detail-sha256")
        ),
    ),
)


def _of_another(line: dict[str, Any], path: tuple[Any, ...]) -> bool:
    """Whether it is the count of another partition's updates."""
    return path[2:3] == ("updates",) and path[3:] != (line["partition"],)


def _unread(line: dict[str, Any]) -> bool:
    """Whether it became a dead letter, which holds everything."""
    return line["key"] == "bad"


def _marked(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Copies of the lines that say which are the last of their topic partition (`last`), which examples have an id that came
    before (`again`), in which steps nothing was published or learned (`idle`), and in which nothing was published and what
    was learned needed no update (`without update`)."""
    newest = {(line["topic"], line["partition"]): line["offset"] for line in lines}
    seen: set[Any] = set()
    found = []
    for line in lines:
        marks: dict[str, Any] = {}
        if newest[line["topic"], line["partition"]] == line["offset"]:
            marks["last"] = True
        if line["topic"] == "examples":
            content = json.loads(line["payload"])
            if content["id"] in seen:
                marks["again"] = True
            seen.add(content["id"])
        if line["topic"] == "outcomes":
            content = json.loads(line["payload"])
            published = [
                each for each in lines if each["topic"] == "predictions" and _is_of(each, line, content)
            ]
            learned = [
                each
                for each in content["decisions"]
                if each["outcome"].startswith("applied") and each.get("weight") != 0  # labels not asked for
            ]
            if not published and not learned:
                marks["idle"] = True
            ids = {each["id"] for each in learned}
            if not published and not any(each["topic"] == "updates" and _id(each) in ids for each in lines):
                marks["without update"] = True
        found.append({**line, **marks})
    return found


def _id(line: dict[str, Any]) -> str:
    return str(json.loads(line["payload"]).get("id"))  # the epoch has none


def _is_of(prediction: dict[str, Any], outcomes: dict[str, Any], content: Any) -> bool:
    source, end = json.loads(prediction["payload"])["source"], content["inputs"]["examples"]
    begin = end - sum(content["order"][0::2])
    return bool(prediction["partition"] == outcomes["partition"] and begin <= source < end)


def _names(finding: Finding, line: dict[str, Any]) -> bool:
    """Whether a finding says which record it is of."""
    where = f"{line['topic']}-{line['partition']} offset {line['offset']}"
    return where in (finding.place, *finding.text.split(" ")) or where in finding.text


SHARES = 40
"""The alterations are dealt to so many shares, of which one is tried without --long."""


@pytest.mark.parametrize("share", [7, *long(*(n for n in range(SHARES) if n != 7))])
def test_whatever_is_altered_is_found_and_named(lines: list[dict[str, Any]], share: int) -> None:
    """By topic, partition and offset, where the record is one of the worker's; or it is on the list of what leaves no trace."""
    every = [(place, one) for place, line in enumerate(lines) for one in alterations(line)]
    marked = _marked(lines)
    for place, one in every[share::SHARES]:
        findings = _audited([*lines[:place], one.line, *lines[place + 1 :]])
        what = (lines[place]["topic"], lines[place]["partition"], lines[place]["offset"], one.path, one.how)
        if findings == []:
            assert any(each.of(marked[place], one) for each in UNTRACEABLE), what
        elif (
            findings is not None and not _input(lines[place]) and one.path[0] in ("key", "headers", "payload")
        ):
            assert any(_names(finding, lines[place]) for finding in findings), (what, findings)


@pytest.mark.parametrize("untraceable", UNTRACEABLE, ids=lambda each: each.why)
def test_what_is_listed_leaves_no_trace(lines: list[dict[str, Any]], untraceable: Untraceable) -> None:
    """At least one alteration of each kind on the list is not found: the list says no more than is so."""
    marked = _marked(lines)
    for place, line in enumerate(lines):
        for one in alterations(line):
            altered = [*lines[:place], one.line, *lines[place + 1 :]]
            if untraceable.of(marked[place], one) and _audited(altered) == []:
                return
    raise AssertionError(f"every one of them is found: {untraceable.why}")
