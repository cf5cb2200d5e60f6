"""What happened in the cluster, as the queue and the plugins' hints see it.

Source: staging/src/k8s.io/kube-scheduler/framework/types.go,
pkg/scheduler/framework/events.go and types.go, v1.34
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntFlag
from functools import reduce
from operator import or_
from typing import Any

from scheduler_core.objects.fields import mapping, mappings
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.resources import resource_list


class ActionType(IntFlag):
    """One kind of change, or several or-ed together."""

    NONE = 0
    ADD = 1 << 0
    DELETE = 1 << 1
    UPDATE_NODE_ALLOCATABLE = 1 << 2
    UPDATE_NODE_LABEL = 1 << 3
    UPDATE_NODE_TAINT = 1 << 4
    UPDATE_NODE_CONDITION = 1 << 5
    UPDATE_NODE_ANNOTATION = 1 << 6
    UPDATE_NODE_DECLARED_FEATURE = 1 << 7
    UPDATE_POD_LABEL = 1 << 8
    UPDATE_POD_SCALE_DOWN = 1 << 9
    UPDATE_POD_TOLERATION = 1 << 10
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 1 << 11
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 1 << 12
    UPDATE = (1 << 13) - (1 << 2)
    ALL = (1 << 13) - 1

    @property
    def text(self) -> str:
        """Kubernetes' own name; combinations other than Update and All have none, as upstream."""
        return _ACTION_NAMES.get(int(self), "")

    @classmethod
    def named(cls, name: str) -> ActionType:
        """The action Kubernetes calls `name`.

        Raises
        ------
        KeyError
            No action has this name.
        """
        return cls(_ACTIONS_BY_NAME[name])

    @property
    def names(self) -> list[str]:
        """Names of the single flags, lowest bit first."""
        return [name for bit, name in _ACTION_NAMES.items() if bit & self and bit & (bit - 1) == 0]

    @property
    def mask_1_34(self) -> int:
        """The bits as 1.34 numbers them, before nodes declared features."""
        low = int(self) & (self.UPDATE_NODE_DECLARED_FEATURE - 1)
        return low | (int(self) >> 1 & ~(self.UPDATE_NODE_DECLARED_FEATURE - 1))


_ACTION_NAMES = {
    int(action): name.title().replace("_", "")
    for name, action in ActionType.__members__.items()
    if action is not ActionType.NONE
}
_ACTIONS_BY_NAME = {name: bit for bit, name in _ACTION_NAMES.items()}

POD = "Pod"
ASSIGNED_POD = "AssignedPod"
"""A pod bound to a node; only incoming, registrations say `Pod`."""
UNSCHEDULABLE_POD = "UnschedulablePod"
"""A pending pod; only incoming, registrations say `Pod`."""
NODE = "Node"
WILDCARD = "*"

RESOURCE_OF_KIND = {
    kind: f"{group}{kind}"
    for group, kinds in {
        "": ("PersistentVolume", "PersistentVolumeClaim"),
        "storage.k8s.io/": ("CSINode", "CSIDriver", "VolumeAttachment", "CSIStorageCapacity", "StorageClass"),
        "resource.k8s.io/": ("ResourceClaim", "ResourceSlice", "DeviceClass"),
        "scheduling.k8s.io/": ("PodGroup",),
    }.items()
    for kind in kinds
}
"""Kinds besides Node and Pod whose changes may make a pod schedulable, and how events name them."""


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """A change of one kind of object.

    `custom_label` is set only for events that are not about an object (timeouts, forced activation).
    """

    resource: str
    action: ActionType
    custom_label: str = ""

    @property
    def label(self) -> str:
        """The event in a word, as upstream's metrics and logs name it (`NodeAdd`)."""
        return self.custom_label or f"{self.resource}{self.action.text}"

    @property
    def is_wildcard(self) -> bool:
        """It moves pods whatever rejected them."""
        return self.resource == WILDCARD and self.action == ActionType.ALL

    def matches(self, incoming: ClusterEvent) -> bool:
        """Does this registration cover `incoming`?

        An incoming mask that is numerically larger is more general than the registration and does not match;
        so a generic pod Update reaches only plugins that registered Update.

        Source: pkg/scheduler/framework/types.go MatchClusterEvents, v1.34
        """
        if self.is_wildcard:
            return True
        return (
            (
                self.resource in (WILDCARD, incoming.resource)
                or (self.resource == POD and incoming.resource in (ASSIGNED_POD, UNSCHEDULABLE_POD))
            )
            and int(self.action) & int(incoming.action) != 0
            and int(incoming.action) <= int(self.action)
        )


