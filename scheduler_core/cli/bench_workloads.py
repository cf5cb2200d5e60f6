"""What `bench` measures: clusters and pods of `bench_workloads.yaml`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scheduler_core.objects.meta import object_of
from scheduler_core.schema.tables import table_beside

_TABLE = table_beside(__package__, "bench_workloads.yaml")
ALGORITHM = tuple(_TABLE["algorithm"])
"""Rows of the comparison table; `--nodes` sets their size."""
PERF = tuple(_TABLE["perf"])
"""scheduler_perf's workloads by their own names."""

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class BenchWorkload:
    """One thing to measure.

    Attributes
    ----------
    prepared : iterable of mapping
        Pods that are there before measuring starts (bound ones carry `spec.nodeName`).
    measured : iterable of mapping
        Pods whose scheduling is timed.
    others : iterable of mapping
        Other objects, there before the nodes are.
    whole : bool
        Through the whole simulated cluster; otherwise the scheduler alone (queue, cycle, assume).
    pass_mark : float or None
        Pods a second the real scheduler must reach in scheduler_perf.
    """

    nodes: Iterable[Manifest]
    prepared: Iterable[Manifest]
    measured: Iterable[Manifest]
    n_nodes: int
    whole: bool = False
    pass_mark: float | None = None
    others: Iterable[Manifest] = ()


def workload(name: str, n_nodes: int, n_measured: int) -> BenchWorkload:
    """A workload by its name; a row of the comparison table in this size.

    Raises
    ------
    KeyError
        There is none of that name.
    """
    if name in _TABLE["perf"]:
        return _perf(_TABLE["perf"][name])
    spec = _TABLE["algorithm"][name]
    nodes = (_node(index, cpu="4" if name == "preemption" else "32") for index in range(n_nodes))
    if name == "preemption":
        # Every node is full of low priority; each measured pod must preempt.
        low = (
            _pod(f"low-{index}-{place}", nodeName=f"node-{index}", priority=0, requests={"cpu": "900m"})
            for index in range(n_nodes)
            for place in range(4)
        )
        return BenchWorkload(
            nodes,
            low,
            _pods("high", {"count": n_measured, "priority": 1000, "requests": {"cpu": "3000m"}}),
            n_nodes,
        )
    n_bound = min(n_nodes, 2000)
    if name == "anti-affinity":
        n_bound, n_measured = n_nodes // 10, min(n_measured, n_nodes // 2)
    green = {"color": "green"}
    bound = (_pod(f"bound-{index}", green, nodeName=f"node-{index}", **spec) for index in range(n_bound))
    measured = _pods("measured", {"count": n_measured, "labels": green, **spec})
    return BenchWorkload(nodes, bound, measured, n_nodes)


def _perf(table: Mapping[str, Any]) -> BenchWorkload:
    def nodes() -> Iterator[Manifest]:
        yield from [table["first"]] if "first" in table else []
        for index in range(table["nodes"]):
            yield _node(index, **{"cpu": "4", "memory": "32Gi", **table.get("node", {})})

    prepared = [one for group in table.get("prepared", ()) for one in _by_namespace(group)]
    groups = [*prepared, *table["measured"]]
    namespaces = dict.fromkeys(group["namespace"] for group in groups if "namespace" in group)
    return BenchWorkload(
        nodes(),
        (pod for group in prepared for pod in _pods("init", group)),
        (pod for group in table["measured"] for pod in _pods("measured", group)),
        table["nodes"],
        True,
        table["mark"],
        (
            object_of("v1", "Namespace", {"name": one, "labels": table["namespaceLabels"]})
            for one in namespaces
        ),
    )


def _by_namespace(group: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The group itself, or once for each of its namespaces."""
    rest = {key: value for key, value in group.items() if key != "namespaces"}
    if "namespaces" not in group:
        yield rest
    for index in range(group.get("namespaces", 0)):
        yield {**rest, "name": f"init-{index}", "namespace": f"init-ns-{index}"}


def _node(
    index: int, cpu: str, memory: str = "256Gi", pods: str = "110", labels: Mapping[str, str] | None = None
) -> Manifest:
    name = f"node-{index}"
    own = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{index % 3}"}
    status = {"allocatable": {"cpu": cpu, "memory": memory, "pods": pods}}
    return object_of("v1", "Node", {"name": name, "labels": own | dict(labels or {})}, status=status)


def _pods(prefix: str, group: Mapping[str, Any]) -> Iterator[Manifest]:
    rest = {key: value for key, value in group.items() if key not in ("count", "name")}
    for index in range(group["count"]):
        yield _pod(f"{group.get('name', prefix)}-{index}", **rest)


def _pod(
    name: str, labels: Mapping[str, str] | None = None, namespace: str = "default", **spec: Any
) -> Manifest:
    requests = spec.pop("requests", {"cpu": "100m", "memory": "500Mi"})
    container = {"name": "c", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": requests}}
    meta = {"name": name, "namespace": namespace, "labels": labels or {}}
    return object_of("v1", "Pod", meta, spec={"containers": [container], **spec})
