"""Interning: equal values get one small integer, so columns can hold ids and answers can be gathered."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from scheduler_core.objects.node import Taint
from scheduler_core.objects.pod import HostPort
from scheduler_core.objects.resources import CPU, EPHEMERAL_STORAGE, MEMORY

V = TypeVar("V", bound=Hashable)

CPU_ID, MEMORY_ID, EPHEMERAL_STORAGE_ID = 0, 1, 2
"""Positions of the native resources on the resource axis; extended ones follow in order of appearance."""


class Interner(Generic[V]):
    """Values by id and ids by value; ids are dense and never reused."""

    __slots__ = ("_ids", "values")

    def __init__(self) -> None:
        self._ids: dict[V, int] = {}
        self.values: list[V] = []

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, value_id: int) -> V:
        return self.values[value_id]

    def id(self, value: V) -> int:
        """The id of `value`, a new one when it was never seen."""
        found = self._ids.get(value)
        if found is None:
            found = self._ids[value] = len(self.values)
            self.values.append(value)
        return found

    def copy(self) -> Interner[V]:
        """Another one with the same ids."""
        other: Interner[V] = Interner()
        other._ids, other.values = self._ids.copy(), self.values.copy()
        return other

    def find(self, value: V) -> int:
        """The id of `value`, -1 when it was never seen."""
        return self._ids.get(value, -1)


class Vocabulary:
    """All interned axes of one cluster.

    Attributes
    ----------
    resources : Interner of str
        The resource axis of `NodeColumns.allocatable` and `.requested`: cpu, memory, ephemeral-storage, then
        scalar resources.
    taint_lists : Interner of tuple of Taint
        Whole `spec.taints`.
    feature_lists : Interner of tuple of str
        Whole `status.declaredFeatures`.
    taints : Interner of Taint
        Single taints, for naming one in a verdict.
    ports : Interner of HostPort
        Host ports in use or asked for; an empty ip is stored as 0.0.0.0.
    label_values : dict of str to Interner of str
        For each node label key a column was asked for: its values. These are the topology domains of that key.
    pod_classes : Interner of (namespace, sorted label items)
        What selectors can tell pods apart by.
    """

    def __init__(self) -> None:
        self.resources: Interner[str] = Interner()
        for name in (CPU, MEMORY, EPHEMERAL_STORAGE):
            self.resources.id(name)
        self.taint_lists: Interner[tuple[Taint, ...]] = Interner()
        self.feature_lists: Interner[tuple[str, ...]] = Interner()
        self.taints: Interner[Taint] = Interner()
        self.ports: Interner[HostPort] = Interner()
        self.label_values: dict[str, Interner[str]] = {}
        self.pod_classes: Interner[tuple[str, tuple[tuple[str, str], ...]]] = Interner()

    def copy(self) -> Vocabulary:
        """Another one with the same ids."""
        other = Vocabulary()
        for name in ("resources", "taint_lists", "feature_lists", "taints", "ports", "pod_classes"):
            setattr(other, name, getattr(self, name).copy())
        other.label_values = {key: values.copy() for key, values in self.label_values.items()}
        return other
