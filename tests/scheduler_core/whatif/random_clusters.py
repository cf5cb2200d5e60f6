"""Small clusters as manifests, and a scheduler made of them afresh for each question."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

from scheduler_core.fork import Fork
from scheduler_core.framework.attempt import Attempt
from scheduler_core.objects.defaults import PriorityClass, PriorityClasses, prepare
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif.fix_search import Search, SearchLimits
from scheduler_core.whatif.fixes import Fix
from tests.manifests import make_object

Manifest = dict[str, Any]
GPU = "example.com/gpu"
CLASSES = (
    PriorityClass("low", 10, False, "PreemptLowerPriority"),
    PriorityClass("high", 100, False, "PreemptLowerPriority"),
    PriorityClass("higher", 150, False, "PreemptLowerPriority"),
    PriorityClass("highest", 200, False, "PreemptLowerPriority"),
    PriorityClass("polite", 1000, False, "Never"),
)
CLASS_OF = {item.value: item.name for item in CLASSES}
ALL = SearchLimits(per_kind=None)
SPREAD = {
    "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "x"}},
}  # fmt: skip


def node(name: str, *, cpu: str = "2", memory: str = "4Gi", pods: str = "5", **more: Any) -> Manifest:
    labels = {"kubernetes.io/hostname": name, **more.pop("labels", {})}
    allocatable = {"cpu": cpu, "memory": memory, "pods": pods, **more.pop("extended", {})}
    spec, status = more.pop("spec", {}), {"allocatable": allocatable}
    return make_object("v1", "Node", name, labels=labels, spec=spec, status=status)


def pod(
    name: str, *, on: str = "", labels: dict[str, str] | None = None, priority: int = 0, **spec: Any
) -> Manifest:
    """A pod with the class of its priority: admission refuses a priority without one."""
    requests = spec.pop("requests", {})
    ports = spec.pop("ports", [])
    container = {"name": "c", "image": "i", "resources": {"requests": requests}, "ports": ports}
    meta: Manifest = {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": labels or {}}
    if spec.pop("owned", False):
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs", "controller": True}
        meta["ownerReferences"] = [owner]
    if priority:
        spec["priorityClassName"] = CLASS_OF[priority]
    if on:
        spec["nodeName"] = on
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": [container], **spec},
        "status": {"startTime": "2026-01-01T00:00:00Z"} if on else {},
    }


class Cluster:
    """Manifests, the classes above, and a scheduler made of them afresh for each question."""

    def __init__(self, nodes: list[Manifest], pods: list[Manifest], pending: Manifest) -> None:
        self.nodes = nodes
        self.pods = pods
        self.pending = pending

    def edited(self) -> Cluster:
        return copy.deepcopy(self)

    def simulation(self) -> Simulation:
        simulation = Simulation(None, seed=7)
        cache = simulation.scheduler.cache
        for manifest in self.nodes:
            cache.set_node(simulation.world.put(prepare(manifest)).typed)
        for manifest in self.pods:
            cache.add_pod(simulation.world.put(prepare(manifest, PriorityClasses(CLASSES))).typed)
        return simulation

    def pending_pod(self) -> Pod:
        return pod_from(prepare(self.pending, PriorityClasses(CLASSES)))

    def outcome(self) -> str:
        scheduler = self.simulation().scheduler
        found = self.pending_pod()
        decision = scheduler.algorithm.schedule(
            scheduler.profiles["default-scheduler"], found, scheduler.cache.snapshot()
        )
        if decision.node_name is not None:
            return "bound"
        result = decision.post_filter
        return "preempting" if result is not None and result.status.is_success else "unschedulable"

    def feasible(self) -> list[str]:
        scheduler = self.simulation().scheduler
        attempt = Attempt(
            scheduler.profiles["default-scheduler"], self.pending_pod(), scheduler.cache.snapshot()
        )
        if attempt.run_pre_filter().is_success:
            attempt.run_filter()
        return [attempt.name_of(row) for row in attempt.feasible.tolist()]

    @property
    def places(self) -> bool:
        return self.outcome() == "bound"

    def fixes(self, limits: SearchLimits = ALL) -> list[Fix]:
        fork = Fork(self.simulation().scheduler)
        return Search(fork, (self.pending_pod(),), priority_classes=CLASSES, limits=limits).run()


def draw_cluster(random: Random) -> Cluster:
    """A cluster in which the pod mostly does not fit."""
    for _ in range(20):
        cluster = _draw_cluster(random)
        if not cluster.places:
            break
    return cluster


def _draw_cluster(random: Random) -> Cluster:
    """Up to eight nodes, tight enough for a pod to be refused for every kind of reason."""
    pick = random.choice
    nodes = []
    for index in range(random.randint(1, 8)):
        spec: Manifest = {}
        if random.random() < 0.35:
            spec["taints"] = [
                {"key": pick("kl"), "value": pick(["x", "y"]), "effect": pick(["NoSchedule", "NoExecute"])}
            ]
        if random.random() < 0.2:
            spec["unschedulable"] = True
        nodes.append(
            node(
                f"n{index}",
                cpu=pick(["1", "2", "3", "4"]),
                memory=pick(["2Gi", "4Gi"]),
                pods=pick(["2", "5", "9"]),
                labels={"zone": pick("ab")} if random.random() < 0.9 else {},
                extended={GPU: pick(["1", "2"])} if random.random() < 0.3 else {},
                spec=spec,
            )
        )
    pods = []
    # A node keeps a set of ports: who else used one is forgotten when the first of two pods goes.
    with_port: set[str] = set()
    for index in range(random.randint(0, 14)):
        more: Manifest = {"affinity": anti_affinity(random)} if random.random() < 0.1 else {}
        on = pick(nodes)["metadata"]["name"]
        uses_port = random.random() < 0.3 and on not in with_port
        if uses_port:
            with_port.add(on)
        pods.append(
            pod(
                f"p{index}",
                on=on,
                labels={"app": pick("xy")},
                requests={"cpu": pick(["100m", "500m", "1"]), "memory": pick(["512Mi", "1Gi"])},
                priority=pick([0, 10, 200]),
                ports=[{"containerPort": 1, "hostPort": 80}] if uses_port else [],
                owned=random.random() < 0.3,
                **more,
            )
        )
    return Cluster(nodes, pods, draw_pending(random))


def anti_affinity(random: Random) -> Manifest:
    term = {
        "topologyKey": random.choice(["zone", "kubernetes.io/hostname"]),
        "labelSelector": {"matchLabels": {"app": random.choice("xy")}},
    }
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def draw_pending(random: Random) -> Manifest:
    """A pod with one or two demands, so that giving one up may be enough."""
    pick = random.choice
    demands = random.sample(
        ["cpu", "memory", "gpu", "selector", "anti", "near", "nodes", "spread", "spread", "port"],
        random.randint(1, 2),
    )
    requests = {
        "cpu": pick(["1500m", "2500m", "4000m"]) if "cpu" in demands else "200m",
        "memory": pick(["2048Mi", "5120Mi"]) if "memory" in demands else "512Mi",
    }
    if "gpu" in demands:
        requests[GPU] = pick(["1", "3"])
    spec: Manifest = {"requests": requests, "priority": pick([0, 150])}
    if "selector" in demands:
        spec["nodeSelector"] = {"zone": pick("ab")}
        if random.random() < 0.3:
            spec["nodeSelector"]["disk"] = "ssd"
    if random.random() < 0.3:
        spec["tolerations"] = [{"key": pick("kl"), "operator": "Exists"}]
    affinity: Manifest = {}
    if "anti" in demands:
        affinity |= anti_affinity(random)
    if "near" in demands:
        term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": pick("xyz")}}}
        affinity["podAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    if "nodes" in demands:
        wanted = [
            {"key": "zone", "operator": "In", "values": [pick("abc")]},
            {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": [pick(["n0", "n1"])]},
        ]
        terms = [{"matchExpressions": wanted[: random.randint(1, 2)]} for _ in range(random.randint(1, 2))]
        affinity["nodeAffinity"] = {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
        }
    if affinity:
        spec["affinity"] = affinity
    if "spread" in demands:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": random.randint(1, 2),
                "topologyKey": pick(["zone", "kubernetes.io/hostname", "rack"]),
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": pick("xy")}},
                "nodeTaintsPolicy": pick(["Honor", "Ignore"]),
            }
        ]
    if "port" in demands:
        spec["ports"] = [{"containerPort": 1, "hostPort": 80}]
    return pod("pending", labels={"app": pick("xy")}, **spec)
