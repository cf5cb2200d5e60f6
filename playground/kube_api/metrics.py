"""`metrics.k8s.io/v1beta1`, as metrics-server serves it: what `kubectl top` and autoscalers read.

The use is what the load drawn on workloads says of this moment (`playground.dev/load`); a pod without one uses nothing.

Source: staging/src/k8s.io/metrics/pkg/apis/metrics/v1beta1/types.go, v1.34
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from django.http import HttpRequest

from playground.clusters import kinds
from playground.clusters.board.nodes import pods_in_use, total
from playground.clusters.clock import virtual_now_ns
from playground.clusters.kinds import Kind, KindTable
from playground.clusters.objects.queries import list_objects, selection_of
from playground.clusters.row_types import Cluster, Node, Pod
from playground.kube_api.status import Refusal
from scheduler_core.objects.fields import format_seconds
from scheduler_core.sim.load import Use

VERSION: Final = "metrics.k8s.io/v1beta1"
NODES: Final = Kind(
    VERSION, "NodeMetrics", "nodes", False, model="", verbs=("get", "list"), singular_name="node"
)
PODS: Final = Kind(VERSION, "PodMetrics", "pods", True, model="", verbs=("get", "list"), singular_name="pod")
WINDOW: Final = "15s"
_PATH: Final = re.compile(
    rf"apis/{re.escape(VERSION)}/(?:namespaces/(?P<namespace>[^/]+)/)?(?P<plural>nodes|pods)(?:/(?P<name>[^/]+))?"
)


def with_metrics(table: KindTable) -> KindTable:
    """A cluster's kinds as discovery tells them."""
    return KindTable([*table.served, NODES, PODS])


def metrics_of(request: HttpRequest, cluster: Cluster, path: str) -> dict[str, Any] | None:
    """The answer to a path of metrics.k8s.io; None if it is none.

    Raises
    ------
    Refusal
        NotFound: a node or a running pod of that name is not there.
    """
    match = _PATH.fullmatch(path)
    if match is None or (match["plural"] == "nodes" and match["namespace"]):
        return None
    kind = NODES if match["plural"] == "nodes" else PODS
    name, namespace = match["name"] or "", match["namespace"] or ""
    if name and kind is PODS and not namespace:
        return None
    found = _nodes(cluster) if kind is NODES else _pods(cluster, namespace)
    if name:
        for item in found:
            if item["metadata"]["name"] == name:
                return {"kind": kind.kind, "apiVersion": VERSION, **item}
        full = f"{namespace}/{name}" if namespace else name
        raise Refusal("NotFound", f'{kind.kind.lower()}.metrics.k8s.io "{full}" not found')
    selection = selection_of(kind, request.GET.get("labelSelector", ""), request.GET.get("fieldSelector", ""))
    items = [item for item in found if not selection or selection.matches(item)]
    return {"kind": f"{kind.kind}List", "apiVersion": VERSION, "metadata": {}, "items": items}


def _nodes(cluster: Cluster) -> list[dict[str, Any]]:
    kind = kinds.named("Node")
    by_node: dict[str, list[Use]] = {}
    for pod, use in pods_in_use(cluster):
        by_node.setdefault(pod.node_name, []).append(use)
    return [
        _item(cluster, row) | {"usage": _amounts(total(by_node.get(row.name, ())))}
        for row in list_objects(cluster, kind)
    ]


def _pods(cluster: Cluster, namespace: str) -> list[dict[str, Any]]:
    return [
        _item(cluster, pod)
        | {"containers": [{"name": name, "usage": _amounts(amounts)} for name, amounts in use.items()]}
        for pod, use in pods_in_use(cluster, namespace=namespace)
    ]


def _item(cluster: Cluster, row: Node | Pod) -> dict[str, Any]:
    now = format_seconds(virtual_now_ns(cluster))
    meta: dict[str, Any] = {"name": row.name, "creationTimestamp": now}
    if namespace := row.manifest["metadata"].get("namespace"):
        meta["namespace"] = namespace
    if labels := row.manifest["metadata"].get("labels"):
        meta["labels"] = labels
    return {"metadata": meta, "timestamp": now, "window": WINDOW}


def _amounts(amounts: Mapping[str, int]) -> dict[str, str]:
    """As metrics-server writes them: nanocores and KiB."""
    return {"cpu": f"{amounts['cpu']}n", "memory": f"{amounts['memory'] // 10**9 // 1024}Ki"}
