"""ServiceAffinity: pods of one service on nodes with the same label values, or spread over values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.default_selectors import DefaultSelectors
from scheduler_core.cluster.node_matching import matching_labels
from scheduler_core.cluster.node_table import NodeColumns, Rows
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.cluster.what_if import WhatIf
from scheduler_core.config.args import PluginArgs
from scheduler_core.config.wire import STRING, ListOf, wire
from scheduler_core.framework.interface import (
    MAX_NODE_SCORE,
    FilterPlugin,
    Handle,
    PreFilterPlugin,
    PreFilterResult,
    ScorePlugin,
    Scores,
)
from scheduler_core.framework.status import Code, Verdicts
from scheduler_core.objects.fields import mapping, string_map
from scheduler_core.objects.labels import selector_from_labels
from scheduler_core.objects.pod import Pod
from scheduler_core.plugins.retired import count_matching_pods

REASON = "node(s) didn't match service affinity"
REASON_NODE = "node not found"


@dataclass(slots=True)
class State:
    """Pods like the pod, in order of the nodes they are on.

    Attributes
    ----------
    pod_ids : list of int
        In the cluster.
    has_services : bool
    removed : dict of int to dict of int to None
        By row of a what-if table: those of `pod_ids` that have left it.
    added : dict of int to list of int
        By row: pods that came, after all others.
    """

    pod_ids: list[int] = field(default_factory=list)
    has_services: bool = False
    removed: dict[int, dict[int, None]] = field(default_factory=dict)
    added: dict[int, list[int]] = field(default_factory=dict)

    def first_pod(self, row: int) -> int | None:
        """The first pod of the list as a row's own world has it."""
        removed = self.removed.get(row, {})
        first = next((pod_id for pod_id in self.pod_ids if pod_id not in removed), None)
        return first if first is not None else next(iter(self.added.get(row, ())), None)


@dataclass(frozen=True, slots=True)
class ServiceAffinityArgs(PluginArgs):
    """Labels that pods of one service share, and labels they are spread over."""

    affinity_labels: tuple[str, ...] = wire("affinityLabels", ListOf(STRING))
    anti_affinity_labels_preference: tuple[str, ...] = wire("antiAffinityLabelsPreference", ListOf(STRING))


