"""When a pod rejected by PodTopologySpread is worth another try.

Source: pkg/scheduler/framework/plugins/podtopologyspread/plugin.go and common.go, v1.34
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from scheduler_core.framework.cluster_event import (
    NODE,
    POD,
    QUEUE,
    SKIP,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    HintFunction,
    QueueingHint,
    node_taints,
)
from scheduler_core.objects.fields import mapping
from scheduler_core.objects.labels import LabelSelector, selector_from_labels
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod, TopologySpreadConstraint
from scheduler_core.objects.policy import SelectingObject
from scheduler_core.plugins.stored_objects import Lookup
from scheduler_core.releases import OLDEST, Release

ConstraintsOf = Callable[[Pod], Sequence[TopologySpreadConstraint]]
"""The constraints a pod must satisfy (DoNotSchedule): its own, or the defaults when it has none at all."""

_UNINVOLVED = SKIP.because("the other pod is on no node or in another namespace")
_TOLERATION = QUEUE.because("the pod got a toleration, and a constraint honors taints")
_SAME_LABELS = SKIP.because("the other pod's labels are as before")
_COUNTED_OTHERWISE = QUEUE.because("the changed labels are counted by a constraint of the pod")
_COUNTED_ALIKE = SKIP.because("the changed labels are counted by no constraint of the pod")
_COUNTED = QUEUE.because("a pod that a constraint counts came to a node")
_NOT_COUNTED = SKIP.because("the new pod is counted by no constraint of the pod")
_UNCOUNTED = QUEUE.because("a pod that a constraint counted is gone")
_NEVER_COUNTED = SKIP.because("the deleted pod was counted by no constraint of the pod")
_JOINED = QUEUE.because("the node joined or left the domains of the pod's constraints")
_MOVED = QUEUE.because("the node's domain or taints changed")
_STAYED = SKIP.because("nothing changed about the node's domain or taints")
_NEW_NODE = QUEUE.because("the new node has every topology key of the pod's constraints")
_NO_KEYS = SKIP.because("the node lacks a topology key of the pod's constraints")
_NODE_GONE = QUEUE.because("a node with every topology key of the pod's constraints is gone")


def own_constraints(pod: Pod) -> Sequence[TopologySpreadConstraint]:
    """The pod's own DoNotSchedule constraints; all there is as long as no default is DoNotSchedule."""
    return [item for item in pod.topology_spread if item.when_unsatisfiable == "DoNotSchedule"]


def constraints_with_defaults(defaults: Sequence[TopologySpreadConstraint], lookup: Lookup) -> ConstraintsOf:
    """As `own_constraints`, with the plugin's default constraints for pods that have none at all.

    Parameters
    ----------
    defaults : sequence of TopologySpreadConstraint
        The plugin's `defaultConstraints`; their selectors are not looked at.
    lookup : Lookup
        Finds the Services, ReplicationControllers, ReplicaSets and StatefulSets a pod belongs to.

    Source: podtopologyspread/common.go buildDefaultConstraints, v1.34
    """
    hard = [item for item in defaults if item.when_unsatisfiable == "DoNotSchedule"]
    if not hard:
        return own_constraints

    def constraints_of(pod: Pod) -> Sequence[TopologySpreadConstraint]:
        if pod.topology_spread:
            return own_constraints(pod)
        selector = default_selector(pod, lookup)
        if selector.is_everything:
            return ()
        return [replace(item, selector=selector) for item in hard]

    return constraints_of


def default_selector(pod: Pod, lookup: Lookup) -> LabelSelector:
    """What selects the pod's siblings: its services' selectors and that of the controller that owns it.

    Source: pkg/scheduler/framework/plugins/helper/spread.go DefaultSelector, v1.34
    """
    labels: dict[str, str] = {}
    for service in lookup.all("Service"):
        if service.meta.namespace == pod.namespace and _selects(service, pod):
            labels.update(service.selector_labels)
    owner = pod.meta.controller
    kind = (owner.api_version, owner.kind) if owner is not None else None
    if owner is None or kind not in _SPREAD_OWNERS:
        return selector_from_labels(labels)
    found = lookup.get(owner.kind, pod.namespace, owner.name)
    if found is None:
        return selector_from_labels(labels)
    if owner.kind == "ReplicationController":
        return selector_from_labels({**labels, **found.selector_labels})
    selector = selector_from_labels(labels)
    return selector if found.selector.is_nothing else selector.add(found.selector.requirements)


