"""Defaults an API server writes into workloads and Services, so that clients find what they count on.

`kubectl describe deployment` reads `spec.replicas` without asking whether it is there. Controllers of the simulation
take what is missing for the same values, so a default changes no decision. Pod templates stay as written.

Source: pkg/apis/apps/v1/defaults.go, pkg/apis/batch/v1/defaults.go, pkg/apis/core/v1/defaults.go, v1.34
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_HISTORY: Final = {"revisionHistoryLimit": 10}
_SPECS: Final[Mapping[str, Mapping[str, Any]]] = {
    "Deployment": {"replicas": 1, "progressDeadlineSeconds": 600, "strategy": {}, **_HISTORY},
    "ReplicaSet": {"replicas": 1},
    "ReplicationController": {"replicas": 1},
    "StatefulSet": {"replicas": 1, "podManagementPolicy": "OrderedReady", "updateStrategy": {}, **_HISTORY},
    "DaemonSet": {"updateStrategy": {}, **_HISTORY},
    "Job": {"backoffLimit": 6, "completionMode": "NonIndexed", "manualSelector": False, "suspend": False},
    "Service": {"type": "ClusterIP", "sessionAffinity": "None"},
}
_ROLLING: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "Deployment": ("strategy", {"maxSurge": "25%", "maxUnavailable": "25%"}),
    "StatefulSet": ("updateStrategy", {"partition": 0}),
    "DaemonSet": ("updateStrategy", {"maxSurge": 0, "maxUnavailable": 1}),
}


def with_workload_defaults(manifest: dict[str, Any]) -> dict[str, Any]:
    """The object with its kind's defaults; a spec that is no mapping is left for validation to refuse."""
    kind, spec = manifest.get("kind"), manifest.get("spec")
    if not isinstance(kind, str) or kind not in _SPECS or not isinstance(spec, Mapping):
        return manifest
    filled = {**_SPECS[kind], **{key: value for key, value in spec.items() if value is not None}}
    if kind in _ROLLING:
        key, amounts = _ROLLING[kind]
        filled[key] = _rolling(filled[key], amounts)
    if kind == "Job" and filled.get("completions") is None and filled.get("parallelism") is None:
        filled |= {"completions": 1, "parallelism": 1}
    elif kind == "Job":
        filled.setdefault("parallelism", 1)
    return {**manifest, "spec": filled}


def _rolling(strategy: Any, amounts: Mapping[str, Any]) -> Any:
    if not isinstance(strategy, Mapping) or strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return strategy
    written = strategy.get("rollingUpdate") or {}
    if not isinstance(written, Mapping):
        return strategy
    return {**strategy, "type": "RollingUpdate", "rollingUpdate": {**amounts, **written}}
