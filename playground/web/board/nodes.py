"""What a board shows is in its address: links carry it, Back goes through it, and ticks ask for the same."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from playground.clusters.board.nodes import DeviceUse, NodeUse, PodUse, devices_on_nodes, node_uses, pods_on
from playground.clusters.memo import Memo
from playground.web import amounts
from playground.web.heat import heat_map, histogram, squares_of
from playground.web.looks import PriorityMark, PriorityScale, View, piece
from playground.web.requests import positive_int

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster

_FIELDS: Final = ("view", "group", "by", "q", "open", "sort", "node", "pod")


@dataclass(frozen=True)
class BoardAddress:
    """The query of a board.

    Attributes
    ----------
    view
        ``cards``, ``heat`` or ``table``; empty = what suits the number of nodes.
    group
        Label nodes are grouped by, ``none`` for one group; empty = what suits their labels.
    by
        Resource the heat map shows, ``pods`` for how many; empty = cpu.
    q
        Words nodes are looked for by.
    open
        Name of the group whose cards are all shown.
    sort
        Column nodes are sorted by, ``-`` before it for the largest first; empty = by name.
    page
        Of the table.
    node, pod
        What is selected; a pod as ``namespace/name``. At most one of the two.
    """

    view: str = ""
    group: str = ""
    by: str = ""
    q: str = ""
    open: str = ""
    sort: str = ""
    page: int = 1
    node: str = ""
    pod: str = ""

    @classmethod
    def read(cls, query: Mapping[str, Any]) -> BoardAddress:
        """Read a query; ``selected`` is a node or a pod."""
        found = {name: str(query.get(name) or "").strip() for name in _FIELDS}
        address = cls(**found, page=positive_int(query.get("page", "")) or 1)
        picked = found["node"] or found["pod"] or str(query.get("selected") or "")
        return address.selecting(picked)

    @property
    def selected(self) -> str:
        """The name of a node, or ``namespace/name`` of a pod; empty for nothing."""
        return self.node or self.pod

    def selecting(self, picked: str) -> BoardAddress:
        """The same board with something else selected: a slash is no part of a node's name."""
        is_pod = "/" in picked
        return replace(self, node="" if is_pod else picked, pod=picked if is_pod else "")

    def facts(self) -> dict[str, str]:
        """What differs from a plain board, as text by name."""
        said = {name: str(value) for name, value in asdict(self).items() if value}
        return {name: value for name, value in said.items() if (name, value) != ("page", "1")}

    def href(self, **changes: Any) -> str:
        """The query of this board with changes: ``?view=heat``; ``?`` for a plain one."""
        return f"?{urlencode(replace(self, **changes).facts())}"


ZONE_LABEL: Final = "topology.kubernetes.io/zone"
TYPE_LABEL: Final = "node.kubernetes.io/instance-type"
POOL_LABELS: Final = (
    "karpenter.sh/nodepool",
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
)
"""What clouds call the pool of a node."""
NOT_GROUPED: Final = "none"
NO_LABEL: Final = "no such label"
_FIRST: Final = (TYPE_LABEL, *POOL_LABELS, ZONE_LABEL)
_SAMPLE: Final = 500


