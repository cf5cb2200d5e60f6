"""Everything that reads. Each function returns ready data in a fixed number of SQL queries."""

from playground.clusters.access import check_role, get_cluster, get_parent, role_in
from playground.clusters.selectors.cycles import (
    CyclePage,
    Explanation,
    cycle_explanation,
    cycles,
    neighbours,
)
from playground.clusters.selectors.objects import (
    counted,
    current_run,
    get_mock_extender,
    get_object,
    get_run,
    is_expired,
    list_mock_extenders,
    list_objects,
    list_runs,
    log_after,
    n_objects_after,
    node_addresses,
    selected_objects,
)
from playground.clusters.selectors.overview import (
    ClusterSummary,
    branches_overview,
    cluster_summary,
    clusters_overview,
    version_token,
)
from playground.clusters.selectors.queue import QueueItem, queue_view
from playground.clusters.selectors.story import PodStory, StoryStep, pod_story, story_steps

__all__ = [
    "ClusterSummary",
    "CyclePage",
    "Explanation",
    "PodStory",
    "QueueItem",
    "StoryStep",
    "branches_overview",
    "check_role",
    "cluster_summary",
    "clusters_overview",
    "counted",
    "current_run",
    "cycle_explanation",
    "cycles",
    "get_cluster",
    "get_mock_extender",
    "get_object",
    "get_parent",
    "get_run",
    "is_expired",
    "list_mock_extenders",
    "list_objects",
    "list_runs",
    "log_after",
    "n_objects_after",
    "neighbours",
    "node_addresses",
    "pod_story",
    "queue_view",
    "role_in",
    "selected_objects",
    "story_steps",
    "version_token",
]
