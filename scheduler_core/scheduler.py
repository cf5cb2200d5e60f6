"""The scheduler: a function of events. It is handed what happened and answers with what it wants done.

It never waits, never asks what time it is and never opens a socket; the one call that blocks is the extender
transport, as in the real scheduler. One cycle runs when `schedule_one` is called; binding goes on beside the next
cycle as actions whose answers come back as events.

Source: pkg/scheduler/scheduler.go, pkg/scheduler/schedule_one.go, v1.34
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from scheduler_core.actions import (
    Action,
    BindByExtender,
    BindPod,
    EvictPod,
    PatchPodStatus,
    RecordEvent,
    WriteBeforeBind,
)
from scheduler_core.clock import SECOND_NS, Clock
from scheduler_core.cluster.cache import Cache
from scheduler_core.cluster.listers import Listers
from scheduler_core.cluster.nominator import Nominator
from scheduler_core.config.default_plugins import LEGACY_PLUGINS
from scheduler_core.config.load import LoadedConfiguration
from scheduler_core.config.policy import POLICY_KIND
from scheduler_core.event_handlers import EventHandlers
from scheduler_core.events import (
    BindAnswered,
    Event,
    ExtenderBindAnswered,
    ObjectChanged,
    PermitDecided,
    PreBindAnswered,
    TimeReached,
)
from scheduler_core.extender.chain import bind_request, extender_chain, parse_bind_answer
from scheduler_core.extender.transport import ExtenderAnswer, ExtenderCall, Transport, no_transport
from scheduler_core.framework.attempt import EXTENDER_NAME
from scheduler_core.framework.cluster_event import ASSIGNED_POD_DELETE
from scheduler_core.framework.interface import ChoiceOptions
from scheduler_core.framework.preemption import preemption_document
from scheduler_core.framework.profile import SchedulerHandle, build_profiles
from scheduler_core.framework.registry import PluginFactory
from scheduler_core.framework.runtime import Framework
from scheduler_core.framework.status import Code, Status
from scheduler_core.framework.trace import (
    BOUND,
    ERROR,
    PREEMPTING,
    UNSCHEDULABLE,
    WAITING,
    CycleTrace,
    record_body,
)
from scheduler_core.framework.waiting_pods import WaitingPod, WaitingPods
from scheduler_core.objects.pod import DISRUPTION_TARGET, PREEMPTED_BY_SCHEDULER, Pod
from scheduler_core.plugins import full_registry
from scheduler_core.plugins.coscheduling import GROUP as POD_GROUP
from scheduler_core.plugins.coscheduling import Coscheduling
from scheduler_core.plugins.hints import HintContext, registrations
from scheduler_core.plugins.hints.pod_topology_spread import constraints_with_defaults, own_constraints
from scheduler_core.plugins.node_affinity import NodeAffinity
from scheduler_core.plugins.pod_topology_spread import PodTopologySpread
from scheduler_core.queue import (
    HintMap,
    Lane,
    QueuedPodInfo,
    QueueMove,
    Rejection,
    SchedulingQueue,
    build_hint_map,
)
from scheduler_core.queue.hints import ALL_EVENTS
from scheduler_core.randomness import Randomness
from scheduler_core.schedule_one import TIE_STREAM, Algorithm, AlgorithmOptions, Decision
from scheduler_core.version import ENGINE_VERSION

POD_GROUP_KEYS = (
    POD_GROUP,
    "pod-group.scheduling.sigs.k8s.io",
    "pod-group.scheduling.sigs.k8s.io/name",
    "scheduling.k8s.io/group-name",
)
"""Labels and annotations that make a pod a member of a group, of several schedulers and ages."""

MAX_EVENT_MESSAGE = 1024
"""Length at which the API server cuts an event's note."""


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    """What a configuration does not say.

    Attributes
    ----------
    full_traces : bool
        Keep every verdict and score of every cycle; otherwise only summaries.
    adaptive_sampling : bool
        Let an unset percentageOfNodesToScore mean upstream's adaptive share. By default all nodes are evaluated.
    assumed_pod_ttl_ns : int
        When an assumed pod expires after binding; 0 never, as v1.34.
    first_of_ties : bool
        Take the first name of equals, for comparing with recordings.
    all_preemption_candidates : bool
        Try preemption on every node where it might help, not on a sample of them.
    """

    full_traces: bool = True
    adaptive_sampling: bool = False
    assumed_pod_ttl_ns: int = 0
    first_of_ties: bool = False
    all_preemption_candidates: bool = False


