"""Plugins from outside the tree: those that installed packages bring, and those named as `module:Class`.

A package declares its plugins as entry points of the group `kube_scheduler_playground.plugins`:

    [project.entry-points."kube_scheduler_playground.plugins"]
    MyPlugin = "my_package:MyPlugin"

`known()` is what this process offers: the plugins of the tree, and those of installed packages as far as `allow` lets
them in. A package that cannot be imported is named by `problems()` and keeps nothing else from working.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from scheduler_core.errors import PluginDeclarationError
from scheduler_core.framework.interface import Plugin
from scheduler_core.framework.registry import Registry, declared
from scheduler_core.plugins import REGISTRY

if TYPE_CHECKING:
    import importlib.metadata

GROUP = "kube_scheduler_playground.plugins"
"""The group of entry points."""


@dataclass(frozen=True, slots=True)
class PackageOrigin:
    """Where a plugin comes from: the distribution that brings it, and its version; empty for a bare module."""

    package: str
    version: str

    @property
    def requirement(self) -> str:
        """What pip is asked to install."""
        return f"{self.package}=={self.version}" if self.version else self.package


@dataclass(frozen=True, slots=True)
class InstalledPlugin:
    """A plugin from outside the tree."""

    plugin: type[Plugin]
    origin: PackageOrigin


class _Shelf:
    """What this process knows of plugins from outside the tree; filled when it is first asked for."""

    def __init__(self) -> None:
        self.allowed: frozenset[str] | None = None
        self.added: list[InstalledPlugin] = []
        self.found: dict[str, InstalledPlugin] | None = None
        self.problems: list[str] = []
        self.registry: Registry | None = None

    def fill(self) -> dict[str, InstalledPlugin]:
        if self.found is None:
            self.problems = []
            self.found = {}
            for one in (*self.added, *_from_packages(self.allowed, self.problems)):
                name = one.plugin.name
                if name in REGISTRY or name in self.found:
                    self.problems.append(f"{one.origin.package}: a plugin named {name} already exists")
                    continue
                self.found[name] = one
            self.registry = REGISTRY.plus(one.plugin for one in self.found.values())
        return self.found


_SHELF = _Shelf()


def known() -> Registry:
    """The plugins a configuration may name in this process."""
    _SHELF.fill()
    assert _SHELF.registry is not None
    return _SHELF.registry


def outside() -> Mapping[str, InstalledPlugin]:
    """The known plugins from outside the tree, by name."""
    return dict(_SHELF.fill())


def problems() -> tuple[str, ...]:
    """What is wrong with installed plugins that are therefore not known, a sentence each."""
    _SHELF.fill()
    return tuple(_SHELF.problems)


def allow(names: Iterable[str] | None) -> None:
    """Let only these plugins of installed packages in; None lets in all, which is how a process starts."""
    _SHELF.allowed = None if names is None else frozenset(names)
    _SHELF.found = _SHELF.registry = None


def add(reference: str) -> InstalledPlugin:
    """Know one more plugin, named as `module:Class`.

    Raises
    ------
    PluginDeclarationError
        It cannot be imported, is no plugin, or its name is taken.
    """
    module, _, name = reference.partition(":")
    try:
        plugin = getattr(importlib.import_module(module), name)
    except Exception as error:
        raise PluginDeclarationError(f"{reference}: {type(error).__name__}: {error}") from error
    declared(plugin)
    if plugin.name in REGISTRY:
        raise PluginDeclarationError(f"{reference}: a plugin named {plugin.name} already exists")
    one = InstalledPlugin(plugin, _origin_of(plugin))
    _SHELF.added = [other for other in _SHELF.added if other.plugin.name != plugin.name] + [one]
    _SHELF.found = _SHELF.registry = None
    return one


def forget() -> None:
    """Look again at what is installed, and forget what was added."""
    _SHELF.added = []
    _SHELF.found = _SHELF.registry = None


def _origin_of(plugin: type[Plugin]) -> PackageOrigin:
    """The distribution that holds a plugin's module, or the module itself."""
    import importlib.metadata

    top = plugin.__module__.partition(".")[0]
    for distribution in importlib.metadata.packages_distributions().get(top, ()):
        return PackageOrigin(distribution, importlib.metadata.version(distribution))
    return PackageOrigin(top, "")


def _from_packages(allowed: frozenset[str] | None, problems: list[str]) -> Iterable[InstalledPlugin]:
    """By name of the package and of the entry point, so that the order is no chance of the file system."""
    if not _any_declares():
        return
    import importlib.metadata

    found: dict[tuple[str, str], importlib.metadata.EntryPoint] = {}
    for entry in importlib.metadata.entry_points(group=GROUP):
        package = entry.dist.name if entry.dist is not None else entry.module
        found.setdefault((package, entry.name), entry)
    for (package, name), entry in sorted(found.items()):
        # What is not allowed is not even imported.
        if allowed is not None and name not in allowed:
            continue
        try:
            plugin = entry.load()
            spec = declared(plugin)
            if spec.name != name:
                raise PluginDeclarationError(f"its entry point is called {name}, the plugin {spec.name}")
        except (Exception, SystemExit) as error:
            problems.append(f"{package}: {name} ({entry.value}) is left out: {type(error).__name__}: {error}")
            continue
        version = entry.dist.version if entry.dist is not None else ""
        yield InstalledPlugin(plugin, PackageOrigin(package, version))


def _any_declares() -> bool:
    """Whether any package may declare plugins: reading the metadata proper loads Python's mail and network modules."""
    for entry in sys.path:
        folder = Path(entry or ".")
        if folder.is_file():
            return True
        for path in folder.glob("*.*-info/entry_points.txt"):
            if GROUP in path.read_text(errors="replace"):
                return True
    return False
