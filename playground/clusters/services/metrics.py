"""Counting what the scheduler does, under upstream's metric names.

A visit counts in memory and adds to the shared rows once, at its end, outside of every transaction that matters:
a killed worker loses some counts and nothing else.

Source: pkg/scheduler/metrics/metrics.go, v1.34 (names, labels, buckets)
"""

import logging
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import DatabaseError, connection
from django.db.models import Model

from playground.clusters.histograms import HISTOGRAMS, bounds_of, labels_text
from playground.clusters.models import Cluster, ClusterMetric, Cycle, Metric
from playground.engine import CycleRecord, DriveResult

logger = logging.getLogger(__name__)

_QUEUES: Final = {
    "activeQ": "active",
    "backoffQ": "backoff",
    "errorBackoffQ": "backoff",
    "unschedulable": "unschedulable",
}
_RESULTS: Final = {
    "bound": "scheduled",
    "expired": "scheduled",
    "unschedulable": "unschedulable",
    "preempting": "unschedulable",
    "error": "error",
}
MANY_ATTEMPTS: Final = 15
"""From here on upstream counts attempts in one label, `15+`."""
Series = tuple[Any, ...]
"""A metric's name, then ``(label, value)`` of each label."""


@dataclass(slots=True)
class _Histogram:
    """Observations by the first bound they are not above, the last one for those above all."""

    by_bound: list[float]
    total: float = 0.0


