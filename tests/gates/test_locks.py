"""The locks: every version that is installed, and of what a worker needs every file, by its hash."""

import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import requires, version
from typing import NamedTuple

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.project import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


class Pin(NamedTuple):
    """One version of a distribution, and where it is installed."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]

    @property
    def is_for_here(self) -> bool:
        return not self.marker or Marker(self.marker).evaluate()


def pins(file: str) -> Iterator[Pin]:
    """A lock as uv writes it: `name==version ; marker`, and below it the hashes."""
    text = (ROOT / file).read_text().replace("\\\n", " ")
    for line in text.splitlines():
        pinned = re.fullmatch(r"([a-z0-9.-]+)==(\S+)(?: ; (.*?))?((?:\s+--hash=\S+)*)\s*", line)
        assert pinned is not None, line
        name, number, marker, hashes = pinned.groups()
        yield Pin(name, number, marker or "", tuple(hashes.split()))


LOCK, HASHES = (tuple(pins(file)) for file in ("requirements.lock", "requirements.hashes"))


def needed(texts: list[str]) -> set[str]:
    """The distributions that these requirements come to, here and now, by name."""
    found: set[str] = set()
    missing = [(Requirement(text), "") for text in texts]
    while missing:
        one, extra = missing.pop()
        if one.marker is not None and not one.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(one.name)
        for wanted in (one.extras or {""}) if name not in found else one.extras:
            missing += [(Requirement(text), wanted) for text in requires(name) or ()]
        found.add(name)
    return found


def test_every_requirement_of_the_project_is_met_by_the_lock() -> None:
    """Of the worker and of all extras."""
    locked = {pin.name: pin.version for pin in LOCK if pin.is_for_here}
    texts = [
        *PROJECT["dependencies"],
        *(each for extra in PROJECT["optional-dependencies"].values() for each in extra),
    ]
    wrong = [
        str(one)
        for one in map(Requirement, texts)
        if locked.get(canonicalize_name(one.name), "none") not in one.specifier
    ]
    assert wrong == []
    installed = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["test"]]
    assert needed(installed) <= set(locked)


def test_what_the_tests_ran_with_is_what_is_locked() -> None:
    """Each distribution that a worker needs, as it is installed here."""
    locked = {pin.name: pin.version for pin in LOCK if pin.is_for_here}
    found = needed(PROJECT["dependencies"])
    assert {name: version(name) for name in found} == {name: locked[name] for name in found}


def test_a_worker_needs_what_has_hashes_and_nothing_else() -> None:
    """Its closure; no test's."""
    assert {pin.name for pin in HASHES if pin.is_for_here} == needed(PROJECT["dependencies"])


EXTRAS = {file.stem: tuple(pins(f"deploy/extras/{file.name}")) for file in (ROOT / "deploy/extras").iterdir()}


def test_what_an_extra_adds_to_the_image_has_hashes() -> None:
    """Each extra that a worker may have has its file, with what is locked; where the extra is installed here, all of it."""
    assert set(EXTRAS) == set(PROJECT["optional-dependencies"]) - {"comparators", "test"}
    locked = {(pin.name, pin.version) for pin in LOCK}
    for name, held in EXTRAS.items():
        assert all(pin.hashes for pin in held)
        assert {(pin.name, pin.version) for pin in held} <= locked
        texts = PROJECT["optional-dependencies"][name]
        assert {canonicalize_name(Requirement(text).name) for text in texts} <= {pin.name for pin in held}
        if name != "kerberos":  # its library is not installed for the tests
            assert needed(texts) == {pin.name for pin in held if pin.is_for_here}


def test_both_locks_have_the_same_versions() -> None:
    """One was made with the other as constraint: the same pins, under the same conditions or wider ones."""
    versions = {(pin.name, pin.version) for pin in LOCK}
    assert [pin.name for pin in HASHES if (pin.name, pin.version) not in versions] == []


def test_each_file_is_known_by_its_hash() -> None:
    """SHA-256, of a wheel for this machine and for others."""
    assert all(pin.hashes for pin in HASHES)
    wrong = [
        each for pin in HASHES for each in pin.hashes if not re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", each)
    ]
    assert wrong == []


def test_the_newest_changes_are_those_of_this_version() -> None:
    """The page of changes begins with what pyproject.toml is about to release."""
    headings = re.findall(r"^## (\S+)", (ROOT / "deploy/CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == PROJECT["version"]
