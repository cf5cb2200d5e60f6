"""Which plugins there are, and everything that follows from their classes.

Source: pkg/scheduler/framework/runtime/registry.go, v1.34
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from scheduler_core.config.args import PluginArgs
from scheduler_core.config.catalog import Catalog, PluginSpec
from scheduler_core.config.wire import wire_fields
from scheduler_core.errors import PluginDeclarationError
from scheduler_core.framework.interface import POINT_CLASSES, Plugin, QueueSortPlugin, Reads
from scheduler_core.releases import OLDEST, Release

_REQUIRED = {
    "preEnqueue": "pre_enqueue",
    "preFilter": "pre_filter",
    "filter": "filter",
    "postFilter": "post_filter",
    "preScore": "pre_score",
    "score": "score",
    "permit": "permit",
    "bind": "bind",
}
"""The method without which a plugin at a point says nothing. Reserve, PreBind and PostBind may do without one."""


def declared(plugin: type[Plugin], release: Release = OLDEST) -> PluginSpec:
    """What a plugin's class declares, for configurations of a release.

    Raises
    ------
    PluginDeclarationError
        The class does not say enough of itself, or what it says cannot be.
    """
    where = f"{plugin.__module__}:{plugin.__qualname__}" if inspect.isclass(plugin) else repr(plugin)
    if not (inspect.isclass(plugin) and issubclass(plugin, Plugin)):
        raise PluginDeclarationError(f"{where} is no plugin: it does not inherit Plugin")
    name = getattr(plugin, "name", None)
    if not isinstance(name, str) or not (name.isidentifier() or ("/" in name and _is_member(plugin))):
        raise PluginDeclarationError(f"{where}: `name` is {name!r}, it must be a word such as NodeName")
    points = tuple(point for point, kind in POINT_CLASSES.items() if issubclass(plugin, kind))
    if not points:
        raise PluginDeclarationError(f"{where}: it inherits the class of no extension point")
    for point in points:
        method = _REQUIRED.get(point)
        if method and getattr(plugin, method) is getattr(POINT_CLASSES[point], method):
            raise PluginDeclarationError(f"{where}: it extends {point}, but has no `{method}`")
    kept = [
        name
        for name in ("filter_reads", "score_reads")
        if getattr(plugin, name, Reads.CLUSTER) is not Reads.CLUSTER
    ]
    if kept and plugin.sign is Plugin.sign:
        raise PluginDeclarationError(
            f"{where}: by `{kept[0]}` its answers may be kept, but no `sign` says for which pods"
        )
    if issubclass(plugin, QueueSortPlugin) and (plugin.sort_key, plugin.less) == (
        QueueSortPlugin.sort_key, QueueSortPlugin.less,
    ):  # fmt: skip
        raise PluginDeclarationError(f"{where}: it extends queueSort, but has neither `sort_key` nor `less`")
    args = plugin.args_in(release)
    if args is not None:
        if not (inspect.isclass(args) and issubclass(args, PluginArgs)):
            raise PluginDeclarationError(f"{where}: `Args` does not inherit PluginArgs")
        try:
            wire_fields(args)
        except TypeError as error:
            raise PluginDeclarationError(f"{where}: {error}") from error
    return PluginSpec(
        name,
        tuple(point for point in points if point not in release.lacks(name)),
        args,
        _default_weight(plugin, release),
        plugin.refused_in_v1,
        plugin.is_family,
    )


def _is_member(plugin: type[Plugin]) -> bool:
    return not plugin.is_family and any(getattr(base, "is_family", False) for base in plugin.__mro__)


def _default_weight(plugin: type[Plugin], release: Release) -> int | None:
    if plugin.feature_gate is not None and not release.gate(plugin.feature_gate):
        return None
    if plugin.default_weight is None:
        return None
    return release.weight(plugin.name, plugin.default_weight)


def _is_in(plugin: type[Plugin], release: Release) -> bool:
    return plugin.feature_gate is None or plugin.feature_gate in release.gates


_MEMBERS: dict[tuple[type[Plugin], str], type[Plugin]] = {}


def member_of(family: type[Plugin], name: str) -> type[Plugin]:
    """The class of a family's member."""
    found = _MEMBERS.get((family, name))
    if found is None:
        if len(_MEMBERS) >= 1024:
            _MEMBERS.clear()
        said = {"name": name, "is_family": False, "__module__": family.__module__, "__doc__": family.__doc__}
        found = _MEMBERS[family, name] = type(family.__name__, (family,), said)
    return found


class Registry(Mapping[str, type[Plugin]]):
    """Plugin classes by name, in order of registration; it does not change.

    Parameters
    ----------
    plugins : iterable of plugin classes
    retired : iterable of plugin classes
        Of older releases, which only a Policy file may name.
    release : Release
        Plugins that a feature gate brings are there in the releases that know the gate.
    outside : frozenset of str
        Names of plugins from outside the tree: never on by default, and what they answer is checked
        (`framework.guard`).

    Raises
    ------
    PluginDeclarationError
        A class does not declare itself well, or two have one name.
    """

    def __init__(
        self,
        plugins: Iterable[type[Plugin]] = (),
        *,
        retired: Iterable[type[Plugin]] = (),
        release: Release = OLDEST,
        outside: frozenset[str] = frozenset(),
    ) -> None:
        self.release = release
        self.outside = outside
        self._specs: list[PluginSpec] = []
        self._classes: dict[str, type[Plugin]] = {}
        self._families: dict[str, type[Plugin]] = {}
        self._all = tuple(plugins)
        for plugin in self._all:
            spec = declared(plugin, release)
            if not _is_in(plugin, release):
                continue
            if spec.name in outside:
                spec = replace(spec, default_weight=None)
            if spec.name in self._classes or spec.name in self._families:
                raise PluginDeclarationError(f"a plugin named {spec.name} already exists")
            self._specs.append(spec)
            (self._families if spec.is_family else self._classes)[spec.name] = plugin
        self._retired = tuple(retired)

    def __getitem__(self, name: str) -> type[Plugin]:
        found = self._classes.get(name)
        if found is not None:
            return found
        family, slash, _ = name.partition("/")
        if slash and family in self._families and name in self.catalog:
            return member_of(self._families[family], name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)

    @cached_property
    def catalog(self) -> Catalog:
        """What configurations need to know of them."""
        return Catalog(
            self._specs,
            retired=[declared(plugin, self.release) for plugin in self._retired],
            release=self.release,
        )

    def in_release(self, release: Release) -> Registry:
        """The plugins as another release has them: which there are, their points, args and default set."""
        if release == self.release:
            return self
        return Registry(self._all, retired=self._retired, release=release, outside=self.outside)

    def plus(self, plugins: Iterable[type[Plugin]]) -> Registry:
        """This registry with more plugins; none of them is on by default.

        Raises
        ------
        PluginDeclarationError
            A name is taken.
        """
        added = tuple(plugins)
        if not added:
            return self
        return Registry(
            (*self._all, *added),
            retired=self._retired,
            release=self.release,
            outside=self.outside | {declared(plugin).name for plugin in added},
        )

    def with_retired(self) -> Registry:
        """This registry with the plugins of older releases."""
        present = [plugin for plugin in self._retired if plugin.name not in self._classes]
        return Registry((*self._all, *present), release=self.release, outside=self.outside)
