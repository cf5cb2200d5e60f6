"""One cycle page, from the explanation dictionary alone."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

from playground.clusters.drive.extender_calls import matched
from playground.clusters.row_types import ExtenderCall
from playground.engine.plugins import drawn
from playground.web.cycles.domains import view_domains
from playground.web.cycles.preemption import view_preemption
from playground.web.listing import Alike, alike
from playground.web.looks import View, outcome_of, piece

# Source: pkg/scheduler/schedule_one.go minFeasibleNodesToFind, v1.34.
MIN_FEASIBLE_NODES_TO_FIND = 100


def view_cycle(
    explanation: Mapping[str, Any],
    *,
    part: str | None = None,
    page: int = 1,
    pools: Mapping[str, str] | None = None,
) -> View:
    """Turn the explanation of a cycle into what its page shows.

    Parameters
    ----------
    explanation : mapping
        As served by the API; every key but ``pod`` may be missing, its panel is then left out.
    part, page, pools
        See `view_filter`.

    Returns
    -------
    dict
        A panel that has nothing to say is None or empty. `blamed`: who failed, of a cycle that ended in an error: a
        plugin, an extender, or a cluster without nodes. `is_narrowed`: not every node was filtered, but a sample, the
        nominated node alone, or what PreFilter left; `is_sampled`: the scheduler stopped as soon as it had found nodes
        enough.
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
    n_nodes = int(explanation.get("nNodes") or 0)
    n_evaluated = int(explanation.get("nodesEvaluated") or 0)
    is_narrowed = 0 < n_evaluated < n_nodes
    return {
        "pod": pod,
        "name": name,
        "outcome": outcome,
        "node": node,
        "sentence": emphasise(sentence, (pod, name, str(node or ""), *_nominated(explanation))),
        "n_nodes": n_nodes,
        "n_evaluated": n_evaluated,
        "is_narrowed": is_narrowed,
        "is_sampled": is_narrowed and n_evaluated >= MIN_FEASIBLE_NODES_TO_FIND,
        "pipeline": view_pipeline(points, outcome=outcome.key),
        "blamed": blamed,
        "pre_filter": ", ".join(pre_filter.get("reasons") or ()) if rejected_early else "",
        "pre_filter_plugin": early_plugin,
        "filter": view_filter(explanation, part=part, page=page, pools=pools),
        "passes": view_passes(explanation),
        "scores": view_scores(explanation, pools=pools),
        "preemption": view_preemption(explanation),
        "domains": view_domains(explanation),
        "reasons": view_reason_matrix(explanation, pools=pools),
        "extenders": [_call(call) for call in explanation.get("extenders") or ()],
        "permit": explanation.get("permit") or (),
        "message": message,
        "error": str(explanation.get("error") or ""),
        "single_node": feasible[0] if len(feasible) == 1 and not explanation.get("total") else None,
        "emulates": str(explanation.get("emulates") or ""),
    }


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


def _call(call: Mapping[str, Any]) -> View:
    """A call to an extender, its request and answer as text; `answers_nodes`: a filter's answer is whole nodes, which
    count as empty ones from there on."""
    status, verb, error = call.get("status"), str(call.get("verb") or ""), str(call.get("error") or "")
    return {
        "url": str(call.get("url") or ""),
        "verb": verb,
        "status": "" if status is None else str(status),
        "duration_ms": call.get("durationMs"),
        "error": error,
        "request": _pretty(call.get("request")),
        "answer": _pretty(call.get("answer")),
        "answers_nodes": verb == "filter" and not error and _has_nodes(call.get("answer")),
    }


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


def view_pipeline(points: Sequence[Mapping[str, Any]], *, outcome: str) -> list[View]:
    """Turn the explanation's ``points`` into cells of the strip, in the order given.

    A point that failed in a cycle whose outcome is ``error`` blames no plugin, so it is drawn amber
    instead of red.
    """
    cells = []
    for point in points:
        state = point["state"]
        css, icon = _DRAWN["error" if state == "failed" and outcome == "error" else state]
        detail = str(point.get("detail") or "")
        cells.append({"name": point["point"], "state": state, "css": css, "icon": icon, "detail": detail})
    return cells