ASSIGNED_POD_ADD = ClusterEvent(ASSIGNED_POD, ActionType.ADD)
ASSIGNED_POD_DELETE = ClusterEvent(ASSIGNED_POD, ActionType.DELETE)
UNSCHEDULED_POD_ADD = ClusterEvent(UNSCHEDULABLE_POD, ActionType.ADD)
UNSCHEDULED_POD_UPDATE = ClusterEvent(UNSCHEDULABLE_POD, ActionType.UPDATE)
UNSCHEDULED_POD_DELETE = ClusterEvent(UNSCHEDULABLE_POD, ActionType.DELETE)
NODE_ADD = ClusterEvent(NODE, ActionType.ADD)
NODE_DELETE = ClusterEvent(NODE, ActionType.DELETE)
WILDCARD_EVENT = ClusterEvent(WILDCARD, ActionType.ALL)
UNSCHEDULABLE_TIMEOUT = ClusterEvent(WILDCARD, ActionType.ALL, "UnschedulableTimeout")
FORCE_ACTIVATE = ClusterEvent(WILDCARD, ActionType.ALL, "ForceActivate")

SCHEDULE_ATTEMPT_FAILURE = "ScheduleAttemptFailure"
BACKOFF_COMPLETE = "BackoffComplete"
POP_FROM_BACKOFF = "PopFromBackoffQ"


@dataclass(frozen=True, slots=True)
class QueueingHint:
    """What a plugin thinks of an event for a pod it rejected: queue it again, or skip.

    `reason` says why in words; two hints with different reasons are different values, so ask `queues`.
    """

    queues: bool
    reason: str = ""

    def because(self, reason: str) -> QueueingHint:
        """The same answer with its reason. Build it once, at import: hints run for every waiting pod."""
        return QueueingHint(self.queues, reason)

    def __str__(self) -> str:
        return "Queue" if self.queues else "Skip"


QUEUE = QueueingHint(True)
SKIP = QueueingHint(False)

HintFunction = Callable[[Pod, Any, Any], QueueingHint]
"""`hint(pod, old, new)`: `old` is None for an added object, `new` for a deleted one.

An exception counts as Queue."""


@dataclass(frozen=True, slots=True)
class ClusterEventWithHint:
    """One registration of a plugin; without a hint function every matching event queues the pod."""

    event: ClusterEvent
    hint: HintFunction | None = None


def on(kind: str, actions: str, hint: HintFunction | None = None) -> ClusterEventWithHint:
    """A registration in Kubernetes' own names.

    Parameters
    ----------
    kind
        Of the objects, without a group: `CSINode`.
    actions
        `Add`, or several: `Add|UpdateNodeLabel`.

    Raises
    ------
    KeyError
        There is no such kind or action.

    >>> on("Node", "Add|UpdateNodeTaint").event.action == ActionType.ADD | ActionType.UPDATE_NODE_TAINT
    True
    """
    action = reduce(or_, map(ActionType.named, actions.split("|")))
    resource = kind if kind in (POD, NODE) else RESOURCE_OF_KIND[kind]
    return ClusterEventWithHint(ClusterEvent(resource, action), hint)


_PLAIN_ASSIGNED_UPDATE = [ClusterEvent(ASSIGNED_POD, ActionType.UPDATE)]
_PLAIN_PENDING_UPDATE = [ClusterEvent(UNSCHEDULABLE_POD, ActionType.UPDATE)]


