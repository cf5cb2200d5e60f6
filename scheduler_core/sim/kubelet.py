"""What kubelets do to pods on their nodes: start them, end them, report it.

Annotations a pod may carry (all optional, Kubernetes durations or seconds):
`playground.dev/duration` ends the pod that long after it started, whatever its restartPolicy (as what,
`playground.dev/ends-as` says: `Succeeded`, the default, or `Failed`); `playground.dev/start-delay` starts it later.

A kubelet is silent while its node's Ready condition is Unknown, and gone with its node: pods there neither start nor
end nor terminate until it is heard of again.
"""

from __future__ import annotations

from typing import Any

from scheduler_core.clock import SECOND_NS
from scheduler_core.objects.fields import format_seconds
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod
from scheduler_core.sim.durations import duration_ns
from scheduler_core.sim.pod_index import PodIndex
from scheduler_core.sim.timers import Timers
from scheduler_core.sim.world import Noticed, Stored, World, with_conditions

DURATION = "playground.dev/duration"
ENDS_AS = "playground.dev/ends-as"
START_DELAY = "playground.dev/start-delay"

STARTS, FINISHES, TERMINATED = "pod-starts", "pod-finishes", "pod-terminated"
TIMER_NAMES = (STARTS, FINISHES, TERMINATED)
DEFAULT_GRACE_S = 30


def ready_status(node: Node) -> str:
    """`True`, `False` or `Unknown`; a node that says nothing is ready, as hand-written ones do not."""
    return next((status for type_, status in node.conditions if type_ == "Ready"), "True")


def is_heard_of(node: Node | None) -> bool:
    """Whether a kubelet works there."""
    return node is not None and ready_status(node) != "Unknown"


