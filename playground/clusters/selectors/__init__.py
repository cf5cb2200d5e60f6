"""Everything that reads. Each function returns ready data in a fixed number of SQL queries."""

from playground.clusters.selectors.board import (
    Bar,
    Board,
    HeatCell,
    Lane,
    NodeCard,
    PodSegment,
    board,
    node_detail,
)
from playground.clusters.selectors.cycles import (
    CyclePage,
    Explanation,
    cycle_explanation,
    cycles,
    neighbours,
)
from playground.clusters.selectors.objects import (
    check_role,
    get_cluster,
    get_mock_extender,
    get_object,
    get_run,
    list_mock_extenders,
    list_objects,
    list_runs,
    log_after,
)
from playground.clusters.selectors.overview import (
    ClusterSummary,
    cluster_summary,
    clusters_overview,
    role_in,
    version_token,
)
from playground.clusters.selectors.pods import PodStory, StoryItem, pod_story
from playground.clusters.selectors.queue import QueueItem, queue_view

__all__ = [
    "Bar",
    "Board",
    "ClusterSummary",
    "CyclePage",
    "Explanation",
    "HeatCell",
    "Lane",
    "NodeCard",
    "PodSegment",
    "PodStory",
    "QueueItem",
    "StoryItem",
    "board",
    "check_role",
    "cluster_summary",
    "clusters_overview",
    "cycle_explanation",
    "cycles",
    "get_cluster",
    "get_mock_extender",
    "get_object",
    "get_run",
    "list_mock_extenders",
    "list_objects",
    "list_runs",
    "log_after",
    "neighbours",
    "node_detail",
    "pod_story",
    "queue_view",
    "role_in",
    "version_token",
]
