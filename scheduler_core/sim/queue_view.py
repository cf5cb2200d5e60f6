"""Every pending pod, lane by lane, as a page or the API shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from scheduler_core.objects.fields import format_time_ns
from scheduler_core.objects.pod import Pod
from scheduler_core.queue.lanes import ORDERING_WINDOW_NS
from scheduler_core.queue.queued_pod_info import Lane, QueuedPodInfo
from scheduler_core.scheduler import Scheduler
from scheduler_core.sim.controllers import karpenter
from scheduler_core.sim.controllers.autoscaler import SYNC
from scheduler_core.sim.controllers.cluster_autoscaler import ARRIVES, DRAINS, LOOPS
from scheduler_core.sim.controllers.descheduler import CYCLES
from scheduler_core.sim.controllers.job import BACKOFF, DEADLINE, TTL
from scheduler_core.sim.controllers.node_lifecycle import COLLECT, EVICT, LOADED, RESTARTS
from scheduler_core.sim.controllers.vertical_pod_autoscaler import LOOKS
from scheduler_core.sim.kubelet import FINISHES, STARTS, TERMINATED
from scheduler_core.sim.options import RELIST, SLOW_BIND, SLOW_EVICT
from scheduler_core.sim.timers import Timer

# --- What a cluster waits for next, in words: timers of kubelets, controllers and faults, and the scheduler's own.


_WORDS = {
    STARTS: "pod {} starts",
    FINISHES: "pod {} ends by itself",
    TERMINATED: "pod {} has terminated",
    EVICT: "pod {} is evicted for a taint it tolerates no longer",
    LOADED: "what pods use is looked at, of nodes that may crash",
    RESTARTS: "the crashed node {} starts again",
    COLLECT: "pods of the lost node {} are collected",
    TTL: "the finished job {} is removed",
    DEADLINE: "job {} has been active for as long as it may",
    BACKOFF: "job {} makes pods again after failures",
    SYNC: "autoscaler {} looks at its workload",
    LOOPS: "the next loop of the cluster autoscaler",
    DRAINS: "the cluster autoscaler goes on draining",
    ARRIVES: "a new node of group {} arrives",
    CYCLES: "the next cycle of the descheduler",
    karpenter.LOOPS: "Karpenter looks again",
    karpenter.LAUNCHES: "the new node {} registers",
    karpenter.VALIDATES: "Karpenter judges again what it is about to disrupt",
    karpenter.DRAINS: "Karpenter goes on draining",
    LOOKS: "the next look of the vertical pod autoscaler",
    SLOW_BIND: "the slow binding of {} is answered",
    SLOW_EVICT: "the slow evictions for {} are answered",
    RELIST: "the watch lists {} again",
}


def timer_words(timer: Timer) -> str:
    """A timer for a person."""
    return _WORDS[timer.what].format("/".join(timer.subject[:2]))


def scheduler_words(scheduler: Scheduler, at_ns: int) -> str:
    """What the scheduler waits for until a moment, for a person."""
    for waiting in scheduler.waiting_pods.all():
        for plugin, deadline_ns in waiting.deadlines_ns.items():
            if deadline_ns == at_ns:
                return f"the Permit deadline of {waiting.pod.key} ({plugin})"
    for uid, assumed in scheduler.cache.assumed.items():
        if assumed.deadline_ns == at_ns:
            pod = scheduler.cache.pod(uid)
            return f"pod {pod.key if pod is not None else uid} is no longer assumed on {assumed.node_name}"
    if scheduler.queue.next_backoff_flush_ns() == at_ns:
        return "a pod leaves backoff"
    if scheduler.queue.next_unschedulable_flush_ns() == at_ns:
        return "the flush of unschedulable pods"
    return "the end of a wait in PreBind"


class QueueView:
    """Lanes of the queue at this moment, to be asked before the scheduler goes on; a pod is described when asked for.

    The lanes are `active` in heap order, `backoff` (errors included) by expiry, `unschedulable`, `gated`, `permit`,
    `binding` (assumed on their node until the Binding is heard of), and `foreign`: pods that ask for what nothing here
    gives, each with the reason. Keys of a pod: `pod` (`namespace/name`) always; where there is something to tell `uid`,
    `priority`, `priority_class`, `attempts`, `since_ns`, `until_ns` (end of the backoff, or the first deadline),
    `reason`, `node` (held, or nominated), `plugin` (that holds or rejected it), `event` and `event_reason` (what moved
    it last), `deadlines` and `allowed` (at Permit, by plugin).

    Parameters
    ----------
    scheduler : Scheduler
    strangers : mapping of str to (Pod, str)
        Pending pods the scheduler is not responsible for, by `namespace/name`, and why.
    """

    def __init__(self, scheduler: Scheduler, strangers: Mapping[str, tuple[Pod, str]]) -> None:
        self._scheduler = scheduler
        queue = scheduler.queue
        unschedulable = queue.unschedulable_pods()
        self._queued: dict[str, list[QueuedPodInfo]] = {
            "active": queue.active_pods(),
            "backoff": [*queue.backoff_pods(), *queue.error_backoff_pods()],
            "unschedulable": [info for info in unschedulable if not info.gated],
            "gated": [info for info in unschedulable if info.gated],
        }
        self._others: dict[str, list[dict[str, Any]]] = {
            "permit": [
                _described(
                    waiting.pod.key,
                    waiting.pod,
                    node=waiting.node_name,
                    since_ns=waiting.since_ns,
                    until_ns=min(waiting.deadlines_ns.values(), default=None),
                    plugin=", ".join(waiting.deadlines_ns),
                    deadlines=dict(waiting.deadlines_ns),
                    allowed=list(waiting.allowed),
                )
                for waiting in scheduler.waiting_pods.all()
            ],
            "binding": _binding(scheduler),
            "foreign": [
                *(
                    _described(key, pod, attempts=0, reason=reason)
                    for key, (pod, reason) in sorted(strangers.items())
                ),
                *_expired(scheduler),
            ],
        }

    def keys(self) -> dict[str, list[str]]:
        """`namespace/name` of every pending pod, lane by lane."""
        queued = {lane: [info.key for info in infos] for lane, infos in self._queued.items()}
        return queued | {lane: [item["pod"] for item in items] for lane, items in self._others.items()}

    def nodes(self, lane: str) -> list[tuple[str, str]]:
        """`namespace/name` and node of the pods of `permit` or `binding`."""
        return [(item["pod"], item["node"]) for item in self._others[lane]]

    def entries(self, most: int | None = None) -> dict[str, list[dict[str, Any]]]:
        """Pods as a page or the API shows them, lane by lane; the first `most` of each."""
        queued = {lane: _entries(self._scheduler, infos[:most]) for lane, infos in self._queued.items()}
        return queued | {lane: items[:most] for lane, items in self._others.items()}

    def rejectors(self) -> dict[str, int]:
        """How many unschedulable pods each plugin rejected."""
        return dict(Counter(plugin for info in self._queued["unschedulable"] for plugin in info.rejectors))


def _described(key: str, pod: Pod, **facts: Any) -> dict[str, Any]:
    of_class = (pod.manifest.get("spec") or {}).get("priorityClassName")
    told = {"pod": key, "uid": pod.uid, "priority": pod.priority, "priority_class": of_class, **facts}
    return {name: value for name, value in told.items() if value not in (None, "")}


def _expired(scheduler: Scheduler) -> list[dict[str, Any]]:
    """Pods that were assumed for too long: nothing tries them before they change."""
    result = []
    for uid, (node, at_ns) in scheduler.expired.items():
        pod = scheduler.pods.get(uid)
        if pod is not None:
            said = f"Expired at {format_time_ns(at_ns)}, no longer assumed on {node}: tried again when it changes"
            result.append(_described(pod.key, pod, attempts=0, reason=said))
    return result


def _binding(scheduler: Scheduler) -> list[dict[str, Any]]:
    """Pods the scheduler has placed and does not hear of yet: being bound, or said to be bound by an extender."""
    result = []
    for uid, assumed in scheduler.cache.assumed.items():
        pod = scheduler.pods.get(uid)
        if pod is None or scheduler.waiting_pods.get(uid) is not None:
            continue
        said = (
            "The bind call is answered; waits for the Binding"
            if assumed.binding_finished
            else "Is being bound"
        )
        result.append(
            _described(pod.key, pod, node=assumed.node_name, until_ns=assumed.deadline_ns, reason=said)
        )
    return result


def _entries(scheduler: Scheduler, infos: Iterable[QueuedPodInfo]) -> list[dict[str, Any]]:
    return [
        _described(
            info.key,
            info.pod,
            attempts=info.attempts,
            since_ns=info.timestamp_ns,
            until_ns=_leaves_backoff_ns(scheduler, info),
            reason=info.gating_reason or _pod_scheduled_message(info),
            node=scheduler.nominator.node_of(info.pod.uid),
            plugin=", ".join(info.rejectors) or info.gating_plugin,
            event=info.entered_by,
            event_reason=info.entered_reason,
        )
        for info in infos
    ]


def _pod_scheduled_message(info: QueuedPodInfo) -> str:
    status = info.pod.manifest.get("status") or {}
    for condition in status.get("conditions") or []:
        if condition.get("type") == "PodScheduled":
            return str(condition.get("message") or "")
    return ""


def _leaves_backoff_ns(scheduler: Scheduler, info: QueuedPodInfo) -> int | None:
    """When time alone takes the pod out of backoffQ: with the end of the second its backoff ends in."""
    if info.lane not in (Lane.BACKOFF, Lane.ERROR_BACKOFF):
        return None
    expiration_ns = scheduler.queue.expiration_ns(info)
    return None if expiration_ns is None else expiration_ns + ORDERING_WINDOW_NS
