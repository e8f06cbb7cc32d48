"""Each mutation still has its line to break, and each guard tests that may notice."""

import pytest

from tests.gates.mutations.guards import GUARDS
from tests.gates.mutations.learners import MUTATIONS
from tests.gates.mutations.mutation import Guard, Mutation, code_of
from tests.support.project import ROOT


@pytest.mark.parametrize("kind", MUTATIONS)
def test_every_mutation_is_of_code_that_is_there(kind: str) -> None:
    """Code that moved or changed takes its mutations along; a mutation of nothing would prove nothing."""
    assert [one for one in MUTATIONS[kind] if one.old not in code(one)] == []


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.what.replace(" ", "-"))
def test_every_guard_is_there_once(guard: Guard) -> None:
    """As in `tests/faults/sabotage.py`: where a line comes twice, breaking the first may prove nothing."""
    assert code(guard.mutation).count(guard.old) == 1
    assert guard.new != guard.old
    file, _, name = guard.test.partition("::")
    assert f"def {name.partition('[')[0]}(" in (ROOT / "tests" / file).read_text()


def test_no_two_guards_have_one_name() -> None:
    assert len({guard.what for guard in GUARDS}) == len(GUARDS)


def code(one: Mutation) -> str:
    """Of the file to break, without the module's docstring, which may say the same."""
    return code_of((ROOT / one.file).read_text())[1]
