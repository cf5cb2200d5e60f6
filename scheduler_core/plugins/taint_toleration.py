"""TaintToleration: taints keep pods off nodes, or make nodes less liked."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.node_table import NodeColumns, Rows
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.cluster.vocabulary import Interner
from scheduler_core.framework import interface as fw
from scheduler_core.framework.amounts import Amount, Comparison
from scheduler_core.framework.cluster_event import QUEUE, SKIP, ClusterEventWithHint, QueueingHint, on
from scheduler_core.framework.status import Code, Verdicts
from scheduler_core.objects.node import Node, Taint
from scheduler_core.objects.pod import Pod, Toleration


class TaintToleration(
    fw.FilterPlugin[None],
    fw.PreScorePlugin[tuple[Toleration, ...]],
    fw.ScorePlugin[tuple[Toleration, ...]],
):
    """Rejects rows with a NoSchedule or NoExecute taint the pod does not tolerate; counts the PreferNoSchedule ones.

    The taints of a node are interned as a whole list, so each distinct list is looked at once a pod.

    Source: pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go, v1.34

    Examples
    --------
    >>> from scheduler_core.framework.example import scores, verdicts
    >>> gpu = {"spec": {"taints": [{"key": "gpu", "value": "t4", "effect": "NoSchedule"}]}}
    >>> spot = {"spec": {"taints": [{"key": "spot", "effect": "PreferNoSchedule"}]}}
    >>> verdicts(TaintToleration, {}, n1={}, n2=gpu, n3=spot)
    {'n1': 'passes', 'n2': 'node(s) had untolerated taint {gpu: t4}', 'n3': 'passes'}
    >>> scores(TaintToleration, {}, n1={}, n2=gpu, n3=spot)
    {'n1': 100, 'n2': 100, 'n3': 0}
    """

    name: ClassVar[str] = "TaintToleration"
    compares: ClassVar[str] = "taints"
    draw: ClassVar[tuple[str, int] | None] = ("T", 1)
    default_weight: ClassVar[int | None] = 3
    filter_reads: ClassVar[fw.Reads] = fw.Reads.SPEC
    score_reads: ClassVar[fw.Reads] = fw.Reads.SPEC
    normalizes: ClassVar[bool] = True

    def events(self) -> list[ClusterEventWithHint]:
        return [
            on("Node", "Add|UpdateNodeTaint", after_node_change),
            on("Pod", "UpdatePodToleration", after_toleration_change),
        ]

    def sign(self, pod: Pod) -> Hashable:
        return pod.tolerations

    def filter(self, state: None, pod: Pod, nodes: NodeColumns, rows: Rows) -> Verdicts:
        known = nodes.vocabulary.taints
        untolerated = _per_list(
            nodes, rows, lambda taints: _first_untolerated(pod.tolerations, taints, known)
        )
        detail = None if self.handle.release.has("UntoleratedTaintsUnnamed") else untolerated
        return Verdicts.where(untolerated >= 0, Code.UnschedulableAndUnresolvable, detail)

    def reasons(
        self, state: None, pod: Pod, nodes: NodeColumns, row: int, code: Code, detail: int
    ) -> tuple[str, ...]:
        if self.handle.release.has("UntoleratedTaintsUnnamed"):
            return ("node(s) had untolerated taint(s)",)
        taint = nodes.vocabulary.taints[detail]
        return (f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}",)

    def compare(self, state: None, pod: Pod, snapshot: Snapshot) -> Iterator[Comparison]:
        nodes, rows = snapshot.nodes, snapshot.rows
        told: dict[str, int] = {}

        def text_of(taints: tuple[Taint, ...]) -> int:
            bad = [taint for taint in taints if _keeps_off(pod.tolerations, taint)]
            words = ", ".join(f"{taint}: {_nearest(pod.tolerations, taint)}" for taint in bad)
            return told.setdefault(words, len(told)) if bad else -1

        text_ids = _per_list(nodes, rows, text_of)
        yield Comparison(text_ids >= 0, (Amount(text_ids, list(told)),))

    def pre_score(
        self, pod: Pod, snapshot: Snapshot, rows: Rows
    ) -> fw.PreScoreResult[tuple[Toleration, ...]]:
        return fw.PreScoreResult(
            state=tuple(item for item in pod.tolerations if item.effect in ("", "PreferNoSchedule"))
        )

    def score(self, state: tuple[Toleration, ...], pod: Pod, nodes: NodeColumns, rows: Rows) -> fw.Scores:
        return _per_list(nodes, rows, lambda taints: _count_intolerable(state, taints))

    def normalize(
        self, state: tuple[Toleration, ...], pod: Pod, nodes: NodeColumns, rows: Rows, scores: fw.Scores
    ) -> fw.Scores:
        return fw.default_normalize(scores, reverse=True)


def _per_list(
    nodes: NodeColumns, rows: Rows, answer: Callable[[tuple[Taint, ...]], int]
) -> NDArray[np.int64]:
    """`answer(taints)` for every row, computed once for each distinct list of taints among them."""
    list_ids = nodes.taint_list_id[rows]
    if len(rows) == 1:
        return np.array([answer(nodes.vocabulary.taint_lists[int(list_ids[0])])], np.int64)
    answers = np.zeros(len(nodes.vocabulary.taint_lists), np.int64)
    for list_id in np.flatnonzero(np.bincount(list_ids)).tolist():
        answers[list_id] = answer(nodes.vocabulary.taint_lists[list_id])
    return answers[list_ids]


def _first_untolerated(
    tolerations: tuple[Toleration, ...], taints: tuple[Taint, ...], known: Interner[Taint]
) -> int:
    """Id of the first taint that keeps the pod off, -1 without one."""
    for taint in taints:
        if _keeps_off(tolerations, taint):
            return known.id(taint)
    return -1


def _keeps_off(tolerations: tuple[Toleration, ...], taint: Taint) -> bool:
    hard = taint.effect in ("NoSchedule", "NoExecute")
    return hard and not any(item.tolerates(taint) for item in tolerations)


def _nearest(tolerations: tuple[Toleration, ...], taint: Taint) -> str:
    """What the pod tolerates of a taint's key, or of every key, if not the taint itself."""
    near = [item for item in tolerations if item.key in ("", taint.key)]
    if not near:
        return "not tolerated"
    what = ((item.value and f"value {item.value}", item.effect) for item in near)
    return f"tolerated only with {' or '.join(', '.join(filter(None, each)) for each in what)}"


