"""What may be compiled: code that then does the same."""

import ast
from collections.abc import Iterator

import pytest

from tests import compiled
from tests.support.project import SOURCE

NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
BROKEN_OFF = """
def first(records):
    try:
        for record in records:
            yield record
    finally:
        records.close()
"""
"""Compiled, it does not close the records once it is thrown away."""
SAFE = """
def all_of(records):
    def each():
        try:
            return next(records)
        finally:
            count()
    while True:
        yield each()

@contextmanager
def open_for_a_while(records):
    try:
        yield
    finally:
        records.close()
"""
"""The first ends what it tries before it yields; whoever uses the second always takes it to its end."""


def own(node: ast.AST) -> Iterator[ast.AST]:
    """What lies within a node, without the functions that are defined there."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, NESTED):
            yield child
            yield from own(child)


def yields(node: ast.AST) -> bool:
    return any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in own(node))


def needs_its_end(source: str) -> list[str]:
    """Generators that have something left to do when they are thrown away unfinished."""
    return [
        function.name
        for function in ast.walk(ast.parse(source))
        if isinstance(function, ast.FunctionDef)
        and "contextmanager" not in map(ast.unparse, function.decorator_list)
        for part in own(function)
        if (isinstance(part, ast.With) or (isinstance(part, ast.Try) and part.finalbody)) and yields(part)
    ]


@pytest.mark.parametrize("name", compiled.named())
def test_no_generator_of_a_compiled_module_has_something_left_to_do(name: str) -> None:
    """Compiled by mypyc, it would never do it: a reader of one record, say, would keep its connection for good."""
    assert needs_its_end((SOURCE / f"{name.replace('.', '/')}.py").read_text()) == []


def test_a_generator_with_something_left_to_do_is_found() -> None:
    assert (needs_its_end(BROKEN_OFF), needs_its_end(SAFE)) == (["first"], [])
