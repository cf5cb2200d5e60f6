"""The scheduling queue as of the engine's last commit."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.db.models import F, Q

from playground.clusters.memo import Memo
from playground.clusters.models import Cluster, Pod, QueueSnapshot
from playground.engine.compressed import decompress, from_json
from scheduler_core.schema.tables import table_beside
from scheduler_core.sim.controllers.deployment import deployment_behind

LANE_TITLES: Final[Mapping[str, str]] = table_beside(__package__, "tables.yaml")["lanes"]
LANES: Final = tuple(LANE_TITLES)


@dataclass(frozen=True, slots=True)
class QueueItem:
    """One pod in a lane.

    Attributes
    ----------
    pod
        ``namespace/name``.
    lane
        Which one.
    position
        From 1, in the lane's own order (activeQ: true heap order).
    priority, attempts
        As the queue has them.
    left_s
        Virtual seconds until its timer (backoff end, Permit deadline); None without one.
    reason
        Why it is there, in words.
    node
        Node held at Permit or until its Binding is heard of, or nominated by a preemption; else empty.
    plugin
        Plugin that holds or rejected it.
    event
        The event and hint that last moved it.
    read
        False = submitted, and not read by the engine yet.
    """

    pod: str
    lane: str
    position: int
    uid: str = ""
    priority: int = 0
    priority_class: str = ""
    attempts: int = 0
    left_s: float | None = None
    reason: str = ""
    node: str = ""
    plugin: str = ""
    event: str = ""
    read: bool = True
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def namespace(self) -> str:
        return self.pod.partition("/")[0]

    @property
    def name(self) -> str:
        return self.pod.partition("/")[2]


def queue_view(cluster: Cluster, *, full: bool = True) -> dict[str, list[QueueItem]]:
    """Every lane with its pods (`full`) or the first 200 of each. Three queries.

    Pods submitted since the engine's last commit stand at the end of ``active`` (or ``foreign``) with
    `read` False.
    """
    lanes, _ = lanes_of(cluster, full=full)
    return lanes


def lanes_of(cluster: Cluster, *, full: bool) -> tuple[dict[str, list[QueueItem]], dict[str, int]]:
    """The lanes and how many pods each has."""
    snapshots = QueueSnapshot.objects.filter(cluster=cluster)
    snapshot = (snapshots if full else snapshots.defer("full")).first()
    raw: dict[str, list[dict[str, Any]]] = {}
    counts: dict[str, int] = {}
    if snapshot is not None:
        head = snapshot.head["lanes"]
        raw = {lane: part["items"] for lane, part in head.items()}
        counts = {lane: part["count"] for lane, part in head.items()}
        if full:
            raw = _whole(cluster, snapshot, raw, counts)
            counts = {lane: len(items) for lane, items in raw.items()}
    # The engine's commit gives every pod it knows a lane: those without one it has not read, or finalizers hold them
    # on their way out. They are sorted by an expression: for the column itself SQLite would walk all pods of the
    # cluster in the order of their priority.
    new = list(
        Pod.objects.pending()
        .filter(cluster=cluster, lane="", terminating=False)
        .order_by((F("priority") + 0).desc(), "resource_version")
        .values("namespace", "name", "uid", "priority", "priority_class", "waits_for")[:1000]
    )
    now_ns = cluster.now_ns
    lanes = {
        lane: [item_of(lane, position, item, now_ns) for position, item in enumerate(raw.get(lane, ()), 1)]
        for lane in LANES
    }
    seen = {item.pod for items in lanes.values() for item in items}
    for row in new:
        pod = f"{row['namespace']}/{row['name']}"
        if pod in seen:
            continue
        lane = "foreign" if row["waits_for"] else "active"
        counts[lane] = counts.get(lane, 0) + 1
        told = {**row, "pod": pod, "reason": row["waits_for"]}
        lanes[lane].append(item_of(lane, len(lanes[lane]) + 1, told, now_ns, read=False))
    return lanes, {lane: counts.get(lane, 0) for lane in LANES}


def _whole(
    cluster: Cluster,
    snapshot: QueueSnapshot,
    head: dict[str, list[dict[str, Any]]],
    counts: Mapping[str, int],
) -> dict[str, list[dict[str, Any]]]:
    """Every pod of every lane; within a run the end of a long lane comes from the pods' rows.

    Which pods are in which lane, the order of the first ones and what is said of them is as of the last commit; what
    was known of the others when the whole queue was last written stays, in the order of then.
    """
    long = [lane for lane, items in head.items() if len(items) < counts[lane]]
    if not long:
        return head
    known: dict[str, list[dict[str, Any]]] = from_json(decompress(bytes(snapshot.full)))
    if snapshot.full_seq in (None, snapshot.engine_seq):
        return known
    rows = Pod.objects.filter(cluster=cluster, lane__in=long)
    there: dict[str, dict[str, dict[str, Any]]] = {lane: {} for lane in long}
    for row in rows.order_by("-priority", "resource_version").values(
        "namespace", "name", "uid", "priority", "priority_class", "lane"
    ):
        pod = f"{row['namespace']}/{row['name']}"
        facts = {"uid": row["uid"], "priority": row["priority"], "priority_class": row["priority_class"]}
        there[row["lane"]][pod] = {"pod": pod, **facts}
    whole = dict(head)
    for lane in long:
        first = {item["pod"]: item for item in head[lane]}
        then = {item["pod"]: item for item in known.get(lane, ()) if item["pod"] in there[lane]}
        # The first of each pod's items counts: a merge keeps the place of what is there and takes the later value.
        whole[lane] = list(({**first, **then, **there[lane]} | then | first).values())
    return whole


_TOLD: Final = ("pod", "uid", "priority", "priority_class", "attempts", "reason", "node", "plugin", "event")


def item_of(
    lane: str, position: int, item: Mapping[str, Any], now_ns: int, *, read: bool = True
) -> QueueItem:
    """A pod in a lane, of what the engine says of it (`QueueView` has the keys)."""
    told = {name: item[name] for name in _TOLD if item.get(name) is not None}
    until_ns = item.get("until_ns")
    left_s = None if until_ns is None else max(0.0, (until_ns - now_ns) / 1e9)
    return QueueItem(lane=lane, position=position, left_s=left_s, read=read, facts=item, **told)


# ---- Pods of a queue lane that are alike: of one workload, and there for one reason

MOST_GROUPED = 5000
"""Pods of a lane that are looked at; a longer lane is not grouped."""

Asks = tuple[int, int, dict[str, int]]


@dataclass(frozen=True)
class PendingGroup:
    """Pods of one workload with one reason.

    Attributes
    ----------
    kind, namespace, name
        Of the workload; of pods without an owner ``Pod`` and what their names have in common.
    reason
        Why they are there, as the queue says it.
    items
        In the lane's order.
    owner
        Name of the controlling owner the pods name, a ReplicaSet's for a Deployment's; empty without one.
    asks
        What the first requests: millicores, bytes, and other resources by name.
    """

    kind: str
    namespace: str
    name: str
    reason: str
    owner: str
    items: tuple[QueueItem, ...]
    asks: Asks = (0, 0, {})


Groups = Mapping[str, tuple[PendingGroup, ...]]
_GROUPS: Memo[Groups] = Memo(16)


def pending_groups(
    cluster: Cluster, lanes: Mapping[str, Sequence[QueueItem]], counts: Mapping[str, int], of: Collection[str]
) -> Groups:
    """The pods of some lanes in groups, in the order of their first ones; a lane of too many is left out.

    Two queries; three more where not all of their pods are in `lanes`; none for a version known.
    """
    wanted = [lane for lane in of if 0 < counts.get(lane, 0) <= MOST_GROUPED]
    key = (cluster.public_id, cluster.generation, cluster.version, *wanted)

    def group() -> Groups:
        whole = lanes
        if any(len(lanes[lane]) < counts[lane] for lane in wanted):
            whole, _ = lanes_of(cluster, full=True)
        return _grouped(cluster, {lane: whole[lane] for lane in wanted})

    return _GROUPS.get(key, group) if wanted else {}


def _grouped(cluster: Cluster, lanes: Mapping[str, Sequence[QueueItem]]) -> Groups:
    owners = _owners(cluster, [item for items in lanes.values() for item in items])
    found: dict[tuple[str, str, str, str, str, str], list[QueueItem]] = {}
    for lane, items in lanes.items():
        for item in items:
            kind, name, _ = owners.get(item.pod, ("", "", None))
            key = (
                lane,
                kind or "Pod",
                item.namespace,
                name or _stem(item.name),
                item.priority_class,
                item.reason,
            )
            found.setdefault(key, []).append(item)
    titles = _deployments(cluster, {members[0].pod: key[1:4] for key, members in found.items()})
    groups: dict[str, list[PendingGroup]] = {lane: [] for lane in lanes}
    for (lane, kind, namespace, name, _, reason), members in found.items():
        first = members[0].pod
        asks = owners[first][2] if first in owners else (0, 0, {})
        title = titles.get(first, (kind, namespace, name))
        if kind == "Pod" and len(members) == 1:
            title = (kind, namespace, members[0].name)
        owner = "" if kind == "Pod" else name
        groups[lane].append(PendingGroup(*title, reason, owner, tuple(members), asks))
    return {lane: tuple(members) for lane, members in groups.items()}


def _owners(cluster: Cluster, items: Sequence[QueueItem]) -> dict[str, tuple[str, str, Asks]]:
    """Kind and name of the controlling owner, and what is requested, by ``namespace/name`` of the pod."""
    lanes = {item.lane for item in items if item.read}
    unread = [item.name for item in items if not item.read]
    rows = Pod.objects.filter(Q(lane__in=lanes) | Q(lane="", name__in=unread), cluster=cluster, node_name="")
    fields = ("namespace", "name", "owner_kind", "owner_name", "cpu_milli", "memory_bytes", "extended")
    return {
        f"{namespace}/{name}": (kind, owner, tuple(asks))
        for namespace, name, kind, owner, *asks in rows.order_by().values_list(*fields)
    }


def _stem(name: str) -> str:
    """What names of pods without an owner have in common: ``train`` of train-0, train-1."""
    stem, dash, number = name.rpartition("-")
    return stem if dash and number.isdecimal() else name


def _deployments(
    cluster: Cluster, firsts: Mapping[str, tuple[str, str, str]]
) -> dict[str, tuple[str, str, str]]:
    """The Deployment behind the ReplicaSet (kind, namespace, name) of a pod, by the pod.

    Known by the label its pods carry, so that the ReplicaSet itself may be missing, as in a dump of pods alone.
    """
    of_sets = {pod: owner for pod, owner in firsts.items() if owner[0] == "ReplicaSet"}
    rows = Pod.objects.filter(cluster=cluster, name__in={pod.partition("/")[2] for pod in of_sets})
    found = {}
    for namespace, name, labels in (
        rows.order_by().values_list("namespace", "name", "labels") if of_sets else ()
    ):
        if owner := of_sets.get(pod := f"{namespace}/{name}"):
            kind, title = deployment_behind(owner[0], owner[2], labels)
            found[pod] = (kind, namespace, title)
    return found
