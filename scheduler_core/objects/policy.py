"""Objects that other objects are matched against: budgets, services, workload selectors, namespaces."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_core.errors import InvalidObject
from scheduler_core.objects import fields
from scheduler_core.objects.labels import NOTHING, LabelSelector, label_selector_from
from scheduler_core.objects.meta import PlainObject, object_meta_from
from scheduler_core.objects.pod import Pod, selector_at


@dataclass(frozen=True, slots=True, eq=False)
class PodDisruptionBudget(PlainObject):
    """A budget as preemption reads it."""

    selector: LabelSelector
    disruptions_allowed: int
    disrupted_pods: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class SelectingObject(PlainObject):
    """A Service, ReplicationController, ReplicaSet or StatefulSet: something that selects pods."""

    kind: str
    selector: LabelSelector
    selector_labels: dict[str, str]
    """The plain map of a Service or ReplicationController, empty for the others."""


class EvictionBudget:
    """A PodDisruptionBudget that is taken literally, and how many evictions it allows still."""

    def __init__(self, document: fields.Document) -> None:
        metadata, spec = document["metadata"], document.get("spec") or {}
        self.namespace: str = metadata.get("namespace", "")
        self.left: int = (document.get("status") or {}).get("disruptionsAllowed", 0)
        try:
            self._selector = label_selector_from(spec.get("selector"))
        except fields.SelectorError:
            self._selector = NOTHING

    def selects(self, pod: Pod) -> bool:
        return pod.namespace == self.namespace and self._selector.matches(pod.labels)


def pod_disruption_budget_from(manifest: fields.Document) -> PodDisruptionBudget:
    """Parse a prepared PodDisruptionBudget manifest."""
    spec = fields.mapping(manifest, "spec", "")
    status = fields.mapping(manifest, "status", "")
    return PodDisruptionBudget(
        manifest=manifest,
        meta=object_meta_from(manifest),
        selector=selector_at(spec, "selector", "spec"),
        disruptions_allowed=fields.integer(status, "disruptionsAllowed", "status"),
        disrupted_pods=frozenset(fields.mapping(status, "disruptedPods", "status")),
    )


def selecting_object_from(manifest: fields.Document) -> SelectingObject:
    """Parse a prepared Service, ReplicationController, ReplicaSet or StatefulSet manifest."""
    kind = str(manifest.get("kind", ""))
    spec = fields.mapping(manifest, "spec", "")
    if kind in ("Service", "ReplicationController"):
        labels = fields.string_map(spec, "selector", "spec")
        selector = label_selector_from({"matchLabels": labels})
    else:
        labels = {}
        selector = selector_at(spec, "selector", "spec")
    return SelectingObject(manifest, object_meta_from(manifest), kind, selector, labels)


# --- PodGroup: pods that are scheduled together, as scheduling reads it.


KIND = "PodGroup"
SCHEDULED = "PodGroupScheduled"
"""The condition that says how the group's last scheduling cycle ended."""
DISRUPTED_TOGETHER = "PodGroup"
DISRUPTION_MODES = ("Pod", DISRUPTED_TOGETHER)


@dataclass(frozen=True, slots=True, eq=False)
class PodGroup(PlainObject):
    """A group as the scheduler reads it; `manifest` is the whole object.

    Attributes
    ----------
    min_count : int or None
        Members of a gang that must be placed together; None for a group of the basic policy.
    priority : int
        Of the group in preemption for the group and of it; 0 where none is written.
    disrupted_together : bool
        Whether preemption takes all members or none.
    topology_keys : tuple of str
        `schedulingConstraints.topology`, in order.
    """

    min_count: int | None
    priority: int
    disrupted_together: bool
    topology_keys: tuple[str, ...]


def pod_group_from(manifest: fields.Document) -> PodGroup:
    """Parse a prepared PodGroup manifest.

    Raises
    ------
    InvalidObject
        Names the field path and value an API server refuses.
    """
    spec = fields.mapping(manifest, "spec", "")
    policy = fields.mapping(spec, "schedulingPolicy", "spec")
    path = "spec.schedulingPolicy"
    named = [name for name in ("basic", "gang") if policy.get(name) is not None]
    if len(named) != 1:
        raise InvalidObject(path, sorted(policy), "must have exactly one of basic and gang")
    min_count = None
    if named == ["gang"]:
        min_count = fields.optional_integer(fields.mapping(policy, "gang", path), "minCount", f"{path}.gang")
        if min_count is None or min_count < 1:
            raise InvalidObject(f"{path}.gang.minCount", min_count, "must be greater than or equal to 1")
    mode = fields.optional_string(spec, "disruptionMode", "spec")
    if mode is not None and mode not in DISRUPTION_MODES:
        raise InvalidObject("spec.disruptionMode", mode, f"must be one of {', '.join(DISRUPTION_MODES)}")
    constraints = fields.mapping(spec, "schedulingConstraints", "spec")
    return PodGroup(
        manifest=manifest,
        meta=object_meta_from(manifest),
        min_count=min_count,
        priority=fields.optional_integer(spec, "priority", "spec") or 0,
        disrupted_together=mode == DISRUPTED_TOGETHER,
        topology_keys=tuple(
            fields.string(item, "key", where)
            for where, item in fields.mappings(constraints, "topology", "spec.schedulingConstraints")
        ),
    )


def existing_condition(group: PodGroup, kind: str) -> fields.Document | None:
    """The group's condition of a type."""
    conditions = fields.mapping(group.manifest, "status", "").get("conditions") or ()
    return next((item for item in conditions if item.get("type") == kind), None)
