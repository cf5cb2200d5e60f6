"""What the columns kubectl prints show where a path does not say it: the functions `printer_columns.yaml` names.

A function takes what the column's path finds (a list) or, without a path, the object; and the cluster's time, as ages
are by the cluster's own clock.

Source: pkg/printers/internalversion/printers.go, v1.34
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from playground.clusters.objects.queries import selector_text
from scheduler_core.objects.fields import parse_time_ns
from scheduler_core.schema.tables import table_beside

Manifest = Mapping[str, Any]

NONE: Final = "<none>"
UNSET: Final = "<unset>"
UNKNOWN: Final = "<unknown>"
_TABLES: Final = table_beside(__package__, "printer_columns.yaml")
_MODES: Final[Mapping[str, str]] = _TABLES["modes"]


def get(manifest: Any, *path: str) -> Any:
    """The value at a path of names; None if there is none."""
    for step in path:
        manifest = manifest.get(step) if isinstance(manifest, Mapping) else None
    return manifest


# --- ages ---------------------------------------------------------------------------------------------------


_UNIT_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "y": 365 * 86_400}
_AGES: Final[list[tuple[int, str, str]]] = _TABLES["ages"]


def human_duration(seconds: int) -> str:
    """As kubectl writes ages: about two significant parts.

    Source: staging/src/k8s.io/apimachinery/pkg/util/duration/duration.go HumanDuration, v1.34

    >>> [human_duration(s) for s in (5, 119, 121, 599, 3 * 3600 + 1, 50 * 3600, 9 * 86400, 800 * 86400)]
    ['5s', '119s', '2m1s', '9m59s', '3h', '2d2h', '9d', '2y70d']
    """
    if seconds < 0:
        return "<invalid>" if seconds < -1 else "0s"
    unit, below = next(((unit, below) for end, unit, below in _AGES if seconds < end), ("y", ""))
    n, left = divmod(seconds, _UNIT_S[unit])
    n_below = left // _UNIT_S[below] if below else 0
    return f"{n}{unit}{n_below}{below}" if n_below else f"{n}{unit}"


def since(text: Any, now_ns: int) -> str:
    """How long ago a moment is, in kubectl's words."""
    return _between(text, now_ns) if isinstance(text, str) else UNKNOWN


