"""`learners`: every learner and every concept class."""

import json

from mistakebound.core.learners import KINDS
from mistakebound.core.learners.concepts import NAMES
from mistakebound.core.learners.elimination import CLASSES
from mistakebound.settings import Settings
from tests.commands.support.command_line import ok

EXAMPLE = Settings().learner


def test_every_learner_is_listed_with_what_is_proved_of_it() -> None:
    """Source, settings, bound and sharing of each, as text and as JSON."""
    listed = json.loads(ok("learners", "--json", log=None).stdout)
    text = ok("learners", log=None).stdout

    assert [one["kind"] for one in listed] == list(KINDS)
    for one in listed:
        assert all(one[key] for key in ("source", "parameters", "bound", "bounds", "shared", "features"))
        assert all(hasattr(EXAMPLE, key) for key in one["parameters"])
        assert set(one["needs"]) <= set(one["parameters"])
        assert f"{one['kind']}\n  source      {one['source']}\n" in text


def test_every_concept_class_is_listed_with_the_learners_that_take_it() -> None:
    """The names are those that `learner.concepts` takes."""
    listed = json.loads(ok("learners", "--concepts", "--json", log=None).stdout)

    assert {one["name"] for one in listed} == {*NAMES, *CLASSES}
    assert {one["name"] for one in listed if "elimination" in one["learners"]} == set(CLASSES)
