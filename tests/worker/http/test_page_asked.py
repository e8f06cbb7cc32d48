"""Labels asked for on the status page, in a real Chromium and as JSON."""

import pytest

from mistakebound.core.replay.replay import Row
from mistakebound.settings import Settings
from tests.worker.support.browser import Browser
from tests.worker.support.page_shown import photograph, text, texts, visit, wide_by
from tests.worker.support.page_steps import as_json, told_of
from tests.worker.support.page_worker import served

ASKING = {"max_delay": 1000, "ask": 1.0}


def rows(count: int) -> list[Row]:
    return [Row(str(n), {"x": n % 7 - 3.0}, n % 7 > 2) for n in range(count)]


def test_the_status_counts_the_labels_asked_for_and_estimates_all_mistakes() -> None:
    """The report's section, with the bound on the mistakes to be expected."""
    settings = {"learner": {"kind": "perceptron", "gamma": 0.01}, "labels": {"ask": 1.0}}
    asked = as_json(told_of(Settings.model_validate(settings), rows(100)))["asked"]
    assert asked["labelled"] + asked["unasked_labelled"] == 100
    assert (asked["missing"], asked["unasked_missing"]) == (0, 0)
    assert asked["estimated_mistakes"] >= asked["mistakes"] > 0
    assert asked["expected"]["value"] > 100


def test_without_the_setting_the_status_says_nothing_of_asking() -> None:
    """As earlier versions."""
    assert "asked" not in as_json(told_of(Settings(), rows(20)))


@pytest.mark.chromium
@pytest.mark.long
def test_the_page_shows_the_labels_asked_for(tmp_path_factory: pytest.TempPathFactory) -> None:
    """How many were asked for and came, and what they say of all; hidden where labels are not asked for."""
    with Browser(tmp_path_factory.mktemp("chromium") / "profile") as browser:
        with served(1, learner={"kind": "perceptron"}, labels=ASKING) as worker:
            given = rows(300)
            worker.rows([row.features for row in given], [row.label for row in given])
            told = worker.labelled(300)["asked"]
            visit(browser, worker.url)
            counts = texts(browser, "#asked-counts td:last-child")
            assert [each.split(",")[0] for each in counts] == [
                str(told[name]) for name in ("labelled", "missing", "unasked_labelled", "unasked_missing")
            ]
            assert text(browser, "asked-note").startswith("Estimated mistakes in all 300 examples: ")
            assert wide_by(browser) <= 0
            photograph(browser, "asked")
        with served(1) as worker:
            visit(browser, worker.url)
            assert browser.ask("document.getElementById('asked').hidden") is True
        assert browser.problems == []
