"""One pod on its way through a profile's filters and scores: everything its plugins said, as arrays.

Words are made of them later (`framework.diagnosis`, `framework.record`).

Source: pkg/scheduler/framework/runtime/framework.go, pkg/scheduler/schedule_one.go, v1.34
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.journal import Journal, JournalReader
from scheduler_core.cluster.node_table import Rows
from scheduler_core.cluster.nominator import NominatedPods
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.cluster.what_if import WhatIf
from scheduler_core.framework import answers
from scheduler_core.framework import interface as fw
from scheduler_core.framework.distinct import distinct, tally
from scheduler_core.framework.failure import PluginFailure, failure_of, filter_failure, guarded, invalid_score
from scheduler_core.framework.runtime import Framework
from scheduler_core.framework.status import SUCCESS, Code, Status
from scheduler_core.objects.pod import Pod
from scheduler_core.thresholds import thresholds

EXCLUDED = 126
"""In `Attempt.stop`: PreFilter left the node out."""
NOT_EVALUATED = 125
"""In `Attempt.stop`: enough feasible nodes had been found before this one's turn."""
EXTENDER = 124
"""In `Attempt.stop`: an extender took the node out."""
EXTENDER_NAME = "Extender"
"""What upstream says rejected a pod when extenders took nodes out; any cluster event gives it another try."""

# Members of an enumeration are slow to look up where it happens many times a cycle.
_CLUSTER = fw.Reads.CLUSTER
_ERROR = int(Code.Error)
_SUCCESS, _SKIP = Code.Success, Code.Skip
_NO_CODES, _NO_NUMBERS = np.zeros(0, np.int8), np.zeros(0, np.int64)


