"""What the documentation shows is what happens: every example in READMEs and docstrings is run."""

import doctest
import importlib
from pathlib import Path

import scheduler_core

PACKAGE = Path(scheduler_core.__file__).parent


def with_examples(pattern: str) -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob(pattern)) if ">>>" in path.read_text()]


def test_examples_of_readmes_run() -> None:
    paths = with_examples("README.md")
    assert paths and all(doctest.testfile(str(path), module_relative=False).failed == 0 for path in paths)


def test_examples_of_docstrings_run() -> None:
    n_run = 0
    for path in with_examples("*.py"):
        name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        result = doctest.testmod(importlib.import_module(name.removesuffix(".__init__")))
        assert result.failed == 0, name
        n_run += result.attempted
    assert n_run > 20
