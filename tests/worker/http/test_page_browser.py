"""The status page in a real Chromium, served by a real worker."""

import re
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.worker.support.browser import Browser
from tests.worker.support.page_shown import photograph, text, texts, title, visit, wide_by
from tests.worker.support.page_worker import PATIENCE_S, Served, served
from tests.worker.support.working import example

pytestmark = [pytest.mark.chromium, pytest.mark.long]

MARKUP = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("chromium") / "profile") as one:
        yield one


@pytest.fixture(autouse=True)
def _whole(browser: Browser) -> Iterator[None]:
    """Every test leaves a page without an error of a script, and without a breach of its policy."""
    browser.problems.clear()
    browser.look()
    yield
    assert browser.problems == []


def points(number: int, seed: int = 0, *, flipped: bool = False) -> tuple[list[Any], list[bool]]:
    """Separable points of a plane, and on which side of its diagonal they are."""
    random = Random(seed)
    found = [{"across": random.uniform(-1, 1), "up": random.uniform(-1, 1)} for _ in range(number)]
    return found, [(one["across"] > one["up"]) != flipped for one in found]


def shown(number: float) -> str:
    return f"{number:,}"


def test_the_numbers_are_those_of_the_status_and_follow_it(browser: Browser) -> None:
    """Every figure at a glance, the outcomes and the weights; more examples are shown without a reload."""
    with served(2, learner={"kind": "perceptron", "gamma": 0.001}) as worker:
        features, labels = points(1_500)
        worker.rows(features + [{"up": 1.0}] * 7, [*labels, *[None] * 7])
        told = worker.labelled(1_500)
        visit(browser, worker.url)
        browser.wait(f"document.body.dataset.shown >= {told['worker']['counted_at']}")
        browser.wait("document.getElementById('lag').innerText === '0'")

        assert text(browser, "learner") == "perceptron"
        assert text(browser, "state") == "running"
        assert text(browser, "scope").endswith("all 2 partitions")
        assert text(browser, "mistakes") == shown(told["mistakes"])
        rate = f"{100 * told['mistake_rate']:.1f} %"
        assert text(browser, "mistakes-of") == f"in 1,500 labelled: {rate}"
        assert text(browser, "updates") == shown(told["updates"])
        majority = told["baselines"]["majority"]
        assert text(browser, "majority") == f"{100 * majority['mistake_rate']:.1f} %"
        assert text(browser, "majority-of") == f"{shown(majority['mistakes'])} mistakes"
        assert text(browser, "waiting") == "7"
        assert text(browser, "checkpoint") == "none"
        assert texts(browser, "#labels td:last-child") == [
            *(shown(told["labels"][name]) for name in told["labels"] if name != "consumed"), shown(told["parked"]),
        ]  # fmt: skip
        assert texts(browser, "#examples td:last-child") == [
            *map(shown, told["example_outcomes"].values()), shown(told["waiting"]),
        ]  # fmt: skip
        assert texts(browser, "#weights th") == [each["name"] for each in told["worker"]["hypothesis"]["top"]]
        assert texts(browser, "#last summary b") == [each["id"] for each in told["worker"]["mistakes"]]
        assert texts(browser, "#partitions th") == ["0", "1"]
        updates, mistakes = texts(browser, ".bound b")
        assert updates.startswith(f"{shown(told['bounds'][0]['count'])} of at most ")
        assert mistakes.startswith(f"{shown(told['bounds'][1]['count'])} of at most ")
        assert texts(browser, "#notices li") == []
        recent = text(browser, "recent-of")
        assert re.fullmatch(r"[\d,]+ in [\d,]+; always the majority \d.*%", recent), "over the same minute"
        group, slot = told["worker"]["group"], told["worker"]["slot"]
        prefix = told["worker"]["prefix"]
        topics = f"{prefix}examples, {prefix}labels"
        assert title(browser) == f"{rate} mistakes · {prefix or group} · {topics} · {slot}"
        assert text(browser, "place") == (
            f"group {group} · prefix {prefix} · reads {prefix}examples and {prefix}labels · writes {prefix}predictions"
        )
        assert {each.strip() for each in texts(browser, ".own, .all")} == {""}, "one worker has all there is"
        photograph(browser, "running")

        worker.rows(*points(100, 1))
        browser.wait("document.getElementById('mistakes-of').innerText.startsWith('in 1,600 labelled')")