def _between(begin: str, end: str | int) -> str:
    try:
        end_ns = end if isinstance(end, int) else parse_time_ns(end)
        return human_duration((end_ns - parse_time_ns(begin)) // 1_000_000_000)
    except ValueError:
        return UNKNOWN


# --- of what a path finds -----------------------------------------------------------------------------------


def age(found: Sequence[Any], now_ns: int) -> str:
    return since(found[0], now_ns)


def custom_age(found: Sequence[Any], now_ns: int) -> str | None:
    return since(found[0], now_ns) if found else None


def custom_text(found: Sequence[Any], now_ns: int) -> str | None:
    if not found or isinstance(found[0], str):
        return found[0] if found else None
    return json.dumps(found[0], separators=(",", ":"))


def text(found: Sequence[Any], now_ns: int) -> str:
    return str(found[0]).strip()


def count(found: Sequence[Any], now_ns: int) -> int:
    return len(found)


def joined(found: Sequence[Any], now_ns: int) -> str:
    return ",".join(map(str, found))


def listed(found: Sequence[Any], now_ns: int) -> str:
    return ", ".join(map(str, found))


def first_three(found: Sequence[Any], now_ns: int) -> str:
    more = f" + {len(found) - 3} more..." if len(found) > 3 else ""
    return ",".join(map(str, found[:3])) + more


def hosts(found: Sequence[Any], now_ns: int) -> str:
    return first_three([rule.get("host") or "*" for rule in found], now_ns)


def addresses(found: Sequence[Any], now_ns: int) -> str:
    return ",".join(str(item.get("ip") or item.get("hostname") or "") for item in found)


def container_names(found: Sequence[Any], now_ns: int) -> str:
    return ",".join(str(container.get("name") or "") for container in found)


def container_images(found: Sequence[Any], now_ns: int) -> str:
    return ",".join(str(container.get("image") or "") for container in found)


def access_modes(found: Sequence[Any], now_ns: int) -> str:
    return ",".join(_MODES.get(mode, str(mode)) for mode in found)


def accounts(found: Sequence[Any], now_ns: int) -> str:
    return ", ".join(
        f"{item['namespace']}/{item.get('name')}" if item.get("namespace") else str(item.get("name"))
        for item in found
    )


def namespaced(found: Sequence[Any], now_ns: int) -> str:
    return f"{found[0].get('namespace', '')}/{found[0].get('name', '')}" if found[0] else ""


def parameters(found: Sequence[Any], now_ns: int) -> str:
    group = f".{found[0]['apiGroup']}" if found[0].get("apiGroup") else ""
    return f"{found[0].get('kind')}{group}/{found[0].get('name')}"


def health(found: Sequence[Any], now_ns: int) -> str:
    return {"True": "Healthy", "False": "Unhealthy"}.get(found[0], "Unknown")


def service_ports(found: Sequence[Any], now_ns: int) -> str:
    ports = []
    for port in found:
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        ports.append(f"{port.get('port')}{node}/{port.get('protocol') or 'TCP'}")
    return ",".join(ports)


def selector(found: Sequence[Any], now_ns: int) -> str:
    """A label selector in kubectl's words."""
    wanted = found[0] if found else None
    if not isinstance(wanted, Mapping):
        return NONE
    if "matchLabels" not in wanted and "matchExpressions" not in wanted:
        wanted = {"matchLabels": wanted}
    return selector_text(wanted) or NONE


# --- of pods and nodes --------------------------------------------------------------------------------------


def _container_statuses(manifest: Manifest) -> Iterable[Any]:
    return get(manifest, "status", "containerStatuses") or ()


def _conditions(manifest: Manifest) -> dict[Any, Any]:
    """Type -> status."""
    return {item.get("type"): item.get("status") for item in get(manifest, "status", "conditions") or ()}


def pod_ready(manifest: Manifest, now_ns: int) -> str:
    ready = sum(1 for status in _container_statuses(manifest) if status.get("ready"))
    return f"{ready}/{len(get(manifest, 'spec', 'containers') or ())}"


def pod_status(manifest: Manifest, now_ns: int) -> str:
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


def pod_restarts(manifest: Manifest, now_ns: int) -> str:
    return str(sum(int(status.get("restartCount") or 0) for status in _container_statuses(manifest)))


def pod_gates(manifest: Manifest, now_ns: int) -> str:
    gates = get(manifest, "spec", "readinessGates") or ()
    met = _conditions(manifest)
    n_met = sum(1 for gate in gates if met.get(gate.get("conditionType")) == "True")
    return f"{n_met}/{len(gates)}" if gates else NONE


def node_status(manifest: Manifest, now_ns: int) -> str:
    ready = _conditions(manifest).get("Ready", UNKNOWN)
    words = "Unknown" if ready == UNKNOWN else "Ready" if ready == "True" else "NotReady"
    return words + (",SchedulingDisabled" if get(manifest, "spec", "unschedulable") else "")


def node_roles(manifest: Manifest, now_ns: int) -> str:
    labels = get(manifest, "metadata", "labels") or {}
    prefix = "node-role.kubernetes.io/"
    roles = {key[len(prefix) :] for key in labels if key.startswith(prefix) and len(key) > len(prefix)}
    roles |= {value for key, value in labels.items() if key == "kubernetes.io/role" and value}
    return ",".join(sorted(roles)) or NONE


# --- of workloads -------------------------------------------------------------------------------------------


def ready_of_desired(manifest: Manifest, now_ns: int) -> str:
    desired = get(manifest, "spec", "replicas")
    return f"{get(manifest, 'status', 'readyReplicas') or 0}/{1 if desired is None else desired}"


def job_status(manifest: Manifest, now_ns: int) -> str:
    if get(manifest, "metadata", "deletionTimestamp"):
        return "Terminating"
    states = _conditions(manifest)
    names = ("Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet")
    return next((name for name in names if states.get(name) == "True"), "Running")


def job_completions(manifest: Manifest, now_ns: int) -> str:
    succeeded = get(manifest, "status", "succeeded") or 0
    wanted = get(manifest, "spec", "completions")
    if wanted is not None:
        return f"{succeeded}/{wanted}"
    parallel = get(manifest, "spec", "parallelism") or 0
    return f"{succeeded}/1 of {parallel}" if parallel > 1 else f"{succeeded}/1"


def job_duration(manifest: Manifest, now_ns: int) -> str:
    started, done = get(manifest, "status", "startTime"), get(manifest, "status", "completionTime")
    return _between(started, done or now_ns) if started else ""


def controller(manifest: Manifest, now_ns: int) -> str:
    owners = get(manifest, "metadata", "ownerReferences") or ()
    owner = next((item for item in owners if item.get("controller")), None)
    return f"{str(owner.get('kind')).lower()}/{owner.get('name')}" if owner else NONE


def scale_target(manifest: Manifest, now_ns: int) -> str:
    reference = get(manifest, "spec", "scaleTargetRef") or {}
    return f"{reference.get('kind')}/{reference.get('name')}"


def metric_targets(manifest: Manifest, now_ns: int) -> str:
    current = get(manifest, "status", "currentMetrics") or ()
    metrics = get(manifest, "spec", "metrics") or ()
    shown = [_metric(metric, current, place) for place, metric in enumerate(metrics)]
    more = f" + {len(shown) - 2} more..." if len(shown) > 2 else ""
    return ", ".join(shown[:2]) + more if shown else NONE


def _metric(metric: Manifest, current: Sequence[Manifest], place: int) -> str:
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


# --- of the others ------------------------------------------------------------------------------------------


def external_addresses(manifest: Manifest, now_ns: int) -> str:
    kind = get(manifest, "spec", "type") or "ClusterIP"
    external = get(manifest, "spec", "externalIPs") or []
    if kind == "ExternalName":
        return str(get(manifest, "spec", "externalName") or NONE)
    if kind == "LoadBalancer":
        ingress = get(manifest, "status", "loadBalancer", "ingress") or ()
        given = [str(item.get("ip") or item.get("hostname")) for item in ingress]
        return ",".join([*given, *external]) or "<pending>"
    return ",".join(external) or NONE


def endpoints(manifest: Manifest, now_ns: int) -> str:
    found = [
        f"{address.get('ip')}:{port.get('port')}"
        for subset in manifest.get("subsets") or ()
        for port in subset.get("ports") or ()
        for address in subset.get("addresses") or ()
    ]
    return first_three(found, now_ns) or NONE


def ingress_ports(manifest: Manifest, now_ns: int) -> str:
    return "80, 443" if get(manifest, "spec", "tls") else "80"


def volume_status(manifest: Manifest, now_ns: int) -> str:
    if get(manifest, "metadata", "deletionTimestamp"):
        return "Terminating"
    return str(get(manifest, "status", "phase") or "")


def class_name(manifest: Manifest, now_ns: int) -> str:
    name = get(manifest, "metadata", "name")
    annotations = get(manifest, "metadata", "annotations") or {}
    is_default = annotations.get("storageclass.kubernetes.io/is-default-class") == "true"
    return f"{name} (default)" if is_default else str(name)


def claim_state(manifest: Manifest, now_ns: int) -> str:
    """What a ResourceClaim has come to."""
    deleted = bool(get(manifest, "metadata", "deletionTimestamp"))
    states = ["deleted"] if deleted else []
    if get(manifest, "status", "allocation") is None:
        states += [] if deleted else ["pending"]
    else:
        states += ["allocated", *(["reserved"] if get(manifest, "status", "reservedFor") else [])]
    return ",".join(states)


def event_last_seen(manifest: Manifest, now_ns: int) -> str:
    newest = get(manifest, "series", "lastObservedTime") or manifest.get("lastTimestamp")
    return since(newest, now_ns) if newest else event_first_seen(manifest, now_ns)


def event_first_seen(manifest: Manifest, now_ns: int) -> str:
    return since(manifest.get("firstTimestamp") or manifest.get("eventTime"), now_ns)


def event_object(manifest: Manifest, now_ns: int) -> str:
    involved = manifest.get("involvedObject") or {}
    kind = str(involved.get("kind") or "").lower()
    return f"{kind}/{involved.get('name')}" if involved.get("name") else kind


def event_source(manifest: Manifest, now_ns: int) -> str:
    source = manifest.get("source") or {}
    component = source.get("component") or manifest.get("reportingComponent") or ""
    host = source.get("host") or manifest.get("reportingInstance") or ""
    return f"{component}, {host}" if host else str(component)


def data_count(manifest: Manifest, now_ns: int) -> int:
    return len(manifest.get("data") or {}) + len(manifest.get("binaryData") or {})


def quota_requests(manifest: Manifest, now_ns: int) -> str:
    return _amounts(manifest, limits=False)


def quota_limits(manifest: Manifest, now_ns: int) -> str:
    return _amounts(manifest, limits=True)


def _amounts(manifest: Manifest, *, limits: bool) -> str:
    hard = get(manifest, "status", "hard") or get(manifest, "spec", "hard") or {}
    used = get(manifest, "status", "used") or {}
    return ", ".join(
        f"{name}: {used.get(name, 0)}/{hard[name]}"
        for name in sorted(hard)
        if name.startswith("limits.") == limits
    )


def role(manifest: Manifest, now_ns: int) -> str:
    return f"{get(manifest, 'roleRef', 'kind')}/{get(manifest, 'roleRef', 'name')}"


def request_state(manifest: Manifest, now_ns: int) -> str:
    words = [str(item.get("type")) for item in get(manifest, "status", "conditions") or ()] or ["Pending"]
    return ",".join(words + ["Issued"] * bool(get(manifest, "status", "certificate")))


def api_available(manifest: Manifest, now_ns: int) -> str:
    known = _conditions(manifest)
    return str(known.get("Available", "Unknown" if get(manifest, "spec", "service") else "True"))


def parent(manifest: Manifest, now_ns: int) -> str:
    reference = get(manifest, "spec", "parentRef") or {}
    parts = (reference.get(key) for key in ("group", "resource", "namespace", "name"))
    return "/".join(str(part) for part in parts if part)


def param_kind(manifest: Manifest, now_ns: int) -> str:
    kind = get(manifest, "spec", "paramKind")
    return f"{kind.get('apiVersion')}/{kind.get('kind')}" if isinstance(kind, Mapping) else UNSET
