"""What the board shows, put together from the selectors: groups of nodes, lanes, feed, run bar."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from playground.clusters.models import Cluster, PriorityClass
from playground.clusters.selectors.board_nodes import NodeUse, PodUse, node_uses, pods_on
from playground.clusters.selectors.devices import DeviceUse, devices_on_nodes
from playground.clusters.selectors.memo import Memo
from playground.web.bars import Bar, bar
from playground.web.heat_map import HeatMap, heat_map, histogram
from playground.web.priorities import PriorityMark, PriorityScale

CARD_LIMIT = 200
TABLE_PAGE = 200
ZONE_LABEL = "topology.kubernetes.io/zone"
MAX_PIPS = 16
NOT_GROUPED = "none"


@dataclass(frozen=True)
class ExtendedUse:
    """An extended resource on a node card; `pips` say used or free where there are few enough to draw."""

    resource: str
    used: int
    allocatable: int
    pips: tuple[bool, ...]


@dataclass(frozen=True)
class NodeCard:
    """One node on the board; what is used includes what reserved pods hold."""

    use: NodeUse
    bars: tuple[Bar, ...]
    extended: tuple[ExtendedUse, ...]
    taints: tuple[str, ...]
    n_nominated: int
    n_reserved: int
    selected: bool


@dataclass(frozen=True)
class NodeGroup:
    """Nodes that share a label value."""

    name: str
    n_nodes: int
    n_pods: int
    cpu_milli: int
    used_cpu_milli: int
    cards: tuple[NodeCard, ...]
    heat: HeatMap | None
    members: tuple[NodeUse, ...]


@dataclass(frozen=True)
class NodesView:
    """The middle of the board."""

    groups: tuple[NodeGroup, ...]
    n_nodes: int
    n_pods: int
    cpu_percent: int
    memory_percent: int
    group_by: str
    labels: tuple[str, ...]
    view: str
    cards_allowed: bool
    legend: Sequence[PriorityMark]
    histogram: list[tuple[str, str, int, int]]
    n_not_ready: int
    n_cordoned: int
    page: int
    n_pages: int


def priority_scale(cluster: Cluster) -> PriorityScale:
    """Marks of this cluster's priority classes: one query."""
    classes = PriorityClass.objects.filter(cluster=cluster).values_list("name", "value", "global_default")
    return PriorityScale(classes)


def view_nodes(
    cluster: Cluster,
    scale: PriorityScale,
    *,
    group_by: str = "",
    view: str = "cards",
    selected: str = "",
    reserved: Mapping[str, str] | None = None,
    page: int = 1,
) -> NodesView:
    """Group the nodes by a label; cards up to `CARD_LIMIT` nodes, a heat map above or when asked."""
    uses = node_uses(cluster)
    labels = _group_labels(uses)
    if group_by not in (*labels, NOT_GROUPED):
        group_by = ZONE_LABEL if ZONE_LABEL in labels else NOT_GROUPED
    cards_allowed = len(uses) <= CARD_LIMIT
    drawn = view if cards_allowed and view in ("cards", "heat", "table") else "heat"
    if view == "table":
        drawn = "table"
    n_pages = max(1, ceil(len(uses) / TABLE_PAGE)) if drawn == "table" else 1
    page = min(max(1, page), n_pages)
    listed = uses[(page - 1) * TABLE_PAGE : page * TABLE_PAGE] if drawn == "table" else uses
    by_value: dict[str, list[NodeUse]] = {}
    for use in listed:
        value = "" if group_by == NOT_GROUPED else use.labels.get(group_by, "no such label")
        by_value.setdefault(value, []).append(use)
    pods = pods_on(cluster, reserved=reserved) if drawn == "cards" and uses else {}
    devices = devices_on_nodes(cluster) if drawn == "cards" and uses else {}
    groups = []
    for value, members in sorted(by_value.items()):
        cards = (
            tuple(
                _card(use, pods.get(use.name, ()), devices.get(use.name, ()), scale, selected)
                for use in members
            )
            if drawn == "cards"
            else ()
        )
        groups.append(
            NodeGroup(
                name=value or "All nodes",
                n_nodes=len(members),
                n_pods=sum(use.n_pods for use in members),
                cpu_milli=sum(use.cpu_milli for use in members),
                used_cpu_milli=sum(use.used_cpu_milli for use in members),
                cards=cards,
                heat=_heat(cluster, group_by, value, members) if drawn == "heat" else None,
                members=tuple(members) if drawn != "cards" else (),
            )
        )
    cpu = sum(use.cpu_milli for use in uses)
    memory = sum(use.memory_bytes for use in uses)
    return NodesView(
        groups=tuple(groups),
        n_nodes=len(uses),
        n_pods=sum(use.n_pods for use in uses),
        cpu_percent=round(100 * sum(use.used_cpu_milli for use in uses) / cpu) if cpu else 0,
        memory_percent=round(100 * sum(use.used_memory_bytes for use in uses) / memory) if memory else 0,
        group_by=group_by,
        labels=labels,
        view=drawn,
        cards_allowed=cards_allowed,
        legend=scale.legend(),
        histogram=histogram(uses) if not cards_allowed else [],
        n_not_ready=sum(not use.ready for use in uses),
        n_cordoned=sum(use.unschedulable for use in uses),
        page=page,
        n_pages=n_pages,
    )


