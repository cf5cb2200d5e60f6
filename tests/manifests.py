"""Manifests that tests of every part make."""

from typing import Any

METADATA = ("namespace", "labels", "annotations", "uid")


def make_object(api_version: str, kind: str, name: str, **fields: Any) -> dict[str, Any]:
    """An object; of `fields`, those of `METADATA` are parts of its metadata, where they say something."""
    metadata = {"name": name} | {key: value for key in METADATA if (value := fields.pop(key, None))}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def scenario(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "scheduling.playground/v1", "kind": "Scenario", **fields}


def priority_class(name: str, value: int, **fields: Any) -> dict[str, Any]:
    return make_object("scheduling.k8s.io/v1", "PriorityClass", name, value=value, **fields)


def scheduler_config(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", **fields}


def node(
    name: str, cpu: str = "4", memory: str = "8Gi", *, labels: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": "110"}},
    }


def pod(
    name: str, cpu: str = "1", *, nominated: str = "", labels: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels or {}},
        "spec": {"containers": containers, **spec},
        **({"status": {"nominatedNodeName": nominated}} if nominated else {}),
    }


def deployment(name: str = "web", replicas: int = 3, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    labels, container = {"app": name}, {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]} | spec},
    }
    return make_object("apps/v1", "Deployment", name, namespace="default", spec=spec)


def budget(name: str = "web", **spec: Any) -> dict[str, Any]:
    """Of the pods that are labelled so."""
    whole = {"selector": {"matchLabels": {"app": name}}} | spec
    return make_object("policy/v1", "PodDisruptionBudget", name, namespace="default", spec=whole)
