"""A dump as a real cluster gives it, made up: ``python -m tests.real_dump > dump.yaml`` (``--help`` for sizes).

Nodes have names, zones, pools and instance types as AWS or GKE give them, pods have owners, and some pods are pending,
each for another reason. The same arguments give the same bytes.
"""

import argparse
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import yaml

from tests.manifests import make_object
from tests.tables import table

Manifest = dict[str, Any]

_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_GI: Final = 1024**3


@dataclass(frozen=True)
class Pool:
    """Nodes of one kind: what cloud calls them, what they have, and their part of the cluster."""

    name: str
    aws: str
    gke: str
    cpu: int
    memory_gi: int
    share: float
    gpus: int = 0


POOLS: Final = tuple(Pool(**row) for row in table(__file__, "POOLS"))
CLASSES: Final = table(__file__, "CLASSES")
NAMESPACES: Final = table(__file__, "NAMESPACES")
NAMES: Final = table(__file__, "NAMES")
DAEMONS: Final = table(__file__, "DAEMONS")


@dataclass(frozen=True)
class _Workload:
    """Pods that are alike, and what controls them; `more` is what their spec says besides."""

    namespace: str
    name: str
    kind: str
    n: int
    cpu: str
    memory_gi: float
    priority_class: str
    gpus: int = 0
    more: Manifest = field(default_factory=dict)

    @property
    def milli(self) -> int:
        return int(self.cpu[:-1]) if self.cpu.endswith("m") else 1000 * int(self.cpu)


PENDING: Final = tuple(_Workload(**row) for row in table(__file__, "PENDING"))
"""Workloads whose pods find no node, each for another reason."""


@dataclass
class _Node:
    manifest: Manifest
    free_milli: int
    free_bytes: int
    is_open: bool

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])

    def takes(self, workload: _Workload, n_before: int) -> bool:
        """Whether it has room for one more; full nodes are seldom."""
        n = n_before + 1
        return (
            self.is_open
            and self.free_milli - 1000 >= n * workload.milli
            and self.free_bytes >= n * workload.memory_gi * _GI
        )


def real_dump(
    n_nodes: int = 200, n_pods: int = 3000, *, seed: int = 20, cloud: str = "aws", owners: bool = True
) -> list[Manifest]:
    """The objects of the dump, classes and namespaces first.

    Parameters
    ----------
    n_nodes, n_pods
        How many. The pods include those of `PENDING`, and those of DaemonSets on each node.
    cloud
        ``aws`` or ``gke``: how nodes are named and labelled.
    owners
        Whether Deployments, ReplicaSets, StatefulSets, DaemonSets and Jobs are in it; pods name them in any case.
    """
    chance = random.Random(seed)
    made = [_class(name, value) for name, value in CLASSES]
    made += [make_object("v1", "Namespace", name) for name in (*NAMESPACES, "kube-system")]
    nodes = [*_nodes(chance, n_nodes, cloud)]
    made += [node.manifest for node in nodes]
    holders: list[Manifest] = []
    pods: list[Manifest] = []
    for name in DAEMONS[: 3 if n_pods >= 5 * n_nodes else 1]:
        daemon = _Workload("kube-system", name, "DaemonSet", n_nodes, "100m", 0.125, "system-node-critical")
        owner = _owner(chance, daemon, holders)
        pods += [_pod(chance, owner, daemon, node, i) for i, node in enumerate(nodes)]
    for workload in PENDING:
        owner = _owner(chance, workload, holders)
        pods += [_pod(chance, owner, workload, None, i) for i in range(workload.n)]
    while len(pods) < n_pods:
        pods += _workload(chance, nodes, n_pods - len(pods), holders)
    made += holders if owners else []
    made += pods
    made += [_budget(namespace, name) for namespace, name in (("shop", "checkout"), ("payments", "ledger"))]
    return made


def with_few_waiting(objects: list[Manifest]) -> list[Manifest]:
    """The dump with two workloads that find no room, not five: a backlog of all takes seconds to plan."""
    left_out = ("nightly-render", "spark-exec-wide", "trainer-big")
    return [item for item in objects if not item["metadata"]["name"].startswith(left_out)]


