"""From a node that was chosen to a pod that is bound: Reserve, Permit, PreBind, Bind, and what a failure undoes.

It goes on beside the next scheduling cycle: what it asks for are actions, and their answers come back as events.

Source: pkg/scheduler/schedule_one.go bindingCycle, handleBindingCycleError, v1.34
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler_core.actions import (
    Action,
    BindByExtender,
    BindPod,
    PatchPodStatus,
    RecordEvent,
    WriteBeforeBind,
)
from scheduler_core.clock import SECOND_NS, Clock
from scheduler_core.cluster.cache import Cache
from scheduler_core.cluster.nominator import Nominator
from scheduler_core.config.load import LoadedConfiguration
from scheduler_core.event_handlers import EventHandlers
from scheduler_core.extender.chain import ExtenderChain, bind_request, parse_bind_answer
from scheduler_core.extender.transport import ExtenderAnswer, ExtenderCall
from scheduler_core.framework import record
from scheduler_core.framework.cluster_event import ASSIGNED_POD_DELETE
from scheduler_core.framework.interface import CycleState, PermitPlugin
from scheduler_core.framework.runtime import Framework
from scheduler_core.framework.status import Code, Status
from scheduler_core.framework.waiting_pods import WaitingPod, WaitingPods
from scheduler_core.objects.pod import Pod
from scheduler_core.queue.queued_pod_info import Lane, QueuedPodInfo, QueueMove
from scheduler_core.queue.scheduling_queue import SchedulingQueue

_GONE = "the pod was deleted before its Binding to {} was heard of"
_RESTARTED = "the scheduler was started anew before the pod's Binding to {} was heard of"


@dataclass(slots=True)
class PodBinding:
    """A pod on its way from Reserve to bound."""

    info: QueuedPodInfo
    pod: Pod
    node_name: str
    trace: record.CycleTrace
    step: str
    """`Permit`, `PreBind` or `Bind`."""
    n_extenders_failed: int = 0
    """Ignorable extenders that failed to bind the pod."""
    cycle_state: CycleState = field(default_factory=CycleState)


def rejected_on_node(status: Status) -> Status:
    """The status as a fit error of the one node tells it; an error stays what it is."""
    if not status.is_rejection:
        return status
    message = status.message
    message = f"0/1 nodes are available: 1 {message}." if message else "0/1 nodes are available:"
    return Status(status.code, (message,), status.plugin)


class BindingCycle:
    """The half of the scheduler that binds; `scheduler.Scheduler` is the other half and owns what both use."""

    loaded: LoadedConfiguration
    clock: Clock
    cache: Cache
    nominator: Nominator
    queue: SchedulingQueue
    waiting_pods: WaitingPods
    event_handlers: EventHandlers
    extenders: ExtenderChain
    profiles: dict[str, Framework]
    bindings: dict[str, PodBinding]
    """Pods past Reserve whose binding is not over, by uid."""
    awaited: dict[str, record.CycleTrace]
    """Cycles whose bind extender said yes while their Binding is not heard of, by the pod's uid."""
    expired: dict[str, tuple[str, int]]
    """Pods that were assumed for too long and have not changed since: uid -> (node, when)."""
    traces: list[record.CycleTrace]
    pods: dict[str, Pod]
    _actions: list[Action]

    def _fail(self, info: QueuedPodInfo, status: Status, nominated: str | None) -> None:
        """Give a pod back to the queue and say why."""
        raise NotImplementedError

    @property
    def is_any_past_permit(self) -> bool:
        """Whether any binding is not over but for a wait at Permit, where thousands may wait."""
        return len(self.bindings) > len(self.waiting_pods)

    # ---- from a node to a bound pod

    def _place(
        self,
        info: QueuedPodInfo,
        framework: Framework,
        node_name: str,
        state: CycleState,
        trace: record.CycleTrace,
    ) -> None:
        pod = info.pod
        self.cache.assume(pod, node_name)
        self.nominator.remove(pod.uid)
        binding = PodBinding(info, pod, node_name, trace, "Permit", cycle_state=state)
        status = framework.run_reserve(pod, node_name)
        if not status.is_success:
            self._give_back(binding, status, "Reserve")
            return
        status, waits_ns = framework.run_permit(pod, node_name)
        state.keep_data()
        waits = status.code is Code.Wait
        # Others (a cluster autoscaler) are told which node is expected of a pod that takes time to bind.
        is_told = self.loaded.release.gate("NominatedNodeNameForExpectation")
        if is_told and (waits or (status.is_success and framework.will_pre_bind(pod, node_name))):
            self._actions.append(PatchPodStatus(pod, None, node_name))
        if waits:
            self.bindings[pod.uid] = binding
            self.waiting_pods.add(pod, node_name, waits_ns, self.clock.now_ns)
            trace.outcome = record.WAITING
            trace.permit = [
                {"plugin": plugin, "decision": "wait", "timeoutS": wait_ns / SECOND_NS}
                for plugin, wait_ns in waits_ns.items()
            ]
            self._wake_for(framework, pod, waits_ns)
            return
        if not status.is_success:
            self._give_back(binding, status, "Permit")
            return
        trace.outcome = record.BOUND
        self.bindings[pod.uid] = binding
        self._permitted(binding)

    def _resumed(self, binding: PodBinding) -> Framework:
        """The pod's profile, its plugins again in the state of the pod's own cycle."""
        framework = self.profiles[binding.pod.scheduler_name]
        framework.handle.cycle_state = binding.cycle_state
        return framework

    def _wake_for(self, framework: Framework, pod: Pod, waits_ns: Mapping[str, int]) -> None:
        """Try pending pods that a waiting pod's plugins want to see. Source: schedule_one.go podsToActivate."""
        plugins = [
            plugin
            for plugin in framework.permit
            if plugin.name in waits_ns and type(plugin).wakes is not PermitPlugin.wakes
        ]
        if not plugins:
            return
        queue = self.queue
        pending = [*queue.backoff_pods(), *queue.error_backoff_pods(), *queue.unschedulable_pods()]
        woken = [info.pod for info in pending if any(plugin.wakes(pod, info.pod) for plugin in plugins)]
        if woken:
            queue.activate(woken)

    def _permitted(self, binding: PodBinding) -> None:
        """Past Permit nothing makes the pod unschedulable any more; PreBind and Bind follow."""
        pod = binding.pod
        self.queue.done(pod.uid)
        binding.step = "PreBind"
        self._pre_bind(binding)

    def _ask_pre_bind_again(self) -> None:
        """Pods that wait in PreBind, in order: perhaps what they wait for has happened."""
        if not self.is_any_past_permit:
            return
        for binding in list(self.bindings.values()):
            if binding.step == "PreBind":
                self._pre_bind(binding)

    def _pre_bind(self, binding: PodBinding) -> None:
        """Run PreBind, which may let the pod wait, then Bind."""
        pod = binding.pod
        framework = self._resumed(binding)
        status = framework.run_pre_bind(pod, binding.node_name)
        if status.code is Code.Wait:
            if pod.uid not in self.pods:
                reason = f'running PreBind plugin "{status.plugin}": pod does not exist any more'
                self._give_back(binding, Status(Code.Error, (reason,), status.plugin), "PreBind")
                return
            writes = tuple(manifest for plugin in framework.pre_bind for manifest in plugin.take_writes(pod))
            if writes:
                self._actions.append(WriteBeforeBind(pod, binding.node_name, writes))
            return
        if not status.is_success:
            self._give_back(binding, status, "PreBind")
            return
        binding.step = "Bind"
        self._bind(binding)

    def _bind(self, binding: PodBinding) -> None:
        """Have the next interested extender bind the pod, or the bind plugins when none is left.

        Source: schedule_one.go bind and extendersBinding, v1.34
        """
        pod, node_name = binding.pod, binding.node_name
        call = self.bind_call(binding)
        if call is not None:
            binding.trace.outcome, binding.trace.awaited = record.BINDING, {"sinceNs": self.clock.now_ns}
            self._actions.append(call)
            return
        binding.trace.outcome, binding.trace.awaited = record.BOUND, None
        status = self._resumed(binding).run_bind(pod, node_name)
        if not status.is_success:
            self._give_back(binding, status, "Bind")
            return
        self._actions.append(BindPod(pod, node_name))

    def bind_call(self, binding: PodBinding) -> BindByExtender | None:
        """The call of the next extender that is to bind the pod, if one is left."""
        pod, node_name = binding.pod, binding.node_name
        binders = self.extenders.binders(pod)[binding.n_extenders_failed :]
        return BindByExtender(pod, node_name, bind_request(binders[0], pod, node_name)) if binders else None

    def extender_has_bound(self, uid: str, answer: ExtenderAnswer) -> bool:
        """Whether an extender's answer to its bind call says that the pod is bound."""
        binding = self.bindings.get(uid)
        if binding is None:
            return False
        extender = self.extenders.binders(binding.pod)[binding.n_extenders_failed]
        return parse_bind_answer(extender, answer) is None

    def _extender_bind_answered(self, uid: str, answer: ExtenderAnswer) -> None:
        binding = self.bindings.get(uid)
        if binding is None or binding.step != "Bind" or self.bind_call(binding) is None:
            return
        extender = self.extenders.binders(binding.pod)[binding.n_extenders_failed]
        error = parse_bind_answer(extender, answer)
        request = bind_request(extender, binding.pod, binding.node_name)
        call = ExtenderCall(request, answer, error, error is not None and extender.ignorable)
        binding.trace.extenders.append(call.explain())
        if error is not None and extender.ignorable:
            binding.n_extenders_failed += 1
            self._bind(binding)
        elif error is not None:
            self._give_back(binding, Status(Code.Error, (error,)), "Bind")
        else:
            self._bound(binding)
            self._await(uid, binding)

    # ---- until the Binding of a pod that an extender accepted is heard of

    def _await(self, uid: str, binding: PodBinding) -> None:
        trace = binding.trace
        if self.cache.is_assumed(uid):
            self.awaited[uid] = trace
            return
        pod = self.pods.get(uid)
        if pod is None:
            self._end_wait(trace, record.ERROR, _GONE.format(binding.node_name))
        elif pod.node_name == trace.node and trace.awaited == {"sinceNs": self.clock.now_ns}:
            # It was there before the answer, and in the same moment: nothing was awaited.
            trace.outcome, trace.awaited = record.BOUND, None
            self._tell_again(trace)
        else:
            self._hear(trace, pod.node_name)

    def _hear(self, trace: record.CycleTrace, node: str) -> None:
        """The Binding came; it may name another node than the one that was chosen."""
        self._end_wait(trace, record.BOUND, None if node == trace.node else f"its Binding names {node}", node)

    def _end_wait(
        self, trace: record.CycleTrace, outcome: str, message: str | None, node: str | None = None
    ) -> None:
        trace.outcome, trace.message = outcome, message
        if outcome == record.ERROR:
            trace.error, trace.failed_point = message, "Bind"
        trace.awaited = {**(trace.awaited or {}), "untilNs": self.clock.now_ns, "node": node}
        self._tell_again(trace)

    def _tell_again(self, trace: record.CycleTrace) -> None:
        if not self.traces or self.traces[-1] is not trace:
            self.traces.append(trace)

    def hear_of(self, uid: str, pod: Pod | None) -> None:
        """A pod changed, or is gone (None): perhaps this is the Binding that is awaited."""
        self.expired.pop(uid, None)
        trace = self.awaited.get(uid)
        if trace is None:
            return
        if pod is not None and pod.node_name:
            self._hear(self.awaited.pop(uid), pod.node_name)
        elif pod is None or pod.is_terminal:
            self._end_wait(self.awaited.pop(uid), record.ERROR, _GONE.format(trace.node))

    def end_waits(self) -> None:
        """The scheduler ends: what it assumed is known to nothing any more."""
        for uid in list(self.awaited):
            trace = self.awaited.pop(uid)
            self._end_wait(trace, record.ERROR, _RESTARTED.format(trace.node))

    def expire(self) -> None:
        """Forget pods assumed for too long. As upstream, no event follows: pods that could use the room wait
        for another event or the flush, and the pod itself is tried again when it changes.
        """
        now_ns, ttl_s = self.clock.now_ns, self.cache.assumed_pod_ttl_ns / SECOND_NS
        nodes = {uid: assumed.node_name for uid, assumed in self.cache.assumed.items()}
        for pod in self.cache.expire(now_ns):
            self.expired[pod.uid] = nodes[pod.uid], now_ns
            if self.queue.observer is not None:
                what = "AssumedPodExpired"
                self.queue.observer(
                    QueueMove(now_ns, pod.key, pod.uid, Lane.ASSUMED, Lane.EXPIRED, what, what)
                )
            trace = self.awaited.pop(pod.uid, None)
            if trace is not None:
                self._end_wait(
                    trace, record.EXPIRED, f"no Binding to {trace.node} was heard of within {ttl_s:g} s"
                )

    def _pre_bind_answered(self, uid: str, error: str | None) -> None:
        binding = self.bindings.get(uid)
        if binding is None or binding.step != "PreBind":
            return
        if error is not None:
            self._give_back(binding, Status(Code.Error, (error,)), "PreBind")
            return
        self._pre_bind(binding)

    def _bind_answered(self, uid: str, error: str | None) -> None:
        binding = self.bindings.get(uid)
        if binding is None or binding.step != "Bind":
            return
        if error is not None:
            self._give_back(
                binding, Status(Code.Error, (f'running Bind plugin "DefaultBinder": {error}',)), "Bind"
            )
            return
        self._bound(binding)

    def _bound(self, binding: PodBinding) -> None:
        pod = binding.pod
        del self.bindings[pod.uid]
        self.cache.finish_binding(pod.uid, self.clock.now_ns)
        self._actions.append(
            RecordEvent(
                pod, "Normal", "Scheduled", "Binding",
                f"Successfully assigned {pod.namespace}/{pod.name} to {binding.node_name}",
            )
        )  # fmt: skip
        self._resumed(binding).run_post_bind(pod, binding.node_name)
        if pod.uid not in self.pods:
            self.event_handlers.take_off_deleted(pod)

    def _unreserve(self, framework: Framework, pod: Pod, node_name: str) -> None:
        """Run Unreserve, and have written what it wants written."""
        framework.run_unreserve(pod, node_name)
        writes = tuple(manifest for plugin in framework.pre_bind for manifest in plugin.take_writes(pod))
        if writes:
            self._actions.append(WriteBeforeBind(pod, node_name, writes))

    def _give_back(self, binding: PodBinding, status: Status, point: str) -> None:
        """Unreserve, forget and requeue. Source: schedule_one.go handleBindingCycleError."""
        pod = binding.pod
        self.bindings.pop(pod.uid, None)
        self.waiting_pods.remove(pod.uid)
        framework = self._resumed(binding)
        self._unreserve(framework, pod, binding.node_name)
        self.cache.forget(pod.uid)
        in_cycle = binding.step == "Permit" and binding.trace.outcome != record.WAITING
        # Hints look at the node: a pod that was on none frees nothing.
        assumed = dataclasses.replace(pod, node_name=binding.node_name)
        if not in_cycle and not status.is_rejection:
            self.queue.move_all(ASSIGNED_POD_DELETE, assumed, None)
        if status.is_rejection:
            binding.info.unschedulable_plugins = frozenset({status.plugin} - {""})
        message = rejected_on_node(status).message
        trace = binding.trace
        trace.outcome = record.UNSCHEDULABLE if status.is_rejection else record.ERROR
        trace.awaited = None
        trace.message = message
        trace.failed_point, trace.failed_plugin = point, status.plugin or None
        if not status.is_rejection:
            trace.error = message
        if not in_cycle:
            self.traces.append(binding.trace)
        self._fail(binding.info, Status(status.code, (message,), status.plugin), "")
        if not in_cycle and status.is_rejection:
            # The room it held may serve others; not the pod itself, which was refused for another reason.
            self.queue.move_all(
                ASSIGNED_POD_DELETE, assumed, None, pre_check=lambda other: other.uid != pod.uid
            )

    # ---- Permit

    def _permit_decided(self, uid: str, allow: bool, plugin: str | None, reason: str) -> None:
        waiting = self.waiting_pods.get(uid)
        if waiting is None:
            return
        plugins = list(waiting.deadlines_ns) if plugin is None else [plugin]
        for name in plugins:
            if allow:
                waiting.allow(name)
            elif name in waiting.deadlines_ns:
                waiting.reject(name, reason or f"rejected by {name}")

    def _settle_waiting_pods(self) -> None:
        """Go on with waiting pods that were decided; one decision may bring another (a gang)."""
        while decided := self.waiting_pods.take_decided():
            for waiting in decided:
                self._settle(waiting)

    def _settle(self, waiting: WaitingPod) -> None:
        uid = waiting.pod.uid
        self.waiting_pods.remove(uid)
        binding = self.bindings.get(uid)
        status = waiting.decided
        if binding is None or status is None:
            return
        waited_s = (self.clock.now_ns - waiting.since_ns) / SECOND_NS
        history = binding.trace.permit
        if status.is_success:
            history.extend(
                {"plugin": name, "decision": "allow", "afterS": waited_s} for name in waiting.allowed
            )
            binding.trace.outcome = record.BOUND
            self.traces.append(binding.trace)
            self._permitted(binding)
        else:
            history.append(
                {"plugin": status.plugin, "decision": "reject", "reason": status.message, "afterS": waited_s}
            )
            self._give_back(binding, status, "Permit")
