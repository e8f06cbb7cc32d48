"""`export`: the weights of a log's model, or a checkpoint's, as scikit-learn reads them."""

import io
import json
import pathlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.linear_model
from sklearn.linear_model import SGDClassifier

from mistakebound.core.messages.schema import read_prediction
from mistakebound.settings import Settings
from tests.commands.support.command_line import ok, run
from tests.commands.support.epochs import work_on
from tests.deploy.support.pages import DEPLOY, blocks
from tests.worker.support.working import Run, altered, example, opened

pytestmark = pytest.mark.usefixtures("quiet")

AVERAGED = {"learner": {"kind": "averaged-perceptron", "learning_rate": 0.5}, "labels": {"max_delay": 86_400}}
FRESH = [{"a": 0.5, "b1": 1.0}, {"a": -2.0}, {"b2": 3.0, "never seen": 1.0}, {}]


def flags(settings: Settings) -> list[str]:
    return ["--log", settings.log.url or "", f"--set=log.prefix={settings.log.prefix}"]


@pytest.fixture(params=[1, 3])
def worked(settings: Settings, request: pytest.FixtureRequest) -> tuple[Settings, list[float]]:
    """A log on which a worker learned, and the scores that it published afterwards."""
    other = altered(settings, **AVERAGED, checkpoint={"url": "kept"})
    with opened(other, request.param) as log:
        work_on(log, other)
        log.append([example(900 + n, x, 9_000, request.param) for n, x in enumerate(FRESH)])
        Run(log, other)
        records = [each for p in range(request.param) for each in log.read("predictions", p, 0)]
    published: dict[str, Any] = {each.id: each.score for each in map(read_prediction, records)}
    return other, [published[f"i{900 + n}"] for n in range(len(FRESH))]


def rows(features: list[str]) -> np.ndarray:
    return np.array([[float(x.get(name, 0.0)) for name in features] for x in FRESH])


def test_scikit_learn_says_what_the_worker_published(
    worked: tuple[Settings, list[float]], tmp_path: Path
) -> None:
    """By the lines of the page on learners, from JSON; of an average with the labels that were known."""
    settings, published = worked
    ok("export", "--out", "model.json", *flags(settings), log=None)
    (lines,) = (block for block in blocks(DEPLOY / "learners.md", "python") if "SGDClassifier" in block)
    names: dict[str, Any] = {"json": json, "pathlib": pathlib, "np": np, "sklearn": sklearn}
    exec(lines, names)
    found = json.loads(Path("model.json").read_bytes())
    scores = names["linear"].decision_function(rows(found["features"]))
    np.testing.assert_allclose(scores, published, rtol=1e-9)
    assert len(set(published)) > 2


def test_numpys_arrays_hold_the_same(worked: tuple[Settings, list[float]]) -> None:
    """Loaded without pickle; the rest is JSON."""
    settings, published = worked
    content = ok("export", "--format", "npz", *flags(settings), log=None).stdout_bytes
    found = np.load(io.BytesIO(content), allow_pickle=False)
    linear = SGDClassifier()
    linear.classes_, linear.coef_, linear.intercept_ = found["classes"], found["coef"], found["intercept"]
    np.testing.assert_allclose(linear.decision_function(rows(list(found["features"]))), published, rtol=1e-9)
    assert json.loads(str(found["about"]))["learner"] == "averaged-perceptron"


def test_a_checkpoint_is_exported_by_its_listed_name(worked: tuple[Settings, list[float]]) -> None:
    """The newest holds what the log does."""
    settings, _ = worked
    place = [*flags(settings), "--set=checkpoint.url=kept"]
    name = json.loads(ok("checkpoint", "list", "--json", *place, log=None).stdout)[-1]["file"]
    of_checkpoint, of_log = (
        json.loads(ok("export", *which, *place, log=None).stdout) for which in ([name], [])
    )
    assert of_checkpoint == of_log
    assert of_log["digest"] == json.loads(ok("checkpoint", "show", name, *place, log=None).stdout)["digest"]


def test_what_has_no_weights_is_refused_by_name(settings: Settings) -> None:
    """Exit code 3, and nothing on stdout."""
    other = altered(settings, learner={"kind": "voted-perceptron"}, labels={"max_delay": 86_400})
    with opened(other) as log:
        work_on(log, other)
    refused = run("export", *flags(other), log=None)
    assert (refused.exit_code, refused.stdout) == (3, "")
    assert "learner.kind = voted-perceptron" in refused.stderr


def test_a_log_that_has_learned_nothing_is_told_from_an_empty_model(settings: Settings) -> None:
    """No epoch has begun."""
    with opened(settings):
        pass
    refused = run("export", *flags(settings), log=None)
    assert refused.exit_code == 3
    assert "no epoch" in refused.stderr


def test_an_output_that_cannot_be_written_is_named(worked: tuple[Settings, list[float]]) -> None:
    """Exit code 2."""
    refused = run("export", "--out", "no/such/folder.json", *flags(worked[0]), log=None)
    assert refused.exit_code == 2
    assert "no/such/folder.json cannot be written" in refused.stderr
