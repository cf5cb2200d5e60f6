"""Resizing a pod in place: what its kubelet allocates when the resources of a running pod's containers change.

Source: pkg/kubelet/allocation/allocation_manager.go handlePodResourcesResize, canResizePod, v1.34
Differs: containers are resized at once, so none is ever in progress; no swap, no static policies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.sim.kubelet_admission import NodeUse
from scheduler_core.sim.pod_index import condition_of
from scheduler_core.sim.world import World, condition, generation_of

PENDING = "PodResizePending"
RESIZED = ("cpu", "memory")
Manifest = Mapping[str, Any]


def resources_of(manifest: Manifest) -> dict[str, Any]:
    """Container -> its resources, as the spec has them."""
    return {
        str(item.get("name", "")): item.get("resources") or {}
        for item in (manifest.get("spec") or {}).get("containers") or ()
    }


def allocated_of(manifest: Manifest) -> dict[str, Any] | None:
    """Container -> the resources its kubelet gave it; None where its spec says that."""
    found = {
        str(item.get("name", "")): item["resources"]
        for item in (manifest.get("status") or {}).get("containerStatuses") or ()
        if item.get("resources") is not None
    }
    return found or None


def is_asked_for(old: Manifest, new: Manifest) -> bool:
    """Whether a running pod is asked to be of another size."""
    return old["spec"] is not new["spec"] and resources_of(old) != resources_of(new)


def is_deferred(pod: Pod) -> bool:
    """Whether a resize waits for room on the node."""
    condition = condition_of(pod.manifest, PENDING)
    return condition is not None and condition.get("reason") == "Deferred"


def resize(world: World, pod: Pod, before: Manifest, node: Node, use: NodeUse) -> None:
    """Give a pod what it asks for now, or say why not.

    Parameters
    ----------
    before : mapping
        Its manifest with what it has.
    """
    manifest = pod.manifest
    had = allocated_of(before) or resources_of(before)
    wanted = resources_of(manifest)
    why = _why_not(pod, had, node, use)
    status = dict(manifest.get("status") or {})
    conditions = [item for item in status.get("conditions") or () if item.get("type") != PENDING]
    status["conditions"] = conditions
    given = wanted if why is None else had
    if why is not None:
        pending = {**condition(PENDING, True, *why), "observedGeneration": generation_of(manifest)}
        earlier = condition_of(manifest, PENDING)
        status["conditions"] = conditions if earlier is None else [*conditions, earlier]
        status = world.status_with({"status": status}, pending)
    status["containerStatuses"] = [
        _with_resources(item, manifest, had, given) for item in status.get("containerStatuses") or ()
    ]
    if status != manifest.get("status"):
        world.put({**manifest, "status": status}, "resized" if why is None else "resize is pending")


def _why_not(pod: Pod, had: Mapping[str, Any], node: Node, use: NodeUse) -> tuple[str, str] | None:
    """(reason, message) of the refusal."""
    requests = _requests(pod.manifest, resources_of(pod.manifest))
    held = _requests(pod.manifest, had)
    used = use.of(node.name)
    for name in RESIZED:
        amount, capacity = requests.get(name, 0), node.allocatable.get(name, 0)
        if amount <= held.get(name, 0):
            continue
        if amount > capacity:
            said = f"Node didn't have enough capacity: {name}, requested: {amount}, capacity: {capacity}"
            return "Infeasible", said
        others = used.get(name, 0) - pod.requests.get(name, 0)
        if others + amount > capacity:
            said = f"requested: {amount}, used: {others}, capacity: {capacity}"
            return "Deferred", f"Node didn't have enough resource: {name}, {said}"
    return None


def _requests(manifest: Manifest, resources: Mapping[str, Any]) -> Mapping[str, int]:
    """What a pod of these resources requests, whatever its status says."""
    spec = manifest["spec"]
    containers = [
        {**item, "resources": resources.get(str(item.get("name", "")), {})}
        for item in spec.get("containers") or ()
    ]
    return pod_from({**manifest, "spec": {**spec, "containers": containers}, "status": {}}).requests


def _with_resources(
    item: Manifest, manifest: Manifest, had: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, Any]:
    """A container's status with what it has from now on; one whose policy says so is started anew for that."""
    name = str(item.get("name", ""))
    result = {**item, "resources": given.get(name, {})}
    if requests := (given.get(name) or {}).get("requests"):
        result["allocatedResources"] = dict(requests)
    if given.get(name) != had.get(name) and _restarts(
        manifest, name, had.get(name) or {}, given.get(name) or {}
    ):
        result["restartCount"] = int(item.get("restartCount") or 0) + 1
    return result


def _restarts(manifest: Manifest, name: str, had: Manifest, given: Manifest) -> bool:
    container = next(item for item in manifest["spec"]["containers"] if item.get("name") == name)
    for policy in container.get("resizePolicy") or ():
        resource = policy.get("resourceName")
        changed = any(
            (had.get(key) or {}).get(resource) != (given.get(key) or {}).get(resource)
            for key in ("requests", "limits")
        )
        if changed and policy.get("restartPolicy") == "RestartContainer":
            return True
    return False
