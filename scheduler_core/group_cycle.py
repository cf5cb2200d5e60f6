"""The scheduling cycle of a pod group: all its waiting members are tried on one cluster, then bound or given back.

Each member that finds a node is assumed there for the next ones; at the end all are taken off again, and where the
group is schedulable they go to Reserve, Permit and binding one by one as any pod does.

Source: pkg/scheduler/schedule_one_podgroup.go, v1.36
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from scheduler_core.actions import PatchPodGroupStatus
from scheduler_core.cluster.cache import GroupKey, PodGroups
from scheduler_core.framework.preemption.group import GroupPreemptor, find_group_victims
from scheduler_core.framework.record import ERROR, PREEMPTING, UNSCHEDULABLE, CycleTrace
from scheduler_core.framework.runtime import Framework
from scheduler_core.framework.status import SUCCESS, Code, Status
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.policy import KIND, SCHEDULED, PodGroup, existing_condition
from scheduler_core.queue.queued_pod_info import QueuedPodInfo
from scheduler_core.schedule_one import NO_NODES, Algorithm, BindingCycle, Decision, rejected_on_node

GROUP_UNSCHEDULABLE = "pod group is unschedulable"
WAITS_FOR_PREEMPTION = "pod group is waiting for preemption to complete"
NO_TOPOLOGY = "workload aware preemption is not supported for pod groups with scheduling constraints"
NO_PREEMPTION_PLUGIN = "default preemption plugin is not registered, workload aware preemption is disabled"


@dataclass(slots=True)
class Member:
    """One member of a group on its way through the group's cycle.

    Attributes
    ----------
    status : Status
        Of its own attempt; a rejection with `node_name` set is one that preempts others there.
    permit : Status
        What Permit said on its node.
    node_name : str
        Where it was assumed; empty where it was not.
    nominated : str or None
        As `PatchPodStatus` takes it.
    rejecting : frozenset of str
        Plugins that rejected it.
    """

    info: QueuedPodInfo
    decision: Decision | None = None
    trace: CycleTrace | None = None
    status: Status = SUCCESS
    permit: Status = SUCCESS
    node_name: str = ""
    nominated: str | None = None
    rejecting: frozenset[str] = frozenset()

    @property
    def is_placed(self) -> bool:
        return bool(self.node_name) and self.status.is_success

    @property
    def preempts(self) -> bool:
        return bool(self.node_name) and not self.status.is_success

    def fail(self, status: Status) -> None:
        """It holds no node after all, by what Reserve or Permit said there."""
        node_name, self.node_name, self.nominated = self.node_name, "", ""
        self.status = rejected_on_node(status)
        self.rejecting = frozenset({status.plugin} - {""}) if status.is_rejection else frozenset()
        if self.trace is not None:
            self.trace.node = node_name


@dataclass(slots=True)
class GroupResult:
    """How a group's cycle ended.

    Attributes
    ----------
    status : Status
        Success, a rejection of the whole group, or an error.
    waits : bool
        Whether it is rejected only until a preemption is over.
    """

    members: list[Member] = field(default_factory=list)
    status: Status = field(default_factory=lambda: Status(Code.Unschedulable, (GROUP_UNSCHEDULABLE,)))
    waits: bool = False


class GroupCycle(BindingCycle):
    """The part of the scheduler that schedules groups; `scheduler.Scheduler` owns what it uses."""

    algorithm: Algorithm
    pod_groups: PodGroups

    def _is_skipped(self, info: QueuedPodInfo) -> bool:
        """Whether a popped pod is not to be tried."""
        raise NotImplementedError

    def _trace(self, info: QueuedPodInfo, framework: Framework, decision: Decision) -> CycleTrace:
        raise NotImplementedError

    def _after_post_filter(self, pod: Pod, decision: Decision) -> str | None:
        """Do what PostFilter found; what becomes of the pod's nomination."""
        raise NotImplementedError

    def _preempt(
        self, preemptor: Pod | PodGroup, node_name: str, victims: tuple[Pod, ...], scheduler_name: str
    ) -> None:
        raise NotImplementedError

    def _schedule_group(self, key: GroupKey, first: QueuedPodInfo) -> None:
        """Schedule all waiting members of a group, one of which was popped."""
        infos = self._waiting_members(key, first)
        profiles = list(dict.fromkeys(info.pod.scheduler_name for info in infos))
        if len(profiles) > 1:
            reason = (
                "all pods in a single pod group should have the same .spec.schedulerName set, "
                f'got: "{profiles[0]}" and "{profiles[1]}"'
            )
            for info in infos:
                self._fail(info, Status(Code.Error, (reason,)), "")
            return
        infos = [info for info in infos if not self._is_skipped(info)]
        if not infos:
            return
        for info in infos:
            # Upstream looks nominated pods up in the queue: of one that is under way only the name is left.
            self.nominator.remove(info.pod.uid)
        framework = self.profiles[infos[0].pod.scheduler_name]
        result = self.try_group(framework, infos)
        if self.loaded.release.gate("WorkloadAwarePreemption") and result.status.is_rejection:
            self._preempt_for_group(key, framework, infos, result)
        self._submit(key, framework, infos, result)

    def _waiting_members(self, key: GroupKey, first: QueuedPodInfo) -> list[QueuedPodInfo]:
        """The popped member and all others that can be had from the queue, in the order they are tried."""
        infos = [first]
        for pod in self.pod_groups.unscheduled(key):
            if pod.uid != first.pod.uid:
                info = self.queue.pop_member(pod)
                if info is not None:
                    infos.append(info)
        return sorted(
            infos,
            key=lambda info: (-info.pod.priority, info.initial_attempt_timestamp_ns or 0, info.first_entry),
        )

    # ---- trying

    def try_group(
        self, framework: Framework, infos: list[QueuedPodInfo], *, dry_run: bool = False
    ) -> GroupResult:
        """Try members one after the other, each beside those that found a node; all of them are given back."""
        result = GroupResult()
        preempts = False
        for info in infos:
            member = self._try_member(framework, info, dry_run=dry_run)
            result.members.append(member)
            if not member.node_name:
                if member.status.is_rejection:
                    continue
                reason = f"failed to schedule other pod from a pod group: {member.status.message}"
                result.status, result.waits = Status(Code.Error, (reason,)), False
                break
            preempts = preempts or member.preempts
            if member.permit.is_success:
                if preempts:
                    result.status = Status(Code.Unschedulable, (GROUP_UNSCHEDULABLE, WAITS_FOR_PREEMPTION))
                    result.waits = True
                else:
                    result.status = SUCCESS
        for member in reversed(result.members):
            if member.node_name:
                self._take_back(framework, member)
        return result

    def _try_member(self, framework: Framework, info: QueuedPodInfo, *, dry_run: bool) -> Member:
        pod = info.pod
        decision = self.algorithm.schedule(
            framework, pod, self.cache.snapshot(), with_post_filter=not dry_run
        )
        member = Member(info, decision)
        if not dry_run:
            member.trace = self._trace(info, framework, decision)
        if decision.error is not None:
            code = Code.UnschedulableAndUnresolvable if decision.error == NO_NODES else Code.Error
            member.status, member.nominated = Status(code, (decision.error,)), ""
            return member
        if decision.node_name is not None:
            member.node_name = decision.node_name
        else:
            member.status = Status(Code.Unschedulable, (decision.message or "",))
            member.rejecting = frozenset(decision.attempt.rejecting_plugins())
            member.nominated = self._after_post_filter(pod, decision)
            member.node_name = member.nominated or ""
            if not member.node_name:
                return member
        self.cache.assume(pod, member.node_name)
        self.nominator.remove(pod.uid)
        status = framework.run_reserve(pod, member.node_name)
        if status.is_success:
            status, _ = framework.run_permit(pod, member.node_name)
            member.permit = status
        if not status.is_success and status.code is not Code.Wait:
            self._take_back(framework, member)
            member.fail(status)
        return member

    def _take_back(self, framework: Framework, member: Member) -> None:
        """Take a member off its node and restore its nomination."""
        pod = member.info.pod
        assert member.decision is not None
        framework.handle.cycle_state = member.decision.attempt.cycle_state
        self._unreserve(framework, pod, member.node_name)
        self.cache.forget(pod.uid)
        if pod.nominated_node_name:
            self.nominator.add(pod, pod.nominated_node_name)

    # ---- preemption for the whole group

    def _preempt_for_group(
        self, key: GroupKey, framework: Framework, infos: list[QueuedPodInfo], result: GroupResult
    ) -> None:
        """Find pods anywhere without which the group could be placed, and have them evicted.

        Source: schedule_one_podgroup.go runWorkloadAwarePreemption, v1.36
        """
        group: PodGroup | None = self.cache.listers.get(KIND, *key)
        if "DefaultPreemption" not in framework.plugins:
            status = Status(Code.Unschedulable, (NO_PREEMPTION_PLUGIN,))
        elif group is None:
            reason = f'failed to get pod group object: podgroup.scheduling.k8s.io "{key[1]}" not found'
            status = Status(Code.Error, (reason,))
        elif group.topology_keys:
            status = Status(Code.Unschedulable, (NO_TOPOLOGY,))
        else:
            never = any(info.pod.preemption_policy == "Never" for info in infos)
            victims, status = find_group_victims(
                GroupPreemptor(group, never),
                self.cache,
                lambda: self.try_group(framework, infos, dry_run=True).status,
                self.clock.now_ns,
            )
            if status.is_success:
                self._preempt(group, "cluster", victims, framework.scheduler_name)
                result.waits = True
                return
        if status.is_rejection:
            result.status = Status(result.status.code, (*result.status.reasons, status.message))
        else:
            result.status = status

    # ---- what becomes of the members

    def _submit(
        self, key: GroupKey, framework: Framework, infos: list[QueuedPodInfo], result: GroupResult
    ) -> None:
        """Have placed members bound where the group is schedulable, and give all others back."""
        n_scheduled = self.pod_groups.n_scheduled(key)
        # After an error the rest was not tried.
        members = result.members + [
            Member(info, status=result.status) for info in infos[len(result.members) :]
        ]
        condition = _condition(result)
        told = {
            "group": f"{key[0]}/{key[1]}",
            "members": len(members),
            "placed": sum(member.is_placed for member in members),
            "scheduledBefore": n_scheduled,
            "status": condition["reason"],
            "message": condition["message"],
        }
        first = next((member.trace.number for member in members if member.trace is not None), None)
        for place, member in enumerate(members, 1):
            trace = member.trace
            if trace is not None:
                trace.group = {**told, "first": first, "place": place}
                self.traces.append(trace)
            if result.status.is_success and member.is_placed:
                assert trace is not None and member.decision is not None
                state = member.decision.attempt.cycle_state
                framework.handle.cycle_state = state
                self._place(member.info, framework, member.node_name, state, trace)
            else:
                self._give_member_back(member, result)
        self._tell_group(key, condition)

    def _give_member_back(self, member: Member, result: GroupResult) -> None:
        info, status, nominated = member.info, member.status, member.nominated
        rejecting = member.rejecting
        outcome = None
        if result.status.code is Code.Error:
            if status.code is not Code.Error:
                status = result.status
            nominated, rejecting, outcome = "", frozenset(), ERROR
        elif member.is_placed and result.waits:
            status, nominated, outcome = result.status, member.node_name, UNSCHEDULABLE
        elif member.node_name and not result.waits:
            status = Status(Code.Unschedulable, (GROUP_UNSCHEDULABLE, *member.permit.reasons))
            nominated, rejecting, outcome = "", frozenset(), UNSCHEDULABLE
        elif member.preempts:
            outcome = PREEMPTING
        info.unschedulable_plugins = rejecting
        trace = member.trace
        if trace is not None:
            trace.message = status.message
            trace.nominated_node = nominated
            if outcome is not None:
                trace.outcome = outcome
            if outcome == ERROR:
                trace.error = status.message
            elif member.is_placed:
                trace.failed_point, trace.failed_plugin = "Permit", "GangScheduling"
        self._fail(info, status, nominated)

    def _tell_group(self, key: GroupKey, condition: dict[str, Any]) -> None:
        """Write the condition, unless the group was scheduled before or it says so already."""
        group: PodGroup | None = self.cache.listers.get(KIND, *key)
        if group is None:
            return
        before = existing_condition(group, SCHEDULED)
        if before is not None:
            was_scheduled = before.get("status") == "True"
            if was_scheduled and condition["status"] != "True":
                return
            if all(before.get(name, "") == condition[name] for name in ("status", "reason", "message")):
                return
        self._actions.append(PatchPodGroupStatus(group, condition))


def _condition(result: GroupResult) -> dict[str, Any]:
    """Source: schedule_one_podgroup.go submitPodGroupAlgorithmResult, v1.36."""
    reason = "Scheduled" if result.status.is_success else "Unschedulable"
    if not result.status.is_success and not result.status.is_rejection:
        reason = "SchedulerError"
    return {
        "type": SCHEDULED,
        "status": "True" if result.status.is_success else "False",
        "reason": reason,
        "message": result.status.message,
    }