def test_names_and_ids_are_text_whatever_they_say(browser: Browser) -> None:
    """A feature that is named like a script does not run, and is read as it is."""
    with served(learner={"kind": "perceptron"}) as worker:
        first, again = {MARKUP: 2.0, "long" * 60: 1.0}, {MARKUP: 1.0}
        worker.rows([first, {"a&lt;b": 2.0}, again], [True, False, False])
        worker.labelled(3)
        visit(browser, worker.url)
        browser.wait("document.querySelector('#weights th')")

        assert MARKUP in texts(browser, "#weights th")
        assert "a&lt;b" in texts(browser, "#weights th")
        assert any(one.startswith(f"{MARKUP} = ") for one in texts(browser, "#last tbody th"))
        assert browser.ask("document.querySelectorAll('main img, main script').length") == 0
        assert "taken" not in title(browser)
        browser.look(width=360)
        assert wide_by(browser) <= 0


def test_a_phone_needs_no_sideways_scroll_and_the_dark_is_dark(browser: Browser) -> None:
    """From the narrowest phone to a screen, in both colour schemes, every value in its place."""
    with served(4, learner={"kind": "averaged-perceptron", "gamma": 0.1}) as worker:
        worker.rows(*points(300))
        worker.labelled(300)
        visit(browser, worker.url)
        light = browser.ask("getComputedStyle(document.body).backgroundColor")
        for width in (320, 375, 768, 1100):
            for dark in (False, True):
                browser.look(width=width, dark=dark)
                assert wide_by(browser) <= 0, width
        assert browser.ask("getComputedStyle(document.body).backgroundColor") != light
        assert browser.ask("document.querySelector('#rate').getAttribute('aria-label')").startswith(
            "Mistakes per"
        )


def test_an_empty_worker_says_what_it_waits_for(browser: Browser, tmp_path: Path) -> None:
    """No label, no weight, no bound: words, never a broken number."""
    log = {"url": f"sqlite:{tmp_path / 'log.db'}", "prefix": "shop."}
    with served(log=log, learner={"kind": "averaged-perceptron"}) as worker:
        worker.until(lambda told: told["worker"]["hypothesis"] is not None)
        visit(browser, worker.url)
        assert text(browser, "mistakes-of") == "no label yet"
        assert text(browser, "bounds").startswith("No margin is declared: set learner.gamma")
        assert text(browser, "weights-note").startswith("Nothing learned yet")
        assert text(browser, "mistakes-note") == "None since this process began."
        everything = browser.ask("document.body.innerText")
        assert [bad for bad in ("NaN", "undefined", "null", "Infinity") if bad in everything] == []
        commands = worker.status()["worker"]["first_commands"]
        assert [text(browser, "first-example"), text(browser, "first-label")] == commands
        assert title(browser).startswith("no label yet · ")
        photograph(browser, "empty")
        worker.rows([{"a": 1.0}], [None])
        browser.wait("document.getElementById('begin').hidden")


def test_weights_that_are_multiplied_are_drawn_on_a_logarithmic_scale(browser: Browser) -> None:
    """What was promoted twice is drawn twice as far as what was promoted once, to the other side of what was demoted."""
    with served(learner={"kind": "winnow", "eta": 2.0, "threshold": 0.0}, features={"bias": False}) as worker:
        features = [{"down": 4.0, "up": 0.5}, {"down": 4.0}, {"up": 0.5, "other": -8.0}]
        worker.rows(features * 3, [False, False, True] * 3)
        told = worker.labelled(9)["worker"]["hypothesis"]
        visit(browser, worker.url)
        browser.wait("document.querySelector('#weights th')")
        sizes = browser.ask(
            "[...document.querySelectorAll('#weights .bar span')].map((one) => parseFloat(one.style.getPropertyValue('--size')))"
        )
        expected = [abs(each["theta"]) for each in told["top"]]
        assert [size / sizes[0] for size in sizes] == pytest.approx([size / expected[0] for size in expected])
        assert "logarithmic scale, from the 1 that each began with" in text(browser, "weights-note")
        assert any("× 10⁻" in each for each in texts(browser, "#weights td:last-child"))
        photograph(browser, "winnow")


