"""The status page without a browser: its JSON, its schema, its files, and what it says of each learner."""

import json
import re
import urllib.request
from collections.abc import Iterator
from importlib.resources import files
from random import Random

import pytest
from jsonschema import Draft202012Validator

from mistakebound.commands.committed_report import read_lag, read_report
from mistakebound.core.replay.replay import Row
from mistakebound.core.reporting.status import epoch_status, schema, status
from mistakebound.worker.epochs.epochs import newest_epochs
from tests.commands.support.command_line import ok
from tests.core.support.every_kind import EVERY_CASE, Case
from tests.worker.support.page_steps import as_json, told_of
from tests.worker.support.page_worker import Served, paged, served, working
from tests.worker.support.working import opened

VALID = Draft202012Validator(schema())
XOR = [{"a": float(n % 2), "b": float(n // 2 % 2)} for n in range(12)]
SCRIPTS = ("page.js", "classes.js", "figures.js", "model.js", "write.js", "chart.js")
SAID = [n % 2 != n // 2 % 2 for n in range(12)]


@pytest.fixture(scope="module")
def worker() -> Iterator[Served]:
    """One that has judged 12 examples and waits for the labels of 3."""
    with served(2, learner={"kind": "perceptron", "gamma": 0.5}) as one:
        one.rows(XOR + [{"c": 1.0}] * 3, SAID + [None] * 3)
        one.labelled(12)
        yield one


def _page(worker: Served, path: str) -> str:
    with urllib.request.urlopen(worker.url + path, timeout=20) as answer:
        text: str = answer.read().decode()
        return text


def test_the_status_is_that_of_the_command_with_the_worker_beside_it(worker: Served) -> None:
    """One definition: all that `status --model --json` reads from the log is there, with the same value."""
    told = worker.until(lambda told: [told["lag"].get(p) for p in "01"] == [{"examples": 0, "labels": 0}] * 2)
    settings = paged(learner={"kind": "perceptron", "gamma": 0.5})
    epochs = newest_epochs(worker.log)
    found = status(
        read_report(worker.log, settings, fold=True), read_lag(worker.log), epoch_status(epochs[0], None)
    )
    expected = json.loads(json.dumps(found.as_dict()))

    VALID.validate(expected)
    assert expected.pop("worker") is None
    assert {name: told[name] for name in expected} == expected
    assert set(told) - set(expected) == {"worker"}


def test_the_status_is_as_its_schema_says(worker: Served) -> None:
    """The schema is published beside it, closed enough to notice a number that became a text."""
    told = worker.status()
    VALID.validate(told)
    assert json.loads(_page(worker, "api/status.schema.json")) == schema()

    told["worker"]["partitions"][0]["waiting"] = "3"
    assert not VALID.is_valid(told)


def test_the_command_prints_the_schema() -> None:
    """`status --schema` needs no log and no worker."""
    assert json.loads(ok("status", "--schema", log=None).stdout) == schema()


def test_waiting_examples_and_their_age_are_told_by_partition(worker: Served) -> None:
    """Three without a label; each partition says what it holds."""
    told = worker.status()
    partitions = told["worker"]["partitions"]
    assert told["waiting"] == 3 == sum(each["waiting"] for each in partitions)
    assert [each["partition"] for each in partitions] == [0, 1]
    assert told["worker"]["partition_count"] == 2
    assert all(each["oldest_waiting_seconds"] >= 0 for each in partitions)


def test_the_last_mistakes_are_told_with_what_their_features_added(worker: Served) -> None:
    """Newest first; what was added comes to the lead of the wrong class."""
    told = worker.status()["worker"]["mistakes"]
    assert len(told) == min(10, worker.status()["mistakes"])
    for one in told:
        assert one["predicted"] is not one["label"]
        assert one["lead"] == pytest.approx(
            one["offset"] + sum(term["contribution"] for term in one["terms"])
        )
    places = [int(one["id"][1:]) for one in told if one["partition"] == 0]
    assert places == sorted(places, reverse=True)


def test_history_adds_up_to_what_was_done_since_the_start(worker: Served) -> None:
    """Each ring has all of it, since the process is young."""
    told = worker.status()
    rings = told["worker"]["history"]
    assert [ring["seconds"] for ring in rings] == [2, 60, 600]
    for ring in rings:
        assert (sum(ring["examples"]), sum(ring["labelled"])) == (15, 12)
        assert sum(ring["mistakes"]) == told["mistakes"]
        assert sum(ring["updates"]) == told["updates"]
        assert sum(ring["majority_mistakes"]) == told["baselines"]["majority"]["mistakes"]


@pytest.mark.long
def test_history_begins_with_the_process_and_the_counts_do_not() -> None:
    """A second worker on the same log knows all counts, and no history."""
    settings = paged(learner={"kind": "perceptron"})
    with opened(settings) as log:
        with working(log, settings) as first:
            first.rows(XOR, SAID)
            before = first.labelled(12)
        with working(log, settings) as second:
            after = second.labelled(12)

    assert after["mistakes"] == before["mistakes"]
    assert after["model"] == before["model"]
    assert [ring["at"] for ring in after["worker"]["history"]] == [[], [], []]
    assert after["worker"]["mistakes"] == []


@EVERY_CASE
def test_every_learner_has_a_page(case: Case) -> None:
    """A bound or the reason why there is none, something by name, and mistakes with or without contributions."""
    random = Random(3)
    rows = [Row(str(number), *case.row(random), tenant=case.tenant(random)) for number in range(40)]
    before, after = told_of(case.settings, []), told_of(case.settings, rows)

    for told in (before, after):
        VALID.validate(as_json(told))
        assert bool(told.bounds) is (told.worker.no_bound is None)
        assert told.worker.hypothesis.what
        assert len(told.worker.hypothesis.top) <= 12
    assert after.mistakes > 0
    assert len(after.worker.mistakes) == min(10, after.mistakes)
    for one in after.worker.mistakes:
        assert (one.lead is None) is (one.offset is None)
        assert all((term.contribution is None) is (one.lead is None) for term in one.terms)


def test_the_page_and_all_that_it_loads_come_from_the_worker(worker: Served) -> None:
    """No inline script or style, no address elsewhere, nothing evaluated: the policy forbids all of it."""
    page = _page(worker, "")
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert all(path.startswith("/") and not path.startswith("//") for path in loaded)
    for path in set(loaded):
        assert _page(worker, path[1:])
    assert re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", page) is None
    for name in SCRIPTS:
        script = _page(worker, name)
        assert (
            re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|Function\(", script)
            is None
        )
        assert re.findall(r"https?://[^\"]+", script) in ([], ["http://www.w3.org/2000/svg"])
        for loaded in re.findall(r'from "([^"]+)"', script):
            assert _page(worker, loaded[1:])


def test_every_part_that_the_script_fills_is_on_the_page() -> None:
    """An id is there once; every part that the script names exists."""
    folder = files("mistakebound.worker.http").joinpath("page_assets")
    page = folder.joinpath("page.html").read_text()
    script = "".join(folder.joinpath(name).read_text() for name in SCRIPTS)
    there = re.findall(r'\bid="([^"]+)"', page)
    named = set(re.findall(r'(?:\$|say|showOutcomes)\("([a-z-]+)"', script))
    assert len(there) == len(set(there))
    assert named - set(there) == set()
    assert len(named) > 25


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_what_is_behind_it(scheme: str) -> None:
    """WCAG 2 AA, in both colour schemes: 4.5 to 1 for text, 3 to 1 for lines that carry a value."""
    sheet = files("mistakebound.worker.http").joinpath("page_assets", "page.css").read_text()
    blocks = re.findall(r":root \{(.*?)\}", sheet, re.DOTALL)
    colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", blocks[scheme == "dark"]))

    def contrast(one: str, other: str) -> float:
        dark, light = sorted(_luminance(colours[name]) for name in (one, other))
        return (light + 0.05) / (dark + 0.05)

    on_card = [(text, "card") for text in ("ink", "soft", "blue", "red")]
    on_page = [(text, "page") for text in ("ink", "soft", "blue", "red", "good")]
    on_notice = [("ink", level) for level in ("alarm", "warning", "info")]
    assert {pair: contrast(*pair) for pair in on_card + on_page + on_notice if contrast(*pair) < 4.5} == {}
    assert contrast("grey", "card") >= 3
