"""What the board shows, put together from the selectors: groups of nodes, lanes, feed, run bar."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

from playground.clusters.selectors.board_nodes import NodeUse, PodUse, node_uses, pods_on
from playground.clusters.selectors.classes import priorities
from playground.clusters.selectors.devices import DeviceUse, devices_on_nodes
from playground.clusters.selectors.memo import Memo
from playground.web import amounts
from playground.web.bars import Bar, bar
from playground.web.board_address import BoardAddress
from playground.web.heat_map import HeatMap, heat_map, histogram
from playground.web.node_groups import (
    NO_LABEL,
    NOT_GROUPED,
    group_labels,
    matching,
    sorted_by,
    usual_label,
)
from playground.web.priorities import PriorityMark, PriorityScale

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster

CARD_LIMIT = 200
ALL_CARDS = 60
"""Up to so many nodes every card is shown; above, the first ones of each group."""
CARDS_A_GROUP = 12
TABLE_PAGE = 200
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
    """Nodes that share a label value; what is summed is summed over all of them, however many are shown.

    Attributes
    ----------
    name, value
        In words, and the label's value.
    shape
        What one of its nodes has, where all have the same; else empty.
    cards, members
        Nodes that are shown, as cards or as rows of a table.
    """

    name: str
    value: str
    shape: str
    n_nodes: int
    n_pods: int
    cpu_milli: int
    used_cpu_milli: int
    cards: tuple[NodeCard, ...]
    heat: HeatMap | None
    members: tuple[NodeUse, ...]

    @property
    def n_more(self) -> int:
        """How many cards are not shown."""
        return self.n_nodes - len(self.cards)


@dataclass(frozen=True)
class NodesView:
    """The middle of the board.

    Attributes
    ----------
    n_nodes, n_found
        All nodes, and those the words in the address mean.
    n_pods, requested
        Over the nodes found: pods, and percent of the resources most or some have, by name.
    resources
        What a heat map can show.
    """

    groups: tuple[NodeGroup, ...]
    n_nodes: int
    n_found: int
    n_pods: int
    requested: tuple[tuple[str, int], ...]
    group_by: str
    labels: tuple[str, ...]
    view: str
    by: str
    resources: tuple[str, ...]
    cards_allowed: bool
    legend: Sequence[PriorityMark]
    histogram: list[tuple[str, str, int, int]]
    n_not_ready: int
    n_cordoned: int
    page: int
    n_pages: int


def priority_scale(cluster: Cluster) -> PriorityScale:
    """Marks of this cluster's priority classes: one query."""
    return PriorityScale(priorities(cluster))


