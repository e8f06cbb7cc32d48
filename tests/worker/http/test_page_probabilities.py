"""Probabilities on the status page, in a real Chromium and as JSON."""

from random import Random

import pytest

from mistakebound.core.replay.replay import Row
from mistakebound.settings import Settings
from tests.worker.support.browser import Browser
from tests.worker.support.page_shown import photograph, text, texts, visit, wide_by
from tests.worker.support.page_steps import as_json, told_of
from tests.worker.support.page_worker import served

PROBABLE = {"probability": True}


def rows(count: int) -> list[Row]:
    """Labels are coins whose side follows the example."""
    random = Random(3)
    found = []
    for number in range(count):
        x = random.uniform(-1, 1)
        found.append(Row(str(number), {"x": x}, random.random() < 0.5 + x / 2))
    return found


def test_the_status_has_the_diagram_and_the_brier_score() -> None:
    """Twenty bins in ascending order; those without a label have neither mean nor share."""
    found = as_json(told_of(Settings.model_validate({"predictions": PROBABLE}), rows(300)))["probabilities"]
    assert found["labelled"] == sum(one["labelled"] for one in found["bins"]) == 300
    assert [one["low"] for one in found["bins"]] == [n / 20 for n in range(20)]
    assert 0 < found["brier_score"] < found["brier_score_of_share"]
    assert all((one["observed"] is None) is (one["labelled"] == 0) for one in found["bins"])


def test_without_the_setting_the_status_says_nothing_of_probabilities() -> None:
    """As earlier versions."""
    assert "probabilities" not in as_json(told_of(Settings(), rows(20)))


@pytest.mark.chromium
@pytest.mark.long
def test_the_page_draws_the_reliability_diagram(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A dot and a row for each bin that has labels; hidden where there are no probabilities."""
    with Browser(tmp_path_factory.mktemp("chromium") / "profile") as browser:
        with served(1, predictions=PROBABLE) as worker:
            given = rows(400)
            worker.rows([row.features for row in given], [row.label for row in given])
            told = worker.labelled(400)["probabilities"]
            visit(browser, worker.url)
            bins = [one for one in told["bins"] if one["labelled"]]
            assert texts(browser, "#reliability-bins td:last-child") == [str(one["labelled"]) for one in bins]
            assert browser.ask("document.querySelectorAll('#reliability circle').length") == len(bins)
            assert "Brier score" in text(browser, "probable-note")
            assert wide_by(browser) <= 0
            photograph(browser, "probabilities")
            browser.look(width=375)
            assert wide_by(browser) <= 0
            browser.look()
        with served(1) as worker:
            visit(browser, worker.url)
            assert browser.ask("document.getElementById('probable').hidden") is True
        assert browser.problems == []
