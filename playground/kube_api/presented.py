"""Objects as clients expect to see them: what was not written and the simulation does without; nothing of it is kept.

The simulation takes a node without a Ready condition for ready. `kubectl get nodes` and
`kubectl wait --for=condition=Ready` want to read it. Clients count on the API's defaults, too (`read_defaults`).

Addresses follow from a node's name and a pod's uid, so that they stay and nothing has to be kept: nodes are in
10.128.0.0/9, pods below 10.96.0.0, where Services begin. Two of many thousands may have the same one.
"""

from __future__ import annotations

import hashlib
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


def presented(
    kind: Kind, manifest: dict[str, Any], patch: str, hosts: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The object with what was left out and every client looks for; nodes run the cluster's release (`v1.36.2`).

    Parameters
    ----------
    hosts
        Addresses of nodes that have one written down, by name, as far as pods need them (`node_wanted`).
    """
    if kind.row_kind == "Node":
        return _node(manifest, patch)
    if kind.row_kind == "Pod":
        manifest = _with_addresses(manifest, hosts or {})
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
    if not status.get("addresses"):
        name = manifest["metadata"]["name"]
        added["addresses"] = [
            {"type": "InternalIP", "address": _address(name, 128, 128)},
            {"type": "Hostname", "address": name},
        ]
    if not status.get("nodeInfo"):
        added["nodeInfo"] = {**_SYSTEM, "kubeletVersion": patch}
    return {**manifest, "status": {**status, **added}} if added else manifest


def node_wanted(manifest: Mapping[str, Any]) -> str:
    """The node of a pod that was started and has no address; empty for all others."""
    spec, status = manifest.get("spec") or {}, manifest.get("status") or {}
    started = status.get("phase") == "Running" or status.get("containerStatuses")
    node = spec.get("nodeName")
    return node if isinstance(node, str) and started and not status.get("podIP") else ""


def internal_address(addresses: Any) -> str:
    """The InternalIP among a node's addresses; empty if none is written down."""
    for item in addresses if isinstance(addresses, list) else ():
        if isinstance(item, Mapping) and item.get("type") == "InternalIP" and item.get("address"):
            return str(item["address"])
    return ""


def _with_addresses(manifest: dict[str, Any], hosts: Mapping[str, str]) -> dict[str, Any]:
    """A pod that was started, with its addresses and its node's."""
    node = node_wanted(manifest)
    if not node:
        return manifest
    spec, status = manifest.get("spec") or {}, manifest.get("status") or {}
    host = status.get("hostIP") or hosts.get(node) or _address(node, 128, 128)
    own = host if spec.get("hostNetwork") else _address(str(manifest["metadata"].get("uid")), 0, 96)
    addresses = {"hostIP": host, "hostIPs": [{"ip": host}], "podIP": own, "podIPs": [{"ip": own}]}
    return {**manifest, "status": {**status, **addresses}}


def _address(text: str, first: int, n: int) -> str:
    """An address from 10.{first}.0.1 on, out of n networks of 16 bits."""
    number = hashlib.sha256(text.encode()).digest()
    return f"10.{first + number[0] % n}.{number[1]}.{1 + number[2] % 254}"
