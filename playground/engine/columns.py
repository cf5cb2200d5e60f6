"""The typed columns of an object row, read from its manifest as the scheduler reads it."""

import marshal
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from scheduler_core.fork import PLACE_LABELS, EqualNodes, group_of
from scheduler_core.objects.fields import parse_time_ns
from scheduler_core.objects.meta import condition_of
from scheduler_core.objects.pod import DEFAULT_SCHEDULER_NAME as DEFAULT_SCHEDULER
from scheduler_core.objects.pod import no_such_profile
from scheduler_core.objects.resources import CPU, MEMORY, PODS, pod_requests, resource_list, whole_units
from scheduler_core.sim.controllers.disruption_budget import COMPUTED, DISRUPTION_ALLOWED, is_computed
from scheduler_core.sim.kubelet import waits_on_its_node
from scheduler_core.sim.load import Load

ZONE_LABELS: Final = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
NOT_READY_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
FINISHED: Final = ("Succeeded", "Failed")
"""Phases in which a pod's requests no longer count."""
EVENT_TTL_NS: Final = 3600 * 10**9
"""As kube-apiserver's --event-ttl."""
MOST: Final = 2**47
"""Cap of an amount in a column (140 TB): sums over 60,000 rows stay within 64 bits; manifests keep theirs."""


OF_NODE: Final = ("DaemonSet", "Node")
"""Owners of pods that a node brings with it: daemons and static pods."""
Shape = tuple[int, int, tuple[tuple[str, int], ...]]
"""What a pod requests: millicores, bytes, and other resources by name."""


def labels_of(manifest: Mapping[str, Any]) -> dict[str, str]:
    """metadata.labels, never None."""
    return dict((manifest.get("metadata") or {}).get("labels") or {})


def _rest(amounts: Mapping[str, int]) -> dict[str, int]:
    return {name: min(amount, MOST) for name, amount in amounts.items() if name not in (CPU, MEMORY, PODS)}


def amount_columns(amounts: Mapping[str, int]) -> tuple[int, int, dict[str, int]]:
    """Millicores, bytes and the other amounts that a pod requests."""
    extended = {name: amount for name, amount in _rest(amounts).items() if amount}
    return min(amounts.get(CPU, 0), MOST), min(amounts.get(MEMORY, 0), MOST), extended


def node_columns(manifest: Mapping[str, Any], allocatable: Mapping[str, int] | None = None) -> dict[str, Any]:
    """Allocatable (`Node.allocatable`, where known) in millicores, bytes, counts; zone, cordon, readiness, taints."""
    spec = manifest.get("spec") or {}
    status = manifest.get("status") or {}
    labels = labels_of(manifest)
    amounts = allocatable
    if amounts is None:
        amounts = whole_units(resource_list(status, "allocatable", "status"))
    conditions = {item.get("type"): item.get("status") for item in status.get("conditions") or ()}
    taints = [
        {
            "key": str(taint.get("key", "")),
            "value": str(taint.get("value") or ""),
            "effect": taint.get("effect"),
        }
        for taint in spec.get("taints") or ()
    ]
    ready = conditions.get("Ready", "True") == "True" and not any(
        taint["key"] in NOT_READY_TAINTS for taint in taints
    )
    return {
        "labels": labels,
        "zone": next((labels[key] for key in ZONE_LABELS if key in labels), ""),
        "unschedulable": bool(spec.get("unschedulable")),
        "ready": ready,
        "cpu_milli": min(amounts.get(CPU, 0), MOST),
        "memory_bytes": min(amounts.get(MEMORY, 0), MOST),
        "max_pods": min(amounts.get(PODS, 0), MOST),
        "extended": _rest(amounts),
        "taints": taints,
    }


