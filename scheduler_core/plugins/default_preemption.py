"""DefaultPreemption: makes room for a pod that fits nowhere, at the cost of less important ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from scheduler_core.config.args import Errors, PluginArgs
from scheduler_core.config.wire import Int32
from scheduler_core.errors import invalid
from scheduler_core.framework import interface as fw
from scheduler_core.framework.cluster_event import SKIP, ClusterEventWithHint, QueueingHint, on
from scheduler_core.framework.preemption.evaluator import preempt
from scheduler_core.framework.preemption.reprieve import KeptTries
from scheduler_core.framework.preemption.trace import PreemptionTrace
from scheduler_core.framework.status import SUCCESS, Code, Status
from scheduler_core.objects.pod import PREEMPTED_BY_SCHEDULER, Pod
from scheduler_core.objects.policy import KIND, PodGroup

NEVER = "not eligible due to preemptionPolicy=Never."
LEFT_TO_THE_GROUP = "not eligible due to workload aware preemption enabled"
TERMINATING = "not eligible due to a terminating pod on the nominated node."


@dataclass(frozen=True, slots=True)
class DefaultPreemptionArgs(PluginArgs):
    """How many candidate nodes preemption looks for at least."""

    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100

    def problems(self, path: str) -> Errors:
        errors: Errors = []
        percentage, absolute = self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute
        percentage_path = f"{path}.minCandidateNodesPercentage"
        absolute_path = f"{path}.minCandidateNodesAbsolute"
        if not 0 <= percentage <= 100:
            errors.append(invalid(percentage_path, percentage, "not in valid range [0, 100]"))
        if absolute < 0:
            errors.append(invalid(absolute_path, absolute, "not in valid range [0, inf)"))
        if percentage == 0 and absolute == 0:
            same_time = "cannot be zero at the same time as"
            errors.append(invalid(percentage_path, percentage, f"{same_time} minCandidateNodesAbsolute"))
            errors.append(invalid(absolute_path, absolute, f"{same_time} minCandidateNodesPercentage"))
        return errors


class DefaultPreemption(fw.PreEnqueuePlugin, fw.PostFilterPlugin):
    """Nominates the node where the fewest and least important pods have to go, and names them.

    A pod may preempt unless its policy is Never, or a pod it preempted earlier is still going away on its nominated
    node. Victims are deleted beside the cycle (`SchedulerAsyncPreemption`); until that has been asked for PreEnqueue
    holds the preemptor back.

    Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, v1.34
    """

    name: ClassVar[str] = "DefaultPreemption"
    Args = DefaultPreemptionArgs
    default_weight: ClassVar[int | None] = 0

    def __init__(self, args: Any, handle: fw.Handle) -> None:
        super().__init__(args, handle)
        self._percentage: int = args.min_candidate_nodes_percentage
        self._absolute: int = args.min_candidate_nodes_absolute
        self._kept_tries = KeptTries()

    def events(self) -> list[ClusterEventWithHint]:
        if not self.handle.release.gate("SchedulerAsyncPreemption"):
            return []
        return [on("Pod", "Delete", after_pod_deleted)]

    def pre_enqueue(self, pod: Pod) -> Status:
        preemptions, release = self.handle.preemptions, self.handle.release
        if not preemptions.is_asynchronous:
            return SUCCESS
        uid, noun = pod.uid, "pod"
        key = self.handle.pod_groups.group_of(pod)
        if key is not None and release.gate("WorkloadAwarePreemption"):
            group: PodGroup | None = self.handle.listers.get(KIND, *key)
            if group is None:
                return SUCCESS
            uid, noun = group.uid, "pod group"
        if not preemptions.is_running(uid):
            return SUCCESS
        reason = f"waiting for the preemption for this {noun} to be finished"
        return Status(Code.UnschedulableAndUnresolvable, (reason,))

    def post_filter(self, cycle: fw.FilteredCycle) -> fw.PostFilterResult:
        if self.handle.pod_groups.group_of(cycle.pod) and self.handle.release.gate("WorkloadAwarePreemption"):
            # The whole group preempts, once all of its members were tried.
            return fw.PostFilterResult(Status(Code.Unschedulable, (f"preemption: {LEFT_TO_THE_GROUP}",)))
        reason = ineligible_reason(cycle)
        if reason:
            trace = PreemptionTrace(cycle.pod, cycle.snapshot, ineligible_reason=reason)
            result = fw.PostFilterResult(Status(Code.Unschedulable, (reason,)), trace=trace)
        else:
            result = preempt(
                cycle, self.handle, self._kept_tries, percentage=self._percentage, absolute=self._absolute
            )
        message = result.status.message
        if not message:
            return result
        return replace(result, status=Status(result.status.code, (f"preemption: {message}",)))


def ineligible_reason(cycle: fw.FilteredCycle) -> str:
    """Why the pod may not preempt others; empty when it may.

    Source: default_preemption.go PodEligibleToPreemptOthers, v1.34
    """
    pod, nodes = cycle.pod, cycle.snapshot.nodes
    if pod.preemption_policy == "Never":
        return NEVER
    row = nodes.row_of.get(pod.nominated_node_name, -1) if pod.nominated_node_name else -1
    if row < 0 or not nodes.alive[row]:
        return ""
    # Nothing that goes away there could help.
    if cycle.code_of(pod.nominated_node_name) is Code.UnschedulableAndUnresolvable:
        return ""
    for pod_id in nodes.pods_on(row):
        other = nodes.pods[pod_id]
        if other.priority < pod.priority and _is_being_preempted(other):
            return TERMINATING
    return ""


def _is_being_preempted(pod: Pod) -> bool:
    return pod.is_terminating and pod.disruption_target_reason == PREEMPTED_BY_SCHEDULER


# ---- hints: when a pod that the plugin rejected is worth another try

_WAITS = SKIP.because("the plugins that rejected the pod decide whether a deletion helps")


def after_pod_deleted(pod: Pod, old: Pod, new: None) -> QueueingHint:
    return _WAITS
