"""Metrics: what a visit counts, the tables they are added to, and the site's health in figures."""

import logging
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, lru_cache
from itertools import chain
from typing import Any, Final

from django.db import DatabaseError, connection
from django.db.models import Count, F, Min, Q
from django.utils import timezone

from playground.clusters import lanes
from playground.clusters.models import Cluster, Cycle, Job, LanePulse, Metric, Node, Pod, QueueSnapshot, Run
from playground.engine.batch import DriveResult
from playground.engine.entries import CycleRecord
from scheduler_core.releases import release_from
from scheduler_core.schema.tables import table_beside

logger = logging.getLogger(__name__)


_TABLES: Final = table_beside(__package__, "metrics.yaml")
HELP: Final[Mapping[str, str]] = _TABLES["help"]
HISTOGRAMS: Final[Mapping[str, tuple[float, ...]]] = {
    name: tuple(of["first"] * of["factor"] ** power for power in range(of["count"]))
    for name, of in _TABLES["histograms"].items()
}


@lru_cache(maxsize=4096)
def labels_text(labels: tuple[tuple[str, str], ...]) -> str:
    """Labels in the text format, sorted by name."""
    escaped = [
        (name, value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n"))
        for name, value in sorted(labels)
    ]
    return ",".join([f'{name}="{value}"' for name, value in escaped])[:300]


@cache
def bounds_of(histogram: str) -> tuple[str, ...]:
    """The bounds of its buckets as texts, ending with `+Inf`."""
    return (*(f"{bound:.6g}" for bound in HISTOGRAMS[histogram]), "+Inf")


# ---- Counting what the scheduler does, under upstream's metric names
#
# A visit counts in memory and adds to the shared rows once, at its end, outside of every transaction that matters:
# a killed worker loses some counts and nothing else.
#
# Source: pkg/scheduler/metrics/metrics.go, v1.34 (names, labels, buckets)

_QUEUE_OF_LANE: Final[Mapping[str, str]] = _TABLES["queues"]
_RESULTS: Final[Mapping[str, str]] = _TABLES["results"]
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
        has_entities = release_from(cluster.release).has("EntityMetrics")
        for move in result.moves:
            queue = _QUEUE_OF_LANE.get(move.target)
            if queue is not None and move.source != move.target and move.event != "SchedulerStarted":
                self.add("scheduler_queue_incoming_pods_total", queue=queue, event=move.event)
                if has_entities:
                    entities = "scheduler_queue_incoming_entities_total"
                    self.add(entities, queue=queue, event=move.event, type="pod")
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
            rows[(name, labels_text(tuple(labels)))] += amount
        for (name, *labels), histogram in self._histograms.items():
            for bound, count in zip(bounds_of(name), histogram.by_bound, strict=True):
                if count:
                    rows[(f"{name}_bucket", labels_text((*labels, ("le", bound))))] += count
            rows[(f"{name}_sum", labels_text(tuple(labels)))] += histogram.total
        self._counters.clear()
        self._histograms.clear()
        self._points.clear()
        return rows

    def flush(self, cluster_id: int | None = None) -> None:
        """Add everything to the shared rows, and to those of the cluster it is about, in few statements."""
        # Sorted, so that two workers lock rows in the same order.
        items = sorted(self._rows().items())
        try:
            _add(None, "(name, labels) WHERE cluster_id IS NULL", items)
            if items and cluster_id is not None and Cluster.objects.filter(pk=cluster_id).exists():
                _add(cluster_id, "(cluster_id, name, labels)", items)
        except DatabaseError:
            logger.exception("counts of %d metrics were lost", len(items))


def _add(cluster_id: int | None, once: str, items: Sequence[tuple[tuple[str, str], float]]) -> None:
    table = connection.ops.quote_name(Metric._meta.db_table)
    for start in range(0, len(items), 200):
        rows = [(cluster_id, *key, value) for key, value in items[start : start + 200]]
        with connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO {table} (cluster_id, name, labels, value)"
                f" VALUES {','.join(['(%s,%s,%s,%s)'] * len(rows))}"
                f" ON CONFLICT {once} DO UPDATE SET value = {table}.value + EXCLUDED.value",
                [*chain(*rows)],
            )


