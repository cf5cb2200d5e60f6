"""What is kept of a scheduling cycle: arrays and a small table of verdicts; sentences are made when somebody looks.

A trace has a summary, which is always kept, and a body (every verdict, score and candidate), which is kept when it
is asked for. As bytes a trace is `zlib(version byte, header length, JSON header, arrays)`; the header names each
array's dtype and shape.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scheduler_core.framework.amounts import packed, unpacked
from scheduler_core.framework.answers import PASSES
from scheduler_core.framework.attempt import EXTENDER, NOT_EVALUATED, Attempt
from scheduler_core.framework.distinct import distinct
from scheduler_core.framework.failure import PluginFailure
from scheduler_core.framework.interface import PreFilterPlugin
from scheduler_core.framework.points import points
from scheduler_core.framework.status import Code
from scheduler_core.objects.fields import format_time_ns
from scheduler_core.version import EMULATES, ENGINE_VERSION

FORMAT_VERSION = 1

BOUND, UNSCHEDULABLE, PREEMPTING, WAITING, ERROR = "bound", "unschedulable", "preempting", "waiting", "error"

FEASIBLE = -1
"""In verdict columns: the node passes."""
UNSEEN = -2
"""In verdict columns: the node was not looked at."""

BESIDE_NOMINATED = "passes by itself, not beside the pods nominated there"

Verdict = tuple[str | None, str, tuple[str, ...]]
"""(plugin, code, reasons)."""


@dataclass(slots=True)
class CycleTrace:
    """One scheduling cycle.

    Attributes
    ----------
    header : dict
        JSON-able: the summary, and the small parts of the body.
    arrays : dict of str to ndarray
        The columns of the body; empty when only the summary is kept.
    """

    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)

    # ---- the summary

    @property
    def number(self) -> int:
        return int(self.header["cycle"])

    @property
    def at_ns(self) -> int:
        return int(self.header["atNs"])

    @property
    def pod(self) -> str:
        return str(self.header["pod"])

    @property
    def uid(self) -> str:
        return str(self.header["uid"])

    @property
    def profile(self) -> str:
        return str(self.header["profile"])

    @property
    def attempt(self) -> int:
        return int(self.header["attempt"])

    @property
    def outcome(self) -> str:
        return str(self.header["outcome"])

    @property
    def node(self) -> str | None:
        found: str | None = self.header["node"]
        return found

    @property
    def message(self) -> str | None:
        found: str | None = self.header["message"]
        return found

    @property
    def n_nodes(self) -> int:
        return int(self.header["nNodes"])

    @property
    def n_feasible(self) -> int:
        return int(self.header["nFeasible"])

    @property
    def n_viable(self) -> int:
        """Feasible nodes none of which scores higher than another; 0 where none is feasible."""
        tie = self.header.get("tie")
        if tie:
            return int(tie["count"])
        return 1 if self.header["node"] and self.n_feasible else 0

    @property
    def is_full(self) -> bool:
        """Whether the body is there."""
        return "verdict" in self.arrays

    @property
    def digest(self) -> str:
        """Hex digest of what was decided: the same decision has the same digest in every engine version."""
        decided = [
            self.header.get(key) for key in ("pod", "outcome", "node", "message", "victims", "nominatedNode")
        ]
        return hashlib.sha256(json.dumps(decided, separators=(",", ":")).encode()).hexdigest()

    # ---- bytes

    def to_bytes(self) -> bytes:
        """Versioned, compressed."""
        arrays = {name: np.ascontiguousarray(array) for name, array in self.arrays.items()}
        shapes = {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}
        header = json.dumps({**self.header, "arrays": shapes}, separators=(",", ":")).encode()
        parts = [bytes([FORMAT_VERSION]), len(header).to_bytes(4, "big"), header]
        parts.extend(array.tobytes() for array in arrays.values())
        return zlib.compress(b"".join(parts), 6)

    @classmethod
    def from_bytes(cls, data: bytes) -> CycleTrace:
        """Read what `to_bytes` wrote.

        Raises
        ------
        ValueError
            When the bytes are of an unknown version.
        """
        plain = zlib.decompress(data)
        if plain[0] != FORMAT_VERSION:
            raise ValueError(
                f"trace format {plain[0]} is not known to this engine (it reads {FORMAT_VERSION})"
            )
        length = int.from_bytes(plain[1:5], "big")
        header = json.loads(plain[5 : 5 + length])
        arrays: dict[str, NDArray[Any]] = {}
        offset = 5 + length
        for name, (dtype, shape) in header.pop("arrays").items():
            count = int(np.prod(shape, dtype=np.int64))
            arrays[name] = np.frombuffer(plain, dtype=dtype, count=count, offset=offset).reshape(shape)
            offset += count * np.dtype(dtype).itemsize
        return cls(header, arrays)

    # ---- words

    def explain(self) -> dict[str, Any]:
        """The explanation: JSON-able, the same words and shape for the API, the pages and conformance."""
        header = self.header
        result: dict[str, Any] = {
            "cycle": self.number,
            "pod": self.pod,
            "uid": self.uid,
            "profile": self.profile,
            "attempt": self.attempt,
            "at": format_time_ns(self.at_ns),
            "outcome": self.outcome,
            "sentence": sentence(header),
            "node": self.node,
            "nNodes": self.n_nodes,
            "nFeasible": self.n_feasible,
            "nViable": self.n_viable,
            "nodesEvaluated": header["nodesEvaluated"],
            "bestTotal": header.get("bestTotal"),
            "tie": header.get("tie"),
            "message": self.message,
            "fitError": header.get("fitError"),
            "error": header.get("error"),
            "failedPlugin": header.get("failedPlugin"),
            "victims": header.get("victims") or [],
            "nominatedNode": header.get("nominatedNode"),
            "points": points(header),
            "extenders": header.get("extenders") or [],
            "permit": header.get("permit") or [],
            "emulates": EMULATES,
            "engine": header.get("engine", ENGINE_VERSION),
            "digest": self.digest,
            "full": self.is_full,
        }
        if header.get("dryRun"):
            result["dryRun"] = True
        if self.is_full:
            result.update(self._body())
        return result

    def _body(self) -> dict[str, Any]:
        header, arrays = self.header, self.arrays
        names: list[str] = header["nodes"]
        verdicts: list[list[Any]] = header["verdicts"]
        pre_filter = header["preFilter"]
        rejected = pre_filter["code"] != Code.Success.name
        told = [_verdict(entry) for entry in verdicts]
        body: dict[str, Any] = {
            "nodes": names,
            "preFilter": pre_filter,
            "filterPlugins": header["filterPlugins"],
            "scorePlugins": header["scorePlugins"],
            "skippedFilter": header["skippedFilter"],
            "skippedScore": header["skippedScore"],
            "weights": header["weights"],
            "filter": None
            if rejected or not names
            else {
                name: None if index < 0 else told[index]
                for name, index in zip(names, arrays["verdict"].tolist(), strict=True)
                if index != UNSEEN
            },
            "feasible": sorted(names[place] for place in arrays["feasible"].tolist()),
            "rawScores": None,
            "scores": None,
            "total": None,
            "best": header["best"],
            "preemption": header.get("preemption"),
        }
        if "matrix" in arrays:
            body["filterByPlugin"] = self._filter_by_plugin(names, verdicts)
            body["amounts"] = self._amounts(names, body["filter"] or {}, body["filterByPlugin"])
        if "total" in arrays:
            feasible = [names[place] for place in arrays["feasible"].tolist()]
            body["total"] = dict(zip(feasible, arrays["total"].tolist(), strict=True))
            for key, column in (("rawScores", "raw"), ("scores", "scores")):
                body[key] = {
                    plugin: dict(zip(feasible, arrays[column][index].tolist(), strict=True))
                    for index, plugin in enumerate(header["scoredPlugins"])
                }
        return body

    def _filter_by_plugin(self, names: Sequence[str], verdicts: Sequence[Sequence[Any]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for row, plugin in enumerate(self.header["matrixPlugins"]):
            entry: dict[str, Any] = dict(self.header["matrixNotes"].get(plugin, {}))
            fails = {
                name: {"code": verdicts[index][1], "reasons": sorted(verdicts[index][2])}
                for name, index in zip(names, self.arrays["matrix"][row].tolist(), strict=True)
                if index >= 0
            }
            if fails:
                entry["fails"] = fails
            result[plugin] = entry
        return result

    def _amounts(
        self, names: Sequence[str], stops: Mapping[str, Any], alone: Mapping[str, Any]
    ) -> dict[str, dict[str, list[str]]]:
        """By plugin and node, the amounts behind each rejection of `filterByPlugin` that has any.

        A plugin that stopped a node it accepts alone did so for the pods nominated there.
        """
        result: dict[str, dict[str, list[str]]] = {}
        start = 0
        for plugin, sentences, n_lines in self.header.get("amounts", ()):
            lines = self.arrays["amounts"][start : start + n_lines]
            start += n_lines
            result[plugin] = unpacked(sentences, lines, names)
        for name, verdict in stops.items():
            found = alone.get(verdict["plugin"]) if verdict else None
            if found is not None and "preFilter" not in found and name not in found.get("fails", {}):
                result.setdefault(verdict["plugin"], {})[name] = [BESIDE_NOMINATED]
        return result


def _verdict(entry: Sequence[Any]) -> dict[str, Any]:
    plugin, code, reasons = entry
    return {"plugin": plugin, "code": code, "reasons": sorted(reasons)}


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
    place_of_row = np.full(snapshot.nodes.capacity, -1, np.int64)
    place_of_row[order] = np.arange(len(order))
    status = attempt.pre_filter_status
    header = trace.header
    names = header["nodes"] = snapshot.names()
    for row, name in attempt.guests.items():
        # Node objects out of an extender's answer: known by name, or shown after the cluster's own.
        known = snapshot.nodes.row_of.get(name, -1)
        if known >= 0 and place_of_row[known] >= 0:
            place_of_row[row] = place_of_row[known]
        else:
            place_of_row[row] = len(names)
            names.append(name)
    header["preFilter"] = {
        "plugin": status.plugin or None,
        "code": status.code.name,
        "reasons": sorted(status.reasons),
        "nodeNames": None if attempt.node_names is None else sorted(attempt.node_names),
    }
    header["filterPlugins"] = [plugin.name for plugin in framework.filter]
    header["scorePlugins"] = [plugin.name for plugin in framework.score]
    filter_names = {plugin.name for plugin in framework.filter}
    header["skippedFilter"] = [name for name in attempt.skipped_filters if name in filter_names]
    header["skippedScore"] = [
        plugin.name for plugin in framework.score if plugin.name in attempt.skipped_scores
    ]
    header["weights"] = dict(framework.weights)
    header["best"] = None if best is None else sorted(best)

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
    trace.arrays["verdict"] = verdict
    trace.arrays["feasible"] = feasible_places[by_place].astype(np.int32)
    if len(attempt.total) == len(attempt.feasible) and len(attempt.total):
        attempt.gather_scores()
        scored = [plugin.name for plugin in framework.score if plugin.name in attempt.scores]
        header["scoredPlugins"] = scored
        shape = (len(scored), len(attempt.feasible))
        raw = np.array([attempt.raw_scores[name] for name in scored], np.int64).reshape(shape)
        scores = np.array([attempt.scores[name] for name in scored], np.int64).reshape(shape)
        trace.arrays |= {
            "raw": raw[:, by_place],
            "scores": scores[:, by_place],
            "total": attempt.total[by_place],
        }
    if matrix:
        _record_matrix(attempt, trace, table, place_of_row)
    header["verdicts"] = _numbered_by_place(trace, table)


def _numbered_by_place(trace: CycleTrace, table: VerdictTable) -> list[list[Any]]:
    """The verdicts in the order in which the arrays, read by place, come to them; the arrays' ids follow."""
    entries = table.entries()
    if len(entries) > 1:
        arrays = [name for name in ("verdict", "matrix") if name in trace.arrays]
        flat = np.concatenate([trace.arrays[name].ravel() for name in arrays])
        used, first = np.unique(flat[flat >= 0], return_index=True)
        met = used[np.argsort(first)]
        new_id = np.full(len(entries), -1, np.int32)
        new_id[met] = np.arange(len(met))
        for name in arrays:
            ids = trace.arrays[name]
            trace.arrays[name] = np.where(ids >= 0, new_id[ids], ids).astype(np.int32)
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
    attempt: Attempt, trace: CycleTrace, table: VerdictTable, place_of_row: NDArray[np.int64]
) -> None:
    """Every filter plugin alone: its PreFilter, then its Filter on every node, without nominated pods."""
    framework, snapshot, pod = attempt.framework, attempt.snapshot, attempt.pod
    notes: dict[str, Any] = {}
    amounts: list[list[Any]] = []
    lines: list[NDArray[np.int64]] = []
    columns = []
    names = []
    n_places = len(trace.header["nodes"])
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
    trace.header["skippedFilter"] = skipped
    trace.header["matrixPlugins"] = names
    trace.header["matrixNotes"] = notes
    if amounts:
        trace.header["amounts"] = amounts
        trace.arrays["amounts"] = np.stack(lines)
    trace.arrays["matrix"] = np.array(columns, np.int32).reshape(len(columns), n_places)


