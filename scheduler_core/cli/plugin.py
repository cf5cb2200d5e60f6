"""`plugin`: start a plugin package, check a plugin, list what is known."""

from __future__ import annotations

import argparse
import keyword
import re
import sys
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from scheduler_core import installed_plugins
from scheduler_core.cli.reports import Unusable
from scheduler_core.errors import PluginDeclarationError
from scheduler_core.framework.interface import Plugin
from scheduler_core.framework.per_node import asked_per_node
from scheduler_core.plugin_kit import check, cost

CONFORMS, FAILS = 0, 1

LONGEST_NAME = 60
"""Files and folders are named after a plugin."""


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    if options.action == "new":
        return _new(options.name, Path(options.into))
    if options.action == "check":
        return _check(options.plugin)
    outside = installed_plugins.outside()
    for name, spec in installed_plugins.known().catalog.items():
        where = outside[name].origin.requirement if name in outside else "in the tree"
        slow = asked_per_node(installed_plugins.known()[name])
        note = f"; one node at a time: {', '.join(slow)}" if slow else ""
        print(f"{name}: {', '.join(spec.points)} ({where}{note})")
    for problem in installed_plugins.problems():
        print(problem, file=sys.stderr)
    return CONFORMS


def _new(name: str, into: Path) -> int:
    if not re.fullmatch(rf"[A-Z][A-Za-z0-9]{{0,{LONGEST_NAME - 1}}}", name) or keyword.iskeyword(name):
        said = (
            "a word such as NightShift" if len(name) <= LONGEST_NAME else f"at most {LONGEST_NAME} characters"
        )
        raise Unusable(f'"{name}" is no name of a plugin: {said}')
    if name in installed_plugins.known():
        raise Unusable(f"a plugin named {name} already exists")
    found = _package(name)
    [module] = (path for path in found if path.endswith(".py") and "/" not in path)
    root = into / module.removesuffix(".py").replace("_", "-")
    if root.exists():
        raise Unusable(f"{root} is there already; nothing was written")
    for path, text in found.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    print(f"{root}: run pytest there, then pip install it")
    return CONFORMS


def _package(name: str) -> dict[str, str]:
    """Path -> text of a package that brings a plugin of this name: class, oracle twin, test and README."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)
    module = "_".join(word.lower() for word in words)
    if keyword.iskeyword(module) or module == "tests" or find_spec(module) is not None:
        # `Json` or `Numpy` would hide a module that its own imports need.
        module += "_plugin"

    def filled(text: str) -> str:
        return text.replace("NAME", name).replace("MODULE", module).replace("DIST", module.replace("_", "-"))

    found = {}
    for file in sorted(
        files("scheduler_core.cli").joinpath("new_plugin").iterdir(), key=lambda item: item.name
    ):
        path = file.name.removesuffix(".txt")
        folder = "tests/" if path.startswith(("oracle", "test_")) else ""
        found[folder + filled(path)] = filled(file.read_text("utf-8"))
    return found


def _check(reference: str) -> int:
    try:
        plugin: type[Plugin] = (
            installed_plugins.add(reference).plugin
            if ":" in reference
            else installed_plugins.known()[reference]
        )
    except (PluginDeclarationError, KeyError) as error:
        said = f"no plugin named {reference} is known" if isinstance(error, KeyError) else str(error)
        raise Unusable(said) from None
    problems = check(plugin)
    for problem in problems:
        print(f"FAILED {problem}")
    for item in cost(plugin):
        slow = ", one node at a time" if item.point in asked_per_node(plugin) else ""
        print(f"{item.point}: {item.ns / 1000:,.1f} µs for {item.n_nodes:,} nodes{slow}")
    print(f"{plugin.name} {'does not conform' if problems else 'conforms'}")
    return FAILS if problems else CONFORMS
