"""Packages outside of the tree, and a way to install one as an installer would: files and metadata in a folder."""

import shutil
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from scheduler_core import installed_plugins
from scheduler_core.framework.interface import Plugin
from tests.tables import table

EXAMPLES = Path(__file__).parents[1] / "examples"


@dataclass(frozen=True)
class Package:
    """A distribution of one module that declares plugins as entry points."""

    name: str
    version: str
    source: str
    plugins: tuple[str, ...]

    @property
    def module(self) -> str:
        return self.name.replace("-", "_")


def install(site: Path, package: Package) -> None:
    """Put a package into a folder of the path, as pip does with a wheel."""
    (site / f"{package.module}.py").write_text(package.source)
    entry_points = {name: f"{package.module}:{name}" for name in package.plugins}
    _write_metadata(site, package.module, package.name, package.version, entry_points)


def install_folder(site: Path, folder: Path) -> None:
    """Put the module or package of a project's folder into a folder of the path, as its pyproject.toml says."""
    document = tomllib.loads((folder / "pyproject.toml").read_text())
    project, setuptools = document["project"], document["tool"]["setuptools"]
    for name in setuptools.get("packages", ()):
        shutil.copytree(folder / name, site / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in setuptools.get("py-modules", ()):
        shutil.copy(folder / f"{name}.py", site)
    (module,) = (*setuptools.get("packages", ()), *setuptools.get("py-modules", ()))
    entry_points = project["entry-points"]["kube_scheduler_playground.plugins"]
    _write_metadata(site, module, project["name"], project["version"], entry_points)


def _write_metadata(site: Path, module: str, name: str, version: str, entry_points: dict[str, str]) -> None:
    metadata = site / f"{module}-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = "".join(f"{plugin} = {where}\n" for plugin, where in entry_points.items())
    (metadata / "entry_points.txt").write_text(f"[kube_scheduler_playground.plugins]\n{lines}")
    (metadata / "top_level.txt").write_text(f"{module}\n")


@contextmanager
def installed_examples(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, type[Plugin]]]:
    """The packages of `examples/` installed into an empty folder; their plugins by name."""
    for project in sorted(EXAMPLES.glob("*/pyproject.toml")):
        install_folder(site, project.parent)
    monkeypatch.syspath_prepend(site)
    installed_plugins.forget()
    yield {name: one.plugin for name, one in installed_plugins.outside().items()}
    monkeypatch.undo()
    for name in [name for name in sys.modules if name.startswith("example_")]:
        del sys.modules[name]
    installed_plugins.forget()


PACKAGE = Package(
    "night-shift",
    "1.2",
    table(__file__, "PACKAGE"),
    ("NightShift",),
)
"""Filter, Score, Permit, QueueSort, hints and arguments."""

BROKEN = Package("no-shift", "0.1", 'raise ImportError("it needs a library")\n', ("NoShift",))
