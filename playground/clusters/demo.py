"""The demo cluster a newcomer finds: twelve nodes in three zones, some forty pods, a queue worth a look."""

from typing import Any, Final

from playground.clusters.lifecycle import create_cluster
from playground.clusters.models import Cluster
from playground.clusters.objects.apply import apply_documents

NAME: Final = "storefront-3z"
SEED: Final = 20260101
RELEASE: Final = "1.34"  # what its story was written for

_NODE_TOLERATION: Final = {"operator": "Exists"}
_CLASSES: Final = {"business-critical": 100_000, "standard": 1000, "batch": 100}

# node -> cpu, memory, extra labels, taints
_SPOT: Final = {"key": "spot", "value": "true", "effect": "PreferNoSchedule"}
_GPU: Final = {"key": "gpu", "value": "true", "effect": "NoSchedule"}

# name -> (node, priority class, cpu in millicores, memory in Gi, extended)
_BOUND: Final[dict[str, tuple[str, str, int, float, int]]] = {
    "catalog-db-0": ("a1", "business-critical", 3000, 12, 0),
    "search-0": ("a1", "standard", 3000, 8, 0),
    "web-0": ("a1", "standard", 1000, 2, 0),
    "web-1": ("a2", "standard", 1500, 3, 0),
    "cart-1": ("a2", "standard", 1000, 2, 0),
    "payments-9k2": ("a2", "standard", 2000, 4, 0),
    "payments-q81": ("a3", "standard", 2000, 4, 0),
    "web-3": ("a3", "standard", 1000, 2, 0),
    "etl-nightly-2": ("a3", "batch", 2500, 6, 0),
    "train-0": ("a4", "standard", 4000, 16, 3),
    "orders-db-0": ("b1", "business-critical", 3000, 12, 0),
    "search-1": ("b1", "standard", 3000, 8, 0),
    "cart-0": ("b1", "standard", 1000, 2, 0),
    "cart-2": ("b2", "standard", 1700, 2, 0),
    "payments-m5t": ("b2", "standard", 2000, 4, 0),
    "etl-nightly-3": ("b2", "batch", 1000, 3, 0),
    "thumbs-1": ("b2", "batch", 1000, 2, 0),
    "web-4": ("b3", "standard", 1000, 2, 0),
    "payments-7c9": ("b3", "standard", 2000, 4, 0),
    "etl-nightly-5": ("b3", "batch", 2000, 4, 0),
    "train-1": ("b4", "standard", 8000, 32, 4),
    "cache-0": ("c1", "business-critical", 1500, 6, 0),
    "web-2": ("c1", "standard", 1500, 3, 0),
    "payments-4x1": ("c1", "standard", 2000, 4, 0),
    "thumbs-3": ("c1", "batch", 1000, 2, 0),
    "thumbs-4": ("c1", "batch", 1000, 2, 0),
    "cache-1": ("c3", "business-critical", 1500, 6, 0),
    "web-7": ("c3", "standard", 1500, 3, 0),
    "infer-0": ("c4", "standard", 2000, 8, 2),
}

# name -> (priority class, cpu in millicores, memory in Gi, gpus, tolerates gpu nodes, gate)
# In the order they are tried: the first finds room on seven nodes, the second on none and evicts a pod.
_PENDING: Final[dict[str, tuple[str, int, float, int, bool, str]]] = {
    "gateway-0": ("business-critical", 500, 1, 0, False, ""),
    "checkout-api-0": ("business-critical", 3500, 6, 0, False, ""),
    "payments-b7d": ("standard", 2000, 4, 0, False, ""),
    "web-8": ("standard", 1500, 3, 0, False, ""),
    "train-2": ("standard", 6000, 8, 3, True, ""),
    "etl-nightly-7": ("batch", 5000, 8, 0, False, ""),
    "report-2": ("batch", 1000, 2, 0, False, ""),
    "thumbs-8": ("batch", 500, 1, 0, False, ""),
    "ml-sweep-0": ("standard", 2000, 8, 1, True, "quota.example.com/approved"),
}


def ensure_demo() -> Cluster:
    """The demo cluster of the local user, made if there is none; safe to call at every start."""
    found = Cluster.objects.filter(owner__isnull=True, name=NAME).order_by("pk").first()
    return found or create_demo()


def create_demo(*, owner: Any = None) -> Cluster:
    """A fresh demo cluster. Its pending pods are not tried yet: the first Step is the newcomer's."""
    cluster = create_cluster(name=NAME, owner=owner, seed=SEED, kubernetes_release=RELEASE)
    apply_documents(cluster=cluster, objects=demo_objects())
    return cluster


