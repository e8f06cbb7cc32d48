"""The image, built once for all tests."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.image.engine import Engine, Unavailable
from tests.support.project import ROOT

PREPARED = "MISTAKEBOUND_TEST_IMAGE_FOLDER"
ARGUMENTS = "MISTAKEBOUND_TEST_IMAGE_ARGUMENTS"
TAG = "localhost/mistakebound"


def arguments() -> dict[str, str]:
    """Of the build: interpreted, for a compiler takes minutes, unless the variable has others."""
    given = os.environ.get(ARGUMENTS, "COMPILED=0 EXTRAS=confluent,msk")
    return dict(pair.split("=", 1) for pair in given.split())


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """It holds the image `TAG`."""
    prepared = os.environ.get(PREPARED)
    try:
        held = Engine(None if prepared is None else Path(prepared))
    except Unavailable as reason:
        pytest.fail(str(reason), pytrace=False)
    try:
        held.prepare()
        held.build(ROOT, TAG, **arguments())
        yield held
    except Unavailable as reason:
        pytest.fail(str(reason), pytrace=False)
    finally:
        if prepared is None:
            held.close()