class ServiceAffinity(PreFilterPlugin[State], FilterPlugin[State], ScorePlugin[None]):
    """Rejects rows whose `affinityLabels` differ from those of the node where the pod's service already runs.

    What the pod's nodeSelector says of such a label counts before. Score prefers values of
    `antiAffinityLabelsPreference` under which few pods of the service run.

    Source: pkg/scheduler/framework/plugins/serviceaffinity/service_affinity.go, v1.20
    Differs: of several services the first created counts for scoring; upstream takes any.
    """

    name: ClassVar[str] = "ServiceAffinity"
    Args = ServiceAffinityArgs
    normalizes: ClassVar[bool] = True

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self.args = args if isinstance(args, ServiceAffinityArgs) else ServiceAffinityArgs()
        self._selectors: DefaultSelectors | None = None

    # ---- filtering

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> PreFilterResult[State]:
        if not self.args.affinity_labels:
            return PreFilterResult(state=State())
        nodes, pods = snapshot.nodes, snapshot.pods
        like = [
            pod_id
            for row in snapshot.order.tolist()
            for pod_id in nodes.pods_on(row)
            if _is_like(pods[pod_id], pod)
        ]
        return PreFilterResult(state=State(like, bool(self._services_of(pod, snapshot))))

    def filter(self, state: State, pod: Pod, nodes: NodeColumns, rows: Rows) -> Verdicts:
        codes = np.zeros(len(rows), np.int8)
        if not self.args.affinity_labels:
            return Verdicts(codes)
        wanted = _own_labels(pod, self.args.affinity_labels)
        introspects = state.has_services and len(wanted) < len(self.args.affinity_labels)
        base = state.pod_ids[0] if state.pod_ids else None
        donors = np.full(len(rows), -1 if base is None or not introspects else base, np.int64)
        if introspects and (state.removed or state.added):
            for place, row in enumerate(rows.tolist()):
                if row in state.removed or row in state.added:
                    first = state.first_pod(row)
                    donors[place] = -1 if first is None else first
        for donor in np.unique(donors).tolist():
            places = np.flatnonzero(donors == donor)
            labels = dict(wanted)
            if donor >= 0:
                node_labels = self._labels_under(donor, nodes)
                if node_labels is None:
                    codes[places] = Code.Error
                    continue
                for key in self.args.affinity_labels:
                    if key not in labels and key in node_labels:
                        labels[key] = node_labels[key]
            matched = matching_labels(selector_from_labels(labels), nodes, rows[places])
            codes[places[~matched]] = Code.Unschedulable
        return Verdicts(codes)

    def reasons(
        self, state: State, pod: Pod, nodes: NodeColumns, row: int, code: Code, detail: int
    ) -> tuple[str, ...]:
        return (REASON_NODE if code is Code.Error else REASON,)

    def fork(self, state: State, nodes: WhatIf) -> State:
        return State(state.pod_ids, state.has_services)

    def add_pods(self, state: State, pod: Pod, nodes: WhatIf, rows: Rows, pod_ids: NDArray[np.int64]) -> None:
        for row, pod_id in zip(rows.tolist(), pod_ids.tolist(), strict=True):
            if self.args.affinity_labels and _is_like(nodes.pods[pod_id], pod):
                state.added.setdefault(row, []).append(pod_id)

    def remove_pods(
        self, state: State, pod: Pod, nodes: WhatIf, rows: Rows, pod_ids: NDArray[np.int64]
    ) -> None:
        known = dict.fromkeys(state.pod_ids)
        for row, pod_id in zip(rows.tolist(), pod_ids.tolist(), strict=True):
            added = state.added.get(row, [])
            if pod_id in added:
                added.remove(pod_id)
            elif pod_id in known:
                state.removed.setdefault(row, {})[pod_id] = None

    def _labels_under(self, pod_id: int, nodes: NodeColumns) -> Mapping[str, str] | None:
        """Labels of the node a pod is on; None for a pod that is only nominated."""
        table = nodes.base if isinstance(nodes, WhatIf) else nodes
        row = int(nodes.pods.row[pod_id])
        return None if row < 0 else table.node(row).labels

    # ---- scoring

    def score(self, state: None, pod: Pod, nodes: NodeColumns, rows: Rows) -> Scores:
        services = self._services_of(pod, self.handle.snapshot)
        if not services:
            return np.zeros(len(rows), np.int64)
        selector = selector_from_labels(services[0])
        return count_matching_pods(pod.namespace, selector, nodes, rows)

    def normalize(self, state: None, pod: Pod, nodes: NodeColumns, rows: Rows, scores: Scores) -> Scores:
        """Source: service_affinity.go updateNodeScoresForLabel, v1.20."""
        labels = self.args.anti_affinity_labels_preference
        total = np.zeros(len(rows), np.float64)
        n_pods = int(scores.sum())
        for key in labels:
            column = nodes.label_column(key)[rows]
            labelled = column >= 0
            share = np.full(len(rows), float(MAX_NODE_SCORE))
            if n_pods > 0 and labelled.any():
                counts = np.bincount(column[labelled], weights=scores[labelled]).astype(np.int64)
                share = float(MAX_NODE_SCORE) * ((n_pods - counts[column]).astype(np.float64) / float(n_pods))
            total += np.where(labelled, share / float(len(labels)), 0.0)
        return total.astype(np.int64)

    def _services_of(self, pod: Pod, snapshot: Snapshot) -> list[dict[str, str]]:
        """Selectors of the services that select the pod."""
        if self._selectors is None:
            self._selectors = DefaultSelectors(snapshot.listers)
        return [service.selector_labels for service in self._selectors.services_of(pod)]


def _is_like(other: Pod, pod: Pod) -> bool:
    """A pod of the same namespace with all labels of `pod`."""
    if other.namespace != pod.namespace:
        return False
    labels = other.labels
    return all(labels.get(key) == value for key, value in pod.labels.items())


def _own_labels(pod: Pod, keys: tuple[str, ...]) -> dict[str, str]:
    """What the pod's own nodeSelector says of the labels."""
    selector = string_map(mapping(pod.manifest, "spec", ""), "nodeSelector", "spec")
    return {key: selector[key] for key in keys if key in selector}