def _count_intolerable(tolerations: tuple[Toleration, ...], taints: tuple[Taint, ...]) -> int:
    return sum(
        taint.effect == "PreferNoSchedule" and not any(item.tolerates(taint) for item in tolerations)
        for taint in taints
    )


# ---- hints: when a pod that the plugin rejected is worth another try

_TOLERATED = QUEUE.because("the pod tolerates the node's taints now")
_NOT_TOLERATED = SKIP.because("this does not change whether the pod tolerates the node's taints")
_TOLERATION = QUEUE.because("the pod got a new toleration")
_OTHER_POD = SKIP.because("another pod's tolerations changed")
_DO_NOT_SCHEDULE = ("NoSchedule", "NoExecute")


def after_node_change(pod: Pod, old: Node | None, new: Node) -> QueueingHint:
    was_untolerated = old is None or _has_untolerated(pod, old)
    return _TOLERATED if was_untolerated and not _has_untolerated(pod, new) else _NOT_TOLERATED


def after_toleration_change(pod: Pod, old: Pod, new: Pod) -> QueueingHint:
    return _TOLERATION if pod.uid == new.uid else _OTHER_POD


def _has_untolerated(pod: Pod, node: Node) -> bool:
    return any(taint.effect in _DO_NOT_SCHEDULE and not pod.tolerates(taint) for taint in node.taints)