@dataclass(slots=True)
class Binding:
    """A pod on its way from Reserve to bound."""

    info: QueuedPodInfo
    pod: Pod
    node_name: str
    trace: CycleTrace
    step: str
    """`Permit`, `PreBind` or `Bind`."""
    n_extenders_failed: int = 0
    """Ignorable extenders that failed to bind the pod."""


class Scheduler:
    """All profiles over one cluster.

    Parameters
    ----------
    loaded : LoadedConfiguration
    clock : Clock
        Read only; whoever owns it moves it and sends `TimeReached`.
    randomness : Randomness
    registry : mapping, optional
        Plugin factories; the in-tree ones by default.
    options : SchedulerOptions
    observer : callable, optional
        Is told every move of a pod in the queue.
    transport : Transport
        Carries calls to extenders; the only thing here that may block.
    """

    def __init__(
        self,
        loaded: LoadedConfiguration,
        clock: Clock,
        randomness: Randomness,
        *,
        registry: Mapping[str, PluginFactory] | None = None,
        options: SchedulerOptions | None = None,
        observer: Callable[[QueueMove], None] | None = None,
        transport: Transport = no_transport,
    ) -> None:
        self.loaded = loaded
        self.clock = clock
        self.randomness = randomness
        self.options = options or SchedulerOptions()
        self.cache = Cache(self.options.assumed_pod_ttl_ns)
        self.nominator = Nominator()
        self.waiting_pods = WaitingPods()
        self.extenders = extender_chain(loaded, transport)
        self.handle_for_plugins = SchedulerHandle(
            self.cache,
            self.nominator,
            self.waiting_pods,
            clock,
            randomness=randomness,
            choices=ChoiceOptions(self.options.first_of_ties, self.options.all_preemption_candidates),
            extenders=self.extenders or None,
        )
        self.profiles: dict[str, Framework] = build_profiles(
            loaded,
            full_registry(with_retired=loaded.source_kind == POLICY_KIND) if registry is None else registry,
            self.handle_for_plugins,
            self.cache,
        )
        configuration = loaded.configuration
        self.queue = SchedulingQueue(
            clock,
            hints={
                name: _hint_map(framework, self.cache.listers, with_extenders=bool(self.extenders))
                for name, framework in self.profiles.items()
            },
            pre_enqueue={name: _gates(framework) for name, framework in self.profiles.items()},
            initial_backoff_ns=configuration.pod_initial_backoff_s * SECOND_NS,
            max_backoff_ns=configuration.pod_max_backoff_s * SECOND_NS,
            observer=observer,
        )
        self.algorithm = Algorithm(
            AlgorithmOptions(
                configuration.percentage_of_nodes_to_score or 0,
                self.options.adaptive_sampling,
                self.options.first_of_ties,
            ),
            randomness,
            self.extenders or None,
        )
        self.event_handlers = EventHandlers(
            self.cache, self.queue, self.nominator, self.waiting_pods, self.is_responsible
        )
        self.bindings: dict[str, Binding] = {}
        """Pods past Reserve whose binding is not over, by uid."""
        self.traces: list[CycleTrace] = []
        """Traces to be taken by the caller; a trace comes again when its binding goes on."""
        self.cycle = 0
        self.pods: dict[str, Pod] = {}
        """Every live pod by uid, as the API server last told."""
        self._actions: list[Action] = []

    def is_responsible(self, pod: Pod) -> bool:
        """Whether one of our profiles schedules this pod."""
        return self.why_not_scheduled(pod) is None

    def why_not_scheduled(self, pod: Pod) -> str | None:
        """Why nobody here will ever try this pod, None when somebody does.

        A pod that asks for what is not simulated waits visibly; it is never scheduled as if it had not asked.
        """
        framework = self.profiles.get(pod.scheduler_name)
        if framework is None:
            names = ", ".join(self.profiles)
            return f'schedulerName "{pod.scheduler_name}" is no profile of this scheduler (it has {names})'
        annotations = pod.manifest["metadata"].get("annotations")
        if not pod.labels and not annotations and "workloadRef" not in pod.manifest["spec"]:
            return None
        for key in POD_GROUP_KEYS:
            if key in pod.labels or (annotations and key in annotations):
                if key == POD_GROUP and key in pod.labels and Coscheduling.name in framework.plugins:
                    continue
                return f"pod groups ({key}) are scheduled only by the Coscheduling plugin, by its label {POD_GROUP}"
        if pod.manifest["spec"].get("workloadRef") is not None:
            return "spec.workloadRef: gang scheduling by Workload objects is not simulated"
        return None

    # ---- what happens

    def handle(self, event: Event) -> list[Action]:
        """Take in one event; never raises on an event that came late, twice or for something unknown."""
        match event:
            case ObjectChanged(kind, old, new):
                if kind == "Pod":
                    self._know_pod(old, new)
                self.event_handlers.object_changed(kind, old, new)
                self._ask_pre_bind_again()
            case PermitDecided(uid, allow, plugin, reason):
                self._permit_decided(uid, allow, plugin, reason)
            case PreBindAnswered(uid, error):
                self._pre_bind_answered(uid, error)
            case BindAnswered(uid, error):
                self._bind_answered(uid, error)
            case ExtenderBindAnswered(uid, answer):
                self._extender_bind_answered(uid, answer)
            case TimeReached():
                self._time_reached()
        self._settle_waiting_pods()
        return self._take_actions()

    def can_schedule(self) -> bool:
        """Whether `schedule_one` has a pod to try."""
        return self.queue.can_pop()

    def next_deadline_ns(self) -> int | None:
        """When time alone will change something."""
        deadlines = [self.queue.next_deadline_ns(), self.waiting_pods.next_deadline_ns()]
        deadlines += [assumed.deadline_ns for assumed in self.cache.assumed.values()]
        for binding in self.bindings.values():
            if binding.step == "PreBind":
                plugins = self.profiles[binding.pod.scheduler_name].pre_bind
                deadlines += [plugin.pre_bind_deadline_ns(binding.pod) for plugin in plugins]
        return min((at_ns for at_ns in deadlines if at_ns is not None), default=None)

    def _know_pod(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None:
            self.pods[new.uid] = new
        if old is not None and (new is None or new.uid != old.uid):
            self.pods.pop(old.uid, None)

    def _take_actions(self) -> list[Action]:
        actions, self._actions = self._actions, []
        return actions

    def _time_reached(self) -> None:
        now_ns = self.clock.now_ns
        self.waiting_pods.expire(now_ns)
        # As upstream, nobody is told: whoever could use the room waits for another event or the flush.
        self.cache.expire(now_ns)
        self.queue.flush_due()
        self._ask_pre_bind_again()

    # ---- the scheduling cycle

    def schedule_one(self) -> list[Action]:
        """Run one scheduling cycle, if a pod is to be had; its trace is appended to `traces`."""
        info = self.queue.pop()
        if info is None:
            return self._take_actions()
        pod = info.pod
        framework = self.profiles[pod.scheduler_name]
        current = self.pods.get(pod.uid)
        if current is None or current.node_name or self.cache.pod(pod.uid) is not None:
            self.queue.done(pod.uid)
            return self._take_actions()
        if current.is_terminating:
            self._actions.append(
                RecordEvent(
                    pod, "Warning", "FailedScheduling", "Scheduling",
                    f"skip schedule deleting pod: {pod.key}",
                )
            )  # fmt: skip
            self.queue.done(pod.uid)
            return self._take_actions()
        decision = self.algorithm.schedule(framework, pod, self.cache.snapshot())
        trace = self._trace(info, framework, decision)
        if decision.node_name is not None and decision.error is None:
            self._place(info, framework, decision.node_name, trace)
        else:
            self._find_no_place(info, decision, trace)
        self.traces.append(trace)
        self._settle_waiting_pods()
        return self._take_actions()

    def _trace(self, info: QueuedPodInfo, framework: Framework, decision: Decision) -> CycleTrace:
        self.cycle += 1
        pod = info.pod
        header: dict[str, Any] = {
            "cycle": self.cycle,
            "atNs": self.clock.now_ns,
            "pod": pod.key,
            "uid": pod.uid,
            "profile": framework.scheduler_name,
            "attempt": info.attempts,
            "priority": pod.priority,
            "outcome": UNSCHEDULABLE,
            "node": decision.node_name,
            "message": decision.message,
            "nNodes": len(decision.attempt.snapshot.order),
            "nFeasible": decision.n_feasible,
            "nodesEvaluated": decision.n_evaluated,
            "bestTotal": decision.best_total,
            "engine": ENGINE_VERSION,
        }
        if len(decision.tied_rows) > 1:
            header["tie"] = {
                "count": len(decision.tied_rows),
                "chosen": decision.node_name,
                "stream": TIE_STREAM,
                # In bulk runs a name for each of 5,000 equals would cost more than the cycle.
                "nodes": list(decision.ties) if self.options.full_traces else [],
            }
        if decision.error is not None:
            header |= {
                "outcome": ERROR,
                "error": decision.error,
                "failedPlugin": decision.failed_plugin or None,
            }
        if decision.fit_error is not None:
            header["fitError"] = decision.fit_error
        result = decision.post_filter
        if result is not None:
            header["victims"] = [victim.key for victim in result.victims]
            header["nominatedNode"] = result.nominated_node_name
            if result.status.is_success and result.nominated_node_name:
                header["outcome"] = PREEMPTING
            header["preemption"] = preemption_document(
                result, decision.message, full=self.options.full_traces
            )
        trace = CycleTrace(header)
        if decision.extender_calls:
            # Whole requests and answers are large: summaries say only who was asked and how it went.
            calls = [call.explain() for call in decision.extender_calls]
            if not self.options.full_traces:
                calls = [{**call, "request": None, "answer": None} for call in calls]
            header["extenders"] = calls
        if self.options.full_traces and decision.error is None:
            best = None
            if decision.node_name is not None:
                best = decision.ties or (decision.node_name,)
            record_body(decision.attempt, trace, best, matrix=True)
        return trace

    def _find_no_place(self, info: QueuedPodInfo, decision: Decision, trace: CycleTrace) -> None:
        nominated: str | None = None
        if decision.error is not None:
            status = Status(Code.Error, (decision.error,))
            nominated = ""
        else:
            status = Status(Code.Unschedulable, (decision.message or "",))
            info.unschedulable_plugins = frozenset(decision.attempt.rejecting_plugins())
        result = decision.post_filter
        if result is not None and decision.error is None:
            nominated = result.nominated_node_name
            if result.status.is_success:
                self._preempt(info.pod, result.nominated_node_name or "", result.victims)
        self._fail(info, status, nominated)

    def _preempt(self, preemptor: Pod, node_name: str, victims: tuple[Pod, ...]) -> None:
        """Ask for the victims' eviction and take back promises of the node to lesser pods.

        Source: framework/preemption/preemption.go prepareCandidate, v1.34
        """
        for victim in victims:
            waiting = self.waiting_pods.get(victim.uid)
            if waiting is not None:
                waiting.reject("DefaultPreemption", "preempted")
            else:
                self._actions.append(
                    EvictPod(
                        victim,
                        preemptor,
                        node_name,
                        {
                            "type": DISRUPTION_TARGET,
                            "status": "True",
                            "reason": PREEMPTED_BY_SCHEDULER,
                            "message": f"{preemptor.scheduler_name}: preempting to accommodate a higher priority pod",
                        },
                    )
                )
            self._actions.append(
                RecordEvent(
                    victim, "Normal", "Preempted", "Preempting",
                    f"Preempted by pod {preemptor.uid} on node {node_name}",
                )
            )  # fmt: skip
        for pod in self.nominator.pods_for(node_name):
            if pod.priority < preemptor.priority:
                self.nominator.remove(pod.uid)
                self._actions.append(PatchPodStatus(pod, None, ""))

    def _fail(self, info: QueuedPodInfo, status: Status, nominated: str | None) -> None:
        """Give a pod back to the queue and say why. Source: schedule_one.go handleSchedulingFailure."""
        pod = info.pod
        message = status.message
        current = self.pods.get(pod.uid)
        if current is None or current.node_name:
            self.queue.done(pod.uid)
        else:
            info.pod = current
            self.queue.add_unschedulable(info)
            if nominated is None:
                self.nominator.add(
                    current, self.nominator.node_of(current.uid) or current.nominated_node_name
                )
            elif nominated:
                self.nominator.add(current, nominated)
            else:
                self.nominator.remove(current.uid)
        reason = "Unschedulable" if status.is_rejection else "SchedulerError"
        self._actions.append(
            RecordEvent(pod, "Warning", "FailedScheduling", "Scheduling", message[:MAX_EVENT_MESSAGE])
        )
        condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
        self._actions.append(PatchPodStatus(pod, condition, nominated))

    # ---- from a node to a bound pod

    def _place(self, info: QueuedPodInfo, framework: Framework, node_name: str, trace: CycleTrace) -> None:
        pod = info.pod
        self.cache.assume(pod, node_name)
        self.nominator.remove(pod.uid)
        binding = Binding(info, pod, node_name, trace, "Permit")
        status = framework.run_reserve(pod, node_name)
        if not status.is_success:
            self._give_back(binding, status, "Reserve")
            return
        status, waits_ns = framework.run_permit(pod, node_name)
        if status.code is Code.Wait:
            self.bindings[pod.uid] = binding
            self.waiting_pods.add(pod, node_name, waits_ns, self.clock.now_ns)
            trace.header["outcome"] = WAITING
            trace.header["permit"] = [
                {"plugin": plugin, "decision": "wait", "timeoutS": wait_ns / SECOND_NS}
                for plugin, wait_ns in waits_ns.items()
            ]
            self._wake_for(framework, pod, waits_ns)
            return
        if not status.is_success:
            self._give_back(binding, status, "Permit")
            return
        trace.header["outcome"] = BOUND
        self.bindings[pod.uid] = binding
        self._permitted(binding)

    def _wake_for(self, framework: Framework, pod: Pod, waits_ns: Mapping[str, int]) -> None:
        """Try pending pods that a waiting pod's plugins want to see. Source: schedule_one.go podsToActivate."""
        plugins = [plugin for plugin in framework.permit if plugin.name in waits_ns]
        queue = self.queue
        pending = [*queue.backoff_pods(), *queue.error_backoff_pods(), *queue.unschedulable_pods()]
        woken = [info.pod for info in pending if any(plugin.wakes(pod, info.pod) for plugin in plugins)]
        if woken:
            queue.activate(woken)

    def _permitted(self, binding: Binding) -> None:
        """Past Permit nothing makes the pod unschedulable any more; PreBind and Bind follow."""
        pod = binding.pod
        self.queue.done(pod.uid)
        binding.step = "PreBind"
        self._pre_bind(binding)

    def _ask_pre_bind_again(self) -> None:
        """Pods that wait in PreBind, in order: perhaps what they wait for has happened."""
        for binding in list(self.bindings.values()):
            if binding.step == "PreBind":
                self._pre_bind(binding)

    def _pre_bind(self, binding: Binding) -> None:
        """Run PreBind, which may let the pod wait, then Bind."""
        pod = binding.pod
        framework = self.profiles[pod.scheduler_name]
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

    def _bind(self, binding: Binding) -> None:
        """Have the next interested extender bind the pod, or the bind plugins when none is left.

        Source: schedule_one.go bind and extendersBinding, v1.34
        """
        pod, node_name = binding.pod, binding.node_name
        call = self.bind_call(binding)
        if call is not None:
            self._actions.append(call)
            return
        status = self.profiles[pod.scheduler_name].run_bind(pod, node_name)
        if not status.is_success:
            self._give_back(binding, status, "Bind")
            return
        self._actions.append(BindPod(pod, node_name))

    def bind_call(self, binding: Binding) -> BindByExtender | None:
        """The call of the next extender that is to bind the pod, if one is left."""
        pod, node_name = binding.pod, binding.node_name
        binders = self.extenders.binders(pod)[binding.n_extenders_failed :]
        return (
            BindByExtender(pod, node_name, bind_request(binders[0], pod, node_name)) if binders else None
        )

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
        binding.trace.header.setdefault("extenders", []).append(call.explain())
        if error is not None and extender.ignorable:
            binding.n_extenders_failed += 1
            self._bind(binding)
        elif error is not None:
            self._give_back(binding, Status(Code.Error, (error,)), "Bind")
        else:
            self._bound(binding)

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

    def _bound(self, binding: Binding) -> None:
        pod = binding.pod
        del self.bindings[pod.uid]
        self.cache.finish_binding(pod.uid, self.clock.now_ns)
        self._actions.append(
            RecordEvent(
                pod, "Normal", "Scheduled", "Binding",
                f"Successfully assigned {pod.namespace}/{pod.name} to {binding.node_name}",
            )
        )  # fmt: skip
        self.profiles[pod.scheduler_name].run_post_bind(pod, binding.node_name)

    def _give_back(self, binding: Binding, status: Status, point: str) -> None:
        """Unreserve, forget and requeue. Source: schedule_one.go handleBindingCycleError."""
        pod = binding.pod
        self.bindings.pop(pod.uid, None)
        self.waiting_pods.remove(pod.uid)
        self.profiles[pod.scheduler_name].run_unreserve(pod, binding.node_name)
        self.cache.forget(pod.uid)
        in_cycle = binding.step == "Permit" and binding.trace.header["outcome"] != WAITING
        # Hints look at the node: a pod that was on none frees nothing.
        assumed = dataclasses.replace(pod, node_name=binding.node_name)
        if not in_cycle and not status.is_rejection:
            self.queue.move_all(ASSIGNED_POD_DELETE, assumed, None)
        message = status.message
        if status.is_rejection:
            binding.info.unschedulable_plugins = frozenset({status.plugin} - {""})
            message = f"0/1 nodes are available: 1 {message}." if message else "0/1 nodes are available:"
        header = binding.trace.header
        header["outcome"] = UNSCHEDULABLE if status.is_rejection else ERROR
        header["message"] = message
        header["rejectedAt"] = point
        if not status.is_rejection:
            header["error"] = message
        header["failedPlugin"] = status.plugin or None
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
        while len(self.waiting_pods):
            decided = [waiting for waiting in self.waiting_pods.all() if waiting.decided is not None]
            if not decided:
                return
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
        history = binding.trace.header.setdefault("permit", [])
        if status.is_success:
            history.extend(
                {"plugin": name, "decision": "allow", "afterS": waited_s} for name in waiting.allowed
            )
            binding.trace.header["outcome"] = BOUND
            self.traces.append(binding.trace)
            self._permitted(binding)
        else:
            history.append(
                {"plugin": status.plugin, "decision": "reject", "reason": status.message, "afterS": waited_s}
            )
            self._give_back(binding, status, "Permit")


def _hint_map(framework: Framework, listers: Listers, *, with_extenders: bool) -> HintMap:
    """What this profile's plugins wait for; two of them depend on the profile's arguments.

    Extenders, and retired plugins, which never said what they wait for, are asked again after every event.
    """
    affinity = framework.plugins.get(NodeAffinity.name)
    spread = framework.plugins.get(PodTopologySpread.name)
    context = HintContext(
        lookup=listers,
        added_node_selector=affinity.enforced if isinstance(affinity, NodeAffinity) else None,
        spread_constraints_of=constraints_with_defaults(spread.defaults.constraints, listers)
        if isinstance(spread, PodTopologySpread)
        else own_constraints,
    )
    wanted = {
        plugin: ALL_EVENTS if plugin in LEGACY_PLUGINS else registrations(plugin, context)
        for plugin in framework.plugins
    }
    if with_extenders:
        wanted[EXTENDER_NAME] = ALL_EVENTS
    return build_hint_map(wanted)


def _gates(framework: Framework) -> list[tuple[str, Callable[[Pod], Rejection | None]]]:
    """PreEnqueue plugins in the form the queue asks them in."""

    def check(plugin: Any) -> Callable[[Pod], Rejection | None]:
        def ask(pod: Pod) -> Rejection | None:
            status = plugin.pre_enqueue(pod)
            return None if status.is_success else Rejection(status.message)

        return ask

    return [(plugin.name, check(plugin)) for plugin in framework.pre_enqueue]


__all__ = ["Lane", "Scheduler", "SchedulerOptions"]
