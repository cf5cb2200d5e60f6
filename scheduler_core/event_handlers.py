"""Cluster events: what each change of an object does to the cache, the queue and the waiting pods.

Source: pkg/scheduler/eventhandlers.go, v1.34
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from scheduler_core.cluster.cache import Cache, PodGroups
from scheduler_core.cluster.nominator import Nominator
from scheduler_core.dynamic_resources.model import tainted
from scheduler_core.framework import cluster_event
from scheduler_core.framework.waiting_pods import WaitingPods
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod
from scheduler_core.queue.queued_pod_info import Lane
from scheduler_core.queue.scheduling_queue import SchedulingQueue

_SLICE_UPDATE = cluster_event.ClusterEvent(
    cluster_event.RESOURCE_OF_KIND["ResourceSlice"], cluster_event.ActionType.UPDATE
)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class EventHandlers:
    """Keeps cache, nominations and queue in step with the cluster.

    Parameters
    ----------
    is_responsible : callable
        Whether one of our profiles schedules the pod.
    with_taint_rules : bool
        Whether DeviceTaintRules change what ResourceSlices are to the scheduler.
    gated_nominations_hold : bool
        Whether a new pod that is gated keeps its nominated node; otherwise once it is not gated any more.
    """

    cache: Cache
    queue: SchedulingQueue
    nominator: Nominator
    waiting_pods: WaitingPods
    pod_groups: PodGroups
    is_responsible: Callable[[Pod], bool]
    with_taint_rules: bool = False
    gated_nominations_hold: bool = False

    def object_changed(self, kind: str, old: Any | None, new: Any | None) -> None:
        """One object was added, updated or deleted; deleting what is not there changes nothing."""
        if kind == "Pod":
            self._pod_changed(old, new)
        elif kind == "Node":
            self._node_changed(old, new)
        else:
            self._other_changed(kind, old, new)

    # ---- nodes

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is None:
            if old is not None and self.cache.node(old.name) is not None:
                self.queue.move_all(cluster_event.NODE_DELETE, old, None)
                self.cache.remove_node(old.name)
            return
        before = self.cache.node(new.name)
        self.cache.set_node(new)
        if before is None:
            self.queue.move_all(cluster_event.NODE_ADD, None, new)
        else:
            for event in cluster_event.node_update_events(before, new):
                self.queue.move_all(event, before, new)

    # ---- pods

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        # A finished pod does not exist for the scheduler: finishing is being deleted.
        if new is not None and new.is_terminal:
            if old is None:
                return
            new = None
        if old is not None and old.is_terminal:
            old = None
        if new is None:
            if old is not None:
                self._pod_deleted(old)
        elif old is None:
            self._pod_added(new)
        elif old.uid != new.uid or (old.node_name and not new.node_name):
            # A watch may miss that a pod was deleted and made anew under the same name; no pod leaves its node.
            self._pod_deleted(old)
            self._pod_added(new)
        else:
            self._pod_updated(old, new)

    def _pod_added(self, pod: Pod) -> None:
        if pod.node_name:
            self.pod_groups.set(pod)
            self.cache.add_pod(pod)
            self.queue.move_all(cluster_event.ASSIGNED_POD_ADD, None, pod)
        elif self.is_responsible(pod):
            self.pod_groups.set(pod)
            is_gated = self.queue.add(pod) is Lane.UNSCHEDULABLE
            if self.gated_nominations_hold or not is_gated:
                self.nominator.add(pod)
            if self.pod_groups.are_gangs:
                self.queue.move_all(cluster_event.UNSCHEDULED_POD_ADD, None, pod)

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        if new.scheduling_group and (new.node_name or self.is_responsible(new)):
            self.pod_groups.set(new)
        if old.node_name:
            self.cache.update_pod(new)
            for event in cluster_event.pod_update_events(old, new):
                self.queue.move_all(event, old, new)
        elif new.node_name:
            # This is its binding: adding it to the cache confirms the assumed pod.
            self.cache.add_pod(new)
            self.nominator.remove(new.uid)
            self.queue.move_all(cluster_event.ASSIGNED_POD_ADD, None, new)
            if self.is_responsible(old):
                self.queue.delete(old)
        elif self.is_responsible(new):
            self._pending_pod_updated(old, new)
        elif self.is_responsible(old):
            # It now asks for what is not simulated, or for another scheduler.
            self._pod_deleted(old)

    def _pending_pod_updated(self, old: Pod, new: Pod) -> None:
        if self.cache.is_assumed(new.uid):
            return
        self.nominator.update(old, new)
        self.queue.update(old, new)
        nomination_left = old.nominated_node_name and old.nominated_node_name != new.nominated_node_name
        if nomination_left:
            # Pods of the same or lower priority took the nominated pod into account as if it ran there.
            self.queue.move_all(
                cluster_event.ASSIGNED_POD_DELETE, old, None, pre_check=_at_most(old.priority)
            )

    def _pod_deleted(self, pod: Pod) -> None:
        self.pod_groups.remove(pod)
        if pod.node_name:
            self.nominator.remove(pod.uid)
            if self.cache.remove_pod(pod.uid):
                self.queue.move_all(cluster_event.ASSIGNED_POD_DELETE, pod, None)
            return
        if not self.is_responsible(pod):
            return
        self.queue.move_all(cluster_event.UNSCHEDULED_POD_DELETE, pod, None)
        self.queue.delete(pod)
        self.nominator.remove(pod.uid)
        waiting = self.waiting_pods.get(pod.uid)
        rejected = waiting is not None and waiting.reject("", "removed")
        self.take_off_deleted(pod)
        if rejected or pod.nominated_node_name:
            self.queue.move_all(
                cluster_event.ASSIGNED_POD_DELETE, pod, None, pre_check=_at_most(pod.priority)
            )

    def take_off_deleted(self, pod: Pod) -> None:
        """Remove a deleted pod from its node; its binding was never seen by the watch.

        Without this it would stay: upstream counts it there until it expires, which by default is never.
        """
        assumed = self.cache.assumed.get(pod.uid)
        if assumed is not None and assumed.binding_finished:
            self.cache.remove_pod(pod.uid)
            # Hints look at the node: a pod that was on none frees nothing.
            there = dataclasses.replace(pod, node_name=assumed.node_name)
            self.queue.move_all(cluster_event.ASSIGNED_POD_DELETE, there, None)

    # ---- everything else

    def _other_changed(self, kind: str, old: Any | None, new: Any | None) -> None:
        listers = self.cache.listers
        subject = new if new is not None else old
        if subject is None:
            return
        if new is None:
            listers.remove(kind, subject.meta.namespace, subject.meta.name)
        else:
            listers.set(kind, new.meta.namespace, new.meta.name, new)
        if kind == "DeviceTaintRule" and self.with_taint_rules:
            rules = [one.manifest for one in (old, new) if one is not None]
            for item in listers.all("ResourceSlice"):
                if tainted(item.manifest, rules) is not item.manifest:
                    self.queue.move_all(_SLICE_UPDATE, item, item)
        resource = cluster_event.RESOURCE_OF_KIND.get(kind)
        if resource is not None:
            for event in cluster_event.events_for(resource, old, new):
                self.queue.move_all(event, old, new)


def _at_most(priority: int) -> Callable[[Pod], bool]:
    return lambda pod: pod.priority <= priority
