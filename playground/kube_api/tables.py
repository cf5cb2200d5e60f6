"""Server-side tables: the columns kubectl prints. Ages are by the cluster's own clock.

Source: pkg/printers/internalversion/printers.go, v1.34
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from playground.clusters.kinds import Kind
from playground.engine.times import parse_time_ns

Manifest = Mapping[str, Any]
Cell = Callable[[Manifest, int], Any]
"""A cell's value from the object and the cluster's time in nanoseconds."""

NONE: Final = "<none>"
UNSET: Final = "<unset>"
UNKNOWN: Final = "<unknown>"


@dataclass(frozen=True, slots=True)
class Column:
    """One column; those of priority 1 are shown by `-o wide` only."""

    name: str
    cell: Cell
    type: str = "string"
    priority: int = 0

    def definition(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": self.type,
            "format": "name" if self.name == "Name" else "",
            "description": "",
            "priority": self.priority,
        }


def table(
    kind: Kind,
    manifests: Iterable[Manifest],
    now_ns: int,
    *,
    api_version: str = "meta.k8s.io/v1",
    include: str = "Metadata",
    metadata: Mapping[str, Any] | None = None,
    with_columns: bool = True,
) -> dict[str, Any]:
    """Objects of one kind as a `Table`.

    Parameters
    ----------
    now_ns
        The cluster's time.
    include
        What of each object comes along: ``None``, ``Metadata`` or ``Object``.
    with_columns
        False for all but the first event of a watch.
    """
    columns = columns_of(kind)
    return {
        "kind": "Table",
        "apiVersion": api_version,
        "metadata": dict(metadata or {}),
        "columnDefinitions": [column.definition() for column in columns] if with_columns else None,
        "rows": [
            {"cells": [column.cell(manifest, now_ns) for column in columns], **_object(manifest, include)}
            for manifest in manifests
        ],
    }


def _object(manifest: Manifest, include: str) -> dict[str, Any]:
    if include == "None":
        return {}
    if include == "Object":
        return {"object": manifest}
    return {"object": partial(manifest)}


def partial(manifest: Manifest) -> dict[str, Any]:
    """An object's metadata alone."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": manifest["metadata"],
    }


def human_duration(seconds: int) -> str:
    """As kubectl writes ages: about two significant parts.

    Source: staging/src/k8s.io/apimachinery/pkg/util/duration/duration.go HumanDuration, v1.34

    >>> [human_duration(s) for s in (5, 119, 121, 599, 3 * 3600 + 1, 50 * 3600, 9 * 86400, 800 * 86400)]
    ['5s', '119s', '2m1s', '9m59s', '3h', '2d2h', '9d', '2y70d']
    """
    if seconds < -1:
        return "<invalid>"
    if seconds < 0:
        return "0s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if days < 2920:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, unit: str, small: int, below: str) -> str:
    return f"{large}{unit}{small}{below}" if small else f"{large}{unit}"


# --- cells --------------------------------------------------------------------------------------------------


def at(*path: str, default: Any = None) -> Cell:
    """The value at a path."""

    def cell(manifest: Manifest, now_ns: int) -> Any:
        value = _get(manifest, *path)
        return default if value is None or value == "" else value

    return cell


def _get(manifest: Any, *path: str) -> Any:
    for step in path:
        manifest = manifest.get(step) if isinstance(manifest, Mapping) else None
    return manifest


def _since(text: Any, now_ns: int) -> str:
    if not isinstance(text, str):
        return UNKNOWN
    try:
        return human_duration((now_ns - parse_time_ns(text)) // 1_000_000_000)
    except ValueError:
        return UNKNOWN


def _age(manifest: Manifest, now_ns: int) -> str:
    return _since(_get(manifest, "metadata", "creationTimestamp"), now_ns)


def _count(*path: str) -> Cell:
    return lambda manifest, now_ns: len(_get(manifest, *path) or ())


def _joined(*path: str, default: str = NONE) -> Cell:
    def cell(manifest: Manifest, now_ns: int) -> str:
        return ",".join(str(item) for item in _get(manifest, *path) or ()) or default

    return cell


def _selector(selector: Any) -> str:
    """A label selector in kubectl's words."""
    if not isinstance(selector, Mapping):
        return NONE
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items())) or NONE
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for expression in selector.get("matchExpressions") or ():
        key, operator = expression.get("key"), expression.get("operator")
        values = ",".join(sorted(str(value) for value in expression.get("values") or ()))
        parts.append(
            {"Exists": f"{key}", "DoesNotExist": f"!{key}"}.get(
                str(operator), f"{key} {str(operator).lower()} ({values})"
            )
        )
    return ",".join(parts) or NONE


