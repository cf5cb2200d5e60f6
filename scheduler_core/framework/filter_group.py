"""Some of a profile's filter plugins, and one number for all they read of a pod: what kept answers are found by."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from itertools import count
from typing import Any, NamedTuple, Self

from scheduler_core.framework.interface import FilterPlugin, Reads
from scheduler_core.objects.pod import BySpec, Pod

Filters = Sequence[tuple[int, FilterPlugin[Any]]]

_MOST = 16_384
_NONE = -1
"""The number of a pod of which a plugin cannot say what it reads: it gets a new one each time."""


def _is_kept(plugin: FilterPlugin[Any]) -> bool:
    return plugin.filter_reads is not Reads.CLUSTER


class WorldFilters(NamedTuple):
    """Filters that are asked about worlds in which pods come and go.

    Attributes
    ----------
    filters : sequence of (int, FilterPlugin)
        All of them.
    movable : sequence of (int, FilterPlugin)
        Those whose answer pods can change.
    moving, forked : sequence of FilterPlugin
        Those that count for themselves who comes and goes; those that keep a state of their own for it.
    """

    filters: Filters
    movable: Filters
    moving: Sequence[FilterPlugin[Any]]
    forked: Sequence[FilterPlugin[Any]]

    @classmethod
    def of(cls, filters: Filters) -> Self:
        plugins = [plugin for _, plugin in filters]
        return cls(
            filters,
            [item for item in filters if item[1].filter_reads is not Reads.SPEC],
            [
                plugin
                for plugin in plugins
                if type(plugin).add_pods is not FilterPlugin.add_pods
                or type(plugin).remove_pods is not FilterPlugin.remove_pods
            ],
            [plugin for plugin in plugins if type(plugin).fork is not FilterPlugin.fork],
        )


class FilterGroup:
    """Filter plugins that are asked together; pods they give one number get equal answers from equal clusters.

    Parameters
    ----------
    filters : sequence of (int, FilterPlugin)
        Each with its place in the profile's filter order.
    """

    def __init__(self, filters: Filters) -> None:
        self._filters = filters
        self._asked: dict[tuple[str, ...], tuple[WorldFilters, BySpec[int]]] = {}
        self._numbers: dict[Hashable, int] = {}
        self._next = count()
        self._read = [(plugin, kind) for _, plugin in filters for kind in plugin.sign_reads]
        self._version = 0
        """Of all that is read together: versions only grow."""

    def number(self, pod: Pod, skipped: Iterable[str]) -> tuple[Filters, int]:
        """`active`, and the pod's number in their eyes."""
        active, numbers = self._asked_without(tuple(skipped))
        # A node is no part of what versions of one spec have in common.
        number = self._number(active.filters, pod) if pod.node_name else numbers.of(pod)
        return active.filters, next(self._next) if number == _NONE else number

    def active(self, skipped: Iterable[str]) -> Filters:
        """The filters but those called `skipped`."""
        return self._asked_without(tuple(skipped))[0].filters

    def in_worlds(self, skipped: Iterable[str]) -> WorldFilters:
        """The same, sorted by what they have to do with pods that come and go."""
        return self._asked_without(tuple(skipped))[0]

    def _asked_without(self, names: tuple[str, ...]) -> tuple[WorldFilters, BySpec[int]]:
        version = 0
        for plugin, kind in self._read:
            version += plugin.handle.listers.version(kind)
        if version != self._version:
            self._asked, self._version = {}, version
        asked = self._asked.get(names)
        if asked is None:
            active = [item for item in self._filters if item[1].name not in names]
            asked = self._asked[names] = WorldFilters.of(active), BySpec(partial(self._number, active))
        return asked

    def _number(self, active: Filters, pod: Pod) -> int:
        key = tuple((position, plugin.sign(pod)) for position, plugin in active)
        if any(sign is None for (_, sign), (_, plugin) in zip(key, active, strict=True) if _is_kept(plugin)):
            return _NONE
        number = self._numbers.get(key)
        if number is None:
            if len(self._numbers) >= _MOST:
                # No number is given twice: the holder of an old one finds its answers no more, and asks again.
                self._numbers.clear()
            number = self._numbers[key] = next(self._next)
        return number
