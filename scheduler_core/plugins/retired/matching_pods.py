"""How many pods of a namespace a selector matches on each row, terminating ones left out.

Source: pkg/scheduler/framework/plugins/selectorspread/selector_spread.go countMatchingPods, v1.20
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.node_table import NodeColumns, Rows
from scheduler_core.objects.labels import LabelSelector


def count_matching_pods(
    namespace: str, selector: LabelSelector, nodes: NodeColumns, rows: Rows
) -> NDArray[np.int64]:
    """Counts aligned with `rows` of the cluster; a selector for everything counts nothing, as upstream."""
    counts = np.zeros(len(rows), np.int64)
    if selector.is_everything or not len(rows):
        return counts
    pods = nodes.pods
    classes = nodes.vocabulary.pod_classes.values
    matched = np.fromiter(
        (space == namespace and selector.matches(dict(labels)) for space, labels in classes),
        np.bool_,
        len(classes),
    )
    if not matched.any():
        return counts
    placed = np.flatnonzero(pods.row >= 0)
    placed = placed[matched[pods.class_id[placed]] & ~pods.terminating[placed]]
    by_row = np.bincount(pods.row[placed], minlength=int(rows.max()) + 1)
    return by_row[rows].astype(np.int64)
