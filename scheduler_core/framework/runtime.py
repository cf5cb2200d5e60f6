"""Runs a profile's plugins at each extension point that is not about many nodes, with upstream's order and rules.

`Framework` is one profile; `framework.attempt.Attempt` is one pod on its way through its filters and scores.

Source: pkg/scheduler/framework/runtime/framework.go, v1.34
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from scheduler_core.clock import Clock
from scheduler_core.cluster.cache import Cache
from scheduler_core.cluster.node_table import NodeTable
from scheduler_core.cluster.nominator import NominatedPods, Nominator
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.config.construction import ProfilePlan
from scheduler_core.config.load import LoadedConfiguration
from scheduler_core.errors import ConstructionError
from scheduler_core.framework import interface as fw
from scheduler_core.framework.answers import Answers, FilterGroup
from scheduler_core.framework.cluster_event import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    HintFunction,
    QueueingHint,
)
from scheduler_core.framework.failure import PluginFailure, guarded
from scheduler_core.framework.guard import FAILURES, GuardedOrder, guard
from scheduler_core.framework.limit import Limit, default_limit
from scheduler_core.framework.registry import Registry
from scheduler_core.framework.status import SUCCESS, Code, Status, text_problem, words_of
from scheduler_core.framework.waiting_pods import WaitingPods
from scheduler_core.objects.pod import Pod

MAX_PERMIT_WAIT_NS = 15 * 60 * 1_000_000_000
"""Source: framework.go maxTimeout, v1.34."""


def failed(error: Exception) -> Status:
    """The status of a plugin that raised. Its callers say themselves which plugin it was, and where."""
    return Status(Code.Error, (error.said if isinstance(error, PluginFailure) else words_of(error),))


def under_name(plugin: fw.Plugin, point: str, status: Status, also: Code | None = None) -> Status:
    """A status that is no success, under its plugin's name: a rejection, or `also`; all else is an error."""
    if status.is_rejection or status.code is also:
        return status.from_plugin(plugin.name)
    return Status(Code.Error, (f'running {point} plugin "{plugin.name}": {status.message}',), plugin.name)


class HintFailure(Exception):
    """A hint raised, returned nonsense or took too long: the queue tries the pod again."""


def _watched(hint: HintFunction | None, limit: Limit) -> HintFunction | None:
    """A hint from outside the tree, which fails in no other way than with `HintFailure`."""
    if hint is None:
        return None

    def watched(*args: Any) -> QueueingHint:
        try:
            said: QueueingHint = limit.call(hint, *args)
            if not isinstance(said, QueueingHint) or not isinstance(said.queues, bool):
                raise TypeError(f"the hint returned {type(said).__name__}, not QUEUE or SKIP")
            wrong = text_problem(said.reason)
            if wrong is not None:
                raise TypeError(f"the hint returned as its reason {wrong}")
            return said
        except FAILURES as error:
            raise HintFailure(words_of(error)) from error

    return watched


def _check_event(said: Any) -> None:
    if not isinstance(said, ClusterEventWithHint) or not isinstance(said.event, ClusterEvent):
        raise TypeError("it returned something else than ClusterEventWithHint")
    if not isinstance(said.event.resource, str) or not isinstance(said.event.action, ActionType):
        raise TypeError("it returned an event without a resource and an ActionType")
    if said.hint is not None and not callable(said.hint):
        raise TypeError(f"it returned {type(said.hint).__name__} as a hint")


def _made(kind: type[fw.Plugin], args: Any, handle: fw.Handle, limit: Limit) -> fw.Plugin:
    """A plugin from outside the tree, watched."""
    try:
        plugin: fw.Plugin = limit.call(kind, args, handle)
        plugin.handle = handle
        if plugin.name != kind.name:
            raise TypeError(f"it calls itself {plugin.name!r}")
    except FAILURES as error:
        raise ConstructionError(f'initializing plugin "{kind.name}": {words_of(error)}') from error
    guard(plugin, limit)
    return plugin