def test_a_colour_has_one_meaning_and_none_alone(browser: Browser) -> None:
    """Red is what is wrong. A negative weight is not: it points to the left, and has its sign."""
    with served(learner={"kind": "averaged-perceptron"}) as worker:
        worker.rows(*points(300))
        worker.labelled(300)
        visit(browser, worker.url)
        browser.wait("document.querySelector('#weights th')")
        assert browser.ask("document.querySelectorAll('#weights .bad').length") == 0
        assert any(each.startswith("−") for each in texts(browser, "#weights td:last-child"))
        assert any(each.startswith("+") for each in texts(browser, "#weights td:last-child"))
        assert "averaged weights" in text(browser, "weights-note")
        assert (
            "to the right they speak for true, to the left for false" in text(browser, "weights-note").lower()
        )
        for part in texts(browser, "#last tbody td:last-child"):
            assert part[0] in "+−–0"
        rows = texts(browser, "#classes th")
        assert rows == [
            "false positive: predicted true, was false",
            "false negative: predicted false, was true",
        ]
        told = worker.status()
        counts = [
            int(each.split(" of ")[0].replace(",", "")) for each in texts(browser, "#classes td:last-child")
        ]
        assert sum(counts) == told["mistakes"]


def test_measures_costs_and_delay_are_told_as_status_tells_them(browser: Browser) -> None:
    """Beside those of always the majority; what is undefined is a dash."""
    costs = {"max_delay": 1000, "costs": {"false_negative": 25}}
    with served(learner={"kind": "perceptron"}, labels=costs) as worker:
        worker.rows([{"a": 1.0}] * 3, [False] * 3)
        worker.labelled(3)
        visit(browser, worker.url)
        browser.wait("document.querySelector('#measures th')")
        shown = dict(
            zip(texts(browser, "#measures th"), texts(browser, "#measures td:nth-child(2)"), strict=True)
        )
        assert (shown["precision"], shown["specificity"]) == ("–", "100 %")
        worker.rows(*points(300))
        told = worker.labelled(303)["confusion"]
        browser.wait("document.getElementById('classes-note').innerText.startsWith('Of 303 labels')")
        shown = dict(
            zip(texts(browser, "#measures th"), texts(browser, "#measures td:nth-child(2)"), strict=True)
        )
        measures = told["model"]["measures"]
        assert len(shown) == len(measures) == 8
        assert float(shown["recall"].split(" ")[0]) == pytest.approx(100 * measures["recall"], abs=0.051)
        assert float(shown["kappa M"].replace("−", "-")) == pytest.approx(measures["kappa_m"], abs=0.0006)
        assert f"would have made {told['mistakes_at_label']} mistakes" in text(browser, "delay-note")
        cost = f"{told['model']['cost']:,g}"
        assert f"These mistakes cost {cost};" in text(browser, "cost-note")


@pytest.mark.parametrize(
    ("name", "sections"),
    [
        ("many", {"learner": {"kind": "perceptron"}, "labels": {"max_delay": 1000, "classes": ["left", "middle", "right"]}}),
        ("kernel", {"learner": {"kind": "kernel-perceptron", "gamma": 0.5}}),
        ("halving", {"learner": {"kind": "halving", "concepts": "monotone-conjunctions", "variables": ["across", "up"]},
                     "features": {"bias": False}}),
    ],
)  # fmt: skip
def test_other_learners_have_a_whole_page(browser: Browser, name: str, sections: Any) -> None:
    """Many classes, a kernel, a class of concepts: words where there is nothing to draw, never a broken number."""
    with served(**sections) as worker:
        features, labels = points(120)
        if name == "many":
            said: list[Any] = [
                "left" if x["across"] < -0.3 else "right" if x["across"] > 0.3 else "middle" for x in features
            ]
        else:
            said = list(labels)
        if name == "halving":
            features = [{key: float(value > 0) for key, value in x.items()} for x in features]
            said = [x["up"] > 0 for x in features]
        worker.rows(features, said)
        worker.labelled(120)
        visit(browser, worker.url)
        browser.wait("document.querySelector('#weights th')")
        everything = browser.ask("document.body.innerText")
        assert [bad for bad in ("NaN", "undefined", "null", "Infinity") if bad in everything] == []
        if name == "many":
            assert all(" was " in each and "predicted " in each for each in texts(browser, "#classes th"))
            assert len(texts(browser, "#classes th")) > 2
        photograph(browser, name)


