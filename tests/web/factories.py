"""Clusters for page tests: objects through the services, cycles and queue as the engine would commit them."""

import json
import zlib
from collections.abc import Callable
from typing import Any

from django.apps import apps
from django.db import connection, transaction
from django.db.models import Model

from playground.clusters.lifecycle import create_cluster
from playground.clusters.models import Cluster, Cycle, Event, FollowedCluster, Pod, QueueMove, QueueSnapshot
from playground.clusters.objects.actions import expand_pool
from playground.clusters.objects.apply import apply_documents
from tests.manifests import make_object
from tests.tables import table
from tests.web.cases import explanation

START_NS = 1_767_312_000_000_000_000  # 2026-01-02T00:00:00Z
SECOND_NS = 1_000_000_000
ZONES = ("zone-a", "zone-b", "zone-c")

CLASSES = table(__file__, "CLASSES")


def pod(
    name: str, *, node: str = "", cpu: str = "1", memory: str = "2Gi", class_: str = "", **spec: Any
) -> dict[str, Any]:
    """A Pod manifest."""
    body: dict[str, Any] = {
        "containers": [
            {"name": "main", "image": "web:1", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
        ],
        **spec,
    }
    if node:
        body["nodeName"] = node
    if class_:
        body["priorityClassName"] = class_
    status = {"phase": "Running"} if node else {"phase": "Pending"}
    return make_object("v1", "Pod", name, namespace="default", spec=body, status=status)


def make_cluster(name: str = "storefront-3z", *, n_nodes: int = 12, owner: Any = None) -> Cluster:
    """Three zones, three priority classes, pods on most nodes, some waiting, a few cycles."""
    cluster = create_cluster(name=name, owner=owner, seed=7, start_ns=START_NS, kubernetes_release="1.34")
    apply_documents(cluster=cluster, text=CLASSES)
    general = expand_pool(name="node", count=n_nodes, zones=ZONES, labels={"disk": "ssd"})
    for i, node in enumerate(general):
        if i % 4 == 3:
            node["spec"] = {"taints": [{"key": "gpu", "value": "true", "effect": "NoSchedule"}]}
            for amounts in (node["status"]["capacity"], node["status"]["allocatable"]):
                amounts |= {"nvidia.com/gpu": "4", "cpu": "16"}
    if len(general) > 6:
        general[5]["spec"]["unschedulable"] = True
        general[6]["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    names = [node["metadata"]["name"] for node in general]
    pods = []
    for i in range(2 * len(names)):
        cpu = ("1", "1500m", "3")[i % 3]
        class_ = ("standard", "batch", "business-critical")[i % 3]
        pods.append(pod(f"web-{i}", node=names[i % len(names)], cpu=cpu, class_=class_))
    pods += [
        pod("train-2", cpu="30"),
        pod("payments-b7d", class_="standard"),
        pod("thumbs-8", class_="batch"),
    ]
    pods += [pod("ml-sweep-0", schedulingGates=[{"name": "quota.example.com/approved"}])]
    pods += [pod("other-0", schedulerName="volcano"), pod("mpi-0")]
    apply_documents(cluster=cluster, objects=[*general, *pods])
    cluster.refresh_from_db()
    return cluster


def add_cycle(
    cluster: Cluster, label: str, *, number: int | None = None, pod_name: str = "", **overrides: Any
) -> Cycle:
    """A cycle whose trace is a recorded decision (tests render it as JSON, see `readable_traces`)."""
    number = cluster.next_cycle if number is None else number
    document = explanation(label, cycle=number, **overrides)
    namespace, _, name = document["pod"].rpartition("/")
    if pod_name:
        document["sentence"] = document["sentence"].replace(document["pod"], f"{namespace}/{pod_name}")
        document["pod"] = f"{namespace}/{pod_name}"
        name = pod_name
    row = Pod.objects.filter(cluster=cluster, namespace=namespace, name=name).first()
    cycle = Cycle.objects.create(
        cluster=cluster,
        number=number,
        at_ns=START_NS + number * SECOND_NS,
        pod_namespace=namespace,
        pod_name=name,
        pod_uid=row.uid if row else "gone",
        profile="default-scheduler",
        outcome=document["outcome"],
        node=document["node"] or "",
        message=document["message"] or "",
        n_nodes=len(document["nodes"]),
        n_feasible=document["nFeasible"],
        n_viable=document.get("nViable"),
        digest=document["digest"],
        engine_version="1.0.0",
        trace=zlib.compress(json.dumps(document).encode()),
    )
    cluster.next_cycle = number + 1
    cluster.now_ns = cycle.at_ns
    cluster.version += 1
    cluster.save()
    return cycle


def add_queue(cluster: Cluster) -> None:
    """A queue with something in every lane, under the keys of playground/engine/README.md."""
    now = cluster.now_ns
    lanes = {
        "active": [item("payments-b7d", 1000, since_ns=now - 4 * SECOND_NS)],
        "permit": [item("mpi-0", 1000, since_ns=now, until_ns=now + 60 * SECOND_NS, node="node-3")],
        "backoff": [item("thumbs-8", 100, since_ns=now - SECOND_NS, until_ns=now + SECOND_NS, attempts=2)],
        "unschedulable": [item("train-2", 1000, reason="0/12 nodes are available: 12 Insufficient cpu.")],
        "gated": [item("ml-sweep-0", 1000, reason="Gate quota.example.com/approved")],
    }
    head = {lane: {"count": len(items), "items": items} for lane, items in lanes.items()}
    QueueSnapshot.objects.update_or_create(
        cluster=cluster,
        defaults={"engine_seq": 1, "at_ns": now, "head": {"at_ns": now, "lanes": head}, "full": b""},
    )
    for lane, items in lanes.items():
        names = [one["pod"].partition("/")[2] for one in items]
        Pod.objects.filter(cluster=cluster, name__in=names).update(lane=lane)
    cluster.version += 1
    cluster.save()


def item(name: str, priority: int, **facts: Any) -> dict[str, Any]:
    """One pod of a lane."""
    return {"pod": f"default/{name}", "priority": priority, **facts}


def add_moves(cluster: Cluster, name: str) -> None:
    """The queue's side of a pod that failed once, waited, and was moved by an event."""
    asked = {"plugin": "NodeResourcesFit", "hint": "Queue", "reason": "a pod left its node"}
    skipped = {"plugin": "NodeResourcesFit", "hint": "Skip", "reason": "the node is too small"}
    for at_s, source, target, event, more in (
        (3, "", "activeQ", "UnschedulablePodAdd", {}),
        (3, "inFlight", "unschedulable", "ScheduleAttemptFailure", {}),
        (5, "unschedulable", "unschedulable", "NodeAdd", skipped),
        (9, "unschedulable", "activeQ", "AssignedPodDelete", asked),
    ):
        QueueMove.objects.create(
            cluster=cluster, at_ns=START_NS + at_s * SECOND_NS, pod_namespace="default", pod_name=name,
            pod_uid=name, source=source, target=target, event=event, **more,
        )  # fmt: skip


def add_event(cluster: Cluster, name: str, reason: str, message: str) -> Event:
    """An Event about a pod."""
    number = Event.objects.filter(cluster=cluster).count() + 1
    return Event.objects.create(
        cluster=cluster,
        namespace="default",
        name=f"{name}.{number}",
        resource_version=10_000 + number,
        reason=reason,
        involved_kind="Pod",
        involved_namespace="default",
        involved_name=name,
        at_ns=cluster.now_ns,
        manifest={"message": message},
    )


_made: dict[str, list[list[Model]]] = {}
"""Rows of a cluster by its name, table by table."""


def full_cluster(name: str = "storefront-3z") -> Cluster:
    """A cluster with every kind of cycle, a queue and events."""
    return copied(name, lambda: _new_full_cluster(name))


def copied(name: str, make: Callable[[], Cluster]) -> Cluster:
    """A cluster that is made once for all tests of a process: on SQLite its rows are copied from then on."""
    if connection.vendor != "sqlite" or Cluster.objects.exists():
        return make()
    if name not in _made:
        cluster = make()
        _made[name] = [[Cluster.objects.get(pk=cluster.pk)], *_rows_of(cluster)]
        return cluster
    [cluster], *others = _made[name]
    cluster.public_id = Cluster._meta.get_field("public_id").get_default()
    with transaction.atomic():
        for rows in ([cluster], *others):
            type(rows[0])._base_manager.bulk_create(rows)
    return Cluster.objects.get(pk=cluster.pk)


def _rows_of(cluster: Cluster) -> list[list[Model]]:
    tables = [model for model in apps.get_models() if _cluster_of(model)]
    found = [list(model._base_manager.filter(**{_cluster_of(model): cluster})) for model in tables]
    return [rows for rows in found if rows]


def _cluster_of(model: type[Model]) -> str:
    """The lookup that says which cluster a row is of, empty where none does."""
    names = {field.name for field in model._meta.fields}
    return "cluster" if "cluster" in names else "question__cluster" if "question" in names else ""


def _new_full_cluster(name: str) -> Cluster:
    cluster = make_cluster(name)
    add_cycle(cluster, "scored", pod_name="web-0")
    add_cycle(cluster, "tied", pod_name="web-1")
    add_cycle(cluster, "unschedulable", pod_name="train-2")
    add_cycle(cluster, "preempting", pod_name="payments-b7d")
    add_cycle(cluster, "single", pod_name="web-2")
    add_cycle(cluster, "prefilter", pod_name="thumbs-8")
    add_cycle(cluster, "narrowed", pod_name="web-3")
    add_cycle(cluster, "error", pod_name="thumbs-8")
    add_cycle(cluster, "reprieved", pod_name="payments-b7d", node=None, outcome="preempting")
    add_queue(cluster)
    add_moves(cluster, "train-2")
    add_event(cluster, "train-2", "FailedScheduling", "0/12 nodes are available")
    add_event(cluster, "train-2", "NotTriggerScaleUp", "pod did not trigger scale-up")
    add_follower(cluster)
    return cluster


def add_follower(cluster: Cluster) -> FollowedCluster:
    """As if the cluster had been followed: the page of live clusters shows it."""
    gap = {
        "kind": "CSINode",
        "resource": "csinodes",
        "group": "storage.k8s.io",
        "what": "CSINode (no right to list csinodes)",
    }
    return FollowedCluster.objects.create(
        cluster=cluster, source="prod-eu-central-1", program="follow by ops on laptop-2", session=1, number=7,
        is_listed=True, lag_ms=400, not_known=[gap],
    )  # fmt: skip
