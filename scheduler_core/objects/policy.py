"""Objects that other objects are matched against: budgets, services, workload selectors, namespaces."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_core.objects.fields import Document, integer, mapping, string_map
from scheduler_core.objects.labels import LabelSelector, label_selector_from
from scheduler_core.objects.meta import ObjectMeta, object_meta_from
from scheduler_core.objects.pod import selector_at


@dataclass(frozen=True, slots=True, eq=False)
class Namespace:
    """A namespace and its labels."""

    manifest: Document
    meta: ObjectMeta


@dataclass(frozen=True, slots=True, eq=False)
class PodDisruptionBudget:
    """A budget as preemption reads it."""

    manifest: Document
    meta: ObjectMeta
    selector: LabelSelector
    disruptions_allowed: int
    disrupted_pods: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class SelectingObject:
    """A Service, ReplicationController, ReplicaSet or StatefulSet: something that selects pods."""

    manifest: Document
    kind: str
    meta: ObjectMeta
    selector: LabelSelector
    selector_labels: dict[str, str]
    """The plain map of a Service or ReplicationController, empty for the others."""


def namespace_from(manifest: Document) -> Namespace:
    return Namespace(manifest, object_meta_from(manifest))


def pod_disruption_budget_from(manifest: Document) -> PodDisruptionBudget:
    """Parse a prepared PodDisruptionBudget manifest."""
    spec = mapping(manifest, "spec", "")
    status = mapping(manifest, "status", "")
    return PodDisruptionBudget(
        manifest=manifest,
        meta=object_meta_from(manifest),
        selector=selector_at(spec, "selector", "spec"),
        disruptions_allowed=integer(status, "disruptionsAllowed", "status"),
        disrupted_pods=frozenset(mapping(status, "disruptedPods", "status")),
    )


def selecting_object_from(manifest: Document) -> SelectingObject:
    """Parse a prepared Service, ReplicationController, ReplicaSet or StatefulSet manifest."""
    kind = str(manifest.get("kind", ""))
    spec = mapping(manifest, "spec", "")
    if kind in ("Service", "ReplicationController"):
        labels = string_map(spec, "selector", "spec")
        selector = label_selector_from({"matchLabels": labels})
    else:
        labels = {}
        selector = selector_at(spec, "selector", "spec")
    return SelectingObject(manifest, kind, object_meta_from(manifest), selector, labels)
