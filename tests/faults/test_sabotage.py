"""The table of guards is kept up with the code: each can still be taken away, and has a test that must notice."""

import pytest

from tests.faults.sabotage import GUARDS, ROOT, Guard, code_of
from tests.simulate.seeds import TRAPS


@pytest.mark.parametrize("guard", GUARDS.values(), ids=GUARDS)
def test_every_guard_is_there_once(guard: Guard) -> None:
    """The text to replace occurs once in the code of its file, and the test exists."""
    _, code = code_of((ROOT / guard.file).read_text())
    assert code.count(guard.old) == 1
    assert (ROOT / "tests" / guard.test.partition("::")[0]).exists()


@pytest.mark.parametrize("guard", GUARDS.values(), ids=GUARDS)
def test_every_guard_of_a_client_is_a_trap_of_the_models_client_or_beyond_it(guard: Guard) -> None:
    """What the model replaces cannot be sabotaged there: then the table says what stands for it, or why nothing does."""
    assert not (guard.trap and guard.beyond)
    assert guard.trap in ("", *TRAPS)
    if "/kafka_python/" in guard.file or "/confluent/" in guard.file:
        assert guard.trap or guard.beyond
