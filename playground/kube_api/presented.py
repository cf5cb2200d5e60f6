"""Objects as clients expect to see them: what was not written and the simulation does without; nothing of it is kept.

The simulation takes a node without a Ready condition for ready. `kubectl get nodes` and
`kubectl wait --for=condition=Ready` want to read it. Clients count on the API's defaults, too (`read_defaults`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from playground.clusters.kinds import Kind
from playground.kube_api.read_defaults import with_read_defaults

_SYSTEM: Final = {
    "architecture": "amd64",
    "bootID": "",
    "containerRuntimeVersion": "playground://1",
    "kernelVersion": "simulated",
    "kubeProxyVersion": "",
    "machineID": "",
    "operatingSystem": "linux",
    "osImage": "simulated",
    "systemUUID": "",
}


def presented(kind: Kind, manifest: dict[str, Any], patch: str) -> dict[str, Any]:
    """The object with what was left out and every client looks for; nodes run the cluster's release (`v1.36.2`)."""
    if kind.row_kind == "Node":
        return _node(manifest, patch)
    return with_read_defaults(kind.row_kind, manifest)


def _node(manifest: dict[str, Any], patch: str) -> dict[str, Any]:
    status = manifest.get("status") or {}
    conditions = list(status.get("conditions") or ())
    added: dict[str, Any] = {}
    if not any(isinstance(item, Mapping) and item.get("type") == "Ready" for item in conditions):
        since = manifest["metadata"].get("creationTimestamp")
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "the simulated kubelet is ready",
            "lastHeartbeatTime": since,
            "lastTransitionTime": since,
        }
        added["conditions"] = [*conditions, ready]
    if not status.get("nodeInfo"):
        added["nodeInfo"] = {**_SYSTEM, "kubeletVersion": patch}
    return {**manifest, "status": {**status, **added}} if added else manifest
