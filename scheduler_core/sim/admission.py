"""What an API server does to a written object beside defaulting (`objects.defaults.prepare`) and validation.

PriorityClasses keep their rules, pods get the default tolerations.
What plays the API server (the scenario loader, an HTTP surface) calls these before a write reaches the simulation.

Source: plugin/pkg/admission/priority/admission.go, plugin/pkg/admission/defaulttolerationseconds/admission.go,
pkg/apis/scheduling/validation/validation.go, v1.34
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler_core.objects.defaults import PREEMPT_LOWER_PRIORITY, SYSTEM_PRIORITY_CLASSES
from scheduler_core.objects.fields import (
    Document,
    format_seconds,
    mapping,
    sequence,
)

HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_PREFIX = "system-"
DEFAULT_TOLERATION_S = 300
GATED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
POD_UPDATES = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` and `spec.schedulingGates` (only removals):"
    " delete the pod and create it again"
)
TOLERATED_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def system_priority_classes() -> list[dict[str, Any]]:
    """The two built-in classes as objects, as every cluster lists them."""
    descriptions = {
        "system-cluster-critical": "Used for system critical pods that must run in the cluster, "
        "but can be moved to another node if necessary.",
        "system-node-critical": "Used for system critical pods that must not be moved from their current node.",
    }
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": SYSTEM_PRIORITY_CLASSES[name],
            "globalDefault": False,
            "description": description,
            "preemptionPolicy": PREEMPT_LOWER_PRIORITY,
        }
        for name, description in descriptions.items()
    ]


def with_default_tolerations(spec: Document) -> dict[str, Any]:
    """A pod spec that stays 300 s on a node that is not ready or unreachable, unless it says otherwise."""
    tolerations = [dict(item) for item in sequence(spec, "tolerations", "spec") if isinstance(item, Mapping)]
    missing = [key for key in TOLERATED_TAINTS if not any(_speaks_of(item, key) for item in tolerations)]
    if not missing:
        return dict(spec)
    added = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": DEFAULT_TOLERATION_S}
        for key in missing
    ]
    return {**spec, "tolerations": [*tolerations, *added]}


def _speaks_of(toleration: Document, key: str) -> bool:
    return toleration.get("key") in (key, "", None) and toleration.get("effect") in ("NoExecute", "", None)


def with_gated_condition(pod: Document, now_ns: int) -> dict[str, Any]:
    """A pod that is about to be created, with the condition that says that its gates hold it back, if it has any.

    Source: pkg/registry/core/pod/strategy.go applySchedulingGatedCondition, v1.34
    """
    status = mapping(pod, "status", "")
    conditions = sequence(status, "conditions", "status")
    gated = bool(sequence(mapping(pod, "spec", ""), "schedulingGates", "spec"))
    if not gated or any(item.get("type") == "PodScheduled" for item in conditions):
        return dict(pod)
    condition = {**GATED, "lastTransitionTime": format_seconds(now_ns)}
    return {**pod, "status": {**status, "conditions": [*conditions, condition]}}
