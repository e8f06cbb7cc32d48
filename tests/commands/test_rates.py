"""Of nothing there is no rate: null in JSON, a dash in tables, whichever command prints it."""

import json

import pytest

from mistakebound.core.messages.schema import encode
from mistakebound.core.records import Outgoing
from mistakebound.settings import Settings
from tests.commands.support.command_line import ok
from tests.commands.support.epochs import flags, work_on
from tests.worker.support.working import Run, opened

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.parametrize("labels", ["none", "unreadable"])
def test_the_status_of_a_stream_without_a_judged_label_has_no_rate(settings: Settings, labels: str) -> None:
    """Examples came; labels did not, or could not be read."""
    with opened(settings) as log:
        for n in range(5):
            key = str(n).encode()
            log.append([Outgoing("examples", 0, key, encode({"id": str(n), "features": {"a": 1.0}}))])
            if labels == "unreadable":
                log.append([Outgoing("labels", 0, key, encode({"id": str(n), "label": "what"}))])
        Run(log, settings)
    told = json.loads(ok("status", "--json", *flags(settings), log=None).stdout)
    text = ok("status", *flags(settings), log=None).stdout

    assert (told["examples"], told["mistake_rate"], told["baselines"]["majority"]["mistake_rate"]) == (
        5,
        None,
        None,
    )
    assert "mistakes         0 of 0 labelled, rate -\n" in text
    assert "always majority  0, rate -\n" in text
    assert (
        "rejected         5 labels; see mistakebound tail dead-letters --from beginning --json\n" in text
    ) is (labels == "unreadable")


def test_the_status_of_a_learner_that_is_worse_than_always_the_majority_says_so(settings: Settings) -> None:
    """In text and JSON, from the log alone."""
    with opened(settings) as log:
        for n in range(150):
            key = str(n).encode()
            log.append(
                [
                    Outgoing(
                        "examples", 0, key, encode({"id": str(n), "features": {"x": float(n % 5)}}), (), 2 * n
                    )
                ]
            )
            log.append(
                [Outgoing("labels", 0, key, encode({"id": str(n), "label": n % 3 == 1}), (), 2 * n + 1)]
            )
        Run(log, settings)
    told = json.loads(ok("status", "--json", *flags(settings), log=None).stdout)
    text = ok("status", *flags(settings), log=None).stdout

    assert told["worse_than_majority"] is True
    assert (
        f"always majority  {told['baselines']['majority']['mistakes']}, rate 0.3333: the learner is worse "
        in text
    )


def test_the_status_of_a_learner_that_is_not_worse_says_nothing(settings: Settings) -> None:
    """Neither field nor sentence."""
    with opened(settings) as log:
        work_on(log, settings)
    assert "worse" not in ok("status", "--json", *flags(settings), log=None).stdout
    assert "worse" not in ok("status", *flags(settings), log=None).stdout
