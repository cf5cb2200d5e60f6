"""Runs a profile's plugins at each extension point, with upstream's order and error rules.

`Framework` is one profile. `Attempt` is one pod on its way through it: everything its plugins said, as arrays.
Words are made of them later (`framework.diagnosis`).

Source: pkg/scheduler/framework/runtime/framework.go, pkg/scheduler/schedule_one.go, v1.34
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.node_table import NodeTable, Rows
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.cluster.what_if import WhatIf
from scheduler_core.config.construction import ProfilePlan
from scheduler_core.framework.answers import PASSES, Answers, ScoreLayer, first_rejections
from scheduler_core.framework.interface import (
    BindPlugin,
    FilterPlugin,
    Handle,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    PreScoreResult,
    QueueSortPlugin,
    Reads,
    ReservePlugin,
    ScorePlugin,
    Scores,
)
from scheduler_core.framework.promised_pods import PromisedPods
from scheduler_core.framework.registry import PluginFactory
from scheduler_core.framework.status import SUCCESS, Code, Status
from scheduler_core.objects.pod import Pod

EXCLUDED = 126
"""In `Attempt.stop`: PreFilter left the node out."""
NOT_EVALUATED = 125
"""In `Attempt.stop`: enough feasible nodes had been found before this one's turn."""
EXTENDER = 124
"""In `Attempt.stop`: an extender took the node out."""
EXTENDER_NAME = "Extender"
"""What upstream says rejected a pod when extenders took nodes out; any cluster event gives it another try."""

_FEW_ROWS = 32
"""Up to so many candidate rows are asked directly; keeping answers for them would cost more than it saves."""

MAX_TOTAL_SCORE = 2**63 - 1


class PluginFailure(Exception):
    """A plugin raised, or returned a status it must not return: the cycle ends in this error."""

    def __init__(self, plugin: str, message: str) -> None:
        self.plugin = plugin
        super().__init__(message)


