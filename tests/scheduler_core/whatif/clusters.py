"""Small clusters for questions about them."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from scheduler_core.fork import Fork
from scheduler_core.objects.defaults import StoredPriorities, prepare
from scheduler_core.sim.changes import WriteObject
from scheduler_core.sim.options import SimulationOptions
from scheduler_core.sim.simulation import Simulation
from tests import manifests
from tests.manifests import make_object

Manifest = dict[str, Any]


def node(name: str, *, cpu: str = "4", pods: str = "110", zone: str = "", **labels: str) -> Manifest:
    names = {"kubernetes.io/hostname": name, **labels}
    if zone:
        names["topology.kubernetes.io/zone"] = zone
    allocatable = {"cpu": cpu, "memory": "64Gi", "pods": pods}
    status = {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]}
    return make_object("v1", "Node", name, labels=names, status=status)


def pod(
    name: str,
    *,
    cpu: str = "1",
    on: str = "",
    owner: str = "",
    priority: int = 0,
    port: int = 0,
    labels: dict[str, str] | None = None,
) -> Manifest:
    """A pod; `owner` is `Kind/name` of its controller."""
    container: Manifest = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    if port:
        container["ports"] = [{"containerPort": port, "hostPort": port}]
    meta: Manifest = {"name": name, "namespace": "default", "labels": labels or {"app": name}}
    if owner:
        kind, _, owner_name = owner.partition("/")
        meta["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": kind, "name": owner_name, "uid": owner, "controller": True}
        ]
    spec: Manifest = {"containers": [container], "priority": priority}
    if on:
        spec["nodeName"] = on
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def budget(name: str, allowed: int, **labels: str) -> Manifest:
    found = manifests.budget(name, selector={"matchLabels": labels})
    return found | {"status": {"disruptionsAllowed": allowed}}


def with_devices() -> list[Manifest]:
    """Three nodes, two of them with a device, and a pod that claims one by a template."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.playground.dev"}}
    spec = {"spec": {"devices": {"requests": [request]}}}
    template = make_object(
        "resource.k8s.io/v1", "ResourceClaimTemplate", "gpu", namespace="default", spec=spec
    )
    train = pod("train", owner="ReplicaSet/train")
    train["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    nodes = [node("a"), node("b"), node("c")]
    for one in nodes[:2]:
        one["metadata"]["annotations"] = {"playground.dev/devices": "gpu=1"}
    return [*nodes, template, train]


def cluster_of(objects: Iterable[Manifest], *, first_of_ties: bool = False) -> Simulation:
    """The objects as they are, with nothing decided yet."""
    options = SimulationOptions(controllers=False, first_of_ties=first_of_ties)
    simulation = Simulation(options=options)
    priorities = StoredPriorities(())
    for manifest in objects:
        simulation.submit(WriteObject(prepare(manifest, priorities)))
    simulation.advance(0, max_cycles=0)
    return simulation


def state_of(fork: Fork) -> dict[str, Any]:
    """All that a later question could tell apart: rows, ids, orders and sums."""
    cache = fork.scheduler.cache
    nodes, pods = cache.nodes, cache.pods
    rows = fork.snapshot.rows
    return {
        "order": [(name, nodes.row_of[name]) for name in fork.nodes_in_order()],
        "pods": {name: nodes.pods_on(nodes.row_of[name]) for name in fork.nodes_in_order()},
        "ids": dict(pods.id_of),
        "arrived": [uid for _, uid in sorted((int(pods.arrival[i]), uid) for uid, i in pods.id_of.items())],
        "requested": np.asarray(nodes.requested[:, rows]).tolist(),
        "counts": nodes.n_pods[rows].tolist(),
        "known": sorted(fork.scheduler.pods),
        "assumed": sorted(cache.assumed),
    }
