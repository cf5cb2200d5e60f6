"""How many pods of each row a selector matches, kept up to date as pods come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scheduler_core.cluster.listers import Listers
    from scheduler_core.cluster.node_table import NodeTable
    from scheduler_core.cluster.pod_table import PodTable


class Matching:
    """Counts of pods by selector and row."""

    def __init__(self, nodes: NodeTable, pods: PodTable, listers: Listers) -> None:
        self.nodes = nodes
        self.pods = pods
        self.listers = listers

    def pod_added(self, pod_id: int, row: int) -> None:
        """A pod came to a row (the tables say so already)."""

    def pod_removed(self, pod_id: int, row: int) -> None:
        """A pod is about to leave a row (the tables still hold it)."""
