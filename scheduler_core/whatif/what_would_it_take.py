"""'What would it take?': the single edits after which a pod that fits nowhere would fit.

Candidates come from what the cluster is made of (its taints, its priority classes, its nodes and pods) and from the
pod's own manifest; amounts are searched for by halving, which is exact because less of a request, or more skew, never
makes a pod fit worse. Every edit that is listed has been proven: the change is made in a `Fork` and the whole
scheduling cycle is run there again. Nothing of the real cluster changes.

An edit of the pod, a node put back to use, a pod's going or a new node counts when the cycle then binds the pod; a
higher priority also when it then preempts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import nsmallest
from typing import Any

import numpy as np

from scheduler_core.framework.failure import PluginFailure
from scheduler_core.framework.record import BOUND, ERROR, PREEMPTING, UNSCHEDULABLE
from scheduler_core.objects.defaults import (
    PREEMPT_LOWER_PRIORITY,
    SYSTEM_PRIORITY_CLASSES,
    PriorityClass,
)
from scheduler_core.objects.node import LABEL_HOSTNAME, Node, Taint
from scheduler_core.objects.pod import Pod
from scheduler_core.schedule_one import Decision
from scheduler_core.whatif import cluster_edits, pod_edits
from scheduler_core.whatif.cluster_edits import NodeEdit, free_room_title, removal_of, size_of_losing
from scheduler_core.whatif.edits import (
    COST_RESTART,
    Advice,
    Edit,
    FailedEdit,
    ProvenEdit,
    SearchLimits,
    both_of,
    cost_of_losing,
    disruption_of,
    edit,
    landings,
)
from scheduler_core.whatif.fork import Fork, Report, homeless, names_of, silent
from scheduler_core.whatif.pod_edits import CORDON, KEEPS_OFF, Variant

N_STEPS = 11
NODE_CRITICAL = "system-node-critical"
NEW_CLASS = PriorityClass("high-priority", 1_000_000, False, PREEMPT_LOWER_PRIORITY)
"""The class that the documentation of Kubernetes gives as its example."""
MAX_PAIRS = 200
"""Second edits that are tried beside a first one that does not help alone."""
MAX_SHAPES = 20
"""Kinds of nodes a new one is tried of, the commonest first."""


def what_would_it_take(
    fork: Fork,
    pod: Pod,
    *,
    template: Mapping[str, Any] | None = None,
    priority_classes: Sequence[PriorityClass] = (),
    limits: SearchLimits | None = None,
    report: Report = silent,
) -> Advice:
    """Find every single edit that places `pod`, smallest first.

    Parameters
    ----------
    fork : Fork
        Changed while this runs, and back as it was afterwards.
    pod : Pod
        Pending.
    template : mapping, optional
        The spec of its owner's pod template: fields that are not of it were set by a controller and are not edited.
    priority_classes : sequence of PriorityClass
        The cluster's; those above the pod's priority are tried.

    Raises
    ------
    KeyError
        No profile has the pod's schedulerName.
    """
    return _Search(fork, pod, template, priority_classes, limits or SearchLimits(), report).run()


class _Search:
    """One question on its way."""

    def __init__(
        self,
        fork: Fork,
        pod: Pod,
        template: Mapping[str, Any] | None,
        priority_classes: Sequence[PriorityClass],
        limits: SearchLimits,
        report: Report,
    ) -> None:
        self.fork = fork
        self.pod = pod
        self.template = None if template is None else dict(template)
        self.priority_classes = priority_classes
        self.limits = limits
        self.report = report
        self.not_alone: list[Variant] = []
        self._began = fork.n_decisions
        now = fork.decide(pod, preempt=True)
        self.advice = Advice(pod.key, len(fork.snapshot.order), _outcome(now), _node(now), now.message)

    def run(self) -> Advice:
        advice = self.advice
        if advice.outcome == BOUND:
            return advice
        steps: tuple[tuple[str, Callable[[], None]], ...] = (
            ("claims that are missing", self._create_claims),
            ("selectors, affinity, tolerations and ports", self._pod_variants),
            ("smaller requests", self._lower_requests),
            ("wider spread", self._relax_spread),
            ("higher priorities", self._raise_priority),
            ("cordoned nodes", self._uncordon),
            ("labels of nodes", self._label_nodes),
            ("other pods leaving", self._departures),
            ("new nodes", self._add_nodes),
            ("pairs of edits", self._pairs),
        )
        for done, (what, step) in enumerate(steps):
            self.report(done, N_STEPS, what)
            if self.limits.others or step not in (self._raise_priority, self._departures):
                step()
        self.report(N_STEPS - 1, N_STEPS, "ranking")
        advice.edits.sort(key=lambda item: item.rank)
        advice.n_decisions = self.fork.n_decisions - self._began
        return advice

    # ---- the pod

    def _pod_variants(self) -> None:
        self.not_alone = [item for item in self._variants_of(self.pod) if not self._prove_variant(item)]

    def _variants_of(self, pod: Pod) -> list[Variant]:
        return [
            *pod_edits.tolerations(pod, self._taints()),
            *pod_edits.without_selectors(pod, self.template),
            *pod_edits.without_node_affinity(pod, self.template),
            *pod_edits.without_affinity_terms(pod, self.template),
            *pod_edits.without_host_ports(pod),
        ]

    def _pairs(self) -> None:
        """Two edits of the pod, where no single edit helps that leaves others in peace and wants no new node."""
        if any(item.is_harmless for item in self.advice.edits):
            return
        n_proven = 0
        done: set[frozenset[str]] = set()
        for first in self.not_alone:
            smaller = (found for _, found in self._smaller(first.pod) if found is not None)
            for second in (*self._variants_of(first.pod), *smaller):
                titles = frozenset((first.edit.title, second.edit.title))
                if len(titles) < 2 or titles in done:
                    continue
                done.add(titles)
                if len(done) > MAX_PAIRS or n_proven == (self.limits.per_kind or MAX_PAIRS):
                    return
                n_proven += self._prove_variant(Variant(both_of(first.edit, second.edit), second.pod))

    def _taints(self) -> list[Taint]:
        """Taints of the cluster's nodes that keep the pod off, cordons among them."""
        snapshot = self.fork.snapshot
        nodes = snapshot.nodes
        found: dict[Taint, None] = {}
        for list_id in np.unique(nodes.taint_list_id[snapshot.rows]).tolist():
            found |= dict.fromkeys(nodes.vocabulary.taint_lists[list_id])
        if nodes.unschedulable[snapshot.rows].any():
            found[CORDON] = None
        keep_off = (item for item in found if item.effect in KEEPS_OFF and not self.pod.tolerates(item))
        return sorted(keep_off, key=str)

    def _lower_requests(self) -> None:
        for none, variant in self._smaller(self.pod):
            self.advice.n_tried += 1
            if variant is not None:
                self._prove_variant(variant, counted=True)
            elif none is not None:
                self._fail(none.edit, self.fork.decide(none.pod))

    def _smaller(self, pod: Pod) -> Iterator[tuple[Variant | None, Variant | None]]:
        """For each resource the pod without any of it, and with as much as lets it fit; None where it cannot."""
        for resource, amount in pod.requests.items():
            if amount <= 0 or resource == "pods":
                continue
            none = pod_edits.with_request(pod, resource, 0)
            if none is None or not self.fork.fits(none.pod):
                yield none, None
                continue

            def fits(value: int, resource: str = resource) -> bool:
                variant = pod_edits.with_request(pod, resource, value)
                return variant is not None and self.fork.fits(variant.pod)

            best = pod_edits.round_amount(resource, _halved(fits, 0, amount))
            yield none, pod_edits.with_request(pod, resource, best)

    def _relax_spread(self) -> None:
        pod, fits = self.pod, self.fork.fits
        for index, before in pod_edits.hard_spread(pod, self.template):
            honoring = pod_edits.honoring(pod, index)
            if honoring is not None:
                self._prove_variant(honoring)
            self.advice.n_tried += 1
            # With more skew than there are pods a constraint asks for the topology label alone.
            top = before + len(self.fork.snapshot.pods) + 1
            if not fits(pod_edits.with_max_skew(pod, index, top).pod):
                self._prove_variant(pod_edits.without_spread(pod, index))
                continue

            def fits_with(value: int, index: int = index) -> bool:
                return fits(pod_edits.with_max_skew(pod, index, value).pod)

            best = _halved(fits_with, top, before)
            self._prove_variant(pod_edits.with_max_skew(pod, index, best), counted=True)

    def _raise_priority(self) -> None:
        for item, is_new in self._higher_classes():
            self.advice.n_tried += 1
            variant = pod_edits.with_priority(self.pod, item, is_new=is_new)
            decision = self.fork.decide(variant.pod, preempt=True)
            if _outcome(decision) == BOUND:
                self.advice.edits.append(_proven(variant.edit, decision))
            elif _outcome(decision) == PREEMPTING:
                victims = decision.post_filter.victims if decision.post_filter is not None else ()
                proven = _proven(self._priced(variant.edit, victims), decision)
                ends = landings(self.fork, variant.pod, proven.node, victims)
                self.advice.edits.append(replace(proven, displaced=ends))
            else:
                self._fail(variant.edit, decision)

    def _higher_classes(self) -> Iterator[tuple[PriorityClass, bool]]:
        """Classes above the pod's priority, and whether each is still to be made.

        The system's own are for the system's DaemonSets alone; for those of others a class is made where there is none.
        """
        is_daemon, is_system = pod_edits.is_daemon(self.pod), self.pod.namespace == "kube-system"
        found = [
            item
            for item in sorted(self.priority_classes, key=lambda one: (one.value, one.name))
            if item.value > self.pod.priority
            and (item.name not in SYSTEM_PRIORITY_CLASSES or (is_daemon and is_system))
        ]
        if is_daemon and is_system and not any(item.name in SYSTEM_PRIORITY_CLASSES for item in found):
            value = SYSTEM_PRIORITY_CLASSES[NODE_CRITICAL]
            found += [PriorityClass(NODE_CRITICAL, value, False, PREEMPT_LOWER_PRIORITY)]
        yield from ((item, False) for item in found if item.value > self.pod.priority)
        if is_daemon and not is_system and not found and self.pod.priority < NEW_CLASS.value:
            yield NEW_CLASS, True

    def _priced(self, edit: Edit, victims: Sequence[Pod]) -> Edit:
        """What a higher priority costs is what its victims lose."""
        cost, price = cost_of_losing(self.fork, victims)
        names = ", ".join(victim.name for victim in victims[:4])
        more = f" and {len(victims) - 4} more" if len(victims) > 4 else ""
        return replace(
            edit,
            cost=max(cost, edit.cost),
            disruption=disruption_of(cost),
            price=price,
            size=float(len(victims)),
            note=f"Preempts {names}{more}",
        )

    # ---- what the pod names

    def _create_claims(self) -> None:
        """Create what the pod's volumes name, in the first way that places it."""
        listers = self.fork.cache.listers
        names = cluster_edits.missing_claims(self.pod, listers)
        for found, objects in cluster_edits.claims_created(self.pod, names, listers) if names else ():
            self.advice.n_tried += 1
            if self._prove(found, objects=objects):
                return

    # ---- nodes

    def _uncordon(self) -> None:
        snapshot = self.fork.snapshot
        rows = [row for row in snapshot.order.tolist() if snapshot.nodes.unschedulable[row]]
        if len(rows) > self.limits.exhaustive_pods:
            # Those that would pass if the pod did not mind cordons.
            feasible = set(self._feasible(next(iter(pod_edits.tolerations(self.pod, [CORDON]))).pod))
            rows = [row for row in rows if row in feasible]
        self._prove_nodes("uncordon", [cluster_edits.uncordoned(snapshot.nodes.node(row)) for row in rows])

    def _label_nodes(self) -> None:
        wanted = cluster_edits.wanted_labels(self.pod)
        if wanted:
            shapes = self._shapes(self._feasible(cluster_edits.without_node_rules(self.pod)))
            found = [cluster_edits.labelled(alike, labels) for alike in shapes for labels in wanted]
            self._prove_nodes("label-node", [item for item in found if item is not None])

    def _feasible(self, pod: Pod) -> list[int]:
        try:
            return list(self.fork.attempt(pod).feasible.tolist())
        except PluginFailure:
            return []

    def _shapes(self, rows: Iterable[int]) -> list[list[Node]]:
        """Nodes of these rows by what tells their kind, the commonest kind first."""
        snapshot = self.fork.snapshot
        shapes: dict[Any, list[Node]] = {}
        for row in rows:
            node = snapshot.nodes.node(row)
            shapes.setdefault(cluster_edits.shape_of(node), []).append(node)
        kinds = sorted(shapes.values(), key=lambda alike: -len(alike))
        return kinds if self.limits.per_kind is None else kinds[:MAX_SHAPES]

    def _add_nodes(self) -> None:
        firsts = [alike[0] for alike in self._shapes(self.fork.snapshot.order.tolist())]
        candidates = [cluster_edits.node_like(node, self._new_name(node.name)) for node in firsts]
        if self._prove_nodes("add-node", candidates):
            return
        # None of those there are would do: such as carry other labels, larger ones, and such as stand elsewhere.
        for labels, why in cluster_edits.places_for(self.fork, self.pod):
            other: dict[Any, NodeEdit] = {}
            for node in firsts:
                name = labels.get(LABEL_HOSTNAME) or self._new_name(node.name)
                if self.fork.cache.node(name) is None:
                    made = cluster_edits.like_with(node, name, labels, why)
                    other.setdefault(cluster_edits.shape_of(made[1]), made)
            self._prove_nodes("add-labelled-node", other.values())
        workers = [node for node in firsts if cluster_edits.is_control_plane(node)]
        if workers:
            plain = [cluster_edits.node_like(node, self._new_name("worker"), plain=True) for node in workers]
            self._prove_nodes("add-node", plain)
        n_larger = 0
        for node in firsts:
            if n_larger == (self.limits.per_kind or MAX_SHAPES):
                break
            n_larger += any(
                self._prove_nodes("add-larger-node", [item])
                for item in cluster_edits.larger(node, self._new_name(node.name))
            )
        for key in cluster_edits.topology_keys(self.pod):
            elsewhere = [cluster_edits.in_new_domain(node, self._new_name(node.name), key) for node in firsts]
            self._prove_nodes("add-zone", elsewhere)

    def _new_name(self, like: str) -> str:
        number = 2
        while self.fork.cache.node(f"{like}-{number}") is not None:
            number += 1
        return f"{like}-{number}"

    def _prove_nodes(self, kind: str, candidates: Iterable[NodeEdit]) -> int:  # how many help
        n_proven = 0
        for found, node in sorted(candidates, key=lambda item: item[0].rank):
            self.advice.n_tried += 1
            if self.limits.per_kind is not None and n_proven >= self.limits.per_kind:
                self.advice.n_more[kind] = self.advice.n_more.get(kind, 0) + 1
            else:
                n_proven += self._prove(found, nodes=[node])
        return n_proven

    # ---- other pods

    def _departures(self) -> None:
        fork = self.fork
        try:
            attempt = fork.attempt(self.pod)
        except PluginFailure:
            return
        snapshot = fork.snapshot
        pods, name_of = snapshot.pods, snapshot.nodes.name
        self.advice.n_tried += len(pods)
        single: list[int] = []
        sets: list[tuple[str, list[Pod]]] = []
        if attempt.pre_filter_status.is_success:
            found = cluster_edits.departures(attempt)
            single = [pod_id for _, pod_id in found.single()]
            sets = [(name_of(row), [pods[pod_id] for pod_id in pod_ids]) for row, pod_ids in found.sets()]
        if len(pods) <= self.limits.exhaustive_pods:
            may_go = (pods.row >= 0) & (pods.priority < cluster_edits.may_go_below(self.pod))
            wider = np.flatnonzero(may_go).tolist()
        else:
            wider = cluster_edits.matters_elsewhere(attempt)[: self.limits.elsewhere]
        # A pod that left and came back may have another place in the table: from here on pods go by themselves.
        leaving = {pods[pod_id].uid: pods[pod_id] for pod_id in single}
        for pod in [pods[pod_id] for pod_id in wider]:
            if pod.uid not in leaving:
                with fork.changes(gone=[pod]):
                    helps = fork.fits(self.pod)
                if helps:
                    leaving[pod.uid] = pod
        places = [(fork.cache.node_name_of(uid) or "", [leaving[uid]]) for uid in sorted(leaving)]
        self._prove_departures("delete-pod", [item for item in places if item[0]])
        # Where one pod's going helps, a set of them is no smaller edit.
        served = {name for name, _ in places}
        sets = [item for item in sets if item[0] not in served]
        self.advice.n_tried += (
            len(sets) if self.limits.per_kind is None else min(len(sets), self.limits.per_kind)
        )
        self._prove_departures("free-room", sets)

    def _prove_departures(self, kind: str, groups: Sequence[tuple[str, list[Pod]]]) -> None:
        """The going of pods of one node, those first that cost least: thousands are not proven."""
        fork, limit = self.fork, self.limits.per_kind

        def rank(group: tuple[str, list[Pod]]) -> tuple[int, float, str]:
            cost, _ = cost_of_losing(fork, group[1])
            return cost, size_of_losing(group[1]), free_room_title(*group)

        if limit is not None and len(groups) > limit:
            self.advice.n_more[kind] = len(groups) - limit
            groups = nsmallest(limit, groups, key=rank)
        items = [(removal_of(fork, kind, name, pods, self.pod.requests), name, pods) for name, pods in groups]
        for found, origin, pods in sorted(items, key=lambda item: item[0].rank):
            with fork.changes(gone=pods):
                decision = fork.decide(self.pod)
                if not self._listed(found, decision):
                    continue
                place = len(self.advice.edits) - 1
                if kind == "delete-pod":
                    self._move(pods[0], origin, decision)
            proven = self.advice.edits[place]
            ends = landings(fork, self.pod, proven.node, pods)
            self.advice.edits[place] = replace(proven, displaced=ends)

    def _move(self, pod: Pod, origin: str, decision: Decision) -> None:
        """Whether the pod that goes fits elsewhere, once the pending one has its place."""
        fork, at = self.fork, decision.node_name
        if at is None or pod.is_terminating or fork.scheduler.waiting_pods.get(pod.uid):
            return
        if pod.meta.controller is not None or pod.scheduler_name not in fork.scheduler.profiles:
            return
        self.advice.n_tried += 1
        moved = homeless(pod)
        with fork.changes(placed=[(self.pod, at)]):
            second = fork.decide(moved)
        target = second.node_name
        if target is None or target == origin or second.error is not None:
            return
        with fork.changes(placed=[(moved, target)]):
            # Where it now runs may matter to the pending pod (spread, affinity): its cycle is run once more.
            last = fork.decide(self.pod)
        if last.node_name is None or last.error is not None:
            return
        found = edit(
            "move-pod",
            f"Move {pod.name} from {origin} to {target}",
            {"move": [pod.key, target]},
            note=f"It fits there, and makes room on {origin}",
            removed=[f"{pod.name} nodeName: {origin}"],
            added=[f"{pod.name} nodeName: {target}"],
            size=size_of_losing([pod]),
            disruption=disruption_of(COST_RESTART),
        )
        self.advice.edits.append(_proven(found, last))

    # ---- proofs

    def _prove_variant(self, variant: Variant, *, counted: bool = False) -> bool:
        self.advice.n_tried += not counted
        return self._listed(variant.edit, self.fork.decide(variant.pod))

    def _prove(self, found: Edit, **change: Any) -> bool:
        """Run the pod's cycle with a change of the cluster (`Fork.changes`)."""
        with self.fork.changes(**change):
            return self._listed(found, self.fork.decide(self.pod))

    def _listed(self, found: Edit, decision: Decision) -> bool:
        """Keep a proof, or the failure."""
        if decision.node_name is None or decision.error is not None:
            self._fail(found, decision)
            return False
        self.advice.edits.append(_proven(found, decision))
        return True

    def _fail(self, found: Edit, decision: Decision) -> None:
        failed = self.advice.failed
        if sum(item.kind == found.kind for item in failed) < self.limits.failed_per_kind:
            failed.append(FailedEdit(found.kind, found.title, decision.fit_error or decision.error or ""))


def _halved(fits: Callable[[int], bool], fitting: int, failing: int) -> int:
    """The last value that fits on the way from one that does to one that does not."""
    while abs(failing - fitting) > 1:
        middle = (fitting + failing) // 2
        if fits(middle):
            fitting = middle
        else:
            failing = middle
    return fitting


def _outcome(decision: Decision) -> str:
    if decision.error is not None:
        return ERROR
    if decision.node_name is not None:
        return BOUND
    result = decision.post_filter
    nominated = result is not None and result.status.is_success and bool(result.nominated_node_name)
    return PREEMPTING if nominated else UNSCHEDULABLE


def _node(decision: Decision) -> str | None:
    if decision.node_name is not None:
        return decision.node_name
    return decision.post_filter.nominated_node_name if decision.post_filter is not None else None


def _proven(edit: Edit, decision: Decision) -> ProvenEdit:
    result = decision.post_filter
    victims = () if result is None else tuple(victim.key for victim in result.victims)
    return ProvenEdit(
        edit, _node(decision) or "", _outcome(decision), decision.n_feasible, names_of(decision, 6), victims
    )