def group_labels(uses: Sequence[NodeUse]) -> tuple[str, ...]:
    """Labels worth grouping by, as several nodes share a value: type, pool and zone first.

    Of a large cluster it looks at nodes from all over the list.
    """
    values: dict[str, set[str]] = {}
    sample = uses[:: max(1, len(uses) // _SAMPLE)]
    for use in sample:
        for key, value in use.labels.items():
            values.setdefault(key, set()).add(value)
    few = max(1, len(sample) // 2)
    shared = [key for key, found in values.items() if len(found) <= few or key == ZONE_LABEL]
    return tuple(sorted(shared, key=lambda key: (_FIRST.index(key) if key in _FIRST else len(_FIRST), key)))


def usual_label(labels: Sequence[str]) -> str:
    """The label to group by when none was asked for."""
    return next((label for label in (TYPE_LABEL, ZONE_LABEL) if label in labels), NOT_GROUPED)


def matching(uses: Sequence[NodeUse], words: str) -> Sequence[NodeUse]:
    """Nodes all words are found in: their names, labels (``zone=eu-central-1a``), taints and states."""
    wanted = [word for word in words.lower().split() if word]
    if not wanted:
        return uses
    texts = ((use, _text(use)) for use in uses)
    return [use for use, text in texts if all(word in text for word in wanted)]


def _text(use: NodeUse) -> str:
    labels = " ".join(f"{key}={value}" for key, value in use.labels.items())
    taints = " ".join(f"{taint.get('key', '')}={taint.get('value') or ''}" for taint in use.taints)
    return f"{use.name} {labels} {taints} {use.state.replace(' ', '-')}".lower()


def sorted_by(uses: Sequence[NodeUse], sort: str) -> Sequence[NodeUse]:
    """Nodes by a resource's share, their state, or (as they come) their name; ``-`` before it turns it round."""
    column = sort.removeprefix("-")
    turned = sort.startswith("-")
    if column in ("", "name"):
        return uses[::-1] if turned else uses
    if column == "state":
        return sorted(uses, key=lambda use: use.state, reverse=turned)
    return sorted(uses, key=lambda use: _share(use, column), reverse=turned)


def _share(use: NodeUse, resource: str) -> float:
    """What nodes without the resource have is less than nothing."""
    used, has = use.amounts(resource)
    return used / has if has else -1.0


MAX_SEGMENTS = 40
_AWAITS: Final = {"permit": "waiting at Permit", "binding": "waiting for its Binding"}


def bar(resource: str, allocatable: int, used: int, pods: Sequence[PodUse], scale: PriorityScale) -> View:
    """Build the bar of ``cpu`` or ``memory``; pieces below a tenth of a percent are left out."""
    is_cpu = resource == "cpu"
    text = amounts.cores if is_cpu else amounts.gib
    segments: list[View] = []
    x = 0.0
    for pod in pods:
        amount = pod.cpu_milli if is_cpu else pod.memory_bytes
        if not allocatable or not amount or len(segments) >= MAX_SEGMENTS:
            continue
        width = round(100 * amount / allocatable, 2)
        if width < 0.1:
            continue
        start = min(x, max(0.0, 100 - width)) if pod.nominated else min(x, 100.0)
        mark = scale.mark(pod.priority, pod.priority_class)
        segments.append(
            {
                **piece(start, min(width, round(100 - round(start, 2), 2)), room=9),
                "mark": mark,
                "title": _title(pod, mark),
                "terminating": pod.terminating,
                "reserved": pod.reserved,
                "nominated": pod.nominated,
            }
        )
        if not pod.nominated:
            x += width
    return {
        "resource": "CPU" if is_cpu else resource,
        "used": text(used),
        "allocatable": text(allocatable),
        "unit": "" if is_cpu else "Gi",
        "segments": segments,
    }


def _title(pod: PodUse, mark: PriorityMark) -> str:
    words = (
        f"{pod.namespace}/{pod.name}: {amounts.requested(pod.cpu_milli, pod.memory_bytes)}, "
        f"priority {pod.priority} ({mark.title})"
    )
    if pod.nominated:
        return f"{words}, nominated"
    if pod.reserved:
        return f"{words}, reserved, {_AWAITS.get(pod.held_in, _AWAITS['permit'])}"
    return f"{words}, terminating" if pod.terminating else words


CARD_LIMIT = 200
ALL_CARDS = 60
"""Up to so many nodes every card is shown; above, a map where nothing else is asked for."""
FEW_CARDS = 12
"""Of more nodes, the first ones of each group: so many in all."""
TABLE_PAGE = 20
MAX_PIPS = 16
MEBIBYTE = 2**20
NODE_COLUMNS = (
    ("name", "Node", False),
    ("cpu", "cpu", True),
    ("memory", "memory, Gi", True),
    ("pods", "Pods", True),
    ("state", "State", False),
)
"""Of the table: key, words, and whether its numbers are first sorted with the largest on top."""


def view_nodes(
    cluster: Cluster,
    scale: PriorityScale,
    address: BoardAddress,
    *,
    reserved: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Find, sort and group the nodes; cards up to `ALL_CARDS` nodes, a heat map above or when asked.

    Returns
    -------
    dict
        For `board/nodes.html`. `n_nodes` are all, `n_found` those the words in the address mean; `n_pods` and
        `requested` over these: percent of the resources most or some have, by name. A heat map can show `resources`.
        `groups` share a label value: its `name` in words, the label's `value`, the `shape` of a node where all have the
        same, sums over all its nodes, and those that are shown: `cards`, `members` of a table, or `heat`.
    """
    uses = node_uses(cluster)
    found = sorted_by(matching(uses, address.q), address.sort)
    labels = group_labels(uses)
    group_by = address.group if address.group in (*labels, NOT_GROUPED) else usual_label(labels)
    resources = _resources(uses)
    by = address.by if address.by in resources else "cpu"
    cards_allowed = len(found) <= CARD_LIMIT
    drawn = "table" if address.view == "table" else "heat"
    if cards_allowed and (address.view == "cards" or (not address.view and len(found) <= ALL_CARDS)):
        drawn = "cards"
    n_pages = max(1, ceil(len(found) / TABLE_PAGE)) if drawn == "table" else 1
    page = min(address.page, n_pages)
    by_value: dict[str, list[NodeUse]] = {}
    for use in found:
        value = "" if group_by == NOT_GROUPED else use.labels.get(group_by, NO_LABEL)
        by_value.setdefault(value, []).append(use)
    in_order = [use.name for _, members in sorted(by_value.items()) for use in members]
    on_page = {*in_order[(page - 1) * TABLE_PAGE : page * TABLE_PAGE]} if drawn == "table" else ()
    shown = {
        value: _shown(members, address, value, drawn, len(found), len(by_value), on_page)
        for value, members in by_value.items()
    }
    most = max(map(len, by_value.values()), default=0)
    with_cards = [use for members in shown.values() for use in members] if drawn == "cards" else []
    cards = _cards(cluster, scale, with_cards, address.node, reserved)
    groups = [
        {
            "name": value or "All nodes",
            "value": value or NOT_GROUPED,
            "shape": _shape(members),
            "n_nodes": len(members),
            "n_pods": sum(use.n_pods for use in members),
            "cpu_milli": sum(use.cpu_milli for use in members),
            "used_cpu_milli": sum(use.used_cpu_milli for use in members),
            "cards": [cards[use.name] for use in shown[value]] if drawn == "cards" else (),
            "n_more": len(members) - len(shown[value]),
            "heat": _heat(cluster, address, group_by, value, by, members, most) if drawn == "heat" else None,
            "members": shown[value] if drawn != "cards" else (),
        }
        for value, members in sorted(by_value.items())
        if drawn != "table" or shown[value]
    ]
    return {
        "groups": groups,
        "n_nodes": len(uses),
        "n_found": len(found),
        "n_pods": sum(use.n_pods for use in found),
        "requested": list(_requested(found, resources)),
        "group_by": group_by,
        "labels": labels,
        "view": drawn,
        "by": by,
        "resources": resources,
        "cards_allowed": cards_allowed,
        "legend": scale.legend(),
        "histogram": histogram(found, by) if drawn == "heat" else [],
        "n_not_ready": sum(not use.ready for use in found),
        "n_cordoned": sum(use.unschedulable for use in found),
        "page": page,
        "n_pages": n_pages,
    }


def _shown(
    members: Sequence[NodeUse],
    address: BoardAddress,
    value: str,
    drawn: str,
    n_found: int,
    n_groups: int,
    on_page: Collection[str],
) -> Sequence[NodeUse]:
    """Nodes of a group that are drawn one by one."""
    if drawn == "table":
        return [use for use in members if use.name in on_page]
    if drawn == "heat" or n_found <= ALL_CARDS or address.open == (value or NOT_GROUPED):
        return members
    most = max(2, FEW_CARDS // n_groups)
    # What is selected is to be seen, wherever it stands.
    return [use for i, use in enumerate(members) if i < most or use.name == address.node]


def _resources(uses: Sequence[NodeUse]) -> tuple[str, ...]:
    """Resources that some node has, and pods: cpu and memory first."""
    more = {
        name
        for use in uses
        for name, amount in use.extended.items()
        if amount
        and (name != "ephemeral-storage" or use.used_extended.get(name))
        and not name.startswith("hugepages-")
    }
    return ("cpu", "memory", "pods", *sorted(more))


def _requested(uses: Sequence[NodeUse], resources: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Percent requested of each resource, over the nodes that have it."""
    for resource in resources:
        used, has = (
            sum(amounts) for amounts in zip((0, 0), *(use.amounts(resource) for use in uses), strict=True)
        )
        if has and resource != "pods":
            yield resource, round(100 * used / has)


def _shape(members: Sequence[NodeUse]) -> str:
    """``16 CPU, 64 Gi`` where all nodes have about that; cloud machines of one type differ by some bytes."""
    first = members[0]
    alike = all(
        use.cpu_milli == first.cpu_milli and abs(use.memory_bytes - first.memory_bytes) < MEBIBYTE
        for use in members
    )
    return f"{amounts.cores(first.cpu_milli)} CPU, {amounts.memory(first.memory_bytes)}" if alike else ""


_HEATS: Memo[View] = Memo(64)


def _heat(
    cluster: Cluster,
    address: BoardAddress,
    group_by: str,
    value: str,
    by: str,
    members: Sequence[NodeUse],
    most: int,
) -> View:
    """The map of a group, drawn once a version: a tick about the clock or a run finds it here."""
    what = (group_by, value, by, address.q, address.sort)
    key = (cluster.public_id, cluster.generation, cluster.version, *what)
    return _HEATS.get(key, lambda: heat_map(squares_of(members, by), most=most))


def _cards(
    cluster: Cluster,
    scale: PriorityScale,
    nodes: Sequence[NodeUse],
    selected: str,
    reserved: Mapping[str, str] | None,
) -> dict[str, View]:
    """The cards of nodes by name; what is used includes what reserved pods hold."""
    names = [use.name for use in nodes]
    pods_of = pods_on(cluster, names, reserved=reserved) if names else {}
    devices = devices_on_nodes(cluster) if names else {}
    found = {}
    for use in nodes:
        pods = pods_of.get(use.name, ())
        # The scheduler counts a pod that waits at Permit as if it ran there; the API server knows nothing of it yet.
        held = [pod for pod in pods if pod.reserved]
        card = node_card(
            use,
            pods,
            scale,
            cpu_milli=use.used_cpu_milli + sum(pod.cpu_milli for pod in held),
            memory_bytes=use.used_memory_bytes + sum(pod.memory_bytes for pod in held),
        )
        card["extended"] += _devices(devices.get(use.name, ()))
        found[use.name] = card | {"n_reserved": len(held), "selected": use.name == selected}
    return found


def node_card(
    use: NodeUse, pods: Sequence[PodUse], scale: PriorityScale, *, cpu_milli: int, memory_bytes: int
) -> View:
    """One node on a board, now or then, with what is used of it."""
    return {
        "use": use,
        "bars": [
            bar("cpu", use.cpu_milli, cpu_milli, pods, scale),
            bar("memory", use.memory_bytes, memory_bytes, pods, scale),
        ],
        "extended": _extended(use),
        "taints": shown_taints(use),
        "n_nominated": sum(pod.nominated for pod in pods),
    }


def shown_taints(use: NodeUse) -> tuple[str, ...]:
    """A node's taints in words, without those that only repeat its state."""
    return tuple(_taint(t) for t in use.taints if not str(t.get("key", "")).startswith("node.kubernetes.io/"))


def _extended(use: NodeUse) -> list[View]:
    """A node's GPUs and other extended resources; `pips` say used or free where there are few enough to draw."""
    found = []
    for resource, allocatable in sorted(use.extended.items()):
        if resource == "ephemeral-storage" or resource.startswith("hugepages-") or not allocatable:
            continue
        used = use.used_extended.get(resource, 0)
        pips = [i < used for i in range(allocatable)] if allocatable <= MAX_PIPS else []
        name = resource.rpartition("/")[2] or resource
        found.append({"resource": name, "used": used, "allocatable": allocatable, "pips": pips})
    return found[:2]


def _devices(uses: Sequence[DeviceUse]) -> list[View]:
    """Devices of pools, the driver's first word for a name."""
    return [
        {
            "resource": use.driver.partition(".")[0],
            "used": sum(use.taken),
            "allocatable": len(use.taken),
            "pips": use.taken if len(use.taken) <= MAX_PIPS else (),
        }
        for use in uses[:2]
    ]


def _taint(taint: Mapping[str, Any]) -> str:
    value = taint.get("value")
    soft = "~" if taint.get("effect") == "PreferNoSchedule" else ""
    return f"{soft}{taint.get('key', '')}{'=' + str(value) if value else ''}"
