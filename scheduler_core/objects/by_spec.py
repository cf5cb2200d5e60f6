"""What is made of a pod's spec alone, made once for all pods that were read as one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from scheduler_core.objects.pod import Pod

T = TypeVar("T")

_MOST = 4096


class BySpec(Generic[T]):
    """Answers about pods, kept by `Pod.read`: replicas, and the versions of one pod, have one between them.

    Parameters
    ----------
    make : callable
        Gives the answer from a pod's spec; its metadata, status and node it may not look at.
    """

    __slots__ = ("_kept", "_make")

    def __init__(self, make: Callable[[Pod], T]) -> None:
        self._make = make
        self._kept: dict[object, T] = {}

    def of(self, pod: Pod) -> T:
        found = self._kept.get(pod.read)
        if found is None:
            if len(self._kept) >= _MOST:
                self._kept.clear()
            found = self._kept[pod.read] = self._make(pod)
        return found