def demo_objects() -> list[dict[str, Any]]:
    """Everything in the demo, in the order it is applied."""
    objects: list[dict[str, Any]] = [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "globalDefault": name == "standard",
        }
        for name, value in _CLASSES.items()
    ]
    nodes = [f"{zone}{number}" for zone in "abc" for number in range(1, 5)]
    objects += [_node(name) for name in nodes]
    objects += [_agent(name) for name in nodes]
    for minute, (name, (node, priority, cpu_milli, memory_gi, gpus)) in enumerate(_BOUND.items()):
        pod = _pod(name, priority, cpu_milli, memory_gi, gpus, tolerates_gpu=node.endswith("4"))
        # One after the other, so that preemption can tell the newest.
        objects.append(_running(pod, node, f"2026-01-01T00:{minute:02}:00Z"))
    for name, (priority, cpu_milli, memory_gi, gpus, tolerates_gpu, gate) in _PENDING.items():
        pod = _pod(name, priority, cpu_milli, memory_gi, gpus, tolerates_gpu=tolerates_gpu)
        if gate:
            pod["spec"]["schedulingGates"] = [{"name": gate}]
        objects.append(pod)
    objects.append(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "payments", "namespace": "default"},
            "spec": {"minAvailable": 4, "selector": {"matchLabels": {"app": "payments"}}},
        }
    )
    return objects


def _node(name: str) -> dict[str, Any]:
    with_gpus = name.endswith("4")
    amounts = {"cpu": "16" if with_gpus else "8", "memory": "64Gi" if with_gpus else "32Gi", "pods": "110"}
    if with_gpus:
        amounts["nvidia.com/gpu"] = "4"
    taints = [_GPU] if with_gpus else [_SPOT] if name == "a3" else []
    ready = name != "c2"
    spec: dict[str, Any] = {}
    if not ready:
        taints = [*taints, {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    if name == "c3":
        spec["unschedulable"] = True
        taints = [*taints, {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    if taints:
        spec["taints"] = [dict(taint) for taint in taints]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": f"node-{name}",
            "labels": {
                "kubernetes.io/hostname": f"node-{name}",
                "kubernetes.io/os": "linux",
                "topology.kubernetes.io/region": "eu-1",
                "topology.kubernetes.io/zone": f"zone-{name[0]}",
                "disk": "ssd" if name[1] in "13" else "hdd",
            },
        },
        "spec": spec,
        "status": {
            "capacity": dict(amounts),
            "allocatable": dict(amounts),
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True" if ready else "False",
                    "reason": "KubeletReady" if ready else "KubeletNotReady",
                }
            ],
        },
    }


def _agent(node: str) -> dict[str, Any]:
    pod = _pod(f"node-agent-{node}", "system-node-critical", 100, 0.125, 0, tolerates_gpu=False)
    pod["spec"]["tolerations"] = [dict(_NODE_TOLERATION)]
    return _running(pod, node, "2026-01-01T00:00:00Z")


def _running(pod: dict[str, Any], node: str, since: str) -> dict[str, Any]:
    pod["spec"]["nodeName"] = f"node-{node}"
    containers = [
        {
            "name": item["name"],
            "image": item["image"],
            "ready": True,
            "state": {"running": {"startedAt": since}},
        }
        for item in pod["spec"]["containers"]
    ]
    # Budgets count pods whose Ready condition is true.
    conditions = [
        {"type": type_, "status": "True", "lastTransitionTime": since}
        for type_ in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ]
    pod["status"] = {
        "phase": "Running",
        "startTime": since,
        "conditions": conditions,
        "containerStatuses": containers,
    }
    return pod


def _pod(
    name: str, priority: str, cpu_milli: int, memory_gi: float, gpus: int, *, tolerates_gpu: bool
) -> dict[str, Any]:
    requests: dict[str, str] = {"cpu": f"{cpu_milli}m", "memory": f"{round(memory_gi * 1024)}Mi"}
    resources: dict[str, Any] = {"requests": requests}
    if gpus:
        requests["nvidia.com/gpu"] = str(gpus)
        resources["limits"] = {"nvidia.com/gpu": str(gpus)}
    app = name.rsplit("-", 1)[0]
    spec: dict[str, Any] = {
        "containers": [{"name": app, "image": f"registry.example.com/{app}:1.0", "resources": resources}],
        "priorityClassName": priority,
    }
    if tolerates_gpu:
        spec["tolerations"] = [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": app}},
        "spec": spec,
    }
