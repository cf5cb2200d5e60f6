"""One scheduling cycle, step by step in call order: which node, or why none; then the binding cycle of that node.

Source: pkg/scheduler/schedule_one.go, v1.34
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

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
from scheduler_core.cluster.node_table import Rows
from scheduler_core.cluster.nominator import Nominator
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.config.load import LoadedConfiguration
from scheduler_core.event_handlers import EventHandlers
from scheduler_core.extender.chain import (
    ExtendedAttempt,
    ExtenderChain,
    ExtenderFailure,
    bind_request,
    parse_bind_answer,
)
from scheduler_core.extender.transport import ExtenderAnswer, ExtenderCall, no_transport
from scheduler_core.framework import record
from scheduler_core.framework.attempt import NOT_EVALUATED, Attempt
from scheduler_core.framework.cluster_event import ASSIGNED_POD_DELETE
from scheduler_core.framework.failure import PluginFailure
from scheduler_core.framework.interface import CycleState, PermitPlugin, PostFilterResult
from scheduler_core.framework.runtime import Framework
from scheduler_core.framework.status import Code, Status
from scheduler_core.framework.waiting_pods import WaitingPod, WaitingPods
from scheduler_core.objects.pod import Pod
from scheduler_core.queue.queued_pod_info import Lane, QueuedPodInfo, QueueMove
from scheduler_core.queue.scheduling_queue import SchedulingQueue
from scheduler_core.randomness import Randomness

MIN_FEASIBLE_NODES = 100
MIN_FEASIBLE_PERCENTAGE = 5
TIE_STREAM = "selectHost"
_NO_ROWS: Rows = np.zeros(0, np.intp)


@dataclass(frozen=True, slots=True)
class AlgorithmOptions:
    """What is not a profile's business.

    Attributes
    ----------
    percentage_of_nodes_to_score : int
        The configuration's global value; 0 means not set.
    adaptive_sampling : bool
        Whether "not set" means upstream's adaptive share of the nodes. By default every node is evaluated.
    first_of_ties : bool
        Take the first name among the best instead of drawing one: for comparing with recordings.
    """

    percentage_of_nodes_to_score: int = 0
    adaptive_sampling: bool = False
    first_of_ties: bool = False


@dataclass(frozen=True, slots=True)
class Placement:
    """What is known of a cycle that placed its pod: enough to replay it without deciding it.

    Attributes
    ----------
    uid : str
        The pod's.
    node_name : str
    n_evaluated, n_feasible : int
    n_tied : int
        Nodes that shared the best total; below two there was no draw.
    best_total : int or None
    """

    uid: str
    node_name: str
    n_evaluated: int
    n_feasible: int
    n_tied: int
    best_total: int | None


Recorded = Callable[[int], Placement | None]
"""What is known of a cycle by its number; None where nothing is, or it placed no pod."""


@dataclass(slots=True)
class Decision:
    """The outcome of a scheduling cycle.

    Attributes
    ----------
    node_name : str or None
        The node chosen.
    tied_rows : ndarray of intp
        Rows with the best total, ascending, when there were at least two feasible ones.
    best_total : int or None
    error : str or None
        The cycle ended in this error: no fit error, no preemption.
    failed_point : str
        The extension point that ended the cycle without a node; empty with one.
    failed_plugin : str
        The plugin that raised, when one did.
    fit_error : str or None
        Nothing is feasible: Kubernetes' message without PostFilter's part.
    post_filter : PostFilterResult or None
    n_evaluated : int
        Nodes that were looked at.
    extender_calls : list of ExtenderCall
        Of filter and prioritize, in the order made.
    extender_scores : list of (str, dict of str to int)
        What each extender added to the totals, by node name.
    known : Placement or None
        It was not decided now: `attempt` asked nothing, and `tied_rows` are not told.
    """

    attempt: Attempt
    node_name: str | None = None
    tied_rows: Rows = field(default_factory=lambda: _NO_ROWS)
    best_total: int | None = None
    error: str | None = None
    failed_point: str = ""
    failed_plugin: str = ""
    fit_error: str | None = None
    post_filter: PostFilterResult | None = None
    n_evaluated: int = 0
    extender_calls: list[ExtenderCall] = field(default_factory=list)
    extender_scores: list[tuple[str, dict[str, int]]] = field(default_factory=list)
    known: Placement | None = None

    @property
    def n_feasible(self) -> int:
        return len(self.attempt.feasible) if self.known is None else self.known.n_feasible

    @property
    def n_tied(self) -> int:
        """Nodes with the best total, where there were at least two feasible ones."""
        return len(self.tied_rows) if self.known is None else self.known.n_tied

    @property
    def ties(self) -> tuple[str, ...]:
        """Names of the nodes with the best total, in evaluation order."""
        attempt = self.attempt
        return tuple(attempt.name_of(row) for row in attempt.in_order(self.tied_rows).tolist())

    @property
    def message(self) -> str | None:
        """The whole FailedScheduling text."""
        if self.fit_error is None:
            return self.error
        said = self.post_filter.status.message if self.post_filter is not None else ""
        return with_post_filter(self.fit_error, said)


class Algorithm:
    """Finds a node for one pod at a time.

    Parameters
    ----------
    options : AlgorithmOptions
    randomness : Randomness
        Ties are drawn from its stream `selectHost`.
    extenders : ExtenderChain, optional
    """

    def __init__(
        self, options: AlgorithmOptions, randomness: Randomness, extenders: ExtenderChain | None = None
    ) -> None:
        self.options = options
        self.randomness = randomness
        self.extenders = extenders or ExtenderChain((), no_transport)
        self.next_start_node_index = 0
        self.make_attempt: Callable[[Framework, Pod, Snapshot], Attempt] = Attempt
        """To time extension points, a watched one is put in its place."""

    def schedule(
        self, framework: Framework, pod: Pod, snapshot: Snapshot, *, with_post_filter: bool = True
    ) -> Decision:
        """Decide about one pod; nothing in the cluster changes."""
        decision = Decision(self.make_attempt(framework, pod, snapshot))
        if not len(snapshot.order):
            decision.error, decision.failed_point = NO_NODES, "PreFilter"
            return decision
        extended = ExtendedAttempt(self.extenders, decision.attempt)
        try:
            with extended:
                self._find_nodes_that_fit(decision, extended)
                if decision.n_feasible:
                    self._choose(decision, extended)
                    return decision
            rejected = not decision.attempt.pre_filter_status.is_success
            decision.failed_point = "PreFilter" if rejected else "Filter"
            decision.fit_error = fit_error(decision.attempt)
            if framework.post_filter and with_post_filter:
                decision.post_filter = framework.run_post_filter(decision.attempt)
        except PluginFailure as failure:
            decision.error = str(failure)
            decision.failed_point, decision.failed_plugin = failure.point, failure.plugin
        except ExtenderFailure as failure:
            decision.error, decision.failed_point = str(failure), "Filter"
        finally:
            decision.extender_calls = extended.calls
            if decision.post_filter is not None:
                decision.extender_calls.extend(decision.post_filter.extender_calls)
            decision.extender_scores = extended.scores
        return decision

    def placed(self, framework: Framework, pod: Pod, snapshot: Snapshot, known: Placement) -> Decision | None:
        """The decision of a cycle that is known, as if it had been made now; None where it has to be made.

        What comes after the choice (Reserve, Permit, PreBind) may need what plugins found out before it, a nominated
        node is tried first, and extenders have answered: such cycles are decided.
        """
        row = snapshot.nodes.row_of.get(known.node_name, -1)
        if (
            known.uid != pod.uid
            or row < 0
            or not snapshot.nodes.alive[row]
            or pod.nominated_node_name
            or self.extenders
            or not framework.needs_no_attempt(pod, snapshot)
        ):
            return None
        if known.n_tied > 1 and not self.options.first_of_ties:
            self.randomness.stream(TIE_STREAM).skip()
        self.next_start_node_index = (self.next_start_node_index + known.n_evaluated) % len(snapshot.order)
        return Decision(
            Attempt(framework, pod, snapshot),
            node_name=known.node_name,
            best_total=known.best_total,
            n_evaluated=known.n_evaluated,
            known=known,
        )

    def failed(self, framework: Framework, pod: Pod, snapshot: Snapshot, plugin: str, error: str) -> Decision:
        """A cycle that ends before it began: the queue could not tell where the pod belongs."""
        attempt = Attempt(framework, pod, snapshot)
        return Decision(attempt, error=error, failed_point="QueueSort", failed_plugin=plugin)

    # ---- which nodes

    def _find_nodes_that_fit(self, decision: Decision, extended: ExtendedAttempt) -> None:
        attempt, snapshot = decision.attempt, decision.attempt.snapshot
        if not attempt.run_pre_filter().is_success:
            return
        # A nominated pod is tried on its node alone first: room was made for it there.
        name = attempt.pod.nominated_node_name
        row = snapshot.nodes.row_of.get(name, -1) if name else -1
        if row >= 0 and snapshot.nodes.alive[row]:
            try:
                if attempt.filter_nominated_node(row):
                    extended.filter()
                if len(attempt.feasible):
                    decision.n_evaluated = 1
                    return
            except (PluginFailure, ExtenderFailure):
                # Upstream logs what evaluating the nominated node raised and looks at all nodes.
                attempt.explicit.clear()
            else:
                attempt.look_at_all_nodes()
            extended.start_over()
        n_all = len(snapshot.order) if attempt.node_names is None else len(attempt.node_names)
        limit = self._n_feasible_to_find(attempt.framework, n_all)
        attempt.run_filter(limit, self.next_start_node_index)
        decision.n_evaluated = len(attempt.rows)
        if limit is not None and limit < n_all:
            decision.n_evaluated = int((attempt.stop != NOT_EVALUATED).sum())
        n_nodes = len(snapshot.order)
        self.next_start_node_index = (self.next_start_node_index + decision.n_evaluated) % n_nodes
        extended.filter()

    def _n_feasible_to_find(self, framework: Framework, n_nodes: int) -> int | None:
        """How many feasible nodes are enough; None for all. Source: schedule_one.go numFeasibleNodesToFind."""
        percentage = framework.percentage_of_nodes_to_score
        if percentage is None:
            percentage = self.options.percentage_of_nodes_to_score
        if percentage == 0:
            if not self.options.adaptive_sampling:
                return None
            percentage = max(50 - n_nodes // 125, MIN_FEASIBLE_PERCENTAGE)
        if n_nodes < MIN_FEASIBLE_NODES or percentage >= 100:
            return None
        return max(n_nodes * percentage // 100, MIN_FEASIBLE_NODES)

    # ---- which of them

    def _choose(self, decision: Decision, extended: ExtendedAttempt) -> None:
        attempt = decision.attempt
        rows = attempt.feasible
        if len(rows) == 1:
            decision.node_name = attempt.name_of(int(rows[0]))
            return
        if attempt.framework.score or self.extenders:
            attempt.run_pre_score()
            attempt.run_score()
            extended.score()
        else:
            attempt.total = np.ones(len(rows), np.int64)
        decision.best_total = int(attempt.total.max())
        decision.tied_rows = rows.take((attempt.total == decision.best_total).nonzero()[0])
        decision.node_name = attempt.name_of(self.select_host(decision.tied_rows, attempt))

    def select_host(self, tied_rows: Rows, attempt: Attempt) -> int:
        """One of the rows with the largest total, drawn by its place in evaluation order."""
        if len(tied_rows) == 1:
            return int(tied_rows[0])
        if self.options.first_of_ties:
            if attempt.guests:
                return int(min(tied_rows.tolist(), key=attempt.name_of))
            return attempt.snapshot.first_name(tied_rows)
        drawn = self.randomness.stream(TIE_STREAM).below(len(tied_rows))
        if attempt.guests:
            return int(attempt.in_order(tied_rows)[drawn])
        snapshot = attempt.snapshot
        if snapshot.rows is snapshot.order:
            return int(tied_rows[drawn])
        return int(snapshot.order[np.partition(snapshot.rank[tied_rows], drawn)[drawn]])


# --- The words Kubernetes finds for a pod that fits nowhere.


NO_NODES = "no nodes available to schedule pods"


def fit_error(attempt: Attempt) -> str:
    """`0/3 nodes are available: ...`, without what PostFilter has to add."""
    n_nodes = len(attempt.snapshot.order)
    message = f"0/{n_nodes} nodes are available:"
    if not attempt.pre_filter_status.is_success:
        words = attempt.pre_filter_status.message
        return f"{message} {words}." if words else message
    counts = attempt.reason_counts()
    n_outside = n_nodes - attempt.n_statuses
    if n_outside > 0 and attempt.node_names is not None:
        reason = attempt.absent_reason
        counts[reason] = counts.get(reason, 0) + n_outside
    if not counts:
        return message
    # Sorted as strings, counts and all: "10 ..." stands before "7 ...".
    return f"{message} {', '.join(sorted(f'{count} {reason}' for reason, count in counts.items()))}."


def with_post_filter(message: str, post_filter_message: str) -> str:
    """The text of the event and the pod's condition: the fit error, then what PostFilter said."""
    return f"{message} {post_filter_message}" if post_filter_message else message


# ---- The binding cycle: Reserve, Permit, PreBind, Bind, and what a failure undoes
# It goes on beside the next scheduling cycle: what it asks for are actions, and their answers come back as events.

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
