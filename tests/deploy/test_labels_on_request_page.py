"""What the page on labels on request counts is what the program counts."""

import re
from statistics import mean, stdev

import pytest

from mistakebound.commands.demo.pages import read_pages
from mistakebound.core.replay.replay import replay_rows, report_of
from mistakebound.core.reporting.report import AskedLabels, Report
from mistakebound.settings import Settings
from tests.deploy.support.pages import DEPLOY, section

PAGE = DEPLOY / "labels-on-request.md"
SEEDS = range(20)


def rows() -> list[list[str]]:
    """Of the table, without its head."""
    lines = [
        line for line in section(PAGE, "What it saves").splitlines() if re.match(r"\| (all|[0-9.]+) \|", line)
    ]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


@pytest.mark.long
@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_the_table_is_what_comes_of_it(row: list[str]) -> None:
    """Twenty replays of the demo's pages for each rate."""
    rate, *figures = row
    if rate == "all":
        every = replayed({})
        assert figures == [str(every.labelled), f"{every.mistakes:.1f}", "", ""]
        return
    reports = [replayed({"ask": float(rate), "ask_seed": seed}) for seed in SEEDS]
    errors = [asked_of(one).estimated_mistakes - one.mistakes for one in reports]
    assert figures == [
        f"{mean(asked_of(one).labelled for one in reports):.0f}",
        f"{mean(one.mistakes for one in reports):.1f}",
        f"{mean(asked_of(one).estimated_mistakes for one in reports):.1f}",
        f"{stdev(errors):.1f}",
    ]


def replayed(labels: dict[str, float]) -> Report:
    settings = Settings.model_validate({"learner": {"kind": "perceptron"}, "labels": labels})
    return report_of(replay_rows(read_pages(), settings, 1))


def asked_of(report: Report) -> AskedLabels:
    assert report.asked is not None
    return report.asked