def sentence(header: Mapping[str, Any]) -> str:
    """One plain sentence that says how the cycle ended, or how it would have, where it was only tried (`dryRun`)."""
    tried = bool(header.get("dryRun"))
    fits = "would fit" if tried else "fits"
    pod, outcome, node = header["pod"], header["outcome"], header["node"]
    n_nodes, n_feasible = header["nNodes"], header["nFeasible"]
    if outcome == ERROR:
        return f"{pod} could not be scheduled: {header.get('error') or header.get('message')}."
    if outcome == UNSCHEDULABLE and header.get("rejectedAt"):
        was = "would be" if tried else "was"
        return f"{pod} {was} rejected at {header['rejectedAt']} on {node}: {header['message']}"
    if outcome == UNSCHEDULABLE:
        return f"{pod} {fits} no node: {header['message']}"
    if outcome == PREEMPTING:
        victims = header.get("victims") or []
        noun = "pod" if len(victims) == 1 else "pods"
        room = header["nominatedNode"]
        evicts, waits = ("would evict", "wait") if tried else ("evicts", "waits")
        return f"{pod} {fits} no node, so it {evicts} {len(victims)} {noun} from {room} and {waits} for the room."
    verb = "waits at Permit on" if outcome == WAITING else "bound to"
    if tried:
        verb = "would wait at Permit on" if outcome == WAITING else "would be bound to"
    if n_feasible == 1:
        only = "the only node" if n_nodes == 1 else f"the only feasible node of {n_nodes}"
        return f"{pod} {verb} {node}: {only}."
    points = f"{header['bestTotal']} points" if header.get("bestTotal") is not None else "highest score"
    tie = header.get("tie")
    if tie:
        return f"{pod} {verb} {node}: drawn among {tie['count']} nodes that tie with {points}, {n_feasible} feasible."
    return f"{pod} {verb} {node}: highest of {n_feasible} feasible nodes, {points}."


__all__ = [
    "BOUND",
    "ERROR",
    "PREEMPTING",
    "UNSCHEDULABLE",
    "WAITING",
    "CycleTrace",
    "PluginFailure",
    "record_body",
    "sentence",
]
