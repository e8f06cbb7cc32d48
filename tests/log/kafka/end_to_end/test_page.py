"""Two workers on one topic, each with its own status page, in a real browser."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mistakebound.log import open_log
from mistakebound.settings import Settings
from tests.worker.support.browser import Browser
from tests.worker.support.page_shown import photograph, text, texts, title, visit
from tests.worker.support.page_worker import Served, working

pytestmark = pytest.mark.chromium


@pytest.fixture
def workers(kafka_bootstrap: str, prefix: str) -> Iterator[list[Served]]:
    """Two workers that share four partitions."""

    def settings(slot: str) -> Settings:
        return Settings.model_validate(
            {
                "log": {"url": f"kafka://{kafka_bootstrap}", "prefix": prefix},
                "labels": {"max_delay": 1_000},
                "learner": {"kind": "perceptron", "gamma": 0.001},
                "checkpoint": {"url": ""},
                "http": {"address": "127.0.0.1:0"},
                "worker": {"slot": slot},
            }
        )

    with ExitStack() as held:
        logs = [held.enter_context(open_log(settings(slot))) for slot in ("one", "two")]
        logs[0].create_topics(4, {})
        yield [
            held.enter_context(working(log, settings(slot)))
            for log, slot in zip(logs, ("one", "two"), strict=True)
        ]


def _owned(told: Any) -> set[int]:
    return {each["partition"] for each in told["worker"]["partitions"]}


def test_each_page_speaks_of_its_own_partitions_and_of_one_model(
    workers: list[Served], tmp_path: Path
) -> None:
    """Together they own all partitions once and count every label once; both hold the same model."""
    one, two = workers
    two.until(lambda told: len(_owned(told)) == 2 == len(_owned(one.status())))
    random = Random(4)
    features = [{"across": random.uniform(-1, 1), "up": random.uniform(-1, 1)} for _ in range(200)]
    one.rows(features, [x["across"] > x["up"] for x in features])

    def settled(told: Any) -> bool:
        other = one.status()
        same = told["model"] == other["model"] and sum(told["model"]["updates"])
        return bool(same) and told["labelled"] + other["labelled"] == 200

    second = two.until(settled)
    first = one.status()
    assert _owned(first) | _owned(second) == {0, 1, 2, 3}
    assert not _owned(first) & _owned(second)
    assert first["model"]["digest"] == second["model"]["digest"]
    assert first["updates"] + second["updates"] == sum(first["model"]["updates"])

    with Browser(tmp_path / "profile") as browser:
        for worker, slot in ((one, "one"), (two, "two")):
            told = worker.status()
            visit(browser, worker.url)
            owned = ", ".join(map(str, sorted(_owned(told))))
            assert text(browser, "scope") == (
                f"worker {slot}, partitions {owned} of 4; other workers have the rest"
            )
            assert text(browser, "mistakes-of").startswith(f"in {told['labelled']} labelled")
            assert texts(browser, "#partitions th") == owned.split(", ")
            assert set(texts(browser, "dt .own, h2 .own")) == {" (this worker)"}
            assert set(texts(browser, "dt .all, h2 .all")) == {" (all workers)"}
            assert text(browser, "updates") == str(sum(told["model"]["updates"]))
            assert f"{told['updates']} for life by this worker" in text(browser, "updates-of")
            whose = [each.split(", ")[1] for each in texts(browser, ".bound p span")]
            assert whose == ["all workers", "this worker"]
            prefix = told["worker"]["prefix"]
            assert title(browser).endswith(f" · {prefix} · {prefix}examples, {prefix}labels · {slot}")
            photograph(browser, f"worker-{slot}")
        assert browser.problems == []
