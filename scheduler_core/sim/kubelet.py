"""What kubelets do to pods on their nodes: start them, end them, report it.

Annotations a pod may carry (all optional, Kubernetes durations or seconds):
`playground.dev/duration` ends the pod that long after it started, `playground.dev/start-delay` starts it later.
"""

from __future__ import annotations

from typing import Any

from scheduler_core.clock import SECOND_NS
from scheduler_core.objects.fields import format_time_ns
from scheduler_core.objects.pod import Pod
from scheduler_core.sim.durations import duration_ns
from scheduler_core.sim.timers import Timers
from scheduler_core.sim.world import Stored, World, with_condition

DURATION = "playground.dev/duration"
START_DELAY = "playground.dev/start-delay"

STARTS, FINISHES, TERMINATED = "pod-starts", "pod-finishes", "pod-terminated"
DEFAULT_GRACE_S = 30


class Kubelet:
    """All kubelets of the cluster at once."""

    def __init__(self, world: World, timers: Timers) -> None:
        self._world = world
        self._timers = timers

    def pod_changed(self, old: Stored | None, new: Stored | None) -> None:
        """Notice pods that were put on a node or are to end."""
        if new is None:
            return
        pod: Pod = new.typed
        if not pod.node_name or pod.is_terminal:
            return
        now_ns = self._world.clock.now_ns
        was_there = old is not None and old.typed.uid == pod.uid and bool(old.typed.node_name)
        if not was_there and pod.phase in ("", "Pending"):
            self._timers.add(now_ns + _annotated_ns(pod, START_DELAY, 0), STARTS, pod.namespace, pod.name, pod.uid)
        if pod.is_terminating and not (was_there and old is not None and old.typed.is_terminating):
            ends_ns = max(pod.meta.deletion_ns or now_ns, now_ns)
            self._timers.add(ends_ns, TERMINATED, pod.namespace, pod.name, pod.uid)

    def timer(self, what: str, namespace: str, name: str, uid: str) -> None:
        """A timer of ours has come."""
        pod = self._world.pod(namespace, name)
        if pod is None or pod.uid != uid:
            return
        if what == STARTS:
            self._start(pod)
        elif what == FINISHES:
            if not pod.is_terminal and not pod.is_terminating:
                self._world.patch_status(pod, {**pod.manifest.get("status", {}), "phase": "Succeeded"}, "finished")
        elif what == TERMINATED and pod.is_terminating:
            self._world.remove("Pod", namespace, name, "terminated")

    def _start(self, pod: Pod) -> None:
        if pod.is_terminating or pod.is_terminal or pod.phase == "Running":
            return
        now_ns = self._world.clock.now_ns
        now = format_time_ns(now_ns)
        status: dict[str, Any] = dict(pod.manifest.get("status") or {})
        status["phase"] = "Running"
        status.setdefault("startTime", now)
        for type_ in ("Initialized", "ContainersReady", "Ready"):
            status["conditions"] = with_condition(
                status, {"type": type_, "status": "True", "lastTransitionTime": now}
            )
        status["containerStatuses"] = [
            {
                "name": container.get("name", ""),
                "image": container.get("image", ""),
                "imageID": "",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": now}},
                "lastState": {},
            }
            for container in pod.manifest["spec"].get("containers") or []
        ]
        self._world.patch_status(pod, status, "started")
        ends_ns = _annotated_ns(pod, DURATION, -1)
        if ends_ns >= 0:
            self._timers.add(now_ns + ends_ns, FINISHES, pod.namespace, pod.name, pod.uid)


def delete_pod(world: World, pod: Pod, grace_period_s: int | None, reason: str | None) -> None:
    """Delete a pod as the API server does: at once where no kubelet is concerned, gracefully otherwise."""
    spec = pod.manifest.get("spec") or {}
    grace_s = grace_period_s
    if grace_s is None:
        grace_s = int(spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE_S))
    if not pod.node_name or pod.is_terminal or grace_s <= 0:
        world.remove("Pod", pod.namespace, pod.name, reason)
        return
    ends_ns = world.clock.now_ns + grace_s * SECOND_NS
    if pod.meta.deletion_ns is not None and pod.meta.deletion_ns <= ends_ns:
        return
    meta = {
        **pod.manifest["metadata"],
        "deletionTimestamp": format_time_ns(ends_ns),
        "deletionGracePeriodSeconds": grace_s,
    }
    manifest = {**pod.manifest, "metadata": meta}
    world.put(manifest, reason)


def _annotated_ns(pod: Pod, annotation: str, default_ns: int) -> int:
    annotations = pod.manifest["metadata"].get("annotations") or {}
    text = annotations.get(annotation)
    return default_ns if text is None else duration_ns(str(text))
