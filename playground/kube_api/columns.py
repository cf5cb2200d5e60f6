"""The columns that kubectl prints of the kinds that shape placement, and of those most looked at.

Source: pkg/printers/internalversion/printers.go, v1.34
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from playground.clusters.kinds import Kind
from playground.engine.times import parse_time_ns
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
    human_duration,
    joined,
    of_template,
    selector_words,
    since,
    spec_selector,
)
from playground.kube_api.more_columns import MORE_COLUMNS, custom_columns

# --- pods ---------------------------------------------------------------------------------------------------


def _pod_ready(manifest: Manifest, now_ns: int) -> str:
    statuses = get(manifest, "status", "containerStatuses") or ()
    ready = sum(1 for status in statuses if status.get("ready"))
    return f"{ready}/{len(get(manifest, 'spec', 'containers') or ())}"


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
    if get(manifest, "metadata", "deletionTimestamp"):
        words = "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return str(words)


def _pod_restarts(manifest: Manifest, now_ns: int) -> str:
    statuses = get(manifest, "status", "containerStatuses") or ()
    return str(sum(int(status.get("restartCount") or 0) for status in statuses))


def _pod_gates(manifest: Manifest, now_ns: int) -> str:
    gates = get(manifest, "spec", "readinessGates") or ()
    if not gates:
        return NONE
    met = {
        condition.get("type")
        for condition in get(manifest, "status", "conditions") or ()
        if condition.get("status") == "True"
    }
    return f"{sum(1 for gate in gates if gate.get('conditionType') in met)}/{len(gates)}"


# --- nodes --------------------------------------------------------------------------------------------------


def _node_status(manifest: Manifest, now_ns: int) -> str:
    conditions = {
        item.get("type"): item.get("status") for item in get(manifest, "status", "conditions") or ()
    }
    words = ("Ready" if conditions["Ready"] == "True" else "NotReady") if "Ready" in conditions else "Unknown"
    return words + (",SchedulingDisabled" if get(manifest, "spec", "unschedulable") else "")


def _node_roles(manifest: Manifest, now_ns: int) -> str:
    labels = get(manifest, "metadata", "labels") or {}
    prefix = "node-role.kubernetes.io/"
    roles = {key[len(prefix) :] for key in labels if key.startswith(prefix) and len(key) > len(prefix)}
    roles |= {value for key, value in labels.items() if key == "kubernetes.io/role" and value}
    return ",".join(sorted(roles)) or NONE


def _node_address(kind: str) -> Cell:
    def cell(manifest: Manifest, now_ns: int) -> str:
        addresses = get(manifest, "status", "addresses") or ()
        return next((str(item.get("address")) for item in addresses if item.get("type") == kind), NONE)

    return cell


# --- the others ---------------------------------------------------------------------------------------------


def _service_external(manifest: Manifest, now_ns: int) -> str:
    kind = get(manifest, "spec", "type") or "ClusterIP"
    external = get(manifest, "spec", "externalIPs") or []
    if kind == "ExternalName":
        return str(get(manifest, "spec", "externalName") or NONE)
    if kind == "LoadBalancer":
        ingress = get(manifest, "status", "loadBalancer", "ingress") or ()
        given = [str(item.get("ip") or item.get("hostname")) for item in ingress]
        return ",".join([*given, *external]) or "<pending>"
    return ",".join(external) or NONE


def _service_ports(manifest: Manifest, now_ns: int) -> str:
    ports = []
    for port in get(manifest, "spec", "ports") or ():
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        ports.append(f"{port.get('port')}{node}/{port.get('protocol') or 'TCP'}")
    return ",".join(ports) or NONE


def _of_desired(*path: str) -> Cell:
    def cell(manifest: Manifest, now_ns: int) -> str:
        desired = get(manifest, "spec", "replicas")
        return f"{get(manifest, *path) or 0}/{1 if desired is None else desired}"

    return cell


def _job_status(manifest: Manifest, now_ns: int) -> str:
    conditions = {
        item.get("type"): item.get("status") == "True" for item in get(manifest, "status", "conditions") or ()
    }
    if get(manifest, "metadata", "deletionTimestamp"):
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
    succeeded = get(manifest, "status", "succeeded") or 0
    wanted = get(manifest, "spec", "completions")
    if wanted is not None:
        return f"{succeeded}/{wanted}"
    parallel = get(manifest, "spec", "parallelism") or 0
    return f"{succeeded}/1 of {parallel}" if parallel > 1 else f"{succeeded}/1"


def _job_duration(manifest: Manifest, now_ns: int) -> str:
    started, done = get(manifest, "status", "startTime"), get(manifest, "status", "completionTime")
    if not started:
        return ""
    try:
        end_ns = parse_time_ns(done) if done else now_ns
        return human_duration((end_ns - parse_time_ns(started)) // 1_000_000_000)
    except ValueError:
        return UNKNOWN


def _claim(manifest: Manifest, now_ns: int) -> str:
    claim = get(manifest, "spec", "claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _modes(*path: str) -> Cell:
    def cell(manifest: Manifest, now_ns: int) -> str:
        return ",".join(_MODES.get(mode, str(mode)) for mode in get(manifest, *path) or ())

    return cell


def _volume_status(manifest: Manifest, now_ns: int) -> str:
    if get(manifest, "metadata", "deletionTimestamp"):
        return "Terminating"
    return str(get(manifest, "status", "phase") or "")


def _class_name(manifest: Manifest, now_ns: int) -> str:
    name = get(manifest, "metadata", "name")
    default = (get(manifest, "metadata", "annotations") or {}).get(
        "storageclass.kubernetes.io/is-default-class"
    )
    return f"{name} (default)" if default == "true" else str(name)


def _event_seen(*names: str) -> Cell:
    def cell(manifest: Manifest, now_ns: int) -> str:
        series = get(manifest, "series", "lastObservedTime") if "lastTimestamp" in names else None
        stamp = series or next((manifest.get(name) for name in names if manifest.get(name)), None)
        return since(stamp or manifest.get("eventTime"), now_ns)

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
    deleted = bool(get(manifest, "metadata", "deletionTimestamp"))
    states = ["deleted"] if deleted else []
    if get(manifest, "status", "allocation") is None:
        states += [] if deleted else ["pending"]
    else:
        states += ["allocated", *(["reserved"] if get(manifest, "status", "reservedFor") else [])]
    return ",".join(states)


# --- the columns --------------------------------------------------------------------------------------------


def _int(name: str, *path: str, default: Any = 0) -> Column:
    return Column(name, at(*path, default=default), "integer")


def _bool(name: str, *path: str, default: Any = False) -> Column:
    return Column(name, at(*path, default=default), "boolean")


_IN_TEMPLATE: Final = (
    Column("Containers", of_template("name"), priority=1),
    Column("Images", of_template("image"), priority=1),
)
_SELECTOR: Final = Column("Selector", spec_selector, priority=1)
_REPLICAS: Final = (
    NAME,
    _int("Desired", "spec", "replicas", default=1),
    _int("Current", "status", "replicas"),
    _int("Ready", "status", "readyReplicas"),
    AGE,
    *_IN_TEMPLATE,
    _SELECTOR,
)

_COLUMNS: Final[Mapping[str, Sequence[Column]]] = {
    "Pod": (
        NAME,
        Column("Ready", _pod_ready),
        Column("Status", _pod_status),
        Column("Restarts", _pod_restarts),
        AGE,
        Column("IP", at("status", "podIP", default=NONE), priority=1),
        Column("Node", at("spec", "nodeName", default=NONE), priority=1),
        Column("Nominated Node", at("status", "nominatedNodeName", default=NONE), priority=1),
        Column("Readiness Gates", _pod_gates, priority=1),
    ),
    "Node": (
        NAME,
        Column("Status", _node_status),
        Column("Roles", _node_roles),
        AGE,
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
    "Namespace": (NAME, Column("Status", at("status", "phase", default="Active")), AGE),
    "PriorityClass": (
        NAME,
        _int("Value", "value"),
        _bool("Global-Default", "globalDefault"),
        AGE,
        Column("PreemptionPolicy", at("preemptionPolicy", default="PreemptLowerPriority")),
    ),
    "PodDisruptionBudget": (
        NAME,
        Column("Min Available", lambda m, now: str(at("spec", "minAvailable", default="N/A")(m, now))),
        Column("Max Unavailable", lambda m, now: str(at("spec", "maxUnavailable", default="N/A")(m, now))),
        _int("Allowed Disruptions", "status", "disruptionsAllowed"),
        AGE,
    ),
    "Service": (
        NAME,
        Column("Type", at("spec", "type", default="ClusterIP")),
        Column("Cluster-IP", at("spec", "clusterIP", default=NONE)),
        Column("External-IP", _service_external),
        Column("Port(s)", _service_ports),
        AGE,
        _SELECTOR,
    ),
    "ReplicationController": _REPLICAS,
    "ReplicaSet": _REPLICAS,
    "Deployment": (
        NAME,
        Column("Ready", _of_desired("status", "readyReplicas")),
        _int("Up-to-date", "status", "updatedReplicas"),
        _int("Available", "status", "availableReplicas"),
        AGE,
        *_IN_TEMPLATE,
        _SELECTOR,
    ),
    "StatefulSet": (NAME, Column("Ready", _of_desired("status", "readyReplicas")), AGE, *_IN_TEMPLATE),
    "DaemonSet": (
        NAME,
        _int("Desired", "status", "desiredNumberScheduled"),
        _int("Current", "status", "currentNumberScheduled"),
        _int("Ready", "status", "numberReady"),
        _int("Up-to-date", "status", "updatedNumberScheduled"),
        _int("Available", "status", "numberAvailable"),
        Column(
            "Node Selector",
            lambda m, now: selector_words(get(m, "spec", "template", "spec", "nodeSelector")),
        ),
        AGE,
        *_IN_TEMPLATE,
        _SELECTOR,
    ),
    "Job": (
        NAME,
        Column("Status", _job_status),
        Column("Completions", _job_completions),
        Column("Duration", _job_duration),
        AGE,
        *_IN_TEMPLATE,
        _SELECTOR,
    ),
    "PersistentVolume": (
        NAME,
        Column("Capacity", at("spec", "capacity", "storage", default="")),
        Column("Access Modes", _modes("spec", "accessModes")),
        Column("Reclaim Policy", at("spec", "persistentVolumeReclaimPolicy", default="Retain")),
        Column("Status", _volume_status),
        Column("Claim", _claim),
        Column("StorageClass", at("spec", "storageClassName", default="")),
        Column("VolumeAttributesClass", at("spec", "volumeAttributesClassName", default=UNSET)),
        Column("Reason", at("status", "reason", default="")),
        AGE,
        Column("VolumeMode", at("spec", "volumeMode", default=UNSET), priority=1),
    ),
    "PersistentVolumeClaim": (
        NAME,
        Column("Status", _volume_status),
        Column("Volume", at("spec", "volumeName", default="")),
        Column("Capacity", at("status", "capacity", "storage", default="")),
        Column("Access Modes", _modes("status", "accessModes")),
        Column("StorageClass", at("spec", "storageClassName", default="")),
        Column("VolumeAttributesClass", at("spec", "volumeAttributesClassName", default=UNSET)),
        AGE,
        Column("VolumeMode", at("spec", "volumeMode", default=UNSET), priority=1),
    ),
    "StorageClass": (
        Column("Name", _class_name),
        Column("Provisioner", at("provisioner", default="")),
        Column("ReclaimPolicy", at("reclaimPolicy", default="Delete")),
        Column("VolumeBindingMode", at("volumeBindingMode", default="Immediate")),
        _bool("AllowVolumeExpansion", "allowVolumeExpansion"),
        AGE,
    ),
    "CSINode": (NAME, Column("Drivers", count("spec", "drivers"), "integer"), AGE),
    "CSIDriver": (
        NAME,
        _bool("AttachRequired", "spec", "attachRequired", default=True),
        _bool("PodInfoOnMount", "spec", "podInfoOnMount"),
        _bool("StorageCapacity", "spec", "storageCapacity"),
        Column(
            "TokenRequests",
            lambda m, now: (
                ",".join(str(item.get("audience") or "") for item in get(m, "spec", "tokenRequests") or ())
                or UNSET
            ),
        ),
        _bool("RequiresRepublish", "spec", "requiresRepublish"),
        Column("Modes", joined("spec", "volumeLifecycleModes", default="Persistent")),
        AGE,
    ),
    "CSIStorageCapacity": (
        NAME,
        Column("StorageClassName", at("storageClassName", default="")),
        Column("Capacity", at("capacity", default=UNSET)),
        AGE,
    ),
    "DeviceTaintRule": (
        NAME,
        Column("Key", at("spec", "taint", "key", default="")),
        Column("Value", at("spec", "taint", "value", default="")),
        Column("Effect", at("spec", "taint", "effect", default="")),
        Column(
            "TimeAdded",
            lambda m, now: since(added, now) if (added := get(m, "spec", "taint", "timeAdded")) else "",
        ),
        AGE,
    ),
    "ResourceClaim": (NAME, Column("State", _devices_state), AGE),
    "ResourceSlice": (
        NAME,
        Column("Node", at("spec", "nodeName", default="")),
        Column("Driver", at("spec", "driver", default="")),
        Column("Pool", at("spec", "pool", "name", default="")),
        AGE,
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
    "Lease": (NAME, Column("Holder", at("spec", "holderIdentity", default="")), AGE),
    "ServiceAccount": (NAME, Column("Secrets", count("secrets"), "integer"), AGE),
    "ConfigMap": (NAME, Column("Data", _data_count, "integer"), AGE),
    "Secret": (
        NAME,
        Column("Type", at("type", default="Opaque")),
        Column("Data", _data_count, "integer"),
        AGE,
    ),
}


def columns_of(kind: Kind) -> Sequence[Column]:
    """The columns of a kind; name and age for one without its own."""
    if kind.custom is not None:
        return custom_columns(kind)
    return _COLUMNS.get(kind.row_kind) or MORE_COLUMNS.get(kind.row_kind) or (NAME, AGE)
