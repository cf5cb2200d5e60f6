"""The filter matrix: every node against every filter plugin, the reason where the row stops.

Up to ``MATRIX_LIMIT`` nodes every node is a row. Above it rejected nodes are grouped by plugin and reason
with counts, feasible nodes by their rank, and one group can be opened in pages of ``PAGE_SIZE``.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from playground.engine.plugins import default_order

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
    order = {name: position for position, name in enumerate(explanation.get("nodes") or sorted(verdicts))}
    columns = _columns(explanation, verdicts)
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


def _columns(explanation: Mapping[str, Any], verdicts: Mapping[str, Any]) -> tuple[Column, ...]:
    skipped = list(explanation.get("skippedFilter") or ())
    plugins = list(explanation.get("filterPlugins") or ())
    if not plugins:
        seen = {
            *skipped,
            *(_plugin(v) for v in verdicts.values() if v),
            *(explanation.get("filterByPlugin") or ()),
        }
        # Older explanations do not say their configured order themselves.
        usual = default_order("filter")
        plugins = [name for name in usual if name in seen]
        plugins += sorted(name for name in seen if name and name not in usual)
    return tuple(Column(name, name in skipped) for name in plugins)


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
