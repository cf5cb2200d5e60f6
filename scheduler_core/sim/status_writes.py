"""What the scheduler writes into statuses, as the API server takes it: conditions, nominations, evictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler_core.actions import EvictPod, PatchPodStatus
from scheduler_core.objects.fields import format_seconds
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.pod_group import PodGroup
from scheduler_core.sim.kubelet import delete_pod
from scheduler_core.sim.world import World, with_condition


def patch_pod_status(world: World, pod: Pod, action: PatchPodStatus) -> None:
    """Write a condition, a nomination or both into the status of a pod that is there."""
    status = dict(pod.manifest.get("status") or {})
    reason = "status"
    if action.condition is not None:
        status["conditions"] = with_condition(status, {**action.condition, "lastTransitionTime": _now(world)})
    if action.nominated_node_name is not None and action.nominated_node_name != pod.nominated_node_name:
        status["nominatedNodeName"] = action.nominated_node_name
        if not action.nominated_node_name:
            del status["nominatedNodeName"]
        reason = "nominated"
    status.setdefault("phase", "Pending")
    if status != pod.manifest.get("status"):
        world.patch_status(pod, status, reason, counts=reason == "nominated")


def patch_group_status(world: World, group: PodGroup, condition: Mapping[str, Any]) -> None:
    """Write a condition into the status of a pod group, unless another has taken its name."""
    stored = world.get("PodGroup", group.namespace, group.name)
    if stored is None or stored.typed.uid != group.uid:
        return
    status = dict(stored.manifest.get("status") or {})
    generation = stored.manifest["metadata"].get("generation")
    seen = {"observedGeneration": generation} if generation else {}
    status["conditions"] = with_condition(status, {**condition, **seen, "lastTransitionTime": _now(world)})
    world.put({**stored.manifest, "status": status}, "status")


def evict(world: World, eviction: EvictPod) -> None:
    """Delete a victim, with its condition and its event; one that ends already is left alone."""
    pod = eviction.pod
    live = world.live(pod)
    if live is None or live.is_terminating:
        return
    status = dict(live.manifest.get("status") or {})
    condition = {**eviction.condition, "lastTransitionTime": _now(world)}
    status["conditions"] = with_condition(status, condition)
    delete_pod(world, world.patch_status(live, status, "preempted"), None, "preempted")
    related = eviction.preemptor.manifest
    world.record_event(
        pod.manifest,
        "Normal",
        "Preempted",
        "Preempting",
        eviction.message,
        pod.scheduler_name,
        related=related,
    )


def _now(world: World) -> str:
    return format_seconds(world.clock.now_ns)
