"""The types of rows, for annotations of pages and APIs: names for a type checker, any at run time.

Selectors find rows and services write them; what is handed one says so by its type, and can do no more with it
(docs/decisions/0014-rows-are-handed-out.md).
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playground.clusters.models import Cluster as Cluster
    from playground.clusters.models import ControllerRecord as ControllerRecord
    from playground.clusters.models import Cycle as Cycle
    from playground.clusters.models import Draft as Draft
    from playground.clusters.models import Event as Event
    from playground.clusters.models import ExtenderCall as ExtenderCall
    from playground.clusters.models import FollowedCluster as FollowedCluster
    from playground.clusters.models import ForeignDecision as ForeignDecision
    from playground.clusters.models import LogEntry as LogEntry
    from playground.clusters.models import MockExtender as MockExtender
    from playground.clusters.models import Node as Node
    from playground.clusters.models import Pod as Pod
    from playground.clusters.models import PodDisruptionBudget as PodDisruptionBudget
    from playground.clusters.models import Question as Question
    from playground.clusters.models import QueueMove as QueueMove
    from playground.clusters.models import Run as Run
else:

    def __getattr__(name: str) -> Any:
        """A type's name at run time, where annotations are not looked at: it reaches no table."""
        return Any