class Attempt:
    """One pod's way through a profile.

    Attributes
    ----------
    pre_filter_status : Status
    node_names : tuple of str or None
        What PreFilter narrowed the nodes to.
    rows : ndarray of shape (n,), intp
        Rows the arrays below speak of: all nodes ascending, or the few that PreFilter left.
    stop : ndarray of shape (n,), int8
        Position of the first filter plugin that rejects the row; `PASSES`, or one of `EXCLUDED`, `NOT_EVALUATED`,
        `EXTENDER`.
    code, detail : ndarray of shape (n,), int8 and int64
        Its verdict.
    explicit : dict of int to (str, Code, tuple of str)
        Rows whose reasons are not to be asked of a plugin by detail: nominated pods, extenders. Keys below zero stand
        for nodes of an extender's answer that the cluster does not have.
    feasible : ndarray, intp
        Feasible rows ascending. After an extender they may be rows of `guests`, and a row may come twice.
    guests : dict of int to str
        Rows, and their nodes' names, of node objects an extender answered with (`NodeTable.add_guest`).
    extenders_took_nodes : bool
    also_rejecting : dict of str to None
        Plugins that rejected some row, where all are heard (`alwaysCheckAllPredicates`).
    tried_first : dict of int to (str, Code, tuple of str)
        What was said of rows when the pod's nominated node was tried alone. A row that is looked at again has its
        later verdict; PreFilter may have left the nominated node out, and then this is all that is known of it.
    """

    def __init__(self, framework: Framework, pod: Pod, snapshot: Snapshot) -> None:
        self.framework = framework
        self.pod = pod
        self.snapshot = snapshot
        self.cycle_state = framework.handle.cycle_state = fw.CycleState()
        self.filter_states: dict[str, Any] = {}
        self.skipped_filters: dict[str, None] = {}
        self.pre_filter_status: Status = SUCCESS
        self.node_names: tuple[str, ...] | None = None
        self.narrowing_plugins: tuple[str, ...] = ()
        self.rows: Rows = _NO_NUMBERS
        self.stop: NDArray[np.int8] = _NO_CODES
        self.code: NDArray[np.int8] = _NO_CODES
        self.detail: NDArray[np.int64] = _NO_NUMBERS
        self.explicit: dict[int, tuple[str, Code, tuple[str, ...]]] = {}
        self._tallied: list[tuple[int, int]] | None = None
        self.feasible: Rows = self.rows
        self.guests: dict[int, str] = {}
        self.extenders_took_nodes = False
        self.also_rejecting: dict[str, None] = {}
        self.tried_first: dict[int, tuple[str, Code, tuple[str, ...]]] = {}
        self.score_states: dict[str, Any] = {}
        self.skipped_scores: dict[str, None] = {}
        self.raw_scores: dict[str, fw.Scores] = {}
        self.scores: dict[str, fw.Scores] = {}
        self.total: fw.Scores = _NO_NUMBERS

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
            try:
                result: fw.PreFilterResult[Any] = plugin.pre_filter(pod, snapshot)
            except PluginFailure:
                raise
            except Exception as error:
                raise failure_of(plugin, "PreFilter", error) from error
            status = result.status
            if status.code is _SKIP:
                self.skipped_filters[plugin.name] = None
                continue
            if status.code is not _SUCCESS:
                if status.code is Code.UnschedulableAndUnresolvable:
                    return self._pre_filter_ends(status.from_plugin(plugin.name))
                if status.is_rejection:
                    # The pod is lost, but later plugins may know a stronger reason.
                    returned = status.from_plugin(plugin.name)
                    continue
                raise PluginFailure(
                    plugin.name, "PreFilter", f'running PreFilter plugin "{plugin.name}": {status.message}'
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
        return self._narrowed_by(self.narrowing_plugins)

    @property
    def absent_reason(self) -> str:
        """The same as the message counts it: whatever rejected the nominated node before is named, too.

        Upstream adds to one set of plugins and makes the words of it afterwards.
        """
        tried = (name for name, _, _ in self.tried_first.values() if name)
        return self._narrowed_by(sorted({*self.narrowing_plugins, *tried}))

    @staticmethod
    def _narrowed_by(plugins: Iterable[str]) -> str:
        return f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}]"

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
                "Filter",
                f'running "{plugin.name}" filter plugin: '
                f'error reading "PreFilter{plugin.name}" from cycleState: not found',
            )
        with_nominated = False
        if self.node_names is not None:
            rows = np.sort(self.snapshot.nodes.rows_of(self._known_names(self.node_names)))
            if len(rows) <= thresholds().filtered_rows:
                self.filter_rows(rows)
            else:
                with_nominated = self._filter_all()
                self.own_verdicts()
                kept = np.isin(self.rows, rows)
                self.rows, self.stop = self.rows[kept], self.stop[kept]
                self.code, self.detail = self.code[kept], self.detail[kept]
        else:
            with_nominated = self._filter_all()
        if not with_nominated:
            self._filter_with_nominated_pods()
        if self.framework.run_all_filters:
            self._hear_all_filters()
        if limit is not None:
            self._cut(limit, start)
        joined = self._joined
        self.feasible = answers.passing(self.rows, self.stop) if joined is None else joined.feasible

    def filter_rows(self, rows: Rows) -> None:
        """Run Filter on some rows directly."""
        self.rows, self._tallied = rows, None
        try:
            self.stop, self.code, self.detail = answers.first_rejections(
                self.framework.filters.active(self.skipped_filters),
                self.filter_states,
                self.pod,
                self.snapshot.nodes,
                rows,
            )
        except PluginFailure:
            raise
        except Exception as error:
            raise filter_failure(error) from error
        self._raise_filter_errors()

    def filter_nominated_node(self, row: int) -> bool:
        """Whether the one node the pod is nominated to passes, with all rules for nominated pods."""
        self.filter_rows(np.array([row], np.intp))
        self._filter_with_nominated_pods()
        self.feasible = answers.passing(self.rows, self.stop)
        return bool(len(self.feasible))

    def look_at_all_nodes(self) -> None:
        """Undo the trial of the nominated node; the node's verdict is kept until another replaces it."""
        known = [(place, row) for place, row in enumerate(self.rows.tolist())]
        said = {row: words for place, row in known if (words := self.verdict(place)) is not None}
        self.tried_first = said | {row: words for row, words in self.explicit.items() if row >= 0}
        self.explicit = {}

    def _standing_first_words(self) -> dict[int, tuple[str, Code, tuple[str, ...]]]:
        """Those of `tried_first` that nothing said later has taken the place of."""
        if not self.tried_first:
            return {}
        rejected = set(self.rows[self.stop < len(self.framework.filter)].tolist())
        return {
            row: words
            for row, words in self.tried_first.items()
            if row not in rejected and row not in self.explicit
        }

    def _known_names(self, names: Sequence[str]) -> list[str]:
        row_of, alive = self.snapshot.nodes.row_of, self.snapshot.nodes.alive
        return [name for name in names if name in row_of and alive[row_of[name]]]

    def _filter_all(self) -> bool:
        """Run Filter on all rows; True when nodes were tried with the pods nominated to them, too."""
        snapshot, take = self.snapshot, self.snapshot.take
        self._tallied = None
        try:
            nodes = snapshot.nodes
            spec = self._layer(self.framework.spec_filters, nodes.spec_journal)
            usage = self._layer(self.framework.usage_filters, nodes.usage_journal)
            self._spec_layer = spec
            self.rows = snapshot.rows
            key = None if self.nominated_pods() is None else self.row_key()
            if key is not None:
                layer = self._nominated_layer(key, spec, usage)
                # Copies: the layer itself goes on changing.
                self.stop, self.code = layer.stop[take].copy(), layer.code[take].copy()
                self.detail = layer.detail[take].copy()
                self._raise_filter_errors()
                return True
            joined = self._joined = self.framework.answers.joined(spec, usage, snapshot)
            self.stop, self.code, self.detail = joined.stop, joined.code, joined.detail
            for position, plugin in self.framework.cluster_filters.active(self.skipped_filters):
                reached = (self.stop > position).nonzero()[0]
                if not len(reached):
                    break
                rows = self.rows if len(reached) == len(self.rows) else self.rows[reached]
                verdicts = plugin.filter(self.filter_states.get(plugin.name), self.pod, snapshot.nodes, rows)
                rejected = verdicts.codes.nonzero()[0]
                if len(rejected):
                    self.own_verdicts()
                    places = reached[rejected]
                    self.stop[places] = position
                    self.code[places] = verdicts.codes[rejected]
                    self.detail[places] = 0 if verdicts.details is None else verdicts.details[rejected]
        except PluginFailure:
            raise
        except Exception as error:
            raise filter_failure(error) from error
        self._raise_filter_errors()
        return False

    def _nominated_layer(
        self, key: Hashable, spec: answers.Layer, usage: answers.Layer
    ) -> answers.NominatedLayer:
        """Rows beside their nominated pods, those looked at again that changed, or got such pods, since last time."""
        layer, nodes = self.framework.answers.nominated_layer(key), self.snapshot.nodes
        changed = self.rows_changed(layer.reader)
        if changed is None or len(layer.stop) != nodes.capacity:
            layer.forget(nodes.capacity)
            rows = self.snapshot.rows
        elif not changed:
            return layer
        else:
            rows = np.array(changed, np.intp)
            rows = rows[nodes.alive[rows]]
        layer.stop[rows], layer.code[rows], layer.detail[rows] = answers.first_of_two(spec, usage, rows)
        asked = rows[self.nominated_places(rows)]
        if len(asked):
            world = AttemptWorlds(self, asked)
            stop, code, detail = world.run_filters_beside_nominated(np.arange(len(asked)))
            fails = stop != answers.PASSES
            asked = asked[fails]
            layer.stop[asked], layer.code[asked], layer.detail[asked] = (
                stop[fails],
                code[fails],
                detail[fails],
            )
        return layer

    def _hear_all_filters(self) -> None:
        """Give every rejected row the reasons of all filters that reject it, in `explicit`.

        A row that cannot be helped by preemption in the eyes of one of them cannot be at all. Rows whose words come
        from beside nominated pods keep them.

        Raises
        ------
        PluginFailure
        """
        places = np.flatnonzero(self.stop < len(self.framework.filter))
        places = places[[int(row) not in self.explicit for row in self.rows[places].tolist()]]
        if not len(places):
            return
        pod, nodes, rows = self.pod, self.snapshot.nodes, self.rows[places]
        said: list[list[tuple[str, Code, tuple[str, ...]]]] = [[] for _ in places]
        for _, plugin in self.framework.filters.active(self.skipped_filters):
            state = self.filter_states.get(plugin.name)
            try:
                verdicts = plugin.filter(state, pod, nodes, rows)
                for index in np.flatnonzero(verdicts.codes).tolist():
                    code = Code(int(verdicts.codes[index]))
                    detail = 0 if verdicts.details is None else int(verdicts.details[index])
                    reasons = tuple(plugin.reasons(state, pod, nodes, int(rows[index]), code, detail))
                    said[index].append((plugin.name, code, reasons))
            except Exception as error:
                raise filter_failure(error) from error
        self.own_verdicts()
        hopeless = Code.UnschedulableAndUnresolvable
        for place, row, words in zip(places.tolist(), rows.tolist(), said, strict=True):
            codes = [code for _, code, _ in words]
            code = hopeless if hopeless in codes else codes[0]
            self.code[place] = code
            self.explicit[row] = (
                words[0][0],
                code,
                tuple(reason for _, _, given in words for reason in given),
            )
            self.also_rejecting.update(dict.fromkeys(name for name, _, _ in words))

    def _layer(self, filters: answers.FilterGroup, journal: Journal) -> answers.Layer:
        active, number = filters.number(self.pod, self.skipped_filters)
        layer = self.framework.answers.filter_layer((filters, number), journal)
        layer.refresh(active, self.filter_states, self.pod, self.snapshot)
        return layer

    def _raise_filter_errors(self) -> None:
        if self._joined is not None and not self._joined.has_errors:
            return
        is_error = self.code == _ERROR
        if np.count_nonzero(is_error):
            place = int(is_error.argmax())
            plugin = self.framework.filter[int(self.stop[place])]
            reasons = self._plugin_reasons(place)
            said = f'running "{plugin.name}" filter plugin: {", ".join(reasons)}'
            raise PluginFailure(plugin.name, "Filter", said)

    def _filter_with_nominated_pods(self) -> None:
        """Nodes with nominated pods of equal or higher priority must fit the pod with and without these.

        Source: framework.go RunFilterPluginsWithNominatedPods, v1.34
        """
        places = self.nominated_places(self.rows)
        if not len(places):
            return
        world = AttemptWorlds(self, self.rows[places])
        rows = np.arange(len(places), dtype=np.intp)
        stop, code, detail = verdicts = world.run_filters_with_nominated(rows)
        rejections, statuses = world.told(rows, verdicts)
        words = [(status.plugin, status.code, status.reasons) for status in statuses]
        pairs = zip(self.rows[places].tolist(), rejections.tolist(), strict=True)
        self.explicit.update({row: words[rejection] for row, rejection in pairs if rejection >= 0})
        self.own_verdicts()
        self.stop[places], self.code[places], self.detail[places] = stop, code, detail
        self._raise_filter_errors()

    def own_verdicts(self) -> None:
        """Called before `stop`, `code` or `detail` are written to: they may be shared with other cycles."""
        self._tallied = None
        if self._joined is not None:
            self._joined = None
            self.stop, self.code, self.detail = self.stop.copy(), self.code.copy(), self.detail.copy()

    _joined: answers.JoinedLayers | None = None
    """Whose arrays `rows`, `stop`, `code` and `detail` are, where they are shared."""

    def nominated_pods(self) -> NominatedPods | None:
        """Nominated pods as columns; None without any."""
        self.framework.nominated_pods.refresh(self.snapshot.generation)
        return self.framework.nominated_pods if len(self.framework.handle.nominator) else None

    def nominated_places(self, rows: Rows) -> NDArray[np.intp]:
        """Places in `rows`, ascending, of nodes with a nominated pod that counts for this one."""
        nominated = self.nominated_pods()
        if nominated is None:
            return rows[:0]
        indices, _, _ = nominated.counted_on(self.pod, rows)
        return np.unique(indices) if len(indices) > 1 else indices

    def row_key(self) -> Hashable | None:
        """What a filter's answer about a row depends on besides that row, its pods and those nominated to it.

        Two attempts with the same key get the same answers, in worlds with pods taken off or put on too. None where
        other rows matter, or where the pod itself is nominated to a node: on that row it does not count itself.
        """
        if self.framework.nominated_pods.row_of(self.pod.uid) >= 0:
            return None
        active, number = self.framework.filters.number(self.pod, self.skipped_filters)
        if any(plugin.filter_reads is _CLUSTER for _, plugin in active):
            return None
        return self.pod.priority, number

    def rows_changed(self, reader: JournalReader) -> list[int] | None:
        """Rows that changed, or got nominated pods, since the reader was used last; None for all of them."""
        nodes, nominated = self.snapshot.nodes, self.framework.nominated_pods
        most = thresholds().most_changes(len(self.snapshot.rows))
        return reader.changed((nodes.usage_journal, nominated.journal), most)

    def _cut(self, limit: int, start: int) -> None:
        """Forget nodes after the `limit`-th feasible one in evaluation order from `start` on."""
        if int((self.stop == answers.PASSES).sum()) <= limit:
            return
        self.own_verdicts()
        n_nodes = len(self.snapshot.order)
        turn = (self.snapshot.rank[self.rows] - start) % n_nodes
        by_turn = np.argsort(turn)
        passed = np.cumsum(self.stop[by_turn] == answers.PASSES)
        last = int(np.searchsorted(passed, limit))
        self.stop[by_turn[last + 1 :]] = NOT_EVALUATED

    def passes_spec(self, rows: Rows) -> NDArray[np.bool_]:
        """Which rows are known to pass the filters that look at the node object alone."""
        if self._spec_layer is None:
            return np.zeros(len(rows), np.bool_)
        passes: NDArray[np.bool_] = self._spec_layer.stop[rows] == answers.PASSES
        return passes

    _spec_layer: answers.Layer | None = None

    # ---- reading verdicts

    def rejected_rows(self, code: Code) -> Rows:
        """Rows whose verdict has this code, in evaluation order; a rejection by PreFilter is about every row."""
        if not self.pre_filter_status.is_success:
            return self.snapshot.order if self.pre_filter_status.code is code else self.snapshot.order[:0]
        first = [row for row, words in self._standing_first_words().items() if words[1] is code]
        if first:
            # Few cycles come here: a nominated node outside of PreFilter's names.
            rejected = [*self._rejected_rows(code).tolist(), *first]
            in_order: Rows = self.snapshot.order[np.isin(self.snapshot.order, rejected)]
            return in_order
        if self._joined is None:
            return self._rejected_rows(code)
        kept = self._joined.rejected.get(code)
        if kept is None:
            kept = self._joined.rejected[code] = self._rejected_rows(code)
        return kept

    def _rejected_rows(self, code: Code) -> Rows:
        places = (self.stop != answers.PASSES) & (self.stop != NOT_EVALUATED) & (self.code == code)
        snapshot = self.snapshot
        if np.count_nonzero(places) == len(snapshot.order) and self.rows is snapshot.rows:
            return snapshot.order
        if self.rows is snapshot.rows and isinstance(snapshot.take, slice):
            # Without holes in the table a row is its own place.
            is_rejected = places
        else:
            is_rejected = np.zeros(snapshot.nodes.capacity, np.bool_)
            is_rejected[self.rows[places]] = True
        in_order: Rows = snapshot.order[is_rejected[snapshot.order]]
        return in_order

    def code_of(self, node_name: str) -> Code:
        """The verdict on one node; a node that was not filtered, or is not there, is not resolvable."""
        if not self.pre_filter_status.is_success:
            return self.pre_filter_status.code
        row = self.snapshot.nodes.row_of.get(node_name, -1)
        first = self._standing_first_words().get(row)
        if first is not None:
            return first[1]
        places = ((self.rows == row) & (self.stop != NOT_EVALUATED)).nonzero()[0]
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
        if stop in (answers.PASSES, NOT_EVALUATED):
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
        # Many rows share one value.
        words = [*self.explicit.values(), *self._standing_first_words().values()]
        shared = {id(said): said for said in words}
        for key, amount in Counter(map(id, words)).items():
            for reason in shared[key][2]:
                counts[reason] = counts.get(reason, 0) + amount
        for place, amount in self._tally():
            for reason in self._plugin_reasons(place):
                counts[reason] = counts.get(reason, 0) + amount
        return counts

    def rejecting_plugins(self) -> tuple[str, ...]:
        """Plugins that rejected some node or the pod as a whole, in order of first appearance."""
        names = dict.fromkeys(self.narrowing_plugins)
        if self.pre_filter_status.plugin and not self.pre_filter_status.is_success:
            names[self.pre_filter_status.plugin] = None
        for position in self._rejecting_positions():
            names[self.framework.filter[position].name] = None
        for name, _, _ in {id(words): words for words in self.explicit.values()}.values():
            if name:
                names[name] = None
        names.update(self.also_rejecting)
        # Whatever rejected the nominated node counts, even where the node was looked at again.
        names.update(dict.fromkeys(name for name, _, _ in self.tried_first.values() if name))
        if self.extenders_took_nodes:
            names[EXTENDER_NAME] = None
        return tuple(names)

    @property
    def n_statuses(self) -> int:
        """Number of nodes with their own status: infeasible ones that neither PreFilter nor an extender left out."""
        own_words = len(self.explicit) + len(self._standing_first_words())
        return sum(amount for _, amount in self._tally()) + own_words

    def _rejecting_positions(self) -> list[int]:
        """Places in the filter order of the plugins that rejected some node, ascending."""
        # A node with words of its own was rejected by a plugin all the same.
        by_plugins = self.stop < len(self.framework.filter)
        tallied = tally(by_plugins, self.stop) if self.explicit else self._tally()
        return sorted({int(self.stop[place]) for place, _ in tallied})

    def _tally(self) -> list[tuple[int, int]]:
        """First row and count of each verdict of a plugin, without nodes that have other messages."""
        if self._joined is not None and not self.explicit:
            return self._joined.tally()
        if self._tallied is None:
            among = self.stop < len(self.framework.filter)
            if self.explicit:
                among &= ~np.isin(self.rows, np.fromiter(self.explicit, np.intp))
            self._tallied = tally(among, self.stop, self.code, self.detail)
        return self._tallied

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

    def what_if(self, rows: Rows) -> AttemptWorlds:
        """The given rows, each as a separate world."""
        return AttemptWorlds(self, rows)

    # ---- Score

    def run_pre_score(self) -> None:
        """Have score plugins prepare for the feasible rows; fills `skipped_scores` and `score_states`."""
        pod, snapshot, rows = self.pod, self.snapshot, self.feasible
        for pre_scorer in self.framework.pre_score:
            try:
                result: fw.PreScoreResult[Any] = pre_scorer.pre_score(pod, snapshot, rows)
            except PluginFailure:
                raise
            except Exception as error:
                raise failure_of(pre_scorer, "PreScore", error) from error
            code = result.status.code
            if code is _SKIP:
                self.skipped_scores[pre_scorer.name] = None
            elif code is not _SUCCESS:
                said = f'running PreScore plugin "{pre_scorer.name}": {result.status.message}'
                raise PluginFailure(pre_scorer.name, "PreScore", said)
            else:
                self.score_states[pre_scorer.name] = result.state

    def run_score(self) -> None:
        """Score the feasible rows, after `run_pre_score`.

        Fills `raw_scores`, `scores` and `total`, all aligned with `feasible`.
        """
        snapshot, rows = self.snapshot, self.feasible
        framework = self.framework
        for stateless in framework.stateless_scores:
            raise PluginFailure(
                stateless.name,
                "Score",
                f'running Score plugins: plugin "{stateless.name}" failed with: '
                f'reading "PreScore{stateless.name}" from cycleState: not found',
            )
        kept: list[tuple[fw.ScorePlugin[Any], int]] = []
        key: list[Hashable] = []
        total: fw.Scores | None = None
        for plugin in framework.score:
            name = plugin.name
            if name in self.skipped_scores:
                continue
            weight = framework.weights[name]
            # What it reads of the pod where its answers hold beyond this cycle; None where they do not.
            sign = None if plugin.score_reads is _CLUSTER or self.guests else plugin.sign(self.pod)
            if sign is not None and not plugin.normalizes:
                kept.append((plugin, weight))
                key += (name, sign)
                continue
            points = self._points(plugin, weight, sign)
            if points is not None:
                total = points if total is None else total + points
        if kept:
            layer = self._score_layer(tuple(key), kept)
            by_layer = layer.total[snapshot.take] if rows is snapshot.rows else layer.total.take(rows)
            # A copy: the layer itself goes on changing.
            total = by_layer.copy() if total is None else total + by_layer
            self._kept_scores = (kept, layer, rows)
        self.total = np.zeros(len(rows), np.int64) if total is None else total

    _kept_scores: tuple[list[tuple[fw.ScorePlugin[Any], int]], answers.ScoreLayer, Rows] | None = None

    def gather_scores(self) -> None:
        """Put the scores that came from kept answers into `raw_scores` and `scores`, for a full trace."""
        if self._kept_scores is not None:
            kept, layer, rows = self._kept_scores
            for index, (plugin, _) in enumerate(kept):
                self.raw_scores[plugin.name] = self.scores[plugin.name] = layer.raw[index, rows]

    def _points(self, plugin: fw.ScorePlugin[Any], weight: int, sign: Hashable | None) -> fw.Scores | None:
        """What a plugin adds to the totals; None for nothing. Fills `raw_scores` and `scores`.

        `sign` says what it reads of the pod; None where its answers hold in this cycle alone.
        """
        pod, nodes, rows, name = self.pod, self.snapshot.nodes, self.feasible, plugin.name
        state = self.score_states.get(name)
        layer: answers.ScoreLayer | None = None
        # Answers are kept for nodes of the cluster only.
        if sign is None:
            raw = guarded(plugin, "Score", plugin.score, state, pod, nodes, rows)
        else:
            layer = self._score_layer((name, sign), [(plugin, 1)])
            if layer.points is not None and layer.points[0] is rows:
                # The same rows and the same answers as in the cycle before: the same points.
                _, self.raw_scores[name], self.scores[name], points = layer.points
                return points
            raw = layer.total.take(rows)
        scores = raw
        if plugin.normalizes:
            scores = guarded(plugin, "Score", plugin.normalize, state, pod, nodes, rows, raw)
        self.raw_scores[name], self.scores[name] = raw, scores
        points = None
        if np.count_nonzero(scores):
            self._check_scores(plugin, scores)
            points = weight * scores
        if layer is not None:
            layer.points = (rows, raw, scores, points)
        return points

    def _score_layer(
        self, key: Hashable, plugins: list[tuple[fw.ScorePlugin[Any], int]]
    ) -> answers.ScoreLayer:
        """The layer of plugins whose names and signs are the key, up to date."""
        layer = self.framework.answers.score_layer(key, plugins)
        guarded(plugins[0][0], "Score", layer.refresh, plugins, self.score_states, self.pod, self.snapshot)
        return layer

    def _check_scores(self, plugin: fw.ScorePlugin[Any], scores: fw.Scores) -> None:
        if len(scores) and (int(scores.max()) > 100 or int(scores.min()) < 0):
            place = int(np.flatnonzero((scores > 100) | (scores < 0))[0])
            raise invalid_score(plugin, int(scores[place]))