_SPREAD_OWNERS = {("v1", "ReplicationController"), ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet")}


def _selects(service: SelectingObject, pod: Pod) -> bool:
    """A service without a selector selects nothing."""
    if mapping(service.manifest, "spec", "").get("selector") is None:
        return False
    return all(pod.labels.get(key) == value for key, value in service.selector_labels.items())


def events_to_register(
    constraints_of: ConstraintsOf = own_constraints, release: Release = OLDEST
) -> list[ClusterEventWithHint]:
    pod_actions = (
        ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_TOLERATION | ActionType.DELETE
    )
    node_actions = (
        ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
    )
    return [
        ClusterEventWithHint(ClusterEvent(POD, pod_actions), after_pod_change(constraints_of, release)),
        ClusterEventWithHint(ClusterEvent(NODE, node_actions), after_node_change(constraints_of)),
    ]


def after_pod_change(constraints_of: ConstraintsOf, release: Release = OLDEST) -> HintFunction:
    nominated_counts = release.has("NominatedPodsCountInHints")

    def hint(pod: Pod, old: Pod | None, new: Pod | None) -> QueueingHint:
        if any(other is not None and not _is_involved(other, pod, nominated_counts) for other in (old, new)):
            return _UNINVOLVED
        constraints = constraints_of(pod)
        if old is not None and new is not None:
            return _after_update(pod, old, new, constraints)
        if new is not None:
            return _COUNTED if _counts(constraints, new) else _NOT_COUNTED
        assert old is not None
        return _UNCOUNTED if _counts(constraints, old) else _NEVER_COUNTED

    return hint


def after_node_change(constraints_of: ConstraintsOf) -> HintFunction:
    def hint(pod: Pod, old: Node | None, new: Node | None) -> QueueingHint:
        constraints = constraints_of(pod)
        if old is not None and new is not None:
            matched, matches = _has_keys(old.labels, constraints), _has_keys(new.labels, constraints)
            if matched != matches:
                return _JOINED
            moved = matches and (
                any(
                    old.labels.get(key) != new.labels.get(key)
                    for key in (c.topology_key for c in constraints)
                )
                or node_taints(old) != node_taints(new)
            )
            return _MOVED if moved else _STAYED
        if new is not None:
            return _NEW_NODE if _has_keys(new.labels, constraints) else _NO_KEYS
        assert old is not None
        return _NODE_GONE if _has_keys(old.labels, constraints) else _NO_KEYS

    return hint


def _after_update(
    pod: Pod, old: Pod, new: Pod, constraints: Sequence[TopologySpreadConstraint]
) -> QueueingHint:
    if (
        pod.uid == new.uid
        and new.tolerations != old.tolerations
        and any(constraint.node_taints_policy == "Honor" for constraint in constraints)
    ):
        return _TOLERATION
    if new.labels == old.labels:
        return _SAME_LABELS
    for constraint in constraints:
        if constraint.selector.matches(old.labels) != constraint.selector.matches(new.labels):
            return _COUNTED_OTHERWISE
    return _COUNTED_ALIKE


def _is_involved(other: Pod, pod: Pod, nominated_counts: bool) -> bool:
    if other.uid == pod.uid:
        return True
    placed = other.node_name or (nominated_counts and other.nominated_node_name)
    return bool(placed) and other.namespace == pod.namespace


def _counts(constraints: Sequence[TopologySpreadConstraint], other: Pod) -> bool:
    return any(constraint.selector.matches(other.labels) for constraint in constraints)


def _has_keys(labels: Mapping[str, str], constraints: Sequence[TopologySpreadConstraint]) -> bool:
    return all(constraint.topology_key in labels for constraint in constraints)
