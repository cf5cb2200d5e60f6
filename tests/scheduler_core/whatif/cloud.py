"""A cluster as a cloud provider names it: 200 nodes and 3,000 pods, or as many as wanted; the same for one seed."""

from __future__ import annotations

import json
import random
import sys
from typing import Any

Manifest = dict[str, Any]
ZONES = ("eu-central-1a", "eu-central-1b", "eu-central-1c")
POOLS = (
    # pool, instance type, cpu, memory Gi, share of the nodes, taint, gpus
    ("general", "m6i.4xlarge", 16, 64, 0.48, "", 0),
    ("compute", "c6i.4xlarge", 16, 32, 0.24, "", 0),
    ("memory", "r6i.2xlarge", 8, 64, 0.18, "workload", 0),
    ("gpu", "g5.12xlarge", 48, 192, 0.06, "nvidia.com/gpu", 4),
    ("spot", "m6i.2xlarge", 8, 32, 0.04, "spot", 0),
)
WORKLOADS = (
    # namespace, name, kind, replicas for 3,000 pods, cpu m, memory Mi, pool, budget's maxUnavailable or -1
    ("shop", "checkout", "ReplicaSet", 320, 500, 1024, "", 10),
    ("shop", "cart", "ReplicaSet", 240, 250, 512, "", 6),
    ("shop", "payments", "ReplicaSet", 30, 1000, 2048, "", 0),
    ("shop", "catalog", "ReplicaSet", 300, 400, 768, "", 20),
    ("platform", "ingress-nginx-controller", "ReplicaSet", 60, 1000, 1024, "", 3),
    ("search", "opensearch-data", "StatefulSet", 18, 2000, 20480, "memory", 1),
    ("stream", "kafka-broker", "StatefulSet", 9, 4000, 24576, "memory", 1),
    ("data", "flink-taskmanager", "ReplicaSet", 160, 1500, 4096, "", -1),
    ("ml", "infer-llm", "ReplicaSet", 20, 8000, 32768, "gpu", -1),
    ("batch", "spark-exec", "Job", 140, 900, 3072, "", -1),
    ("web", "frontend", "ReplicaSet", 480, 200, 384, "", 30),
    ("web", "bff", "ReplicaSet", 398, 300, 512, "", 20),
)


def cluster(n_nodes: int = 200, n_pods: int = 3_000, n_pending: int = 25, seed: int = 7) -> list[Manifest]:
    """Nodes, bound pods, pending ones, budgets, priority classes; owners only as references, as in a dump of pods."""
    draw = random.Random(seed)
    nodes, free = _nodes(n_nodes, draw)
    daemons = [_pod(draw, "kube-system", "aws-node", "DaemonSet", 25, 64, on=name) for name in free] + [
        _pod(draw, "kube-system", "kube-proxy", "DaemonSet", 100, 64, on=name) for name in free
    ]
    for name in free:
        free[name][0] -= 125
        free[name][1] -= 128
    wanted = n_pods - len(daemons)
    total = sum(one[3] for one in WORKLOADS)
    pods: list[Manifest] = []
    for namespace, name, kind, replicas, cpu, memory, pool, _ in WORKLOADS:
        there = [
            node
            for node in nodes
            if node["metadata"]["labels"]["karpenter.sh/nodepool"] == (pool or "general")
        ]
        if not pool:
            there += [
                node for node in nodes if node["metadata"]["labels"]["karpenter.sh/nodepool"] == "compute"
            ]
        # Room only shrinks while one workload is placed, so a node that is full stays out.
        names = [node["metadata"]["name"] for node in there]
        fitting = [node for node in names if _fits(free[node], cpu, memory)]
        for index in range(max(1, round(replicas * wanted / total))):
            if not fitting:
                break
            at = draw.randrange(len(fitting))
            on = fitting[at]
            free[on][0] -= cpu
            free[on][1] -= memory
            if not _fits(free[on], cpu, memory):
                del fitting[at]
            pods.append(_pod(draw, namespace, name, kind, cpu, memory, on=on, pool=pool, index=index))
    pending = [
        _pod(draw, "ml", "infer-llm", "ReplicaSet", 8000, 32768, pool="gpu", gpus=4, index=900 + index)
        if index % 3 == 0
        else _pod(draw, "data", "spark-driver", "Job", 15000, 49152, index=900 + index)
        for index in range(n_pending)
    ]
    budgets = [
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"maxUnavailable": allowed, "selector": {"matchLabels": {"app": name}}},
            "status": {"disruptionsAllowed": allowed},
        }
        for namespace, name, *_, allowed in WORKLOADS
        if allowed >= 0
    ]
    classes = [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
        for name, value in (("business-critical", 1_000_000), ("standard", 10_000))
    ]
    return [*classes, *nodes, *daemons, *pods, *budgets, *pending]


