"""The loop in virtual time: a scheduler, a world, and nothing else that could surprise.

Everything is driven from here in one order: tell everybody what changed until nothing is left to tell, then run the
next scheduling cycle, or move the clock to the next timer. Same inputs, configuration and seed: same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import replace
from typing import Any

from scheduler_core import events
from scheduler_core.actions import (
    Action,
    BindByExtender,
    BindPod,
    EvictBeside,
    EvictPod,
    PatchPodGroupStatus,
    PatchPodStatus,
    RecordEvent,
    WriteBeforeBind,
)
from scheduler_core.clock import Clock
from scheduler_core.extender.transport import ExtenderAnswer, ExtenderRequest, Transport, no_transport
from scheduler_core.framework.interface import Plugin
from scheduler_core.framework.limit import Limit
from scheduler_core.framework.record import CycleTrace
from scheduler_core.framework.registry import Registry
from scheduler_core.installed_plugins import known
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.policy import PodGroup
from scheduler_core.queue.queued_pod_info import QueueMove
from scheduler_core.randomness import Randomness
from scheduler_core.releases import OLDEST, Release, release_from
from scheduler_core.schedule_one import Recorded
from scheduler_core.scheduler import Scheduler, SchedulerOptions
from scheduler_core.sim.changes import (
    BindCallAnswered,
    Change,
    ControllerRun,
    Deadline,
    DeleteObject,
    Outcome,
    PermitDecision,
    RunReport,
    SetAssumedPodExpiry,
    SetConfiguration,
    WriteObject,
)
from scheduler_core.sim.checkpoint import check_version, checkpoint_of, take_over
from scheduler_core.sim.control_plane import ControlPlane
from scheduler_core.sim.kubelet import TIMER_NAMES, Kubelet, delete_pod
from scheduler_core.sim.options import (
    RELIST,
    SLOW_BIND,
    SLOW_EVICT,
    FaultOptions,
    Faults,
    SimulationOptions,
    load,
)
from scheduler_core.sim.queue_view import QueueView, scheduler_words, timer_words
from scheduler_core.sim.timers import Timer, Timers
from scheduler_core.sim.world import Noticed, Stored, World

MAX_MOVES = 100_000
MOST_ACTS = 50
"""Of autoscalers and the descheduler, after which a run until idle ends although time alone brings more."""
STARTED_ANEW = "SchedulerStarted"
"""Event of the moves of pods that a scheduler with another configuration lists first."""


class Simulation:
    """One simulated cluster.

    Parameters
    ----------
    config : mapping or None
        A KubeSchedulerConfiguration v1 or Policy document; None is the default configuration.
    seed : int
    start_ns : int
        Where the virtual clock starts, nanoseconds since the Unix epoch.
    options : SimulationOptions
    transport : Transport
        Carries calls to extenders.
    plugins : Registry or iterable of plugin classes
        Plugins the configuration may name besides those of the tree and of installed packages
        (`installed_plugins.known`); or a whole registry.
    plugin_limit : Limit, optional
        How long one call of a plugin from outside the tree may take before it fails its cycle.
    release : Release
        The release of Kubernetes that the cluster follows (`releases.release_named`).

    Raises
    ------
    ConfigurationError
    PluginDeclarationError
        A plugin's class does not declare itself well.
    """

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        seed: int = 0,
        start_ns: int = 0,
        options: SimulationOptions | None = None,
        transport: Transport = no_transport,
        plugins: Registry | Iterable[type[Plugin]] = (),
        plugin_limit: Limit | None = None,
        release: Release = OLDEST,
    ) -> None:
        self.release = release
        self._plugin_limit = plugin_limit
        self.registry = plugins if isinstance(plugins, Registry) else known().plus(plugins)
        self.options = options or SimulationOptions()
        self._transport = transport
        self.clock = Clock(start_ns)
        self.randomness = Randomness(seed)
        self.timers = Timers()
        self.world = World(
            self.clock,
            default_tolerations=self.options.default_tolerations,
            release=release,
        )
        self.faults = Faults(self.options.faults, self.randomness)
        self._is_faulty = self.options.faults.any
        acts = self.options.controllers and not self.options.mirrors
        self.control_plane = ControlPlane(
            self.world, self.timers, self.randomness, controllers=acts, release=release
        )
        self.kubelet = Kubelet(self.world, self.timers, self.control_plane.context.pods)
        self.moves: list[QueueMove] = []
        self.before_cycle: Callable[[Simulation], None] | None = None
        """Looks at the cluster just before each scheduling cycle; changes nothing."""
        self.after_cycle: Callable[[Simulation], None] | None = None
        """Looks at the cluster after each scheduling cycle; changes nothing."""
        self._traces: list[CycleTrace] = []
        self._full_traces: bool | Container[int] = self.options.full_traces
        self._unplaced_traces = False
        self._recorded: Recorded | None = None
        self._set_up(config)

    def _set_up(self, config: Mapping[str, Any] | None) -> None:
        self.config = config
        loaded = load(config, self.registry, self.release)
        self.scheduler = Scheduler(
            loaded,
            self.clock,
            self.randomness,
            registry=self.registry,
            options=SchedulerOptions(
                full_traces=self._full_traces,
                unplaced_traces=self._unplaced_traces,
                adaptive_sampling=self.options.adaptive_sampling,
                assumed_pod_ttl_ns=self.options.assumed_pod_ttl_ns,
                first_of_ties=self.options.first_of_ties,
                plugin_limit=self._plugin_limit,
            ),
            observer=self._moved,
            transport=self._transport,
        )
        self.scheduler.recorded = self._recorded
        self._last_failures: dict[str, tuple[str, int]] = {}
        self._settled_failures: dict[str, int] = {}
        self._bind_calls: dict[str, BindByExtender] = {}
        self._strangers: dict[str, tuple[Pod, str]] = {}
        self._untold: dict[tuple[str, str], Stored | None] = {}
        """Pods of which the scheduler's watch lost an event, as the scheduler last saw them."""

    @property
    def now_ns(self) -> int:
        return self.clock.now_ns

    @property
    def plugin_failures(self) -> tuple[str, ...]:
        """What plugins from outside the tree did wrong where no cycle could fail for it, the last of it."""
        return tuple(self.scheduler.handle_for_plugins.failures)

    # ---- inputs

    def submit(self, change: Change) -> None:
        """Take in one input; it holds from now on."""
        self.control_plane.context.n_acts = 0
        match change:
            case WriteObject(manifest, reason):
                self.world.put(manifest, reason)
            case DeleteObject(kind, namespace, name, grace_period_s):
                pod = self.world.pod(namespace, name) if kind == "Pod" else None
                if pod is not None and not self.options.mirrors:
                    delete_pod(self.world, pod, grace_period_s, None)
                else:
                    self.world.remove(kind, namespace, name)
            case PermitDecision(namespace, name, allow, plugin, reason):
                self._settle()
                pod = self.world.pod(namespace, name)
                if pod is not None:
                    self._perform(self.scheduler.handle(events.PermitDecided(pod.uid, allow, plugin, reason)))
            case SetConfiguration(document, release):
                self._reconfigure(document, release or self.release)
            case SetAssumedPodExpiry(after_ns):
                self._settle()
                self.options = replace(self.options, assumed_pod_ttl_ns=after_ns)
                self.scheduler.cache.set_expiry(after_ns, self.now_ns)
            case BindCallAnswered(uid, answer):
                self._settle()
                self._bind_call_answered(uid, answer)
        self._settle_all()

    def _reconfigure(self, document: Mapping[str, Any] | None, release: Release) -> None:
        """Start a new scheduler over the same cluster, as restarting kube-scheduler with a new file does.

        An upgrade is the same with another release.

        The requests of the old one end with it: the new one knows of no pod it assumed, and a binding that came
        later would meet what has been placed in its room.
        """
        self._settle()
        for timer in self.timers.all():
            if timer.what in (SLOW_BIND, SLOW_EVICT):
                self.timers.cancel(timer.what, *timer.subject)
        cycle = self.scheduler.cycle
        self.scheduler.end_waits()
        self._traces.extend(self.scheduler.traces)
        for namespace, name in self._untold:
            self.timers.cancel(RELIST, namespace, name)
        self.release = self.world.release = self.control_plane.context.release = release
        self._set_up(document)
        self.scheduler.cycle = cycle
        queue = self.scheduler.queue
        # What the new scheduler lists first was in the old one's queue: no pod comes into a queue by it.
        observer, queue.observer = queue.observer, lambda move: self._moved(move._replace(event=STARTED_ANEW))
        for stored in self.world.everything():
            if stored.typed is not None:
                kind = str(stored.manifest["kind"])
                if kind == "Pod":
                    self._know_stranger(None, stored.typed)
                self._perform(self.scheduler.handle(events.ObjectChanged(kind, None, stored.typed)))
        queue.observer = observer

    # ---- running

    def step(self) -> RunReport:
        """Run one scheduling cycle, jumping over timers to it if need be; none when the cluster is idle."""
        return self._run("cycle", 1)

    def run_until_idle(self, *, max_cycles: int = 100_000, until_ns: int | None = None) -> RunReport:
        """Run cycles and timers until nothing is left that would happen by itself, or until a bound is reached.

        Idle is when no pod may be tried, nothing is being bound, started or terminated, and every timer left is a
        leftover: the flush of unschedulable pods, a Permit deadline, what comes again and again (an autoscaler's look
        and what it began, an autoscaler's look at its workload), the expiry of an assumed pod whose Binding its
        extender is to post (`extenders_post_bindings`), or the backoff of a pod whose last attempt failed as the one
        before it, with nothing having happened in between. Where autoscalers and the descheduler act again and again
        it may never come: the run ends after `MOST_ACTS` of their acts.

        Parameters
        ----------
        until_ns : int, optional
            The clock does not move past this moment.
        """
        return self._run("idle", max_cycles, until_ns)

    def _run(self, goal: str, max_cycles: int, until_ns: int | None = None) -> RunReport:
        """Run cycles and timers: one cycle, until idle, or (goal "time") until a moment, whatever is left by then."""
        cycles = 0
        while True:
            nothing_to_schedule = self._nothing_to_schedule()
            if self._bind_calls:
                return self._report(cycles, "call")
            if nothing_to_schedule:
                next_ns = self._next_deadline_ns()
                if goal != "time" and (next_ns is None or not self._has_significant_timer()):
                    return self._report(cycles, "idle")
                if goal != "time" and self.control_plane.context.n_acts >= MOST_ACTS:
                    self.control_plane.context.n_acts = 0
                    return self._report(cycles, "acting")
                if until_ns is not None and (next_ns is None or next_ns > until_ns):
                    if goal != "time" or self.now_ns >= until_ns:
                        return self._report(cycles, "time")
                    next_ns = until_ns
                assert next_ns is not None
                self._move_clock(next_ns)
                continue
            if cycles >= max_cycles:
                return self._report(cycles, "budget")
            self._schedule_one()
            cycles += 1
            if goal == "cycle":
                return self._report(cycles, "cycle")

    def advance(self, duration_ns: int, *, max_cycles: int = 100_000) -> RunReport:
        """Let time pass: all timers fire in order, and cycles run as pods become ready.

        Raises
        ------
        ValueError
            Time is asked to run backwards.
        """
        if duration_ns < 0:
            raise ValueError(f"time cannot run backwards ({duration_ns} ns)")
        context = self.control_plane.context
        n_acts = context.n_acts
        report = self._run("time", max_cycles, self.now_ns + duration_ns)
        context.n_acts = n_acts  # what is asked for by time ends by itself
        return report

    def _nothing_to_schedule(self) -> bool:
        self._settle()
        if self._can_schedule():
            return False
        self._settle_all()
        return not self._can_schedule()

    def _can_schedule(self) -> bool:
        """Whether a cycle is worth running now.

        Members of a group come back by backoff alone, and an idle scheduler takes them from there early: in a loop
        that takes no virtual time. One that failed twice alike with nothing in between waits for its backoff here.
        """
        queue = self.scheduler.queue
        if self.options.mirrors:
            return False
        if queue.n_active:
            return True
        if not queue.can_pop():
            return False
        return not all(self._is_settled(info.pod.uid) for info in queue.backoff_pods())

    def _is_settled(self, uid: str) -> bool:
        return self._settled_failures.get(uid) == self.world.changes

    def next_deadline(self) -> Deadline | None:
        """The next timer of any kind."""
        timer, scheduler_ns = self.timers.next(), self.scheduler.next_deadline_ns()
        if timer is not None and (scheduler_ns is None or timer.at_ns <= scheduler_ns):
            return Deadline(max(timer.at_ns, self.now_ns), timer_words(timer))
        if scheduler_ns is None:
            return None
        return Deadline(max(scheduler_ns, self.now_ns), scheduler_words(self.scheduler, scheduler_ns))

    def _next_deadline_ns(self) -> int | None:
        """When that is: words take longer."""
        timer, scheduler_ns = self.timers.next(), self.scheduler.next_deadline_ns()
        if timer is None or (scheduler_ns is not None and scheduler_ns < timer.at_ns):
            return None if scheduler_ns is None else max(scheduler_ns, self.clock.now_ns)
        return max(timer.at_ns, self.clock.now_ns)

    # ---- outputs

    def drain_outcomes(self) -> list[Outcome]:
        """What the cluster did by itself since the last call, in order."""
        outcomes, self.world.outcomes = self.world.outcomes, []
        return outcomes

    def drain_cycles(self) -> list[CycleTrace]:
        """Cycles since the last call; one whose binding went on comes again under its number."""
        traces = self._traces + self.scheduler.traces
        self._traces, self.scheduler.traces = [], []
        return traces

    def keep_full_traces(self, of: bool | Container[int], *, unplaced: bool = False) -> None:
        """From now on keep the bodies of all cycles' traces, of none, or of the cycles of these numbers.

        Parameters
        ----------
        unplaced : bool
            And of every cycle that chose no node.
        """
        self._full_traces, self._unplaced_traces = of, unplaced
        self.scheduler.options = replace(self.scheduler.options, full_traces=of, unplaced_traces=unplaced)

    def follow(self, recorded: Recorded | None) -> None:
        """From now on place pods where it is recorded that they were placed, as far as that needs no deciding.

        What is replayed is the same, several times as fast. Cycles whose bodies are kept are decided.
        """
        self._recorded = self.scheduler.recorded = recorded

    def cycles_under_way(self) -> list[int]:
        """Numbers of the cycles whose binding goes on: each comes again, with the trace it has now."""
        scheduler = self.scheduler
        traces = [binding.trace for binding in scheduler.bindings.values()] + list(scheduler.awaited.values())
        return [trace.number for trace in traces]

    def drain_moves(self) -> list[QueueMove]:
        """Moves of pods in the queue since the last call."""
        moves, self.moves = self.moves, []
        return moves

    def drain_runs(self) -> list[ControllerRun]:
        """Runs of controllers since the last call that decided something else than before, in order."""
        context = self.control_plane.context
        runs, context.runs = context.runs, []
        return runs

    def queue_view(self) -> dict[str, list[dict[str, Any]]]:
        """Every pending pod by lane (`sim.queue_view.QueueView`)."""
        return self.queue_now().entries()

    def queue_now(self) -> QueueView:
        """The queue, to be asked before the simulation goes on; cheap where few pods are asked for."""
        return QueueView(self.scheduler, self._strangers)

    # ---- inside

    def _moved(self, move: QueueMove) -> None:
        if len(self.moves) < MAX_MOVES:
            self.moves.append(move)

    def _schedule_one(self) -> None:
        scheduler = self.scheduler
        if self.before_cycle is not None:
            self.before_cycle(self)
        self.world.cycle = scheduler.cycle + 1
        actions = scheduler.schedule_one()
        self._perform(actions)
        self._settle()
        if self.after_cycle is not None:
            self.after_cycle(self)

    def _settle(self) -> None:
        """Tell everybody what changed, fire due timers and let controllers act, until nothing is left to do now."""
        noticed, timers = self.world.noticed, self.timers
        while True:
            while noticed:
                self._tell(noticed.popleft())
            timer = timers.pop_due(self.clock.now_ns)
            if timer is not None:
                self._fire(timer)
            elif not self.control_plane.sync() and not noticed:
                return

    def _settle_all(self) -> None:
        """Settle, statuses of workloads included: they are written once for a moment, not once for a pod."""
        self._settle()
        while self.control_plane.report():
            self._settle()

    def _tell(self, change: Noticed) -> None:
        """Tell everybody of one change."""
        kind = change.kind
        old = None if change.old is None else change.old.typed
        new = None if change.new is None else change.new.typed
        self.control_plane.noticed(change)
        if self.options.mirrors:
            if kind == "Pod":
                self._know_stranger(old, new)
        elif kind == "Pod":
            self.kubelet.pod_changed(old, new)
            self._know_stranger(old, new)
            if self._is_faulty and self._is_lost(change):
                return
        elif kind == "Node":
            self.kubelet.node_changed(old, new)
        elif kind in ("PersistentVolumeClaim", "ResourceClaim"):
            self.kubelet.claim_changed(kind, change.newest.manifest["metadata"])
        if old is not None or new is not None:
            self._perform(self.scheduler.handle(events.ObjectChanged(kind, old, new)))

    def _know_stranger(self, old: Pod | None, new: Pod | None) -> None:
        """Keep the list of pending pods that no profile will ever try."""
        reason = None
        if new is not None and not new.node_name and not new.is_terminal:
            reason = self.scheduler.why_not_scheduled(new)
        if new is not None and reason is not None:
            self._strangers[new.key] = (new, reason)
        elif self._strangers:
            gone = old if new is None else new
            if gone is not None:
                self._strangers.pop(gone.key, None)

    def _is_lost(self, change: Noticed) -> bool:
        """Whether the scheduler's watch loses this change of a pod; it then loses all until it lists again."""
        pod: Pod = change.newest.typed
        key = (pod.namespace, pod.name)
        if key in self._untold:
            return True
        if not pod.node_name or not self.faults.loses_event():
            return False
        self._untold[key] = change.old
        self.timers.add(self.now_ns + self.options.faults.relist_ms * 1_000_000, RELIST, *key)
        return True

    def _list_again(self, namespace: str, name: str) -> None:
        if (namespace, name) not in self._untold:
            return
        known = self._untold.pop((namespace, name))
        stored = self.world.get("Pod", namespace, name)
        old, new = (None if item is None else item.typed for item in (known, stored))
        if old is not None or new is not None:
            self._perform(self.scheduler.handle(events.ObjectChanged("Pod", old, new)))

    def _fire(self, timer: Timer) -> None:
        if timer.what in TIMER_NAMES:
            self.kubelet.timer(timer.what, *timer.subject)
        elif timer.what == SLOW_BIND:
            namespace, name, uid, node_name, error = timer.subject
            self._bind(namespace, name, uid, node_name, error or None)
        elif timer.what == SLOW_EVICT:
            uid, error = timer.subject
            self._evict_beside(uid, self.scheduler.preemptions.running.get(uid, ()), error or None)
        elif timer.what == RELIST:
            self._list_again(*timer.subject)
        else:
            self.control_plane.timer(timer)

    def _perform(self, actions: list[Action]) -> None:
        """Do what the scheduler asks, in order; answers go back at once."""
        for action in () if self.options.mirrors else actions:
            match action:
                case BindPod(pod, node_name):
                    delay_ns, error = self.faults.bind() if self._is_faulty else (0, None)
                    if delay_ns:
                        subject = (pod.namespace, pod.name, pod.uid, node_name, error or "")
                        self.timers.add(self.now_ns + delay_ns, SLOW_BIND, *subject)
                    else:
                        self._bind(pod.namespace, pod.name, pod.uid, node_name, error)
                case BindByExtender(pod, node_name, request):
                    self._bind_by_extender(pod, node_name, request)
                case PatchPodStatus():
                    self._patch_status(action)
                case PatchPodGroupStatus(group, condition):
                    patch_group_status(self.world, group, condition)
                case EvictPod():
                    evict(self.world, action)
                case EvictBeside(uid, evictions):
                    delay_ns, error = self.faults.evict() if self._is_faulty else (0, None)
                    if delay_ns:
                        self.timers.add(self.now_ns + delay_ns, SLOW_EVICT, uid, error or "")
                    else:
                        self._evict_beside(uid, evictions, error)
                case RecordEvent(pod, type_, reason, what, message, related):
                    other = None if related is None else related.manifest
                    self.world.record_event(
                        pod.manifest, type_, reason, what, message, pod.scheduler_name, related=other
                    )
                case WriteBeforeBind(pod, _, writes):
                    for manifest in writes:
                        self.world.put(manifest, _WRITERS.get(str(manifest["kind"]), "volume binding"))
                    self._deliver()
                    self._perform(self.scheduler.handle(events.PreBindAnswered(pod.uid, None)))

    def _bind(self, namespace: str, name: str, uid: str, node_name: str, error: str | None) -> None:
        """The API server takes a binding, or does not; either way it answers."""
        if error is None:
            error = self.world.bind(namespace, name, uid, node_name)
        self._deliver()
        self._perform(self.scheduler.handle(events.BindAnswered(uid, error)))

    def _deliver(self) -> None:
        """Let the scheduler's watch catch up, as it does before the answer to its own request comes."""
        for _ in range(len(self.world.noticed)):
            # Telling of one may have had the rest told.
            if self.world.noticed:
                self._tell(self.world.noticed.popleft())

    def bind_calls(self) -> list[BindByExtender]:
        """Bind calls of extenders that are to be made by the caller, in order."""
        return list(self._bind_calls.values())

    def _bind_call_answered(self, uid: str, answer: ExtenderAnswer) -> None:
        if self._bind_calls.pop(uid, None) is not None:
            self._perform(self.scheduler.handle(events.ExtenderBindAnswered(uid, answer)))

    def _bind_by_extender(self, pod: Pod, node_name: str, request: ExtenderRequest) -> None:
        if self.options.extenders_post_bindings:
            self._bind_calls[pod.uid] = BindByExtender(pod, node_name, request)
            return
        answer = self._transport([request])[0]
        done = answer.error is None and answer.status == 200
        if done and self.scheduler.extender_has_bound(pod.uid, answer):
            self.world.bind(pod.namespace, pod.name, pod.uid, node_name)
            self._deliver()
        self._perform(self.scheduler.handle(events.ExtenderBindAnswered(pod.uid, answer)))

    def _patch_status(self, action: PatchPodStatus) -> None:
        pod = self.world.live(action.pod)
        if pod is None:
            return
        if action.condition is not None:
            self._note_failure(
                pod.uid, f"{action.condition.get('reason')}: {action.condition.get('message')}"
            )
        patch_pod_status(self.world, pod, action)

    def _evict_beside(self, uid: str, evictions: tuple[EvictPod, ...], error: str | None) -> None:
        """Delete victims one after the other; the preemptor is held until the last one's deletion is asked for."""
        for place, eviction in enumerate(evictions if error is None else (), 1):
            evict(self.world, eviction)
            if place < len(evictions):
                self._deliver()
        self._perform(self.scheduler.handle(events.PreemptionAnswered(uid, error)))
        self._deliver()

    def _move_clock(self, at_ns: int) -> None:
        self.clock.move_to(at_ns)
        self._perform(self.scheduler.handle(events.TimeReached()))

    # ---- what is left when idle

    def _has_significant_timer(self) -> bool:
        """Whether time alone brings anything but leftovers (`run_until_idle` says which those are)."""
        if self.timers.any_awaited:
            return True
        scheduler = self.scheduler
        cache = scheduler.cache
        may_expire = cache.assumed_pod_ttl_ns and not self.options.extenders_post_bindings
        if may_expire and any(item.deadline_ns is not None for item in cache.assumed.values()):
            return True
        if scheduler.is_any_past_permit:
            return True
        pods = (*scheduler.queue.backoff_pods(), *scheduler.queue.error_backoff_pods())
        return any(not self._is_settled(info.pod.uid) for info in pods)

    def _note_failure(self, uid: str, said: str) -> None:
        """Remember how an attempt failed; a second time alike with nothing in between settles it."""
        changes = self.world.changes
        if self._last_failures.get(uid) == (said, changes):
            self._settled_failures[uid] = changes
        else:
            self._settled_failures.pop(uid, None)
        self._last_failures[uid] = (said, changes)

    def _report(self, cycles: int, stop: str) -> RunReport:
        self._settle_all()
        if stop == "cycle" and self._bind_calls:
            stop = "call"
        return RunReport(cycles, stop, self.now_ns, self.next_deadline())

    def validate(self) -> None:
        """Check the invariants of the queue, the cache and the index of pods.

        Raises
        ------
        AssertionError
        """
        self.scheduler.queue.validate()
        self.scheduler.cache.validate()
        if not self.world.noticed:
            self.control_plane.context.pods.validate(stored.typed for stored in self.world.all("Pod"))

    # ---- checkpoints

    def checkpoint(self) -> dict[str, Any]:
        """Everything needed to go on elsewhere, as JSON-able data."""
        self._settle_all()
        return checkpoint_of(self)

    def acting(
        self, *, transport: Transport = no_transport, plugins: Registry | Iterable[type[Plugin]] = ()
    ) -> Simulation:
        """A copy that goes on from here and decides, also where this one mirrors a live cluster.

        Of such a one no controller acts in the copy: of workloads it has no more than what they select.
        """
        document = self.checkpoint()
        if self.options.mirrors:
            document["options"] |= {"mirrors": False, "controllers": False}
        return Simulation.restore(document, transport=transport, plugins=plugins)

    @classmethod
    def restore(
        cls,
        document: Mapping[str, Any],
        *,
        transport: Transport = no_transport,
        plugins: Registry | Iterable[type[Plugin]] = (),
        plugin_limit: Limit | None = None,
    ) -> Simulation:
        """Go on from a checkpoint; `plugins` must hold those it ran with.

        Raises
        ------
        ValueError
            When the checkpoint is of another version.
        """
        check_version(document)
        options = dict(document["options"])
        options["faults"] = FaultOptions(**options["faults"])
        result = cls(
            document["config"],
            start_ns=document["nowNs"],
            options=SimulationOptions(**options),
            transport=transport,
            plugins=plugins,
            plugin_limit=plugin_limit,
            release=release_from(document.get("release")),
        )
        take_over(result, document)
        return result