def _template(part: str) -> Cell:
    """Names or images of the containers of a pod template."""

    def cell(manifest: Manifest, now_ns: int) -> str:
        containers = _get(manifest, "spec", "template", "spec", "containers") or ()
        return ",".join(str(container.get(part) or "") for container in containers)

    return cell


def _of_spec_selector(manifest: Manifest, now_ns: int) -> str:
    return _selector(_get(manifest, "spec", "selector"))


# --- pods ---------------------------------------------------------------------------------------------------


def _pod_ready(manifest: Manifest, now_ns: int) -> str:
    statuses = _get(manifest, "status", "containerStatuses") or ()
    ready = sum(1 for status in statuses if status.get("ready"))
    return f"{ready}/{len(_get(manifest, 'spec', 'containers') or ())}"


def _pod_status(manifest: Manifest, now_ns: int) -> str:
    status = manifest.get("status") or {}
    words = status.get("reason") or status.get("phase") or "Pending"
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            words = "SchedulingGated"
    for container in reversed(status.get("containerStatuses") or ()):
        state = container.get("state") or {}
        waiting, ended = state.get("waiting") or {}, state.get("terminated")
        if waiting.get("reason"):
            words = waiting["reason"]
        elif ended is not None:
            words = ended.get("reason") or f"ExitCode:{ended.get('exitCode', 0)}"
    if _get(manifest, "metadata", "deletionTimestamp"):
        words = "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return str(words)


def _pod_restarts(manifest: Manifest, now_ns: int) -> str:
    statuses = _get(manifest, "status", "containerStatuses") or ()
    return str(sum(int(status.get("restartCount") or 0) for status in statuses))


def _pod_gates(manifest: Manifest, now_ns: int) -> str:
    gates = _get(manifest, "spec", "readinessGates") or ()
    if not gates:
        return NONE
    met = {
        condition.get("type")
        for condition in _get(manifest, "status", "conditions") or ()
        if condition.get("status") == "True"
    }
    return f"{sum(1 for gate in gates if gate.get('conditionType') in met)}/{len(gates)}"


# --- nodes --------------------------------------------------------------------------------------------------


def _node_status(manifest: Manifest, now_ns: int) -> str:
    conditions = {
        item.get("type"): item.get("status") for item in _get(manifest, "status", "conditions") or ()
    }
    words = ("Ready" if conditions["Ready"] == "True" else "NotReady") if "Ready" in conditions else "Unknown"
    return words + (",SchedulingDisabled" if _get(manifest, "spec", "unschedulable") else "")


def _node_roles(manifest: Manifest, now_ns: int) -> str:
    labels = _get(manifest, "metadata", "labels") or {}
    prefix = "node-role.kubernetes.io/"
    roles = {key[len(prefix) :] for key in labels if key.startswith(prefix) and len(key) > len(prefix)}
    roles |= {value for key, value in labels.items() if key == "kubernetes.io/role" and value}
    return ",".join(sorted(roles)) or NONE


def _node_address(kind: str) -> Cell:
    def cell(manifest: Manifest, now_ns: int) -> str:
        addresses = _get(manifest, "status", "addresses") or ()
        return next((str(item.get("address")) for item in addresses if item.get("type") == kind), NONE)

    return cell


# --- the others ---------------------------------------------------------------------------------------------


def _service_external(manifest: Manifest, now_ns: int) -> str:
    kind = _get(manifest, "spec", "type") or "ClusterIP"
    external = _get(manifest, "spec", "externalIPs") or []
    if kind == "ExternalName":
        return str(_get(manifest, "spec", "externalName") or NONE)
    if kind == "LoadBalancer":
        ingress = _get(manifest, "status", "loadBalancer", "ingress") or ()
        given = [str(item.get("ip") or item.get("hostname")) for item in ingress]
        return ",".join([*given, *external]) or "<pending>"
    return ",".join(external) or NONE


def _service_ports(manifest: Manifest, now_ns: int) -> str:
    ports = []
    for port in _get(manifest, "spec", "ports") or ():
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        ports.append(f"{port.get('port')}{node}/{port.get('protocol') or 'TCP'}")
    return ",".join(ports) or NONE