class Framework:
    """One profile: its plugins, in order, over one cluster.

    Parameters
    ----------
    plan : ProfilePlan
    registry : mapping of str to factory
        Must know every plugin the plan names.
    handle : Handle
    nodes : NodeTable
        The cluster's nodes, for answers that are kept between cycles.
    """

    def __init__(
        self, plan: ProfilePlan, registry: Mapping[str, PluginFactory], handle: Handle, nodes: NodeTable
    ) -> None:
        self.scheduler_name = plan.scheduler_name
        self.percentage_of_nodes_to_score = plan.percentage_of_nodes_to_score
        self.handle = handle
        self.plugins: dict[str, Plugin] = {
            name: registry[name](plan.args.get(name), handle) for name in plan.plugin_names
        }

        def at(point: str, kind: type[Any]) -> list[Any]:
            plugins = [self.plugins[name] for name in plan.plugins[point]]
            for plugin in plugins:
                if not isinstance(plugin, kind):
                    raise TypeError(f'plugin "{plugin.name}" is configured at {point} but is no {kind.__name__}')
            return plugins

        self.pre_enqueue: list[PreEnqueuePlugin] = at("preEnqueue", PreEnqueuePlugin)
        self.queue_sort: QueueSortPlugin = at("queueSort", QueueSortPlugin)[0]
        self.pre_filter: list[PreFilterPlugin[Any]] = at("preFilter", PreFilterPlugin)
        self.filter: list[FilterPlugin[Any]] = at("filter", FilterPlugin)
        self.post_filter: list[PostFilterPlugin] = at("postFilter", PostFilterPlugin)
        self.pre_score: list[PreScorePlugin[Any]] = at("preScore", PreScorePlugin)
        self.score: list[ScorePlugin[Any]] = at("score", ScorePlugin)
        self.weights: dict[str, int] = {plugin.name: plan.weights[plugin.name] for plugin in self.score}
        self.reserve: list[ReservePlugin] = at("reserve", ReservePlugin)
        self.permit: list[PermitPlugin] = at("permit", PermitPlugin)
        self.pre_bind: list[PreBindPlugin] = at("preBind", PreBindPlugin)
        self.bind: list[BindPlugin] = at("bind", BindPlugin)
        self.post_bind: list[PostBindPlugin] = at("postBind", PostBindPlugin)
        self.stateless_filters = [
            plugin
            for plugin in self.filter
            if isinstance(plugin, PreFilterPlugin)
            and plugin not in self.pre_filter
            and not plugin.filter_without_state
        ]
        """Filter plugins whose PreFilter the profile disables: they fail, as upstream, for want of their state."""
        self.stateless_scores = [
            plugin
            for plugin in self.score
            if isinstance(plugin, PreScorePlugin)
            and plugin not in self.pre_score
            and not plugin.score_without_state
        ]
        self.answers = Answers(nodes)
        self.promised_pods = PromisedPods(handle.nominator, nodes)
        self.spec_filters = [item for item in enumerate(self.filter) if item[1].filter_reads is Reads.SPEC]
        self.usage_filters = [item for item in enumerate(self.filter) if item[1].filter_reads is Reads.USAGE]
        self.cluster_filters = [
            item for item in enumerate(self.filter) if item[1].filter_reads is Reads.CLUSTER
        ]

    # ---- points that are not about many nodes

    def run_pre_enqueue(self, pod: Pod) -> Status:
        """The first plugin that holds the pod back decides."""
        for plugin in self.pre_enqueue:
            status = plugin.pre_enqueue(pod)
            if not status.is_success:
                return status.from_plugin(plugin.name)
        return SUCCESS

    def run_reserve(self, pod: Pod, node_name: str) -> Status:
        """Reserve in order; the first failure ends it (the caller unreserves)."""
        for plugin in self.reserve:
            status = _guarded(plugin, "Reserve", plugin.reserve, pod, node_name)
            if not status.is_success:
                if status.is_rejection:
                    return status.from_plugin(plugin.name)
                return Status(
                    Code.Error, (f'running Reserve plugin "{plugin.name}": {status.message}',), plugin.name
                )
        return SUCCESS

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
        for plugin in self.permit:
            status, timeout_ns = plugin.permit(pod, node_name)
            if status.code is Code.Wait:
                waits_ns[plugin.name] = min(timeout_ns, MAX_PERMIT_WAIT_NS)
            elif status.is_rejection:
                return status.from_plugin(plugin.name), {}
            elif not status.is_success:
                message = f'running Permit plugin "{plugin.name}": {status.message}'
                return Status(Code.Error, (message,), plugin.name), {}
        if waits_ns:
            return Status(
                Code.Wait, ("one or more plugins asked to wait and no plugin rejected pod",)
            ), waits_ns
        return SUCCESS, {}

    def run_pre_bind(self, pod: Pod, node_name: str) -> Status:
        for plugin in self.pre_bind:
            status = plugin.pre_bind(pod, node_name)
            if status.code is Code.Wait:
                return status.from_plugin(plugin.name)
            if not status.is_success:
                if status.is_rejection:
                    return status.from_plugin(plugin.name)
                return Status(
                    Code.Error, (f'running PreBind plugin "{plugin.name}": {status.message}',), plugin.name
                )
        return SUCCESS

    def run_bind(self, pod: Pod, node_name: str) -> Status:
        """The first bind plugin that does not skip decides."""
        for plugin in self.bind:
            status = plugin.bind(pod, node_name)
            if status.is_skip:
                continue
            if not status.is_success:
                if status.is_rejection:
                    return status.from_plugin(plugin.name)
                return Status(
                    Code.Error, (f'running Bind plugin "{plugin.name}": {status.message}',), plugin.name
                )
            return Status(Code.Success, (), plugin.name)
        return Status(Code.Skip)

    def run_post_bind(self, pod: Pod, node_name: str) -> None:
        for plugin in self.post_bind:
            plugin.post_bind(pod, node_name)

    def run_post_filter(self, attempt: Attempt) -> PostFilterResult:
        """The first plugin that succeeds ends it; the messages of those that do not are put together."""
        reasons: list[str] = []
        calls: list[Any] = []
        rejecting = ""
        nominated: str | None = None
        trace: Any = None
        for plugin in self.post_filter:
            result: PostFilterResult = _guarded(plugin, "PostFilter", plugin.post_filter, attempt)
            status = result.status
            calls.extend(result.extender_calls)
            trace = result.trace if result.trace is not None else trace
            if status.is_success or status.code is Code.UnschedulableAndUnresolvable:
                return replace(
                    result, status=status.from_plugin(plugin.name), trace=trace, extender_calls=tuple(calls)
                )
            if not status.is_rejection:
                failed = Status(Code.Error, status.reasons, plugin.name)
                return PostFilterResult(failed, trace=trace, extender_calls=tuple(calls))
            if result.nominated_node_name is not None:
                nominated = result.nominated_node_name
            reasons.extend(status.reasons)
            rejecting = rejecting or plugin.name
        status = Status(Code.Unschedulable, tuple(reasons), rejecting)
        return PostFilterResult(status, nominated, trace=trace, extender_calls=tuple(calls))

    def attempt(self, pod: Pod, snapshot: Snapshot) -> Attempt:
        """Begin an attempt for `pod`."""
        return Attempt(self, pod, snapshot)


