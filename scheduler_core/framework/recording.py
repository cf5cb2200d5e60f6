"""Fills in the body of a record while the cycle's arrays are there: plugins may be asked once more for the matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scheduler_core.framework.amounts import packed
from scheduler_core.framework.answers import PASSES
from scheduler_core.framework.attempt import EXTENDER, NOT_EVALUATED, Attempt
from scheduler_core.framework.distinct import distinct
from scheduler_core.framework.domain_lanes import lanes_of
from scheduler_core.framework.failure import PluginFailure
from scheduler_core.framework.interface import PreFilterPlugin
from scheduler_core.framework.record import FEASIBLE, UNSEEN, Body, CycleTrace
from scheduler_core.framework.status import Code, Status

Verdict = tuple[str | None, str, tuple[str, ...]]
"""(plugin, code, reasons)."""


class VerdictTable:
    """Distinct verdicts, so that a column can hold numbers."""

    def __init__(self) -> None:
        self._ids: dict[Verdict, int] = {}

    def id(self, plugin: str | None, code: str, reasons: tuple[str, ...]) -> int:
        return self._ids.setdefault((plugin, code, reasons), len(self._ids))

    def entries(self) -> list[list[Any]]:
        return [[plugin, code, list(reasons)] for plugin, code, reasons in self._ids]


def record_body(attempt: Attempt, trace: CycleTrace, best: Sequence[str] | None, *, matrix: bool) -> None:
    """Fill in the body of a trace.

    Parameters
    ----------
    attempt : Attempt
        Before the cluster changes: plugins may be asked for the full matrix.
    best : sequence of str or None
        Nodes with the best total.
    matrix : bool
        Whether every filter plugin is asked about every node (`filterByPlugin`).
    """
    snapshot, framework = attempt.snapshot, attempt.framework
    table = VerdictTable()
    order = snapshot.order
    place_of_row = np.full(snapshot.nodes.capacity, -1, np.intp)
    place_of_row[order] = np.arange(len(order))
    status = attempt.pre_filter_status
    names = snapshot.names()
    for row, name in attempt.guests.items():
        # Node objects out of an extender's answer: known by name, or shown after the cluster's own.
        known = snapshot.nodes.row_of.get(name, -1)
        if known >= 0 and place_of_row[known] >= 0:
            place_of_row[row] = place_of_row[known]
        else:
            place_of_row[row] = len(names)
            names.append(name)
    filter_names = {plugin.name for plugin in framework.filter}
    body = trace.body = Body(
        nodes=names,
        pre_filter={
            "plugin": status.plugin or None,
            "code": status.code.name,
            "reasons": sorted(status.reasons),
            "nodeNames": None if attempt.node_names is None else sorted(attempt.node_names),
        },
        filter_plugins=[plugin.name for plugin in framework.filter],
        score_plugins=[plugin.name for plugin in framework.score],
        skipped_filter=[name for name in attempt.skipped_filters if name in filter_names],
        skipped_score=[plugin.name for plugin in framework.score if plugin.name in attempt.skipped_scores],
        weights=dict(framework.weights),
    )

    verdict = np.full(len(names), UNSEEN, np.int32)
    if status.is_success:
        if attempt.node_names is not None:
            verdict[: len(order)] = table.id(
                None, Code.UnschedulableAndUnresolvable.name, (attempt.narrowed_reason,)
            )
        verdict[place_of_row[attempt.rows]] = _verdict_ids(attempt, table)
    # By place: in which row of the table a node lies is chance, and other after a checkpoint.
    feasible_places = place_of_row[attempt.feasible]
    by_place = np.argsort(feasible_places)
    body.arrays["verdict"] = verdict
    body.arrays["feasible"] = feasible_places[by_place].astype(np.int32)
    body.choose(best)
    if len(attempt.total) == len(attempt.feasible) and len(attempt.total):
        attempt.gather_scores()
        scored = [plugin.name for plugin in framework.score if plugin.name in attempt.scores]
        body.scored_plugins = scored
        shape = (len(scored), len(attempt.feasible))
        raw = np.array([attempt.raw_scores[name] for name in scored], np.int64).reshape(shape)
        scores = np.array([attempt.scores[name] for name in scored], np.int64).reshape(shape)
        body.arrays |= {
            "raw": raw[:, by_place],
            "scores": scores[:, by_place],
            "total": attempt.total[by_place],
        }
    body.nominated_passes = two_passes(attempt)
    if matrix:
        states = _record_matrix(attempt, body, table, place_of_row)
        body.domains = _domain_lanes(attempt, states, trace.node)
    body.verdicts = _numbered_by_place(body, table)


def _numbered_by_place(body: Body, table: VerdictTable) -> list[list[Any]]:
    """The verdicts in the order in which the arrays, read by place, come to them; the arrays' ids follow."""
    entries = table.entries()
    if len(entries) > 1:
        arrays = [name for name in ("verdict", "matrix") if name in body.arrays]
        flat = np.concatenate([body.arrays[name].ravel() for name in arrays])
        used, first = np.unique(flat[flat >= 0], return_index=True)
        met = used[np.argsort(first)]
        new_id = np.full(len(entries), -1, np.int32)
        new_id[met] = np.arange(len(met))
        for name in arrays:
            ids = body.arrays[name]
            body.arrays[name] = np.where(ids >= 0, new_id[ids], ids).astype(np.int32)
        entries = [entries[index] for index in met.tolist()]
    return entries


