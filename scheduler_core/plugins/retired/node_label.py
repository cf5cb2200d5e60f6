"""NodeLabel: labels nodes must or must not have, whatever their value."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from scheduler_core.cluster.node_table import NodeColumns, Rows
from scheduler_core.config.args import PluginArgs
from scheduler_core.config.wire import STRING, ListOf, wire
from scheduler_core.framework.interface import (
    MAX_NODE_SCORE,
    FilterPlugin,
    Handle,
    Reads,
    ScorePlugin,
    Scores,
)
from scheduler_core.framework.status import Code, Verdicts
from scheduler_core.objects.pod import Pod

REASON = "node(s) didn't have the requested labels"


@dataclass(frozen=True, slots=True)
class NodeLabelArgs(PluginArgs):
    """Labels nodes must or must not have, or are preferred to have or not to have."""

    present_labels: tuple[str, ...] = wire("presentLabels", ListOf(STRING))
    absent_labels: tuple[str, ...] = wire("absentLabels", ListOf(STRING))
    present_labels_preference: tuple[str, ...] = wire("presentLabelsPreference", ListOf(STRING))
    absent_labels_preference: tuple[str, ...] = wire("absentLabelsPreference", ListOf(STRING))


class NodeLabel(FilterPlugin[None], ScorePlugin[None]):
    """Rejects rows that lack a label of `presentLabels` or have one of `absentLabels`; scores preferences alike.

    Source: pkg/scheduler/framework/plugins/nodelabel/node_label.go, v1.20
    """

    name: ClassVar[str] = "NodeLabel"
    Args = NodeLabelArgs
    filter_reads: ClassVar[Reads] = Reads.SPEC
    score_reads: ClassVar[Reads] = Reads.SPEC

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self.args = args if isinstance(args, NodeLabelArgs) else NodeLabelArgs()

    def sign(self, pod: Pod) -> Hashable:
        return ()

    def filter(self, state: None, pod: Pod, nodes: NodeColumns, rows: Rows) -> Verdicts:
        rejected = np.zeros(len(rows), np.bool_)
        for key in self.args.present_labels:
            rejected |= nodes.label_column(key)[rows] < 0
        for key in self.args.absent_labels:
            rejected |= nodes.label_column(key)[rows] >= 0
        return Verdicts.where(rejected, Code.UnschedulableAndUnresolvable)

    def reasons(
        self, state: None, pod: Pod, nodes: NodeColumns, row: int, code: Code, detail: int
    ) -> tuple[str, ...]:
        return (REASON,)

    def score(self, state: None, pod: Pod, nodes: NodeColumns, rows: Rows) -> Scores:
        present, absent = self.args.present_labels_preference, self.args.absent_labels_preference
        scores = np.zeros(len(rows), np.int64)
        if not present and not absent:
            return scores
        for key in present:
            scores += MAX_NODE_SCORE * (nodes.label_column(key)[rows] >= 0)
        for key in absent:
            scores += MAX_NODE_SCORE * (nodes.label_column(key)[rows] < 0)
        return scores // (len(present) + len(absent))
