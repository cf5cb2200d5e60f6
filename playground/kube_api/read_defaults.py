"""The API's defaults that are filled in when an object is read, whenever and by which version it was stored.

What scheduling reads is defaulted when it is written (`engine.admission`). This is the rest: clients count on every
default (`kubectl describe` reads pointers without asking whether they are set), and the simulation does not need it.

Source: pkg/apis/{core,apps,batch,scheduling,storage}/v1/defaults.go and zz_generated.defaults.go, v1.34
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Document = Mapping[str, Any]

_OBJECTS: Final[Mapping[str, Document]] = {
    "PriorityClass": {"preemptionPolicy": "PreemptLowerPriority"},
    "StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    "Secret": {"type": "Opaque"},
    "Role": {"rules": []},
    "ClusterRole": {"rules": []},
}
_SPECS: Final[Mapping[str, Document]] = {
    "Namespace": {"finalizers": ["kubernetes"]},
    "PersistentVolume": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
    "PersistentVolumeClaim": {"volumeMode": "Filesystem"},
    "CSIDriver": {
        "attachRequired": True,
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
        "podInfoOnMount": False,
        "requiresRepublish": False,
        "seLinuxMount": False,
        "storageCapacity": False,
        "volumeLifecycleModes": ["Persistent"],
    },
    "Service": {"internalTrafficPolicy": "Cluster", "sessionAffinity": "None", "type": "ClusterIP"},
    "StatefulSet": {
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    },
    "Job": {"podReplacementPolicy": "TerminatingOrFailed"},
    "CronJob": {
        "concurrencyPolicy": "Allow",
        "failedJobsHistoryLimit": 1,
        "successfulJobsHistoryLimit": 3,
        "suspend": False,
    },
    "HorizontalPodAutoscaler": {"minReplicas": 1},
    "FlowSchema": {"matchingPrecedence": 1000},
    "NetworkPolicy": {"podSelector": {}},
    "ValidatingAdmissionPolicy": {"failurePolicy": "Fail"},
    "MutatingAdmissionPolicy": {"failurePolicy": "Fail"},
}
_STATUSES: Final[Mapping[str, Document]] = {
    "Namespace": {"phase": "Active"},
    "PersistentVolume": {"phase": "Pending"},
    "PersistentVolumeClaim": {"phase": "Pending"},
    "ResourceClaim": {},
    "PodGroup": {},
}
_POD: Final[Document] = {
    "dnsPolicy": "ClusterFirst",
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "terminationGracePeriodSeconds": 30,
}
_CONTAINER: Final[Document] = {
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE: Final[Document] = {
    "timeoutSeconds": 1,
    "periodSeconds": 10,
    "successThreshold": 1,
    "failureThreshold": 3,
}
_HANDLERS: Final[Mapping[str, Document]] = {
    "grpc": {"service": ""},
    "httpGet": {"path": "/", "scheme": "HTTP"},
}
_READ_ONLY_MODE: Final[Document] = {"defaultMode": 0o644}
_SOURCES: Final[Mapping[str, Document]] = {
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "kind": "Shared", "readOnly": False},
    "configMap": _READ_ONLY_MODE,
    "downwardAPI": _READ_ONLY_MODE,
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "projected": _READ_ONLY_MODE,
    "rbd": {"keyring": "/etc/ceph/keyring", "pool": "rbd", "user": "admin"},
    "scaleIO": {"fsType": "xfs", "storageMode": "ThinProvisioned"},
    "secret": _READ_ONLY_MODE,
}
"""Of volume sources, in pods and in PersistentVolumes."""


def with_read_defaults(kind: str, manifest: dict[str, Any]) -> dict[str, Any]:
    """The object with every default; parts that need none are shared, and nothing wrong is looked at."""
    result = {**_OBJECTS.get(kind, {}), **manifest}
    spec = manifest.get("spec")
    if kind in _SPECS and (spec is None or isinstance(spec, Mapping)):
        spec = result["spec"] = {**_SPECS[kind], **(spec or {})}
    if kind in _STATUSES and isinstance(manifest.get("status") or {}, Mapping):
        result["status"] = {**_STATUSES[kind], **(manifest.get("status") or {})}
    if kind in _LISTS:
        key, fill = _LISTS[kind]
        result |= _each(manifest, key, fill)
    if not isinstance(spec, Mapping):
        return result
    if kind == "Pod":
        result["spec"] = _pod_spec(spec)
    elif kind == "PersistentVolume":
        result["spec"] = _with_sources(spec)
    elif kind == "Service":
        result["spec"] = {**spec, **_each(spec, "ports", _service_port)}
    elif isinstance(spec.get("template"), Mapping) and isinstance(spec["template"].get("spec"), Mapping):
        template = spec["template"]
        result["spec"] = {**spec, "template": {**template, "spec": _pod_spec({**_POD, **template["spec"]})}}
        if kind == "StatefulSet":
            result["spec"] |= _each(spec, "volumeClaimTemplates", _claim)
    return result


def _each(document: Document, key: str, fill: Any) -> dict[str, Any]:
    """The list at `key` with each object of it filled in; empty where there is no list."""
    items = document.get(key)
    if not isinstance(items, list) or not items:
        return {}
    return {key: [fill(item) if isinstance(item, Mapping) else item for item in items]}


def _pod_spec(spec: Document) -> dict[str, Any]:
    return {
        **spec,
        **_each(spec, "containers", _container),
        **_each(spec, "initContainers", _container),
        **_each(spec, "ephemeralContainers", _container),
        **_each(spec, "volumes", _volume),
    }


def _container(container: Document) -> dict[str, Any]:
    result = {**_CONTAINER, "imagePullPolicy": _pull_policy(container.get("image")), **container}
    for key in _PROBES:
        if isinstance(container.get(key), Mapping):
            result[key] = {**_PROBE, **_handled(container[key])}
    lifecycle = container.get("lifecycle")
    if isinstance(lifecycle, Mapping):
        result["lifecycle"] = {
            key: _handled(hook) if isinstance(hook, Mapping) else hook for key, hook in lifecycle.items()
        }
    result |= _each(container, "ports", lambda port: {"protocol": "TCP", **port})
    return result | _each(container, "env", _variable)


def _handled(probe: Document) -> dict[str, Any]:
    handlers = {
        name: {**defaults, **probe[name]}
        for name, defaults in _HANDLERS.items()
        if isinstance(probe.get(name), Mapping)
    }
    return {**probe, **handlers}


def _pull_policy(image: Any) -> str:
    name = image.rsplit("/", 1)[-1] if isinstance(image, str) and image else "x:x"
    tag = name.partition(":")[2]
    return "Always" if "@" not in name and tag in ("", "latest") else "IfNotPresent"


def _variable(variable: Document) -> dict[str, Any]:
    source = variable.get("valueFrom")
    if not isinstance(source, Mapping) or not isinstance(source.get("fieldRef"), Mapping):
        return dict(variable)
    return {**variable, "valueFrom": {**source, "fieldRef": {"apiVersion": "v1", **source["fieldRef"]}}}


def _volume(volume: Document) -> dict[str, Any]:
    if set(volume) <= {"name"}:
        return {**volume, "emptyDir": {}}
    result = _with_sources(volume)
    for key in ("downwardAPI", "projected"):
        if isinstance(result.get(key), Mapping):
            result[key] = {
                **result[key],
                **_each(result[key], "items", _file),
                **_each(result[key], "sources", _projection),
            }
    claim = result.get("ephemeral")
    if isinstance(claim, Mapping) and isinstance(claim.get("volumeClaimTemplate"), Mapping):
        result["ephemeral"] = {**claim, "volumeClaimTemplate": _claim_spec(claim["volumeClaimTemplate"])}
    return result


def _with_sources(document: Document) -> dict[str, Any]:
    sources = {
        name: {**defaults, **document[name]}
        for name, defaults in _SOURCES.items()
        if isinstance(document.get(name), Mapping)
    }
    return {**document, **sources}


def _file(item: Document) -> dict[str, Any]:
    reference = item.get("fieldRef")
    return (
        {**item, "fieldRef": {"apiVersion": "v1", **reference}}
        if isinstance(reference, Mapping)
        else dict(item)
    )


def _projection(source: Document) -> dict[str, Any]:
    result = dict(source)
    if isinstance(source.get("serviceAccountToken"), Mapping):
        result["serviceAccountToken"] = {"expirationSeconds": 3600, **source["serviceAccountToken"]}
    if isinstance(source.get("downwardAPI"), Mapping):
        result["downwardAPI"] = {**source["downwardAPI"], **_each(source["downwardAPI"], "items", _file)}
    return result


def _claim(claim: Document) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "status": {"phase": "Pending"},
        **_claim_spec(claim),
    }


def _claim_spec(claim: Document) -> dict[str, Any]:
    spec = claim.get("spec")
    return (
        {**claim, "spec": {"volumeMode": "Filesystem", **spec}} if isinstance(spec, Mapping) else dict(claim)
    )


def _webhook(hook: Document) -> dict[str, Any]:
    defaults = {
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "timeoutSeconds": 10,
    }
    config = hook.get("clientConfig")
    service = config.get("service") if isinstance(config, Mapping) else None
    if isinstance(config, Mapping) and isinstance(service, Mapping):
        hook = {**hook, "clientConfig": {**config, "service": {"port": 443, **service}}}
    return {**defaults, **hook}


def _subset(subset: Document) -> dict[str, Any]:
    return {**subset, **_each(subset, "ports", lambda port: {"protocol": "TCP", **port})}


_LISTS: Final[Mapping[str, tuple[str, Any]]] = {
    "Endpoints": ("subsets", _subset),
    "EndpointSlice": ("ports", lambda port: {"name": "", "protocol": "TCP", **port}),
    "MutatingWebhookConfiguration": (
        "webhooks",
        lambda hook: {"reinvocationPolicy": "Never", **_webhook(hook)},
    ),
    "ValidatingWebhookConfiguration": ("webhooks", _webhook),
}
"""Lists at the root of an object, and the defaults of their items."""


def _service_port(port: Document) -> dict[str, Any]:
    return {"protocol": "TCP", **({"targetPort": port["port"]} if "port" in port else {}), **port}