# ---- The text of /metrics, in the Prometheus exposition format under upstream's names

_BOUND: Final = re.compile(r'(^|,)le="([^"]*)"')
_QUEUES: Final = ("active", "backoff", "unschedulable", "gated")


def metrics_text(cluster: Cluster | None = None) -> str:
    """Everything the scheduler did, over all clusters (seven queries) or of one (six)."""
    of: dict[str, Any] = {} if cluster is None else {"cluster": cluster}
    rows = Metric.objects.filter(cluster=cluster)
    lines: list[str] = []
    stored: dict[str, list[tuple[str, str, float]]] = {}
    for name, labels, value in rows.order_by("name", "labels").values_list("name", "labels", "value"):
        family = next((known for known in HISTOGRAMS if name.startswith(f"{known}_")), name)
        stored.setdefault(family, []).append((name, labels, value))
    for family in sorted({*HISTOGRAMS, *stored}):
        samples = stored.get(family, [])
        if family in HISTOGRAMS:
            lines += [*_head(family, "histogram"), *_histogram(family, samples)]
        else:
            lines += [*_head(family, "counter"), *(_sample(*sample) for sample in samples)]
    lanes = dict(
        Pod.objects.filter(**of)
        .exclude(lane="")
        .order_by()
        .values_list("lane")
        .annotate(n=Count("pk"))
        .values_list("lane", "n")
    )
    lines += gauge("scheduler_pending_pods", ((f'queue="{lane}"', lanes.get(lane, 0)) for lane in _QUEUES))
    if cluster is None or release_from(cluster.release).has("EntityMetrics"):
        entities = ((f'queue="{lane}",type="pod"', lanes.get(lane, 0)) for lane in _QUEUES)
        lines += gauge("scheduler_queued_entities", entities)
    rejectors: Counter[str] = Counter()
    for of_cluster in QueueSnapshot.objects.filter(**of).values_list("head__rejectors", flat=True):
        rejectors.update(of_cluster or {})
    lines += gauge(
        "scheduler_unschedulable_pods",
        ((labels_text((("plugin", plugin),)), n) for plugin, n in sorted(rejectors.items())),
    )
    n_nodes = Node.objects.filter(**of).count()
    n_pods = Pod.objects.filter(**of).exclude(node_name="").count()
    lines += gauge("scheduler_cache_size", (('type="nodes"', n_nodes), ('type="pods"', n_pods)))
    if cluster is None:
        lines += _clusters()
    n_runs = Run.objects.filter(state__in=Run.OPEN, **of).count()
    lines += gauge("playground_open_runs", (("", n_runs),))
    return "\n".join(lines) + "\n"


def _clusters() -> list[str]:
    clusters = Cluster.objects.aggregate(
        parked=Count("pk", filter=~Q(parked_reason="")),
        driven=Count("pk", filter=~Q(lease_holder="")),
        all=Count("pk"),
    )
    return gauge(
        "playground_clusters",
        (
            ('state="driven"', clusters["driven"]),
            ('state="idle"', clusters["all"] - clusters["driven"] - clusters["parked"]),
            ('state="parked"', clusters["parked"]),
        ),
    )


def _head(name: str, kind: str) -> list[str]:
    return [f"# HELP {name} {HELP.get(name, name)}", f"# TYPE {name} {kind}"]


def gauge(name: str, samples: Iterable[tuple[str, float]]) -> list[str]:
    """The lines of one gauge: (labels, value) of each sample."""
    return [*_head(name, "gauge"), *(_sample(name, labels, value) for labels, value in samples)]


