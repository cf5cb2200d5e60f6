"""The scheduler: a function of events. It is handed what happened and answers with what it wants done.

It never waits, never asks what time it is and never opens a socket; the one call that blocks is the extender
transport, as in the real scheduler. One cycle runs when `schedule_one` is called; binding goes on beside the next
cycle as actions whose answers come back as events.

Source: pkg/scheduler/scheduler.go, pkg/scheduler/schedule_one.go, v1.34
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Any

from scheduler_core.actions import Action, EvictPod, PatchPodStatus, RecordEvent, WriteBeforeBind
from scheduler_core.clock import SECOND_NS, Clock
from scheduler_core.cluster.cache import Cache
from scheduler_core.cluster.nominator import Nominator
from scheduler_core.config.load import LoadedConfiguration
from scheduler_core.config.types import POLICY_KIND
from scheduler_core.dynamic_resources.model import reads_taint_rules
from scheduler_core.event_handlers import EventHandlers
from scheduler_core.events import (
    BindAnswered,
    Event,
    ExtenderBindAnswered,
    ObjectChanged,
    PermitDecided,
    PreBindAnswered,
    PreemptionAnswered,
    TimeReached,
)
from scheduler_core.extender.chain import extender_chain
from scheduler_core.extender.transport import Transport, no_transport
from scheduler_core.framework import record
from scheduler_core.framework.attempt import EXTENDER_NAME
from scheduler_core.framework.interface import MAX_EVENT_MESSAGE, ChoiceOptions, Handle
from scheduler_core.framework.limit import Limit
from scheduler_core.framework.preemption.trace import preemption_document
from scheduler_core.framework.recording import record_body
from scheduler_core.framework.registry import Registry
from scheduler_core.framework.runtime import Framework, build_profiles, failed
from scheduler_core.framework.status import SUCCESS, Code, Status
from scheduler_core.framework.waiting_pods import WaitingPods
from scheduler_core.group_cycle import GroupCycle
from scheduler_core.objects.pod import DISRUPTION_TARGET, PREEMPTED_BY_SCHEDULER, Pod, no_such_profile
from scheduler_core.objects.policy import PodGroup
from scheduler_core.plugins import REGISTRY
from scheduler_core.queue.hints import ALL_EVENTS, HintMap, build_hint_map
from scheduler_core.queue.queued_pod_info import QueuedPodInfo, QueueMove
from scheduler_core.queue.scheduling_queue import Rejection, SchedulingQueue
from scheduler_core.randomness import Randomness
from scheduler_core.releases import Release
from scheduler_core.schedule_one import (
    TIE_STREAM,
    Algorithm,
    AlgorithmOptions,
    Decision,
    PodBinding,
    Recorded,
)

POD_GROUP_KEYS = (
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io",
    "pod-group.scheduling.sigs.k8s.io/name",
    "scheduling.k8s.io/group-name",
)
"""Labels and annotations that make a pod a member of a group, of several schedulers and ages."""


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    """What a configuration does not say.

    Attributes
    ----------
    full_traces : bool or container of int
        Keep every verdict and score of every cycle, or of those with these numbers; otherwise only summaries.
    unplaced_traces : bool
        Keep everything of the cycles that chose no node, too, whatever their numbers.
    adaptive_sampling : bool
        Let an unset percentageOfNodesToScore mean upstream's adaptive share. By default all nodes are evaluated.
    assumed_pod_ttl_ns : int
        When an assumed pod expires after binding; 0 never, as v1.34.
    first_of_ties : bool
        Take the first name of equals, for comparing with recordings.
    all_preemption_candidates : bool
        Try preemption on every node where it might help, not on a sample of them.
    plugin_limit : Limit, optional
        How long a call of a plugin from outside the tree may take. Two runs may differ where it is reached.
    """

    full_traces: bool | Container[int] = True
    unplaced_traces: bool = False
    adaptive_sampling: bool = False
    assumed_pod_ttl_ns: int = 0
    first_of_ties: bool = False
    all_preemption_candidates: bool = False
    plugin_limit: Limit | None = None


class Scheduler(GroupCycle):
    """All profiles over one cluster.

    Parameters
    ----------
    loaded : LoadedConfiguration
    clock : Clock
        Read only; its owner moves it and sends `TimeReached`.
    randomness : Randomness
    registry : Registry
        The plugins the configuration was loaded with; those of the tree by default.
    options : SchedulerOptions
    observer : callable, optional
        Is told every move of a pod in the queue.
    transport : Transport
        Carries calls to extenders; the only thing here that may block.
    cache : Cache, optional
        One of its own with a cluster in it; an empty one by default.
    """

    def __init__(
        self,
        loaded: LoadedConfiguration,
        clock: Clock,
        randomness: Randomness,
        *,
        registry: Registry = REGISTRY,
        options: SchedulerOptions | None = None,
        observer: Callable[[QueueMove], None] | None = None,
        transport: Transport = no_transport,
        cache: Cache | None = None,
    ) -> None:
        self.loaded = loaded
        self.registry = registry
        self.clock = clock
        self.randomness = randomness
        self.options = options or SchedulerOptions()
        self.cache = Cache(self.options.assumed_pod_ttl_ns) if cache is None else cache
        self.nominator = Nominator()
        self.waiting_pods = WaitingPods()
        self.extenders = extender_chain(loaded, transport)
        self.handle_for_plugins = Handle(
            self.cache,
            self.nominator,
            self.waiting_pods,
            clock,
            randomness=randomness,
            choices=ChoiceOptions(self.options.first_of_ties, self.options.all_preemption_candidates),
            extenders=self.extenders.preempt if self.extenders else None,
            release=loaded.release,
        )
        self.pod_groups = self.handle_for_plugins.pod_groups
        self.profiles: dict[str, Framework] = build_profiles(
            loaded,
            registry.with_retired() if loaded.source_kind == POLICY_KIND else registry,
            self.handle_for_plugins,
            self.cache,
            self.options.plugin_limit,
        )
        configuration = loaded.configuration
        self.queue = SchedulingQueue(
            clock,
            hints={
                name: _hint_map(framework, loaded.release, with_extenders=bool(self.extenders))
                for name, framework in self.profiles.items()
            },
            sort_key=next(iter(self.profiles.values())).sort_key,
            pre_enqueue={name: _gates(framework) for name, framework in self.profiles.items()},
            initial_backoff_ns=configuration.pod_initial_backoff_s * SECOND_NS,
            max_backoff_ns=configuration.pod_max_backoff_s * SECOND_NS,
            pop_from_backoff=loaded.release.gate("SchedulerPopFromBackoffQ"),
            is_group_member=lambda pod: self.pod_groups.group_of(pod) is not None,
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
        self._switched_gates = dict(loaded.release.switched) or None
        self._group_plugins = " or ".join(
            f"the {plugin.name} plugin, by its label {' or '.join(plugin.group_labels)}"
            for plugin in registry.values()
            if plugin.group_labels
        )
        self.event_handlers = EventHandlers(
            self.cache,
            self.queue,
            self.nominator,
            self.waiting_pods,
            self.pod_groups,
            self.is_responsible,
            with_taint_rules=reads_taint_rules(loaded.release),
            gated_nominations_hold=loaded.release.has("GatedNominationsHold"),
        )
        self.bindings: dict[str, PodBinding] = {}
        self.awaited: dict[str, record.CycleTrace] = {}
        self.expired: dict[str, tuple[str, int]] = {}
        self.traces: list[record.CycleTrace] = []
        """Traces to be taken by the caller; a trace comes again when its binding goes on."""
        self.cycle = 0
        self.recorded: Recorded | None = None
        """Where each cycle to come placed its pod, as far as it did: a log is replayed."""
        self.pods: dict[str, Pod] = {}
        """Every live pod by uid, as the API server last told."""
        self._actions: list[Action] = []
        self._beside: list[Action] = []
        """What goes on beside the cycle, and so after all of it."""
        self.preemptions = self.handle_for_plugins.preemptions
        self._knows_prebind = loaded.release.has("PreemptedInMemory")
        self.handle_for_plugins.recorder = lambda event: self._actions.append(event)
        self.handle_for_plugins.activator = self.queue.activate

    def is_responsible(self, pod: Pod) -> bool:
        """Whether one of our profiles schedules this pod."""
        return self.why_not_scheduled(pod) is None

    def why_not_scheduled(self, pod: Pod) -> str | None:
        """Why no profile will ever try this pod, None when one does.

        A pod that asks for what is not simulated waits visibly; it is never scheduled as if it had not asked.
        """
        framework = self.profiles.get(pod.scheduler_name)
        if framework is None:
            return no_such_profile(pod.scheduler_name, self.profiles)
        annotations = pod.manifest["metadata"].get("annotations")
        if not pod.labels and not annotations and "workloadRef" not in pod.manifest["spec"]:
            return None
        for key in POD_GROUP_KEYS:
            if key in pod.labels or (annotations and key in annotations):
                if key in pod.labels and any(
                    key in plugin.group_labels for plugin in framework.plugins.values()
                ):
                    continue
                return f"pod groups ({key}) are scheduled only by {self._group_plugins}"
        if pod.manifest["spec"].get("workloadRef") is not None:
            return "spec.workloadRef: gang scheduling by Workload objects is not simulated"
        return None

    # ---- what happens

    def handle(self, event: Event) -> list[Action]:
        """Take in one event; never raises on an event that came late, twice or for something unknown."""
        if isinstance(event, ObjectChanged):  # as most are
            if event.kind == "Pod":
                self._know_pod(event.old, event.new)
            self.event_handlers.object_changed(event.kind, event.old, event.new)
            if self.bindings:
                self._ask_pre_bind_again()
        else:
            self._answered(event)
        self._settle_waiting_pods()
        return self._take_actions()

    def _answered(self, event: Event) -> None:
        match event:
            case PermitDecided(uid, allow, plugin, reason):
                self._permit_decided(uid, allow, plugin, reason)
            case PreBindAnswered(uid, error):
                self._pre_bind_answered(uid, error)
            case BindAnswered(uid, error):
                self._bind_answered(uid, error)
            case ExtenderBindAnswered(uid, answer):
                self._extender_bind_answered(uid, answer)
            case PreemptionAnswered(uid, error):
                self._preemption_answered(uid, error)
            case TimeReached():
                self._time_reached()

    def can_schedule(self) -> bool:
        """Whether `schedule_one` has a pod to try."""
        return self.queue.can_pop()

    def next_deadline_ns(self) -> int | None:
        """When time alone will change something."""
        queue_ns = self.queue.next_deadline_ns()
        if not self.bindings and not self.cache.assumed_pod_ttl_ns:
            return queue_ns
        deadlines = [queue_ns, self.waiting_pods.next_deadline_ns()]
        if self.cache.assumed_pod_ttl_ns:
            deadlines += [assumed.deadline_ns for assumed in self.cache.assumed.values()]
        for binding in self.bindings.values() if self.is_any_past_permit else ():
            if binding.step == "PreBind":
                plugins = self.profiles[binding.pod.scheduler_name].pre_bind
                asked = [plugin.pre_bind_deadline_ns(binding.pod) for plugin in plugins]
                # A plugin whose deadline has come was asked then; what it waits for now is another object.
                deadlines += [at_ns for at_ns in asked if at_ns is not None and at_ns > self.clock.now_ns]
        return min((at_ns for at_ns in deadlines if at_ns is not None), default=None)

    def _know_pod(self, old: Pod | None, new: Pod | None) -> None:
        uid = None if new is None else new.uid
        if old is not None and old.uid != uid:
            self.pods.pop(old.uid, None)
            self.hear_of(old.uid, None)
        if new is not None and uid is not None:
            self.pods[uid] = new
            if self.awaited or self.expired:
                self.hear_of(uid, new)

    def _take_actions(self) -> list[Action]:
        if self._beside:
            self._actions += self._beside
            self._beside = []
        actions, self._actions = self._actions, []
        return actions

    def _time_reached(self) -> None:
        now_ns = self.clock.now_ns
        self.waiting_pods.expire(now_ns)
        self.expire()
        self.queue.flush_due()
        self._ask_pre_bind_again()

    # ---- the scheduling cycle

    def schedule_one(self) -> list[Action]:
        """Run one scheduling cycle, if a pod is to be had; its trace is appended to `traces`."""
        info = self.queue.pop()
        if info is None:
            return self._take_actions()
        group = self.pod_groups.group_of(info.pod)
        if group is not None:
            self._schedule_group(group, info)
        elif not self._is_skipped(info):
            self._schedule_pod(info)
        self._settle_waiting_pods()
        return self._take_actions()

    def _is_skipped(self, info: QueuedPodInfo) -> bool:
        """Whether a popped pod is not to be tried: it is gone or being deleted, or has a node."""
        pod = info.pod
        current = self.pods.get(pod.uid)
        if current is None or current.node_name or self.cache.pod(pod.uid) is not None:
            self.queue.done(pod.uid)
            return True
        if current.is_terminating:
            self._actions.append(
                RecordEvent(
                    pod, "Warning", "FailedScheduling", "Scheduling",
                    f"skip schedule deleting pod: {pod.key}",
                )
            )  # fmt: skip
            self.queue.done(pod.uid)
            return True
        return False

    def _schedule_pod(self, info: QueuedPodInfo) -> None:
        pod = info.pod
        framework = self.profiles[pod.scheduler_name]
        failure = None if framework.order is None else framework.order.failure(pod.uid)
        if failure is None:
            decision = self._known(framework, pod) or self.algorithm.schedule(
                framework, pod, self.cache.snapshot()
            )
        else:
            decision = self.algorithm.failed(
                framework, pod, self.cache.snapshot(), framework.queue_sort.name, failure
            )
        trace = self._trace(info, framework, decision)
        if decision.node_name is not None and decision.error is None:
            self._place(info, framework, decision.node_name, decision.attempt.cycle_state, trace)
        else:
            self._find_no_place(info, decision, trace)
        self.traces.append(trace)

    def _known(self, framework: Framework, pod: Pod) -> Decision | None:
        """The decision of the cycle that begins, where it is known and its body is not kept."""
        number = self.cycle + 1
        if self.recorded is None or self._is_kept_whole(number):
            return None
        known = self.recorded(number)
        if known is None:
            return None
        return self.algorithm.placed(framework, pod, self.cache.snapshot(), known)

    def _is_kept_whole(self, number: int) -> bool:
        """Whether the body of a cycle's trace is wanted, however it ends."""
        kept = self.options.full_traces
        return kept if isinstance(kept, bool) else number in kept

    def considered(self, info: QueuedPodInfo, framework: Framework) -> tuple[record.CycleTrace, Decision]:
        """The cycle a pod would have now, preemption included. Nothing is reserved, asked for or counted."""
        decision = self.algorithm.schedule(framework, info.pod, self.cache.snapshot())
        trace = self._trace(info, framework, decision)
        self.cycle -= 1
        if decision.node_name is not None and decision.error is None:
            trace.outcome = record.BOUND
        trace.dry_run = True
        return trace, decision

    def _trace(self, info: QueuedPodInfo, framework: Framework, decision: Decision) -> record.CycleTrace:
        self.cycle += 1
        full = self._is_kept_whole(self.cycle) or (
            decision.node_name is None and self.options.unplaced_traces
        )
        pod = info.pod
        trace = record.CycleTrace(
            number=self.cycle,
            at_ns=self.clock.now_ns,
            pod=pod.key,
            uid=pod.uid,
            profile=framework.scheduler_name,
            attempt=info.attempts,
            priority=pod.priority,
            outcome=record.UNSCHEDULABLE if decision.error is None else record.ERROR,
            node=decision.node_name,
            message=decision.message,
            n_nodes=len(decision.attempt.snapshot.order),
            n_evaluated=decision.n_evaluated,
            n_feasible=decision.n_feasible,
            best_total=decision.best_total,
            release=self.loaded.release.name,
            gates=self._switched_gates,
        )
        if decision.node_name is None or decision.error is not None:
            trace.error, trace.fit_error = decision.error, decision.fit_error
            trace.failed_point = decision.failed_point or None
            trace.failed_plugin = decision.failed_plugin or None
        if decision.n_tied > 1 and decision.node_name is not None:
            trace.tie = record.Tie(decision.n_tied, decision.node_name, TIE_STREAM)
        result = decision.post_filter
        if result is not None:
            trace.victims = [victim.key for victim in result.victims]
            trace.nominated_node = result.nominated_node_name
            if result.status.is_success and result.nominated_node_name and decision.error is None:
                trace.outcome = record.PREEMPTING
            trace.preemption = preemption_document(result, decision.message, full=full)
        if decision.extender_calls:
            # Whole requests and answers are large: summaries say only who was asked and how it went.
            calls = [call.explain() for call in decision.extender_calls]
            if not full:
                calls = [{**call, "request": None, "answer": None} for call in calls]
            trace.extenders = calls
        if full and decision.error is None:
            best = None
            if decision.node_name is not None:
                best = decision.ties or (decision.node_name,)
            record_body(decision.attempt, trace, best, matrix=True)
        return trace

    def _find_no_place(self, info: QueuedPodInfo, decision: Decision, trace: record.CycleTrace) -> None:
        nominated: str | None = None
        if decision.error is not None:
            status = Status(Code.Error, (decision.error,))
            nominated = ""
        else:
            status = Status(Code.Unschedulable, (decision.message or "",))
            info.unschedulable_plugins = frozenset(decision.attempt.rejecting_plugins())
        if decision.error is None:
            nominated = self._after_post_filter(info.pod, decision)
        self._fail(info, status, nominated)

    def _after_post_filter(self, pod: Pod, decision: Decision) -> str | None:
        """Do what PostFilter found; what becomes of the pod's nomination."""
        result = decision.post_filter
        if result is None:
            return None
        if result.writes:
            self._actions.append(WriteBeforeBind(pod, "", result.writes))
        if result.status.is_success:
            self._preempt(pod, result.nominated_node_name or "", result.victims, pod.scheduler_name)
            for other in result.cleared:
                self.nominator.remove(other.uid)
                self._actions.append(PatchPodStatus(other, None, ""))
        return result.nominated_node_name

    def _preempt(
        self, preemptor: Pod | PodGroup, node_name: str, victims: tuple[Pod, ...], scheduler_name: str
    ) -> None:
        """Ask for the eviction of those victims that are not leaving already.

        Source: framework/preemption/preemption.go prepareCandidate, v1.34; executor.go, v1.36
        """
        kind = "podgroup" if isinstance(preemptor, PodGroup) else "pod"
        said = f"Preempted by {kind} {preemptor.uid} on node {node_name}"
        condition = {
            "type": DISRUPTION_TARGET,
            "status": "True",
            "reason": PREEMPTED_BY_SCHEDULER,
            "message": f"{scheduler_name}: preempting to accommodate a higher priority {kind}",
        }
        evictions = []
        for victim in victims:
            current = self.pods.get(victim.uid, victim)
            if current.is_terminating:
                continue
            if self._preempt_in_memory(victim):
                suffix = " (in kube-scheduler memory)." if self._knows_prebind else ""
                self._actions.append(
                    RecordEvent(victim, "Normal", "Preempted", "Preempting", said + suffix, preemptor)
                )
            else:
                evictions.append(EvictPod(victim, preemptor, node_name, condition, said))
        if not self.preemptions.is_asynchronous:
            self._actions.extend(evictions)
        elif evictions:
            self._beside.append(self.preemptions.begin(preemptor.uid, evictions))

    def _preempt_in_memory(self, victim: Pod) -> bool:
        """Give back a victim that is not bound yet; False where it has to be deleted.

        Source: executor.go PreemptPod, v1.36; until then a pod in PreBind was deleted.
        """
        waiting = self.waiting_pods.get(victim.uid)
        if waiting is not None:
            if self._knows_prebind:
                waiting.fail("DefaultPreemption", "preempted")
            else:
                waiting.reject("DefaultPreemption", "preempted")
            return True
        binding = self.bindings.get(victim.uid)
        if not self._knows_prebind or binding is None or binding.step != "PreBind":
            return False
        self._give_back(binding, Status(Code.Error, ("preempted by DefaultPreemption",)), "PreBind")
        return True

    def _preemption_answered(self, uid: str, error: str | None) -> None:
        """The preemptor is held no longer; where an eviction was refused it is tried again at once."""
        evictions = self.preemptions.end(uid)
        if error is None or not evictions:
            return
        preemptor = evictions[0].preemptor
        if isinstance(preemptor, PodGroup):
            self.queue.activate(self.pod_groups.unscheduled((preemptor.namespace, preemptor.name)))
        else:
            self.queue.activate([preemptor])

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


def _hint_map(framework: Framework, release: Release, *, with_extenders: bool) -> HintMap:
    """What this profile's plugins wait for; those that do not say, and extenders, are asked at every event."""
    wanted = {name: ALL_EVENTS if events is None else events for name, events in framework.events().items()}
    if with_extenders:
        wanted[EXTENDER_NAME] = ALL_EVENTS
    with_node_taints = not release.has("NodeTaintsWakeFewer")
    return build_hint_map(wanted, with_node_taints=with_node_taints)


def _gates(framework: Framework) -> list[tuple[str, Callable[[Pod], Rejection | None]]]:
    """PreEnqueue plugins in the form the queue asks them in."""

    def check(plugin: Any) -> Callable[[Pod], Rejection | None]:
        def ask(pod: Pod) -> Rejection | None:
            try:
                status = plugin.pre_enqueue(pod)
            except Exception as error:
                status = failed(error)
            if status is SUCCESS or status.is_success:
                return None
            if status.code is Code.Error:
                return Rejection(f'running PreEnqueue plugin "{plugin.name}": {status.message}', Code.Error)
            return Rejection(status.message, status.code)

        return ask

    return [(plugin.name, check(plugin)) for plugin in framework.pre_enqueue]
