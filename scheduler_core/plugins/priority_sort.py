"""PrioritySort: higher priority first, then who came first."""

from __future__ import annotations

from typing import Any, ClassVar

from scheduler_core.framework.interface import QueueSortPlugin
from scheduler_core.objects.pod import Pod


class PrioritySort(QueueSortPlugin):
    """Source: pkg/scheduler/framework/plugins/queuesort/priority_sort.go, v1.34."""

    name: ClassVar[str] = "PrioritySort"

    def sort_key(self, pod: Pod, timestamp_ns: int) -> Any:
        return -pod.priority, timestamp_ns