EACH_NODE_LIMIT = 30
"""Nodes up to which a page shows each of them; of more, equal ones are shown once."""
PAGE_SIZE = 50
GROUPS_LIMIT = 24
"""Groups up to which they are split by pool."""
FEASIBLE_PART = "ok"
PRE_FILTER = "PreFilter"


def view_filter(
    explanation: Mapping[str, Any],
    *,
    part: str | None = None,
    page: int = 1,
    pools: Mapping[str, str] | None = None,
) -> View | None:
    """Build the filter matrix, or None when Filter never ran (PreFilter rejected the pod, or no node).

    Parameters
    ----------
    explanation : mapping
        The explanation of a cycle; reads filter, feasible, total, skippedFilter, filterPlugins, nodes,
        extenders.
    part : str, optional
        Key of a message part or of a group: only its nodes are rows.
    page : int
        Page of ``PAGE_SIZE`` nodes, above ``EACH_NODE_LIMIT`` nodes.
    pools : mapping, optional
        The pool, or instance type, of each node that has one.

    Returns
    -------
    dict
        `columns` are plugins, ``skipped`` those that skipped themselves in PreFilter; `n_quiet` rejected no node.
        `parts` are the gates of the funnel: who rejected how many nodes first, in the order they run, with what were
        left `before` and after it (`left`, and as shares of all), then those that fit. Each is pressed to see only its
        nodes; its `key` stays within one cycle: ``ok`` for feasible nodes, else ``r0``, ``r1``, ... `rows` of nodes
        have `cells`, ``pass`` or ``skip`` a column that ran, then ``fail`` for the one that rejected; `colspan` columns
        that the reason covers, those that did not run and the outcome; `amounts` that the plugin compared, often empty.
        `groups` of nodes of one pool that fit, or that one plugin rejects for one reason, are shown above
        ``EACH_NODE_LIMIT`` nodes until a `part` is picked; `best` is the node with the most
        points, `nearest` the one that lacks least.
    """
    verdicts: Mapping[str, Any] | None = explanation.get("filter")
    if not verdicts:
        return None
    order = {name: position for position, name in enumerate(explanation["nodes"])}
    skipped_by = explanation["skippedFilter"]
    columns = [{"plugin": name, "skipped": name in skipped_by} for name in explanation["filterPlugins"]]
    position_of = {column["plugin"]: i for i, column in enumerate(columns)}
    feasible = [node for node, verdict in verdicts.items() if verdict is None]
    rejected = [node for node, verdict in verdicts.items() if verdict is not None]
    sources = {node: _source(explanation, verdicts[node]) for node in rejected}
    parts, keys = _gates(verdicts, sources, [column["plugin"] for column in columns])
    totals: Mapping[str, int] = explanation.get("total") or {}
    ranks, ties = rank_totals(totals)
    winner = explanation.get("node")
    feasible.sort(key=lambda node: (-totals.get(node, 0), node != winner, order.get(node, 0), node))
    rejected.sort(
        key=lambda node: (
            position_of.get(_plugin(verdicts[node]), len(columns)),
            _joined(verdicts[node]),
            order.get(node, 0),
            node,
        )
    )
    listed = [*feasible, *rejected]
    large = len(verdicts) > EACH_NODE_LIMIT
    equal = _equal(verdicts, listed, pools or {}) if large else []
    groups = [_group(explanation, f"g{number}", one) for number, one in enumerate(equal)]
    nodes_of = {group["part"]: one.items for group, one in zip(groups, equal, strict=True)}
    selected = part if part in nodes_of or part in {one["key"] for one in parts} else None
    for one in parts:
        one["pressed"] = one["key"] == selected
    if selected in nodes_of:
        listed = [*nodes_of[selected]]
    elif selected == FEASIBLE_PART:
        listed = list(feasible)
    elif selected is not None:
        listed = [node for node in rejected if keys[sources[node]] == selected]
    n_selected = len(listed)
    n_pages = max(1, ceil(n_selected / PAGE_SIZE)) if large and selected is not None else 1
    page = min(max(1, page), n_pages)
    if large:
        listed = [] if selected is None else listed[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]

    rows: list[View] = []
    before: str | None = None
    for node in listed:
        row = _row(explanation, node, columns, position_of)
        row["part"] = FEASIBLE_PART if row["feasible"] else keys[sources[node]]
        group = "feasible" if row["feasible"] else _plugin(verdicts[node])
        row |= {"rank": ranks.get(node), "total": totals.get(node), "tied": node in ties}
        rows.append(row | {"starts_group": before is not None and before != group})
        before = group
    return {
        "columns": columns,
        "parts": parts,
        "rows": rows,
        "groups": groups,
        "has_pools": any(group["pool"] for group in groups),
        "n_nodes": len(verdicts),
        "n_feasible": len(feasible),
        "n_rejected": len(rejected),
        "n_quiet": len({*position_of} - {*sources.values()}),
        "selected": selected,
        "n_selected": n_selected,
        "page": page if large else 1,
        "n_pages": n_pages,
    }


