"""What places pending pods without a new node: edits of each workload, proved on all its pods at once.

One pod's edits come from `advice.what_would_it_take`; only those that leave the pods of others where they are count.
Here an edit is made of every pod of the workload that waits, and all of them are decided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from scheduler_core.advice import pod_edits
from scheduler_core.advice.advised import SearchLimits
from scheduler_core.advice.edits import COST_NODE, LOWER_REQUEST, NODES, POD, Edit
from scheduler_core.advice.sandbox import Sandbox
from scheduler_core.advice.what_would_it_take import what_would_it_take
from scheduler_core.objects.node import node_from
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.plan.headroom import Report
from scheduler_core.plan.pending import Alike, classes_of
from scheduler_core.plan.trial import Trial

MOST_WORKLOADS: Final = 12
"""Workloads whose edits are looked for, those with the most waiting pods first."""
TOLD_PER_WORKLOAD: Final = 3
MOST_DECISIONS: Final = 12_000
"""Decisions that proving edits may cost, shared by the workloads: a count, so that each machine answers the same."""
_SEARCH: Final = SearchLimits(per_kind=3, exhaustive_pods=0, elsewhere=0, failed_per_kind=0)


@dataclass(frozen=True, slots=True)
class WorkloadEdit:
    """One edit of a workload.

    Attributes
    ----------
    pods : tuple of Pod
        Alike and pending, in scheduling order; the edit is made of all, as their owner makes all alike.
    edit : Edit
        As it is made of the first that finds no node as things are.
    n_placed : int
        Of the pods, find a node once it is made of all.
    """

    pods: tuple[Pod, ...]
    edit: Edit
    n_placed: int

    @property
    def rank(self) -> tuple[Any, ...]:
        """Sorts a workload's edits: those that place most first, then the smallest."""
        return -self.n_placed, *self.edit.rank


@dataclass(slots=True)
class EditPlan:
    """What was found.

    Attributes
    ----------
    edits : list of list of WorkloadEdit
        Of each workload that has any, the best first; workloads with most waiting pods first.
    without : list of Alike
        Workloads that no such edit helps.
    unasked : int
        Workloads that were not looked at, for being beyond `MOST_WORKLOADS`.
    placed : list of (Pod, str)
        Of all pending pods those that find a node once the first edit of each workload is made, as they are then,
        and where each lands.
    left : list of Pod
        As they are after these edits, and still find none.
    """

    edits: list[list[WorkloadEdit]] = field(default_factory=list)
    without: list[Alike] = field(default_factory=list)
    unasked: int = 0
    placed: list[tuple[Pod, str]] = field(default_factory=list)
    left: list[Pod] = field(default_factory=list)
    n_decisions: int = 0

    @property
    def n_together(self) -> int:
        """How many find a node with all first edits made."""
        return len(self.placed)


def edits_for(
    sandbox: Sandbox,
    pods: Sequence[Pod],
    placed: Mapping[str, str],
    report: Report,
) -> EditPlan:
    """Find edits for the pods that find no node; a higher priority is none, as it takes the place of others.

    Parameters
    ----------
    pods : sequence of Pod
        All that are pending, in the order in which they are decided.
    placed : mapping of str to str
        Pod -> node, of those that find one as things are.
    """
    plan = EditPlan()
    waiting = [alike for alike in classes_of(pods) if any(pod.key not in placed for pod in alike.pods)]
    waiting.sort(key=lambda alike: -len(alike.pods))
    asked = waiting[:MOST_WORKLOADS]
    plan.unasked = len(waiting) - len(asked)
    for number, alike in enumerate(asked):
        report(number, len(asked), f"edits for {alike.one.key}")
        # What one workload leaves over is the next one's.
        until = MOST_DECISIONS * (number + 1) // len(asked)
        found = _edits_of(sandbox, alike, pods, placed, plan, until)
        if found:
            plan.edits.append(found)
        else:
            plan.without.append(alike)
    _run_together(sandbox, pods, plan)
    return plan


