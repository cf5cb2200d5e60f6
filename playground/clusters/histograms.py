"""What histograms of metrics look like: their buckets and labels, for those who count and those who show.

Source: pkg/scheduler/metrics/metrics.go, v1.34 (names, labels, buckets)
"""

from collections.abc import Mapping
from typing import Final


def _exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    return tuple(start * factor**power for power in range(count))


HISTOGRAMS: Final[Mapping[str, tuple[float, ...]]] = {
    "scheduler_scheduling_attempt_duration_seconds": _exponential(0.001, 2, 15),
    "scheduler_framework_extension_point_duration_seconds": _exponential(0.0001, 2, 12),
    "scheduler_plugin_execution_duration_seconds": _exponential(0.00001, 1.5, 20),
    "scheduler_pod_scheduling_attempts": _exponential(1, 2, 5),
    "scheduler_preemption_victims": _exponential(1, 2, 7),
    "scheduler_permit_wait_duration_seconds": _exponential(0.001, 2, 15),
    "scheduler_pod_scheduling_sli_duration_seconds": _exponential(0.01, 2, 20),
}


def labels_text(labels: Mapping[str, str]) -> str:
    """Labels in the text format, sorted by name."""
    escaped = {
        name: value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
        for name, value in labels.items()
    }
    return ",".join(f'{name}="{escaped[name]}"' for name in sorted(escaped))[:300]


def bounds_of(histogram: str) -> tuple[str, ...]:
    """The bounds of its buckets as texts, ending with `+Inf`."""
    return (*(f"{bound:.6g}" for bound in HISTOGRAMS[histogram]), "+Inf")