def pod_update_events(old: Pod, new: Pod) -> list[ClusterEvent]:
    """The specific events in a pod's update; one generic Update when nothing specific changed.

    Source: pkg/scheduler/framework/events.go PodSchedulingPropertiesChange, v1.34
    """
    if (
        new.requests is old.requests
        and new.tolerations is old.tolerations
        and new.scheduling_gates is old.scheduling_gates
        and new.meta.labels == old.meta.labels
        and _claim_statuses(new) == _claim_statuses(old)
    ):
        return _PLAIN_ASSIGNED_UPDATE if new.node_name else _PLAIN_PENDING_UPDATE
    resource = ASSIGNED_POD if new.node_name else UNSCHEDULABLE_POD
    actions = []
    if new.meta.labels != old.meta.labels:
        actions.append(ActionType.UPDATE_POD_LABEL)
    if _scaled_down(old, new):
        actions.append(ActionType.UPDATE_POD_SCALE_DOWN)
    if old.scheduling_gates and not new.scheduling_gates:
        actions.append(ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    if len(new.tolerations) != len(old.tolerations):
        actions.append(ActionType.UPDATE_POD_TOLERATION)
    if _claim_statuses(new) != _claim_statuses(old):
        actions.append(ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    return [ClusterEvent(resource, action) for action in actions or (ActionType.UPDATE,)]


def node_update_events(old: Node, new: Node) -> list[ClusterEvent]:
    """The specific events in a node's update, possibly none (cordoning is none).

    Source: pkg/scheduler/framework/events.go NodeSchedulingPropertiesChange, v1.34
    """
    actions = []
    if old.unschedulable and not new.unschedulable:
        actions.append(ActionType.UPDATE_NODE_TAINT)
    if _allocatable(old) != _allocatable(new):
        actions.append(ActionType.UPDATE_NODE_ALLOCATABLE)
    if old.meta.labels != new.meta.labels:
        actions.append(ActionType.UPDATE_NODE_LABEL)
    if node_taints(old) != node_taints(new):
        actions.append(ActionType.UPDATE_NODE_TAINT)
    if dict(old.conditions) != dict(new.conditions):
        actions.append(ActionType.UPDATE_NODE_CONDITION)
    if annotations_of(old) != annotations_of(new):
        actions.append(ActionType.UPDATE_NODE_ANNOTATION)
    if old.declared_features != new.declared_features:
        actions.append(ActionType.UPDATE_NODE_DECLARED_FEATURE)
    return [ClusterEvent(NODE, action) for action in actions]


def node_taints(node: Node) -> list[tuple[Any, ...]]:
    """The taints as a plain value, the time they were added included."""
    return [
        (taint.get("key") or "", taint.get("value") or "", taint.get("effect") or "", taint.get("timeAdded"))
        for _, taint in mappings(mapping(node.manifest, "spec", ""), "taints", "spec")
    ]


def without_empties(value: Any) -> Any:
    """A manifest's value as Kubernetes' semantic equality sees it: what is empty might as well be absent."""
    if isinstance(value, Mapping):
        kept = {key: without_empties(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in (None, "", [], {})}
    if isinstance(value, list | tuple):
        return [without_empties(item) for item in value]
    return value


def annotations_of(item: Any) -> Mapping[str, Any]:
    """Annotations of anything that carries its manifest; absent and empty are the same."""
    return mapping(mapping(item.manifest, "metadata", ""), "annotations", "metadata")


def _allocatable(node: Node) -> dict[str, int]:
    return resource_list(mapping(node.manifest, "status", ""), "allocatable", "status")


def _scaled_down(old: Pod, new: Pod) -> bool:
    after = new.requests
    return any(name not in after or amount > after[name] for name, amount in old.requests.items())


def _claim_statuses(pod: Pod) -> tuple[Any, ...]:
    status = mapping(pod.manifest, "status", "")
    if "resourceClaimStatuses" not in status and "extendedResourceClaimStatus" not in status:
        return ((), None)
    generated = tuple(
        (item.get("name") or "", item.get("resourceClaimName"))
        for _, item in mappings(status, "resourceClaimStatuses", "status")
    )
    return (generated, status.get("extendedResourceClaimStatus"))


def events_for(kind_resource: str, old: Any, new: Any) -> Iterable[ClusterEvent]:
    """The events of one change of an object: specific ones for updated pods and nodes, else just one.

    Parameters
    ----------
    kind_resource : str
        As events name it; for pods any of the three.
    old, new : object or None
        The object before and after; None where it did not or does not exist.
    """
    if old is None:
        action = ActionType.ADD
    elif new is None:
        action = ActionType.DELETE
    elif isinstance(new, Pod):
        return pod_update_events(old, new)
    elif isinstance(new, Node):
        return node_update_events(old, new)
    else:
        action = ActionType.UPDATE
    if kind_resource == POD:
        kind_resource = ASSIGNED_POD if (new if new is not None else old).node_name else UNSCHEDULABLE_POD
    return (ClusterEvent(kind_resource, action),)