def as_yaml(objects: list[Manifest]) -> str:
    """As ``kubectl get -o yaml`` writes them: one List."""
    return yaml.dump({"apiVersion": "v1", "kind": "List", "items": objects}, sort_keys=False, Dumper=_Dumper)


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # which of the two is there
    """Writes everything out, as kubectl does: no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _nodes(chance: random.Random, n_nodes: int, cloud: str) -> Iterator[_Node]:
    region = "eu-central-1" if cloud == "aws" else "europe-west3"
    zones = [f"{region}{letter}" if cloud == "aws" else f"{region}-{letter}" for letter in "abc"]
    groups = {pool.name: f"{chance.getrandbits(32):08x}" for pool in POOLS}
    names: set[str] = set()
    for i in range(n_nodes):
        at = i / n_nodes
        pool = next(p for k, p in enumerate(POOLS) if at < sum(q.share for q in POOLS[: k + 1]) + 1e-9)
        name = ""
        while not name or name in names:
            ends = (chance.randint(0, 255), chance.randint(4, 254))
            name = (
                f"ip-10-{(n_nodes > 2000 and chance.randint(0, 3)) or 0}-{ends[0]}-{ends[1]}.{region}.compute.internal"
                if cloud == "aws"
                else f"gke-prod-{pool.name}-pool-1-{groups[pool.name]}-{_hash(chance, 4)}"
            )
        names.add(name)
        own = (
            {"karpenter.sh/nodepool": pool.name, "eks.amazonaws.com/capacityType": "ON_DEMAND"}
            if cloud == "aws"
            else {"cloud.google.com/gke-nodepool": f"{pool.name}-pool-1"}
        )
        amounts = {
            "cpu": f"{pool.cpu * 1000 - 110}m",
            "memory": f"{pool.memory_gi * 1024 * 1024 - 4_800_000}Ki",
            "pods": "110",
            "ephemeral-storage": "80Gi",
        } | ({"nvidia.com/gpu": str(pool.gpus)} if pool.gpus else {})
        spec: Manifest = {"providerID": f"{cloud}:///{zones[i % 3]}/i-{chance.getrandbits(64):016x}"}
        if pool.gpus:
            spec["taints"] = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
        ready, cordoned = i % 97 != 59, i % 67 == 33
        if cordoned:
            spec["unschedulable"] = True
        manifest = make_object(
            "v1",
            "Node",
            name,
            labels={
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/os": "linux",
                "kubernetes.io/hostname": name,
                "node.kubernetes.io/instance-type": pool.aws if cloud == "aws" else pool.gke,
                "topology.kubernetes.io/region": region,
                "topology.kubernetes.io/zone": zones[i % 3],
                **own,
            },
            spec=spec,
            status={
                "capacity": amounts,
                "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            },
        )
        is_open = ready and not cordoned and not pool.gpus
        yield _Node(manifest, pool.cpu * 1000 - 110, pool.memory_gi * _GI - 4_800_000 * 1024, is_open)


def _workload(
    chance: random.Random, nodes: list[_Node], most: int, holders: list[Manifest]
) -> list[Manifest]:
    """Pods of one more workload, placed where there is room; none if a few tries found none."""
    name = f"{chance.choice(NAMES)}-{_hash(chance, 3)}" if chance.random() < 0.5 else chance.choice(NAMES)
    namespace = chance.choice(NAMESPACES)
    if any(h["metadata"]["name"] == name and h["metadata"]["namespace"] == namespace for h in holders):
        name = f"{name}-{_hash(chance, 4)}"
    n = min(most, chance.choice((1, 2, 3, 6, 12, 24, 40)))
    workload = _Workload(
        namespace,
        name,
        "StatefulSet" if n == 1 else "ReplicaSet",
        n,
        chance.choice(("100m", "200m", "300m", "400m", "500m", "700m", "900m", "1500m")),
        chance.choice((0.25, 0.5, 0.75, 1.0, 1.5, 2.0)),
        chance.choice(("business-critical", "standard", "standard", "batch")),
    )
    places: list[_Node] = []
    for _ in range(40 * n):
        node = chance.choice(nodes)
        if len(places) < n and node.takes(workload, places.count(node)):
            places.append(node)
    owner = _owner(chance, replace(workload, n=len(places)), holders)
    return [_pod(chance, owner, workload, node, i) for i, node in enumerate(places)]


def _owner(chance: random.Random, workload: _Workload, holders: list[Manifest]) -> Manifest:
    """The controlling owner of a workload's pods; a ReplicaSet's Deployment comes with it."""
    labels = {"app.kubernetes.io/name": workload.name}
    template = {"metadata": {"labels": labels}, "spec": _pod_spec(workload)}
    above: list[Manifest] = []
    name = workload.name
    if workload.kind == "ReplicaSet":
        deployment = _holder(chance, "Deployment", workload.name, workload, template, [])
        holders.append(deployment)
        above = [_reference(deployment)]
        hash_ = _hash(chance, 10)
        name = f"{name}-{hash_}"
        template = {"metadata": {"labels": labels | {"pod-template-hash": hash_}}, "spec": template["spec"]}
    holders.append(_holder(chance, workload.kind, name, workload, template, above))
    return holders[-1]


def _holder(
    chance: random.Random,
    kind: str,
    name: str,
    workload: _Workload,
    template: Manifest,
    above: list[Manifest],
) -> Manifest:
    labels = template["metadata"]["labels"]
    metadata: Manifest = {
        "name": name,
        "namespace": workload.namespace,
        "labels": labels,
        "uid": _uid(chance),
    }
    if above:
        metadata["ownerReferences"] = above
    spec: Manifest = {"template": template}
    if kind == "Job":
        spec |= {"parallelism": workload.n, "completions": workload.n}
    else:
        spec |= {"selector": {"matchLabels": labels}} | (
            {} if kind == "DaemonSet" else {"replicas": workload.n}
        )
    if kind == "StatefulSet":
        spec |= {"serviceName": name, "podManagementPolicy": "Parallel"}
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
    }


def _pod_spec(workload: _Workload) -> Manifest:
    requests = {"cpu": workload.cpu, "memory": f"{int(workload.memory_gi * 1024)}Mi"}
    resources: Manifest = {"requests": requests}
    spec: Manifest = {"priorityClassName": workload.priority_class}
    if workload.gpus:
        resources["limits"] = {"nvidia.com/gpu": str(workload.gpus)}
        requests["nvidia.com/gpu"] = str(workload.gpus)
        spec["tolerations"] = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    if workload.kind == "DaemonSet":
        spec["tolerations"] = [{"operator": "Exists"}]
    if workload.kind == "Job":
        spec["restartPolicy"] = "Never"
    container = {"name": "main", "image": f"registry.example/{workload.name}:1", "resources": resources}
    return spec | {"containers": [container]} | workload.more


def _pod(
    chance: random.Random, owner: Manifest, workload: _Workload, node: _Node | None, index: int = 0
) -> Manifest:
    above = owner["metadata"]
    if node is not None:
        node.free_milli -= workload.milli
        node.free_bytes -= int(workload.memory_gi * _GI)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{above['name']}-{index if owner['kind'] == 'StatefulSet' else _suffix(above['uid'], index)}",
            "namespace": above["namespace"],
            "uid": _uid(chance),
            "labels": dict(owner["spec"]["template"]["metadata"]["labels"]),
            "ownerReferences": [_reference(owner)],
        },
        "spec": _pod_spec(workload) | ({"nodeName": node.name} if node else {}),
        "status": {"phase": "Running" if node else "Pending"},
    }


def _reference(owner: Manifest) -> Manifest:
    facts = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": facts["name"],
        "uid": facts["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _class(name: str, value: int) -> Manifest:
    made = make_object("scheduling.k8s.io/v1", "PriorityClass", name, value=value)
    return made | ({"globalDefault": True} if name == "standard" else {})


def _budget(namespace: str, name: str) -> Manifest:
    return make_object(
        "policy/v1",
        "PodDisruptionBudget",
        f"{name}-availability",
        namespace=namespace,
        spec={"maxUnavailable": 1, "selector": {"matchLabels": {"app.kubernetes.io/name": name}}},
    )


def _suffix(owner: str, index: int) -> str:
    """Five letters, others for each pod of an owner: the step has no divisor in common with their number."""
    number, letters = (int(owner[:8], 16) + index * 1_000_003) % len(_LETTERS) ** 5, ""
    for _ in range(5):
        number, place = divmod(number, len(_LETTERS))
        letters += _LETTERS[place]
    return letters


def _hash(chance: random.Random, n: int) -> str:
    return "".join(chance.choice(_LETTERS) for _ in range(n))


def _uid(chance: random.Random) -> str:
    text = f"{chance.getrandbits(128):032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def main() -> int:
    """Write the dump to standard output."""
    parser = argparse.ArgumentParser(prog="python -m tests.real_dump", description=__doc__)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--pods", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--cloud", choices=("aws", "gke"), default="aws")
    parser.add_argument("--no-owners", action="store_true", help="pods name owners that are not in the dump")
    asked = parser.parse_args()
    made = real_dump(asked.nodes, asked.pods, seed=asked.seed, cloud=asked.cloud, owners=not asked.no_owners)
    sys.stdout.write(as_yaml(made))
    return 0


if __name__ == "__main__":
    sys.exit(main())
