"""Manifests that tests of every part make."""

from __future__ import annotations

from typing import Any


def make_object(
    api_version: str, kind: str, name: str, *, namespace: str = "", **fields: Any
) -> dict[str, Any]:
    """An object; `fields` are those beside its metadata."""
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def priority_class(name: str, value: int, **fields: Any) -> dict[str, Any]:
    return make_object("scheduling.k8s.io/v1", "PriorityClass", name, value=value, **fields)


def scheduler_config(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", **fields}
