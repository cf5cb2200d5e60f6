"""What the documentation shows is what happens: every example in README and docstrings is run."""

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import scheduler_core

PACKAGE = Path(scheduler_core.__file__).parent
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages([str(PACKAGE)], "scheduler_core.")
    if not module.name.endswith("__main__")
)


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("README.md")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_examples_of_a_readme_run(path: Path) -> None:
    failed, _ = doctest.testfile(str(path), module_relative=False)
    assert failed == 0


def test_examples_of_docstrings_run() -> None:
    n_run = 0
    for name in MODULES:
        result = doctest.testmod(importlib.import_module(name))
        assert result.failed == 0, name
        n_run += result.attempted
    assert n_run > 20
