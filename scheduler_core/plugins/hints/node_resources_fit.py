"""When a pod rejected by NodeResourcesFit is worth another try.

Source: pkg/scheduler/framework/plugins/noderesources/fit.go, v1.34
"""

from __future__ import annotations

from scheduler_core.framework.cluster_event import (
    DEVICE_CLASS,
    NODE,
    POD,
    QUEUE,
    SKIP,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
)
from scheduler_core.objects.fields import mapping, optional_string
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_scalar_resource
from scheduler_core.plugins.hints.volumes import HasManifest, name_of
from scheduler_core.releases import OLDEST, Release

_FREED = QUEUE.because("a pod left its node and freed what it held")
_UNASSIGNED = SKIP.because("the deleted pod was on no node")
_SCALED_DOWN = QUEUE.because("a pod on a node gave back something the pod requests")
_OWN_REQUESTS = QUEUE.because("the pod requests less")
_PENDING_POD = SKIP.because("the pod that requests less is on no node")
_OTHER_RESOURCES = SKIP.because("what was given back is nothing the pod requests")
_NEW_FITS = QUEUE.because("the new node is large enough for the pod")
_GREW = QUEUE.because("the node has more of what the pod requests, and enough")
_TOO_SMALL = SKIP.because("even empty the node is too small for the pod")
_OFFERED = QUEUE.because("a device class offers a resource that the pod requests")
_NOT_OFFERED = SKIP.because("the device class offers nothing new that the pod requests")
_NOT_GROWN = SKIP.because("the node has no more of what the pod requests")


def events_to_register(release: Release = OLDEST) -> list[ClusterEventWithHint]:
    registered = [
        ClusterEventWithHint(
            ClusterEvent(POD, ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN), after_pod_event
        ),
        ClusterEventWithHint(
            ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE), after_node_change
        ),
    ]
    if release.gate("DRAExtendedResource"):
        changed = ClusterEvent(DEVICE_CLASS, ActionType.ADD | ActionType.UPDATE)
        registered.append(ClusterEventWithHint(changed, after_device_class_change))
    return registered


def after_device_class_change(pod: Pod, old: HasManifest | None, new: HasManifest) -> QueueingHint:
    name = _extended_resource(new)
    if old is None and f"deviceclass.resource.kubernetes.io/{name_of(new)}" in pod.requests:
        return _OFFERED
    if name is None or (old is not None and _extended_resource(old) == name):
        return _NOT_OFFERED
    return _OFFERED if name in pod.requests else _NOT_OFFERED


def _extended_resource(device_class: HasManifest) -> str | None:
    spec = mapping(device_class.manifest, "spec", "")
    return optional_string(spec, "extendedResourceName", "spec")


def after_pod_event(pod: Pod, old: Pod, new: Pod | None) -> QueueingHint:
    if new is None:
        return _FREED if old.node_name or old.nominated_node_name else _UNASSIGNED
    if new.uid == pod.uid:
        return _OWN_REQUESTS
    if not new.node_name:
        return _PENDING_POD
    for name, amount in pod.requests.items():
        if amount and _is_counted(name) and old.requests.get(name, 0) > new.requests.get(name, 0):
            return _SCALED_DOWN
    return _OTHER_RESOURCES


def after_node_change(pod: Pod, old: Node | None, new: Node) -> QueueingHint:
    if not _fits_empty(pod, new):
        return _TOO_SMALL
    if old is None:
        return _NEW_FITS
    return _GREW if _has_grown(pod, old, new) else _NOT_GROWN


def _fits_empty(pod: Pod, node: Node) -> bool:
    allocatable = node.allocatable
    if allocatable.get(PODS, 0) < 1:
        return False
    return all(
        amount <= allocatable.get(name, 0)
        for name, amount in pod.requests.items()
        if amount and _is_counted(name)
    )


def _has_grown(pod: Pod, old: Node, new: Node) -> bool:
    if new.allocatable.get(PODS, 0) > old.allocatable.get(PODS, 0):
        return True
    return any(
        new.allocatable.get(name, 0) > old.allocatable.get(name, 0)
        for name, amount in pod.requests.items()
        if amount and _is_counted(name)
    )


def _is_counted(name: str) -> bool:
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar_resource(name)
