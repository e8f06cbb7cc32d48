"""The demo goes on where it was killed, on the same file, and ends with the numbers of an uninterrupted run."""

import json
import time
from pathlib import Path

import pytest

from mistakebound.log import open_log
from mistakebound.settings import LogSettings, Settings
from tests.faults.support.chance import chance_of
from tests.faults.support.children import Child, Children, until
from tests.faults.support.recount import recount

pytestmark = pytest.mark.long

PAGES = 1_250
DEMO = ("demo", "--once", "--rate", "400", "--json", "--log")


def test_the_demo_killed_three_times_predicts_and_learns_every_page_once(
    tmp_path: Path, children: Children
) -> None:
    """Started again on the same file it predicts every page once and applies every label once, and its
    report is what a recount of its own log gives, the model's digest included."""
    chance = chance_of("killed demo")
    url = f"sqlite:{tmp_path / 'demo.db'}"
    for number in range(3):
        demo = children.start(*DEMO, url, "--set", "http.address=127.0.0.1:0")
        moment = round(2 * PAGES * (number + chance.uniform(0.3, 1)) / 4)
        until(lambda now=moment: consumed(demo, url) >= now, 60, f"{moment} are consumed", demo)  # noqa: B023
        time.sleep(chance.uniform(0, 0.05))
        demo.kill()
        assert consumed(demo, url) < 2 * PAGES, "it was killed too late"
    report = json.loads(children.ok(*DEMO, url, "--set", "http.address=127.0.0.1:0"))

    with open_log(Settings(log=LogSettings(url=url))) as log:
        found = recount(log)
    assert len(found.predictions) == len(found.judged) == PAGES
    assert found.labels == {"applied": PAGES}
    assert (report["examples"], report["labelled"], report["waiting"], report["parked"]) == (
        PAGES,
        PAGES,
        0,
        0,
    )
    assert report["mistakes"] == found.mistakes
    assert report["updates"] == sum(found.updates)
    assert report["model"]["updates"] == found.updates
    assert report["model"]["digest"] == found.digest


def consumed(demo: Child, url: str) -> int:
    """Input records behind the committed positions; 0 before the topics are there."""
    if "metrics on" not in demo.err():
        return 0
    with open_log(Settings(log=LogSettings(url=url))) as log:
        positions = log.group_positions().values()
    return sum(0 if at is None else at.examples + at.labels for at in positions)
