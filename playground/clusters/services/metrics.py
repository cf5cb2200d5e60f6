"""Counting what the scheduler does, under upstream's metric names.

A visit counts in memory and adds to the shared rows once, at its end, outside of every transaction that matters:
a killed worker loses some counts and nothing else.

Source: pkg/scheduler/metrics/metrics.go, v1.34 (names, labels, buckets)
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from django.db import DatabaseError, connection

from playground.clusters.models import Metric
from playground.engine import CycleRecord

logger = logging.getLogger(__name__)


def _exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    return tuple(start * factor**power for power in range(count))


HISTOGRAMS: Final[Mapping[str, tuple[float, ...]]] = {
    "scheduler_scheduling_attempt_duration_seconds": _exponential(0.001, 2, 15),
    "scheduler_framework_extension_point_duration_seconds": _exponential(0.0001, 2, 12),
    "scheduler_pod_scheduling_attempts": _exponential(1, 2, 5),
    "scheduler_preemption_victims": _exponential(1, 2, 7),
    "scheduler_permit_wait_duration_seconds": _exponential(0.001, 2, 15),
}
_RESULTS: Final = {
    "bound": "scheduled",
    "unschedulable": "unschedulable",
    "preempting": "unschedulable",
    "error": "error",
}
Key = tuple[str, str]


def labels_text(labels: Mapping[str, str]) -> str:
    """Labels in the text format, sorted by name."""
    escaped = {
        name: value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
        for name, value in labels.items()
    }
    return ",".join(f'{name}="{escaped[name]}"' for name in sorted(escaped))[:300]


class Counts:
    """What one visit adds."""

    def __init__(self) -> None:
        self._added: dict[Key, float] = defaultdict(float)

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        """Raise a counter."""
        self._added[(name, labels_text(labels))] += amount

    def observe(self, name: str, value: float, times: int = 1, **labels: str) -> None:
        """Put a value in a histogram."""
        for bound in HISTOGRAMS[name]:
            if value <= bound:
                self.add(f"{name}_bucket", times, le=f"{bound:.6g}", **labels)
        self.add(f"{name}_bucket", times, le="+Inf", **labels)
        self.add(f"{name}_sum", value * times, **labels)
        self.add(f"{name}_count", times, **labels)

    def extension_point(self, profile: str, point: str, status: str, duration_s: float) -> None:
        """One run of an extension point."""
        self.observe(
            "scheduler_framework_extension_point_duration_seconds",
            duration_s,
            extension_point=point,
            status=status,
            profile=profile,
        )

    def batch(self, cycles: Iterable[CycleRecord], duration_s: float) -> None:
        """The cycles of a batch; the time it took is shared among them alike."""
        decided = [cycle for cycle in cycles if cycle.outcome in _RESULTS]
        for cycle in decided:
            result = _RESULTS[cycle.outcome]
            self.add("scheduler_schedule_attempts_total", result=result, profile=cycle.profile)
            self.observe(
                "scheduler_scheduling_attempt_duration_seconds",
                duration_s / len(decided),
                result=result,
                profile=cycle.profile,
            )
            if result == "scheduled":
                self.observe("scheduler_pod_scheduling_attempts", cycle.attempt)
            if cycle.outcome == "preempting":
                self.add("scheduler_preemption_attempts_total")
                self.observe("scheduler_preemption_victims", cycle.n_victims)
            for permit_result, waited_s in cycle.permit_waits:
                self.observe("scheduler_permit_wait_duration_seconds", waited_s, result=permit_result)

    def flush(self) -> None:
        """Add everything to the shared rows, in one statement."""
        added, self._added = self._added, defaultdict(float)
        # Sorted, so that two workers lock rows in the same order.
        items = sorted(added.items())
        table = connection.ops.quote_name(Metric._meta.db_table)
        for start in range(0, len(items), 200):
            part = items[start : start + 200]
            values = ",".join(["(%s,%s,%s)"] * len(part))
            parameters = [field for (name, labels), value in part for field in (name, labels, value)]
            try:
                with connection.cursor() as cursor:
                    cursor.execute(
                        f"INSERT INTO {table} (name, labels, value) VALUES {values} "
                        f"ON CONFLICT (name, labels) DO UPDATE SET value = {table}.value + EXCLUDED.value",
                        parameters,
                    )
            except DatabaseError:
                logger.exception("counts of %d metrics were lost", len(part))
                return
