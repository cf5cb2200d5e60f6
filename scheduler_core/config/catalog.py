"""The extension points, and what a configuration needs to know of the plugins there are.

Which plugins there are is said by their classes (`framework.interface.Plugin`, `plugins.IN_TREE`); a `Catalog` is what
follows from them for decoding, defaulting, validating and constructing a configuration.

Source: pkg/scheduler/framework/plugins/registry.go, pkg/scheduler/apis/config/v1/default_plugins.go, v1.34
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from scheduler_core.config.args import PluginArgs
from scheduler_core.config.wire import build, typed
from scheduler_core.releases import OLDEST, Release

EXTENSION_POINTS: tuple[str, ...] = (
    "preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score", "reserve", "permit", "preBind",
    "bind", "postBind",
)  # fmt: skip
"""The points of the framework in pipeline order, under their names in the configuration."""
PRE_ENQUEUE, QUEUE_SORT, PRE_FILTER, FILTER, POST_FILTER, PRE_SCORE, SCORE = EXTENSION_POINTS[:7]
RESERVE, PERMIT, PRE_BIND, BIND, POST_BIND = EXTENSION_POINTS[7:]
MULTI_POINT = "multiPoint"

CONSTRUCTION_ORDER: tuple[str, ...] = (
    PRE_FILTER,
    FILTER,
    POST_FILTER,
    RESERVE,
    PRE_SCORE,
    SCORE,
    PRE_BIND,
    BIND,
    POST_BIND,
    PERMIT,
    PRE_ENQUEUE,
    QUEUE_SORT,
)
"""The order in which upstream fills them, which decides the error that is reported first.

Source: pkg/scheduler/framework/runtime/framework.go getExtensionPoints, v1.34
"""


def args_kind(plugin: str) -> str:
    """The kind a document of a plugin's args has; all members of a family have the family's."""
    return f"{plugin.partition('/')[0]}Args"


MEMBER = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
"""The second part of a family member's name: what a label's value may be."""


def interface_name(point: str) -> str:
    """Upstream's interface of an extension point, as error messages name it (`PreFilterPlugin`)."""
    return f"{point[0].upper()}{point[1:]}Plugin"


@dataclass(frozen=True, slots=True)
class PluginSpec:
    """What a configuration needs to know of a plugin.

    Attributes
    ----------
    name : str
    points : tuple of str
        The extension points it implements, in pipeline order.
    args : type of PluginArgs or None
        What it is configured with; None where it takes nothing or any document.
    default_weight : int or None
        Its weight in the default set (0: none given); None where it is not on by default.
    refused_in_v1 : bool
        A v1 configuration may not name it unless it was registered on purpose.
    is_family : bool
        It stands for every plugin named `NAME/MEMBER`, and is none itself.
    """

    name: str
    points: tuple[str, ...] = ()
    args: type[PluginArgs] | None = None
    default_weight: int | None = None
    refused_in_v1: bool = False
    is_family: bool = False

    @property
    def args_kind(self) -> str:
        """The kind a document of its args has."""
        return args_kind(self.name)

    def default_args(self) -> Any:
        """The args of a plugin that is given none; None where it declares no type."""
        if self.args is None:
            return None
        document = typed(self.args).written_zero()
        self.args.set_defaults(document)
        return build(self.args, document)


class Catalog(Mapping[str, PluginSpec]):
    """The plugins a configuration may name, in order of registration.

    Parameters
    ----------
    specs : iterable of PluginSpec
    retired : iterable of PluginSpec
        Plugins of older releases, which only a Policy file may name.
    defaults : sequence of (str, int), optional
        Name and weight (0: none given) of the plugins on by default, in order; what the specs say where not given.
        A release with another default set gives its own.
    release : Release
        Whose plugins, arguments and checks these are.
    """

    def __init__(
        self,
        specs: Iterable[PluginSpec] = (),
        *,
        retired: Iterable[PluginSpec] = (),
        defaults: Sequence[tuple[str, int]] | None = None,
        release: Release = OLDEST,
    ) -> None:
        self.release = release
        given = tuple(specs)
        self._specs = {spec.name: spec for spec in given if not spec.is_family}
        self._families = {spec.name: spec for spec in given if spec.is_family}
        self._retired = {spec.name: spec for spec in retired if spec.name not in self._specs}
        if defaults is None:
            defaults = [
                (spec.name, spec.default_weight)
                for spec in self._specs.values()
                if spec.default_weight is not None
            ]
        self.defaults: tuple[tuple[str, int], ...] = tuple(defaults)
        """Name and weight (0: none given) of the plugins on by default, in order."""

    def __getitem__(self, name: str) -> PluginSpec:
        spec = self._specs.get(name)
        if spec is not None:
            return spec
        family, slash, member = name.partition("/")
        if slash and family in self._families and MEMBER.fullmatch(member):
            return replace(self._families[family], name=name, is_family=False)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._specs)

    def __len__(self) -> int:
        return len(self._specs)

    def plus(self, *specs: PluginSpec) -> Catalog:
        """This catalog with more plugins; one of the same name takes the other's place."""
        return Catalog(
            {**self._specs, **self._families, **{spec.name: spec for spec in specs}}.values(),
            retired=self._retired.values(),
            defaults=self.defaults,
            release=self.release,
        )

    def with_retired(self) -> Catalog:
        """This catalog with the plugins a Policy file may name, too."""
        return Catalog(
            {**self._specs, **self._families, **self._retired}.values(),
            defaults=self.defaults,
            release=self.release,
        )

    def args_of(self, name: str) -> type[PluginArgs] | None:
        """The args class of a plugin; None where it has none or is not known."""
        spec = self.get(name)
        return None if spec is None else spec.args

    @property
    def args_kinds(self) -> dict[str, type[PluginArgs]]:
        """Every kind of args there is."""
        specs = (*self._specs.values(), *self._families.values())
        return {spec.args_kind: spec.args for spec in specs if spec.args is not None}

    @property
    def refused(self) -> frozenset[str]:
        """Names a v1 configuration may not use. Source: validation.go invalidPluginsByVersion, v1.34."""
        return frozenset(spec.name for spec in self._retired.values() if spec.refused_in_v1)
