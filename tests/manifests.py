"""Manifests that tests of every part make."""

from __future__ import annotations

from typing import Any


def priority_class(name: str, value: int, **fields: Any) -> dict[str, Any]:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**kind, "metadata": {"name": name}, "value": value, **fields}