def _sample(name: str, labels: str, value: float) -> str:
    number = str(int(value)) if float(value).is_integer() else repr(value)
    return f"{name}{{{labels}}} {number}" if labels else f"{name} {number}"


def _histogram(name: str, rows: Iterable[tuple[str, str, float]]) -> list[str]:
    """The lines of a histogram: of each series all buckets, rising, then count and sum."""
    buckets: dict[str, dict[str, float]] = {}
    sums: dict[str, float] = {}
    for row_name, labels, value in rows:
        if row_name == f"{name}_sum":
            sums[labels] = value
        else:
            found = _BOUND.search(labels)
            assert found is not None
            series = f"{labels[: found.start(2)]}{labels[found.end(2) :]}"
            buckets.setdefault(series, {})[found[2]] = value
    lines = []
    for series in sorted(buckets):
        total = 0.0
        for bound in bounds_of(name):
            total += buckets[series].get(bound, 0)
            lines.append(_sample(f"{name}_bucket", _BOUND.sub(rf'\1le="{bound}"', series), total))
        labels = _BOUND.sub("", series).removeprefix(",")
        lines.append(_sample(f"{name}_count", labels, total))
        lines.append(_sample(f"{name}_sum", labels, sums.get(labels, 0)))
    return lines


# ---- What tells whether the whole site does its work, as rows say it: for metrics and alerts

MOST_LOOKED_AT: Final = 1000


def site_gauges() -> list[str]:
    """How long the oldest work of each lane waits that no worker is at, its workers, and the leases. Four queries."""
    wall = timezone.now()
    workers = dict(
        LanePulse.objects.filter(passed_at__gte=wall - timedelta(seconds=lanes.SILENT_S))
        .values_list("lane")
        .annotate(n=Count("worker"))
        .values_list("lane", "n")
    )
    leases = Cluster.objects.exclude(lease_holder="").aggregate(
        held=Count("pk", filter=Q(lease_expires__gte=wall)),
        expired=Count("pk", filter=Q(lease_expires__lt=wall)),
    )
    since = {lanes.DECIDE: _decisions(wall), lanes.ASK: [], lanes.MAKE: []}
    waiting = Job.objects.filter(
        Q(claimed_until__isnull=True) | Q(claimed_until__lt=wall),
        Q(not_before__isnull=True) | Q(not_before__lte=wall),
    )
    for lane, *times in waiting.order_by("created").values_list("lane", "created", "not_before", "turn_at")[
        :MOST_LOOKED_AT
    ]:
        since.setdefault(lane, []).append(max(time for time in times if time is not None))
    ages = (
        (lane, max(0.0, (wall - min(times, default=wall)).total_seconds())) for lane, times in since.items()
    )
    return [
        *gauge("playground_oldest_wakeup_age_seconds", ((f'lane="{lane}"', age_s) for lane, age_s in ages)),
        *gauge("playground_workers", ((f'lane="{lane}"', workers.get(lane, 0)) for lane in lanes.LANES)),
        *gauge("playground_leases", ((f'state="{state}"', n) for state, n in leases.items())),
    ]


def _decisions(wall: datetime) -> list[datetime]:
    """Since when each cluster that wants cycles waits that no worker has: a run is open, or pods can be tried at 1x."""
    rows = (
        Cluster.objects.filter(
            Q(pk__in=Run.objects.filter(state__in=Run.OPEN).values("cluster_id"))
            | Q(clock_mode=Cluster.ClockMode.REALTIME, next_deadline_ns__lte=F("now_ns")),
            Q(lease_expires__isnull=True) | Q(lease_expires__lt=wall),
            parked_reason="",
        )
        .annotate(asked=Min("runs__created", filter=Q(runs__state__in=Run.OPEN)))
        .values_list("created", "driven_at", "asked")[:MOST_LOOKED_AT]
    )
    return [
        max((time for time in (driven_at, asked) if time is not None), default=created)
        for created, driven_at, asked in rows
    ]
