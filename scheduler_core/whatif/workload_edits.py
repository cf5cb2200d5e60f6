"""What places pending pods: edits of each workload, proved on all its pods at once.

`advise` is the one way to ask: the page of a pod shows all that it finds, the plan of a backlog those that leave other
pods in peace and buy nothing. An edit is made of every pod of the workload that waits, as their owner makes all alike,
and all of them are placed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from scheduler_core.errors import CannotAnswer
from scheduler_core.extender.transport import Transport, no_transport
from scheduler_core.objects.defaults import PriorityClass, priority_class_from
from scheduler_core.objects.node import node_from
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.scheduler import Scheduler
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif import pod_edits
from scheduler_core.whatif.edits import (
    NODES,
    POD,
    Advice,
    Edit,
    ProvenEdit,
    SearchLimits,
)
from scheduler_core.whatif.fork import Fork, Report, silent
from scheduler_core.whatif.headroom import place_copies
from scheduler_core.whatif.what_would_it_take import what_would_it_take
from scheduler_core.whatif.why_not import causes_of, distances
from scheduler_core.whatif.workloads import Alike, alike_pending, classes_of, edited_in, spec_of_owner

MOST_WORKLOADS: Final = 12
"""Workloads whose edits are looked for, those with the most waiting pods first."""
SHOWN_PER_WORKLOAD: Final = 3
MOST_DECISIONS: Final = 12_000
"""Decisions that looking for edits may cost: a count, so that each machine answers the same."""


@dataclass(frozen=True, slots=True)
class EditedWorkload:
    """Edits of one workload.

    Attributes
    ----------
    pods : tuple of Pod
        Alike and pending, in scheduling order; the edit is made of all.
    edits : tuple of ProvenEdit
        Those of `advise` that leave other pods in peace and buy nothing, in its order; one at least.
    """

    pods: tuple[Pod, ...]
    edits: tuple[ProvenEdit, ...]


@dataclass(slots=True)
class EditPlan:
    """What was found.

    Attributes
    ----------
    edits : list of EditedWorkload
        Workloads with most waiting pods first.
    without : list of (Alike, ProvenEdit or None)
        Workloads that no such edit helps, and the claims that place their first pod once they are created.
    unlooked : list of Alike
        Workloads that were not looked at: they are beyond `MOST_WORKLOADS`, or `MOST_DECISIONS` had been run.
    placed : list of (Pod, str)
        Of all pending pods those that find a node once the first edit of each workload is made, as they are then,
        and where each lands.
    left : list of Pod
        As they are after these edits, and still find none.
    """

    edits: list[EditedWorkload] = field(default_factory=list)
    without: list[tuple[Alike, ProvenEdit | None]] = field(default_factory=list)
    unlooked: list[Alike] = field(default_factory=list)
    placed: list[tuple[Pod, str]] = field(default_factory=list)
    left: list[Pod] = field(default_factory=list)
    n_decisions: int = 0

    @property
    def n_together(self) -> int:
        """How many find a node with all first edits made."""
        return len(self.placed)


# ---- one workload


def limits_of(scheduler: Scheduler) -> SearchLimits:
    """How far to look: less far where every try is a call to an extender."""
    if scheduler.extenders:
        return SearchLimits(per_kind=3, exhaustive_pods=20, elsewhere=5, alike=40)
    return SearchLimits()


def advise(
    fork: Fork,
    pod: Pod,
    alike: Alike,
    *,
    fit_now: Mapping[str, str] = {},
    template: Mapping[str, object] | None = None,
    priority_classes: Sequence[PriorityClass] = (),
    limits: SearchLimits,
    report: Report = silent,
) -> Advice:
    """What would place a pod, each edit proved on all pending pods of its workload.

    Parameters
    ----------
    alike : Alike
        The pending pods that ask for the same, `pod` among them.
    fit_now : mapping of str to str
        Pod -> node, of those of `alike` that find one as things are: the search begins with them in their places.
    template, priority_classes, limits, report
        As `what_would_it_take` takes them.
    """
    with fork.changes(placed=[(one, fit_now[one.key]) for one in alike if one.key in fit_now]):
        advice = what_would_it_take(
            fork, pod, template=template, priority_classes=priority_classes, limits=limits, report=report
        )
    began, n_pods = fork.n_decisions, len(alike)
    until = began + limits.alike
    found: list[ProvenEdit] = []
    for item in advice.edits:
        edit, placed = item.edit, int(item.is_harmless and n_pods == 1)
        if item.is_harmless and n_pods > 1:
            if fork.n_decisions >= until:
                advice.n_unlooked += 1
            else:
                placed = _n_placed(fork, alike, edit, until)
                if edit.kind == "lower-request" and placed < n_pods:
                    edit, placed = _smaller_for_all(fork, alike, edit, placed, until)
        found.append(replace(item, edit=edit, placed=placed, of=n_pods))
    advice.edits = sorted(found, key=lambda item: item.rank)
    advice.n_decisions += fork.n_decisions - began
    return advice


def _n_placed(fork: Fork, alike: Alike, edit: Edit, until: int) -> int:
    """Of pods that are alike, how many find a node one after the other once the edit is made of all."""
    with fork.changes():
        _edit_nodes(fork, edit)
        most = max(until - fork.n_decisions, 1)
        counts, _ = place_copies(fork, edited(alike[0], edit), len(alike), most_decisions=most)
    return counts.total()


def _smaller_for_all(fork: Fork, alike: Alike, edit: Edit, placed: int, until: int) -> tuple[Edit, int]:
    """The request lowered so far that all pods of the workload fit, where that is possible; else the same edit."""
    lowered = pod_from(edit.change["write"]).requests
    resource = next(name for name, amount in alike[0].requests.items() if lowered.get(name, 0) != amount)
    best, fitting, failing = edit, 0, lowered.get(resource, 0)
    while failing - fitting > max(1, failing // 50) and fork.n_decisions < until:
        amount = pod_edits.round_amount(resource, (fitting + failing) // 2)
        variant = pod_edits.with_request(alike[0], resource, amount)
        if not fitting < amount < failing or variant is None:
            break
        if _n_placed(fork, alike, variant.edit, until) == len(alike):
            best, fitting, placed = variant.edit, amount, len(alike)
        else:
            failing = amount
    return best, placed


# ---- all that is pending


def edits_for(
    simulation: Simulation,
    fork: Fork,
    pods: Sequence[Pod],
    placed: Mapping[str, str],
    report: Report,
) -> EditPlan:
    """Find edits for the pods that find no node.

    Parameters
    ----------
    pods : sequence of Pod
        All that are pending, in the order in which they are decided.
    placed : mapping of str to str
        Pod -> node, of those that find one as things are.
    """
    plan = EditPlan()
    began = fork.n_decisions
    waiting = [alike for alike in classes_of(pods) if any(pod.key not in placed for pod in alike)]
    waiting.sort(key=lambda alike: -len(alike))
    limits = replace(limits_of(fork.scheduler), others=False)
    for number, alike in enumerate(waiting):
        if number == MOST_WORKLOADS or fork.n_decisions - began >= MOST_DECISIONS:
            plan.unlooked = waiting[number:]
            break
        report(number, min(len(waiting), MOST_WORKLOADS), f"edits for {alike[0].key}")
        own, template = {pod.uid for pod in alike}, spec_of_owner(simulation, alike[0])
        first = next(pod for pod in alike if pod.key not in placed)
        others = [(pod, placed[pod.key]) for pod in pods if pod.key in placed and pod.uid not in own]
        with fork.changes(placed=others):
            advice = advise(fork, first, alike, fit_now=placed, template=template, limits=limits)
        found = [item for item in advice.edits if item.is_harmless and not _asks_none(first, item.edit)]
        if found:
            plan.edits.append(EditedWorkload(alike, tuple(found[:SHOWN_PER_WORKLOAD])))
        else:
            claims = (item for item in advice.edits if item.edit.kind == "create-claim")
            plan.without.append((alike, next(claims, None)))
    _run_together(fork, pods, plan)
    plan.n_decisions = fork.n_decisions - began
    return plan


def _asks_none(pod: Pod, edit: Edit) -> bool:
    """Whether the pod would ask for none of what it wants most: it would fit, and not work."""
    if edit.about != POD:
        return False
    lowered = pod_from(edit.change["write"]).requests
    return any(amount and not lowered.get(name, 0) for name, amount in pod.requests.items())


def edited(pod: Pod, edit: Edit) -> Pod:
    """The pod with the edit made; unchanged where the edit is of a node."""
    if edit.about != POD:
        return pod
    return pod_from({**pod.manifest, "spec": edit.change["write"]["spec"]})


def _edit_nodes(fork: Fork, edit: Edit) -> None:
    if edit.about == NODES and "write" in edit.change:
        fork.set_nodes([node_from(edit.change["write"])])


def make(fork: Fork, plan: EditPlan) -> dict[str, Edit]:
    """Make the first edit of each workload on the nodes; by uid the edits that pods are to get."""
    for found in plan.edits:
        _edit_nodes(fork, found.edits[0].edit)
    return {pod.uid: found.edits[0].edit for found in plan.edits for pod in found.pods}


def _run_together(fork: Fork, pods: Sequence[Pod], plan: EditPlan) -> None:
    """Make the first edit of each workload, and decide all pods in their order."""
    with fork.changes():
        edit_of = make(fork, plan)
        for pod in pods:
            changed = edited(pod, edit_of[pod.uid]) if pod.uid in edit_of else pod
            node = fork.place(changed, preempt=False).node
            if node is None:
                plan.left.append(changed)
            else:
                plan.placed.append((changed, node))


# ---- one pod


class NotPending(CannotAnswer):
    """The pod is not there, or waits for no cycle here; the message says which."""


def pending_pod(simulation: Simulation, namespace: str, name: str) -> Pod:
    """A pod that waits for a scheduler of this cluster.

    Raises
    ------
    NotPending
    """
    pod = simulation.world.pod(namespace, name)
    if pod is None:
        raise NotPending(f"There is no pod {namespace}/{name}.")
    if pod.node_name:
        raise NotPending(f"{pod.key} runs on {pod.node_name} already.")
    if pod.scheduler_name not in simulation.scheduler.profiles:
        raise NotPending(f"{pod.key} waits for the scheduler {pod.scheduler_name}, which is not here.")
    if simulation.scheduler.cache.is_assumed(pod.uid):
        raise NotPending(f"{pod.key} has its node already and is being bound.")
    return pod


def edits_document(
    simulation: Simulation, pod: Pod, *, transport: Transport = no_transport, report: Report = silent
) -> dict[str, Any]:
    """Every edit that places `pod`, the cheapest first, and how far the nearest nodes are from taking it; JSON-able.

    It is about the cluster's own next cycle: where several nodes are as good, it names the one that would be drawn.
    """
    report(0, 9, "copying the cluster")
    fork = Fork(simulation.scheduler, transport=transport)
    classes = [priority_class_from(stored.manifest) for stored in simulation.world.all("PriorityClass")]
    alike = alike_pending(simulation, pod)
    advice = advise(
        fork,
        pod,
        alike,
        template=spec_of_owner(simulation, pod),
        priority_classes=classes,
        limits=limits_of(simulation.scheduler),
        report=lambda done, total, what: report(done + 1, total + 1, what),
    )
    near, n_nodes = distances(fork, pod)
    return advice.document() | {
        "causes": causes_of(fork, pod) if not advice.node else [],
        "editedIn": edited_in(simulation, pod),
        "nAlike": len(alike),
        "distances": [item.document() for item in near],
        "nNodes": n_nodes,
        "requests": dict(pod.requests),
        "priority": pod.priority,
    }
