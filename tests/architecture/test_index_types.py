"""What indexes an array is `np.intp`: where that has 32 bits, as in a browser, NumPy takes no int64 in its place."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.tables import table

ROOT = Path(__file__).resolve().parents[2] / "scheduler_core"
PLACE_OF_INDEX = {"take": 0, "bincount": 0, "repeat": -1, "reduceat": 1, "split": 1, "at": 1, "compress": 0}
"""Routine -> which of its arguments indexes; `array.repeat(counts)` has it last as `np.repeat(array, counts)` has."""


class Use(NamedTuple):
    """A name in a function, or an attribute of anything, that is bound to int64 or indexes."""

    scope: str
    name: str
    line: int


def _name(node: ast.expr) -> str:
    """The variable or `.attribute` an array is read from, whole or in part; empty for what is computed."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Attribute):
        return f".{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _indices(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Subscript):
        slices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        # `of_class[pod.priority]` looks one thing up.
        yield from (one for one in slices if not isinstance(one, ast.Attribute))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        place = PLACE_OF_INDEX.get(node.func.attr)
        if place is not None and -1 <= place < len(node.args) and node.args:
            yield node.args[place]


def _is_int64(node: ast.AST | None, aliases: set[str]) -> bool:
    """Whether an array's type, or what makes the array, says int64 at its outermost."""
    if isinstance(node, ast.Call):
        given = [*node.args, *(word.value for word in node.keywords)]
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call):
            return any(map(_says_int64, given)) or (
                node.func.attr in ("reshape", "copy") and _is_int64(node.func.value, aliases)
            )
        return any(map(_says_int64, given))
    if isinstance(node, ast.Attribute) and node.attr == "T":
        return _is_int64(node.value, aliases)
    if isinstance(node, ast.Subscript):
        return ast.unparse(node) == "NDArray[np.int64]"
    return isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node).removeprefix("fw.") in aliases


def _says_int64(node: ast.expr) -> bool:
    return ast.unparse(node) == "np.int64"


def aliases_in(tree: ast.Module) -> set[str]:
    return {
        ast.unparse(node.targets[0])
        for node in tree.body
        if isinstance(node, ast.Assign) and _is_int64(node.value, set())
    }


def uses(tree: ast.Module, aliases: set[str], file: str = "") -> tuple[list[Use], list[Use]]:
    """(what is bound to int64, what indexes) in a module."""
    bound, indexing = [], []

    def visit(node: ast.AST, scope: str) -> None:
        if isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            scope = f"{file}:{node.lineno}"
        is_class = isinstance(node, ast.ClassDef)
        for child in ast.iter_child_nodes(node):
            for index in _indices(child):
                if name := _name(index):
                    indexing.append(Use("" if name[0] == "." else scope, name, child.lineno))
            targets: list[ast.expr] = []
            if isinstance(child, ast.Assign) and _is_int64(child.value, aliases):
                targets = [
                    t for one in child.targets for t in (one.elts if isinstance(one, ast.Tuple) else [one])
                ]
            if isinstance(child, ast.AnnAssign) and _is_int64(child.annotation, aliases):
                targets = [child.target]
            for target in targets:
                name = _name(target) if not isinstance(target, ast.Subscript) else ""
                if name:
                    name = f".{name}" if is_class else name
                    bound.append(Use("" if name[0] == "." else scope, name, target.lineno))
            if isinstance(child, ast.arg) and _is_int64(child.annotation, aliases):
                bound.append(Use(scope, child.arg, child.lineno))
            visit(child, scope)

    visit(tree, file)
    return bound, indexing


def test_nothing_that_indexes_is_bound_to_int64() -> None:
    trees = {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}
    aliases = {name for tree in trees.values() for name in aliases_in(tree)}
    bound: dict[tuple[str, str], str] = {}
    indexing: dict[tuple[str, str], str] = {}
    for file, tree in trees.items():
        for found, known in zip(uses(tree, aliases, file), (bound, indexing), strict=True):
            known.update(((use.scope, use.name), f"{file}:{use.line} {use.name}") for use in found)
    assert len(indexing) > 300 and len(bound) > 100
    assert [f"{bound[key]}, which indexes at {indexing[key]}" for key in bound.keys() & indexing.keys()] == []


@pytest.mark.parametrize(
    ("source", "found"),
    table(__file__, "it_is_seen"),
)
def test_it_is_seen(source: str, found: bool) -> None:
    tree = ast.parse(source)
    bound, indexing = uses(tree, aliases_in(tree))
    assert bool({use[:2] for use in bound} & {use[:2] for use in indexing}) is found
