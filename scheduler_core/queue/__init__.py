"""The scheduling queue: pods waiting for their turn, for time to pass, or for the cluster to change."""

from scheduler_core.queue.hints import HintMap, build_hint_map
from scheduler_core.queue.moves import Lane, QueueMove
from scheduler_core.queue.queued_pod_info import QueuedPodInfo, priority_sort_key
from scheduler_core.queue.scheduling_queue import Rejection, SchedulingQueue

__all__ = [
    "HintMap",
    "Lane",
    "QueueMove",
    "QueuedPodInfo",
    "Rejection",
    "SchedulingQueue",
    "build_hint_map",
    "priority_sort_key",
]