def pod_columns(
    manifest: Mapping[str, Any],
    profiles: Collection[str] = (DEFAULT_SCHEDULER,),
    requests: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Requests in millicores, bytes and counts; where it is or may go; who owns it.

    Parameters
    ----------
    manifest
        A Pod after admission.
    profiles
        Names of the profiles the cluster's scheduler runs.
    requests
        What the pod requests (`Pod.requests`), where that is known.
    """
    meta = manifest.get("metadata") or {}
    spec = manifest.get("spec") or {}
    status = manifest.get("status") or {}
    amounts = _requests_of(spec, status) if requests is None else requests
    cpu_milli, memory_bytes, extended = amount_columns(amounts)
    owner: Mapping[str, Any] = next(
        (item for item in meta.get("ownerReferences") or () if item.get("controller")), {}
    )
    phase = status.get("phase") or "Pending"
    node_name = spec.get("nodeName") or ""
    return {
        "labels": labels_of(manifest),
        "phase": phase,
        "node_name": node_name,
        "takes_room": bool(node_name) and phase not in FINISHED,
        "nominated_node": status.get("nominatedNodeName") or "",
        "priority": spec.get("priority") or 0,
        "priority_class": spec.get("priorityClassName") or "",
        "scheduler_name": spec.get("schedulerName") or DEFAULT_SCHEDULER,
        "terminating": bool(meta.get("deletionTimestamp")),
        "cpu_milli": cpu_milli,
        "memory_bytes": memory_bytes,
        "extended": extended,
        "owner_kind": owner.get("kind") or "",
        "owner_name": owner.get("name") or "",
        "created_ns": _time(meta.get("creationTimestamp")),
        "waits_for": why_it_waits(manifest, profiles),
    }


def shape_of(cpu_milli: int, memory_bytes: int, extended: Mapping[str, int]) -> Shape:
    """The shape of a pod with these columns."""
    return cpu_milli, memory_bytes, tuple(sorted(extended.items())) if extended else ()


def usual_shapes(
    nodes: Iterable[tuple[str, Mapping[str, str]]], asked: Iterable[tuple[str, str, Shape, int]]
) -> dict[str, Shape]:
    """The usual shape of pods, the most frequent one, in the pool of each node; the smallest of several.

    Parameters
    ----------
    nodes
        Names and labels.
    asked
        Node, kind of the owner (`OF_NODE` do not count), shape, and how many such pods there are.
    """
    pools = {name: group_of(labels) for name, labels in nodes}
    counts: defaultdict[EqualNodes | None, Counter[Shape]] = defaultdict(Counter)
    for node, owner, shape, n in asked:
        if owner not in OF_NODE:
            counts[pools.get(node)][shape] += n
    usual = {pool: min(shapes, key=lambda shape: (-shapes[shape], shape)) for pool, shapes in counts.items()}
    return {name: usual[pool] for name, pool in pools.items() if pool in usual}


def with_uses(nodes: Iterable[Mapping[str, Any]], pods: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of nodes (`node_columns` with a name) with what pods request of them, and the usual shape of their pool.

    Of their labels those are kept that say where and what they are. A pod counts where it is, or where its place is
    ``reserved``.
    """
    nodes = [*nodes]
    used: defaultdict[str, Counter[str]] = defaultdict(Counter)
    asked = []
    for pod in pods:
        node = pod["node_name"] or pod.get("reserved")
        if node and pod["phase"] not in FINISHED:
            cpu, memory, extended = pod["cpu_milli"], pod["memory_bytes"], pod["extended"]
            here = used[node]
            here["cpu"] += cpu
            here["memory"] += memory
            here["pods"] += 1
            for name, amount in extended.items():
                here[name] += amount
            asked.append((node, pod.get("owner_kind", ""), shape_of(cpu, memory, extended), 1))
    usual = {
        name: [cpu, memory, dict(others)]
        for name, (cpu, memory, others) in usual_shapes(
            ((node["name"], node["labels"]) for node in nodes), asked
        ).items()
    }
    return [
        {
            **node,
            "labels": {key: value for key, value in node["labels"].items() if key in PLACE_LABELS},
            "used_cpu_milli": (here := used[node["name"]])["cpu"],
            "used_memory_bytes": here["memory"],
            "n_pods": here["pods"],
            "used_extended": {name: here[name] for name in node["extended"]},
            "usual": usual.get(node["name"]),
        }
        for node in nodes
    ]


_ASKING: Final = ("containers", "initContainers", "resources", "overhead")
_RESIZING: Final = ("containerStatuses", "initContainerStatuses")


def _requests_of(spec: Mapping[str, Any], status: Mapping[str, Any]) -> Mapping[str, int]:
    """What a pod requests; replicas are asked once."""
    asking: dict[str, Any] = {key: spec[key] for key in _ASKING if key in spec}
    resizing: dict[str, Any] = {key: status[key] for key in _RESIZING if key in status}
    # What has another form is for `pod_requests` to refuse.
    resizing["conditions"] = [
        item
        for item in status.get("conditions") or ()
        if not isinstance(item, dict) or item.get("type") == "PodResizePending"
    ]
    try:
        mark = marshal.dumps((asking, resizing), 2)
    except ValueError:
        return pod_requests({"spec": asking, "status": resizing}).requests
    return _requests_read_before(mark)


@lru_cache(maxsize=4096)
def _requests_read_before(mark: bytes) -> Mapping[str, int]:
    asking, resizing = marshal.loads(mark)
    return pod_requests({"spec": asking, "status": resizing}).requests


def why_it_waits(manifest: Mapping[str, Any], profiles: Collection[str]) -> str:
    """Why an unbound pod is never tried here, or a bound one does not start, in words; empty for every other pod.

    What is not simulated never schedules silently.
    """
    spec = manifest.get("spec") or {}
    if spec.get("nodeName"):
        return waits_on_its_node(manifest)
    scheduler = spec.get("schedulerName") or DEFAULT_SCHEDULER
    if scheduler not in profiles:
        return no_such_profile(scheduler, profiles)
    if spec.get("workloadRef"):
        return "pod groups by spec.workloadRef (Kubernetes 1.35) are not simulated"
    return ""


def priority_class_columns(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Value, default flag and preemption policy."""
    return {
        "labels": labels_of(manifest),
        "value": int(manifest.get("value") or 0),
        "global_default": bool(manifest.get("globalDefault")),
        "preemption_policy": manifest.get("preemptionPolicy") or "PreemptLowerPriority",
    }


def budget_columns(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A PodDisruptionBudget's rule and selector, and what its status counts."""
    spec = manifest.get("spec") or {}
    status = manifest.get("status") or {}
    allowed = status.get("disruptionsAllowed")
    condition = condition_of(manifest, DISRUPTION_ALLOWED) or {}
    failed = condition.get("reason") == "SyncFailed"
    message = str(condition.get("message") or "")
    return {
        "labels": labels_of(manifest),
        "min_available": _amount_text(spec.get("minAvailable")),
        "max_unavailable": _amount_text(spec.get("maxUnavailable")),
        "selector": spec.get("selector"),
        "unhealthy_pod_eviction_policy": str(spec.get("unhealthyPodEvictionPolicy") or "")[:24],
        "expected_pods": _count(status.get("expectedPods")),
        "current_healthy": _count(status.get("currentHealthy")),
        "desired_healthy": _count(status.get("desiredHealthy")),
        "disruptions_allowed": _count(allowed),
        "disrupted_pods": sorted(status.get("disruptedPods") or ()),
        "counted": allowed is not None,
        "given": not is_computed(manifest),
        "failure": message.removeprefix(f"{COMPUTED}: ") if failed else "",
    }


def _amount_text(value: Any) -> str:
    return "" if value is None else str(value)[:20]


def _count(value: Any) -> int:
    """A count of a status within 32 bits; 0 for what is none."""
    number = value if isinstance(value, int) and not isinstance(value, bool) else 0
    return max(min(number, 2**31 - 1), -(2**31))


def event_columns(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What `kubectl get events` selects and shows."""
    involved = manifest.get("involvedObject") or {}
    return {
        "labels": labels_of(manifest),
        "type": manifest.get("type") or "Normal",
        "reason": manifest.get("reason") or "",
        "involved_kind": involved.get("kind") or "",
        "involved_namespace": involved.get("namespace") or "",
        "involved_name": involved.get("name") or "",
        "involved_uid": involved.get("uid") or "",
    }


def is_forgotten(event: Mapping[str, Any], now_ns: int) -> bool:
    """Whether an Event was last written longer ago than an API server keeps it."""
    meta, series = event.get("metadata") or {}, event.get("series") or {}
    times = (meta.get("creationTimestamp"), event.get("lastTimestamp"), series.get("lastObservedTime"))
    try:
        return max(parse_time_ns(text) for text in times if text) < now_ns - EVENT_TTL_NS
    except (TypeError, ValueError):
        return False


def profile_names(config: Mapping[str, Any] | None) -> tuple[str, ...]:
    """schedulerName of every profile of a KubeSchedulerConfiguration document."""
    profiles = (config or {}).get("profiles") or [{}]
    return tuple(profile.get("schedulerName") or DEFAULT_SCHEDULER for profile in profiles)


def _time(text: Any) -> int:
    if not isinstance(text, str):
        return 0
    try:
        return parse_time_ns(text)
    except ValueError:
        return 0


# ---- What pods use, from the curves drawn on workloads and pods


@dataclass(frozen=True, slots=True)
class Curve:
    """One resource of a load over time.

    Attributes
    ----------
    container
        Of which it is; empty = the whole workload or pod.
    resource
        ``cpu`` or ``memory``.
    points
        (seconds after the start, cores or bytes), in order of time; straight in between.
    """

    container: str
    resource: str
    points: tuple[tuple[float, float], ...]


def curves_of(load: Load) -> list[Curve]:
    """The curves of a load, cpu first."""
    return [
        Curve(container, resource, tuple((at_ns / 1e9, amount / 1e9) for at_ns, amount in points))
        for (container, resource), points in sorted(
            load.curves.items(), key=lambda item: (item[0][1], item[0][0])
        )
    ]
