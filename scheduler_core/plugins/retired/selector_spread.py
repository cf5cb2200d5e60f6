"""SelectorSpread: pods of one service or controller go to different nodes and zones."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.default_selectors import DefaultSelectors
from scheduler_core.cluster.node_table import NodeColumns, Rows
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.framework.interface import (
    MAX_NODE_SCORE,
    Handle,
    PreScorePlugin,
    PreScoreResult,
    ScorePlugin,
    Scores,
)
from scheduler_core.objects.labels import EVERYTHING, LabelSelector
from scheduler_core.objects.node import LABEL_REGION, LABEL_REGION_BETA, LABEL_ZONE, LABEL_ZONE_BETA
from scheduler_core.objects.pod import Pod
from scheduler_core.plugins.retired import count_matching_pods

_ZONE_WEIGHTING = 2.0 / 3.0


class SelectorSpread(PreScorePlugin[LabelSelector], ScorePlugin[LabelSelector]):
    """Scores rows by how few pods of the pod's services and controllers they hold, two thirds by zone.

    A pod with topology spread constraints of its own gets 0 everywhere.

    Source: pkg/scheduler/framework/plugins/selectorspread/selector_spread.go, v1.20
    """

    name: ClassVar[str] = "SelectorSpread"
    normalizes: ClassVar[bool] = True

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self._selectors: DefaultSelectors | None = None

    def pre_score(self, pod: Pod, snapshot: Snapshot, rows: Rows) -> PreScoreResult[LabelSelector]:
        if pod.topology_spread:
            return PreScoreResult(state=EVERYTHING)
        if self._selectors is None:
            self._selectors = DefaultSelectors(snapshot.listers)
        return PreScoreResult(state=self._selectors.of(pod))

    def score(self, state: LabelSelector, pod: Pod, nodes: NodeColumns, rows: Rows) -> Scores:
        if pod.topology_spread:
            return np.zeros(len(rows), np.int64)
        return count_matching_pods(pod.namespace, state, nodes, rows)

    def normalize(
        self, state: LabelSelector, pod: Pod, nodes: NodeColumns, rows: Rows, scores: Scores
    ) -> Scores:
        if pod.topology_spread:
            return scores
        most = int(scores.max()) if len(scores) else 0
        result = np.full(len(scores), float(MAX_NODE_SCORE))
        if most > 0:
            result = float(MAX_NODE_SCORE) * ((most - scores).astype(np.float64) / float(most))
        zones = _zone_ids(nodes, rows)
        zoned = zones >= 0
        if zoned.any():
            by_zone = np.bincount(zones[zoned], weights=scores[zoned]).astype(np.int64)
            most_in_zone = int(by_zone.max())
            zone_scores = np.full(len(scores), float(MAX_NODE_SCORE))
            if most_in_zone > 0:
                share = (most_in_zone - by_zone[zones]).astype(np.float64) / float(most_in_zone)
                zone_scores = float(MAX_NODE_SCORE) * share
            mixed = (result * (1.0 - _ZONE_WEIGHTING)) + (_ZONE_WEIGHTING * zone_scores)
            result = np.where(zoned, mixed, result)
        return result.astype(np.int64)


def _zone_ids(nodes: NodeColumns, rows: Rows) -> NDArray[np.int64]:
    """A number for each row's region and zone together, -1 where the node names neither."""
    keys = (LABEL_ZONE_BETA, LABEL_ZONE, LABEL_REGION_BETA, LABEL_REGION)
    columns = np.stack([nodes.label_column(key)[rows] for key in keys])
    _, first, inverse = np.unique(columns, axis=1, return_index=True, return_inverse=True)
    ids: dict[str, int] = {}
    known = []
    for index in first.tolist():
        zone = nodes.node(int(rows[index])).zone_key
        known.append(ids.setdefault(zone, len(ids)) if zone else -1)
    return np.array(known, np.int64)[inverse.reshape(-1)]
