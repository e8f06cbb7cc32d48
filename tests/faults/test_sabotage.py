"""The table of guards is kept up with the code: each can still be taken away, and has a test that must notice."""

import pytest

from tests.faults.sabotage import GUARDS, ROOT, Guard, code_of


@pytest.mark.parametrize("guard", GUARDS.values(), ids=GUARDS)
def test_every_guard_is_there_once(guard: Guard) -> None:
    """The text to replace occurs once in the code of its file, and the test exists."""
    _, code = code_of((ROOT / guard.file).read_text())
    assert code.count(guard.old) == 1
    assert (ROOT / "tests" / guard.test.partition("::")[0]).exists()