def _verdict_ids(attempt: Attempt, table: VerdictTable) -> NDArray[np.int32]:
    """Ids in `table` of the attempt's verdicts, aligned with its rows."""
    ids = np.full(len(attempt.rows), FEASIBLE, np.int32)
    ids[attempt.stop == NOT_EVALUATED] = UNSEEN
    silent = (attempt.stop == PASSES) | (attempt.stop == NOT_EVALUATED)
    place_of = {row: place for place, row in enumerate(attempt.rows.tolist())} if attempt.explicit else {}
    for row, (plugin, code, reasons) in attempt.explicit.items():
        place = place_of.get(row)
        if place is not None:
            silent[place] = True
            ids[place] = table.id(plugin or None, code.name, reasons)
    places = np.flatnonzero(~silent & (attempt.stop != EXTENDER))
    if len(places):
        first, group = distinct(attempt.stop[places], attempt.code[places], attempt.detail[places])
        known = []
        for index in first.tolist():
            found = attempt.verdict(int(places[index]))
            if found is None:
                raise AssertionError("a rejected row has a verdict")
            known.append(table.id(found[0], found[1].name, found[2]))
        ids[places] = np.array(known, np.int32)[group]
    return ids


def _record_matrix(
    attempt: Attempt, body: Body, table: VerdictTable, place_of_row: NDArray[np.intp]
) -> dict[str, Any]:
    """Every filter plugin alone: its PreFilter, then its Filter on every node, without nominated pods; their states."""
    framework, snapshot, pod = attempt.framework, attempt.snapshot, attempt.pod
    notes: dict[str, Any] = {}
    states: dict[str, Any] = {}
    amounts: list[list[Any]] = []
    lines: list[NDArray[np.int64]] = []
    columns = []
    names = []
    n_places = len(body.nodes)
    skipped = []
    for plugin in framework.filter:
        column = np.full(n_places, FEASIBLE, np.int32)
        state: Any = None
        result = None
        if plugin in framework.stateless_filters:
            continue
        if isinstance(plugin, PreFilterPlugin) and plugin in framework.pre_filter:
            result = plugin.pre_filter(pod, snapshot)
            if result.status.is_skip:
                skipped.append(plugin.name)
                continue
        names.append(plugin.name)
        columns.append(column)
        if result is not None:
            if not result.status.is_success:
                notes[plugin.name] = {
                    "preFilter": {"code": result.status.code.name, "reasons": sorted(result.status.reasons)}
                }
                continue
            if result.node_names is not None:
                notes[plugin.name] = {"nodeNames": sorted(result.node_names)}
            state = result.state
        states[plugin.name] = state
        verdicts = plugin.filter(state, pod, snapshot.nodes, snapshot.rows)
        rejected = np.flatnonzero(verdicts.codes)
        if not len(rejected):
            continue
        details = np.zeros(len(snapshot.rows), np.int64) if verdicts.details is None else verdicts.details
        first, group = distinct(verdicts.codes[rejected], details[rejected])
        ids = []
        for index in first.tolist():
            place = int(rejected[index])
            code = Code(int(verdicts.codes[place]))
            row = int(snapshot.rows[place])
            reasons = plugin.reasons(state, pod, snapshot.nodes, row, code, int(details[place]))
            ids.append(table.id(plugin.name, code.name, reasons))
        column[place_of_row[snapshot.rows[rejected]]] = np.array(ids, np.int32)[group]
        sentences, plugins_lines = packed(
            plugin.compare(state, pod, snapshot), place_of_row[snapshot.rows], n_places
        )
        if sentences:
            amounts.append([plugin.name, sentences, len(plugins_lines)])
            lines += plugins_lines
    # A rejection ends PreFilter early; asked alone, the plugins after it say whether they would have skipped.
    body.skipped_filter = skipped
    body.matrix_plugins = names
    body.matrix_notes = notes
    if amounts:
        body.amounts = amounts
        body.arrays["amounts"] = np.stack(lines)
    body.arrays["matrix"] = np.array(columns, np.int32).reshape(len(columns), n_places)
    return states