def _gates(
    verdicts: Mapping[str, Any], sources: Mapping[str, str], order: Sequence[str]
) -> tuple[list[View], dict[str, str]]:
    """Who rejected nodes, in the order they run, then the nodes that fit; and the key of each who rejected."""
    counts = Counter(sources.values())
    said: dict[str, Counter[str]] = {}
    for node, source in sources.items():
        said.setdefault(source, Counter())[_joined(verdicts[node])] += 1
    left, n_all = len(verdicts), len(verdicts)
    gates: list[View] = []
    for source in (name for name in dict.fromkeys((PRE_FILTER, *order, *counts)) if name in counts):
        [(words, _)] = said[source].most_common(1)
        before, left = left, left - counts[source]
        gate = {
            "key": f"r{len(gates)}",
            "plugin": source,
            "count": counts[source],
            "before": before,
            "left": left,
        }
        shares = {"share_before": round(100 * before / n_all, 1), "share": round(100 * left / n_all, 1)}
        gates.append({**gate, **shares, "words": words, "n_more": len(said[source]) - 1})
    keys = {gate["plugin"]: gate["key"] for gate in gates}
    if left:
        fits = {"key": FEASIBLE_PART, "plugin": "", "count": left, "share": round(100 * left / n_all, 1)}
        gates.append(fits)
    return gates, keys


def _row(
    explanation: Mapping[str, Any],
    node: str,
    columns: Sequence[View],
    position_of: Mapping[str, int],
) -> View:
    """One node of the matrix."""
    verdict = explanation["filter"][node]
    is_feasible, plugin = verdict is None, _plugin(verdict)
    source = "" if is_feasible else _source(explanation, verdict)
    # A node that PreFilter left out was not filtered at all; an extender's veto comes after every filter.
    stops_at = position_of.get(plugin, -1 if source == PRE_FILTER else len(columns))
    cells = _cells(columns, None if is_feasible else stops_at)
    return {
        "node": node,
        "cells": cells,
        "feasible": is_feasible,
        "plugin": source,
        "code": "" if is_feasible else str(verdict.get("code", "")),
        "reason": "" if is_feasible else _joined(verdict),
        "colspan": len(columns) - len(cells) + 1,
        "amounts": amounts_of(explanation, plugin, node),
    }


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


def _source(explanation: Mapping[str, Any], verdict: Mapping[str, Any]) -> str:
    """Who rejected a node: a filter plugin, else PreFilter's node list, or an extender."""
    by_list = any(reason.startswith("node(s) didn't satisfy plugin(s)") for reason in _reasons(verdict))
    otherwise = "Extender" if explanation.get("extenders") and not by_list else PRE_FILTER
    return _plugin(verdict) or otherwise


def _cells(columns: Sequence[View], stops_at: int | None) -> tuple[str, ...]:
    """Return the cells that ran; the one at ``stops_at`` failed. None: all passed, -1: none ran."""
    if stops_at == -1:
        return ()
    cells = []
    for i, column in enumerate(columns):
        if stops_at is not None and i == stops_at:
            cells.append("fail")
            break
        cells.append("skip" if column["skipped"] else "pass")
    return tuple(cells)


