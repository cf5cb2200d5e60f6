"""Objects besides nodes and pods, as plugins look them up."""

from __future__ import annotations

from typing import Any

Key = tuple[str, str]
"""(namespace, name); the namespace is empty for kinds that live in none."""


class Listers:
    """Typed objects by kind and name, in order of arrival.

    `version(kind)` changes with every change of that kind, so that what was derived from it can be kept.
    """

    def __init__(self) -> None:
        self._objects: dict[str, dict[Key, Any]] = {}
        self._versions: dict[str, int] = {}

    def copy(self) -> Listers:
        """A copy with the same objects and separate versions."""
        other = Listers()
        other._objects = {kind: found.copy() for kind, found in self._objects.items()}
        other._versions = self._versions.copy()
        return other

    def set(self, kind: str, namespace: str, name: str, typed: Any) -> None:
        self._objects.setdefault(kind, {})[(namespace, name)] = typed
        self._versions[kind] = self._versions.get(kind, 0) + 1

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """Nothing happens when there is no such object."""
        if self._objects.get(kind, {}).pop((namespace, name), None) is not None:
            self._versions[kind] += 1

    def get(self, kind: str, namespace: str, name: str) -> Any | None:
        return self._objects.get(kind, {}).get((namespace, name))

    def all(self, kind: str) -> list[Any]:
        return list(self._objects.get(kind, {}).values())

    def version(self, kind: str) -> int:
        return self._versions.get(kind, 0)

    def namespace_labels(self, name: str) -> dict[str, str] | None:
        """Labels of a Namespace object, None when there is no such object."""
        namespace = self.get("Namespace", "", name)
        return None if namespace is None else namespace.meta.labels