# --- Rows of an attempt in worlds of their own: what preemption and nominated pods ask about.


class AttemptWorlds:
    """Some rows of an attempt, each a separate world, with every filter plugin's state for them.

    Parameters
    ----------
    attempt : Attempt
    rows : ndarray of shape (n,), intp
        Rows of the cluster; row k of the world is `rows[k]`.
    """

    def __init__(self, attempt: Attempt, rows: Rows) -> None:
        self.attempt = attempt
        self.nodes = WhatIf(attempt.snapshot.nodes, rows)
        active = attempt.framework.filters.in_worlds(attempt.skipped_filters)
        self._filters, self._movable_filters, self._moving = active.filters, active.movable, active.moving
        self.states: dict[str, Any] = dict(attempt.filter_states)
        for plugin in active.forked:
            self.states[plugin.name] = plugin.fork(self.states.get(plugin.name), self.nodes)
        self._fits_spec = attempt.passes_spec(rows)
        """Rows known to pass the plugins that look at the node object alone: nothing here can change that."""
        self._nominated_rows = self._nominated_ids = self._nominated_turns = rows[:0]
        """Nominated pods that count: their rows here, their ids, their turns among those of a row."""
        nominated = attempt.nominated_pods()
        if nominated is not None:
            counted = nominated.counted_on(attempt.pod, rows)
            self._nominated_rows, self._nominated_ids, self._nominated_turns = counted
        self._has_nominated = np.zeros(len(rows), np.bool_)
        self._has_nominated[self._nominated_rows] = True

    def add_pods(self, rows: Rows, pod_ids: NDArray[np.intp]) -> None:
        """Pod `pod_ids[i]` comes to row `rows[i]`; no row twice in one call."""
        self.nodes.add_pods(rows, pod_ids)
        for plugin in self._moving:
            plugin.add_pods(self.states[plugin.name], self.attempt.pod, self.nodes, rows, pod_ids)

    def remove_pods(self, rows: Rows, pod_ids: NDArray[np.intp]) -> None:
        """Pod `pod_ids[i]` leaves row `rows[i]`; no row twice in one call."""
        self.nodes.remove_pods(rows, pod_ids)
        for plugin in self._moving:
            plugin.remove_pods(self.states[plugin.name], self.attempt.pod, self.nodes, rows, pod_ids)

    def remove_all(self, starts: NDArray[np.intp], pod_ids: NDArray[np.intp]) -> None:
        """Pods `pod_ids[starts[k] : starts[k + 1]]` leave row k, every row at least one."""
        if not self._moving and not self.nodes.pods.has_ports[pod_ids].any():
            self.nodes.remove_all(starts, pod_ids)
            return
        counts = starts[1:] - starts[:-1]
        for turn in range(int(counts.max())):
            rows = (counts > turn).nonzero()[0]
            self.remove_pods(rows, pod_ids[starts[:-1][rows] + turn])

    def feasible(self, rows: Rows) -> NDArray[np.bool_]:
        """Which of the world's `rows` the pod fits, nominated pods counted in and out."""
        stop, _, _ = self.run_filters(rows)
        fits: NDArray[np.bool_] = stop == answers.PASSES
        # A row that does not fit without the nominated pods need not be asked with them.
        places = (fits & self._has_nominated[rows]).nonzero()[0]
        if len(places):
            stop, _, _ = self.run_filters_beside_nominated(rows[places])
            fits[places] = stop == answers.PASSES
        return fits

    def rejections(self, rows: Rows) -> tuple[NDArray[np.int64], list[Status]]:
        """Like `feasible`, with the reasons: for each row -1 or an index into the list of distinct rejections."""
        return self.told(rows, self.run_filters_with_nominated(rows))

    def told(self, rows: Rows, verdicts: answers.Rejections) -> tuple[NDArray[np.int64], list[Status]]:
        """Verdicts (stop, code, detail) of `rows` in the form of `rejections`."""
        stop, code, detail = verdicts
        result = np.full(len(rows), -1, np.int64)
        statuses: list[Status] = []
        rejected = (stop != answers.PASSES).nonzero()[0]
        if len(rejected):
            first, group = distinct(stop[rejected], code[rejected], detail[rejected])
            result[rejected] = group
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

    def run_filters(self, rows: Rows) -> answers.Rejections:
        """(stop, code, detail) of the current world, as in `Attempt`."""
        known = bool(self._fits_spec[rows].all())
        filters = self._movable_filters if known else self._filters
        try:
            found = answers.first_rejections(filters, self.states, self.attempt.pod, self.nodes, rows)
        except PluginFailure:
            raise
        except Exception as error:
            raise filter_failure(error) from error
        if not known:
            self._fits_spec[rows] |= found[0] == answers.PASSES
        return found

    def run_filters_with_nominated(self, rows: Rows) -> answers.Rejections:
        """(stop, code, detail), first with nominated pods of equal or higher priority, then without them."""
        stop, code, detail = self.run_filters(rows)
        places = self._has_nominated[rows].nonzero()[0]
        if len(places):
            with_stop, with_code, with_detail = self.run_filters_beside_nominated(rows[places])
            fails = with_stop != answers.PASSES
            stop[places[fails]] = with_stop[fails]
            code[places[fails]] = with_code[fails]
            detail[places[fails]] = with_detail[fails]
        return stop, code, detail

    def run_filters_beside_nominated(self, rows: Rows) -> answers.Rejections:
        """(stop, code, detail) as if the pods nominated to each of `rows` ran there."""
        nominated, pod_ids, turns = self._nominated_rows, self._nominated_ids, self._nominated_turns
        if len(rows) < len(self.nodes.base_rows):
            is_asked = np.zeros(len(self.nodes.base_rows), np.bool_)
            is_asked[rows] = True
            asked = is_asked[nominated]
            nominated, pod_ids, turns = nominated[asked], pod_ids[asked], turns[asked]
        n_turns = max(turns.tolist()) + 1
        moves = [(nominated, pod_ids)]
        if n_turns > 1:
            moves = [(nominated[turns == turn], pod_ids[turns == turn]) for turn in range(n_turns)]
        ports = self.nodes.ports_in_use()
        for move in moves:
            self.add_pods(*move)
        found = self.run_filters(rows)
        for move in reversed(moves):
            self.remove_pods(*move)
        self.nodes.restore_ports(ports)
        return found
