"""PrioritySort: higher priority first, then who came first."""

from __future__ import annotations

from typing import Any, ClassVar

from scheduler_core.framework.interface import QueuedPod, QueueSortPlugin


class PrioritySort(QueueSortPlugin):
    """Source: pkg/scheduler/framework/plugins/queuesort/priority_sort.go, v1.34."""

    name: ClassVar[str] = "PrioritySort"
    default_weight: ClassVar[int | None] = 0

    def sort_key(self, queued: QueuedPod) -> Any:
        return -queued.pod.priority, queued.timestamp_ns
