"""Pods that hold a node and wait for permission to be bound to it.

Source: pkg/scheduler/framework/runtime/waiting_pods_map.go, v1.34
Differs: timers are deadlines on the virtual clock, so a waiting pod costs nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler_core.framework.status import Code, Status
from scheduler_core.objects.pod import Pod

Label = tuple[str, str, str]
"""(namespace, key, value)"""


@dataclass(slots=True)
class WaitingPod:
    """One waiting pod.

    Attributes
    ----------
    deadlines_ns : dict of str to int
        Plugin that still has to allow it -> when its patience ends.
    number : int
        Tells who came first.
    home : WaitingPods
        Is told once it is decided.
    decided : Status or None
        Success once every plugin allowed it, or the first rejection.
    """

    pod: Pod
    node_name: str
    since_ns: int
    deadlines_ns: dict[str, int]
    number: int
    home: WaitingPods
    allowed: list[str] = field(default_factory=list)
    decided: Status | None = None

    def allow(self, plugin: str) -> None:
        """One plugin lets the pod go on; it goes on when no plugin is left to ask."""
        if self.decided is not None or plugin not in self.deadlines_ns:
            return
        del self.deadlines_ns[plugin]
        self.allowed.append(plugin)
        if not self.deadlines_ns:
            self._decide(Status())

    def reject(self, plugin: str, reason: str) -> bool:
        """Refuse the pod; False when it was decided before."""
        if self.decided is not None:
            return False
        self._decide(Status(Code.Unschedulable, (reason,), plugin))
        return True

    def fail(self, plugin: str, reason: str) -> None:
        """End the wait in an error, after which the pod is tried again."""
        if self.decided is None:
            self._decide(Status(Code.Error, (reason,), plugin))

    def _decide(self, status: Status) -> None:
        self.decided = status
        self.home.note_decided(self)


class WaitingPods:
    """Waiting pods by uid, in order of arrival. Nothing that happens looks through all of them."""

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}
        self._decisions: list[WaitingPod] = []
        self._deadlines: list[tuple[int, int, str, str]] = []
        """A heap of (when, number and uid of the pod, plugin); one that does not hold any more stays until its time."""
        self._undecided: dict[Label, dict[str, WaitingPod]] = {}
        """Those not decided yet by each label they carry, then by uid."""
        self._n_arrived = 0

    def add(self, pod: Pod, node_name: str, waits_ns: Mapping[str, int], now_ns: int) -> WaitingPod:
        """Have a pod wait; `waits_ns` says how long each plugin lets it."""
        deadlines_ns = {plugin: now_ns + wait_ns for plugin, wait_ns in waits_ns.items()}
        return self._put(pod, node_name, now_ns, deadlines_ns)

    def _put(self, pod: Pod, node_name: str, since_ns: int, deadlines_ns: dict[str, int]) -> WaitingPod:
        self._n_arrived += 1
        waiting = WaitingPod(pod, node_name, since_ns, deadlines_ns, self._n_arrived, self)
        self._pods[pod.uid] = waiting
        for key, value in pod.labels.items():
            self._undecided.setdefault((pod.namespace, key, value), {})[pod.uid] = waiting
        for plugin, at_ns in deadlines_ns.items():
            heapq.heappush(self._deadlines, (at_ns, waiting.number, pod.uid, plugin))
        return waiting

    def note_decided(self, waiting: WaitingPod) -> None:
        self._decisions.append(waiting)
        self._unlist(waiting)

    def _unlist(self, waiting: WaitingPod) -> None:
        pod = waiting.pod
        for key, value in pod.labels.items():
            listed = self._undecided.get((pod.namespace, key, value))
            if listed is not None and listed.get(pod.uid) is waiting:
                del listed[pod.uid]
                if not listed:
                    del self._undecided[pod.namespace, key, value]

    def take_decided(self) -> list[WaitingPod]:
        """Pods that wait no longer, each once, in order of arrival."""
        if not self._decisions:
            return []
        decided = [item for item in self._decisions if self._pods.get(item.pod.uid) is item]
        self._decisions.clear()
        return sorted(decided, key=lambda item: item.number)

    def get(self, uid: str) -> WaitingPod | None:
        return self._pods.get(uid)

    def remove(self, uid: str) -> WaitingPod | None:
        waiting = self._pods.pop(uid, None)
        if waiting is not None:
            self._unlist(waiting)
        return waiting

    def all(self) -> list[WaitingPod]:
        return list(self._pods.values())

    def __iter__(self) -> Iterator[WaitingPod]:
        """In order of arrival."""
        return iter(self.all())

    def undecided(self, namespace: str, key: str, value: str) -> list[WaitingPod]:
        """Pods of the namespace with this label whose fate is open, in order of arrival."""
        return list(self._undecided.get((namespace, key, value), {}).values())

    def __len__(self) -> int:
        return len(self._pods)

    def next_deadline_ns(self) -> int | None:
        """When the next plugin loses its patience."""
        deadlines = self._deadlines
        while deadlines and self._waiting_for(deadlines[0]) is None:
            heapq.heappop(deadlines)
        return deadlines[0][0] if deadlines else None

    def _waiting_for(self, deadline: tuple[int, int, str, str]) -> WaitingPod | None:
        """The pod a deadline is about, if it still holds."""
        at_ns, number, uid, plugin = deadline
        waiting = self._pods.get(uid)
        if waiting is None or waiting.number != number or waiting.deadlines_ns.get(plugin) != at_ns:
            return None
        return waiting

    def expire(self, now_ns: int) -> None:
        """Reject pods whose deadline has come."""
        due: dict[int, WaitingPod] = {}
        while self._deadlines and self._deadlines[0][0] <= now_ns:
            waiting = self._waiting_for(heapq.heappop(self._deadlines))
            if waiting is not None:
                due[waiting.number] = waiting
        for number in sorted(due):
            waiting = due[number]
            plugin, at_ns = next(item for item in waiting.deadlines_ns.items() if item[1] <= now_ns)
            waited = _duration(at_ns - waiting.since_ns)
            waiting.reject(plugin, f"rejected due to timeout after waiting {waited} at plugin {plugin}")

    def state(self) -> list[dict[str, Any]]:
        """For a checkpoint: everything but the pod itself, which is named by uid."""
        return [
            {
                "uid": waiting.pod.uid,
                "node": waiting.node_name,
                "sinceNs": waiting.since_ns,
                "deadlinesNs": dict(waiting.deadlines_ns),
                "allowed": list(waiting.allowed),
            }
            for waiting in self._pods.values()
        ]

    def restore(self, state: list[dict[str, Any]], pods: Mapping[str, Pod]) -> None:
        """Take over what `state` returned; `pods` are the live ones by uid."""
        for entry in state:
            waiting = self._put(
                pods[entry["uid"]], entry["node"], entry["sinceNs"], dict(entry["deadlinesNs"])
            )
            waiting.allowed.extend(entry["allowed"])


def _duration(duration_ns: int) -> str:
    """Go's way to print a duration of whole or fractional seconds."""
    seconds, rest_ns = divmod(duration_ns, 1_000_000_000)
    hours, seconds = divmod(seconds, 3600)
    minutes, seconds = divmod(seconds, 60)
    fraction = f".{rest_ns:09d}".rstrip("0") if rest_ns else ""
    text = f"{seconds}{fraction}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return f"{hours}h{text}" if hours else text
