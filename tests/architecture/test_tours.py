"""The readers' tours: each of their links leads to a function of that name in that file."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STEP = re.compile(r"^\d+\. \[`([\w.]+)`\]\(([\w/.]+)#([\w.]+)\)", re.MULTILINE)
MOST_STEPS = 25


def functions(path: Path) -> set[str]:
    """Functions of a file, those of its classes as `Class.function`."""
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        before = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        found |= {
            before + one.name for one in inside if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
        }
    return found


@pytest.mark.parametrize("package", ["playground", "scheduler_core"])
def test_every_step_of_a_tour_is_a_function_that_is_there(package: str) -> None:
    text = (ROOT / package / "README.md").read_text()
    numbered = re.findall(r"^(\d+)\. ", text, re.MULTILINE)
    steps = STEP.findall(text)
    assert [int(number) for number in numbered] == list(range(1, len(steps) + 1))
    assert 15 <= len(steps) <= MOST_STEPS
    for words, file, name in steps:
        assert words == name, (file, words, name)
        assert name in functions(ROOT / package / file), f"{package}/README.md: {file} has no function {name}"