class Kubelet:
    """All kubelets of the cluster at once."""

    def __init__(self, world: World, timers: Timers, pods: PodIndex) -> None:
        self._world = world
        self._timers = timers
        self._pods = pods

    def noticed(self, change: Noticed) -> None:
        """A pod or node changed."""
        if change.kind == "Pod":
            self._pod_changed(change.old, change.new)
        elif change.kind == "Node":
            self._node_changed(change.old, change.new)

    def _node_changed(self, old: Stored | None, new: Stored | None) -> None:
        was, is_now = (is_heard_of(None if stored is None else stored.typed) for stored in (old, new))
        stored = new or old
        if was == is_now or stored is None:
            return
        on_node = self._pods.on_node(stored.typed.name).pods
        for key in sorted(on_node):
            if is_now:
                self._look_at(on_node[key])
            else:
                self._cancel(on_node[key])

    def _cancel(self, pod: Pod) -> None:
        for what in TIMER_NAMES:
            self._timers.cancel(what, pod.namespace, pod.name, pod.uid)

    def _pod_changed(self, old: Stored | None, new: Stored | None) -> None:
        before: Pod | None = None if old is None else old.typed
        if before is not None and (new is None or new.typed.uid != before.uid):
            if before.node_name:
                self._cancel(before)
            before = None
        if new is None:
            return
        pod: Pod = new.typed
        if not pod.node_name:
            return
        if (
            before is None
            or not before.node_name
            or before.phase != pod.phase
            or before.meta.deletion_ns != pod.meta.deletion_ns
        ):
            self._look_at(pod)

    def _look_at(self, pod: Pod) -> None:
        """Set the timer for what happens next to a pod on a node."""
        if not is_heard_of(self._world.node(pod.node_name)):
            return
        now_ns = self._world.clock.now_ns
        subject = (pod.namespace, pod.name, pod.uid)
        # Objects tell whole seconds; what is looked at in the moment it happens keeps its time to the nanosecond.
        fraction_ns = now_ns % SECOND_NS
        if pod.is_terminating:
            self._timers.cancel(STARTS, *subject)
            self._timers.cancel(FINISHES, *subject)
            self._timers.add(max((pod.meta.deletion_ns or 0) + fraction_ns, now_ns), TERMINATED, *subject)
        elif pod.is_terminal:
            self._timers.cancel(FINISHES, *subject)
        elif pod.phase in ("", "Pending"):
            self._timers.add(now_ns + _annotated_ns(pod, START_DELAY, 0), STARTS, *subject)
        else:
            lasts_ns = _annotated_ns(pod, DURATION, -1)
            if lasts_ns >= 0:
                began_ns = now_ns if pod.start_ns is None else pod.start_ns + fraction_ns
                self._timers.add(max(began_ns + lasts_ns, now_ns), FINISHES, *subject)

    def timer(self, what: str, namespace: str, name: str, uid: str) -> None:
        """A timer of ours has come; a kubelet nobody hears of does nothing, and looks again when it is back."""
        pod = self._world.pod(namespace, name)
        if pod is None or pod.uid != uid or not is_heard_of(self._world.node(pod.node_name)):
            return
        if what == TERMINATED:
            if pod.is_terminating:
                self._world.remove("Pod", namespace, name, "terminated")
        elif not pod.is_terminating and not pod.is_terminal:
            if what == STARTS:
                self._start(pod)
            else:
                self._finish(pod)

    def _start(self, pod: Pod) -> None:
        if pod.phase == "Running":
            return
        now = format_seconds(self._world.clock.now_ns)
        status: dict[str, Any] = dict(pod.manifest.get("status") or {})
        status["phase"] = "Running"
        # Starting is what begins a duration: a delay does not count.
        status["startTime"] = now
        status["conditions"] = with_conditions(
            status,
            [
                {"type": type_, "status": "True", "lastTransitionTime": now}
                for type_ in ("Initialized", "ContainersReady", "Ready")
            ],
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

    def _finish(self, pod: Pod) -> None:
        now = format_seconds(self._world.clock.now_ns)
        annotations = pod.manifest["metadata"].get("annotations") or {}
        failed = annotations.get(ENDS_AS) == "Failed"
        status: dict[str, Any] = dict(pod.manifest.get("status") or {})
        status["phase"] = "Failed" if failed else "Succeeded"
        ended = {
            "exitCode": 1 if failed else 0,
            "reason": "Error" if failed else "Completed",
            "finishedAt": now,
        }
        status["conditions"] = with_conditions(
            status,
            [
                {
                    "type": type_,
                    "status": "False",
                    "reason": "PodFailed" if failed else "PodCompleted",
                    "lastTransitionTime": now,
                }
                for type_ in ("ContainersReady", "Ready")
            ],
        )
        status["containerStatuses"] = [
            {**item, "ready": False, "started": False, "state": {"terminated": ended}}
            for item in status.get("containerStatuses") or ()
        ]
        self._world.patch_status(pod, status, "finished")


def delete_pod(world: World, pod: Pod, grace_period_s: int | None, reason: str | None) -> None:
    """Delete a pod as the API server does: at once where no kubelet is concerned, gracefully otherwise."""
    spec = pod.manifest.get("spec") or {}
    grace_s = grace_period_s
    if grace_s is None:
        written = spec.get("terminationGracePeriodSeconds")
        grace_s = DEFAULT_GRACE_S if written is None else int(written)
    if not pod.node_name or pod.is_terminal or grace_s <= 0:
        world.remove("Pod", pod.namespace, pod.name, reason)
        return
    ends_ns = world.clock.now_ns + grace_s * SECOND_NS
    if pod.meta.deletion_ns is not None and pod.meta.deletion_ns <= ends_ns:
        return
    meta = {
        **pod.manifest["metadata"],
        "deletionTimestamp": format_seconds(ends_ns),
        "deletionGracePeriodSeconds": grace_s,
    }
    world.put_pod(pod, {**pod.manifest, "metadata": meta}, reason)


def _annotated_ns(pod: Pod, annotation: str, default_ns: int) -> int:
    annotations = pod.manifest["metadata"].get("annotations")
    if not annotations or annotation not in annotations:
        return default_ns
    try:
        return duration_ns(str(annotations[annotation]))
    except ValueError:
        # Admission refuses such a pod; one that got in otherwise is treated as if nothing were said.
        return default_ns
