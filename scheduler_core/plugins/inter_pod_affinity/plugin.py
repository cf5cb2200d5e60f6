"""The InterPodAffinity plugin at each extension point."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.node_table import NodeColumns, Rows
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.cluster.what_if import WhatIf
from scheduler_core.config.args import Errors, PluginArgs, invalid
from scheduler_core.config.wire import BOOLEAN, INT32, KEEP, POINTER, wire
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
from scheduler_core.plugins.inter_pod_affinity import hints
from scheduler_core.plugins.inter_pod_affinity.filtering import (
    AFFINITY,
    ANTI_AFFINITY,
    EXISTING_ANTI_AFFINITY,
    PASSES,
    RequiredState,
    RequiredTerms,
    Worlds,
)
from scheduler_core.plugins.inter_pod_affinity.scoring import DomainScores, normalized

REASONS = {
    AFFINITY: "node(s) didn't match pod affinity rules",
    ANTI_AFFINITY: "node(s) didn't match pod anti-affinity rules",
    EXISTING_ANTI_AFFINITY: "node(s) didn't satisfy existing pods anti-affinity rules",
}
_CODES = np.zeros(PASSES + 1, np.int8)
_CODES[AFFINITY] = Code.UnschedulableAndUnresolvable
_CODES[ANTI_AFFINITY] = _CODES[EXISTING_ANTI_AFFINITY] = Code.Unschedulable


@dataclass(frozen=True, slots=True)
class InterPodAffinityArgs(PluginArgs):
    """Score of a required affinity of existing pods towards the incoming one."""

    hard_pod_affinity_weight: int = wire("hardPodAffinityWeight", INT32, POINTER, 1)
    ignore_preferred_terms_of_existing_pods: bool = wire("ignorePreferredTermsOfExistingPods", BOOLEAN, KEEP)

    def problems(self, path: str) -> Errors:
        weight = self.hard_pod_affinity_weight
        if not 0 <= weight <= 100:
            return [invalid(f"{path}.hardPodAffinityWeight", weight, "not in valid range [0, 100]")]
        return []


class InterPodAffinity(
    PreFilterPlugin[RequiredState],
    FilterPlugin[RequiredState],
    PreScorePlugin[DomainScores],
    ScorePlugin[DomainScores],
):
    """Rejects rows by required terms, of the incoming pod and of existing ones; scores by preferred terms.

    Counts by domain are kept up to date in `cluster.matching`, so a cycle gathers them and compares.

    Source: pkg/scheduler/framework/plugins/interpodaffinity/plugin.go, v1.34

    Examples
    --------
    A pod on n1 keeps its own kind out of its zone; n3 has no zone and so cannot be meant.

    >>> from types import SimpleNamespace
    >>> from scheduler_core.cluster.cache import Cache
    >>> from scheduler_core.objects.node import node_from
    >>> from scheduler_core.objects.pod import pod_from
    >>> cache = Cache()
    >>> for name, labels in (("n1", {"zone": "a"}), ("n2", {"zone": "b"}), ("n3", {})):
    ...     cache.set_node(node_from({"metadata": {"name": name, "labels": labels}}))
    >>> web = {"namespace": "default", "labels": {"app": "web"}}
    >>> term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
    >>> apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    >>> spec = {"nodeName": "n1", "affinity": apart}
    >>> cache.add_pod(pod_from({"metadata": {"name": "p1", "uid": "p1", **web}, "spec": spec}))
    >>> pod = pod_from({"metadata": {"name": "p2", "uid": "p2", **web}, "spec": {}})
    >>> plugin, snapshot = InterPodAffinity(None, SimpleNamespace()), cache.snapshot()
    >>> state = plugin.pre_filter(pod, snapshot).state
    >>> [Code(code).name for code in plugin.filter(state, pod, snapshot.nodes, snapshot.rows).codes]
    ['Unschedulable', 'Success', 'Success']
    """

    name: ClassVar[str] = "InterPodAffinity"
    compares: ClassVar[str] = "pod affinity"
    draw: ClassVar[tuple[str, int] | None] = ("I", 4)
    Args = InterPodAffinityArgs
    default_weight: ClassVar[int | None] = 2
    normalizes: ClassVar[bool] = True

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self.hard_weight: int = 1 if args is None else args.hard_pod_affinity_weight
        self.ignores_preferred_of_existing: bool = (
            False if args is None else args.ignore_preferred_terms_of_existing_pods
        )

    def events(self) -> list[ClusterEventWithHint]:
        return hints.events_to_register(self.handle.release)

    # ---- filter

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> PreFilterResult[RequiredState]:
        terms = RequiredTerms.of(pod, snapshot.matching)
        return SKIP_FILTER if terms is None else PreFilterResult(state=RequiredState(terms))

    def filter(self, state: RequiredState, pod: Pod, nodes: NodeColumns, rows: Rows) -> Verdicts:
        failures = state.failures(nodes, rows)
        return Verdicts(_CODES.take(failures), failures.astype(np.int64))

    def reasons(
        self, state: RequiredState, pod: Pod, nodes: NodeColumns, row: int, code: Code, detail: int
    ) -> tuple[str, ...]:
        return (REASONS[detail],)

    def compare(self, state: RequiredState, pod: Pod, snapshot: Snapshot) -> Iterator[Comparison]:
        return state.terms.compare(pod, snapshot)

    def fork(self, state: RequiredState, nodes: WhatIf) -> RequiredState:
        return RequiredState(state.terms, Worlds(state.terms, nodes))

    def add_pods(
        self, state: RequiredState, pod: Pod, nodes: WhatIf, rows: Rows, pod_ids: NDArray[np.int64]
    ) -> None:
        if state.worlds is not None:
            state.worlds.change(rows, pod_ids, 1)

    def remove_pods(
        self, state: RequiredState, pod: Pod, nodes: WhatIf, rows: Rows, pod_ids: NDArray[np.int64]
    ) -> None:
        if state.worlds is not None:
            state.worlds.change(rows, pod_ids, -1)

    # ---- score

    def pre_score(self, pod: Pod, snapshot: Snapshot, rows: Rows) -> PreScoreResult[DomainScores]:
        if (
            self.ignores_preferred_of_existing
            and not pod.preferred_affinity
            and not pod.preferred_anti_affinity
        ):
            return SKIP_SCORE
        scores = DomainScores.of(pod, snapshot.matching, self.hard_weight)
        return SKIP_SCORE if scores is None else PreScoreResult(state=scores)

    def score(self, state: DomainScores, pod: Pod, nodes: NodeColumns, rows: Rows) -> Scores:
        return state.scores(nodes, rows)

    def normalize(
        self, state: DomainScores, pod: Pod, nodes: NodeColumns, rows: Rows, scores: Scores
    ) -> Scores:
        return normalized(scores)