MAX_PERMIT_WAIT_NS = 15 * 60 * 1_000_000_000
"""Source: framework.go maxTimeout, v1.34."""


P = ParamSpec("P")
R = TypeVar("R")


def _guarded(plugin: Plugin, point: str, method: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a plugin; what it raises ends the cycle under its name, never the process."""
    try:
        return method(*args, **kwargs)
    except PluginFailure:
        raise
    except Exception as error:
        raise PluginFailure(
            plugin.name, f'running {point} plugin "{plugin.name}": {type(error).__name__}: {error}'
        ) from error


class Attempt:
    """One pod's way through a profile.

    Attributes
    ----------
    pre_filter_status : Status
    node_names : tuple of str or None
        What PreFilter narrowed the nodes to.
    rows : ndarray of shape (n,), int64
        Rows the arrays below speak of: all nodes ascending, or the few that PreFilter left.
    stop : ndarray of shape (n,), int8
        Position of the first filter plugin that rejects the row; `PASSES`, or one of `EXCLUDED`, `NOT_EVALUATED`,
        `EXTENDER`.
    code, detail : ndarray of shape (n,), int8 and int64
        Its verdict.
    explicit : dict of int to (str, Code, tuple of str)
        Rows whose reasons are not to be asked of a plugin by detail: nominated pods, extenders. Keys below zero stand
        for nodes of an extender's answer that the cluster does not have.
    feasible : ndarray, int64
        Feasible rows ascending. After an extender they may be rows of `guests`, and a row may come twice.
    guests : dict of int to str
        Rows, and their nodes' names, of node objects an extender answered with (`NodeTable.add_guest`).
    extenders_took_nodes : bool
    """

    def __init__(self, framework: Framework, pod: Pod, snapshot: Snapshot) -> None:
        self.framework = framework
        self.pod = pod
        self.snapshot = snapshot
        self.filter_states: dict[str, Any] = {}
        self.skipped_filters: dict[str, None] = {}
        self.pre_filter_status: Status = SUCCESS
        self.node_names: tuple[str, ...] | None = None
        self.narrowing_plugins: tuple[str, ...] = ()
        self.rows: Rows = snapshot.rows[:0]
        self.stop: NDArray[np.int8] = np.zeros(0, np.int8)
        self.code: NDArray[np.int8] = np.zeros(0, np.int8)
        self.detail: NDArray[np.int64] = np.zeros(0, np.int64)
        self.explicit: dict[int, tuple[str, Code, tuple[str, ...]]] = {}
        self.feasible: Rows = self.rows
        self.guests: dict[int, str] = {}
        self.extenders_took_nodes = False
        self.score_states: dict[str, Any] = {}
        self.skipped_scores: dict[str, None] = {}
        self.raw_scores: dict[str, Scores] = {}
        self.scores: dict[str, Scores] = {}
        self.total: Scores = np.zeros(0, np.int64)

    # ---- PreFilter

    def run_pre_filter(self) -> Status:
        """Run PreFilter plugins.

        Returns
        -------
        Status
            Success, or the rejection that ends the attempt.

        Raises
        ------
        PluginFailure
        """
        pod, snapshot = self.pod, self.snapshot
        allowed: dict[str, None] | None = None
        narrowing: list[str] = []
        returned = SUCCESS
        for plugin in self.framework.pre_filter:
            result: PreFilterResult[Any] = _guarded(
                plugin, "PreFilter", plugin.pre_filter, pod, snapshot
            )
            status = result.status
            if status.is_skip:
                self.skipped_filters[plugin.name] = None
                continue
            if not status.is_success:
                if status.code is Code.UnschedulableAndUnresolvable:
                    return self._pre_filter_ends(status.from_plugin(plugin.name))
                if status.is_rejection:
                    # The pod is lost, but later plugins may know a stronger reason.
                    returned = status.from_plugin(plugin.name)
                    continue
                raise PluginFailure(
                    plugin.name, f'running PreFilter plugin "{plugin.name}": {status.message}'
                )
            self.filter_states[plugin.name] = result.state
            if result.node_names is None:
                continue
            narrowing.append(plugin.name)
            names = dict.fromkeys(result.node_names)
            allowed = names if allowed is None else {name: None for name in allowed if name in names}
            if not allowed:
                self.narrowing_plugins = tuple(sorted(narrowing))
                message = f"node(s) didn't satisfy plugin {narrowing[0]}"
                if len(narrowing) > 1:
                    message = (
                        f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(narrowing))}] simultaneously"
                    )
                return self._pre_filter_ends(Status(Code.UnschedulableAndUnresolvable, (message,)))
        if allowed is not None:
            self.node_names = tuple(allowed)
            self.narrowing_plugins = tuple(sorted(narrowing))
        return self._pre_filter_ends(returned)

    def pre_filter_ran(self, plugin: str) -> bool:
        """Whether the plugin's PreFilter was reached; a rejection before it ends the attempt."""
        return (
            plugin in self.skipped_filters
            or plugin in self.filter_states
            or plugin == self.pre_filter_status.plugin
        )

    def _pre_filter_ends(self, status: Status) -> Status:
        self.pre_filter_status = status
        return status

    @property
    def narrowed_reason(self) -> str:
        """Why a node PreFilter left out is not feasible."""
        return f"node(s) didn't satisfy plugin(s) [{' '.join(self.narrowing_plugins)}]"

    # ---- Filter

    def run_filter(self, limit: int | None = None, start: int = 0) -> None:
        """Run Filter plugins on every node PreFilter left.

        Parameters
        ----------
        limit : int, optional
            Stop once so many feasible nodes are found (`percentageOfNodesToScore`); None evaluates all.
        start : int
            Place in the evaluation order to begin at; matters with a limit only.
        """
        for plugin in self.framework.stateless_filters:
            raise PluginFailure(
                plugin.name,
                f'running "{plugin.name}" filter plugin: '
                f'error reading "PreFilter{plugin.name}" from cycleState: not found',
            )
        if self.node_names is not None:
            rows = np.sort(self.snapshot.nodes.rows_of(self._known_names(self.node_names)))
            if len(rows) <= _FEW_ROWS:
                self.filter_rows(rows)
            else:
                self._filter_all()
                kept = np.isin(self.rows, rows)
                self.rows, self.stop = self.rows[kept], self.stop[kept]
                self.code, self.detail = self.code[kept], self.detail[kept]
        else:
            self._filter_all()
        self._filter_with_nominated_pods()
        if limit is not None:
            self._cut(limit, start)
        self.feasible = self.rows[self.stop == PASSES]

    def filter_rows(self, rows: Rows) -> None:
        """Run Filter on some rows directly."""
        self.rows = rows
        try:
            self.stop, self.code, self.detail = first_rejections(
                self._active_filters(list(enumerate(self.framework.filter))),
                self.filter_states,
                self.pod,
                self.snapshot.nodes,
                rows,
            )
        except PluginFailure:
            raise
        except Exception as error:
            raise _filter_failure(error) from error
        self._raise_filter_errors()

    def filter_nominated_node(self, row: int) -> bool:
        """Whether the one node the pod is nominated to passes, with all rules for nominated pods."""
        self.filter_rows(np.array([row], np.int64))
        self._filter_with_nominated_pods()
        self.feasible = self.rows[self.stop == PASSES]
        return bool(len(self.feasible))

    def _known_names(self, names: Sequence[str]) -> list[str]:
        row_of, alive = self.snapshot.nodes.row_of, self.snapshot.nodes.alive
        return [name for name in names if name in row_of and alive[row_of[name]]]

    def _active_filters(
        self, filters: Sequence[tuple[int, FilterPlugin[Any]]]
    ) -> list[tuple[int, FilterPlugin[Any]]]:
        return [item for item in filters if item[1].name not in self.skipped_filters]

    def _filter_all(self) -> None:
        snapshot, take = self.snapshot, self.snapshot.take
        try:
            spec = self._layer(self.framework.spec_filters, spec=True)
            usage = self._layer(self.framework.usage_filters, spec=False)
            self.rows = snapshot.rows
            spec_stop, usage_stop = spec.stop[take], usage.stop[take]
            self.stop = np.minimum(spec_stop, usage_stop)
            if self.stop.size and int(self.stop.min()) != PASSES:
                by_spec = spec_stop <= usage_stop
                self.code = np.where(by_spec, spec.code[take], usage.code[take])
                self.detail = np.where(by_spec, spec.detail[take], usage.detail[take])
            else:
                self.code = np.zeros(len(self.rows), np.int8)
                self.detail = np.zeros(len(self.rows), np.int64)
            for position, plugin in self._active_filters(self.framework.cluster_filters):
                reached = (self.stop > position).nonzero()[0]
                if not len(reached):
                    break
                rows = self.rows if len(reached) == len(self.rows) else self.rows[reached]
                verdicts = plugin.filter(self.filter_states.get(plugin.name), self.pod, snapshot.nodes, rows)
                rejected = verdicts.codes.nonzero()[0]
                if len(rejected):
                    places = reached[rejected]
                    self.stop[places] = position
                    self.code[places] = verdicts.codes[rejected]
                    self.detail[places] = 0 if verdicts.details is None else verdicts.details[rejected]
        except PluginFailure:
            raise
        except Exception as error:
            raise _filter_failure(error) from error
        self._raise_filter_errors()

    def _layer(self, filters: Sequence[tuple[int, FilterPlugin[Any]]], *, spec: bool) -> Any:
        active = self._active_filters(filters)
        pod = self.pod
        key: Hashable = (spec, *((position, plugin.sign(pod)) for position, plugin in active))
        nodes = self.snapshot.nodes
        layer = self.framework.answers.filter_layer(key, nodes.spec_journal if spec else nodes.usage_journal)
        layer.refresh(active, self.filter_states, pod, self.snapshot)
        return layer

    def _raise_filter_errors(self) -> None:
        if self.code.size and (self.code == Code.Error).any():
            place = int((self.code == Code.Error).argmax())
            plugin = self.framework.filter[int(self.stop[place])]
            reasons = self._plugin_reasons(place)
            raise PluginFailure(plugin.name, f'running "{plugin.name}" filter plugin: {", ".join(reasons)}')

    def _filter_with_nominated_pods(self) -> None:
        """Nodes somebody of equal or higher priority is nominated to must fit the pod with and without them.

        Source: framework.go RunFilterPluginsWithNominatedPods, v1.34
        """
        promised = self.promised_pods()
        if promised is None:
            return
        places = np.flatnonzero(np.isin(self.rows, promised.rows[promised.count_for(self.pod)]))
        if not len(places):
            return
        world = World(self, self.rows[places])
        rows = np.arange(len(places), dtype=np.int64)
        stop, code, detail = verdicts = world.run_filters_with_nominated(rows)
        rejections, statuses = world.told(rows, verdicts)
        words = [(status.plugin, status.code, status.reasons) for status in statuses]
        pairs = zip(self.rows[places].tolist(), rejections.tolist(), strict=True)
        self.explicit.update({row: words[rejection] for row, rejection in pairs if rejection >= 0})
        self.stop[places], self.code[places], self.detail[places] = stop, code, detail
        self._raise_filter_errors()

    def promised_pods(self) -> PromisedPods | None:
        """Nominated pods as columns; None without any."""
        if not len(self.framework.handle.nominator):
            return None
        self.framework.promised_pods.refresh(self.snapshot.generation)
        return self.framework.promised_pods

    def _cut(self, limit: int, start: int) -> None:
        """Forget nodes after the `limit`-th feasible one in evaluation order from `start` on."""
        if int((self.stop == PASSES).sum()) <= limit:
            return
        n_nodes = len(self.snapshot.order)
        turn = (self.snapshot.rank[self.rows] - start) % n_nodes
        by_turn = np.argsort(turn)
        passed = np.cumsum(self.stop[by_turn] == PASSES)
        last = int(np.searchsorted(passed, limit))
        self.stop[by_turn[last + 1 :]] = NOT_EVALUATED

    # ---- reading verdicts

    def rejected_rows(self, code: Code) -> Rows:
        """Rows whose verdict has this code, in evaluation order; a rejection by PreFilter is about every row."""
        if not self.pre_filter_status.is_success:
            return self.snapshot.order if self.pre_filter_status.code is code else self.snapshot.order[:0]
        places = (self.stop != PASSES) & (self.stop != NOT_EVALUATED) & (self.code == code)
        rows = self.rows[places]
        in_order: Rows = rows[np.argsort(self.snapshot.rank[rows], kind="stable")]
        return in_order

    def code_of(self, node_name: str) -> Code:
        """The verdict on one node; a node that was not filtered, or is not there, is not resolvable."""
        if not self.pre_filter_status.is_success:
            return self.pre_filter_status.code
        row = self.snapshot.nodes.row_of.get(node_name, -1)
        places = np.flatnonzero((self.rows == row) & (self.stop != NOT_EVALUATED))
        return Code(int(self.code[places[0]])) if len(places) else Code.UnschedulableAndUnresolvable

    def _plugin_reasons(self, place: int) -> tuple[str, ...]:
        plugin = self.framework.filter[int(self.stop[place])]
        return plugin.reasons(
            self.filter_states.get(plugin.name),
            self.pod,
            self.snapshot.nodes,
            int(self.rows[place]),
            Code(int(self.code[place])),
            int(self.detail[place]),
        )

    def verdict(self, place: int) -> tuple[str, Code, tuple[str, ...]] | None:
        """(plugin, code, reasons) of the row at `place` in `rows`; None when it is feasible or was not looked at."""
        stop = int(self.stop[place])
        if stop in (PASSES, NOT_EVALUATED):
            return None
        explicit = self.explicit.get(int(self.rows[place]))
        if explicit is not None:
            return explicit
        if stop == EXTENDER:
            # An extender left it out without a word.
            return None
        return self.framework.filter[stop].name, Code(int(self.code[place])), self._plugin_reasons(place)

    def reason_counts(self) -> dict[str, int]:
        """How many nodes each reason was given for, nodes PreFilter left out included."""
        counts: dict[str, int] = {}
        silent = np.isin(self.rows, np.fromiter(self.explicit, np.int64))
        # Many rows share one value.
        shared = {id(words): words for words in self.explicit.values()}
        for key, amount in Counter(map(id, self.explicit.values())).items():
            for reason in shared[key][2]:
                counts[reason] = counts.get(reason, 0) + amount
        spoken = (self.stop < len(self.framework.filter)) & ~silent
        for position in np.unique(self.stop[spoken]).tolist():
            places = np.flatnonzero(spoken & (self.stop == position))
            keys = self.detail[places] * 8 + self.code[places]
            _, first, amounts = np.unique(keys, return_index=True, return_counts=True)
            for index, amount in zip(first.tolist(), amounts.tolist(), strict=True):
                for reason in self._plugin_reasons(int(places[index])):
                    counts[reason] = counts.get(reason, 0) + amount
        return counts

    def rejecting_plugins(self) -> tuple[str, ...]:
        """Plugins that rejected some node or the pod as a whole, in order of first appearance."""
        names = dict.fromkeys(self.narrowing_plugins)
        if self.pre_filter_status.plugin and not self.pre_filter_status.is_success:
            names[self.pre_filter_status.plugin] = None
        for position in np.unique(self.stop).tolist():
            if position < len(self.framework.filter):
                names[self.framework.filter[position].name] = None
        for name, _, _ in self.explicit.values():
            if name:
                names[name] = None
        if self.extenders_took_nodes:
            names[EXTENDER_NAME] = None
        return tuple(names)

    @property
    def n_statuses(self) -> int:
        """How many nodes have a status of their own: not feasible ones, none PreFilter or an extender left out."""
        by_plugins = self.rows[self.stop < len(self.framework.filter)]
        return len(np.union1d(by_plugins, np.array(list(self.explicit), np.int64)))

    # ---- rows and nodes

    def name_of(self, row: int) -> str:
        """The name of a row's node, guests among them."""
        guest = self.guests.get(row)
        return self.snapshot.nodes.name(row) if guest is None else guest

    def in_order(self, rows: Rows) -> Rows:
        """Rows in evaluation order, then guests as they were answered (their rows come as rows get free)."""
        if not self.guests:
            return rows[np.argsort(self.snapshot.rank[rows], kind="stable")]
        turns = {row: len(self.snapshot.order) + turn for turn, row in enumerate(self.guests)}
        places = [turns[row] if row in turns else int(self.snapshot.rank[row]) for row in rows.tolist()]
        return rows[np.argsort(places, kind="stable")]

    def what_if(self, rows: Rows) -> World:
        """The given rows, each in a world of its own."""
        return World(self, rows)

    # ---- Score

    def run_score(self) -> None:
        """Score the feasible rows; fills `raw_scores`, `scores` and `total`, all aligned with `feasible`."""
        pod, snapshot, rows = self.pod, self.snapshot, self.feasible
        framework = self.framework
        for pre_scorer in framework.pre_score:
            result: PreScoreResult[Any] = _guarded(
                pre_scorer, "PreScore", pre_scorer.pre_score, pod, snapshot, rows
            )
            if result.status.is_skip:
                self.skipped_scores[pre_scorer.name] = None
            elif not result.status.is_success:
                raise PluginFailure(
                    pre_scorer.name, f'running PreScore plugin "{pre_scorer.name}": {result.status.message}'
                )
            else:
                self.score_states[pre_scorer.name] = result.state
        for stateless in framework.stateless_scores:
            raise PluginFailure(
                stateless.name,
                f'running Score plugins: plugin "{stateless.name}" failed with: '
                f'reading "PreScore{stateless.name}" from cycleState: not found',
            )
        kept: list[tuple[ScorePlugin[Any], int]] = []
        total: Scores | None = None
        for plugin in framework.score:
            if plugin.name in self.skipped_scores:
                continue
            weight = framework.weights[plugin.name]
            if plugin.score_reads is not Reads.CLUSTER and not plugin.normalizes and not self.guests:
                kept.append((plugin, weight))
                continue
            raw = self._raw_scores(plugin)
            self.raw_scores[plugin.name] = raw
            state = self.score_states.get(plugin.name)
            if plugin.normalizes:
                scores = _guarded(
                    plugin, "Score", plugin.normalize, state, pod, snapshot.nodes, rows, raw
                )
            else:
                scores = raw
            self._check_scores(plugin, scores)
            self.scores[plugin.name] = scores
            total = weight * scores if total is None else total + weight * scores
        if kept:
            layer = self._score_layer(kept)
            by_layer = layer.total[rows]
            total = by_layer if total is None else total + by_layer
            self._kept_scores = (kept, layer, rows)
        self.total = np.zeros(len(rows), np.int64) if total is None else total

    _kept_scores: tuple[list[tuple[ScorePlugin[Any], int]], ScoreLayer, Rows] | None = None

    def gather_scores(self) -> None:
        """Put the scores that came from kept answers into `raw_scores` and `scores`, for a full trace."""
        if self._kept_scores is not None:
            kept, layer, rows = self._kept_scores
            for index, (plugin, _) in enumerate(kept):
                self.raw_scores[plugin.name] = self.scores[plugin.name] = layer.raw[index, rows]

    def _raw_scores(self, plugin: ScorePlugin[Any]) -> Scores:
        state = self.score_states.get(plugin.name)
        # Answers are kept for nodes of the cluster only.
        if plugin.score_reads is Reads.CLUSTER or self.guests:
            return _guarded(
                plugin, "Score", plugin.score, state, self.pod, self.snapshot.nodes, self.feasible
            )
        kept: Scores = self._score_layer([(plugin, 1)]).total[self.feasible]
        return kept

    def _score_layer(self, plugins: list[tuple[ScorePlugin[Any], int]]) -> ScoreLayer:
        spec = all(plugin.score_reads is Reads.SPEC for plugin, _ in plugins)
        key: Hashable = (spec, *((plugin.name, plugin.sign(self.pod)) for plugin, _ in plugins))
        nodes = self.snapshot.nodes
        journal = nodes.spec_journal if spec else nodes.usage_journal
        layer = self.framework.answers.score_layer(key, journal, len(plugins))
        _guarded(
            plugins[0][0], "Score", layer.refresh, plugins, self.score_states, self.pod, self.snapshot
        )
        return layer

    def _check_scores(self, plugin: ScorePlugin[Any], scores: Scores) -> None:
        if len(scores) and (int(scores.max()) > 100 or int(scores.min()) < 0):
            place = int(np.flatnonzero((scores > 100) | (scores < 0))[0])
            raise PluginFailure(
                plugin.name,
                f'plugin "{plugin.name}" returns an invalid score {int(scores[place])}, '
                "it should in the range of [0, 100] after normalizing",
            )


def _filter_failure(error: Exception) -> PluginFailure:
    """Name the plugin whose frame raised, as far as the traceback tells."""
    name = "Filter"
    trace = error.__traceback__
    while trace is not None:
        owner = trace.tb_frame.f_locals.get("self")
        if isinstance(owner, FilterPlugin):
            name = owner.name
            break
        trace = trace.tb_next
    return PluginFailure(name, f'running "{name}" filter plugin: {type(error).__name__}: {error}')


class World:
    """Some rows of an attempt, each in a world of its own, with every filter plugin's state for them.

    Parameters
    ----------
    attempt : Attempt
    rows : ndarray of shape (n,), int64
        Rows of the cluster; row k of the world is `rows[k]`.
    """

    def __init__(self, attempt: Attempt, rows: Rows) -> None:
        self.attempt = attempt
        self.nodes = WhatIf(attempt.snapshot.nodes, rows)
        self._filters = attempt._active_filters(list(enumerate(attempt.framework.filter)))
        self._movable_filters = [item for item in self._filters if item[1].filter_reads is not Reads.SPEC]
        self._moving = [
            plugin
            for _, plugin in self._filters
            if type(plugin).add_pods is not FilterPlugin.add_pods
            or type(plugin).remove_pods is not FilterPlugin.remove_pods
        ]
        self.states: dict[str, Any] = {
            plugin.name: plugin.fork(attempt.filter_states.get(plugin.name), self.nodes)
            for _, plugin in self._filters
        }
        self._fits_spec = np.zeros(len(rows), np.bool_)
        """Rows known to pass the plugins that look at the node object alone: nothing here can change that."""
        self._promised_rows = self._promised_ids = self._promised_turns = rows[:0]
        """Nominated pods that count: their rows here, their ids, their turns among those of a row."""
        promised = attempt.promised_pods()
        if promised is not None:
            # The last place stands for no row at all.
            row_of = np.full(attempt.snapshot.nodes.capacity + 1, -1, np.int64)
            row_of[rows] = np.arange(len(rows))
            own = row_of[promised.rows]
            counted = (own >= 0) & promised.count_for(attempt.pod)
            self._promised_rows, self._promised_ids = own[counted], promised.pod_ids[counted]
            self._promised_turns = promised.turns[counted]

    def add_pods(self, rows: Rows, pod_ids: NDArray[np.int64]) -> None:
        """Pod `pod_ids[i]` comes to row `rows[i]`; no row twice in one call."""
        self.nodes.add_pods(rows, pod_ids)
        for plugin in self._moving:
            plugin.add_pods(self.states[plugin.name], self.attempt.pod, self.nodes, rows, pod_ids)

    def remove_pods(self, rows: Rows, pod_ids: NDArray[np.int64]) -> None:
        """Pod `pod_ids[i]` leaves row `rows[i]`; no row twice in one call."""
        self.nodes.remove_pods(rows, pod_ids)
        for plugin in self._moving:
            plugin.remove_pods(self.states[plugin.name], self.attempt.pod, self.nodes, rows, pod_ids)

    def feasible(self, rows: Rows) -> NDArray[np.bool_]:
        """Which of the world's `rows` the pod fits, nominated pods counted in and out."""
        stop, _, _ = self.run_filters_with_nominated(rows)
        fits: NDArray[np.bool_] = stop == PASSES
        return fits

    def rejections(self, rows: Rows) -> tuple[NDArray[np.int64], list[Status]]:
        """Like `feasible`, with the reasons: for each row -1 or an index into the list of distinct rejections."""
        return self.told(rows, self.run_filters_with_nominated(rows))

    def told(
        self, rows: Rows, verdicts: tuple[NDArray[np.int8], NDArray[np.int8], NDArray[np.int64]]
    ) -> tuple[NDArray[np.int64], list[Status]]:
        """Verdicts (stop, code, detail) of `rows` in the form of `rejections`."""
        stop, code, detail = verdicts
        result = np.full(len(rows), -1, np.int64)
        statuses: list[Status] = []
        rejected = np.flatnonzero(stop != PASSES)
        if len(rejected):
            keys = np.stack([stop[rejected].astype(np.int64), code[rejected], detail[rejected]])
            _, first, inverse = np.unique(keys, axis=1, return_index=True, return_inverse=True)
            result[rejected] = inverse.reshape(-1)
            for place in rejected[first].tolist():
                plugin = self.attempt.framework.filter[int(stop[place])]
                verdict = Code(int(code[place]))
                reasons = plugin.reasons(
                    self.states.get(plugin.name),
                    self.attempt.pod,
                    self.nodes,
                    int(rows[place]),
                    verdict,
                    int(detail[place]),
                )
                statuses.append(Status(verdict, reasons, plugin.name))
        return result, statuses

    def run_filters(self, rows: Rows) -> tuple[NDArray[np.int8], NDArray[np.int8], NDArray[np.int64]]:
        """(stop, code, detail) of the world as it stands, as in `Attempt`."""
        known = bool(self._fits_spec[rows].all())
        filters = self._movable_filters if known else self._filters
        try:
            found = first_rejections(filters, self.states, self.attempt.pod, self.nodes, rows)
        except PluginFailure:
            raise
        except Exception as error:
            raise _filter_failure(error) from error
        if not known:
            self._fits_spec[rows] |= found[0] == PASSES
        return found

    def run_filters_with_nominated(
        self, rows: Rows
    ) -> tuple[NDArray[np.int8], NDArray[np.int8], NDArray[np.int64]]:
        """(stop, code, detail), first with nominated pods of equal or higher priority, then without them."""
        stop, code, detail = self.run_filters(rows)
        if not len(self._promised_rows):
            return stop, code, detail
        place_of = np.full(len(self.nodes.base_rows), -1, np.int64)
        place_of[rows] = np.arange(len(rows))
        asked = place_of[self._promised_rows] >= 0
        promised, pod_ids = self._promised_rows[asked], self._promised_ids[asked]
        if not len(promised):
            return stop, code, detail
        turns = self._promised_turns[asked]
        moves = [(promised[turns == turn], pod_ids[turns == turn]) for turn in np.unique(turns).tolist()]
        ports = self.nodes.ports_in_use()
        for move in moves:
            self.add_pods(*move)
        places = np.unique(place_of[promised])
        with_stop, with_code, with_detail = self.run_filters(rows[places])
        for move in reversed(moves):
            self.remove_pods(*move)
        self.nodes.restore_ports(ports)
        fails = with_stop != PASSES
        stop[places[fails]] = with_stop[fails]
        code[places[fails]] = with_code[fails]
        detail[places[fails]] = with_detail[fails]
        return stop, code, detail


__all__ = [
    "EXCLUDED",
    "EXTENDER",
    "NOT_EVALUATED",
    "PASSES","Attempt", "Framework", "PluginFailure", "World"]