_WRITERS = {"ResourceClaim": "dynamic resources", "Pod": "dynamic resources"}
"""Who writes before a binding; all else is written by volume binding."""


# --- What the scheduler writes into statuses, as the API server takes it: conditions, nominations, evictions.


def patch_pod_status(world: World, pod: Pod, action: PatchPodStatus) -> None:
    """Write a condition, a nomination or both into the status of a pod that is there."""
    status = dict(pod.manifest.get("status") or {})
    reason = "status"
    if action.condition is not None:
        status = world.status_with(pod.manifest, action.condition)
    if action.nominated_node_name is not None and action.nominated_node_name != pod.nominated_node_name:
        status["nominatedNodeName"] = action.nominated_node_name
        if not action.nominated_node_name:
            del status["nominatedNodeName"]
        reason = "nominated"
    status.setdefault("phase", "Pending")
    if status != pod.manifest.get("status"):
        world.patch_status(pod, status, reason, counts=reason == "nominated")


def patch_group_status(world: World, group: PodGroup, condition: Mapping[str, Any]) -> None:
    """Write a condition into the status of a pod group, unless another has taken its name."""
    stored = world.get("PodGroup", group.namespace, group.name)
    if stored is None or stored.typed.uid != group.uid:
        return
    generation = stored.manifest["metadata"].get("generation")
    seen = {"observedGeneration": generation} if generation else {}
    status = world.status_with(stored.manifest, {**condition, **seen})
    world.put({**stored.manifest, "status": status}, "status")


def evict(world: World, eviction: EvictPod) -> None:
    """Delete a victim, with its condition and its event; one that ends already is left alone."""
    pod = eviction.pod
    live = world.live(pod)
    if live is None or live.is_terminating:
        return
    status = world.status_with(live.manifest, eviction.condition)
    delete_pod(world, world.patch_status(live, status, "preempted"), None, "preempted")
    words = ("Normal", "Preempted", "Preempting", eviction.message, pod.scheduler_name)
    world.record_event(pod.manifest, *words, related=eviction.preemptor.manifest)