def _domain_lanes(attempt: Attempt, states: Mapping[str, Any], chosen: str | None) -> list[dict[str, Any]]:
    """The rules of a cycle, those that filter first; `states` are those of filters by plugin."""
    framework, snapshot, pod = attempt.framework, attempt.snapshot, attempt.pod
    row = -1 if chosen is None else snapshot.nodes.row_of.get(chosen, -1)
    found = [
        lanes_of(rule, plugin.name, snapshot, attempt.feasible, None, row)
        for plugin in framework.filter
        if plugin.name in states
        for rule in plugin.filter_domains(states[plugin.name], pod, snapshot)
    ]
    if len(attempt.total) and len(attempt.total) == len(attempt.feasible):
        found += [
            lanes_of(rule, plugin.name, snapshot, attempt.feasible, attempt.scores[plugin.name], row)
            for plugin in framework.score
            if plugin.name in attempt.scores and plugin.name in attempt.score_states
            for rule in plugin.score_domains(attempt.score_states[plugin.name], pod, snapshot)
        ]
    return found


# --- The two Filter passes over nodes with nominated pods, side by side, for the reader of a cycle.


Document = dict[str, Any]

MOST_NODES = 200
WITH, WITHOUT, BOTH = "with", "without", "both"


def two_passes(attempt: Attempt) -> Document | None:
    """What both passes said; to be called before the cluster changes.

    Returns
    -------
    dict or None
        None where no node has nominated pods that count, else `count`, the number of such nodes that were filtered,
        and `nodes`, `MOST_NODES` of them at most: {node, pods, with, without, failsIn}. pods are those nominated;
        with and without are a verdict {plugin, code, reasons}, or null for a pass that holds; failsIn is ``with``,
        ``without``, ``both`` or null. Nodes that fail in one pass alone come first.
    """
    places = attempt.nominated_places(attempt.rows)
    if not attempt.pre_filter_status.is_success or not len(places):
        return None
    rows = attempt.rows[places]
    every = np.arange(len(rows))
    try:
        world = attempt.what_if(rows)
        without, without_statuses = world.told(every, world.run_filters(every))
        beside, beside_statuses = world.told(every, world.run_filters_beside_nominated(every))
    except PluginFailure:
        # The cycle itself has ended with that error.
        return None
    snapshot = attempt.snapshot
    pods: dict[int, list[str]] = {}
    nominated = attempt.nominated_pods()
    assert nominated is not None
    indices, pod_ids, _ = nominated.counted_on(attempt.pod, rows)
    for index, pod_id in zip(indices.tolist(), pod_ids.tolist(), strict=True):
        pods.setdefault(index, []).append(snapshot.pods[pod_id].key)
    nodes: list[Document] = []
    for index, row in enumerate(rows.tolist()):
        first = _verdict(int(beside[index]), beside_statuses)
        second = _verdict(int(without[index]), without_statuses)
        fails_in = BOTH if first and second else WITH if first else WITHOUT if second else None
        nodes.append(
            {
                "node": snapshot.nodes.name(row),
                "pods": sorted(pods.get(index, ())),
                "with": first,
                "without": second,
                "failsIn": fails_in,
            }
        )
    turn: dict[str | None, int] = {WITHOUT: 0, WITH: 0, BOTH: 1, None: 2}
    nodes.sort(key=lambda node: (turn[node["failsIn"]], node["node"]))
    return {"count": len(nodes), "nodes": nodes[:MOST_NODES]}


def _verdict(index: int, statuses: list[Status]) -> Document | None:
    if index < 0:
        return None
    status = statuses[index]
    return {"plugin": status.plugin or None, "code": status.code.name, "reasons": sorted(status.reasons)}