_HEATS: Memo[HeatMap] = Memo(64)


def _heat(cluster: Cluster, group_by: str, value: str, members: Sequence[NodeUse]) -> HeatMap:
    """The map of a group, drawn once a version: a tick about the clock or a run finds it here."""
    key = (cluster.public_id, cluster.generation, cluster.version, group_by, value)
    return _HEATS.get(key, lambda: heat_map(members))


def _group_labels(uses: Sequence[NodeUse]) -> tuple[str, ...]:
    """Labels worth grouping by: several nodes share a value. Looks at the first nodes of a large cluster."""
    values: dict[str, set[str]] = {}
    sample = uses[:CARD_LIMIT]
    for use in sample:
        for key, value in use.labels.items():
            values.setdefault(key, set()).add(value)
    few = max(1, len(sample) // 2)
    return tuple(sorted(key for key, found in values.items() if len(found) <= few or key == ZONE_LABEL))


def _card(
    use: NodeUse, pods: Sequence[PodUse], devices: Sequence[DeviceUse], scale: PriorityScale, selected: str
) -> NodeCard:
    # The scheduler counts a pod that waits at Permit as if it ran there; the API server knows nothing of it yet.
    held = [pod for pod in pods if pod.reserved]
    cpu_milli = use.used_cpu_milli + sum(pod.cpu_milli for pod in held)
    memory_bytes = use.used_memory_bytes + sum(pod.memory_bytes for pod in held)
    return NodeCard(
        use=use,
        bars=(
            bar("cpu", use.cpu_milli, cpu_milli, pods, scale),
            bar("memory", use.memory_bytes, memory_bytes, pods, scale),
        ),
        extended=_extended(use) + _devices(devices),
        taints=tuple(
            _taint(t) for t in use.taints if not str(t.get("key", "")).startswith("node.kubernetes.io/")
        ),
        n_nominated=sum(pod.nominated for pod in pods),
        n_reserved=len(held),
        selected=use.name == selected,
    )


def _extended(use: NodeUse) -> tuple[ExtendedUse, ...]:
    found = []
    for resource, allocatable in sorted(use.extended.items()):
        if resource == "ephemeral-storage" or resource.startswith("hugepages-") or not allocatable:
            continue
        used = use.used_extended.get(resource, 0)
        pips = tuple(i < used for i in range(allocatable)) if allocatable <= MAX_PIPS else ()
        found.append(ExtendedUse(resource.rpartition("/")[2] or resource, used, allocatable, pips))
    return tuple(found[:2])


def _devices(uses: Sequence[DeviceUse]) -> tuple[ExtendedUse, ...]:
    """Devices of pools, the driver's first word for a name."""
    return tuple(
        ExtendedUse(
            use.driver.partition(".")[0],
            sum(use.taken),
            len(use.taken),
            use.taken if len(use.taken) <= MAX_PIPS else (),
        )
        for use in uses[:2]
    )


def _taint(taint: Mapping[str, Any]) -> str:
    value = taint.get("value")
    soft = "~" if taint.get("effect") == "PreferNoSchedule" else ""
    return f"{soft}{taint.get('key', '')}{'=' + str(value) if value else ''}"
