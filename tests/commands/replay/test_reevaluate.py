"""`replay --reevaluate` tells what the wait for labels did to predictions."""

import json
from importlib.resources import files

import pytest

from tests.commands.support.command_line import ok, run

PAGES = str(files("mistakebound.commands.demo").joinpath("data/phishing.csv"))
ASKED = ("--delay", "100", "--reevaluate", "4", "--quiet", "--set=learner.kind=perceptron")


def test_it_prints_a_row_for_each_time() -> None:
    """From the published prediction to the one when the label came, which is the textbook's: 205 mistakes."""
    printed = ok("replay", PAGES, *ASKED, log=None).stdout.splitlines()
    assert printed[-7].split() == ["waited", "mistakes", "rate"]
    assert printed[-6].startswith("predicted at once    228 ")
    assert printed[-2].startswith("when the label came  205 ")
    assert printed[-1].startswith("volatility ")


def test_the_report_holds_it_only_where_it_was_asked_for() -> None:
    """And it can be expected."""
    told = json.loads(ok("replay", PAGES, *ASKED, "--json", log=None).stdout)
    assert told["reevaluation"]["mistakes"][0] == told["mistakes"] == 228
    assert "reevaluation" not in json.loads(ok("replay", PAGES, "--quiet", "--json", log=None).stdout)
    ok("replay", PAGES, *ASKED, "--expect", "reevaluation.mended > 100", log=None)


@pytest.mark.parametrize("other", [("--epochs", "2"), ("--shuffle",)])
def test_it_is_for_one_pass(other: tuple[str, ...]) -> None:
    """Which of several would be told?"""
    refused = run("replay", PAGES, *ASKED, *other, log=None)
    assert refused.exit_code == 2
    assert "--reevaluate is for one pass" in refused.stderr