class Framework:
    """One profile: its plugins, in order, over one cluster.

    Parameters
    ----------
    plan : ProfilePlan
    registry : Registry
        Must know every plugin the plan names.
    handle : Handle
    nodes : NodeTable
        The cluster's nodes, for answers that are kept between cycles.
    limit : Limit, optional
        How long a call of a plugin from outside the tree may take; what this process allows by default.

    Raises
    ------
    ConstructionError
        A plugin from outside the tree cannot be made.
    """

    def __init__(
        self,
        plan: ProfilePlan,
        registry: Registry,
        handle: fw.Handle,
        nodes: NodeTable,
        limit: Limit | None = None,
    ) -> None:
        self.scheduler_name = plan.scheduler_name
        limit = default_limit() if limit is None else limit
        self._limit = limit
        self._outside = registry.outside
        self.percentage_of_nodes_to_score = plan.percentage_of_nodes_to_score
        self.handle = handle
        self.run_all_filters = plan.run_all_filters
        self.plugins: dict[str, fw.Plugin] = {
            name: registry[name](plan.args.get(name), handle)
            if name not in registry.outside
            else _made(registry[name], plan.args.get(name), handle, limit)
            for name in plan.plugin_names
        }

        def at(point: str, kind: type[Any]) -> list[Any]:
            plugins = [self.plugins[name] for name in plan.plugins[point]]
            for plugin in plugins:
                if not isinstance(plugin, kind):
                    raise TypeError(
                        f'plugin "{plugin.name}" is configured at {point} but is no {kind.__name__}'
                    )
            return plugins

        self.pre_enqueue: list[fw.PreEnqueuePlugin] = at("preEnqueue", fw.PreEnqueuePlugin)
        self.queue_sort: fw.QueueSortPlugin = at("queueSort", fw.QueueSortPlugin)[0]
        self.order = (
            GuardedOrder(self.queue_sort, limit) if self.queue_sort.name in registry.outside else None
        )
        """What keeps the queue whole under a QueueSort from outside the tree."""
        self.pre_filter: list[fw.PreFilterPlugin[Any]] = at("preFilter", fw.PreFilterPlugin)
        self.filter: list[fw.FilterPlugin[Any]] = at("filter", fw.FilterPlugin)
        self.post_filter: list[fw.PostFilterPlugin] = at("postFilter", fw.PostFilterPlugin)
        self.pre_score: list[fw.PreScorePlugin[Any]] = at("preScore", fw.PreScorePlugin)
        self.score: list[fw.ScorePlugin[Any]] = at("score", fw.ScorePlugin)
        self.weights: dict[str, int] = {plugin.name: plan.weights[plugin.name] for plugin in self.score}
        self.reserve: list[fw.ReservePlugin] = at("reserve", fw.ReservePlugin)
        self.permit: list[fw.PermitPlugin] = at("permit", fw.PermitPlugin)
        self.pre_bind: list[fw.PreBindPlugin] = at("preBind", fw.PreBindPlugin)
        self.bind: list[fw.BindPlugin] = at("bind", fw.BindPlugin)
        self.post_bind: list[fw.PostBindPlugin] = at("postBind", fw.PostBindPlugin)
        self.stateless_filters = [
            plugin
            for plugin in self.filter
            if isinstance(plugin, fw.PreFilterPlugin)
            and plugin not in self.pre_filter
            and not plugin.filter_without_state
        ]
        """Filter plugins whose PreFilter the profile disables: they fail, as upstream, for want of their state."""
        self.stateless_scores = [
            plugin
            for plugin in self.score
            if isinstance(plugin, fw.PreScorePlugin)
            and plugin not in self.pre_score
            and not plugin.score_without_state
        ]
        acting = {plugin.name for plugin in (*self.reserve, *self.permit, *self.pre_bind)}
        self._act_on_the_node: list[fw.PreFilterPlugin[Any]] = [
            plugin
            for plugin in self.plugins.values()
            if isinstance(plugin, fw.PreFilterPlugin) and plugin.name in acting
        ]
        self.answers = Answers(nodes)
        self.nominated_pods = NominatedPods(handle.nominator, nodes)
        in_order = list(enumerate(self.filter))
        self.filters = FilterGroup(in_order)
        self.spec_filters, self.usage_filters, self.cluster_filters = (
            FilterGroup([item for item in in_order if item[1].filter_reads is reads])
            for reads in (fw.Reads.SPEC, fw.Reads.USAGE, fw.Reads.CLUSTER)
        )

    @property
    def sort_key(self) -> Callable[[fw.QueuedPod], Any]:
        """Pods are popped in ascending order of this key."""
        return self.queue_sort.sort_key if self.order is None else self.order.sort_key

    def events(self) -> dict[str, Sequence[ClusterEventWithHint] | None]:
        """What each plugin says may make its pods schedulable.

        Raises
        ------
        ConstructionError
            What it says is no such list.
        """
        wanted: dict[str, Sequence[ClusterEventWithHint] | None] = {}
        for name, plugin in self.plugins.items():
            try:
                ask = plugin.events
                events = self._limit.call(ask) if name in self._outside else ask()
                if events is not None:
                    events = list(events)
                    for event in events:
                        _check_event(event)
            except FAILURES as error:
                raise ConstructionError(f'initializing plugin "{name}": events: {words_of(error)}') from error
            if events is not None and name in self._outside:
                events = [replace(one, hint=_watched(one.hint, self._limit)) for one in events]
            wanted[name] = events
        return wanted

    def needs_no_attempt(self, pod: Pod, snapshot: Snapshot) -> bool:
        """Whether a pod can be placed where it was placed before without asking the plugins for a node again.

        No plugin from outside the tree may be there, which could count what it is asked; and those that act on the
        node chosen must have nothing to do with the pod, which their PreFilter says: they go on from what they found.
        """
        if self._outside and not self._outside.isdisjoint(self.plugins):
            return False
        return all(plugin.pre_filter(pod, snapshot).status.is_skip for plugin in self._act_on_the_node)

    # ---- points that are not about many nodes

    def _first_refusal(
        self, point: str, plugins: Sequence[Any], method: str, *args: Any, also: Code | None = None
    ) -> Status:
        """The status of the first plugin that is no success, under its name."""
        for plugin in plugins:
            try:
                status = getattr(plugin, method)(*args)
            except Exception as error:
                status = failed(error)
            if not status.is_success:
                return under_name(plugin, point, status, also)
        return SUCCESS

    def run_pre_enqueue(self, pod: Pod) -> Status:
        """The first plugin that holds the pod back decides."""
        return self._first_refusal("PreEnqueue", self.pre_enqueue, "pre_enqueue", pod)

    def run_reserve(self, pod: Pod, node_name: str) -> Status:
        """Reserve in order; the first failure ends it (the caller unreserves)."""
        return self._first_refusal("Reserve", self.reserve, "reserve", pod, node_name)

    def run_unreserve(self, pod: Pod, node_name: str) -> None:
        """In reverse order of Reserve."""
        for plugin in reversed(self.reserve):
            plugin.unreserve(pod, node_name)

    def run_permit(self, pod: Pod, node_name: str) -> tuple[Status, dict[str, int]]:
        """Ask all permit plugins.

        Returns
        -------
        status : Status
            Success, Wait, or the first rejection or error.
        waits_ns : dict of str to int
            Plugin -> how long it lets the pod wait, capped at 15 minutes, when the status is Wait.
        """
        waits_ns: dict[str, int] = {}
        said: tuple[str, ...] = ()
        for plugin in self.permit:
            try:
                status, timeout_ns = plugin.permit(pod, node_name)
            except Exception as error:
                status, timeout_ns = failed(error), 0
            if status.code is Code.Wait:
                waits_ns[plugin.name] = min(int(timeout_ns), MAX_PERMIT_WAIT_NS)
                said = status.reasons
            elif not status.is_success:
                return under_name(plugin, "Permit", status), {}
        if waits_ns:
            reasons = (*said, "one or more plugins asked to wait and no plugin rejected pod")
            return Status(Code.Wait, reasons), waits_ns
        return SUCCESS, {}

    def will_pre_bind(self, pod: Pod, node_name: str) -> bool:
        """Whether any plugin has something to do before the pod is bound."""
        for plugin in self.pre_bind:  # noqa: SIM110 - a generator for each pod costs as much as the asking
            if plugin.will_pre_bind(pod, node_name):
                return True
        return False

    def run_pre_bind(self, pod: Pod, node_name: str) -> Status:
        return self._first_refusal("PreBind", self.pre_bind, "pre_bind", pod, node_name, also=Code.Wait)

    def run_bind(self, pod: Pod, node_name: str) -> Status:
        """The first bind plugin that does not skip decides."""
        for plugin in self.bind:
            try:
                status = plugin.bind(pod, node_name)
            except Exception as error:
                status = failed(error)
            if status.is_success:
                return Status(Code.Success, (), plugin.name)
            if not status.is_skip:
                return under_name(plugin, "Bind", status)
        return Status(Code.Skip)

    def run_post_bind(self, pod: Pod, node_name: str) -> None:
        for plugin in self.post_bind:
            plugin.post_bind(pod, node_name)

    def run_post_filter(self, cycle: fw.FilteredCycle) -> fw.PostFilterResult:
        """The first plugin that succeeds ends it; the messages of those that do not are put together."""
        reasons: list[str] = []
        rejecting = ""
        so_far = fw.PostFilterResult(SUCCESS)
        for plugin in self.post_filter:
            result: fw.PostFilterResult = guarded(plugin, "PostFilter", plugin.post_filter, cycle)
            status = result.status
            so_far.extender_calls += result.extender_calls
            so_far.writes += result.writes
            so_far.trace = result.trace if result.trace is not None else so_far.trace
            if status.is_success or status.code is Code.UnschedulableAndUnresolvable:
                return replace(
                    result,
                    status=status.from_plugin(plugin.name),
                    trace=so_far.trace,
                    extender_calls=so_far.extender_calls,
                    writes=so_far.writes,
                )
            if not status.is_rejection:
                failed = Status(Code.Error, status.reasons, plugin.name)
                return replace(so_far, status=failed, nominated_node_name=None)
            if result.nominated_node_name is not None:
                so_far.nominated_node_name = result.nominated_node_name
            reasons.extend(status.reasons)
            rejecting = rejecting or plugin.name
        so_far.status = Status(Code.Unschedulable, tuple(reasons), rejecting)
        return so_far


# --- All profiles of one scheduler.


def build_profiles(
    loaded: LoadedConfiguration,
    registry: Registry,
    handle: fw.Handle,
    cache: Cache,
    limit: Limit | None = None,
) -> dict[str, Framework]:
    """A framework for each profile, by schedulerName, in the configuration's order.

    Raises
    ------
    ConstructionError
        A plugin from outside the tree cannot be made.
    """
    registry = registry.in_release(loaded.release)
    return {
        plan.scheduler_name: Framework(plan, registry, handle, cache.nodes, limit) for plan in loaded.plans
    }


def check_plugins(loaded: LoadedConfiguration, registry: Registry) -> None:
    """Make the plugins from outside the tree that a configuration names, to see whether they can be made.

    Raises
    ------
    ConstructionError
    """
    if any(name in registry.outside for plan in loaded.plans for name in plan.plugin_names):
        cache = Cache()
        handle = fw.Handle(cache, Nominator(), WaitingPods(), Clock(0), release=loaded.release)
        for framework in build_profiles(loaded, registry, handle, cache).values():
            framework.events()
