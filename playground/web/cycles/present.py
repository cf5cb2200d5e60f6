"""One cycle page, from the explanation dictionary alone."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

from playground.clusters.drive.extender_calls import WireCall, matched
from playground.engine.plugins import drawn
from playground.web.cycles.preemption import PreemptionView, view_preemption
from playground.web.looks import Outcome, outcome_of

# Source: pkg/scheduler/schedule_one.go minFeasibleNodesToFind, v1.34.
MIN_FEASIBLE_NODES_TO_FIND = 100


@dataclass(frozen=True)
class ExtenderCall:
    """A call to an extender; ``request`` and ``answer`` are text ready to show."""

    url: str
    verb: str
    status: str
    duration_ms: float | None
    took_ms: float | None = field(default=None, kw_only=True)
    error: str
    request: str
    answer: str
    answers_nodes: bool = field(default=False, kw_only=True)
    """Whether a filter's answer is whole nodes, which count as empty ones from there on."""


@dataclass(frozen=True)
class CycleView:
    """Everything a cycle page shows; a panel that has nothing to say is None or empty.

    Attributes
    ----------
    blamed
        Who failed, of a cycle that ended in an error: a plugin, an extender, or a cluster without nodes.
    """

    pod: str
    name: str
    outcome: Outcome
    node: str | None
    sentence: tuple[tuple[str, bool], ...]
    n_nodes: int
    n_evaluated: int
    pipeline: tuple[Point, ...]
    blamed: str
    pre_filter: str
    pre_filter_plugin: str
    filter: FilterView | None
    passes: Mapping[str, Any] | None
    scores: ScoreView | None
    preemption: PreemptionView | None
    reasons: ReasonMatrix | None
    extenders: tuple[ExtenderCall, ...]
    permit: Sequence[Mapping[str, Any]]
    message: str
    error: str
    single_node: str | None
    emulates: str

    @property
    def is_narrowed(self) -> bool:
        """Whether not every node was filtered: a sample, the nominated node alone, or what PreFilter left."""
        return 0 < self.n_evaluated < self.n_nodes

    @property
    def is_sampled(self) -> bool:
        """Whether the scheduler stopped as soon as it had found nodes enough."""
        return self.is_narrowed and self.n_evaluated >= MIN_FEASIBLE_NODES_TO_FIND


def view_cycle(explanation: Mapping[str, Any], *, part: str | None = None, page: int = 1) -> CycleView:
    """Turn the explanation of a cycle into what its page shows.

    Parameters
    ----------
    explanation : mapping
        As served by the API; every key but ``pod`` may be missing, its panel is then left out.
    part, page
        See `view_filter`.
    """
    pod = str(explanation.get("pod") or "")
    name = pod.rpartition("/")[2]
    outcome = outcome_of(explanation.get("outcome"))
    feasible: Sequence[str] = explanation.get("feasible") or ()
    pre_filter = explanation.get("preFilter") or {}
    rejected_early = pre_filter.get("code") not in (None, "Success", "Skip")
    node = explanation.get("node")
    sentence = str(explanation.get("sentence") or "")
    message = str(explanation.get("message") or "")
    points = explanation.get("points") or ()
    blamed = _blamed(explanation, points) if outcome.key == "error" else ""
    early_plugin = str(pre_filter.get("plugin") or "") if rejected_early else ""
    if message:
        # The whole message stands below; a headline of five lines says nothing.
        why = f"{early_plugin} rejected it in PreFilter" if early_plugin else blamed
        headline = explanation["headline"]
        sentence = f"{headline}: {why}." if why else f"{headline}."
    return CycleView(
        pod=pod,
        name=name,
        outcome=outcome,
        node=node,
        sentence=emphasise(sentence, (pod, name, str(node or ""), *_nominated(explanation))),
        n_nodes=int(explanation.get("nNodes") or 0),
        n_evaluated=int(explanation.get("nodesEvaluated") or 0),
        pipeline=view_pipeline(points, outcome=outcome.key),
        blamed=blamed,
        pre_filter=", ".join(pre_filter.get("reasons") or ()) if rejected_early else "",
        pre_filter_plugin=early_plugin,
        filter=view_filter(explanation, part=part, page=page),
        passes=view_passes(explanation),
        scores=view_scores(explanation),
        preemption=view_preemption(explanation),
        reasons=view_reason_matrix(explanation),
        extenders=tuple(_call(c) for c in explanation.get("extenders") or ()),
        permit=explanation.get("permit") or (),
        message=message,
        error=str(explanation.get("error") or ""),
        single_node=feasible[0] if len(feasible) == 1 and not explanation.get("total") else None,
        emulates=str(explanation.get("emulates") or ""),
    )


