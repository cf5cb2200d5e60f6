"""Rows of a cluster. Models hold data and constraints; services write them, selectors read them."""

from playground.clusters.models.change import Change, EarlierCycle
from playground.clusters.models.checkpoint import Checkpoint, QueueSnapshot
from playground.clusters.models.cluster import Cluster
from playground.clusters.models.cycle import Cycle
from playground.clusters.models.draft import Draft
from playground.clusters.models.event import Event
from playground.clusters.models.extender import ExtenderCall, MockExtender
from playground.clusters.models.foreign import ForeignDecision
from playground.clusters.models.job import Job, LanePulse, Turn
from playground.clusters.models.log import LogEntry
from playground.clusters.models.metric import ClusterMetric, Metric
from playground.clusters.models.move import QueueMove
from playground.clusters.models.objects import Manifest, Node, Pod, PodDisruptionBudget, PriorityClass
from playground.clusters.models.question import Question, SeedEnd
from playground.clusters.models.run import Run

__all__ = [
    "Change",
    "Checkpoint",
    "Cluster",
    "ClusterMetric",
    "Cycle",
    "Draft",
    "EarlierCycle",
    "Event",
    "ExtenderCall",
    "ForeignDecision",
    "Job",
    "LanePulse",
    "LogEntry",
    "Manifest",
    "Metric",
    "MockExtender",
    "Node",
    "Pod",
    "PodDisruptionBudget",
    "PriorityClass",
    "Question",
    "QueueMove",
    "QueueSnapshot",
    "Run",
    "SeedEnd",
    "Turn",
]
