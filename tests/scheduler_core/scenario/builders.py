"""Small scenarios for tests."""

from __future__ import annotations

from typing import Any

from scheduler_core.scenario import Scenario, load_scenario
from scheduler_core.scenario.priorities import with_classes


def make_node(name: str, cpu: str = "4", **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"cpu": cpu, "memory": "16Gi", "pods": "110"}},
    }


def make_pod(
    name: str,
    cpu: str = "1",
    *,
    priority: int | None = None,
    node: str = "",
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    body: dict[str, Any] = {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}], **spec}
    if priority is not None:
        body["priority"] = priority
    if node:
        body["nodeName"] = node
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": body,
    }
    if node:
        manifest["status"] = {"phase": "Running", "startTime": "2024-12-31T00:00:00Z"}
    return manifest


def make_budget(name: str, app: str, min_available: int = 1) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"minAvailable": min_available, "selector": {"matchLabels": {"app": app}}},
    }


def make_class(name: str, value: int, **fields: Any) -> dict[str, Any]:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**kind, "metadata": {"name": name}, "value": value, **fields}


def make_scenario(*objects: dict[str, Any], **fields: Any) -> Scenario:
    """The scenario; pods with a bare priority are given a class of that value."""
    return load_scenario(with_classes(document(*objects, **fields)))


def document(*objects: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "scheduling.playground/v1", "kind": "Scenario", "objects": list(objects), **fields}