def _of_desired(*path: str) -> Cell:
    def cell(manifest: Manifest, now_ns: int) -> str:
        desired = _get(manifest, "spec", "replicas")
        return f"{_get(manifest, *path) or 0}/{1 if desired is None else desired}"

    return cell


def _job_status(manifest: Manifest, now_ns: int) -> str:
    conditions = {
        item.get("type"): item.get("status") == "True"
        for item in _get(manifest, "status", "conditions") or ()
    }
    if _get(manifest, "metadata", "deletionTimestamp"):
        return "Terminating"
    for name, words in (
        ("Complete", "Complete"),
        ("Failed", "Failed"),
        ("Suspended", "Suspended"),
        ("FailureTarget", "FailureTarget"),
        ("SuccessCriteriaMet", "SuccessCriteriaMet"),
    ):
        if conditions.get(name):
            return words
    return "Running"


def _job_completions(manifest: Manifest, now_ns: int) -> str:
    succeeded = _get(manifest, "status", "succeeded") or 0
    wanted = _get(manifest, "spec", "completions")
    if wanted is not None:
        return f"{succeeded}/{wanted}"
    parallel = _get(manifest, "spec", "parallelism") or 0
    return f"{succeeded}/1 of {parallel}" if parallel > 1 else f"{succeeded}/1"


