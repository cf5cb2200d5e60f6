"""The columns that kubectl prints of the other kinds, and of custom resources.

Source: pkg/printers/internalversion/printers.go, v1.34;
staging/src/k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor/tableconvertor.go
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from playground.clusters.kinds import Kind
from playground.kube_api import json_path
from playground.kube_api.cells import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    UNSET,
    Cell,
    Column,
    Manifest,
    at,
    count,
    get,
    joined,
    selector_words,
    since,
)


def _time_of(*path: str, default: str = NONE) -> Cell:
    def cell(manifest: Manifest, now_ns: int) -> str:
        text = get(manifest, *path)
        return since(text, now_ns) if text else default

    return cell


def _flag(name: str, *path: str, default: Any = False) -> Column:
    return Column(name, lambda manifest, now: bool(_or(get(manifest, *path), default)), "boolean")


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def _hosts(manifest: Manifest, now_ns: int) -> str:
    hosts = [str(rule.get("host") or "*") for rule in get(manifest, "spec", "rules") or ()]
    more = f" + {len(hosts) - 3} more..." if len(hosts) > 3 else ""
    return ",".join(hosts[:3]) + more if hosts else "*"


def _ingress_address(manifest: Manifest, now_ns: int) -> str:
    given = get(manifest, "status", "loadBalancer", "ingress") or ()
    return ",".join(str(item.get("ip") or item.get("hostname") or "") for item in given)


def _endpoints(manifest: Manifest, now_ns: int) -> str:
    found = [
        f"{address.get('ip')}:{port.get('port')}"
        for subset in manifest.get("subsets") or ()
        for port in subset.get("ports") or ()
        for address in subset.get("addresses") or ()
    ]
    more = f" + {len(found) - 3} more..." if len(found) > 3 else ""
    return ",".join(found[:3]) + more if found else NONE


def _slice_ports(manifest: Manifest, now_ns: int) -> str:
    return ",".join(str(port.get("port")) for port in manifest.get("ports") or ()) or UNSET


def _slice_endpoints(manifest: Manifest, now_ns: int) -> str:
    found = [str(each) for item in manifest.get("endpoints") or () for each in item.get("addresses") or ()]
    more = f" + {len(found) - 3} more..." if len(found) > 3 else ""
    return ",".join(found[:3]) + more if found else UNSET


def _metric(metric: Mapping[str, Any], current: Sequence[Mapping[str, Any]], place: int) -> str:
    kind = str(metric.get("type") or "")
    key = kind[:1].lower() + kind[1:]
    inner = metric.get(key) or {}
    now = (current[place].get(key) or {}).get("current") or {} if place < len(current) else {}
    target = inner.get("target") or {}
    name = inner.get("name")
    shown = f"{name}: " if name else ""
    if target.get("averageUtilization") is not None:
        used = now.get("averageUtilization")
        return f"{shown}{UNKNOWN if used is None else f'{used}%'}/{target['averageUtilization']}%"
    wanted = target.get("averageValue") or target.get("value")
    used = now.get("averageValue") or now.get("value") or UNKNOWN
    return f"{shown}{used}/{wanted}{' (avg)' if target.get('averageValue') else ''}"


def _targets(manifest: Manifest, now_ns: int) -> str:
    metrics = get(manifest, "spec", "metrics") or ()
    current = get(manifest, "status", "currentMetrics") or ()
    shown = [_metric(metric, current, place) for place, metric in enumerate(metrics)]
    more = f" + {len(shown) - 2} more..." if len(shown) > 2 else ""
    return ", ".join(shown[:2]) + more if shown else NONE


def _scaled(manifest: Manifest, now_ns: int) -> str:
    return (
        f"{get(manifest, 'spec', 'scaleTargetRef', 'kind')}/{get(manifest, 'spec', 'scaleTargetRef', 'name')}"
    )


def _amounts(limit: bool) -> Cell:
    def cell(manifest: Manifest, now_ns: int) -> str:
        hard = get(manifest, "status", "hard") or get(manifest, "spec", "hard") or {}
        used = get(manifest, "status", "used") or {}
        return ", ".join(
            f"{name}: {used.get(name, 0)}/{hard[name]}"
            for name in sorted(hard)
            if name.startswith("limits.") == limit
        )

    return cell


def _role(manifest: Manifest, now_ns: int) -> str:
    return f"{get(manifest, 'roleRef', 'kind')}/{get(manifest, 'roleRef', 'name')}"


def _subjects(kind: str) -> Cell:
    def cell(manifest: Manifest, now_ns: int) -> str:
        found = [item for item in manifest.get("subjects") or () if item.get("kind") == kind]
        return ", ".join(
            f"{item['namespace']}/{item.get('name')}"
            if item.get("namespace") and kind == "ServiceAccount"
            else str(item.get("name"))
            for item in found
        )

    return cell


def _request_state(manifest: Manifest, now_ns: int) -> str:
    words = [str(item.get("type")) for item in get(manifest, "status", "conditions") or ()]
    words = words or ["Pending"]
    if get(manifest, "status", "certificate"):
        words.append("Issued")
    return ",".join(words)


def _services_of(manifest: Manifest, now_ns: int) -> str:
    service = get(manifest, "spec", "service")
    return f"{service.get('namespace')}/{service.get('name')}" if isinstance(service, Mapping) else "Local"


def _available(manifest: Manifest, now_ns: int) -> str:
    for item in get(manifest, "status", "conditions") or ():
        if item.get("type") == "Available":
            return str(item.get("status"))
    return "Unknown" if get(manifest, "spec", "service") else "True"


def _controller(manifest: Manifest, now_ns: int) -> str:
    owners = get(manifest, "metadata", "ownerReferences") or ()
    owner = next((item for item in owners if item.get("controller")), None)
    return f"{str(owner.get('kind')).lower()}/{owner.get('name')}" if owner else NONE


def _schema_created(manifest: Manifest, now_ns: int) -> str:
    return str(get(manifest, "metadata", "creationTimestamp") or "")


_BINDING: Final = (
    NAME,
    Column("Role", _role),
    AGE,
    Column("Users", _subjects("User"), priority=1),
    Column("Groups", _subjects("Group"), priority=1),
    Column("ServiceAccounts", _subjects("ServiceAccount"), priority=1),
)
_WEBHOOKS: Final = (NAME, Column("Webhooks", count("webhooks"), "integer"), AGE)


def _component(key: str, words: Mapping[str, str] | None = None) -> Cell:
    """Of a part of the control plane: a field of its condition Healthy."""

    def cell(manifest: Manifest, now_ns: int) -> str:
        for condition in manifest.get("conditions") or ():
            if condition.get("type") == "Healthy":
                value = str(condition.get(key, ""))
                return value if words is None else words.get(value, "Unknown")
        return ""

    return cell


_CREATED: Final = Column("Created At", _schema_created, "date")

MORE_COLUMNS: Final[Mapping[str, Sequence[Column]]] = {
    "APIService": (NAME, Column("Service", _services_of), Column("Available", _available), AGE),
    "CertificateSigningRequest": (
        NAME,
        AGE,
        Column("SignerName", at("spec", "signerName", default=NONE)),
        Column("Requestor", at("spec", "username", default="")),
        Column("RequestedDuration", at("spec", "expirationSeconds", default=NONE)),
        Column("Condition", _request_state),
    ),
    "ClusterRole": (NAME, _CREATED),
    "ClusterRoleBinding": _BINDING,
    "ComponentStatus": (
        NAME,
        Column("Status", _component("status", {"True": "Healthy", "False": "Unhealthy"})),
        Column("Message", _component("message")),
        Column("Error", _component("error")),
    ),
    "ControllerRevision": (
        NAME,
        Column("Controller", _controller),
        Column("Revision", at("revision", default=0), "integer"),
        AGE,
    ),
    "CronJob": (
        NAME,
        Column("Schedule", at("spec", "schedule", default="")),
        Column("Timezone", at("spec", "timeZone", default=NONE)),
        Column("Suspend", lambda manifest, now: str(bool(get(manifest, "spec", "suspend")))),
        Column("Active", count("status", "active"), "integer"),
        Column("Last Schedule", _time_of("status", "lastScheduleTime")),
        AGE,
    ),
    "CustomResourceDefinition": (NAME, _CREATED),
    "DeviceClass": (NAME, AGE),
    "EndpointSlice": (
        NAME,
        Column("AddressType", at("addressType", default="")),
        Column("Ports", _slice_ports),
        Column("Endpoints", _slice_endpoints),
        AGE,
    ),
    "Endpoints": (NAME, Column("Endpoints", _endpoints), AGE),
    "FlowSchema": (
        NAME,
        Column("PriorityLevel", at("spec", "priorityLevelConfiguration", "name", default="")),
        Column("MatchingPrecedence", at("spec", "matchingPrecedence", default=1000), "integer"),
        Column("DistinguisherMethod", at("spec", "distinguisherMethod", "type", default=NONE)),
        AGE,
    ),
    "HorizontalPodAutoscaler": (
        NAME,
        Column("Reference", _scaled),
        Column("Targets", _targets),
        Column("MinPods", at("spec", "minReplicas", default=UNSET)),
        Column("MaxPods", at("spec", "maxReplicas", default=0), "integer"),
        Column("Replicas", at("status", "currentReplicas", default=0), "integer"),
        AGE,
    ),
    "IPAddress": (NAME, Column("ParentRef", lambda manifest, now: _parent(manifest)), AGE),
    "Ingress": (
        NAME,
        Column("Class", at("spec", "ingressClassName", default=NONE)),
        Column("Hosts", _hosts),
        Column("Address", _ingress_address),
        Column("Ports", lambda manifest, now: "80, 443" if get(manifest, "spec", "tls") else "80"),
        AGE,
    ),
    "IngressClass": (
        NAME,
        Column("Controller", at("spec", "controller", default="")),
        Column("Parameters", lambda manifest, now: _parameters(manifest)),
        AGE,
    ),
    "LimitRange": (NAME, Column("Created At", _schema_created, "date")),
    "MutatingWebhookConfiguration": _WEBHOOKS,
    "NetworkPolicy": (
        NAME,
        Column("Pod-Selector", lambda manifest, now: selector_words(get(manifest, "spec", "podSelector"))),
        AGE,
    ),
    "PriorityLevelConfiguration": (
        NAME,
        Column("Type", at("spec", "type", default="")),
        Column("NominalConcurrencyShares", at("spec", "limited", "nominalConcurrencyShares", default=NONE)),
        Column("Queues", at("spec", "limited", "limitResponse", "queuing", "queues", default=NONE)),
        Column("HandSize", at("spec", "limited", "limitResponse", "queuing", "handSize", default=NONE)),
        Column(
            "QueueLengthLimit",
            at("spec", "limited", "limitResponse", "queuing", "queueLengthLimit", default=NONE),
        ),
        AGE,
    ),
    "ResourceQuota": (NAME, Column("Request", _amounts(False)), Column("Limit", _amounts(True)), AGE),
    "Role": (NAME, _CREATED),
    "RoleBinding": _BINDING,
    "RuntimeClass": (NAME, Column("Handler", at("handler", default="")), AGE),
    "ServiceCIDR": (NAME, Column("CIDRs", joined("spec", "cidrs")), AGE),
    "ValidatingAdmissionPolicy": (
        NAME,
        Column("Validations", count("spec", "validations"), "integer"),
        Column("ParamKind", lambda manifest, now: _param_kind(manifest)),
        AGE,
    ),
    "ValidatingAdmissionPolicyBinding": (
        NAME,
        Column("PolicyName", at("spec", "policyName", default="")),
        Column("ParamRef", at("spec", "paramRef", "name", default=UNSET)),
        AGE,
    ),
    "ValidatingWebhookConfiguration": _WEBHOOKS,
    "VolumeAttachment": (
        NAME,
        Column("Attacher", at("spec", "attacher", default="")),
        Column("PV", at("spec", "source", "persistentVolumeName", default="")),
        Column("Node", at("spec", "nodeName", default="")),
        _flag("Attached", "status", "attached"),
        AGE,
    ),
    "VolumeAttributesClass": (NAME, Column("DriverName", at("driverName", default="")), AGE),
}


def _parent(manifest: Manifest) -> str:
    reference = get(manifest, "spec", "parentRef") or {}
    parts = (reference.get(key) for key in ("group", "resource", "namespace", "name"))
    return "/".join(str(part) for part in parts if part)


def _parameters(manifest: Manifest) -> str:
    reference = get(manifest, "spec", "parameters")
    if not isinstance(reference, Mapping):
        return NONE
    group = f".{reference['apiGroup']}" if reference.get("apiGroup") else ""
    return f"{reference.get('kind')}{group}/{reference.get('name')}"


def _param_kind(manifest: Manifest) -> str:
    kind = get(manifest, "spec", "paramKind")
    return f"{kind.get('apiVersion')}/{kind.get('kind')}" if isinstance(kind, Mapping) else UNSET


# --- custom resources ---------------------------------------------------------------------------------------


def custom_columns(kind: Kind) -> Sequence[Column]:
    """Name, and what the definition's version says; age where it says nothing."""
    columns = (kind.custom or {}).get("additionalPrinterColumns") or ()
    return [NAME, *(_custom(column) for column in columns)] if columns else (NAME, AGE)


def _custom(column: Mapping[str, Any]) -> Column:
    path, type_ = _path(column["jsonPath"]), str(column["type"])

    def cell(manifest: Manifest, now_ns: int) -> Any:
        found = json_path.values(manifest, path)
        if not found:
            return None
        value = found[0]
        if type_ == "date":
            return since(value, now_ns) if value else UNKNOWN
        if type_ == "string" and not isinstance(value, str):
            return json.dumps(value, separators=(",", ":"))
        return value

    return Column(
        column["name"], cell, "string" if type_ == "date" else type_, int(column.get("priority") or 0)
    )


@lru_cache(maxsize=1000)
def _path(text: str) -> json_path.Path:
    return json_path.path_of(text)