def _nodes(n_nodes: int, draw: random.Random) -> tuple[list[Manifest], dict[str, list[int]]]:
    nodes: list[Manifest] = []
    free: dict[str, list[int]] = {}
    for pool, kind, cpu, memory, share, taint, gpus in POOLS:
        for index in range(max(1, round(n_nodes * share))):
            name = f"ip-10-0-{128 + len(nodes) // 250}-{len(nodes) % 250}.eu-central-1.compute.internal"
            labels = {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "topology.kubernetes.io/region": "eu-central-1",
                "topology.kubernetes.io/zone": ZONES[index % 3],
                "node.kubernetes.io/instance-type": kind,
                "karpenter.sh/nodepool": pool,
            }
            milli, mebi = cpu * 1000 - 110, memory * 1024 - 1500
            amounts = {"cpu": f"{milli}m", "memory": f"{mebi}Mi", "pods": "110"}
            if gpus:
                amounts["nvidia.com/gpu"] = str(gpus)
            spec: Manifest = {"providerID": f"aws:///{ZONES[index % 3]}/i-{draw.getrandbits(64):016x}"}
            if taint:
                spec["taints"] = [{"key": taint, "value": pool, "effect": "NoSchedule"}]
            conditions = [{"type": "Ready", "status": "True"}]
            status = {"allocatable": amounts, "capacity": amounts, "conditions": conditions}
            meta = {"name": name, "labels": labels}
            nodes.append(
                {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": status}
            )
            # A fifth of each node is kept free, and some nodes are nearly idle.
            kept = 0.25 if draw.random() < 0.15 else 0.85
            free[name] = [int(milli * kept), int(mebi * kept)]
    return nodes, free


def _fits(free: list[int], cpu: int, memory: int) -> bool:
    return free[0] >= cpu and free[1] >= memory


def _pod(
    draw: random.Random, namespace: str, name: str, kind: str, cpu: int, memory: int, *,
    on: str = "", pool: str = "", gpus: int = 0, index: int = 0,
) -> Manifest:  # fmt: skip
    hashed = f"{sum(map(ord, name)) * 7919 % 16**9:09x}"
    owner = f"{name}-{hashed}" if kind == "ReplicaSet" else name
    own = f"{name}-{index}" if kind == "StatefulSet" else f"{owner}-{draw.getrandbits(32):08x}"
    labels = {"app": name} | ({"pod-template-hash": hashed} if kind == "ReplicaSet" else {})
    requests = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    container = {"name": "c", "image": "example/app:1", "resources": {"requests": requests}}
    if gpus:
        container["resources"] = {"requests": requests, "limits": {"nvidia.com/gpu": str(gpus)}}
    tolerations: list[Manifest] = [{"operator": "Exists"}] if kind == "DaemonSet" else []
    taint = next((item[5] for item in POOLS if item[0] == pool), "")
    if taint:
        tolerations.append({"key": taint, "operator": "Exists", "effect": "NoSchedule"})
    spec: Manifest = {"containers": [container], "tolerations": tolerations}
    if pool:
        spec["nodeSelector"] = {"karpenter.sh/nodepool": pool}
    if kind != "DaemonSet":
        spec["priorityClassName"] = "business-critical" if namespace in ("shop", "platform") else "standard"
    if name in ("opensearch-data", "kafka-broker"):
        term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": name}}}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    if on:
        spec["nodeName"] = on
    reference = {
        "apiVersion": "apps/v1",
        "kind": kind,
        "name": owner,
        "uid": f"{namespace}-{owner}",
        "controller": True,
    }
    meta = {"name": own, "namespace": namespace, "labels": labels, "ownerReferences": [reference]}
    status = {"phase": "Running" if on else "Pending"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}


def dump(objects: list[Manifest]) -> str:
    """As `kubectl get ... -o json` prints it."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


if __name__ == "__main__":
    # nodes, pods, pending: `python -m tests.scheduler_core.whatif.cloud 200 3000 25 > dump.json`
    print(dump(cluster(*(int(word) for word in sys.argv[1:]))))
