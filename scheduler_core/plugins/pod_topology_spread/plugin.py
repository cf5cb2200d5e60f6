"""The PodTopologySpread plugin: which constraints hold, and what they say at each extension point."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.node_table import NodeColumns, Rows
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.cluster.what_if import WhatIf
from scheduler_core.framework.amounts import Comparison
from scheduler_core.framework.cluster_event import ClusterEventWithHint
from scheduler_core.framework.interface import (
    SKIP_FILTER,
    SKIP_SCORE,
    FilterPlugin,
    Handle,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    PreScoreResult,
    ScorePlugin,
    Scores,
)
from scheduler_core.framework.status import Code, Verdicts
from scheduler_core.objects.pod import Pod
from scheduler_core.plugins.pod_topology_spread import hints
from scheduler_core.plugins.pod_topology_spread.args import PodTopologySpreadArgs
from scheduler_core.plugins.pod_topology_spread.constraints import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, Defaults
from scheduler_core.plugins.pod_topology_spread.filtering import ConstraintWorlds, HardConstraint, HardState
from scheduler_core.plugins.pod_topology_spread.scoring import SoftState

REASON_SKEW = "node(s) didn't match pod topology spread constraints"
REASON_LABEL = REASON_SKEW + " (missing required label)"


class PodTopologySpread(
    PreFilterPlugin[HardState], FilterPlugin[HardState], PreScorePlugin[SoftState], ScorePlugin[SoftState]
):
    """Rejects rows whose topology domain would get too many matching pods; likes the emptier domains better.

    Counts by domain are kept up to date in `cluster.matching`, so a cycle gathers them and compares.

    Source: pkg/scheduler/framework/plugins/podtopologyspread/plugin.go, v1.34

    Examples
    --------
    Two zones with one and no matching pod; a third node without a zone cannot be used at all.

    >>> from types import SimpleNamespace
    >>> from scheduler_core.cluster.cache import Cache
    >>> from scheduler_core.objects.node import node_from
    >>> from scheduler_core.objects.pod import pod_from
    >>> cache = Cache()
    >>> for name, labels in (("n1", {"zone": "a"}), ("n2", {"zone": "b"}), ("n3", {})):
    ...     cache.set_node(node_from({"metadata": {"name": name, "labels": labels}}))
    >>> web = {"namespace": "default", "labels": {"app": "web"}}
    >>> cache.add_pod(pod_from({"metadata": {"name": "p1", "uid": "p1", **web}, "spec": {"nodeName": "n1"}}))
    >>> constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
    ...     "labelSelector": {"matchLabels": {"app": "web"}}}
    >>> spec = {"topologySpreadConstraints": [constraint]}
    >>> pod = pod_from({"metadata": {"name": "p2", "uid": "p2", **web}, "spec": spec})
    >>> plugin, snapshot = PodTopologySpread(None, SimpleNamespace()), cache.snapshot()
    >>> state = plugin.pre_filter(pod, snapshot).state
    >>> [Code(code).name for code in plugin.filter(state, pod, snapshot.nodes, snapshot.rows).codes]
    ['Unschedulable', 'Success', 'UnschedulableAndUnresolvable']
    """

    name: ClassVar[str] = "PodTopologySpread"
    compares: ClassVar[str] = "spread"
    draw: ClassVar[tuple[str, int] | None] = ("S", 3)
    Args = PodTopologySpreadArgs
    default_weight: ClassVar[int | None] = 2
    normalizes: ClassVar[bool] = True

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self.defaults = Defaults.from_args(args)

    def events(self) -> list[ClusterEventWithHint]:
        constraints_of = hints.constraints_with_defaults(self.defaults.constraints, self.handle.listers)
        return hints.events_to_register(constraints_of, self.handle.release)

    # ---- filter

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> PreFilterResult[HardState]:
        matching = snapshot.matching
        constraints = self.defaults.of(pod, DO_NOT_SCHEDULE, matching)
        if not constraints:
            return SKIP_FILTER
        keys = tuple([item.topology_key for item in constraints])
        return PreFilterResult(
            state=HardState(
                [HardConstraint.of(constraint, pod, keys, matching) for constraint in constraints]
            )
        )

    def filter(self, state: HardState, pod: Pod, nodes: NodeColumns, rows: Rows) -> Verdicts:
        return Verdicts(state.codes(nodes, rows))

    def reasons(
        self, state: HardState, pod: Pod, nodes: NodeColumns, row: int, code: Code, detail: int
    ) -> tuple[str, ...]:
        return (REASON_LABEL if code is Code.UnschedulableAndUnresolvable else REASON_SKEW,)

    def compare(self, state: HardState, pod: Pod, snapshot: Snapshot) -> Iterator[Comparison]:
        for constraint in state.constraints:
            yield from constraint.compare(snapshot.nodes, snapshot.rows)

    def fork(self, state: HardState, nodes: WhatIf) -> HardState:
        return HardState(state.constraints, [ConstraintWorlds(item, nodes) for item in state.constraints])

    def add_pods(
        self, state: HardState, pod: Pod, nodes: WhatIf, rows: Rows, pod_ids: NDArray[np.int64]
    ) -> None:
        self._change(state, nodes, rows, pod_ids, 1)

    def remove_pods(
        self, state: HardState, pod: Pod, nodes: WhatIf, rows: Rows, pod_ids: NDArray[np.int64]
    ) -> None:
        self._change(state, nodes, rows, pod_ids, -1)

    def _change(
        self, state: HardState, nodes: WhatIf, rows: Rows, pod_ids: NDArray[np.int64], sign: int
    ) -> None:
        class_ids = nodes.pods.class_id[pod_ids]
        for worlds in state.worlds or ():
            worlds.change(rows, class_ids, sign)

    # ---- score

    def pre_score(self, pod: Pod, snapshot: Snapshot, rows: Rows) -> PreScoreResult[SoftState]:
        matching = snapshot.matching
        constraints = self.defaults.of(pod, SCHEDULE_ANYWAY, matching)
        if not constraints or not len(snapshot.rows):
            return SKIP_SCORE
        require_all = bool(pod.topology_spread) or not self.defaults.by_system
        return PreScoreResult(state=SoftState.of(constraints, pod, matching, rows, require_all=require_all))

    def score(self, state: SoftState, pod: Pod, nodes: NodeColumns, rows: Rows) -> Scores:
        return state.scores(nodes, rows)

    def normalize(self, state: SoftState, pod: Pod, nodes: NodeColumns, rows: Rows, scores: Scores) -> Scores:
        return state.normalized(nodes, rows, scores)
