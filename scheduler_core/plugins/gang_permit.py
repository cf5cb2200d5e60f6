"""GangPermit: a group of pods is bound together, once enough of them hold a node. Not in any default profile.

Source: the Permit part of sigs.k8s.io/scheduler-plugins pkg/coscheduling, v0.31
Differs: the group is described on its pods (no PodGroup objects); no PreFilter, PostFilter or queue order of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from scheduler_core.cluster.selection import PodSelector
from scheduler_core.config.args import Errors, PluginArgs
from scheduler_core.errors import invalid
from scheduler_core.framework.cluster_event import QUEUE, SKIP, ClusterEventWithHint, QueueingHint, on
from scheduler_core.framework.interface import Handle, PermitPlugin, ReservePlugin
from scheduler_core.framework.status import SUCCESS, Code, Status
from scheduler_core.objects.duration import parse_duration_ns
from scheduler_core.objects.labels import selector_from_labels
from scheduler_core.objects.pod import Pod

GROUP = "scheduling.x-k8s.io/pod-group"
"""Label: the pod's group, within its namespace."""
MIN_AVAILABLE = "scheduling.x-k8s.io/min-available"
"""Label or annotation: how many members must hold a node before any is bound."""
TIMEOUT = "scheduling.x-k8s.io/permit-timeout"
"""Annotation: how long members wait for each other, as Go writes durations."""
DEFAULT_TIMEOUT_S = 60


_SIBLING = QUEUE.because("a pod of the same group came or changed")
_STRANGER = SKIP.because("the pod is of another group")


@dataclass(frozen=True, slots=True)
class GangPermitArgs(PluginArgs):
    """How long members wait for each other that do not say so themselves."""

    permit_waiting_time_seconds: float = DEFAULT_TIMEOUT_S

    def problems(self, path: str) -> Errors:
        if self.permit_waiting_time_seconds < 0:
            where = f"{path}.permitWaitingTimeSeconds"
            return [invalid(where, self.permit_waiting_time_seconds, "must not be negative")]
        return []


class GangPermit(PermitPlugin, ReservePlugin):
    """Members wait for each other; when one has waited too long, all of them give their nodes back."""

    name: ClassVar[str] = "GangPermit"
    Args = GangPermitArgs
    group_labels: ClassVar[tuple[str, ...]] = (GROUP,)

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self.timeout_ns = int(args.permit_waiting_time_seconds * 1_000_000_000)

    def events(self) -> list[ClusterEventWithHint]:
        return [on("Pod", "Add|UpdatePodLabel", _after_sibling)]

    def permit(self, pod: Pod, node_name: str) -> tuple[Status, int]:
        group = group_of(pod)
        if not group:
            return SUCCESS, 0
        written = _said(pod, MIN_AVAILABLE)
        if written is None:
            return SUCCESS, 0
        if not written.isdecimal():
            reason = f'{MIN_AVAILABLE}: "{written}" is not a number'
            return Status(Code.UnschedulableAndUnresolvable, (reason,)), 0
        # The pod itself is assumed already, and so is every other member that waits.
        members = (PodSelector(selector_from_labels({GROUP: group}), (pod.namespace,)),)
        reserved = int(self.handle.snapshot.matching.selection(members, live_only=True).column.sum())
        if reserved >= int(written):
            for waiting in self.handle.waiting_pods.undecided(pod.namespace, GROUP, group):
                waiting.allow(self.name)
            return SUCCESS, 0
        wait_ns = self.timeout_ns
        timeout = _said(pod, TIMEOUT)
        if timeout is not None:
            try:
                wait_ns = max(parse_duration_ns(timeout), 0)
            except ValueError as error:
                return Status(Code.UnschedulableAndUnresolvable, (f"{TIMEOUT}: {error}",)), 0
        return Status(
            Code.Wait, (f"{reserved} of {written} members of pod group {group} hold a node",)
        ), wait_ns

    def wakes(self, pod: Pod, other: Pod) -> bool:
        """A member that waits wants the others tried again."""
        return other.namespace == pod.namespace and bool(group_of(pod)) and group_of(other) == group_of(pod)

    def unreserve(self, pod: Pod, node_name: str) -> None:
        """One member that gives up takes all that still wait with it."""
        group = group_of(pod)
        if not group:
            return
        for waiting in self.handle.waiting_pods.undecided(pod.namespace, GROUP, group):
            if waiting.pod.uid != pod.uid:
                waiting.reject(self.name, f"pod {pod.name} of pod group {group} did not get through")


def _after_sibling(pod: Pod, old: Pod | None, new: Pod | None) -> QueueingHint:
    if new is None or new.namespace != pod.namespace or group_of(new) != group_of(pod):
        return _STRANGER
    # Being bound is no news of a sibling: it had its say at Permit.
    return _SIBLING if not new.node_name else _STRANGER


def group_of(pod: Pod) -> str:
    """The pod's group, empty for none."""
    return pod.labels.get(GROUP, "")


def _said(pod: Pod, key: str) -> str | None:
    """A label or, failing that, an annotation."""
    if key in pod.labels:
        return pod.labels[key]
    value = pod.annotations.get(key)
    return None if value is None else str(value)
