"""The text of /metrics, in the Prometheus exposition format under upstream's names."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from django.db.models import Count, Q

from playground.clusters.histograms import HISTOGRAMS, bounds_of, labels_text
from playground.clusters.models import Cluster, ClusterMetric, Metric, Node, Pod, QueueSnapshot, Run

HELP: Final = {
    "scheduler_schedule_attempts_total": "Number of attempts to schedule pods, by the result.",
    "scheduler_scheduling_attempt_duration_seconds": (
        "Scheduling attempt latency in seconds; the attempts of a batch share its time alike."
    ),
    "scheduler_framework_extension_point_duration_seconds": (
        "Latency for running all plugins of a specific extension point."
    ),
    "scheduler_plugin_execution_duration_seconds": (
        "Duration for running a plugin at a specific extension point."
    ),
    "scheduler_pod_scheduling_attempts": "Number of attempts to successfully schedule a pod.",
    "scheduler_preemption_attempts_total": "Total preemption attempts in the clusters till now.",
    "scheduler_preemption_victims": "Number of selected preemption victims.",
    "scheduler_permit_wait_duration_seconds": "Duration of waiting on permit, in virtual seconds.",
    "scheduler_pod_scheduling_sli_duration_seconds": (
        "E2e latency for a pod being scheduled, from the first scheduling attempt, in virtual seconds."
    ),
    "scheduler_queue_incoming_pods_total": (
        "Number of pods added to scheduling queues by event and queue type."
    ),
    "scheduler_unschedulable_pods": (
        "The number of unschedulable pods broken down by plugin name. A pod will increment the gauge for all "
        "plugins that caused it to not schedule and so this metric has meaning only when broken down by plugin."
    ),
    "scheduler_pending_pods": "Number of pending pods, by the queue type.",
    "scheduler_cache_size": "Number of nodes and pods (assumed pods included) in the scheduler cache.",
    "playground_clusters": "Number of clusters, by what their engine is at.",
    "playground_open_runs": "Number of runs that are queued or running.",
    "playground_task_failures_total": "Number of tasks that failed, by task; each is in the log.",
    "playground_database_up": "1 if the database answers.",
    "playground_broker_up": "1 if the broker answers.",
    "playground_disk_free_bytes": "Bytes free where the data folder is.",
    "playground_disk_size_bytes": "Bytes there are where the data folder is.",
    "playground_oldest_wakeup_age_seconds": "How long the oldest work of a lane waits that no worker is at.",
    "playground_workers": "Number of workers through which a wake-up of a lane went lately.",
    "playground_leases": "Number of clusters a worker is at; expired if it did not renew in time.",
}
_BOUND: Final = re.compile(r'(^|,)le="([^"]*)"')
_QUEUES: Final = ("active", "backoff", "unschedulable", "gated")


def metrics_text(cluster: Cluster | None = None) -> str:
    """Everything the scheduler did, over all clusters (seven queries) or of one (six)."""
    of: dict[str, Any] = {} if cluster is None else {"cluster": cluster}
    rows = Metric.objects.all() if cluster is None else ClusterMetric.objects.filter(cluster=cluster)
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
    rejectors: Counter[str] = Counter()
    for of_cluster in QueueSnapshot.objects.filter(**of).values_list("head__rejectors", flat=True):
        rejectors.update(of_cluster or {})
    lines += gauge(
        "scheduler_unschedulable_pods",
        ((labels_text({"plugin": plugin}), n) for plugin, n in sorted(rejectors.items())),
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