def emphasise(sentence: str, names: tuple[str, ...]) -> tuple[tuple[str, bool], ...]:
    """Split a sentence into (text, is_name) so that a template can set the names in bold.

    >>> emphasise("default/web-1 bound to b3: 2 points.", ("default/web-1", "b3"))
    (('default/web-1', True), (' bound to ', False), ('b3', True), (': 2 points.', False))
    """
    known = sorted({name for name in names if name}, key=len, reverse=True)
    if not known:
        return ((sentence, False),)
    alternatives = "|".join(re.escape(name) for name in known)
    # A name ends where no further name character follows: node-1 must not match inside node-10.
    pattern = re.compile(rf"(?<![\w./-])({alternatives})(?![\w/-]|\.\w)")
    return tuple((text, i % 2 == 1) for i, text in enumerate(pattern.split(sentence)) if text)


def _nominated(explanation: Mapping[str, Any]) -> tuple[str, ...]:
    preemption = explanation.get("preemption") or {}
    victims = preemption.get("victims") or ()
    return (str(preemption.get("nominatedNode") or ""), *victims, *(v.rpartition("/")[2] for v in victims))


def _blamed(explanation: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> str:
    """Who failed in a cycle that ended in an error, in words; "" when its record does not say."""
    if explanation.get("nNodes") == 0:
        return "the cluster has no node"
    calls = [c for c in explanation.get("extenders") or () if c.get("error") and not c.get("ignored")]
    if calls:
        return f"an extender failed to {calls[0].get('verb')}"
    at = next((point.get("point") for point in points if point.get("state") == "failed"), None)
    plugin = explanation.get("failedPlugin")
    return f"{plugin} failed in {at}" if plugin and at else ""


def _call(call: Mapping[str, Any]) -> ExtenderCall:
    status = call.get("status")
    return ExtenderCall(
        url=str(call.get("url") or ""),
        verb=str(call.get("verb") or ""),
        status="" if status is None else str(status),
        duration_ms=call.get("durationMs"),
        error=str(call.get("error") or ""),
        request=_pretty(call.get("request")),
        answer=_pretty(call.get("answer")),
        answers_nodes=call.get("verb") == "filter"
        and not call.get("error")
        and _has_nodes(call.get("answer")),
    )


def _has_nodes(answer: Any) -> bool:
    """Whether a filter's answer holds whole nodes; keys match in any case."""
    try:
        found = json.loads(answer) if isinstance(answer, str) else answer
    except ValueError:
        return False
    return isinstance(found, Mapping) and any(
        str(key).lower() == "nodes" and isinstance(value, Mapping) for key, value in found.items()
    )


def _pretty(body: Any) -> str:
    if body is None:
        return ""
    return body if isinstance(body, str) else json.dumps(body, indent=2, ensure_ascii=False)


# state of the explanation -> (class of the cell, icon)
_DRAWN = {
    "done": ("st-ok", "ok"),
    "skipped": ("st-skip", "dash"),
    "failed": ("st-bad", "no"),
    "acted": ("st-pre", "pre"),
    "waiting": ("st-wait", "wait"),
    "error": ("st-err", "err"),
    "not reached": ("st-none", "dot"),
}


@dataclass(frozen=True)
class Point:
    """One extension point of the strip."""

    name: str
    state: str
    css: str
    icon: str
    detail: str


def view_pipeline(points: Sequence[Mapping[str, Any]], *, outcome: str) -> tuple[Point, ...]:
    """Turn the explanation's ``points`` into cells, in the order given.

    A point that failed in a cycle whose outcome is ``error`` blames no plugin, so it is drawn amber
    instead of red.
    """
    cells = []
    for point in points:
        state = point["state"]
        css, icon = _DRAWN["error" if state == "failed" and outcome == "error" else state]
        cells.append(Point(point["point"], state, css, icon, str(point.get("detail") or "")))
    return tuple(cells)


MATRIX_LIMIT = 200
PAGE_SIZE = 100
FEASIBLE_PART = "ok"
PRE_FILTER = "PreFilter"


@dataclass(frozen=True)
class Column:
    """A filter plugin; ``skipped`` when it skipped itself in PreFilter."""

    plugin: str
    skipped: bool


@dataclass(frozen=True)
class Part:
    """One part of the Kubernetes message, pressed to see only its nodes.

    Attributes
    ----------
    key : str
        Stable within one cycle: ``ok`` for feasible nodes, else ``r0``, ``r1``, ...
    """

    key: str
    text: str
    count: int
    reason: str
    pressed: bool


@dataclass(frozen=True)
class Row:
    """One node of the matrix.

    Attributes
    ----------
    cells : tuple of str
        ``pass`` or ``skip`` per column that ran, then ``fail`` for the column that rejected the node.
    colspan : int
        How many columns the reason covers: those that did not run, and the outcome.
    parts : str
        Space separated keys of the message parts this node counts for.
    amounts : str
        What the plugin that rejected the node compared, as the explanation says it; often empty.
    """

    node: str
    cells: tuple[str, ...]
    feasible: bool
    plugin: str
    code: str
    reason: str
    colspan: int
    parts: str
    amounts: str
    starts_group: bool
    rank: int | None
    total: int | None
    tied: bool


@dataclass(frozen=True)
class Group:
    """Nodes rejected by one plugin for one reason, on clusters too large for a row a node.

    Attributes
    ----------
    nearest, amounts : str
        The node that lacks least of what it was rejected for, and the amounts it was rejected by; often empty.
    """

    plugin: str
    code: str
    reason: str
    count: int
    part: str
    examples: tuple[str, ...]
    nearest: str
    amounts: str


@dataclass(frozen=True)
class FilterView:
    """Everything the Filter panel shows."""

    columns: tuple[Column, ...]
    parts: tuple[Part, ...]
    rows: tuple[Row, ...]
    groups: tuple[Group, ...]
    n_nodes: int
    n_feasible: int
    n_rejected: int
    selected: str | None
    n_selected: int
    page: int
    n_pages: int
    has_extender: bool

    @property
    def is_grouped(self) -> bool:
        """Whether rejected nodes are counted in groups instead of listed."""
        return bool(self.groups)


def view_filter(
    explanation: Mapping[str, Any], *, part: str | None = None, page: int = 1
) -> FilterView | None:
    """Build the filter matrix, or None when Filter never ran (PreFilter rejected the pod, or no node).

    Parameters
    ----------
    explanation : mapping
        The explanation of a cycle; reads filter, feasible, total, skippedFilter, filterPlugins, nodes,
        extenders.
    part : str, optional
        Key of a message part: only its nodes are rows.
    page : int
        Page of ``PAGE_SIZE`` nodes, for clusters above ``MATRIX_LIMIT``.
    """
    verdicts: Mapping[str, Any] | None = explanation.get("filter")
    if not verdicts:
        return None
    order = {name: position for position, name in enumerate(explanation["nodes"])}
    skipped_by = explanation["skippedFilter"]
    columns = tuple(Column(name, name in skipped_by) for name in explanation["filterPlugins"])
    position_of = {column.plugin: i for i, column in enumerate(columns)}
    feasible = [node for node, verdict in verdicts.items() if verdict is None]
    rejected = [node for node, verdict in verdicts.items() if verdict is not None]
    counts = Counter(reason for node in rejected for reason in _reasons(verdicts[node]))
    # kube-scheduler sorts the finished strings, count included: "10 x" comes before "7 y".
    texts = sorted((f"{count} {reason}", reason, count) for reason, count in counts.items())
    keys = {reason: f"r{i}" for i, (_, reason, _) in enumerate(texts)}
    known = {FEASIBLE_PART, *keys.values()}
    selected = part if part in known else None
    parts = tuple(
        Part(keys[reason], text, count, reason, keys[reason] == selected) for text, reason, count in texts
    )
    if feasible:
        first = Part(FEASIBLE_PART, f"{len(feasible)} feasible", len(feasible), "", selected == FEASIBLE_PART)
        parts = (first, *parts)

    totals: Mapping[str, int] = explanation.get("total") or {}
    ranks, ties = rank_totals(totals)
    feasible.sort(key=lambda node: (-totals.get(node, 0), order.get(node, 0), node))
    rejected.sort(
        key=lambda node: (
            position_of.get(_plugin(verdicts[node]), len(columns)),
            _joined(verdicts[node]),
            order.get(node, 0),
            node,
        )
    )
    listed = [*feasible, *rejected]
    if selected == FEASIBLE_PART:
        listed = list(feasible)
    elif selected is not None:
        listed = [node for node in rejected if selected in {keys[r] for r in _reasons(verdicts[node])}]
    n_selected = len(listed)
    large = len(verdicts) > MATRIX_LIMIT
    groups: tuple[Group, ...] = ()
    n_pages = 1
    if large:
        groups = _groups(explanation, rejected, keys)
        if selected is None:
            listed = feasible[:20]
        else:
            n_pages = max(1, ceil(len(listed) / PAGE_SIZE))
            page = min(max(1, page), n_pages)
            listed = listed[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]
    else:
        page = 1

    rows: list[Row] = []
    before: str | None = None
    for node in listed:
        verdict = verdicts[node]
        is_feasible = verdict is None
        plugin = "" if is_feasible else _plugin(verdict)
        group = "feasible" if is_feasible else plugin
        source = plugin or ("" if is_feasible else _source_without_plugin(explanation, verdict))
        # A node that PreFilter left out was not filtered at all; an extender's veto comes after every filter.
        stops_at = position_of.get(plugin, -1 if source == PRE_FILTER else len(columns))
        cells = _cells(columns, None if is_feasible else stops_at)
        rows.append(
            Row(
                node=node,
                cells=cells,
                feasible=is_feasible,
                plugin=source,
                code="" if is_feasible else str(verdict.get("code", "")),
                reason="" if is_feasible else _joined(verdict),
                colspan=len(columns) - len(cells) + 1,
                parts=FEASIBLE_PART if is_feasible else " ".join(keys[r] for r in _reasons(verdict)),
                amounts=amounts_of(explanation, plugin, node),
                starts_group=before is not None and before != group,
                rank=ranks.get(node),
                total=totals.get(node),
                tied=node in ties,
            )
        )
        before = group
    return FilterView(
        columns=columns,
        parts=parts,
        rows=tuple(rows),
        groups=groups,
        n_nodes=len(verdicts),
        n_feasible=len(feasible),
        n_rejected=len(rejected),
        selected=selected,
        n_selected=n_selected,
        page=page,
        n_pages=n_pages,
        has_extender=bool(explanation.get("extenders")),
    )


def amounts_of(explanation: Mapping[str, Any], plugin: str, node: str) -> str:
    """Return the amounts behind a plugin's rejection of a node, "" where the explanation knows none."""
    return "; ".join(((explanation.get("amounts") or {}).get(plugin) or {}).get(node) or ())


def rank_totals(totals: Mapping[str, int]) -> tuple[dict[str, int], frozenset[str]]:
    """Return the rank of every node (equal totals share one) and the nodes that share a rank."""
    counts = Counter(totals.values())
    ranks: dict[str, int] = {}
    at: dict[int, int] = {}
    for position, (node, total) in enumerate(sorted(totals.items(), key=lambda item: -item[1]), start=1):
        ranks[node] = at.setdefault(total, position)
    return ranks, frozenset(node for node, total in totals.items() if counts[total] > 1)


def _plugin(verdict: Mapping[str, Any] | None) -> str:
    return str((verdict or {}).get("plugin") or "")


def _reasons(verdict: Mapping[str, Any]) -> Sequence[str]:
    return verdict.get("reasons") or ["no reason given"]


def _joined(verdict: Mapping[str, Any]) -> str:
    return ", ".join(_reasons(verdict))


def _source_without_plugin(explanation: Mapping[str, Any], verdict: Mapping[str, Any]) -> str:
    """Name who rejected a node when no filter plugin did: PreFilter's node list, or an extender."""
    if any(reason.startswith("node(s) didn't satisfy plugin(s)") for reason in _reasons(verdict)):
        return PRE_FILTER
    return "Extender" if explanation.get("extenders") else PRE_FILTER


def _cells(columns: Sequence[Column], stops_at: int | None) -> tuple[str, ...]:
    """Return the cells that ran; the one at ``stops_at`` failed. None: all passed, -1: none ran."""
    if stops_at == -1:
        return ()
    cells = []
    for i, column in enumerate(columns):
        if stops_at is not None and i == stops_at:
            cells.append("fail")
            break
        cells.append("skip" if column.skipped else "pass")
    return tuple(cells)


def _groups(
    explanation: Mapping[str, Any], rejected: Sequence[str], keys: Mapping[str, str]
) -> tuple[Group, ...]:
    verdicts = explanation["filter"]
    amounts: Mapping[str, Mapping[str, Any]] = explanation.get("amounts") or {}
    members: dict[tuple[str, str, str], list[str]] = {}
    for node in rejected:
        verdict = verdicts[node]
        members.setdefault((_plugin(verdict), str(verdict.get("code", "")), _joined(verdict)), []).append(
            node
        )
    groups = []
    for (plugin, code, reason), nodes in members.items():
        # Amounts come nearest first.
        those = frozenset(nodes)
        nearest = next((node for node in amounts.get(plugin) or () if node in those), "")
        groups.append(
            Group(
                plugin=plugin or PRE_FILTER,
                code=code,
                reason=reason,
                count=len(nodes),
                part=keys[_reasons(verdicts[nodes[0]])[0]],
                examples=tuple(nodes[:3]),
                nearest=nearest,
                amounts=amounts_of(explanation, plugin, nearest) if nearest else "",
            )
        )
    return tuple(groups)


PODS_NAMED = 3


_VERDICTS = {
    None: "both hold",
    "with": "fails only with them: {with_}",
    "without": "fails only without them: {without}",
    "both": "fails in both: {with_} with them, {without} without",
}


def view_passes(explanation: Mapping[str, Any]) -> dict[str, Any] | None:
    """Build the panel of both passes, or None where no node had nominated pods that count.

    Parameters
    ----------
    explanation : mapping
        Reads ``nominatedPasses`` (`scheduler_core.framework.recording`).

    Returns
    -------
    dict or None
        `n_nodes` may be more than `rows`; the `verdict` of a row says what the two passes come to, `one_only` that they
        differ.
    """
    found: Mapping[str, Any] | None = explanation.get("nominatedPasses")
    if not found:
        return None
    return {"rows": list(map(_passes_of, found["nodes"])), "n_nodes": found["count"]}


def _passes_of(node: Mapping[str, Any]) -> dict[str, Any]:
    beside, without = _pass(node["with"]), _pass(node["without"])
    return {
        "node": node["node"],
        "pods": node["pods"][:PODS_NAMED],
        "n_more": len(node["pods"][PODS_NAMED:]),
        "beside": beside,
        "without": without,
        "verdict": _VERDICTS[node["failsIn"]].format(with_=beside["plugin"], without=without["plugin"]),
        "one_only": node["failsIn"] in ("with", "without"),
    }


def _pass(verdict: Mapping[str, Any] | None) -> dict[str, str]:
    """One pass over one node; `plugin` empty: it holds."""
    if verdict is None:
        return {"plugin": "", "reason": ""}
    return {
        "plugin": str(verdict.get("plugin") or "Filter"),
        "reason": ", ".join(verdict.get("reasons") or ()),
    }


@dataclass(frozen=True)
class ReasonCell:
    """State: pass, skip, stop (the scheduler stopped here), also (would also fail); amounts are often empty."""

    plugin: str
    state: str
    reason: str
    amounts: str = ""


@dataclass(frozen=True)
class ReasonRow:
    """One rejected node; ``also`` are the plugins that would reject it too."""

    node: str
    cells: tuple[ReasonCell, ...]
    also: tuple[ReasonCell, ...]


@dataclass(frozen=True)
class ReasonMatrix:
    """Rejected nodes against every filter; ``n_hidden`` nodes are left out of a large cluster."""

    plugins: tuple[str, ...]
    rows: tuple[ReasonRow, ...]
    n_hidden: int

    @property
    def n_would_also_fail(self) -> int:
        """How many nodes more than one plugin rejects."""
        return sum(1 for row in self.rows if row.also)


def view_reason_matrix(explanation: Mapping[str, Any], *, limit: int = MATRIX_LIMIT) -> ReasonMatrix | None:
    """Build the matrix, or None when the explanation has no ``filterByPlugin`` or no node was rejected."""
    alone: Mapping[str, Mapping[str, Any]] | None = explanation.get("filterByPlugin")
    verdicts: Mapping[str, Any] = explanation.get("filter") or {}
    if not alone or not verdicts:
        return None
    skipped = explanation["skippedFilter"]
    plugins = tuple(name for name in explanation["filterPlugins"] if name in alone and name not in skipped)
    names = [name for name in explanation["nodes"] if verdicts.get(name) is not None]
    if not plugins or not names:
        return None
    rows = []
    for node in names[:limit]:
        stopped = verdicts[node].get("plugin")
        cells = tuple(
            _cell(name, node, alone[name], stopped, amounts_of(explanation, name, node)) for name in plugins
        )
        rows.append(ReasonRow(node, cells, tuple(cell for cell in cells if cell.state == "also")))
    return ReasonMatrix(plugins, tuple(rows), max(0, len(names) - limit))


def _cell(
    plugin: str, node: str, verdict: Mapping[str, Any], stopped: str | None, amounts: str
) -> ReasonCell:
    failure = (verdict.get("fails") or {}).get(node)
    if failure is None:
        if verdict.get("preFilter"):
            return ReasonCell(plugin, "also", ", ".join(verdict["preFilter"].get("reasons") or ()))
        # Nominated pods count in the real pass only, so a plugin can stop a node it accepts alone.
        return ReasonCell(plugin, "stop" if plugin == stopped else "pass", "")
    reason = ", ".join(failure.get("reasons") or ())
    return ReasonCell(plugin, "stop" if plugin == stopped else "also", reason, amounts)


SCORE_LIMIT = 20
MAX_NODE_SCORE = 100

EXTENDERS = "extenders"


@dataclass(frozen=True)
class ScoreColumn:
    """A column of the table."""

    name: str
    weight: int
    letter: str
    css: str
    skipped: bool


@dataclass(frozen=True)
class Cell:
    """What one plugin gave one node; ``raw`` and ``normalised`` are None for the extenders' sum."""

    plugin: ScoreColumn
    raw: int | None
    normalised: int | None
    points: int


@dataclass(frozen=True)
class Segment:
    """One piece of the stacked bar, in percent of the highest possible total."""

    cell: Cell
    x: float
    width: float

    @property
    def middle(self) -> float:
        """The x of the letter."""
        return round(self.x + self.width / 2, 2)

    @property
    def has_room(self) -> bool:
        """Whether a letter can be read inside."""
        return self.width >= 4


@dataclass(frozen=True)
class ScoreRow:
    """One feasible node."""

    node: str
    rank: int
    tied: bool
    chosen: bool
    total: int
    behind: int
    cells: tuple[Cell, ...]
    segments: tuple[Segment, ...]


@dataclass(frozen=True)
class PluginLead:
    """How much one plugin moved the winner ahead of the runner-up (negative: it spoke for the runner-up)."""

    plugin: str
    points: int


@dataclass(frozen=True)
class ScoreView:
    """Everything the Score panel shows."""

    plugins: tuple[ScoreColumn, ...]
    rows: tuple[ScoreRow, ...]
    n_nodes: int
    max_total: int
    winner: str
    runner_up: str | None
    margin: int | None
    differences: tuple[PluginLead, ...]
    tie: tuple[str, ...]
    tie_stream: str | None

    @property
    def is_cut(self) -> bool:
        """Whether only the best nodes are listed."""
        return len(self.rows) < self.n_nodes


def view_scores(explanation: Mapping[str, Any], *, limit: int = SCORE_LIMIT) -> ScoreView | None:
    """Build the score table, or None when nothing was scored (no node or one node was feasible).

    Parameters
    ----------
    explanation : mapping
        Reads total, scores, rawScores, weights, skippedScore, scorePlugins, node, tie, best.
    limit : int
        At most this many rows when there are more than ``limit`` * 10 nodes; the chosen node is always among
        them.
    """
    totals: Mapping[str, int] | None = explanation.get("total")
    if not totals:
        return None
    scores: Mapping[str, Mapping[str, int]] = explanation.get("scores") or {}
    raw: Mapping[str, Mapping[str, int]] = explanation.get("rawScores") or {}
    plugins = _plugins(explanation, scores)
    tie = explanation.get("tie") or {}
    winner = str(explanation.get("node") or tie.get("chosen") or "")
    order = {name: i for i, name in enumerate(explanation["nodes"])}
    ranked = sorted(totals, key=lambda node: (-totals[node], node != winner, order.get(node, 0), node))
    ranks, ties = rank_totals(totals)
    best = totals[ranked[0]]

    extra_of = {node: totals[node] - _sum(node, plugins, scores) for node in ranked}
    if any(extra_of.values()):
        plugins = (*plugins, ScoreColumn(EXTENDERS, 1, "X", "s8", False))
    max_total = sum(p.weight * MAX_NODE_SCORE for p in plugins if not p.skipped and p.name != EXTENDERS)
    max_total = max(max_total + max(extra_of.values(), default=0), best, 1)

    shown = ranked if len(ranked) <= limit * 10 else ranked[:limit]
    if winner in totals and winner not in shown:
        shown = [*shown, winner]
    rows = []
    for node in shown:
        cells = _score_cells(node, plugins, scores, raw, extra_of[node])
        rows.append(
            ScoreRow(
                node=node,
                rank=ranks[node],
                tied=node in ties,
                chosen=node == winner,
                total=totals[node],
                behind=best - totals[node],
                cells=cells,
                segments=_segments(cells, max_total),
            )
        )
    runner_up = next((node for node in ranked if node != winner), None)
    differences: tuple[PluginLead, ...] = ()
    margin = None
    if winner in totals and runner_up is not None:
        margin = totals[winner] - totals[runner_up]
        differences = _differences(winner, runner_up, plugins, scores, extra_of)
    return ScoreView(
        plugins=plugins,
        rows=tuple(rows),
        n_nodes=len(totals),
        max_total=max_total,
        winner=winner,
        runner_up=runner_up,
        margin=margin,
        differences=differences,
        tie=tuple(tie.get("nodes") or ()),
        tie_stream=tie.get("stream"),
    )


def _plugins(explanation: Mapping[str, Any], scores: Mapping[str, Any]) -> tuple[ScoreColumn, ...]:
    weights: Mapping[str, int] = explanation["weights"]
    skipped = explanation["skippedScore"]
    names = explanation["scorePlugins"]
    declared = drawn()
    taken = {"X", *(letter for name, (letter, _) in declared.items() if name in names)}
    plugins = []
    for name in names:
        letter, css = declared.get(name, ("", "s8"))
        if not letter:
            letter = next((c for c in name.upper() if c.isalpha() and c not in taken), "?")
            taken.add(letter)
        plugins.append(
            ScoreColumn(name, weights.get(name, 1), letter, css, name in skipped or name not in scores)
        )
    return tuple(plugins)


def _sum(node: str, plugins: tuple[ScoreColumn, ...], scores: Mapping[str, Mapping[str, int]]) -> int:
    return sum(scores[p.name].get(node, 0) * p.weight for p in plugins if not p.skipped)


def _score_cells(
    node: str,
    plugins: tuple[ScoreColumn, ...],
    scores: Mapping[str, Mapping[str, int]],
    raw: Mapping[str, Mapping[str, int]],
    extra: int,
) -> tuple[Cell, ...]:
    cells = []
    for plugin in plugins:
        if plugin.name == EXTENDERS:
            cells.append(Cell(plugin, None, None, extra))
            continue
        if plugin.skipped:
            cells.append(Cell(plugin, None, None, 0))
            continue
        normalised = scores[plugin.name].get(node, 0)
        cells.append(Cell(plugin, raw.get(plugin.name, {}).get(node), normalised, normalised * plugin.weight))
    return tuple(cells)


def _segments(cells: tuple[Cell, ...], max_total: int) -> tuple[Segment, ...]:
    segments = []
    x = 0.0
    for cell in cells:
        if cell.points <= 0:
            continue
        width = round(100 * cell.points / max_total, 2)
        segments.append(Segment(cell, round(x, 2), width))
        x += width
    return tuple(segments)


def _differences(
    winner: str,
    runner_up: str,
    plugins: tuple[ScoreColumn, ...],
    scores: Mapping[str, Mapping[str, int]],
    extra_of: Mapping[str, int],
) -> tuple[PluginLead, ...]:
    differences = []
    for plugin in plugins:
        if plugin.name == EXTENDERS:
            points = extra_of[winner] - extra_of[runner_up]
        elif plugin.skipped:
            continue
        else:
            given = scores[plugin.name]
            points = (given.get(winner, 0) - given.get(runner_up, 0)) * plugin.weight
        if points:
            differences.append(PluginLead(plugin.name, points))
    return tuple(sorted(differences, key=lambda d: -d.points))


def with_wire_calls(told: Sequence[ExtenderCall], made: Sequence[WireCall]) -> tuple[ExtenderCall, ...]:
    """The calls of an explanation with the time each took by the wall clock, and bind calls made after the cycle."""
    found, binds = matched([(call.verb, call.url) for call in told], made)
    calls = [
        call if wire is None else replace(call, took_ms=wire.took_ms)
        for call, wire in zip(told, found, strict=True)
    ]
    return (*calls, *map(call_of_wire, binds))


def call_of_wire(wire: WireCall) -> ExtenderCall:
    """A call the explanation does not tell."""
    status = "waits for its answer" if wire.is_open else "" if wire.status is None else str(wire.status)
    return ExtenderCall(
        url=wire.url,
        verb=wire.verb,
        status=status,
        duration_ms=None,
        took_ms=wire.took_ms,
        request=wire.request,
        answer=wire.answer,
        error=wire.error,
    )
