"""Objects as clients expect to see them: what nobody wrote and the simulation does without; nothing of it is kept.

The simulation takes a node without a Ready condition for ready. `kubectl get nodes` and
`kubectl wait --for=condition=Ready` want to read it. Nobody probes anything here, but `kubectl describe` from 1.24 on
crashes over a gRPC probe without the API server's defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from playground.clusters.kinds import Kind
from playground.engine import EMULATES

_SYSTEM: Final = {
    "architecture": "amd64",
    "bootID": "",
    "containerRuntimeVersion": "playground://1",
    "kernelVersion": "simulated",
    "kubeProxyVersion": "",
    "kubeletVersion": EMULATES,
    "machineID": "",
    "operatingSystem": "linux",
    "osImage": "simulated",
    "systemUUID": "",
}


_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE: Final = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_HANDLERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "grpc": {"service": ""},
    "httpGet": {"path": "/", "scheme": "HTTP"},
}
"""Source: pkg/apis/core/v1/defaults.go SetDefaults_Probe, zz_generated.defaults.go, v1.34"""


def presented(kind: Kind, manifest: dict[str, Any]) -> dict[str, Any]:
    """The object with what nobody wrote and every client looks for; itself if nothing is missing."""
    if kind.kind == "Node":
        return _node(manifest)
    spec = manifest.get("spec")
    if not isinstance(spec, Mapping):
        return manifest
    if kind.kind == "Pod":
        filled = _with_probes(spec)
        return manifest if filled is spec else {**manifest, "spec": filled}
    template = spec.get("template")
    of_pods = template.get("spec") if isinstance(template, Mapping) else None
    if not isinstance(of_pods, Mapping):
        return manifest
    filled = _with_probes(of_pods)
    if filled is of_pods:
        return manifest
    return {**manifest, "spec": {**spec, "template": {**template, "spec": filled}}}


def _with_probes(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """A pod's spec with whole probes; itself where nothing is probed."""
    filled = {
        key: [_probed(container) for container in spec[key]]
        for key in ("containers", "initContainers")
        if any(probe in container for container in spec.get(key) or () for probe in _PROBES)
    }
    return {**spec, **filled} if filled else spec


def _probed(container: Mapping[str, Any]) -> dict[str, Any]:
    return {**container, **{key: _probe(container[key]) for key in _PROBES if container.get(key)}}


def _probe(probe: Any) -> Any:
    if not isinstance(probe, Mapping):
        return probe
    handlers = {
        name: {**defaults, **probe[name]}
        for name, defaults in _HANDLERS.items()
        if isinstance(probe.get(name), Mapping)
    }
    return {**_PROBE, **probe, **handlers}


def _node(manifest: dict[str, Any]) -> dict[str, Any]:
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
        added["nodeInfo"] = _SYSTEM
    return {**manifest, "status": {**status, **added}} if added else manifest
