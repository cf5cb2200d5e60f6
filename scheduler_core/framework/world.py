"""Rows of an attempt in worlds of their own: what preemption and nominated pods ask about."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.node_table import Rows
from scheduler_core.cluster.what_if import WhatIf
from scheduler_core.framework.answers import PASSES, first_rejections
from scheduler_core.framework.distinct import distinct
from scheduler_core.framework.failure import PluginFailure, filter_failure
from scheduler_core.framework.filtering import Filtering
from scheduler_core.framework.status import Code, Status


class AttemptWorlds:
    """Some rows of an attempt, each in a world of its own, with every filter plugin's state for them.

    Parameters
    ----------
    attempt : Filtering
    rows : ndarray of shape (n,), int64
        Rows of the cluster; row k of the world is `rows[k]`.
    """

    def __init__(self, attempt: Filtering, rows: Rows) -> None:
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

    def remove_all(self, starts: NDArray[np.int64], pod_ids: NDArray[np.int64]) -> None:
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
        fits: NDArray[np.bool_] = stop == PASSES
        # A row that does not fit without the nominated pods need not be asked with them.
        places = (fits & self._has_nominated[rows]).nonzero()[0]
        if len(places):
            stop, _, _ = self.run_filters_beside_nominated(rows[places])
            fits[places] = stop == PASSES
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
        rejected = (stop != PASSES).nonzero()[0]
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

    def run_filters(self, rows: Rows) -> tuple[NDArray[np.int8], NDArray[np.int8], NDArray[np.int64]]:
        """(stop, code, detail) of the world as it stands, as in `Attempt`."""
        known = bool(self._fits_spec[rows].all())
        filters = self._movable_filters if known else self._filters
        try:
            found = first_rejections(filters, self.states, self.attempt.pod, self.nodes, rows)
        except PluginFailure:
            raise
        except Exception as error:
            raise filter_failure(error) from error
        if not known:
            self._fits_spec[rows] |= found[0] == PASSES
        return found

    def run_filters_with_nominated(
        self, rows: Rows
    ) -> tuple[NDArray[np.int8], NDArray[np.int8], NDArray[np.int64]]:
        """(stop, code, detail), first with nominated pods of equal or higher priority, then without them."""
        stop, code, detail = self.run_filters(rows)
        places = self._has_nominated[rows].nonzero()[0]
        if len(places):
            with_stop, with_code, with_detail = self.run_filters_beside_nominated(rows[places])
            fails = with_stop != PASSES
            stop[places[fails]] = with_stop[fails]
            code[places[fails]] = with_code[fails]
            detail[places[fails]] = with_detail[fails]
        return stop, code, detail

    def run_filters_beside_nominated(
        self, rows: Rows
    ) -> tuple[NDArray[np.int8], NDArray[np.int8], NDArray[np.int64]]:
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
