"""What a cluster waits for next, in words: timers of kubelets, controllers and faults, and the scheduler's own."""

from __future__ import annotations

from scheduler_core.scheduler import Scheduler
from scheduler_core.sim.controllers.autoscaler import SYNC
from scheduler_core.sim.controllers.cron_job import DUE
from scheduler_core.sim.controllers.job import BACKOFF, DEADLINE, TTL
from scheduler_core.sim.controllers.pod_garbage_collector import COLLECT
from scheduler_core.sim.controllers.taint_eviction import EVICT
from scheduler_core.sim.faults import RELIST, SLOW_BIND, SLOW_EVICT
from scheduler_core.sim.kubelet import FINISHES, STARTS, TERMINATED
from scheduler_core.sim.timers import Timer

_WORDS = {
    STARTS: "pod {} starts",
    FINISHES: "pod {} ends by itself",
    TERMINATED: "pod {} has terminated",
    EVICT: "pod {} is evicted for a taint it tolerates no longer",
    COLLECT: "pods of the lost node {} are collected",
    TTL: "the finished job {} is removed",
    DEADLINE: "job {} has been active for as long as it may",
    BACKOFF: "job {} makes pods again after failures",
    DUE: "cron job {} is due",
    SYNC: "autoscaler {} looks at its workload",
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