def _edits_of(
    sandbox: Sandbox,
    alike: Alike,
    pods: Sequence[Pod],
    placed: Mapping[str, str],
    plan: EditPlan,
    until: int,
) -> list[WorkloadEdit]:
    found = []
    own = {pod.uid for pod in alike.pods}
    first = next(pod for pod in alike.pods if pod.key not in placed)
    with Trial(sandbox) as trial:
        for pod in pods:
            if pod.key in placed and pod.uid not in own:
                trial.put_pod(pod, placed[pod.key])
        mark = trial.mark()
        for pod in alike.pods:
            if pod.key in placed:
                trial.put_pod(pod, placed[pod.key])
        advice = what_would_it_take(sandbox, first, limits=_SEARCH)
        trial.back_to(mark)
        plan.n_decisions += advice.n_tried
        edits = [
            item.edit for item in advice.edits if _is_harmless(item.edit) and not _asks_none(first, item.edit)
        ]
        for edit in edits:
            if plan.n_decisions >= until:
                break
            made = _smaller_for_all(trial, alike, edit, plan, until) if edit.kind == LOWER_REQUEST else edit
            n_placed = _n_placed(trial, alike, made, plan)
            if n_placed:
                found.append(WorkloadEdit(alike.pods, made, n_placed))
    return sorted(found, key=lambda item: item.rank)[:TOLD_PER_WORKLOAD]


def _is_harmless(edit: Edit) -> bool:
    """Whether it leaves the pods that run in peace and buys nothing."""
    return not edit.disruption and edit.cost < COST_NODE and edit.about in (POD, NODES)


def _asks_none(pod: Pod, edit: Edit) -> bool:
    """Whether the pod would ask for none of what it wants most: it would fit, and not work."""
    if edit.kind != LOWER_REQUEST:
        return False
    lowered = pod_from(edit.change["write"]).requests
    return any(amount and not lowered.get(name, 0) for name, amount in pod.requests.items())


def _n_placed(trial: Trial, alike: Alike, edit: Edit, plan: EditPlan) -> int:
    mark = trial.mark()
    _edit_nodes(trial, edit)
    n_placed = 0
    for pod in alike.pods:
        plan.n_decisions += 1
        if trial.place(edited(pod, edit), preempt=False).node is None:
            # The next one is alike, and finds less room.
            break
        n_placed += 1
    trial.back_to(mark)
    return n_placed


def _smaller_for_all(trial: Trial, alike: Alike, edit: Edit, plan: EditPlan, until: int) -> Edit:
    """The request lowered so far that all pods of the workload fit, where that is possible; else as it was."""
    if len(alike.pods) == 1 or _n_placed(trial, alike, edit, plan) == len(alike.pods):
        return edit
    lowered = pod_from(edit.change["write"]).requests
    resource = next(name for name, amount in alike.one.requests.items() if lowered.get(name, 0) != amount)
    best, fitting, failing = edit, 0, lowered.get(resource, 0)
    while failing - fitting > max(1, failing // 50) and plan.n_decisions < until:
        amount = pod_edits.round_amount(resource, (fitting + failing) // 2)
        variant = pod_edits.with_request(alike.one, resource, amount)
        if not fitting < amount < failing or variant is None:
            break
        if _n_placed(trial, alike, variant.edit, plan) == len(alike.pods):
            best, fitting = variant.edit, amount
        else:
            failing = amount
    return best


def edited(pod: Pod, edit: Edit) -> Pod:
    """The pod with the edit made; as it was, where the edit is of a node."""
    if edit.about != POD:
        return pod
    return pod_from({**pod.manifest, "spec": edit.change["write"]["spec"]})


def _edit_nodes(trial: Trial, edit: Edit) -> None:
    if edit.about == NODES and "write" in edit.change:
        trial.set_node(node_from(edit.change["write"]))


def make(trial: Trial, plan: EditPlan) -> dict[str, Edit]:
    """Make the first edit of each workload on the nodes; by uid the edits that pods are to get."""
    for found in plan.edits:
        _edit_nodes(trial, found[0].edit)
    return {pod.uid: found[0].edit for found in plan.edits for pod in found[0].pods}


def _run_together(sandbox: Sandbox, pods: Sequence[Pod], plan: EditPlan) -> None:
    """Make the first edit of each workload, and decide all pods in their order."""
    with Trial(sandbox) as trial:
        edit_of = make(trial, plan)
        for pod in pods:
            changed = edited(pod, edit_of[pod.uid]) if pod.uid in edit_of else pod
            plan.n_decisions += 1
            node = trial.place(changed, preempt=False).node
            if node is None:
                plan.left.append(changed)
            else:
                plan.placed.append((changed, node))
