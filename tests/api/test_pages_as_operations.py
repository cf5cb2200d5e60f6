"""Every action of every page is an operation.

A new page that takes POST needs a line in `PAGES`, a service that pages call needs to be called by this API's views or
a line in `ELSEWHERE`, in the YAML beside: the operation that does it, or why there is none.
"""

import ast
import pkgutil
from inspect import Parameter, isfunction, ismodule, signature
from pathlib import Path
from typing import Any, Final

import pytest

from playground.api.documentation import METHODS, document
from tests.tables import table
from tests.web.routes import ROUTES

ROOT = Path(__file__).resolve().parents[2] / "playground"


PAGES: Final[dict[str, list[str] | str]] = table(__file__, "PAGES")
"""Page -> its operations, or why there is none."""

ELSEWHERE: Final[dict[str, list[str] | str]] = table(__file__, "ELSEWHERE")
"""Services that pages call and this API's views do not."""


def operation_ids() -> set[str]:
    return {
        item[method]["operationId"]
        for item in document()["paths"].values()
        for method in METHODS
        if method in item
    }


POSTED_TO: Final = {
    name for name, route in ROUTES.items() if "POST" in getattr(route.callback, "methods", ())
}


def test_every_page_that_takes_an_action_names_its_operations() -> None:
    assert POSTED_TO - set(PAGES) == set(), (
        "a page's action without an operation: add one, and a line to PAGES"
    )
    assert set(PAGES) - POSTED_TO == set(), "PAGES names what is no page any more"


def test_the_operations_named_are_there() -> None:
    known = operation_ids()
    for name, told in [*PAGES.items(), *ELSEWHERE.items()]:
        if not isinstance(told, str):
            assert set(told) <= known and told, (name, set(told) - known)


def services_called(folder: Path) -> dict[str, str]:
    """Services that a folder's modules call -> one of these modules.

    What changes something is handed everything by name, which tells it from what only reads.
    """
    found = {}
    for path in sorted(folder.rglob("*.py")):
        tree = ast.parse(path.read_text())
        here: dict[str, Any] = {}
        for node in ast.walk(tree):
            module_name = getattr(node, "module", None) or ""
            # Types of rows are there for a type checker alone.
            if module_name.startswith(ROOMS) and not module_name.endswith("row_types"):
                for alias in node.names:  # type: ignore[attr-defined]  # of an import
                    here[alias.asname or alias.name] = pkgutil.resolve_name(f"{module_name}.{alias.name}")
        for node in ast.walk(tree):
            called = None
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                module = here.get(node.value.id)
                called = getattr(module, node.attr, None) if ismodule(module) else None
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                called = here.get(node.id)
            if isfunction(called):
                kinds = [one.kind for one in signature(called).parameters.values()]
                if kinds and kinds[0] is Parameter.KEYWORD_ONLY:
                    found[called.__name__] = path.name
    return found


ROOMS = ("playground.clusters", "playground.scenarios")


def test_every_service_of_the_pages_is_called_here_too() -> None:
    ours = services_called(ROOT / "api" / "views")
    theirs = services_called(ROOT / "web")
    missing = {name: where for name, where in theirs.items() if name not in ours}
    assert missing.keys() == ELSEWHERE.keys(), missing


@pytest.mark.parametrize("code", table(__file__, "a_service_that_only_pages_call_is_found"))
def test_a_service_that_only_pages_call_is_found(code: str, tmp_path: Path) -> None:
    (tmp_path / "page.py").write_text(code)
    assert "delete_cluster" in services_called(tmp_path)
