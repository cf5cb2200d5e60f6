"""The scheduling queue's face: which pod is next, and which event makes a pod worth another try."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from scheduler_core.clock import Clock
from scheduler_core.errors import require
from scheduler_core.framework import cluster_event
from scheduler_core.framework.status import Code
from scheduler_core.objects.pod import Pod
from scheduler_core.queue.hints import Asked, HintMap
from scheduler_core.queue.lanes import SECOND_NS, ActiveQueue, BackoffQueue, SortKey, UnschedulablePods
from scheduler_core.queue.queued_pod_info import NO_PLUGINS, Lane, QueuedPodInfo, QueueMove, priority_sort_key

FLUSH_INTERVAL_NS = 30 * SECOND_NS
"""How often pods that waited too long among the unschedulable ones are looked for."""


MOST_SKIPS = 8
"""Kinds of refused events that the observer is told of, a pod and stay."""


class Rejection(NamedTuple):
    """A PreEnqueue plugin holds a pod back."""

    reason: str
    code: Code = Code.UnschedulableAndUnresolvable


PreEnqueueCheck = Callable[[Pod], Rejection | None]
Observer = Callable[[QueueMove], None]


class _Verdict(NamedTuple):
    """What the hints make of an event for one pod, and the answer that decided."""

    strategy: int
    cause: str = ""
    plugin: str = ""
    hint: str = ""
    reason: str = ""


_POD_ADD = cluster_event.UNSCHEDULED_POD_ADD.label
_POD_UPDATE = cluster_event.UNSCHEDULED_POD_UPDATE.label
_POD_DELETE = cluster_event.UNSCHEDULED_POD_DELETE.label
_ACTIVATE = cluster_event.FORCE_ACTIVATE.label

_SKIP, _AFTER_BACKOFF, _IMMEDIATELY = range(3)
_SKIPPED = _Verdict(_SKIP)
_WORTH_A_TRY = _Verdict(_AFTER_BACKOFF)


class SchedulingQueue:
    """Every pending pod, each in exactly one lane.

    activeQ (may be tried now), backoffQ and errorBackoffQ (must let time pass), unschedulable (the cluster
    must change first; gated pods among them), and in flight (popped, not yet `done` or given back).

    Parameters
    ----------
    clock : Clock
        Read, never moved.
    hints : mapping of profile name to HintMap
        The hint table of every profile (a pod's `scheduler_name`).
    pre_enqueue : mapping of profile name to sequence of (plugin name, check)
        Checks that can hold a pod back, in configured order; None lets it pass.
    sort_key : callable
        Order of the active queue, from the profile's QueueSort plugin.
    initial_backoff_ns, max_backoff_ns : int
        Backoff after the first failure, and its bound; a bound of 0 switches backoff off.
    max_in_unschedulable_ns : int
        A pod left among the unschedulable ones longer than this is tried again.
    pop_from_backoff : bool
        Whether an empty active queue takes pods early from backoffQ (v1.34's default).
    is_group_member : callable
        Whether a pod is scheduled with its group: it comes back by backoff alone, whatever happened meanwhile.
    observer : callable, optional
        Is told every move, and of each stay among the unschedulable pods the first `MOST_SKIPS` kinds of events that
        hints refused.

    Source: pkg/scheduler/backend/queue/scheduling_queue.go, v1.34
    Differs: nominations live in the nominator; metrics are the observer's business; `pop` never blocks.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        hints: Mapping[str, HintMap],
        pre_enqueue: Mapping[str, Sequence[tuple[str, PreEnqueueCheck]]] | None = None,
        sort_key: SortKey = priority_sort_key,
        initial_backoff_ns: int = SECOND_NS,
        max_backoff_ns: int = 10 * SECOND_NS,
        max_in_unschedulable_ns: int = 300 * SECOND_NS,
        pop_from_backoff: bool = True,
        is_group_member: Callable[[Pod], bool] = lambda pod: False,
        observer: Observer | None = None,
    ) -> None:
        self._clock = clock
        self._hints = dict(hints)
        self._pre_enqueue = {profile: tuple(checks) for profile, checks in (pre_enqueue or {}).items()}
        self._active = ActiveQueue(sort_key)
        self._backoff = BackoffQueue(initial_backoff_ns, max_backoff_ns, sort_key)
        self._unschedulable = UnschedulablePods()
        self._infos: dict[str, QueuedPodInfo] = {}
        self._max_in_unschedulable_ns = max_in_unschedulable_ns
        self._pop_from_backoff = pop_from_backoff
        self._is_group_member = is_group_member
        self._n_entered = 0
        self._flush_origin_ns = clock.now_ns
        self._flushed_ns = clock.now_ns - 1
        self._concerned: dict[tuple[str, int], tuple[str, ...]] = {}
        self.observer = observer

    # --- what the scheduler asks for ------------------------------------------------------------------------

    def pop(self) -> QueuedPodInfo | None:
        """The pod to try next, from now on in flight; None when the caller would have to wait.

        An empty active queue is helped out by backoffQ, never by errorBackoffQ.
        """
        active = self._active
        while True:
            info = active.take()
            label = ""
            if info is None and self._pop_from_backoff:
                info = self._backoff.pop()
                label = cluster_event.POP_FROM_BACKOFF
            if info is None:
                return None
            if self._started(info, label or "Pop"):
                return info

    def pop_member(self, pod: Pod) -> QueuedPodInfo | None:
        """Another pod of the group whose member was popped; None when it is gated, or not here.

        Source: scheduling_queue.go PopSpecificPod, v1.36
        """
        info = self._infos.get(pod.key)
        if info is None:
            return None
        if info.lane is not Lane.ACTIVE:
            self._activate(info)
        if info.lane is not Lane.ACTIVE:
            return None
        self._active.remove(info.key)
        return info if self._started(info, "Pop") else None

    def _started(self, info: QueuedPodInfo, label: str) -> bool:
        """Begin the attempt of a pod that left its heap; False when another version of it is in flight."""
        del self._infos[info.key]
        source = info.lane
        if not self._active.start(info):
            info.lane = Lane.GONE
            return False
        info.lane = Lane.IN_FLIGHT
        if info.initial_attempt_timestamp_ns is None:
            info.initial_attempt_timestamp_ns = self._clock.now_ns
        info.backoff_expiration_ns = None
        if info.unschedulable_plugins or info.pending_plugins:
            info.unschedulable_plugins = info.pending_plugins = NO_PLUGINS
        info.gating_plugin = info.gating_reason = ""
        if self.observer is not None:
            self._tell(info, source, label, _WORTH_A_TRY)
        return True

    def done(self, uid: str) -> None:
        """The last attempt of this pod is over: it is bound, or gone."""
        self._active.done(uid)

    def add_unschedulable(self, info: QueuedPodInfo) -> Lane:
        """Give back a popped pod that found no place; ends its attempt.

        The caller has put the latest version into `info.pod` and the rejecting plugins into
        `info.unschedulable_plugins` and `info.pending_plugins`; none at all means it failed by an error.
        Events that happened during the attempt are weighed now. If the pod is in the queue already (it was
        deleted and created again meanwhile), that one stays and this one is dropped.

        Returns
        -------
        Lane
            Where the pod is now.
        """
        present = self._infos.get(info.key)
        if present is not None:
            self._active.done(info.pod.uid)
            info.lane = Lane.GONE
            return present.lane
        if info.unschedulable_plugins or info.pending_plugins:
            info.unschedulable_count += 1
            info.consecutive_errors_count = 0
        else:
            info.consecutive_errors_count += 1
        info.timestamp_ns = self._clock.now_ns
        info.backoff_expiration_ns = None
        info.lane = Lane.NEW
        verdict = self._weigh_missed_events(info)
        lane = self._requeue(info, verdict, cluster_event.SCHEDULE_ATTEMPT_FAILURE, Lane.IN_FLIGHT)
        self._active.done(info.pod.uid)
        return lane

    # --- what happens to pods -------------------------------------------------------------------------------

    def add(self, pod: Pod) -> Lane:
        """A new pending pod."""
        info = QueuedPodInfo(pod, pod.key, self._clock.now_ns)
        self._to_active(info, _POD_ADD, _WORTH_A_TRY)
        return self.lane_of(info.key)

    def update(self, old: Pod | None, new: Pod) -> Lane:
        """A pending pod changed.

        In flight the change is kept as an event for when the pod comes back; in activeQ and backoffQ it just
        replaces the old version; among the unschedulable pods the hints decide; elsewhere it is a new pod.
        """
        events = (
            cluster_event.pod_update_events(old, new)
            if old is not None
            else [cluster_event.UNSCHEDULED_POD_UPDATE]
        )
        if self._active.is_in_flight(new.uid):
            for event in events:
                self._active.add_event(event, old, new)
            return Lane.IN_FLIGHT
        info = self._infos.get(new.key)
        if info is None or (old is None and info.lane is not Lane.UNSCHEDULABLE):
            info = QueuedPodInfo(new, new.key, self._clock.now_ns)
            self._to_active(info, _POD_UPDATE, _WORTH_A_TRY)
            return self.lane_of(info.key)
        if info.lane is Lane.ACTIVE:
            info.pod = new
            self._active.add(info)
            return Lane.ACTIVE
        if info.lane is not Lane.UNSCHEDULABLE:
            self._backoff.update(info, new)
            return info.lane
        info.pod = new
        for event in events:
            verdict = self._weigh(info, event, old, new)
            if self._requeue(info, verdict, event.label, Lane.UNSCHEDULABLE) is not Lane.UNSCHEDULABLE:
                break
        return info.lane

    def delete(self, pod: Pod) -> None:
        """A pending pod is gone; one in flight stays there until `done`."""
        info = self._infos.get(pod.key)
        if info is None:
            return
        source = info.lane
        self._take_out(info)
        info.lane = Lane.GONE
        if self.observer is not None:
            self._tell(info, source, _POD_DELETE, _WORTH_A_TRY)

    def activate(self, pods: Iterable[Pod]) -> bool:
        """Bring pods to the active queue, whatever they wait for, gates excepted.

        A pod in flight comes back sooner: the activation is kept as an event of its own. Unknown pods are
        ignored.

        Returns
        -------
        bool
            Whether any pod got there.
        """
        activated = False
        for pod in pods:
            info = self._infos.get(pod.key)
            if info is not None and info.lane is not Lane.ACTIVE and self._activate(info):
                activated = True
                continue
            if self._active.is_in_flight(pod.uid):
                self._active.add_event(cluster_event.FORCE_ACTIVATE, None, pod)
        return activated

    def _activate(self, info: QueuedPodInfo) -> bool:
        passed = self._pop_from_backoff and info.lane is not Lane.UNSCHEDULABLE
        return self._to_active(info, _ACTIVATE, _WORTH_A_TRY, skip_pre_enqueue=passed)

    def move_all(
        self,
        event: cluster_event.ClusterEvent,
        old: Any = None,
        new: Any = None,
        *,
        pre_check: Callable[[Pod], bool] | None = None,
    ) -> int:
        """Something happened: move the unschedulable pods it may help.

        Only pods whose rejecting plugins registered for the event are looked at. Pods in flight will weigh
        the event when they come back.

        Parameters
        ----------
        event : ClusterEvent
            A specific event (`cluster_event.pod_update_events` and `node_update_events` derive them).
        old, new : object or None
            The object before and after.
        pre_check : callable, optional
            Pods it refuses are passed over.

        Returns
        -------
        int
            Number of pods that left the unschedulable lane.
        """
        plugins = self._who_cares(event)
        if not plugins and not event.is_wildcard:
            return 0
        if event.is_wildcard:
            pods = self._unschedulable.all_but_gated_by_others(plugins)
        else:
            pods = self._unschedulable.rejected_by(plugins)
        if pre_check is not None:
            pods = [info for info in pods if pre_check(info.pod)]
        return self._move(pods, event, old, new)

    # --- what time brings -----------------------------------------------------------------------------------

    def flush_backoff(self) -> int:
        """Move pods whose backoff is over to the active queue; upstream does so at every whole second."""
        completed = self._backoff.pop_completed(self._clock.now_ns)
        for info in completed:
            self._to_active(
                info, cluster_event.BACKOFF_COMPLETE, _WORTH_A_TRY, skip_pre_enqueue=self._pop_from_backoff
            )
        return len(completed)

    def flush_unschedulable(self) -> int:
        """Move pods that waited too long among the unschedulable ones; upstream does so every 30 seconds.

        A gated pod that waited too long does not move, but it sets off the event that pods in flight will
        weigh when they come back, as upstream.
        """
        now_ns = self._clock.now_ns
        self._flushed_ns = now_ns
        before_ns = now_ns - self._max_in_unschedulable_ns
        late = self._unschedulable.waiting_since(before_ns)
        if not late:
            oldest_gated_ns = self._unschedulable.oldest_ns(gated=True)
            if oldest_gated_ns is None or oldest_gated_ns >= before_ns:
                return 0
        return self._move(late, cluster_event.UNSCHEDULABLE_TIMEOUT, None, None)

    def flush_due(self) -> int:
        """Run the flushes whose time has come; call it when the clock reaches `next_deadline_ns`.

        Returns
        -------
        int
            Number of pods that moved.
        """
        now_ns = self._clock.now_ns
        n_moved = 0
        due_ns = self.next_unschedulable_flush_ns()
        if due_ns is not None and due_ns <= now_ns:
            n_moved += self.flush_unschedulable()
        due_ns = self.next_backoff_flush_ns()
        if due_ns is not None and due_ns <= now_ns:
            n_moved += self.flush_backoff()
        return n_moved

    def next_backoff_flush_ns(self) -> int | None:
        """When the next pod leaves its backoff; None when none waits."""
        return self._backoff.next_completion_ns()

    def next_unschedulable_flush_ns(self) -> int | None:
        """The first 30-second tick at which the flush of unschedulable pods does something; None if none."""
        tick_ns = None
        oldest_ns = self._unschedulable.oldest_ns(gated=False)
        if oldest_ns is not None:
            tick_ns = self._tick_after(oldest_ns + self._max_in_unschedulable_ns)
        # Only pods that are in flight at a tick notice; ticks that passed unnoticed are not made up for.
        oldest_ns = self._unschedulable.oldest_ns(gated=True) if self._active.n_in_flight else None
        if oldest_ns is not None:
            since_ns = max(
                oldest_ns + self._max_in_unschedulable_ns, self._flushed_ns, self._clock.now_ns - 1
            )
            gated_tick_ns = self._tick_after(since_ns)
            tick_ns = gated_tick_ns if tick_ns is None else min(tick_ns, gated_tick_ns)
        return tick_ns

    def _tick_after(self, at_ns: int) -> int:
        """The first tick of the 30-second flush later than `at_ns`."""
        n_ticks = max((at_ns - self._flush_origin_ns) // FLUSH_INTERVAL_NS + 1, 0)
        return self._flush_origin_ns + n_ticks * FLUSH_INTERVAL_NS

    def next_deadline_ns(self) -> int | None:
        """The next moment at which time alone moves a pod; None when nothing is pending."""
        backoff_ns, unschedulable_ns = self.next_backoff_flush_ns(), self.next_unschedulable_flush_ns()
        if backoff_ns is None or unschedulable_ns is None:
            return unschedulable_ns if backoff_ns is None else backoff_ns
        return min(backoff_ns, unschedulable_ns)

    # --- looking in -----------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._infos)

    @property
    def cycle(self) -> int:
        """How many attempts were started."""
        return self._active.cycle

    @property
    def n_active(self) -> int:
        return len(self._active)

    @property
    def n_gated(self) -> int:
        return self._unschedulable.n_gated

    def can_pop(self) -> bool:
        """Whether `pop` would give a pod (unless that one is in flight already)."""
        if len(self._active):
            return True
        return self._pop_from_backoff and self._backoff.can_pop

    def get(self, key: str) -> QueuedPodInfo | None:
        """The pod called `namespace/name`, if it waits here."""
        return self._infos.get(key)

    def lane_of(self, key: str) -> Lane:
        info = self._infos.get(key)
        return info.lane if info is not None else Lane.NEW

    def is_in_flight(self, uid: str) -> bool:
        return self._active.is_in_flight(uid)

    def expiration_ns(self, info: QueuedPodInfo) -> int | None:
        """The whole second in which the pod's backoff ends; None when it owes none."""
        return self._backoff.expiration_ns(info)

    def active_pods(self) -> list[QueuedPodInfo]:
        """activeQ in the order of popping."""
        return list(self._active.in_order())

    def backoff_pods(self) -> list[QueuedPodInfo]:
        """backoffQ in the order of popping."""
        return list(self._backoff.backoff_in_order())

    def error_backoff_pods(self) -> list[QueuedPodInfo]:
        """errorBackoffQ in the order of its flush."""
        return list(self._backoff.error_backoff_in_order())

    def unschedulable_pods(self) -> list[QueuedPodInfo]:
        """Unschedulable pods, gated ones included, in the order of their places."""
        return list(self._unschedulable)

    def in_flight_pods(self) -> list[Pod]:
        """Pods under way, oldest attempt first, in the version that was popped."""
        return [pod for pod, _ in self._active.in_flight()]

    def validate(self) -> None:
        """Check the invariants of the queue: every pod waits in the one lane it says it is in, once.

        Raises
        ------
        AssertionError
        """
        lanes = {
            Lane.ACTIVE: self.active_pods(),
            Lane.BACKOFF: self.backoff_pods(),
            Lane.ERROR_BACKOFF: self.error_backoff_pods(),
            Lane.UNSCHEDULABLE: self.unschedulable_pods(),
        }
        waiting = {info.key: info for pods in lanes.values() for info in pods}
        require(
            self,
            every_pod_waits_once=waiting == self._infos and sum(map(len, lanes.values())) == len(waiting),
            pods_know_their_lane=all(info.lane is lane for lane, pods in lanes.items() for info in pods),
        )
        self._unschedulable.validate()

    # --- inside ---------------------------------------------------------------------------------------------

    def _who_cares(self, event: cluster_event.ClusterEvent) -> tuple[str, ...]:
        """Plugins of any profile that registered for the event."""
        cache_key = (event.resource, int(event.action))
        known = self._concerned.get(cache_key)
        if known is None:
            plugins: dict[str, None] = {}
            for hint_map in self._hints.values():
                for plugin, _ in hint_map.interested(event):
                    plugins[plugin] = None
            known = self._concerned[cache_key] = tuple(plugins)
        return known

    def _move(self, pods: list[QueuedPodInfo], event: cluster_event.ClusterEvent, old: Any, new: Any) -> int:
        """Weigh an event for unschedulable pods and move those it helps; keep it for pods in flight."""
        n_moved = 0
        label = event.label if pods else ""
        for info in pods:
            verdict = self._weigh(info, event, old, new)
            if verdict.strategy == _SKIP:
                continue
            if self._requeue(info, verdict, label, Lane.UNSCHEDULABLE) is not Lane.UNSCHEDULABLE:
                n_moved += 1
        self._active.add_event(event, old, new)
        return n_moved

    def _weigh_missed_events(self, info: QueuedPodInfo) -> _Verdict:
        """What the events during its attempt mean for a pod that comes back.

        Source: scheduling_queue.go determineSchedulingHintForInFlightPod, v1.34
        """
        if not info.unschedulable_plugins and not info.pending_plugins:
            return _WORTH_A_TRY
        if self._is_group_member(info.pod):
            return _WORTH_A_TRY
        hint_map = self._hints.get(info.pod.scheduler_name)

        def concerns(event: cluster_event.ClusterEvent) -> bool:
            if hint_map is None or event.is_wildcard:
                return True
            plugins = [plugin for plugin, _ in hint_map.interested(event)]
            return not info.unschedulable_plugins.isdisjoint(plugins) or not info.pending_plugins.isdisjoint(
                plugins
            )

        events = self._active.events_since_start(info.pod.uid, concerns)
        if events is None:
            return _WORTH_A_TRY
        best = _SKIPPED
        for _, event, old, new in events:
            verdict = self._weigh(info, event, old, new)
            if verdict.strategy == _IMMEDIATELY:
                return verdict
            if verdict.strategy == _AFTER_BACKOFF:
                best = verdict
                if not info.pending_plugins:
                    return verdict
        return best

    def _weigh(self, info: QueuedPodInfo, event: cluster_event.ClusterEvent, old: Any, new: Any) -> _Verdict:
        """Ask the plugins that rejected the pod.

        Source: scheduling_queue.go isPodWorthRequeuing, v1.34
        """
        if not info.unschedulable_plugins and not info.pending_plugins:
            return _WORTH_A_TRY
        if event.is_wildcard:
            if new is not None and not (isinstance(new, Pod) and new.uid == info.pod.uid):
                return _SKIPPED
            return _Verdict(_AFTER_BACKOFF, event.label)
        hint_map = self._hints.get(info.pod.scheduler_name)
        if hint_map is None:
            return _WORTH_A_TRY
        best = _SKIPPED
        for asked in hint_map.interested(event):
            plugin, hint_function = asked
            is_pending = plugin in info.pending_plugins
            if not is_pending and plugin not in info.unschedulable_plugins:
                continue
            try:
                hint = hint_function(info.pod, old, new)
                queues, answer, reason = hint.queues, ("Queue" if hint.queues else "Skip"), hint.reason
            except Exception as error:  # a broken hint must not strand the pod
                queues, answer, reason = True, "error", str(error)
            if not queues:
                if id(asked) not in info.skips:
                    self._tell_skip(info, event.label, asked, reason)
                continue
            strategy = _IMMEDIATELY if is_pending else _AFTER_BACKOFF
            verdict = _Verdict(strategy, event.label, plugin, answer, reason)
            if is_pending or not info.pending_plugins:
                return verdict
            best = verdict
        return best

    def _requeue(self, info: QueuedPodInfo, verdict: _Verdict, label: str, source: Lane) -> Lane:
        """Put a pod where the verdict sends it.

        Source: scheduling_queue.go requeuePodWithQueueingStrategy, v1.34
        """
        if verdict.strategy == _SKIP:
            if info.lane is not Lane.UNSCHEDULABLE:
                self._to_unschedulable(info, label, verdict, source)
            return Lane.UNSCHEDULABLE
        if verdict.strategy == _AFTER_BACKOFF and self._backoff.is_backing_off(info, self._clock.now_ns):
            self._to_backoff(info, label, verdict, source)
        else:
            self._to_active(info, label, verdict, source=source)
        return info.lane

    def _to_active(
        self,
        info: QueuedPodInfo,
        label: str,
        verdict: _Verdict,
        *,
        skip_pre_enqueue: bool = False,
        source: Lane | None = None,
    ) -> bool:
        """Source: scheduling_queue.go moveToActiveQ, v1.34."""
        source = info.lane if source is None else source
        if not skip_pre_enqueue:
            self.run_pre_enqueue(info)
        if info.gating_plugin:
            if info.key not in self._infos:
                self._to_unschedulable(info, label, verdict, source)
            elif info.lane is Lane.UNSCHEDULABLE:
                self._unschedulable.add(info)
            elif info.lane in (Lane.BACKOFF, Lane.ERROR_BACKOFF):
                # Only a flush or an activation without popping from backoff gets here: the pod left its heap.
                self._take_out(info)
                self._to_unschedulable(info, label, verdict, source)
            return False
        if info.initial_attempt_timestamp_ns is None:
            info.initial_attempt_timestamp_ns = self._clock.now_ns
            if self._is_group_member(info.pod):
                self._n_entered += 1
                info.first_entry = self._n_entered
        present = self._infos.get(info.key)
        if present is not None:
            self._take_out(present)
        info.lane = Lane.ACTIVE
        self._infos[info.key] = info
        self._active.add(info)
        self._entered(info, source, label, verdict)
        return True

    def _to_backoff(self, info: QueuedPodInfo, label: str, verdict: _Verdict, source: Lane) -> None:
        """Source: scheduling_queue.go moveToBackoffQ, v1.34."""
        if self._pop_from_backoff:
            self.run_pre_enqueue(info)
            if info.gating_plugin:
                if info.lane is Lane.UNSCHEDULABLE:
                    self._unschedulable.add(info)
                else:
                    self._to_unschedulable(info, label, verdict, source)
                return
        if info.lane is Lane.UNSCHEDULABLE:
            self._unschedulable.remove(info.key)
        info.lane = self._backoff.add(info)
        self._infos[info.key] = info
        self._entered(info, source, label, verdict)

    def _to_unschedulable(self, info: QueuedPodInfo, label: str, verdict: _Verdict, source: Lane) -> None:
        info.lane = Lane.UNSCHEDULABLE
        info.skips = ()
        self._infos[info.key] = info
        self._unschedulable.add(info)
        if info.gating_plugin:
            verdict = _Verdict(_SKIP, verdict.cause, info.gating_plugin, "Skip", info.gating_reason)
        self._entered(info, source, label, verdict)

    def _take_out(self, info: QueuedPodInfo) -> None:
        """Remove a pod from the lane it is in."""
        self._infos.pop(info.key, None)
        if info.lane is Lane.ACTIVE:
            self._active.remove(info.key)
        elif info.lane is Lane.UNSCHEDULABLE:
            self._unschedulable.remove(info.key)
        else:
            self._backoff.remove(info.key)

    def run_pre_enqueue(self, info: QueuedPodInfo) -> Rejection | None:
        """Ask the gates, the one that held the pod back last time first: the first that holds it back now.

        Source: scheduling_queue.go runPreEnqueuePlugins, v1.34
        """
        checks: Sequence[tuple[str, PreEnqueueCheck]] = self._pre_enqueue.get(info.pod.scheduler_name, ())
        gate = info.gating_plugin
        if gate:
            checks = sorted(checks, key=lambda check: check[0] != gate)
        for plugin, check in checks:
            rejection = check(info.pod)
            if rejection is not None:
                info.unschedulable_plugins |= {plugin}
                info.gating_plugin = plugin
                info.gating_reason = rejection.reason
                return rejection
        info.gating_plugin = info.gating_reason = ""
        return None

    def _entered(self, info: QueuedPodInfo, source: Lane, label: str, verdict: _Verdict) -> None:
        info.entered_by = verdict.cause or label
        info.entered_reason = verdict.reason
        if self.observer is not None:
            self._tell(info, source, label, verdict)

    def _tell_skip(self, info: QueuedPodInfo, label: str, asked: Asked, reason: str) -> None:
        """Tell a refusal once for its event and plugin: a cluster has far more of them than anybody reads."""
        if self.observer is None or info.lane is not Lane.UNSCHEDULABLE or len(info.skips) >= MOST_SKIPS:
            return
        info.skips = (*info.skips, id(asked))
        self._tell(info, info.lane, label, _Verdict(_SKIP, label, asked[0], "Skip", reason))

    def _tell(self, info: QueuedPodInfo, source: Lane, label: str, verdict: _Verdict) -> None:
        assert self.observer is not None
        _, cause, plugin, hint, reason = verdict
        move = QueueMove(
            self._clock.now_ns,
            info.key,
            info.pod.uid,
            source,
            info.lane,
            label,
            cause or label,
            plugin,
            hint,
            reason,
        )
        self.observer(move)
