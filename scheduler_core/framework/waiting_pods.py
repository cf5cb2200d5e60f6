"""Pods that hold a node and wait for permission to be bound to it.

Source: pkg/scheduler/framework/runtime/waiting_pods_map.go, v1.34
Differs: timers are deadlines on the virtual clock, so a waiting pod costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler_core.framework.status import Code, Status
from scheduler_core.objects.pod import Pod


@dataclass(slots=True)
class WaitingPod:
    """One waiting pod.

    Attributes
    ----------
    deadlines_ns : dict of str to int
        Plugin that still has to allow it -> when its patience ends.
    decided : Status or None
        Success once every plugin allowed it, or the first rejection.
    """

    pod: Pod
    node_name: str
    since_ns: int
    deadlines_ns: dict[str, int]
    allowed: list[str] = field(default_factory=list)
    decided: Status | None = None

    def allow(self, plugin: str) -> None:
        """One plugin lets the pod go on; it goes on when no plugin is left to ask."""
        if self.decided is not None or plugin not in self.deadlines_ns:
            return
        del self.deadlines_ns[plugin]
        self.allowed.append(plugin)
        if not self.deadlines_ns:
            self.decided = Status()

    def reject(self, plugin: str, reason: str) -> bool:
        """Refuse the pod; False when it was decided before."""
        if self.decided is not None:
            return False
        self.decided = Status(Code.Unschedulable, (reason,), plugin)
        return True


class WaitingPods:
    """Waiting pods by uid, in order of arrival."""

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}

    def add(self, pod: Pod, node_name: str, waits_ns: Mapping[str, int], now_ns: int) -> WaitingPod:
        """Have a pod wait; `waits_ns` says how long each plugin lets it."""
        waiting = WaitingPod(
            pod, node_name, now_ns, {plugin: now_ns + wait_ns for plugin, wait_ns in waits_ns.items()}
        )
        self._pods[pod.uid] = waiting
        return waiting

    def get(self, uid: str) -> WaitingPod | None:
        return self._pods.get(uid)

    def remove(self, uid: str) -> WaitingPod | None:
        return self._pods.pop(uid, None)

    def all(self) -> list[WaitingPod]:
        return list(self._pods.values())

    def __len__(self) -> int:
        return len(self._pods)

    def next_deadline_ns(self) -> int | None:
        """When the next plugin loses its patience."""
        deadlines = [at_ns for waiting in self._pods.values() for at_ns in waiting.deadlines_ns.values()]
        return min(deadlines, default=None)

    def expire(self, now_ns: int) -> None:
        """Reject pods whose deadline has come."""
        for waiting in self._pods.values():
            for plugin, at_ns in list(waiting.deadlines_ns.items()):
                if at_ns <= now_ns:
                    waited = _duration(at_ns - waiting.since_ns)
                    waiting.reject(
                        plugin, f"rejected due to timeout after waiting {waited} at plugin {plugin}"
                    )
                    break

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
            self._pods[entry["uid"]] = WaitingPod(
                pods[entry["uid"]],
                entry["node"],
                entry["sinceNs"],
                dict(entry["deadlinesNs"]),
                list(entry["allowed"]),
            )


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
