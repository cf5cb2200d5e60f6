"""The order nodes are looked at: zones take turns.

Source: pkg/scheduler/backend/cache/node_tree.go, v1.34
"""

from __future__ import annotations

from itertools import chain, zip_longest


class NodeTree:
    """Node names by zone, in order of arrival."""

    def __init__(self) -> None:
        self._zones: dict[str, dict[str, None]] = {}

    def add(self, name: str, zone: str) -> None:
        self._zones.setdefault(zone, {})[name] = None

    def remove(self, name: str, zone: str) -> None:
        names = self._zones.get(zone)
        if names is not None:
            names.pop(name, None)
            if not names:
                del self._zones[zone]

    def places(self) -> dict[str, dict[str, None]]:
        """A copy of what is known, for `restore`."""
        return {zone: dict(names) for zone, names in self._zones.items()}

    def restore(self, places: dict[str, dict[str, None]]) -> None:
        """Be as when `places` was asked."""
        self._zones = {zone: dict(names) for zone, names in places.items()}

    def by_zone(self) -> list[str]:
        """All names, zone by zone."""
        return [name for names in self._zones.values() for name in names]

    def names(self) -> list[str]:
        """All names: the first of every zone, then the second of every zone, and so on."""
        # Asked for anew whenever a node came or went: for each node that a plan takes away.
        turns = zip_longest(*self._zones.values())
        return [name for name in chain.from_iterable(turns) if name is not None]
