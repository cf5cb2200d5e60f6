"""The scheduling queue as lanes of the board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from playground.clusters.board.nodes import node_uses, pods_on
from playground.clusters.history.controllers import controller_runs, said_of
from playground.clusters.history.cycles import last_cycle_of, placed_by
from playground.clusters.history.queue import LANE_TITLES, Groups, PendingGroup, QueueItem
from playground.clusters.history.story import find_pod
from playground.clusters.row_types import Cluster
from playground.web import amounts
from playground.web.amounts import requested
from playground.web.listing import Alike
from playground.web.looks import PriorityScale, View
from playground.web.pods.present import cache_state, group_of

LANE_LIMIT = 8
GROUPS_LIMIT = 40
GROUPED = ("backoff", "unschedulable", "gated")
"""Lanes whose pods are grouped; of activeQ the order is what matters."""


# lane -> (note, what an empty lane says); a lane without such words is left out when empty.
_WORDS = {
    "active": ("priority, then waited", "No pod is ready to be scheduled."),
    "permit": (
        "reserved",
        "No pod waits here. With ManualApproval in its profile, a pod annotated "
        "playground.dev/approval: required does.",
    ),
    "binding": ("assumed on their nodes", ""),
    "backoff": ("by second, then priority", "No pod is backing off."),
    "unschedulable": ("waits for an event", "No pod is unschedulable."),
    "gated": ("held before the queue", "No scheduling gates."),
    "foreign": ("", ""),
}


def view_lanes(
    lanes: Mapping[str, Sequence[QueueItem]],
    counts: Mapping[str, int],
    scale: PriorityScale,
    *,
    now_ns: int,
    limit: int = LANE_LIMIT,
    groups: Groups = MappingProxyType({}),
    fixes: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    pick: str = "",
) -> list[View]:
    """Draw the first `limit` pods of every lane, or its groups.

    Parameters
    ----------
    groups
        The pods of some lanes by workload and reason (`pending_groups`).
    fixes
        What is known to place a pod, by ``namespace/name``: a workload of an answer to `fix`.
    pick
        The pod of which nodes say whether it fits.

    Returns
    -------
    list of dict
        `groups` take the place of `items`: a row that opens, with the first ones as `items`; its `key` is an id, the
        same while the workload and the reason are. `n_more` pods are not listed, in a group or alone. `progress` of an
        item is in percent, of a backoff passed or of a Permit timeout left.
    """
    result = []
    for key, (note, empty) in _WORDS.items():
        count = counts.get(key, 0)
        if not count and not empty:
            continue
        found = [
            _group(key, group, scale, now_ns) | _advice(group, fixes, pick)
            for group in groups.get(key, ())[:GROUPS_LIMIT]
        ]
        items = [] if found else [_view(key, item, scale, now_ns) for item in lanes.get(key, ())[:limit]]
        shown = note if found or count <= len(items) else f"first {len(items)} shown"
        if (n := len(found)) < count and n:
            shown = f"{n} group{'' if n == 1 else 's'}"
        result.append(
            {
                "key": key,
                "title": LANE_TITLES[key],
                "note": shown,
                "empty": empty,
                "count": count,
                "items": items,
                "groups": found,
                "n_more": count - sum(group["count"] for group in found) - len(items),
            }
        )
    return result


def _group(lane: str, group: PendingGroup, scale: PriorityScale, now_ns: int) -> View:
    first = group.items[0]
    facts = (lane, group.kind, group.namespace, group.name, first.priority_class, group.reason)
    alike = Alike(facts, group.items)
    return {
        "key": f"{lane}-{alike.id}",
        "group": group,
        "mark": scale.mark(first.priority, first.priority_class),
        "items": [_view(lane, item, scale, now_ns) for item in alike.shown],
        "count": alike.n,
        "n_more": alike.n_more,
    }


def _advice(group: PendingGroup, fixes: Mapping[str, Mapping[str, Any]], pick: str) -> View:
    """The cause and the best fix of a group, as far as they are known, and whether it is picked."""
    known = next((fixes[item.pod] for item in group.items if item.pod in fixes), None)
    return {
        "asks": requested(*group.asks) if any(group.asks) else "",
        "cause": known["headline"] if known else "",
        "best": known["best"] if known else None,
        "pick": group.items[0].pod,
        "is_picked": any(item.pod == pick for item in group.items),
    }


def _view(lane: str, item: QueueItem, scale: PriorityScale, now_ns: int) -> View:
    aside = str(item.priority)
    why = item.reason
    progress = None
    css = "prog"
    since_ns = item.facts.get("since_ns")
    if lane == "active":
        if since_ns is not None:
            aside = f"{item.priority} · {amounts.duration(max(0, now_ns - since_ns))}"
        if item.position == 1:
            why = "Next cycle" if item.read else "Submitted; the engine reads it next"
    elif lane in ("backoff", "permit", "binding") and item.left_s is not None:
        left_ns = round(item.left_s * 1e9)
        aside = f"{amounts.duration(left_ns)} left"
        whole = (item.facts.get("until_ns") or 0) - (since_ns or now_ns)
        if since_ns is not None and whole > 0:
            share = amounts.percent(left_ns, whole)
            progress, css = (share, "progw") if lane == "permit" else (100 - share, "prog")
    if lane == "permit" and item.node:
        why = f"Reserved on {item.node}{'; ' + why if why else ''}"
    elif lane == "binding":
        why = f"Assumed on {item.node}. {why}"
    elif item.node:
        why = f"Nominated to {item.node}: waits for its victims to go"
    if lane == "backoff" and not why and item.attempts:
        why = f"{item.attempts} attempt{'' if item.attempts == 1 else 's'} so far"
    mark = scale.mark(item.priority, item.priority_class)
    return {"item": item, "mark": mark, "aside": aside, "why": why, "progress": progress, "progress_css": css}


Lanes = Mapping[str, Sequence[QueueItem]]


def reserved_nodes(lanes: Lanes) -> dict[str, str]:
    """The node each pod that waits at Permit or for its Binding holds, by ``namespace/name``."""
    return {item.pod: item.node for lane in ("permit", "binding") for item in lanes[lane] if item.node}


RUNS_SHOWN = 5
"""Runs of controllers about a selected node."""


def inspect(cluster: Cluster, scale: PriorityScale, selected: str, lanes: Lanes) -> View | None:
    """Open up what is selected; None when nothing is, or it is gone.

    Parameters
    ----------
    selected
        The name of a node, or ``namespace/name`` of a pod: a slash is no part of a node's name.
    """
    if "/" in selected:
        return _pod(cluster, scale, selected, lanes)
    return _node(cluster, scale, selected, lanes) if selected else None


def _node(cluster: Cluster, scale: PriorityScale, name: str, lanes: Lanes) -> View | None:
    use = next((use for use in node_uses(cluster) if use.name == name), None)
    if use is None:
        return None
    pods = pods_on(cluster, [name], reserved=reserved_nodes(lanes)).get(name, [])
    by = placed_by(cluster, name, [(pod.namespace, pod.name) for pod in pods])
    # What pods that wait at Permit hold there.
    held = [pod for pod in pods if pod.reserved]
    amount = requested(sum(pod.cpu_milli for pod in held), sum(pod.memory_bytes for pod in held))
    return {
        "title": name,
        "use": use,
        "labels": sorted(use.labels.items()),
        "reserved": f"{len(held)} reserved with {amount}" if held else "",
        "controllers": [
            (record.at_ns, record.controller.rpartition("/")[2], words)
            for record in controller_runs(cluster, about=f"Node {name}", limit=RUNS_SHOWN)
            if (words := "; ".join(said_of(record, f"Node {name}", cluster.start_ns)))
        ],
        "pods": [
            {
                "pod": pod,
                "key": f"{pod.namespace}/{pod.name}",
                "mark": scale.mark(pod.priority, pod.priority_class),
                "cycle": by.get((pod.namespace, pod.name)),
            }
            for pod in pods
        ],
    }


def _pod(cluster: Cluster, scale: PriorityScale, key: str, lanes: Lanes) -> View | None:
    """The selected pod: the title of its lane and its turn in activeQ from 1, what the queue says of it, what the
    scheduler's cache holds of it, and its last cycle."""
    namespace, _, name = key.partition("/")
    pod = find_pod(cluster, namespace, name)
    if pod is None:
        return None
    last = last_cycle_of(pod)
    item = next((item for lane in lanes.values() for item in lane if item.pod == key), None)
    lane = item.lane if item else pod.lane
    return {
        "title": pod.name,
        "pod": pod,
        "mark": scale.mark(pod.priority, pod.priority_class),
        "lane": LANE_TITLES.get(lane, ""),
        "place": item.position if item and lane == "active" else None,
        "why": item.reason if item else "",
        "cache": cache_state(pod, last),
        "last": last,
        "group": group_of(pod),
    }
