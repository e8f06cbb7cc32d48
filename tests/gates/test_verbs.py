"""The verbs of the command line stand side by side."""

from itertools import permutations

import grimp

from mistakebound.commands.app import VERBS


def test_no_verb_imports_another() -> None:
    """Not even by a detour: what two verbs need has a module of its own."""
    graph = grimp.build_graph("mistakebound", include_external_packages=False)
    modules = {place.partition(":")[0] for place in VERBS.values()}
    chains = [graph.find_shortest_chain(*pair) for pair in permutations(sorted(modules), 2)]

    assert modules <= graph.modules
    assert [chain for chain in chains if chain is not None] == []
