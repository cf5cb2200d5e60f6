"""What `bench` measures: clusters and pods by the names they have elsewhere.

The short names are the rows of a published comparison of the real scheduling algorithm; the long ones are workloads
of Kubernetes' own scheduler_perf (test/integration/scheduler_perf, v1.34) with their sizes and pass marks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class BenchWorkload:
    """One thing to measure.

    Attributes
    ----------
    nodes : callable
        Manifests of `n` nodes.
    prepared : callable
        Pods that are there before measuring starts (bound ones carry `spec.nodeName`).
    measured : callable
        Pods whose scheduling is timed.
    whole : bool
        Through the whole simulated cluster; otherwise the scheduler alone (queue, cycle, assume).
    pass_mark : float or None
        Pods a second the real scheduler must reach in scheduler_perf.
    """

    nodes: Callable[[], Iterator[Manifest]]
    prepared: Callable[[], Iterator[Manifest]]
    measured: Callable[[], Iterator[Manifest]]
    n_nodes: int
    whole: bool = False
    pass_mark: float | None = None
    others: Callable[[], Iterator[Manifest]] = lambda: iter(())


def node(index: int, cpu: str = "32", memory: str = "256Gi", pods: str = "110", **labels: str) -> Manifest:
    name = f"node-{index}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {HOSTNAME: name, ZONE: f"zone-{index % 3}", **labels},
        },
        "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": pods}},
    }


def pod(name: str, labels: dict[str, str] | None = None, namespace: str = "default", **spec: Any) -> Manifest:
    requests = spec.pop("requests", {"cpu": "100m", "memory": "500Mi"})
    container = {"name": "c", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
        "spec": {"containers": [container], **spec},
    }


def affinity(kind: str, key: str, labels: dict[str, str], *, required: bool, **term: Any) -> dict[str, Any]:
    """`spec.affinity` with one pod (anti-)affinity term."""
    whole = {"topologyKey": key, "labelSelector": {"matchLabels": labels}, **term}
    if required:
        return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [whole]}}
    weighted = [{"weight": 1, "podAffinityTerm": whole}]
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}


def node_affinity(*zones: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": list(zones)}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def spread(when: str, labels: dict[str, str], max_skew: int = 1) -> list[dict[str, Any]]:
    return [
        {
            "maxSkew": max_skew,
            "topologyKey": ZONE,
            "whenUnsatisfiable": when,
            "labelSelector": {"matchLabels": labels},
        }
    ]


GREEN = {"color": "green"}

_ALGORITHM_PODS: dict[str, dict[str, Any]] = {
    "basic": {},
    "spread-soft": {"topologySpreadConstraints": spread("ScheduleAnyway", GREEN)},
    "spread-hard": {"topologySpreadConstraints": spread("DoNotSchedule", GREEN)},
    "affinity-preferred": {"affinity": affinity("podAffinity", HOSTNAME, GREEN, required=False)},
    "anti-affinity": {"affinity": affinity("podAntiAffinity", HOSTNAME, GREEN, required=True)},
    "node-affinity": {"affinity": node_affinity("zone-0", "zone-1")},
}


def algorithm_workload(name: str, n_nodes: int, n_measured: int) -> BenchWorkload:
    """A workload of the comparison table: pods of one kind, some of them bound before."""
    spec = _ALGORITHM_PODS[name]
    n_bound = min(n_nodes, 2000)
    if name == "anti-affinity":
        n_bound, n_measured = n_nodes // 10, min(n_measured, n_nodes // 2)

    def bound() -> Iterator[Manifest]:
        # Every third node first, so that bound pods stand in all zones and each node holds at most one.
        for index in range(n_bound):
            yield pod(f"bound-{index}", GREEN, nodeName=f"node-{index}", **spec)

    return BenchWorkload(
        nodes=lambda: (node(index) for index in range(n_nodes)),
        prepared=bound,
        measured=lambda: (pod(f"measured-{index}", GREEN, **spec) for index in range(n_measured)),
        n_nodes=n_nodes,
    )


def preemption_workload(n_nodes: int, n_measured: int) -> BenchWorkload:
    """Every node full of low priority; each measured pod must preempt."""

    def low() -> Iterator[Manifest]:
        for index in range(n_nodes):
            for place in range(4):
                yield pod(
                    f"low-{index}-{place}", nodeName=f"node-{index}", priority=0, requests={"cpu": "900m"}
                )

    return BenchWorkload(
        nodes=lambda: (node(index, cpu="4") for index in range(n_nodes)),
        prepared=low,
        measured=lambda: (
            pod(f"high-{index}", priority=1000, requests={"cpu": "3000m"}) for index in range(n_measured)
        ),
        n_nodes=n_nodes,
    )


def _perf_nodes(n_nodes: int, **labels: str) -> Callable[[], Iterator[Manifest]]:
    return lambda: (node(index, cpu="4", memory="32Gi", **labels) for index in range(n_nodes))


def _many(
    prefix: str, count: int, labels: dict[str, str] | None = None, namespace: str = "default", **spec: Any
) -> Callable[[], Iterator[Manifest]]:
    return lambda: (pod(f"{prefix}-{index}", labels, namespace, **spec) for index in range(count))


def _perf(
    n_nodes: int,
    n_init: int,
    n_measured: int,
    mark: float,
    *,
    node_labels: dict[str, str] | None = None,
    init: dict[str, Any] | None = None,
    measured: dict[str, Any] | None = None,
) -> BenchWorkload:
    init = {} if init is None else init
    measured = {} if measured is None else measured
    return BenchWorkload(
        nodes=_perf_nodes(n_nodes, **(node_labels or {})),
        prepared=_many("init", n_init, **init),
        measured=_many("measured", n_measured, **measured),
        n_nodes=n_nodes,
        whole=True,
        pass_mark=mark,
    )


def _green(**spec: Any) -> dict[str, Any]:
    return {"labels": GREEN, **spec}


_ONE_ZONE = {ZONE: "zone1"}
_ANTI = _green(affinity=affinity("podAntiAffinity", HOSTNAME, GREEN, required=True))
_AFFINITY = {
    "labels": {"color": "blue"},
    "affinity": affinity("podAffinity", ZONE, {"color": "blue"}, required=True),
}
_PREFERRED = {
    "labels": {"color": "red"},
    "affinity": affinity("podAffinity", HOSTNAME, {"color": "red"}, required=False),
}
_PREFERRED_ANTI = {
    "labels": {"color": "yellow"},
    "affinity": affinity("podAntiAffinity", HOSTNAME, {"color": "yellow"}, required=False),
}
_NODE_AFFINITY = {"affinity": node_affinity("zone1", "zone2")}
_BLUE = {"color": "blue"}


def _mixed() -> BenchWorkload:
    def init() -> Iterator[Manifest]:
        for prefix, spec in (
            ("base", {}),
            ("affinity", _AFFINITY),
            ("anti", _ANTI),
            ("preferred", _PREFERRED),
            ("preferred-anti", _PREFERRED_ANTI),
        ):
            yield from _many(f"init-{prefix}", 2000, **spec)()

    return BenchWorkload(_perf_nodes(5000, **_ONE_ZONE), init, _many("measured", 5000), 5000, True, 140)


def _with_namespace_selector() -> BenchWorkload:
    term = {"namespaceSelector": {"matchLabels": {"team": "devops"}}}
    spec = affinity("podAntiAffinity", HOSTNAME, GREEN, required=True, **term)

    def init() -> Iterator[Manifest]:
        for namespace in range(100):
            yield from _many(f"init-{namespace}", 40, GREEN, f"init-ns-{namespace}", affinity=spec)()

    def namespaces() -> Iterator[Manifest]:
        for name in (*(f"init-ns-{index}" for index in range(100)), "measure-ns-0"):
            yield {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": name, "labels": {"team": "devops"}},
            }

    # 4,000 pods that may not share a node leave 1,000 nodes; the measured ones repel those of other namespaces too.
    return BenchWorkload(
        _perf_nodes(6000),
        init,
        _many("measured", 2000, GREEN, "measure-ns-0", affinity=spec),
        6000,
        True,
        24,
        namespaces,
    )


def _daemonset() -> BenchWorkload:
    name = "scheduler-perf-node"
    field = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [field]}}

    def nodes() -> Iterator[Manifest]:
        manifest = node(0, cpu="4000", memory="64Ti", pods="100000")
        manifest["metadata"] = {"name": name, "labels": {HOSTNAME: name}}
        yield manifest
        yield from _perf_nodes(15000)()

    return BenchWorkload(
        nodes,
        lambda: iter(()),
        _many("daemon", 30000, affinity={"nodeAffinity": required}),
        15000,
        True,
        1100,
    )


def _preemption_async() -> BenchWorkload:
    return BenchWorkload(
        _perf_nodes(5000),
        _many("low", 20000, priority=0, requests={"cpu": "900m", "memory": "500Mi"}),
        _many("high", 5000, priority=10, requests={"cpu": "3000m", "memory": "500Mi"}),
        5000,
        True,
        570,
    )


def _while_gated() -> BenchWorkload:
    gated: dict[str, Any] = {"schedulingGates": [{"name": "test.k8s.io/hold"}]}
    return BenchWorkload(
        lambda: iter([node(0, cpu="4000", memory="64Ti", pods="100000")]),
        _many("gated", 10000, **gated),
        _many("measured", 10000, requests={}),
        1,
        True,
        910,
    )


PERF: dict[str, Callable[[], BenchWorkload]] = {
    "SchedulingBasic/5000Nodes_10000Pods": lambda: _perf(5000, 1000, 10000, 680),
    "SchedulingBasic/5000Nodes_50000Pods": lambda: _perf(5000, 5000, 50000, 810),
    "SchedulingPodAntiAffinity/5000Nodes_2000Pods": lambda: _perf(
        5000, 1000, 2000, 60, init=_ANTI, measured=_ANTI
    ),
    "SchedulingPodAffinity/5000Nodes_5000Pods": lambda: _perf(
        5000, 5000, 5000, 35, node_labels=_ONE_ZONE, init=_AFFINITY, measured=_AFFINITY
    ),
    "SchedulingPreferredPodAffinity/5000Nodes_5000Pods": lambda: _perf(
        5000, 5000, 5000, 90, measured=_PREFERRED
    ),
    "SchedulingPreferredPodAntiAffinity/5000Nodes_5000Pods": lambda: _perf(
        5000, 5000, 5000, 90, measured=_PREFERRED_ANTI
    ),
    "SchedulingNodeAffinity/5000Nodes_10000Pods": lambda: _perf(
        5000, 5000, 10000, 220, node_labels=_ONE_ZONE, init=_NODE_AFFINITY, measured=_NODE_AFFINITY
    ),
    "MixedSchedulingBasePod/5000Nodes_5000Pods": _mixed,
    "SchedulingRequiredPodAntiAffinityWithNSSelector/5000Nodes_2000Pods": _with_namespace_selector,
    "TopologySpreading/5000Nodes_5000Pods": lambda: _perf(
        5000,
        5000,
        5000,
        460,
        measured={"labels": _BLUE, "topologySpreadConstraints": spread("DoNotSchedule", _BLUE, 5)},
    ),
    "PreferredTopologySpreading/5000Nodes_5000Pods": lambda: _perf(
        5000,
        5000,
        5000,
        340,
        measured={"labels": _BLUE, "topologySpreadConstraints": spread("ScheduleAnyway", _BLUE, 5)},
    ),
    "SchedulingDaemonset/15000Nodes": _daemonset,
    "PreemptionAsync/5000Nodes": _preemption_async,
    "Unschedulable/5kNodes/20kInit/10kPods": lambda: _perf(
        5000, 20000, 10000, 600, init={"requests": {"cpu": "9", "memory": "500Mi"}}
    ),
    "SchedulingWhileGated/1Node_10000GatedPods": _while_gated,
}
"""scheduler_perf's workloads by their own names."""

ALGORITHM = (*_ALGORITHM_PODS, "preemption")
"""Rows of the comparison table; `--nodes` sets their size."""
