"""Which plugins there are: a name and how to make one.

Source: pkg/scheduler/framework/runtime/registry.go, v1.34
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from scheduler_core.framework.interface import Handle, Plugin

PluginFactory = Callable[[Any, Handle], Plugin]


class Registry(Mapping[str, PluginFactory]):
    """Plugin factories by name, in order of registration."""

    def __init__(self, factories: Mapping[str, PluginFactory] | None = None) -> None:
        self._factories: dict[str, PluginFactory] = dict(factories or {})

    def __getitem__(self, name: str) -> PluginFactory:
        return self._factories[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._factories)

    def __len__(self) -> int:
        return len(self._factories)

    def register(self, name: str, factory: PluginFactory) -> None:
        """Add a plugin.

        Raises
        ------
        ValueError
            When the name is taken.
        """
        if name in self._factories:
            raise ValueError(f"a plugin named {name} already exists")
        self._factories[name] = factory

    def unregister(self, name: str) -> None:
        """Remove a plugin.

        Raises
        ------
        ValueError
            When there is none of that name.
        """
        if name not in self._factories:
            raise ValueError(f"no plugin named {name} exists")
        del self._factories[name]

    def merge(self, other: Mapping[str, PluginFactory]) -> None:
        """Add all of `other`; nothing is added when one name is taken."""
        for name in other:
            if name in self._factories:
                raise ValueError(f"a plugin named {name} already exists")
        self._factories.update(other)