def test_tenants_are_shown_where_each_has_a_model(browser: Browser) -> None:
    """Most examples first, whatever they are called; where there are none, nothing is said of them."""
    with served(1, features={"cross": "/features/shop"}) as worker:
        visit(browser, worker.url)
        assert browser.ask("document.getElementById('tenants-section').hidden") is True
        worker.rows([{"shop": "books"}, {"shop": MARKUP}, {"shop": "books"}], [True, False, None])
        worker.labelled(2)
        browser.wait("!document.getElementById('tenants-section').hidden")
        assert texts(browser, "#tenants th") == ["books", MARKUP]
        assert texts(browser, "#tenants td:last-child") == ["1 of 1, 100.0 %", "0 of 1, 0.0 %"]
        assert title(browser) != "taken"


def test_an_idle_stream_shows_the_age_of_what_waits_by_both_clocks(browser: Browser) -> None:
    """Record time stands still while the clock goes on: 1 s of 1,000 s by the one, 22 min by the other."""
    with served(learner={"kind": "perceptron"}) as worker:
        then = round(time.time() * 1000) - 22 * 60_000
        worker.send([example(0, {"a": 1.0}, then), example(1, {"a": 1.0}, then + 1_000)])
        worker.until(lambda told: told["waiting"] == 2)
        visit(browser, worker.url)
        assert text(browser, "waiting-of") == "oldest 1 s of 17 min by record time, 22 min by the clock"
        cells = texts(browser, "#partitions td")
        assert cells[4:6] == ["1 s", "22 min"]
        photograph(browser, "idle")


def test_a_worker_that_is_gone_is_told_and_its_last_words_stay(browser: Browser) -> None:
    """The page never shows old numbers as if they were new."""
    with served(learner={"kind": "perceptron"}) as worker:
        worker.rows(*points(50))
        worker.labelled(50)
        visit(browser, worker.url)
    browser.wait("document.querySelector('#notices .alarm')")
    assert texts(browser, "#notices li")[0].startswith("The worker does not answer")
    assert text(browser, "mistakes-of").startswith("in 50 labelled")
    photograph(browser, "gone")


def _live(worker: Served, seed: int, *, flipped: bool = False, labels: bool = True) -> None:
    """A part of a stream that goes on: 25 examples, with their labels or without."""
    features, said = points(25, seed, flipped=flipped)
    worker.rows(features, said if labels else [None] * len(said))


def test_a_drift_and_missing_labels_are_seen_within_a_minute(browser: Browser) -> None:
    """Two live streams, one whose labels turn over and one whose labels stop: each page says so, and shows it."""
    learner = {"learner": {"kind": "averaged-perceptron"}}
    with served(**learner) as drifting, served(**learner) as silent:
        unseen = {"Mistakes are up": drifting, "No label for": silent}
        for seed in count():
            _live(drifting, seed, flipped=seed >= 24)
            _live(silent, seed, labels=seed < 24)
            for notice, worker in tuple(unseen.items()):
                told = worker.status()["worker"]
                if any(each["text"].startswith(notice) for each in told["notices"]):  # at first it restores
                    # At once: a model that learns anew has no more to tell of a drift after some seconds.
                    visit(browser, worker.url)
                    assert texts(browser, "#notices li")[0].startswith(notice)
                    photograph(browser, "drifting" if worker is drifting else "silent")
                    del unseen[notice]
                else:
                    assert told["now"] - told["started_at"] < PATIENCE_S, notice
            if not unseen:
                break
            time.sleep(0.25)
        assert int(text(browser, "waiting").replace(",", "")) >= 20
