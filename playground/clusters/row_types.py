"""The types of rows, for annotations of pages and APIs: names for a type checker, which are not there at run time.

Selectors find rows and services write them; what is handed one says so by its type, and can do no more with it
(docs/decisions/0014-rows-are-handed-out.md).
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playground.clusters.models import (
        Cluster,
        Cycle,
        Draft,
        Event,
        ForeignDecision,
        LogEntry,
        MockExtender,
        Node,
        Pod,
        PodDisruptionBudget,
        Question,
        QueueMove,
        Run,
    )

__all__ = [
    "Cluster",
    "Cycle",
    "Draft",
    "Event",
    "ForeignDecision",
    "LogEntry",
    "MockExtender",
    "Node",
    "Pod",
    "PodDisruptionBudget",
    "Question",
    "QueueMove",
    "Run",
]
