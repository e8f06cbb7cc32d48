"""Each mutation of a learner still has its line to break."""

import pytest

from tests.gates.mutations import MUTATIONS, ROOT, Mutation


@pytest.mark.parametrize("kind", MUTATIONS)
def test_every_mutation_is_of_code_that_is_there(kind: str) -> None:
    """The source changes more often than the mutations are run."""
    gone = [one.what for one in MUTATIONS[kind] if isinstance(one, Mutation) and one.old not in source(one)]
    assert gone == []


def source(mutation: Mutation) -> str:
    return (ROOT / mutation.file).read_text()
