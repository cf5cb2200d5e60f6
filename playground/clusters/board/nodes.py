"""Nodes and the pods on them, as the board shows them."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from django.db import connections
from django.db.models import Count, Max, Q, QuerySet, TextField
from django.db.models.functions import Cast

from playground.clusters.clock import virtual_now_ns
from playground.clusters.kinds import Kind
from playground.clusters.log.rows import PageOfRows
from playground.clusters.memo import Memo
from playground.clusters.models import Cluster, Manifest, Node, Pod
from playground.engine.batch import collector_paused
from playground.engine.columns import Shape, shape_of, usual_shapes
from scheduler_core.fork import EqualNodes, group_of
from scheduler_core.sim.load import FindOwner, Use, carrier_of, use_of

_DIGITS = re.compile(r"([0-9]+)")


class NodeUse(NamedTuple):
    """A node, what is requested on it, and the usual shape of pods in its pool. Amounts: millicores, bytes, counts.

    A tuple: five thousand frozen dataclasses would take ten milliseconds longer.
    """

    name: str
    labels: dict[str, str]
    taints: list[dict[str, Any]]
    unschedulable: bool
    ready: bool
    cpu_milli: int
    memory_bytes: int
    max_pods: int
    extended: dict[str, int]
    used_cpu_milli: int
    used_memory_bytes: int
    n_pods: int
    used_extended: dict[str, int]
    usual: Shape | None = None

    def amounts(self, resource: str) -> tuple[int, int]:
        """(requested, allocatable) of a resource; ``pods`` for their number."""
        match resource:
            case "cpu":
                return self.used_cpu_milli, self.cpu_milli
            case "memory":
                return self.used_memory_bytes, self.memory_bytes
            case "pods":
                return self.n_pods, self.max_pods
        return self.used_extended.get(resource, 0), self.extended.get(resource, 0)

    def percent(self, resource: str) -> int | None:
        """Requested share of a resource, 0 to 100; None where the node has none of it."""
        used, has = self.amounts(resource)
        return min(100, round(100 * used / has)) if has else None

    @property
    def state(self) -> str:
        """``ready``, ``not ready`` or ``cordoned``."""
        if not self.ready:
            return "not ready"
        return "cordoned" if self.unschedulable else "ready"

    @property
    def overcommitted(self) -> str:
        """What is requested beyond what the node has, by name; empty for nothing.

        No scheduler of ours does that: its pods were bound over the API, or it shrank.
        """
        amounts = [
            ("cpu", self.used_cpu_milli, self.cpu_milli),
            ("memory", self.used_memory_bytes, self.memory_bytes),
            ("pods", self.n_pods, self.max_pods),
            *((name, used, self.extended.get(name, 0)) for name, used in self.used_extended.items()),
        ]
        return ", ".join(name for name, used, has in amounts if used > has)


class PodUse(NamedTuple):
    """A pod that takes room on a node, or will: bound, reserved, or nominated.

    `held_in` is the lane where a pod with a reserved node waits, `permit` or `binding`; empty for others.
    """

    namespace: str
    name: str
    node: str
    priority: int
    priority_class: str
    cpu_milli: int
    memory_bytes: int
    extended: dict[str, int]
    terminating: bool
    nominated: bool
    held_in: str
    phase: str

    def amount(self, resource: str) -> int:
        """What it requests of a resource; one of ``pods``."""
        match resource:
            case "cpu":
                return self.cpu_milli
            case "memory":
                return self.memory_bytes
            case "pods":
                return 1
        return self.extended.get(resource, 0)

    @property
    def reserved(self) -> bool:
        """Whether its node is held for it."""
        return bool(self.held_in)


_POD_FIELDS = (
    "namespace", "name", "node_name", "priority", "priority_class", "cpu_milli", "memory_bytes", "extended_text",
    "terminating", "phase", "nominated_node", "lane", "created_ns",
)  # fmt: skip


_Facts = tuple[Any, ...]
"""What a node says of itself: the first fields of a `NodeUse`."""
_FACTS_OF = NodeUse._fields[:9]
_HOLDING = (Pod.Lane.PERMIT, Pod.Lane.BINDING)
_USES: Memo[list[NodeUse]] = Memo(8)
_FACTS: Memo[list[_Facts]] = Memo(8)
_JSON_FIELDS = ("labels", "taints", "extended")


def node_uses(cluster: Cluster) -> list[NodeUse]:
    """Every node in natural name order with what is requested on it.

    Three queries; none for a version known already, two when only pods have changed (nodes rarely do).
    """
    key = (cluster.public_id, cluster.generation, cluster.version)

    def count() -> list[NodeUse]:
        # Thousands of new objects would set the collector off in the middle of them, again and again.
        with collector_paused():
            return _count_uses(cluster)

    return _USES.get(key, count)


def _count_uses(cluster: Cluster) -> list[NodeUse]:
    placed = Pod.objects.placed().filter(cluster=cluster).order_by()
    rows = placed.annotate(more=Cast("extended", TextField())).values_list(
        "node_name", "owner_kind", "cpu_milli", "memory_bytes", "more"
    )
    used: dict[str, tuple[int, int, int]] = {}
    extended: dict[str, Counter[str]] = {}
    asked = []
    nothing = (0, 0, 0)
    for node, owner, cpu, memory, more, n in _fetched(rows.annotate(n=Count("*"))):
        sums, others = used.get(node, nothing), _parsed(more)
        used[node] = (sums[0] + cpu * n, sums[1] + memory * n, sums[2] + n)
        for resource, amount in others.items():
            extended.setdefault(node, Counter())[resource] += amount * n
        asked.append((node, owner, shape_of(cpu, memory, others), n))
    known = _node_facts(cluster)
    usual = usual_shapes((facts[:2] for facts in known), asked)
    return [
        NodeUse._make((*facts, *used.get(name := facts[0], nothing), extended.get(name, {}), usual.get(name)))
        for facts in known
    ]


def _node_facts(cluster: Cluster) -> list[_Facts]:
    """What nodes say of themselves, kept until one of them is written or leaves."""
    nodes = Node.objects.filter(cluster=cluster)
    newest = nodes.aggregate(n=Count("pk"), version=Max("resource_version"))
    key = (cluster.public_id, cluster.generation, newest["version"], newest["n"])
    return _FACTS.get(key, lambda: sorted(_read_facts(nodes), key=lambda facts: natural(facts[0])))


def pools_of(cluster: Cluster) -> dict[str, str]:
    """The pool of each node, with its instance type, as far as its labels name them. One query."""
    named = {facts[0]: group_of(facts[1]) for facts in _node_facts(cluster)}
    return {
        node: of.name if of.shape in ("", of.name) else f"{of.name}, {of.shape}"
        for node, of in named.items()
        if of != EqualNodes("nodes", "")
    }


def _read_facts(nodes: QuerySet[Node]) -> list[_Facts]:
    # As text: thousands of nodes have a handful of taints and extended resources between them, and texts that are
    # read together take a sixth of the time.
    as_text = {f"{name}_text": Cast(name, TextField()) for name in _JSON_FIELDS}
    names = [f"{name}_text" if name in _JSON_FIELDS else name for name in _FACTS_OF]
    rows = _fetched(nodes.annotate(**as_text).values_list(*names))
    labels = json.loads(f"[{','.join(row[1] for row in rows)}]")
    return [
        (name, own, _parsed(taints), bool(cordoned), bool(ready), cpu, memory, pods, _parsed(extended))
        for (name, _, taints, cordoned, ready, cpu, memory, pods, extended), own in zip(
            rows, labels, strict=True
        )
    ]


def _fetched(rows: QuerySet[Any, Any]) -> list[tuple[Any, ...]]:
    """Rows as the database gives them: truth may be a number, a sum a Decimal. To look at each takes Django longer."""
    sql, params = rows.query.sql_with_params()
    with connections[rows.db].cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall())


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Any:
    """What a short text says; shared, so never changed."""
    return json.loads(text)


def natural(name: str) -> list[bool | int | str]:
    """Sort key that puts node-2 before node-10."""
    key: list[bool | int | str] = []
    for part in _DIGITS.split(name):
        if part:
            key += (True, int(part), part) if part.isdigit() else (False, 0, part)
    return key


def pods_on(
    cluster: Cluster, nodes: Sequence[str] | None = None, *, reserved: Mapping[str, str] | None = None
) -> dict[str, list[PodUse]]:
    """Return the pods on each node, higher priority first, nominated ones last. Two queries.

    Parameters
    ----------
    nodes
        Only these; None = every node.
    reserved
        ``namespace/name`` of a pod waiting at Permit, or for its Binding -> the node held for it.
    """
    held = reserved or {}
    placed = Pod.objects.placed().filter(cluster=cluster)
    coming = Pod.objects.filter(Q(lane__in=_HOLDING) | ~Q(nominated_node=""), cluster=cluster, node_name="")
    if nodes is not None:
        placed = placed.filter(node_name__in=nodes)
    found, waiting = _pods(placed, held), _pods(coming, held)
    wanted = None if nodes is None else set(nodes)
    result: dict[str, list[PodUse]] = {}
    for pod in (*found, *sorted(waiting, key=lambda pod: pod.nominated)):
        if pod.node and (wanted is None or pod.node in wanted):
            result.setdefault(pod.node, []).append(pod)
    return result


def _pods(pods: QuerySet[Pod], reserved: Mapping[str, str]) -> list[PodUse]:
    """Pods of higher priority first, then the older. Few texts of extended resources: each is read once.

    Sorted here: asked for in order, SQLite would walk all pods of the cluster in the order of their priority.
    """
    rows = pods.order_by().annotate(extended_text=Cast("extended", TextField())).values_list(*_POD_FIELDS)
    found = []
    for row in sorted(_fetched(rows), key=lambda row: (-row[3], row[-1], row[0], row[1])):
        namespace, name, node, *asks, extended, terminating, phase, nominated, lane, _ = row
        held = "" if node else reserved.get(f"{namespace}/{name}", "")
        place = node or held or nominated
        state = (bool(terminating), not node and not held, (lane or Pod.Lane.PERMIT) if held else "", phase)
        found.append(PodUse._make((namespace, name, place, *asks, _parsed(extended), *state)))
    return found


# ---- Nodes in lists, found by parts of their names or by labels

PAGE_SIZE: Final = 25


def node_page(cluster: Cluster, words: str, *, page: int = 1, limit: int = PAGE_SIZE) -> PageOfRows[Node]:
    """One page of the nodes that have all the words, by name. Two queries.

    Parameters
    ----------
    words
        Each a part of the name, or a label ``key=value``.
    """
    found = Node.objects.filter(cluster=cluster).defer("manifest").order_by("name")
    parts = words.split()
    for part in parts:
        if "=" not in part:
            found = found.filter(name__contains=part)
    wanted = [part.partition("=")[::2] for part in parts if "=" in part]
    if wanted:
        # Labels have dots and slashes in their keys, and databases differ in how they ask for those.
        labels = found.values_list("name", "labels")
        names = [name for name, has in labels if all(has.get(key) == value for key, value in wanted)]
        return PageOfRows.of(len(names), page, limit, lambda part: list(found.filter(name__in=names[part])))
    return PageOfRows.of(found.count(), page, limit, lambda part: list(found[part]))


# ---- Devices of nodes and who has them, from the rows of ResourceSlices and ResourceClaims

KINDS: Final = ("ResourceSlice", "ResourceClaim")


class DeviceUse(NamedTuple):
    """The devices of one pool on a node: of those given out in parts, the whole ones that have a part taken."""

    driver: str
    pool: str
    taken: tuple[bool, ...]


_DEVICE_USES: Memo[dict[str, tuple[DeviceUse, ...]]] = Memo(8)


def devices_on_nodes(cluster: Cluster) -> dict[str, tuple[DeviceUse, ...]]:
    """Devices by node, of slices that name theirs. One query; two when a slice or claim has changed."""
    rows = Manifest.objects.filter(cluster=cluster, kind__in=KINDS)
    newest = rows.aggregate(n=Count("pk"), version=Max("resource_version"))
    if not newest["n"]:
        return {}
    key = (cluster.public_id, cluster.generation, newest["version"], newest["n"])
    return _DEVICE_USES.get(key, lambda: _count(rows.order_by("name").values_list("kind", "manifest")))


def asks_for_devices(pod: Pod | None) -> bool:
    """Whether a pod has claims, or an extended resource of a DeviceClass."""
    if pod is None:
        return False
    if (pod.manifest.get("spec") or {}).get("resourceClaims"):
        return True
    if not pod.extended:
        return False
    classes = Manifest.objects.filter(cluster=pod.cluster_id, kind="DeviceClass")
    named = (
        (item.get("spec") or {}).get("extendedResourceName")
        for item in classes.values_list("manifest", flat=True)
    )
    return any(name in pod.extended for name in named if name)


def _count(rows: Iterable[tuple[str, dict[str, Any]]]) -> dict[str, tuple[DeviceUse, ...]]:
    slices: list[dict[str, Any]] = []
    held: set[tuple[str, str, str]] = set()
    for kind, manifest in rows:
        if kind == "ResourceSlice":
            slices.append(manifest["spec"])
            continue
        allocation = (manifest.get("status") or {}).get("allocation") or {}
        for item in (allocation.get("devices") or {}).get("results") or ():
            if not item.get("adminAccess"):
                held.add((item["driver"], item["pool"], item["device"]))
    found: dict[tuple[str, str, str], dict[str, bool]] = {}
    for spec in slices:
        node = spec.get("nodeName")
        if not node:
            continue
        driver, pool = spec["driver"], spec["pool"]["name"]
        units = found.setdefault((node, driver, pool), {})
        for device in spec.get("devices") or ():
            is_held = (driver, pool, device["name"]) in held
            sets = [item["counterSet"] for item in device.get("consumesCounters") or ()]
            for name in sets or [device["name"]]:
                units[name] = units.get(name, False) or is_held
    result: dict[str, list[DeviceUse]] = {}
    for (node, driver, pool), units in found.items():
        if units:
            result.setdefault(node, []).append(DeviceUse(driver, pool, tuple(units.values())))
    return {node: tuple(uses) for node, uses in result.items()}


# ---- What pods and nodes use at this moment, as the load drawn on workloads says


def pods_in_use(cluster: Cluster, *, namespace: str = "") -> list[tuple[Pod, Use]]:
    """Running pods by namespace and name, each with what its containers use, in nano units.

    Parameters
    ----------
    namespace
        Only those there; empty = all.
    """
    return _in_use(cluster, namespace, _finder(cluster))


def sharing(cluster: Cluster, kind: Kind, namespace: str, name: str) -> list[tuple[Pod, Use]]:
    """The running pods whose use is drawn on an object, with it."""
    find = _finder(cluster)
    found = []
    for pod, use in _in_use(cluster, namespace, find):
        carrier = carrier_of(pod.manifest, find)
        if (carrier["kind"], carrier["metadata"]["name"]) == (kind.kind, name):
            found.append((pod, use))
    return found


def _in_use(cluster: Cluster, namespace: str, find: FindOwner) -> list[tuple[Pod, Use]]:
    rows = Pod.objects.filter(cluster=cluster, phase="Running").order_by("namespace", "name")
    if namespace:
        rows = rows.filter(namespace=namespace)
    pods = list(rows)
    used = use_of((row.manifest for row in pods), find, virtual_now_ns(cluster))
    return [(row, used[row.namespace, row.name]) for row in pods if (row.namespace, row.name) in used]


def total(uses: Iterable[Use]) -> dict[str, int]:
    """The sum of what containers use, by resource."""
    found = {"cpu": 0, "memory": 0}
    for use in uses:
        for amounts in use.values():
            for resource, amount in amounts.items():
                found[resource] += amount
    return found


def _finder(cluster: Cluster) -> FindOwner:
    """Looks up owners, each once."""
    known: dict[tuple[str, str, str], Mapping[str, Any] | None] = {}

    def find(kind: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        key = (kind, namespace or "default", name)
        if key not in known:
            row = Manifest.objects.filter(cluster=cluster, kind=kind, namespace=key[1], name=name).first()
            known[key] = None if row is None else row.manifest
        return known[key]

    return find


def autoscalers_of(cluster: Cluster, kind: Kind, namespace: str, name: str) -> list[Mapping[str, Any]]:
    """The HorizontalPodAutoscalers whose target an object is, by name. One query."""
    rows = Manifest.objects.filter(cluster=cluster, kind="HorizontalPodAutoscaler", namespace=namespace)
    found = []
    for manifest in rows.order_by("name").values_list("manifest", flat=True):
        target = (manifest.get("spec") or {}).get("scaleTargetRef") or {}
        if (target.get("kind"), target.get("name")) == (kind.kind, name):
            found.append(manifest)
    return found