def _equal(verdicts: Mapping[str, Any], listed: Sequence[str], pools: Mapping[str, str]) -> list[Alike[str]]:
    """Equal nodes in the order listed; pools are left aside where they would make too many groups."""

    def fate(node: str) -> tuple[str, str, str, str]:
        verdict = verdicts[node]
        code, reason = ("", "") if verdict is None else (str(verdict.get("code", "")), _joined(verdict))
        return _plugin(verdict), code, reason, pools.get(node, "")

    found = alike(listed, fate)
    return _equal(verdicts, listed, {}) if pools and len(found) > GROUPS_LIMIT else found


def _group(explanation: Mapping[str, Any], part: str, equal: Alike[str]) -> View:
    plugin, code, reason, pool = equal.key
    nodes = equal.items
    verdict = explanation["filter"][equal.first]
    source = "" if verdict is None else _source(explanation, verdict)
    # Amounts come nearest first.
    those = frozenset(nodes)
    nearest = next(
        (node for node in (explanation.get("amounts") or {}).get(plugin) or () if node in those), ""
    )
    return {
        "part": part,
        "pool": pool,
        "feasible": verdict is None,
        "plugin": source,
        "code": code,
        "reason": reason,
        "count": len(nodes),
        "examples": nodes[:2],
        "best": nodes[0] if verdict is None else "",
        "points": (explanation.get("total") or {}).get(nodes[0]),
        "nearest": nearest,
        "amounts": amounts_of(explanation, plugin, nearest) if nearest else "",
    }


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


SEEN_LIMIT = 1000
"""Rejected nodes that are compared for the matrix of reasons."""


def view_reason_matrix(
    explanation: Mapping[str, Any], *, pools: Mapping[str, str] | None = None
) -> View | None:
    """Build the matrix of rejected nodes against every filter, or None without ``filterByPlugin`` or rejected nodes.

    Returns
    -------
    dict
        A cell's `state`: pass, skip, stop (the scheduler stopped here), also (would also fail); its `amounts` are often
        empty. Above ``EACH_NODE_LIMIT`` nodes a row is the first of `count` nodes of one pool with equal cells. `also`
        of a row are the cells that would fail too; `n_hidden` nodes of a large cluster are in no row.
    """
    alone: Mapping[str, Mapping[str, Any]] | None = explanation.get("filterByPlugin")
    verdicts: Mapping[str, Any] = explanation.get("filter") or {}
    if not alone or not verdicts:
        return None
    skipped = explanation["skippedFilter"]
    plugins = [name for name in explanation["filterPlugins"] if name in alone and name not in skipped]
    names = [name for name in explanation["nodes"] if verdicts.get(name) is not None]
    if not plugins or not names:
        return None
    rows: dict[Any, View] = {}
    seen = names[:SEEN_LIMIT]
    for node in seen:
        stopped = verdicts[node].get("plugin")
        cells = [_cell(name, node, alone[name], stopped) for name in plugins]
        pool = (pools or {}).get(node, "")
        told = (pool, *((cell["state"], cell["reason"]) for cell in cells))
        key: Any = told if len(names) > EACH_NODE_LIMIT else node
        if key in rows:
            rows[key]["count"] += 1
            continue
        for cell in cells:
            if node in (alone[cell["plugin"]].get("fails") or ()):
                cell["amounts"] = amounts_of(explanation, cell["plugin"], node)
        also = [cell for cell in cells if cell["state"] == "also"]
        rows[key] = {"node": node, "pool": pool, "count": 1, "cells": cells, "also": also}
    shown = sorted(rows.values(), key=lambda row: -row["count"])[:EACH_NODE_LIMIT]
    return {
        "plugins": plugins,
        "rows": shown,
        "n_seen": len(seen),
        "n_rejected": len(names),
        "n_hidden": len(names) - sum(row["count"] for row in shown),
        "n_would_also_fail": sum(row["count"] for row in rows.values() if row["also"]),
    }