class Counts:
    """What one visit adds. Texts are made when it is over: most of it happens thousands of times a second."""

    def __init__(self) -> None:
        self._counters: dict[Series, float] = defaultdict(float)
        self._histograms: dict[Series, _Histogram] = {}
        self._points: dict[tuple[str, str, str, str], tuple[tuple[float, ...], _Histogram]] = {}

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        """Raise a counter."""
        self._counters[(name, *labels.items())] += amount

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Put a value in a histogram."""
        histogram = self._histogram(name, labels)
        histogram.by_bound[bisect_left(HISTOGRAMS[name], value)] += 1
        histogram.total += value

    def extension_point(
        self, profile: str, point: str, status: str, duration_s: float, plugin: str = ""
    ) -> None:
        """One run of an extension point, or of one plugin there; this happens dozens of times a cycle."""
        of = (profile, point, status, plugin)
        known = self._points.get(of)
        if known is None:
            labels = {"extension_point": point, "status": status}
            name = "scheduler_framework_extension_point_duration_seconds"
            if plugin:
                name = "scheduler_plugin_execution_duration_seconds"
            labels |= {"plugin": plugin} if plugin else {"profile": profile}
            known = self._points[of] = (HISTOGRAMS[name], self._histogram(name, labels))
        bounds, histogram = known
        histogram.by_bound[bisect_left(bounds, duration_s)] += 1
        histogram.total += duration_s

    def _histogram(self, name: str, labels: Mapping[str, str]) -> _Histogram:
        series = (name, *labels.items())
        histogram = self._histograms.get(series)
        if histogram is None:
            histogram = self._histograms[series] = _Histogram([0] * (len(HISTOGRAMS[name]) + 1))
        return histogram

    def batch(self, cluster: Cluster, result: DriveResult, duration_s: float) -> None:
        """The cycles and queue moves of a batch; the time it took is shared among its cycles alike."""
        for move in result.moves:
            queue = _QUEUES.get(move.target)
            if queue is not None and move.source != move.target and move.event != "SchedulerStarted":
                self.add("scheduler_queue_incoming_pods_total", queue=queue, event=move.event)
        cycles = result.cycles
        decided = [cycle for cycle in cycles if cycle.outcome in _RESULTS]
        for cycle in decided:
            verdict = _RESULTS[cycle.outcome]
            self.add("scheduler_schedule_attempts_total", result=verdict, profile=cycle.profile)
            self.observe(
                "scheduler_scheduling_attempt_duration_seconds",
                duration_s / len(decided),
                result=verdict,
                profile=cycle.profile,
            )
            if verdict == "scheduled":
                self.observe("scheduler_pod_scheduling_attempts", cycle.attempt)
            if cycle.outcome == "preempting":
                self.add("scheduler_preemption_attempts_total")
                self.observe("scheduler_preemption_victims", cycle.n_victims)
            for permit_result, waited_s in cycle.permit_waits:
                self.observe("scheduler_permit_wait_duration_seconds", waited_s, result=permit_result)
        self._since_first_attempts(cluster, [cycle for cycle in decided if cycle.outcome == "bound"])

    def _since_first_attempts(self, cluster: Cluster, bound: Sequence[CycleRecord]) -> None:
        """Virtual seconds from each bound pod's first attempt to its binding; a long batch asks in parts."""
        again: dict[str, list[str]] = defaultdict(list)
        for cycle in bound:
            if cycle.attempt > 1:
                again[cycle.pod_namespace].append(cycle.pod_name)
        first_ns: dict[str, int] = {}
        for namespace, names in again.items():
            of_namespace = Cycle.objects.filter(cluster=cluster, pod_namespace=namespace, attempt=1)
            for start in range(0, len(names), 500):
                first = of_namespace.filter(pod_name__in=names[start : start + 500])
                first_ns.update(first.values_list("pod_uid", "at_ns"))
        for cycle in bound:
            waited_s = max((waited_s for _, waited_s in cycle.permit_waits), default=0.0)
            since_s = (cycle.at_ns - first_ns.get(cycle.pod_uid, cycle.at_ns)) / 1e9 + waited_s
            attempts = str(cycle.attempt) if cycle.attempt < MANY_ATTEMPTS else f"{MANY_ATTEMPTS}+"
            self.observe("scheduler_pod_scheduling_sli_duration_seconds", since_s, attempts=attempts)

    def _rows(self) -> dict[tuple[str, str], float]:
        """Everything counted, as ``(name, labels)`` -> amount; empties the counts."""
        rows: dict[tuple[str, str], float] = defaultdict(float)
        for (name, *labels), amount in self._counters.items():
            rows[(name, labels_text(dict(labels)))] += amount
        for (name, *labels), histogram in self._histograms.items():
            of_series = dict(labels)
            for bound, count in zip(bounds_of(name), histogram.by_bound, strict=True):
                if count:
                    rows[(f"{name}_bucket", labels_text({**of_series, "le": bound}))] += count
            rows[(f"{name}_sum", labels_text(of_series))] += histogram.total
        self._counters.clear()
        self._histograms.clear()
        self._points.clear()
        return rows

    def flush(self, cluster_id: int | None = None) -> None:
        """Add everything to the shared rows, and to those of the cluster it is about, in few statements."""
        # Sorted, so that two workers lock rows in the same order.
        items = sorted(self._rows().items())
        try:
            _add(Metric, "", (), items)
            if items and cluster_id is not None and Cluster.objects.filter(pk=cluster_id).exists():
                _add(ClusterMetric, "cluster_id, ", (cluster_id,), items)
        except DatabaseError:
            logger.exception("counts of %d metrics were lost", len(items))


def _add(
    model: type[Model], keys: str, of: tuple[int, ...], items: Sequence[tuple[tuple[str, str], float]]
) -> None:
    table = connection.ops.quote_name(model._meta.db_table)
    places = f"({','.join(['%s'] * (len(of) + 3))})"
    for start in range(0, len(items), 200):
        part = items[start : start + 200]
        parameters: list[int | str | float] = []
        for (name, labels), value in part:
            parameters += (*of, name, labels, value)
        with connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO {table} ({keys}name, labels, value) VALUES {','.join([places] * len(part))} "
                f"ON CONFLICT ({keys}name, labels) DO UPDATE SET value = {table}.value + EXCLUDED.value",
                parameters,
            )
