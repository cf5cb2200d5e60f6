"""How many replicas a metric asks for.

Source: pkg/controller/podautoscaler/replica_calculator.go, v1.34
Differs: amounts are in nano units, not thousandths; a metric is as old as the moment and its window 15 s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scheduler_core.clock import SECOND_NS
from scheduler_core.objects.fields import parse_time_ns
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.quantity import quantity_from
from scheduler_core.sim.load import Use
from scheduler_core.sim.pod_index import condition_of

CPU_INITIALIZATION_NS = 300 * SECOND_NS
INITIAL_READINESS_NS = 30 * SECOND_NS
WINDOW_NS = 15 * SECOND_NS
Tolerance = tuple[float, float]
"""(down, up)"""


class MetricError(ValueError):
    """A metric says nothing; in upstream's words."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a metric asks for.

    Attributes
    ----------
    replicas : int
    utilization : int or None
        In percent of the requests, where that is the target.
    average : int
        Use of a pod, nano units.
    """

    replicas: int
    utilization: int | None
    average: int


def wanted_replicas(
    pods: list[Pod],
    used: Mapping[tuple[str, str], Use],
    *,
    resource: str,
    container: str,
    utilization: int | None,
    average: int,
    current: int,
    tolerance: Tolerance,
    now_ns: int,
) -> Wanted:
    """How many replicas a resource metric asks for.

    Parameters
    ----------
    pods
        Those the scale's selector matches.
    container
        Of which the metric is; empty is the whole pod.
    utilization, average
        The target: percent of the requests, or an amount in nano units.

    Raises
    ------
    MetricError
    """
    if not used:
        raise MetricError(
            f"unable to get metrics for resource {resource}: no metrics returned from resource metrics API"
        )
    if not pods:
        raise MetricError("no pods returned by selector while calculating replica count")
    metrics = {
        pod.key: _use(used[(pod.namespace, pod.name)], resource, container)
        for pod in pods
        if (pod.namespace, pod.name) in used
    }
    n_ready, unready, missing = 0, [], []
    for pod in pods:
        if pod.is_terminating or pod.phase == "Failed":
            metrics.pop(pod.key, None)
        elif pod.phase in ("", "Pending"):
            unready.append(pod)
        elif pod.key not in metrics:
            missing.append(pod)
        elif resource == "cpu" and not _counts(pod, now_ns):
            unready.append(pod)
        else:
            n_ready += 1
    for pod in unready:
        metrics.pop(pod.key, None)
    requests: dict[str, int] = {}
    if utilization is not None:
        requests = {pod.key: _requests(pod, resource, container) for pod in pods}
    if not metrics:
        raise MetricError("did not receive metrics for targeted pods (pods might be unready)")

    def ratio() -> tuple[float, int | None]:
        if utilization is None:
            return sum(metrics.values()) // len(metrics) / average, None
        percent = sum(metrics.values()) * 100 // sum(requests[key] for key in metrics)
        return percent / utilization, percent

    usage_ratio, percent = ratio()
    mean = sum(metrics.values()) // len(metrics)
    up_with_unready = bool(unready) and usage_ratio > 1
    if not up_with_unready and not missing:
        if _within(usage_ratio, tolerance):
            return Wanted(current, percent, mean)
        return Wanted(math.ceil(usage_ratio * n_ready), percent, mean)
    for pod in missing:
        if usage_ratio < 1:
            share = average if utilization is None else requests[pod.key] * max(100, utilization) // 100
            metrics[pod.key] = share
        elif usage_ratio > 1:
            metrics[pod.key] = 0
    if up_with_unready:
        metrics |= {pod.key: 0 for pod in unready}
    new_ratio, _ = ratio()
    turned = (usage_ratio < 1 < new_ratio) or (usage_ratio > 1 > new_ratio)
    replicas = math.ceil(new_ratio * len(metrics))
    backwards = (new_ratio < 1 and replicas > current) or (new_ratio > 1 and replicas < current)
    if _within(new_ratio, tolerance) or turned or backwards:
        replicas = current
    return Wanted(replicas, percent, mean)


def _within(ratio: float, tolerance: Tolerance) -> bool:
    return 1 - tolerance[0] <= ratio <= 1 + tolerance[1]


def _use(use: Use, resource: str, container: str) -> int:
    if container:
        return use.get(container, {}).get(resource, 0)
    return sum(amounts.get(resource, 0) for amounts in use.values())


def _requests(pod: Pod, resource: str, container: str) -> int:
    total = 0
    for item in pod.manifest["spec"].get("containers") or ():
        name = str(item.get("name", ""))
        if container and name != container:
            continue
        written = ((item.get("resources") or {}).get("requests") or {}).get(resource)
        if written is None:
            raise MetricError(f"missing request for {resource} in container {name} of Pod {pod.name}")
        total += quantity_from(written).nano_value()
    if not total:
        raise MetricError(f"missing request for {resource} in container {container} of Pod {pod.name}")
    return total


def _counts(pod: Pod, now_ns: int) -> bool:
    """Whether a pod's cpu is more than that of its start."""
    condition: Mapping[str, Any] | None = condition_of(pod.manifest, "Ready")
    if condition is None or pod.start_ns is None:
        return False
    ready = condition.get("status") == "True"
    since_ns = (
        parse_time_ns(str(condition["lastTransitionTime"])) if condition.get("lastTransitionTime") else 0
    )
    if pod.start_ns + CPU_INITIALIZATION_NS > now_ns:
        return ready and now_ns >= since_ns + WINDOW_NS
    return ready or pod.start_ns + INITIAL_READINESS_NS <= since_ns
