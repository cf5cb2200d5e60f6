"""The board: nodes with their bars and pods, the queue's lanes, the feed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.db.models import Count, Q, Sum

from playground.clusters.errors import NotFound
from playground.clusters.models import Cluster, Cycle, Node, Pod, PriorityClass, Run
from playground.clusters.selectors.queue import LANE_TITLES, LANES, QueueItem, lanes_of

CARD_LIMIT: Final = 200
FEED_LIMIT: Final = 50
LANE_LIMIT: Final = 50


@dataclass(frozen=True, slots=True)
class Bar:
    """Requested against allocatable of one resource; millicores, bytes or counts."""

    resource: str
    used: int
    total: int

    @property
    def percent(self) -> int:
        """Rounded, may be over 100."""
        return round(100 * self.used / self.total) if self.total else (100 if self.used else 0)


@dataclass(frozen=True, slots=True)
class PodSegment:
    """One pod on a card.

    `state` is ``running``, ``terminating``, ``finished``, ``reserved`` (waiting at Permit) or ``nominated``
    (it will come when its victims are gone; takes no room yet).
    """

    namespace: str
    name: str
    priority: int
    priority_class: str
    cpu_milli: int
    memory_bytes: int
    state: str
    extended: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodeCard:
    """One node with its bars; `pods` by priority, highest first, nominated ones last."""

    name: str
    zone: str
    ready: bool
    unschedulable: bool
    taints: Sequence[Mapping[str, str]]
    labels: Mapping[str, str]
    bars: Sequence[Bar]
    pods: Sequence[PodSegment]
    n_pods: int
    max_pods: int

    @property
    def nominated(self) -> bool:
        """Whether a preemptor waits for room here."""
        return any(pod.state == "nominated" for pod in self.pods)


@dataclass(frozen=True, slots=True)
class HeatCell:
    """One node of a cluster too large for cards; shares requested in percent."""

    name: str
    zone: str
    cpu_percent: int
    memory_percent: int
    n_pods: int
    ready: bool
    unschedulable: bool


@dataclass(frozen=True, slots=True)
class Lane:
    """One lane of the queue: the first pods and how many there are."""

    name: str
    title: str
    count: int
    items: Sequence[QueueItem]


@dataclass(frozen=True, slots=True)
class Board:
    """Everything on the board.

    Attributes
    ----------
    cluster
        Its row.
    cards
        Nodes (by zone, then name) while at most `CARD_LIMIT` match; else empty and `heat` is filled.
    heat
        All nodes as cells, for large clusters.
    zones
        Zone -> (nodes, cpu requested, cpu allocatable, pods); the empty zone last.
    lanes
        In page order.
    feed
        Newest cycles, without traces.
    run
        The open run, else the newest one, else None.
    n_nodes, n_pods, n_pending, n_cycles
        Of the whole cluster.
    totals
        cpu and memory over all nodes.
    priority_classes
        Name -> value, highest first.
    """

    cluster: Cluster
    cards: Sequence[NodeCard]
    heat: Sequence[HeatCell]
    zones: Mapping[str, tuple[int, int, int, int]]
    lanes: Sequence[Lane]
    feed: Sequence[Cycle]
    run: Run | None
    n_nodes: int
    n_pods: int
    n_pending: int
    n_cycles: int
    totals: Sequence[Bar]
    priority_classes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Use:
    cpu_milli: int = 0
    memory_bytes: int = 0
    n_pods: int = 0


_NODE_COLUMNS: Final = (
    "name",
    "zone",
    "ready",
    "unschedulable",
    "cpu_milli",
    "memory_bytes",
    "max_pods",
    "extended",
    "taints",
    "labels",
)
_POD_COLUMNS: Final = (
    "namespace",
    "name",
    "priority",
    "priority_class",
    "cpu_milli",
    "memory_bytes",
    "extended",
    "phase",
    "terminating",
    "node_name",
    "nominated_node",
    "lane",
)


def board(cluster: Cluster, *, search: str = "", zone: str = "", card_limit: int = CARD_LIMIT) -> Board:
    """The board of a cluster. At most eleven queries, whatever its size.

    Parameters
    ----------
    search
        Part of a node name.
    zone
        Only nodes of this zone.
    card_limit
        Above this number of matching nodes there are heat cells instead of cards.
    """
    nodes = Node.objects.filter(cluster=cluster)
    if search:
        nodes = nodes.filter(name__icontains=search)
    if zone:
        nodes = nodes.filter(zone=zone)
    use = _use_by_node(cluster)
    n_matching = nodes.count()
    as_cards = n_matching <= card_limit
    columns = (
        _NODE_COLUMNS if as_cards else tuple(c for c in _NODE_COLUMNS if c not in ("extended", "labels"))
    )
    rows = list(nodes.order_by("zone", "name").values(*columns))
    lanes, counts = lanes_of(cluster, full=False)
    cards: list[NodeCard] = []
    heat: list[HeatCell] = []
    if as_cards:
        cards = _cards(cluster, rows, use, lanes["permit"], every=not (search or zone))
    else:
        heat = [_cell(row, use.get(row["name"], _Use())) for row in rows]
    pods = Pod.objects.filter(cluster=cluster).aggregate(
        n=Count("pk"), pending=Count("pk", filter=Q(node_name="", phase="Pending"))
    )
    newest = list(Cycle.objects.filter(cluster=cluster).defer("trace").order_by("-number")[:FEED_LIMIT])
    classes = PriorityClass.objects.filter(cluster=cluster).order_by("-value", "name")
    return Board(
        cluster=cluster,
        cards=cards,
        heat=heat,
        zones=_zones(rows, use),
        lanes=[Lane(lane, LANE_TITLES[lane], counts[lane], lanes[lane][:LANE_LIMIT]) for lane in LANES],
        feed=newest,
        run=current_run(cluster),
        n_nodes=n_matching if not (search or zone) else Node.objects.filter(cluster=cluster).count(),
        n_pods=pods["n"],
        n_pending=pods["pending"],
        n_cycles=newest[0].number if newest else 0,
        totals=_totals(rows, use),
        priority_classes=dict(classes.values_list("name", "value")),
    )


def current_run(cluster: Cluster) -> Run | None:
    """The oldest open run, else the newest of all. One query."""
    runs = Run.objects.filter(cluster=cluster)
    newest = list(runs.order_by("-id")[:25])
    still_open = [run for run in newest if run.is_open]
    return still_open[-1] if still_open else (newest[0] if newest else None)


def node_detail(cluster: Cluster, name: str) -> tuple[NodeCard, dict[str, Any]]:
    """One node's card and its manifest. Five queries.

    Raises
    ------
    NotFound
    """
    row = Node.objects.filter(cluster=cluster, name=name).values(*_NODE_COLUMNS, "manifest").first()
    if row is None:
        raise NotFound(f'nodes "{name}" not found', kind="Node", name=name)
    use = _use_by_node(cluster, name)
    lanes, _ = lanes_of(cluster, full=False)
    card = _cards(cluster, [row], use, lanes["permit"], every=False)[0]
    return card, row["manifest"]


def _running() -> Q:
    return ~Q(phase__in=["Succeeded", "Failed"])


def _use_by_node(cluster: Cluster, name: str = "") -> dict[str, _Use]:
    pods = Pod.objects.filter(_running(), cluster=cluster)
    pods = pods.filter(node_name=name) if name else pods.exclude(node_name="")
    summed = (
        pods.order_by()
        .values("node_name")
        .annotate(cpu=Sum("cpu_milli"), memory=Sum("memory_bytes"), n=Count("pk"))
    )
    return {row["node_name"]: _Use(row["cpu"], row["memory"], row["n"]) for row in summed}


def _cards(
    cluster: Cluster,
    rows: Sequence[Mapping[str, Any]],
    use: Mapping[str, _Use],
    waiting: Sequence[QueueItem],
    *,
    every: bool,
) -> list[NodeCard]:
    names = [row["name"] for row in rows]
    pods = Pod.objects.filter(_running(), cluster=cluster)
    reserved = {item.pod: item.node for item in waiting if item.node}
    here = (
        pods.exclude(node_name="", nominated_node="")
        if every
        else pods.filter(Q(node_name__in=names) | Q(node_name="", nominated_node__in=names))
    )
    wanted = here | pods.filter(lane=Pod.Lane.PERMIT)
    by_node: dict[str, list[PodSegment]] = {name: [] for name in names}
    extended: dict[str, dict[str, int]] = {}
    for pod in wanted.order_by("-priority", "namespace", "name").values(*_POD_COLUMNS):
        node, state = _place(pod, reserved)
        if node not in by_node:
            continue
        by_node[node].append(
            PodSegment(
                namespace=pod["namespace"],
                name=pod["name"],
                priority=pod["priority"],
                priority_class=pod["priority_class"],
                cpu_milli=pod["cpu_milli"],
                memory_bytes=pod["memory_bytes"],
                state=state,
                extended=pod["extended"],
            )
        )
        if state != "nominated":
            amounts = extended.setdefault(node, {})
            for resource, amount in pod["extended"].items():
                amounts[resource] = amounts.get(resource, 0) + amount
    return [_card(row, by_node[row["name"]], extended.get(row["name"], {})) for row in rows]


def _place(pod: Mapping[str, Any], reserved: Mapping[str, str]) -> tuple[str, str]:
    if pod["node_name"]:
        return pod["node_name"], "terminating" if pod["terminating"] else "running"
    held = reserved.get(f"{pod['namespace']}/{pod['name']}")
    if held:
        return held, "reserved"
    return pod["nominated_node"], "nominated"


def _card(row: Mapping[str, Any], pods: list[PodSegment], extended: Mapping[str, int]) -> NodeCard:
    pods.sort(key=lambda pod: pod.state == "nominated")
    held = [pod for pod in pods if pod.state != "nominated"]
    bars = [
        Bar("cpu", sum(pod.cpu_milli for pod in held), row["cpu_milli"]),
        Bar("memory", sum(pod.memory_bytes for pod in held), row["memory_bytes"]),
    ]
    bars += [
        Bar(resource, extended.get(resource, 0), row["extended"].get(resource, 0))
        for resource in sorted({*row["extended"], *extended})
    ]
    return NodeCard(
        name=row["name"],
        zone=row["zone"],
        ready=row["ready"],
        unschedulable=row["unschedulable"],
        taints=row["taints"],
        labels=row["labels"],
        bars=bars,
        pods=pods,
        n_pods=len(held),
        max_pods=row["max_pods"],
    )


def _cell(row: Mapping[str, Any], use: _Use) -> HeatCell:
    return HeatCell(
        name=row["name"],
        zone=row["zone"],
        cpu_percent=Bar("cpu", use.cpu_milli, row["cpu_milli"]).percent,
        memory_percent=Bar("memory", use.memory_bytes, row["memory_bytes"]).percent,
        n_pods=use.n_pods,
        ready=row["ready"],
        unschedulable=row["unschedulable"],
    )


def _zones(
    rows: Sequence[Mapping[str, Any]], use: Mapping[str, _Use]
) -> dict[str, tuple[int, int, int, int]]:
    zones: dict[str, tuple[int, int, int, int]] = {}
    for row in rows:
        taken = use.get(row["name"], _Use())
        nodes, used, total, pods = zones.get(row["zone"], (0, 0, 0, 0))
        zones[row["zone"]] = (
            nodes + 1,
            used + taken.cpu_milli,
            total + row["cpu_milli"],
            pods + taken.n_pods,
        )
    return dict(sorted(zones.items(), key=lambda item: (item[0] == "", item[0])))


def _totals(rows: Sequence[Mapping[str, Any]], use: Mapping[str, _Use]) -> list[Bar]:
    here = [use.get(row["name"], _Use()) for row in rows]
    return [
        Bar("cpu", sum(taken.cpu_milli for taken in here), sum(row["cpu_milli"] for row in rows)),
        Bar("memory", sum(taken.memory_bytes for taken in here), sum(row["memory_bytes"] for row in rows)),
    ]
