"""GangScheduling: the members of a gang get nodes together, or none does.

Source: pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go, v1.36
"""

from __future__ import annotations

from typing import Any, ClassVar

from scheduler_core.framework.cluster_event import QUEUE, SKIP, ClusterEventWithHint, QueueingHint, on
from scheduler_core.framework.interface import PermitPlugin, PreEnqueuePlugin
from scheduler_core.framework.status import SUCCESS, Code, Status
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.policy import KIND, PodGroup

PERMIT_TIMEOUT_NS = 5 * 60 * 1_000_000_000

_MEMBER = QUEUE.because("a pod of the same group was created")
_GROUP = QUEUE.because("the pod's group was created")
_STRANGER = SKIP.because("it has nothing to do with the pod's group")


class GangScheduling(PreEnqueuePlugin, PermitPlugin):
    """Holds members back until there are enough of them, and lets them wait until enough of them hold a node."""

    name: ClassVar[str] = "GangScheduling"
    default_weight: ClassVar[int | None] = 0
    feature_gate: ClassVar[str | None] = "GangScheduling"

    def events(self) -> list[ClusterEventWithHint]:
        return [
            on("Pod", "Add", _after_pod_added),
            on("PodGroup", "Add", _after_group_added),
        ]

    def pre_enqueue(self, pod: Pod) -> Status:
        key = self.handle.pod_groups.group_of(pod)
        if key is None:
            return SUCCESS
        group: PodGroup | None = self.handle.listers.get(KIND, *key)
        if group is None:
            reason = f'waiting for pods\'s pod group "{key[1]}" to appear in scheduling queue'
            return Status(Code.UnschedulableAndUnresolvable, (reason,))
        if group.min_count is not None and self.handle.pod_groups.n_members(key) < group.min_count:
            reason = "waiting for minCount pods from a gang to appear in scheduling queue"
            return Status(Code.UnschedulableAndUnresolvable, (reason,))
        return SUCCESS

    def permit(self, pod: Pod, node_name: str) -> tuple[Status, int]:
        groups = self.handle.pod_groups
        key = groups.group_of(pod)
        if key is None:
            return SUCCESS, 0
        group: PodGroup | None = self.handle.listers.get(KIND, *key)
        if group is None:
            reason = (
                f'failed to get podGroup {key[0]}/{key[1]}: podgroup.scheduling.k8s.io "{key[1]}" not found'
            )
            return Status(Code.Error, (reason,)), 0
        if group.min_count is None:
            return SUCCESS, 0
        if groups.n_scheduled(key) < group.min_count:
            # The others may have waited for this one.
            self.handle.activate(groups.unscheduled(key))
            reason = "waiting for minCount pods from a gang to be scheduled"
            return Status(Code.Wait, (reason,)), PERMIT_TIMEOUT_NS
        for member in groups.assumed(key):
            waiting = self.handle.waiting_pods.get(member.uid)
            if waiting is not None:
                waiting.allow(self.name)
        return SUCCESS, 0


def _after_pod_added(pod: Pod, old: Any, new: Pod | None) -> QueueingHint:
    is_member = (
        new is not None
        and bool(pod.scheduling_group)
        and (new.namespace, new.scheduling_group) == (pod.namespace, pod.scheduling_group)
    )
    return _MEMBER if is_member else _STRANGER


def _after_group_added(pod: Pod, old: Any, new: PodGroup | None) -> QueueingHint:
    is_its_own = (
        new is not None
        and bool(pod.scheduling_group)
        and (new.meta.namespace, new.meta.name) == (pod.namespace, pod.scheduling_group)
    )
    return _GROUP if is_its_own else _STRANGER
