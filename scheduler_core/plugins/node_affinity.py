"""NodeAffinity: nodes a pod asks for by label or name, and nodes it would like."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from scheduler_core.cluster import node_matching
from scheduler_core.cluster.node_table import Bool, NodeColumns, Rows
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.config import wire
from scheduler_core.config.args import Errors, PluginArgs
from scheduler_core.framework import interface as fw
from scheduler_core.framework.amounts import Amount, Comparison
from scheduler_core.framework.cluster_event import QUEUE, SKIP, ClusterEventWithHint, QueueingHint, on
from scheduler_core.framework.status import Code, Status, Verdicts
from scheduler_core.objects.labels import Requirement
from scheduler_core.objects.node import Node
from scheduler_core.objects.node_selector import (
    NodeSelector,
    PreferredTerms,
    node_selector_from,
    preferred_terms_from,
    term_errors,
)
from scheduler_core.objects.pod import Pod

REASON_POD = "node(s) didn't match Pod's node affinity/selector"
REASON_ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
REASON_CONFLICT = "pod affinity terms conflict"

_ENFORCED = 1
"""Detail of a verdict: the profile's own affinity rejects the node, not the pod's."""


@dataclass(frozen=True, slots=True)
class NodeAffinityArgs(PluginArgs):
    """`added_affinity` is a core/v1 NodeAffinity document that holds for every pod of the profile."""

    added_affinity: Annotated[wire.Document | None, wire.ApiObject("core.v1.NodeAffinity")] = None

    def problems(self, path: str) -> Errors:
        errors: Errors = []
        affinity = self.added_affinity or {}
        path = f"{path}.addedAffinity"
        selector = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
        if selector is not None:
            here = f"{path}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
            for index, term in enumerate(selector["nodeSelectorTerms"] or ()):
                errors += term_errors(term, f"{here}[{index}]")
        here = f"{path}.preferredDuringSchedulingIgnoredDuringExecution"
        for index, preferred in enumerate(
            affinity.get("preferredDuringSchedulingIgnoredDuringExecution", ())
        ):
            if preferred["weight"] != 0:
                errors += term_errors(preferred["preference"], f"{here}[{index}]")
        return errors


class NodeAffinity(
    fw.PreFilterPlugin[None],
    fw.FilterPlugin[None],
    fw.PreScorePlugin[PreferredTerms],
    fw.ScorePlugin[PreferredTerms | None],
):
    """Rejects rows the pod's nodeSelector, its required terms or the profile's addedAffinity do not match.

    A term that cannot be read matches nothing and is no error here (upstream drops the error of `Match`).
    Scores are the summed weights of the preferred terms, the profile's included.

    Source: pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go, v1.34

    Examples
    --------
    >>> from scheduler_core.framework.example import verdicts
    >>> nodes = {"n1": {"labels": {"disk": "ssd"}}, "n2": {"labels": {"disk": "hdd"}}, "n3": {}}
    >>> verdicts(NodeAffinity, {"nodeSelector": {"disk": "ssd"}}, **nodes)["n1"]
    'passes'
    >>> verdicts(NodeAffinity, {"nodeSelector": {"disk": "ssd"}}, **nodes)["n3"]
    "node(s) didn't match Pod's node affinity/selector"
    """

    name: ClassVar[str] = "NodeAffinity"
    sentences: ClassVar[Sequence[str]] = (REASON_POD, REASON_ENFORCED)
    compares: ClassVar[str] = "node affinity"
    draw: ClassVar[tuple[str, int] | None] = ("A", 2)
    Args = NodeAffinityArgs
    default_weight: ClassVar[int | None] = 2
    filter_reads: ClassVar[fw.Reads] = fw.Reads.SPEC
    score_reads: ClassVar[fw.Reads] = fw.Reads.SPEC
    normalizes: ClassVar[bool] = True
    filter_without_state: ClassVar[bool] = True
    score_without_state: ClassVar[bool] = True

    def __init__(self, args: Any, handle: fw.Handle) -> None:
        super().__init__(args, handle)
        added = getattr(args, "added_affinity", None) or {}
        required = added.get("requiredDuringSchedulingIgnoredDuringExecution")
        preferred = added.get("preferredDuringSchedulingIgnoredDuringExecution") or []
        self.enforced: NodeSelector | None = node_selector_from(required) if required else None
        self._added_preferred: PreferredTerms = preferred_terms_from(preferred)

    def events(self) -> list[ClusterEventWithHint]:
        return [on("Node", "Add|UpdateNodeLabel", self.after_node_change)]

    def after_node_change(self, pod: Pod, old: Node | None, new: Node) -> QueueingHint:
        if self.enforced is not None and not self.enforced.match(new.labels, new.name):
            return _NOT_ADDED
        if not pod.required_node_affinity.match(new.labels, new.name):
            return _NO_MATCH
        if old is None:
            return _NEW
        return _MATCHED_BEFORE if pod.required_node_affinity.match(old.labels, old.name) else _MATCHES_NOW

    def sign(self, pod: Pod) -> Hashable:
        return pod.required_node_affinity, pod.preferred_node_affinity, pod.prefers_nodes

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> fw.PreFilterResult[None]:
        affinity = pod.required_node_affinity
        if affinity.is_everything and self.enforced is None:
            return fw.SKIP_FILTER
        names = affinity.pre_filter_node_names()
        if names is None:
            return fw.PreFilterResult()
        if not names:
            return fw.PreFilterResult(Status(Code.UnschedulableAndUnresolvable, (REASON_CONFLICT,)))
        return fw.PreFilterResult(node_names=tuple(sorted(names)))

    def filter(self, state: None, pod: Pod, nodes: NodeColumns, rows: Rows) -> Verdicts:
        rejected = ~node_matching.matching_required_affinity(pod.required_node_affinity, nodes, rows)
        details = None
        if self.enforced is not None:
            outside = ~node_matching.matching_node_selector(self.enforced, nodes, rows)
            details = np.where(outside, _ENFORCED, 0)
            rejected |= outside
        return Verdicts.where(rejected, Code.UnschedulableAndUnresolvable, details)

    def compare(self, state: None, pod: Pod, snapshot: Snapshot) -> Iterator[Comparison]:
        affinity = pod.required_node_affinity
        if affinity.labels is not None:
            yield from _compared("", affinity.labels.requirements, snapshot)
        for whose, selector in (("", affinity.selector), ("the profile: ", self.enforced)):
            if selector is None:
                continue
            nowhere = ~node_matching.matching_node_selector(selector, snapshot.nodes, snapshot.rows)
            for index, term in enumerate(selector.terms):
                number = f"term {index + 1} of {len(selector.terms)}: " if len(selector.terms) > 1 else ""
                yield from _compared(whose + number, term.labels.requirements, snapshot, nowhere)

    def pre_score(self, pod: Pod, snapshot: Snapshot, rows: Rows) -> fw.PreScoreResult[PreferredTerms]:
        if not pod.prefers_nodes and self._added_preferred.is_empty:
            return fw.SKIP_SCORE
        return fw.PreScoreResult(state=self._preferred(pod))

    def _preferred(self, pod: Pod) -> PreferredTerms:
        return PreferredTerms((*pod.preferred_node_affinity.terms, *self._added_preferred.terms))

    def score(self, state: PreferredTerms | None, pod: Pod, nodes: NodeColumns, rows: Rows) -> fw.Scores:
        total = np.zeros(len(rows), np.int64)
        for weight, term in (state or self._preferred(pod)).terms:
            total += weight * node_matching.matching_term(term, nodes, rows)
        return total

    def normalize(
        self, state: PreferredTerms | None, pod: Pod, nodes: NodeColumns, rows: Rows, scores: fw.Scores
    ) -> fw.Scores:
        return fw.default_normalize(scores)


def _compared(
    whose: str, requirements: Sequence[Requirement], snapshot: Snapshot, among: Bool | None = None
) -> Iterator[Comparison]:
    """What each requirement wants, and the label of every row (`among` them) that does not meet it."""
    nodes, rows = snapshot.nodes, snapshot.rows
    for requirement in requirements:
        fails = ~node_matching.matching_requirement(requirement, nodes, rows)
        if among is not None:
            fails &= among
        values = nodes.vocabulary.label_values[requirement.key].values
        has = Amount(nodes.label_column(requirement.key)[rows], values, "not there")
        yield Comparison(fails, (f"{whose}wants {requirement}, the label is ", has))


# ---- hints: when a pod that the plugin rejected is worth another try

_NEW = QUEUE.because("the new node matches the pod's node affinity")
_MATCHES_NOW = QUEUE.because("the node matches the pod's node affinity now")
_MATCHED_BEFORE = SKIP.because("the node matched the pod's node affinity before, too")
_NO_MATCH = SKIP.because("the node does not match the pod's node affinity")
_NOT_ADDED = SKIP.because("the node does not match the affinity the scheduler adds")