def view_nodes(
    cluster: Cluster,
    scale: PriorityScale,
    address: BoardAddress,
    *,
    reserved: Mapping[str, str] | None = None,
) -> NodesView:
    """Find, sort and group the nodes; cards up to `CARD_LIMIT` nodes, a heat map above or when asked."""
    uses = node_uses(cluster)
    found = sorted_by(matching(uses, address.q), address.sort)
    labels = group_labels(uses)
    group_by = address.group if address.group in (*labels, NOT_GROUPED) else usual_label(labels)
    resources = _resources(uses)
    by = address.by if address.by in resources else "cpu"
    cards_allowed = len(found) <= CARD_LIMIT
    drawn = "table" if address.view == "table" else "heat"
    if cards_allowed and address.view in ("", "cards"):
        drawn = "cards"
    n_pages = max(1, ceil(len(found) / TABLE_PAGE)) if drawn == "table" else 1
    page = min(address.page, n_pages)
    by_value: dict[str, list[NodeUse]] = {}
    for use in found:
        value = "" if group_by == NOT_GROUPED else use.labels.get(group_by, NO_LABEL)
        by_value.setdefault(value, []).append(use)
    on_page = (
        {use.name for use in found[(page - 1) * TABLE_PAGE : page * TABLE_PAGE]} if drawn == "table" else ()
    )
    shown = {
        value: _shown(members, address, value, drawn, len(found), len(by_value), on_page)
        for value, members in by_value.items()
    }
    most = max(map(len, by_value.values()), default=0)
    draw = _CardDrawer(cluster, scale, shown if drawn == "cards" else {}, address.node, reserved)
    groups = tuple(
        NodeGroup(
            name=value or "All nodes",
            value=value or NOT_GROUPED,
            shape=_shape(members),
            n_nodes=len(members),
            n_pods=sum(use.n_pods for use in members),
            cpu_milli=sum(use.cpu_milli for use in members),
            used_cpu_milli=sum(use.used_cpu_milli for use in members),
            cards=tuple(draw.card(use) for use in shown[value]) if drawn == "cards" else (),
            heat=_heat(cluster, address, group_by, value, by, members, most) if drawn == "heat" else None,
            members=tuple(shown[value]) if drawn != "cards" else (),
        )
        for value, members in sorted(by_value.items())
        if drawn != "table" or shown[value]
    )
    return NodesView(
        groups=groups,
        n_nodes=len(uses),
        n_found=len(found),
        n_pods=sum(use.n_pods for use in found),
        requested=tuple(_requested(found, resources)),
        group_by=group_by,
        labels=labels,
        view=drawn,
        by=by,
        resources=resources,
        cards_allowed=cards_allowed,
        legend=scale.legend(),
        histogram=histogram(found, by) if drawn == "heat" else [],
        n_not_ready=sum(not use.ready for use in found),
        n_cordoned=sum(use.unschedulable for use in found),
        page=page,
        n_pages=n_pages,
    )


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
    most = CARDS_A_GROUP if n_groups > 1 else ALL_CARDS
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
    """``16 cpu, 64 Gi`` where all nodes have about that; cloud machines of one type differ by some bytes."""
    first = members[0]
    alike = all(
        use.cpu_milli == first.cpu_milli and abs(use.memory_bytes - first.memory_bytes) < MEBIBYTE
        for use in members
    )
    return f"{amounts.cores(first.cpu_milli)} cpu, {amounts.memory(first.memory_bytes)}" if alike else ""


_HEATS: Memo[HeatMap] = Memo(64)


def _heat(
    cluster: Cluster,
    address: BoardAddress,
    group_by: str,
    value: str,
    by: str,
    members: Sequence[NodeUse],
    most: int,
) -> HeatMap:
    """The map of a group, drawn once a version: a tick about the clock or a run finds it here."""
    what = (group_by, value, by, address.q, address.sort)
    key = (cluster.public_id, cluster.generation, cluster.version, *what)
    return _HEATS.get(key, lambda: heat_map(members, by, most=most))


class _CardDrawer:
    """Draws cards of the nodes that are shown; pods and devices of others are not read."""

    def __init__(
        self,
        cluster: Cluster,
        scale: PriorityScale,
        shown: Mapping[str, Sequence[NodeUse]],
        selected: str,
        reserved: Mapping[str, str] | None,
    ) -> None:
        self.scale = scale
        self.selected = selected
        names = [use.name for members in shown.values() for use in members]
        self.pods = pods_on(cluster, names, reserved=reserved) if names else {}
        self.devices = devices_on_nodes(cluster) if names else {}

    def card(self, use: NodeUse) -> NodeCard:
        """The card of one of them."""
        return _card(
            use, self.pods.get(use.name, ()), self.devices.get(use.name, ()), self.scale, self.selected
        )


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
        extended=extended_of(use) + _devices(devices),
        taints=shown_taints(use),
        n_nominated=sum(pod.nominated for pod in pods),
        n_reserved=len(held),
        selected=use.name == selected,
    )


def shown_taints(use: NodeUse) -> tuple[str, ...]:
    """A node's taints in words, without those that only repeat its state."""
    return tuple(_taint(t) for t in use.taints if not str(t.get("key", "")).startswith("node.kubernetes.io/"))


def extended_of(use: NodeUse) -> tuple[ExtendedUse, ...]:
    """A node's GPUs and other extended resources."""
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