def _job_duration(manifest: Manifest, now_ns: int) -> str:
    started, done = _get(manifest, "status", "startTime"), _get(manifest, "status", "completionTime")
    if not started:
        return ""
    try:
        end_ns = parse_time_ns(done) if done else now_ns
        return human_duration((end_ns - parse_time_ns(started)) // 1_000_000_000)
    except ValueError:
        return UNKNOWN


def _claim(manifest: Manifest, now_ns: int) -> str:
    claim = _get(manifest, "spec", "claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _modes(*path: str) -> Cell:
    def cell(manifest: Manifest, now_ns: int) -> str:
        return ",".join(_MODES.get(mode, str(mode)) for mode in _get(manifest, *path) or ())

    return cell


def _volume_status(manifest: Manifest, now_ns: int) -> str:
    if _get(manifest, "metadata", "deletionTimestamp"):
        return "Terminating"
    return str(_get(manifest, "status", "phase") or "")


def _class_name(manifest: Manifest, now_ns: int) -> str:
    name = _get(manifest, "metadata", "name")
    default = (_get(manifest, "metadata", "annotations") or {}).get(
        "storageclass.kubernetes.io/is-default-class"
    )
    return f"{name} (default)" if default == "true" else str(name)


def _event_seen(*names: str) -> Cell:
    def cell(manifest: Manifest, now_ns: int) -> str:
        series = _get(manifest, "series", "lastObservedTime") if "lastTimestamp" in names else None
        stamp = series or next((manifest.get(name) for name in names if manifest.get(name)), None)
        return _since(stamp or manifest.get("eventTime"), now_ns)

    return cell


def _event_object(manifest: Manifest, now_ns: int) -> str:
    involved = manifest.get("involvedObject") or {}
    kind = str(involved.get("kind") or "").lower()
    return f"{kind}/{involved.get('name')}" if involved.get("name") else kind


def _event_source(manifest: Manifest, now_ns: int) -> str:
    source = manifest.get("source") or {}
    component = source.get("component") or manifest.get("reportingComponent") or ""
    host = source.get("host") or manifest.get("reportingInstance") or ""
    return f"{component}, {host}" if host else str(component)


def _data_count(manifest: Manifest, now_ns: int) -> int:
    return len(manifest.get("data") or {}) + len(manifest.get("binaryData") or {})


def _devices_state(manifest: Manifest, now_ns: int) -> str:
    """What a ResourceClaim has come to."""
    deleted = bool(_get(manifest, "metadata", "deletionTimestamp"))
    states = ["deleted"] if deleted else []
    if _get(manifest, "status", "allocation") is None:
        states += [] if deleted else ["pending"]
    else:
        states += ["allocated", *(["reserved"] if _get(manifest, "status", "reservedFor") else [])]
    return ",".join(states)


# --- the columns --------------------------------------------------------------------------------------------

_NAME: Final = Column("Name", at("metadata", "name", default=""))
_AGE: Final = Column("Age", _age)


def _int(name: str, *path: str, default: Any = 0) -> Column:
    return Column(name, at(*path, default=default), "integer")


def _bool(name: str, *path: str, default: Any = False) -> Column:
    return Column(name, at(*path, default=default), "boolean")


_IN_TEMPLATE: Final = (
    Column("Containers", _template("name"), priority=1),
    Column("Images", _template("image"), priority=1),
)
_SELECTOR: Final = Column("Selector", _of_spec_selector, priority=1)
_REPLICAS: Final = (
    _NAME,
    _int("Desired", "spec", "replicas", default=1),
    _int("Current", "status", "replicas"),
    _int("Ready", "status", "readyReplicas"),
    _AGE,
    *_IN_TEMPLATE,
    _SELECTOR,
)

_COLUMNS: Final[Mapping[str, Sequence[Column]]] = {
    "Pod": (
        _NAME,
        Column("Ready", _pod_ready),
        Column("Status", _pod_status),
        Column("Restarts", _pod_restarts),
        _AGE,
        Column("IP", at("status", "podIP", default=NONE), priority=1),
        Column("Node", at("spec", "nodeName", default=NONE), priority=1),
        Column("Nominated Node", at("status", "nominatedNodeName", default=NONE), priority=1),
        Column("Readiness Gates", _pod_gates, priority=1),
    ),
    "Node": (
        _NAME,
        Column("Status", _node_status),
        Column("Roles", _node_roles),
        _AGE,
        Column("Version", at("status", "nodeInfo", "kubeletVersion", default="")),
        Column("Internal-IP", _node_address("InternalIP"), priority=1),
        Column("External-IP", _node_address("ExternalIP"), priority=1),
        Column("OS-Image", at("status", "nodeInfo", "osImage", default=UNKNOWN), priority=1),
        Column("Kernel-Version", at("status", "nodeInfo", "kernelVersion", default=UNKNOWN), priority=1),
        Column(
            "Container-Runtime",
            at("status", "nodeInfo", "containerRuntimeVersion", default=UNKNOWN),
            priority=1,
        ),
    ),
    "Namespace": (_NAME, Column("Status", at("status", "phase", default="Active")), _AGE),
    "PriorityClass": (
        _NAME,
        _int("Value", "value"),
        _bool("Global-Default", "globalDefault"),
        _AGE,
        Column("PreemptionPolicy", at("preemptionPolicy", default="PreemptLowerPriority")),
    ),
    "PodDisruptionBudget": (
        _NAME,
        Column("Min Available", lambda m, now: str(at("spec", "minAvailable", default="N/A")(m, now))),
        Column("Max Unavailable", lambda m, now: str(at("spec", "maxUnavailable", default="N/A")(m, now))),
        _int("Allowed Disruptions", "status", "disruptionsAllowed"),
        _AGE,
    ),
    "Service": (
        _NAME,
        Column("Type", at("spec", "type", default="ClusterIP")),
        Column("Cluster-IP", at("spec", "clusterIP", default=NONE)),
        Column("External-IP", _service_external),
        Column("Port(s)", _service_ports),
        _AGE,
        _SELECTOR,
    ),
    "ReplicationController": _REPLICAS,
    "ReplicaSet": _REPLICAS,
    "Deployment": (
        _NAME,
        Column("Ready", _of_desired("status", "readyReplicas")),
        _int("Up-to-date", "status", "updatedReplicas"),
        _int("Available", "status", "availableReplicas"),
        _AGE,
        *_IN_TEMPLATE,
        _SELECTOR,
    ),
    "StatefulSet": (_NAME, Column("Ready", _of_desired("status", "readyReplicas")), _AGE, *_IN_TEMPLATE),
    "DaemonSet": (
        _NAME,
        _int("Desired", "status", "desiredNumberScheduled"),
        _int("Current", "status", "currentNumberScheduled"),
        _int("Ready", "status", "numberReady"),
        _int("Up-to-date", "status", "updatedNumberScheduled"),
        _int("Available", "status", "numberAvailable"),
        Column(
            "Node Selector",
            lambda m, now: _selector(_get(m, "spec", "template", "spec", "nodeSelector")),
        ),
        _AGE,
        *_IN_TEMPLATE,
        _SELECTOR,
    ),
    "Job": (
        _NAME,
        Column("Status", _job_status),
        Column("Completions", _job_completions),
        Column("Duration", _job_duration),
        _AGE,
        *_IN_TEMPLATE,
        _SELECTOR,
    ),
    "PersistentVolume": (
        _NAME,
        Column("Capacity", at("spec", "capacity", "storage", default="")),
        Column("Access Modes", _modes("spec", "accessModes")),
        Column("Reclaim Policy", at("spec", "persistentVolumeReclaimPolicy", default="Retain")),
        Column("Status", _volume_status),
        Column("Claim", _claim),
        Column("StorageClass", at("spec", "storageClassName", default="")),
        Column("VolumeAttributesClass", at("spec", "volumeAttributesClassName", default=UNSET)),
        Column("Reason", at("status", "reason", default="")),
        _AGE,
        Column("VolumeMode", at("spec", "volumeMode", default=UNSET), priority=1),
    ),
    "PersistentVolumeClaim": (
        _NAME,
        Column("Status", _volume_status),
        Column("Volume", at("spec", "volumeName", default="")),
        Column("Capacity", at("status", "capacity", "storage", default="")),
        Column("Access Modes", _modes("status", "accessModes")),
        Column("StorageClass", at("spec", "storageClassName", default="")),
        Column("VolumeAttributesClass", at("spec", "volumeAttributesClassName", default=UNSET)),
        _AGE,
        Column("VolumeMode", at("spec", "volumeMode", default=UNSET), priority=1),
    ),
    "StorageClass": (
        Column("Name", _class_name),
        Column("Provisioner", at("provisioner", default="")),
        Column("ReclaimPolicy", at("reclaimPolicy", default="Delete")),
        Column("VolumeBindingMode", at("volumeBindingMode", default="Immediate")),
        _bool("AllowVolumeExpansion", "allowVolumeExpansion"),
        _AGE,
    ),
    "CSINode": (_NAME, Column("Drivers", _count("spec", "drivers"), "integer"), _AGE),
    "CSIDriver": (
        _NAME,
        _bool("AttachRequired", "spec", "attachRequired", default=True),
        _bool("PodInfoOnMount", "spec", "podInfoOnMount"),
        _bool("StorageCapacity", "spec", "storageCapacity"),
        Column(
            "TokenRequests",
            lambda m, now: (
                ",".join(str(item.get("audience") or "") for item in _get(m, "spec", "tokenRequests") or ())
                or UNSET
            ),
        ),
        _bool("RequiresRepublish", "spec", "requiresRepublish"),
        Column("Modes", _joined("spec", "volumeLifecycleModes", default="Persistent")),
        _AGE,
    ),
    "CSIStorageCapacity": (
        _NAME,
        Column("StorageClassName", at("storageClassName", default="")),
        Column("Capacity", at("capacity", default=UNSET)),
        _AGE,
    ),
    "ResourceClaim": (_NAME, Column("State", _devices_state), _AGE),
    "ResourceSlice": (
        _NAME,
        Column("Node", at("spec", "nodeName", default="")),
        Column("Driver", at("spec", "driver", default="")),
        Column("Pool", at("spec", "pool", "name", default="")),
        _AGE,
    ),
    "Event": (
        Column("Last Seen", _event_seen("lastTimestamp", "firstTimestamp")),
        Column("Type", at("type", default="Normal")),
        Column("Reason", at("reason", default="")),
        Column("Object", _event_object),
        Column("Subobject", at("involvedObject", "fieldPath", default=""), priority=1),
        Column("Source", _event_source, priority=1),
        Column("Message", lambda m, now: str(m.get("message") or "").strip()),
        Column("First Seen", _event_seen("firstTimestamp"), priority=1),
        Column("Count", at("count", default=1), "integer", 1),
        Column("Name", at("metadata", "name", default=""), priority=1),
    ),
    "Lease": (_NAME, Column("Holder", at("spec", "holderIdentity", default="")), _AGE),
    "ServiceAccount": (_NAME, Column("Secrets", _count("secrets"), "integer"), _AGE),
    "ConfigMap": (_NAME, Column("Data", _data_count, "integer"), _AGE),
    "Secret": (
        _NAME,
        Column("Type", at("type", default="Opaque")),
        Column("Data", _data_count, "integer"),
        _AGE,
    ),
}


def columns_of(kind: Kind) -> Sequence[Column]:
    """The columns of a kind; name and age for one without its own."""
    return _COLUMNS.get(kind.kind, (_NAME, _AGE))
