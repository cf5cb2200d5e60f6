"""Words are made at the edge, and no code reads one back: what is asked of a cycle is a declared field or a column."""

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from playground.clusters.models import Cycle
from scheduler_core.framework.record import Body, CycleFacts, CycleTrace
from tests.tables import table

ROOT = Path(__file__).resolve().parents[2]
WORDS = frozenset({"sentence", "headline", "message", "error", "fit_error"})
READING = frozenset(
    {"split", "rsplit", "partition", "rpartition", "removeprefix", "removesuffix", "replace", "startswith",
     "endswith", "find", "index"}
)  # fmt: skip
LOOKUPS = ("contains", "icontains", "startswith", "istartswith", "endswith", "iendswith", "regex", "iregex")
PATTERNS = frozenset({"search", "match", "fullmatch", "sub", "findall", "finditer", "split"})
RECORDS = frozenset(
    {"cycle", "trace", "record", "row", "told", "tick", "report", "result", "run", "decision"}
)
"""Names under which code has a cycle, its record or a run's report."""
_WORDS, _RECORDS = "|".join(sorted(WORDS)), "|".join(sorted(RECORDS))
MENTION = re.compile(rf"\b(?:{_RECORDS})\s*[.\[]\W*(?:{_WORDS})\b|(?:{_WORDS})__")
"""Of what is looked at more closely, which takes its time."""


def sources() -> Iterator[Path]:
    for package in ("playground", "scheduler_core"):
        yield from sorted((ROOT / package).rglob("*.py"))


def is_words(node: ast.AST) -> bool:
    """Whether an expression is the text of a record: `cycle.sentence`, `(trace.error or "")`, `told["message"]`."""
    match node:
        case ast.Attribute(value=ast.Name(id=name), attr=attribute):
            return name in RECORDS and attribute in WORDS
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=key)):
            return name in RECORDS and key in WORDS
        case ast.BoolOp(values=values):
            return any(is_words(value) for value in values)
        case ast.Call(func=ast.Name(id="str"), args=[inner]):
            return is_words(inner)
    return False


def readings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg and "__" in node.arg:
            field, _, lookup = node.arg.rpartition("__")
            if field.rpartition("__")[2] in WORDS and lookup in LOOKUPS:
                yield node.value.lineno, f"asks the database for {node.arg}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in READING and is_words(node.func.value):
                yield node.lineno, f"takes words apart with .{node.func.attr}"
            if node.func.attr in PATTERNS and any(is_words(argument) for argument in node.args):
                yield node.lineno, "matches words against a pattern"
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Constant):
            is_in = any(isinstance(operator, ast.In | ast.NotIn) for operator in node.ops)
            if is_in and any(is_words(side) for side in node.comparators):
                yield node.lineno, "looks for a phrase in words"


def test_no_code_reads_a_sentence_back() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {what}"
        for path in sources()
        if MENTION.search(text := path.read_text())
        for line, what in readings(ast.parse(text))
    ]
    assert found == []


@pytest.mark.parametrize("line", table(__file__, "the_scan_sees_what_it_is_for"))
def test_the_scan_sees_what_it_is_for(line: str) -> None:
    assert MENTION.search(line) and list(readings(ast.parse(line)))


def test_a_record_holds_declared_fields_and_nothing_else() -> None:
    record = CycleTrace(
        number=1, at_ns=0, pod="a/b", uid="u", profile="p", attempt=1, outcome="bound",
        n_nodes=1, n_evaluated=1, n_feasible=1,
    )  # fmt: skip
    for thing in (record, CycleTrace, Body):
        assert not hasattr(thing, "__dict__") or isinstance(thing, type)
    assert not hasattr(record, "header")
    with pytest.raises(AttributeError):
        record.newcomer = 1  # type: ignore[attr-defined]
    assert {declared.name for declared in fields(CycleTrace)} >= {
        "outcome", "node", "tie", "failed_point", "failed_plugin", "victims", "permit", "extenders", "body",
    }  # fmt: skip
    assert {"nodes", "amounts", "arrays", "verdicts"} <= {declared.name for declared in fields(Body)}


def test_a_stored_summary_has_every_field_a_sentence_is_made_of() -> None:
    wanted = {name for name in vars(CycleFacts) if not name.startswith("_")}
    columns = {field.name for field in Cycle._meta.concrete_fields}
    missing = {name for name in wanted if not hasattr(Cycle, name)}
    assert not missing
    assert set(Cycle.TOLD) <= columns
