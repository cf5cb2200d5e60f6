"""Nodes, pods, workloads and clusters for the tests of the simulation."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from scheduler_core.objects.pod import Pod
from scheduler_core.releases import OLDEST, Release
from scheduler_core.sim.changes import WriteObject
from scheduler_core.sim.options import SimulationOptions
from scheduler_core.sim.simulation import Simulation
from tests.manifests import make_object
from tests.scheduler_core.stored import prepare
from tests.tables import table

SECOND_NS = 1_000_000_000
START_NS = 1_767_225_600 * SECOND_NS
"""2026-01-01T00:00:00Z."""


def make_node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "16Gi",
    pods: str = "110",
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, Any]] = (),
    ready: str | None = None,
    unschedulable: bool = False,
) -> dict[str, Any]:
    status: dict[str, Any] = {"allocatable": {"cpu": cpu, "memory": memory, "pods": pods}}
    if ready is not None:
        status["conditions"] = [{"type": "Ready", "status": ready}]
    spec: dict[str, Any] = {}
    if taints:
        spec["taints"] = [dict(taint) for taint in taints]
    if unschedulable:
        spec["unschedulable"] = True
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}}
    return prepare({"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": status})


def pod_spec(cpu: str = "100m", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}]
    return {"containers": containers, **spec}


def make_pod(
    name: str,
    *,
    cpu: str = "100m",
    uid: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    meta = {"labels": dict(labels or {}), "annotations": dict(annotations or {}), "uid": uid}
    return prepare(make_object("v1", "Pod", name, **meta, spec=pod_spec(cpu, **spec)))


def make_workload(
    kind: str,
    name: str,
    *,
    replicas: int | None = None,
    cpu: str = "100m",
    image: str = "app",
    pod: Mapping[str, Any] | None = None,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A workload whose pods carry `app: <name>`."""
    own = {"app": name, **(labels or {})}
    template_spec = {**pod_spec(cpu), **(pod or {})}
    template_spec["containers"][0]["image"] = image
    template = {"metadata": {"labels": own, "annotations": dict(annotations or {})}, "spec": template_spec}
    document: dict[str, Any] = {"template": template, **spec}
    if kind != "Job":
        document["selector"] = (
            {"app": name} if kind == "ReplicationController" else {"matchLabels": {"app": name}}
        )
    if replicas is not None:
        document["replicas"] = replicas
    version = {"Job": "batch/v1", "ReplicationController": "v1"}.get(kind, "apps/v1")
    return prepare(make_object(version, kind, name, uid=f"{kind}-{name}", spec=document))


def make_budget(name: str, app: str, **spec: Any) -> dict[str, Any]:
    spec = {"selector": {"matchLabels": {"app": app}}} | spec
    return prepare(make_object("policy/v1", "PodDisruptionBudget", name, uid=f"pdb-{name}", spec=spec))


def make_priority_class(name: str, value: int, **more: Any) -> dict[str, Any]:
    return prepare(make_object("scheduling.k8s.io/v1", "PriorityClass", name, value=value, **more))


def storage_class(
    name: str, *, waits: bool = True, provisioner: str = "csi.example", **meta: Any
) -> dict[str, Any]:
    how = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer" if waits else "Immediate"}
    return prepare(make_object("storage.k8s.io/v1", "StorageClass", name, **how, **meta))


def claim(name: str, class_name: str | None = None) -> dict[str, Any]:
    spec: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}}
    if class_name is not None:
        spec["storageClassName"] = class_name
    return prepare(make_object("v1", "PersistentVolumeClaim", name, spec=spec))


PERMIT_CONFIG = table(__file__, "PERMIT_CONFIG")


def make_cluster(
    n_nodes: int = 3,
    *objects: Mapping[str, Any],
    config: Mapping[str, Any] | None = None,
    seed: int = 1,
    release: Release = OLDEST,
    **options: Any,
) -> Simulation:
    """A cluster of equal nodes `node-0`, ... and some objects."""
    simulation = Simulation(
        config, seed=seed, start_ns=START_NS, options=SimulationOptions(**options), release=release
    )
    for index in range(n_nodes):
        simulation.submit(WriteObject(make_node(f"node-{index}")))
    write(simulation, *objects)
    return simulation


def write(simulation: Simulation, *objects: Mapping[str, Any]) -> None:
    for manifest in objects:
        simulation.submit(WriteObject(manifest))


def pods_of(simulation: Simulation, app: str = "") -> list[Pod]:
    """Pods by name, of one app or all."""
    found = [stored.typed for stored in simulation.world.all("Pod")]
    return sorted((pod for pod in found if not app or pod.labels.get("app") == app), key=lambda pod: pod.name)


def pod_named(simulation: Simulation, name: str) -> Pod | None:
    return simulation.world.pod("default", name)


def status_of(simulation: Simulation, kind: str, name: str) -> dict[str, Any]:
    stored = simulation.world.get(kind, "default", name)
    assert stored is not None
    return {key: value for key, value in (stored.manifest.get("status") or {}).items() if key != "conditions"}


def set_ready(simulation: Simulation, node: str, ready: str) -> None:
    """What a kubelet, or its silence, makes of the node's Ready condition."""
    stored = simulation.world.get("Node", "", node)
    assert stored is not None
    status = {**stored.manifest["status"], "conditions": [{"type": "Ready", "status": ready}]}
    write(simulation, {**stored.manifest, "status": status})


def state(simulation: Simulation) -> str:
    """Everything the simulation is, as text."""
    return json.dumps(simulation.checkpoint(), sort_keys=True)


def reborn(simulation: Simulation) -> Simulation:
    """The simulation after a crash: from its checkpoint, as it comes back from storage."""
    return Simulation.restore(json.loads(json.dumps(simulation.checkpoint())))