def _cell(plugin: str, node: str, verdict: Mapping[str, Any], stopped: str | None) -> View:
    failure = (verdict.get("fails") or {}).get(node)
    state, reasons = "stop" if plugin == stopped else "also", (failure or {}).get("reasons")
    if failure is None:
        if verdict.get("preFilter"):
            state, reasons = "also", verdict["preFilter"].get("reasons")
        elif plugin != stopped:
            # Nominated pods count in the real pass only, so a plugin can stop a node it accepts alone.
            state = "pass"
    return {"plugin": plugin, "state": state, "reason": ", ".join(reasons or ()), "amounts": ""}


SCORE_BEST = 4
"""Nodes of the winner's pool that a large table shows."""
SCORE_POOLS = 8
"""Other pools of which a large table shows the best node."""
TIED_NAMED = 3
MAX_NODE_SCORE = 100

EXTENDERS = "extenders"


def view_scores(explanation: Mapping[str, Any], *, pools: Mapping[str, str] | None = None) -> View | None:
    """Build the score table, or None when nothing was scored (no node or one node was feasible).

    Parameters
    ----------
    explanation : mapping
        Reads total, scores, rawScores, weights, skippedScore, scorePlugins, node, tie, best.
    pools : mapping, optional
        The pool of each node that has one. Above ``EACH_NODE_LIMIT`` nodes the table has the best of the winner's pool,
        the chosen node among them, and the best of each other pool; each group's last row says how many more it has.

    Returns
    -------
    dict
        `rows` of feasible nodes with a cell a plugin (`raw` and `normalised` are None for the extenders' sum);
        `pair`, the winner and the runner-up (the best node with fewer points) with the segments of a bar in percent of
        the highest possible total; `differences`, how much each plugin moved the winner ahead (negative: it spoke for
        the runner-up); `decided`, the largest of them.
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

    given = {node: sum(_points(plugin, node, scores) for plugin in plugins) for node in ranked}
    extra_of = {node: totals[node] - given[node] for node in ranked}
    max_total = sum(plugin["weight"] * MAX_NODE_SCORE for plugin in plugins if not plugin["skipped"])
    max_total = max(max_total + max(extra_of.values(), default=0), best, 1)
    if any(extra_of.values()):
        plugins.append({"name": EXTENDERS, "weight": 1, "letter": "X", "css": "s8", "skipped": False})

    shown = _shown(ranked, winner, pools or {})
    # The best one with fewer points; where all are equal, the first of the others.
    fewer = (node for node in ranked if totals[node] < totals.get(winner, 0))
    runner_up = next(fewer, "") or next((node for node in ranked if node != winner), "")
    points_of = {
        node: [
            extra_of[node] if plugin["name"] == EXTENDERS else _points(plugin, node, scores)
            for plugin in plugins
        ]
        for node in dict.fromkeys((*shown, winner, runner_up))
        if node in totals
    }
    rows = []
    for node, others in shown.items():
        cells = [
            {"plugin": plugin, "points": points, **_measured(plugin, node, scores, raw)}
            for plugin, points in zip(plugins, points_of[node], strict=True)
        ]
        rows.append(
            {
                "node": node,
                "rank": ranks[node],
                "tied": node in ties,
                "chosen": node == winner,
                "total": totals[node],
                "behind": best - totals[node],
                "pool": (pools or {}).get(node, ""),
                "n_more": len(others),
                "lowest": min((totals[other] for other in others), default=None),
                "cells": cells,
            }
        )
    differences: list[View] = []
    if winner in totals and runner_up:
        both = zip(plugins, points_of[winner], points_of[runner_up], strict=True)
        differences = [{"plugin": plugin["name"], "points": a - b} for plugin, a, b in both if a != b]
    differences.sort(key=lambda difference: -difference["points"])
    decided = differences[0] if differences and differences[0]["points"] > 0 else None
    moved = {difference["plugin"]: difference["points"] for difference in differences}
    pair: list[View] = [
        {"node": node, "total": totals[node], "segments": _segments(plugins, points_of[node], max_total)}
        for node in (winner, runner_up)
        if node in totals
    ]
    return {
        "plugins": plugins,
        "rows": rows,
        "n_nodes": len(totals),
        "is_cut": len(rows) < len(totals),
        "max_total": max_total,
        "winner": winner,
        "runner_up": runner_up,
        "margin": totals[winner] - totals[runner_up] if winner in totals and runner_up else None,
        "differences": differences,
        "decided": decided,
        "pair": pair if len(pair) == 2 else [],
        "legend": [
            (plugin, moved.get(plugin["name"], 0))
            for plugin in plugins
            if any(part["plugin"] is plugin for row in pair for part in row["segments"])
        ],
        "tie": list(tie.get("nodes") or ()),
        "tied_named": list(tie.get("nodes") or ())[:TIED_NAMED],
        "n_tied_more": len(tuple(tie.get("nodes") or ())[TIED_NAMED:]),
        "tie_stream": tie.get("stream"),
    }


def _shown(ranked: Sequence[str], winner: str, pools: Mapping[str, str]) -> dict[str, Sequence[str]]:
    """Nodes that are rows, and the nodes of its pool that the last row of each pool speaks for."""
    if len(ranked) <= EACH_NODE_LIMIT:
        return dict.fromkeys(ranked, ())
    of_pool: dict[str, list[str]] = {}
    # The winner leads its pool, and its pool the others, even where another node has more points.
    for node in sorted(ranked, key=lambda node: node != winner):
        of_pool.setdefault(pools.get(node, ""), []).append(node)
    shown: dict[str, Sequence[str]] = {}
    for number, nodes in enumerate(list(of_pool.values())[: SCORE_POOLS + 1]):
        n_shown = 1 if number else SCORE_BEST
        shown |= dict.fromkeys(nodes[: n_shown - 1], ()) | {nodes[:n_shown][-1]: nodes[n_shown:]}
    return shown


def _plugins(explanation: Mapping[str, Any], scores: Mapping[str, Any]) -> list[View]:
    """The columns of the table."""
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
            {
                "name": name,
                "weight": weights.get(name, 1),
                "letter": letter,
                "css": css,
                "skipped": name in skipped or name not in scores,
            }
        )
    return plugins


def _points(plugin: View, node: str, scores: Mapping[str, Mapping[str, int]]) -> int:
    given: int = 0 if plugin["skipped"] else scores[plugin["name"]].get(node, 0) * plugin["weight"]
    return given


def _measured(
    plugin: View, node: str, scores: Mapping[str, Mapping[str, int]], raw: Mapping[str, Mapping[str, int]]
) -> View:
    name = plugin["name"]
    if name == EXTENDERS or plugin["skipped"]:
        return {"raw": None, "normalised": None}
    return {"raw": raw.get(name, {}).get(node), "normalised": scores[name].get(node, 0)}


def _segments(plugins: Sequence[View], points: Sequence[int], max_total: int) -> list[View]:
    segments = []
    x = 0.0
    for plugin, given in zip(plugins, points, strict=True):
        if given > 0:
            width = round(100 * given / max_total, 2)
            segments.append({"plugin": plugin, "points": given, **piece(x, width, room=4)})
            x += width
    return segments


def with_wire_calls(told: Sequence[View], made: Sequence[ExtenderCall]) -> list[View]:
    """The calls of an explanation with the time each took by the wall clock, and bind calls made after the cycle."""
    found, binds = matched([(call["verb"], call["url"]) for call in told], made)
    calls = [
        call if wire is None else call | {"took_ms": wire.took_ms}
        for call, wire in zip(told, found, strict=True)
    ]
    return [*calls, *map(call_of_wire, binds)]


def call_of_wire(wire: ExtenderCall) -> View:
    """A call the explanation does not tell."""
    status = "waits for its answer" if wire.is_open else "" if wire.status is None else str(wire.status)
    return {
        "url": wire.url,
        "verb": wire.verb,
        "status": status,
        "took_ms": wire.took_ms,
        "request": wire.request_text,
        "answer": wire.answer_text,
        "error": wire.error,
    }
