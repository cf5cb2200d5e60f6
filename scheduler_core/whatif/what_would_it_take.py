"""'What would it take?': the single edits after which a pod that fits nowhere would fit.

Candidates come from what the cluster is made of (its taints, its priority classes, its nodes and pods) and from the
pod's own manifest; amounts are searched for by halving, which is exact because less of a request, or more skew, never
makes a pod fit worse. Every edit that is told has been proven: the change is made in a `Sandbox` and the whole
scheduling cycle is run there again. Nothing of the real cluster changes.

An edit of the pod, a node put back to use, a pod's going or a new node counts when the cycle then binds the pod; a
higher priority also when it then preempts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from heapq import nsmallest
from typing import Any

import numpy as np

from scheduler_core.framework.failure import PluginFailure
from scheduler_core.framework.record import BOUND, ERROR, PREEMPTING, UNSCHEDULABLE
from scheduler_core.objects.defaults import PREEMPT_LOWER_PRIORITY, SYSTEM_PRIORITY_CLASSES, PriorityClass
from scheduler_core.objects.node import LABEL_HOSTNAME, TAINT_UNSCHEDULABLE, Node, Taint
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.objects.resources import CPU
from scheduler_core.schedule_one import Decision
from scheduler_core.whatif import cluster_edits, edits, pod_edits
from scheduler_core.whatif.cluster_edits import PodsToGo, free_room_title, pods_to_go, size_of_losing
from scheduler_core.whatif.edits import (
    Advice,
    Edit,
    FailedEdit,
    ProvenEdit,
    SearchLimits,
    both_of,
    cost_of_losing,
    disruption_of,
    landings,
    owner_is_there,
)
from scheduler_core.whatif.fork import Sandbox, names_of
from scheduler_core.whatif.pod_edits import Variant

Report = Callable[[int, int, str], None]
"""(steps done, steps in all, what is tried now)."""

N_STEPS = 11
NODE_CRITICAL = "system-node-critical"
NEW_CLASS = PriorityClass("high-priority", 1_000_000, False, PREEMPT_LOWER_PRIORITY)
"""The class that the documentation of Kubernetes gives as its example."""
MAX_PAIRS = 200
"""Second edits that are tried beside a first one that does not help alone."""
MAX_SHAPES = 20
"""Kinds of nodes a new one is tried of, the commonest first."""
_KEEPS_OFF = ("NoSchedule", "NoExecute")


def what_would_it_take(
    sandbox: Sandbox,
    pod: Pod,
    *,
    template: Mapping[str, Any] | None = None,
    priority_classes: Sequence[PriorityClass] = (),
    limits: SearchLimits | None = None,
    report: Report | None = None,
) -> Advice:
    """Find every single edit that places `pod`, smallest first.

    Parameters
    ----------
    sandbox : Sandbox
        Changed while this runs, and back as it was afterwards.
    pod : Pod
        Pending.
    template : mapping, optional
        The spec of its owner's pod template: fields that are not of it were set by a controller and are not edited.
    priority_classes : sequence of PriorityClass
        The cluster's; those above the pod's priority are tried.
    report : callable, optional
        Told of each step.

    Raises
    ------
    KeyError
        No profile has the pod's schedulerName.
    """
    found = _Search(sandbox, pod, priority_classes, limits or SearchLimits(), report or _silent)
    found.template = None if template is None else dict(template)
    return found.run()


def _silent(done: int, total: int, what: str) -> None:
    """Progress is not shown."""


def _nothing() -> None:
    """A step that is left out."""


class _Search:
    """One question on its way."""

    def __init__(
        self,
        sandbox: Sandbox,
        pod: Pod,
        priority_classes: Sequence[PriorityClass],
        limits: SearchLimits,
        report: Report,
    ) -> None:
        self.sandbox = sandbox
        self.pod = pod
        self.priority_classes = priority_classes
        self.limits = limits
        self.report = report
        self.template: dict[str, Any] | None = None
        self.failed: list[FailedEdit] = []
        self.not_alone: list[Variant] = []
        self._began = sandbox.n_decisions
        now = sandbox.decide(pod, preempt=True)
        self.advice = Advice(pod.key, len(sandbox.snapshot.order), _outcome(now), _node(now), now.message)

    def run(self) -> Advice:
        advice = self.advice
        if advice.outcome == BOUND:
            return advice
        steps: tuple[tuple[str, Callable[[], None]], ...] = (
            ("claims that are missing", self._create_claims),
            ("selectors, affinity, tolerations and ports", self._pod_variants),
            ("smaller requests", self._lower_requests),
            ("wider spread", self._relax_spread),
            ("higher priorities", self._raise_priority if self.limits.others else _nothing),
            ("cordoned nodes", self._uncordon),
            ("labels of nodes", self._label_nodes),
            ("other pods leaving", self._departures if self.limits.others else _nothing),
            ("new nodes", self._add_nodes),
            ("pairs of edits", self._pairs),
        )
        for done, (what, step) in enumerate(steps):
            self.report(done, N_STEPS, what)
            step()
        self.report(N_STEPS - 1, N_STEPS, "ranking")
        advice.edits.sort(key=lambda item: item.rank)
        advice.failed = self.failed
        advice.n_decisions = self.sandbox.n_decisions - self._began
        return advice

    # ---- the pod

    def _pod_variants(self) -> None:
        for variant in self._variants_of(self.pod):
            if not self._prove_variant(variant):
                self.not_alone.append(variant)

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
        told = 0
        done: set[frozenset[str]] = set()
        for first in self.not_alone:
            for second in (*self._variants_of(first.pod), *self._smaller(first.pod)):
                titles = frozenset((first.edit.title, second.edit.title))
                if len(titles) < 2 or titles in done:
                    continue
                done.add(titles)
                if len(done) > MAX_PAIRS or told == (self.limits.per_kind or MAX_PAIRS):
                    return
                told += self._prove_variant(Variant(both_of(first.edit, second.edit), second.pod))

    def _smaller(self, pod: Pod) -> list[Variant]:
        """The pod with as much less of one resource as lets it fit."""
        found = []
        for resource, amount in pod.requests.items():
            none = pod_edits.with_request(pod, resource, 0) if amount > 0 and resource != "pods" else None
            if none is None or not self.sandbox.fits(none.pod):
                continue

            def asking(value: int, resource: str = resource) -> Variant | None:
                return pod_edits.with_request(pod, resource, value)

            best = asking(pod_edits.round_amount(resource, self._largest(asking, 0, amount)))
            found += [best] if best is not None else []
        return found

    def _taints(self) -> list[Taint]:
        """Taints of the cluster's nodes that keep the pod off, cordons among them."""
        snapshot = self.sandbox.snapshot
        nodes = snapshot.nodes
        found: dict[Taint, None] = {}
        for list_id in np.unique(nodes.taint_list_id[snapshot.rows]).tolist():
            for taint in nodes.vocabulary.taint_lists[list_id]:
                found[taint] = None
        if nodes.unschedulable[snapshot.rows].any():
            found[Taint(TAINT_UNSCHEDULABLE, "", "NoSchedule")] = None
        return sorted(
            (taint for taint in found if taint.effect in _KEEPS_OFF and not self.pod.tolerates(taint)),
            key=str,
        )

    def _lower_requests(self) -> None:
        for resource, amount in self.pod.requests.items():
            if amount <= 0 or resource == "pods":
                continue
            self.advice.n_tried += 1
            none = pod_edits.with_request(self.pod, resource, 0)
            if none is None or not self.sandbox.fits(none.pod):
                if none is not None:
                    self._fail(none.edit, self.sandbox.decide(none.pod))
                continue

            def asking(value: int, resource: str = resource) -> Variant | None:
                return pod_edits.with_request(self.pod, resource, value)

            best = self._largest(asking, 0, amount)
            variant = asking(pod_edits.round_amount(resource, best))
            if variant is not None:
                self._prove_variant(variant, counted=True)

    def _largest(self, variant_of: Callable[[int], Variant | None], fitting: int, failing: int) -> int:
        """The largest amount that fits, between one that does and one that does not."""
        while failing - fitting > 1:
            middle = (fitting + failing) // 2
            variant = variant_of(middle)
            if variant is not None and self.sandbox.fits(variant.pod):
                fitting = middle
            else:
                failing = middle
        return fitting

    def _relax_spread(self) -> None:
        for index, before in pod_edits.hard_spread(self.pod, self.template):
            honoring = pod_edits.honoring(self.pod, index)
            if honoring is not None:
                self._prove_variant(honoring)
            self.advice.n_tried += 1
            # With more skew than there are pods a constraint asks for the topology label alone.
            top = before + len(self.sandbox.snapshot.pods) + 1
            widest = pod_edits.with_max_skew(self.pod, index, top)
            if not self.sandbox.fits(widest.pod):
                self._prove_variant(pod_edits.without_spread(self.pod, index))
                continue
            failing, fitting = before, top
            while fitting - failing > 1:
                middle = (fitting + failing) // 2
                if self.sandbox.fits(pod_edits.with_max_skew(self.pod, index, middle).pod):
                    fitting = middle
                else:
                    failing = middle
            self._prove_variant(pod_edits.with_max_skew(self.pod, index, fitting), counted=True)

    def _raise_priority(self) -> None:
        for item, is_new in self._higher_classes():
            self.advice.n_tried += 1
            variant = pod_edits.with_priority(self.pod, item, is_new=is_new)
            decision = self.sandbox.decide(variant.pod, preempt=True)
            outcome = _outcome(decision)
            if outcome not in (BOUND, PREEMPTING):
                self._fail(variant.edit, decision)
                continue
            proven = _proven(self._priced(variant.edit, decision), decision)
            result = decision.post_filter
            if outcome == PREEMPTING and result is not None:
                ends = landings(self.sandbox, variant.pod, proven.node, result.victims)
                proven = replace(proven, displaced=ends)
            self.advice.edits.append(proven)

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

    def _priced(self, edit: Edit, decision: Decision) -> Edit:
        """What a higher priority costs is what its victims lose."""
        result = decision.post_filter
        if result is None or decision.node_name is not None:
            return edit
        waiting = {item.pod.uid: item for item in self.sandbox.scheduler.waiting_pods.all()}
        cost, price = cost_of_losing(result.victims, waiting, partial(owner_is_there, self.sandbox))
        names = ", ".join(victim.name for victim in result.victims[:4])
        more = f" and {len(result.victims) - 4} more" if len(result.victims) > 4 else ""
        return replace(
            edit,
            cost=max(cost, edit.cost),
            disruption=disruption_of(cost),
            price=price,
            size=float(len(result.victims)),
            note=f"Preempts {names}{more}",
        )

    # ---- what the pod names

    def _create_claims(self) -> None:
        """Create what the pod's volumes name, in the first way that places it."""
        listers = self.sandbox.scheduler.cache.listers
        names = cluster_edits.missing_claims(self.pod, listers)
        for edit, objects in cluster_edits.claims_created(self.pod, names, listers) if names else ():
            self.advice.n_tried += 1
            with self.sandbox.with_objects(objects):
                decision = self.sandbox.decide(self.pod)
            if self._told(edit, decision):
                return

    # ---- nodes

    def _uncordon(self) -> None:
        snapshot = self.sandbox.snapshot
        rows = [row for row in snapshot.order.tolist() if snapshot.nodes.unschedulable[row]]
        if len(rows) > self.limits.exhaustive_pods:
            rows = self._would_do_uncordoned(rows)
        found: list[tuple[Edit, Node]] = [cluster_edits.uncordoned(snapshot.nodes.node(row)) for row in rows]
        self._prove_nodes(edits.UNCORDON, found)

    def _label_nodes(self) -> None:
        wanted = cluster_edits.wanted_labels(self.pod)
        if not wanted:
            return
        try:
            rows = self.sandbox.attempt(cluster_edits.without_node_rules(self.pod)).feasible.tolist()
        except PluginFailure:
            return
        found = [cluster_edits.labelled(alike, labels) for alike in self._shapes(rows) for labels in wanted]
        self._prove_nodes(edits.LABEL_NODE, [item for item in found if item is not None])

    def _shapes(self, rows: Iterable[int]) -> list[list[Node]]:
        """Nodes of these rows by what tells their kind, the commonest kind first."""
        snapshot = self.sandbox.snapshot
        shapes: dict[Any, list[Node]] = {}
        for row in rows:
            node = snapshot.nodes.node(row)
            shapes.setdefault(cluster_edits.shape_of(node), []).append(node)
        kinds = sorted(shapes.values(), key=lambda alike: -len(alike))
        return kinds if self.limits.per_kind is None else kinds[:MAX_SHAPES]

    def _would_do_uncordoned(self, rows: Sequence[int]) -> list[int]:
        """Of many cordoned nodes those that would pass if the pod did not mind cordons."""
        cordon = Taint(TAINT_UNSCHEDULABLE, "", "NoSchedule")
        lenient = next(iter(pod_edits.tolerations(self.pod, [cordon])))
        try:
            feasible = set(self.sandbox.attempt(lenient.pod).feasible.tolist())
        except PluginFailure:
            return []
        return [row for row in rows if row in feasible]

    def _add_nodes(self) -> None:
        firsts = [alike[0] for alike in self._shapes(self.sandbox.snapshot.order.tolist())]
        candidates = [cluster_edits.node_like(node, self._new_name(node.name)) for node in firsts]
        if self._prove_nodes(edits.ADD_NODE, candidates):
            return
        # None of those there are would do: such as carry other labels, larger ones, and such as stand elsewhere.
        for labels, why in cluster_edits.places_for(self.sandbox, self.pod):
            other: dict[Any, tuple[Edit, Node]] = {}
            for node in firsts:
                name = labels.get(LABEL_HOSTNAME) or self._new_name(node.name)
                if self.sandbox.scheduler.cache.node(name) is None:
                    made = cluster_edits.like_with(node, name, labels, why)
                    other.setdefault(cluster_edits.shape_of(made[1]), made)
            self._prove_nodes(edits.ADD_LABELLED_NODE, other.values())
        workers = [node for node in firsts if cluster_edits.is_control_plane(node)]
        if workers:
            plain = [cluster_edits.node_like(node, self._new_name("worker"), plain=True) for node in workers]
            self._prove_nodes(edits.ADD_NODE, plain)
        n_larger = 0
        for node in firsts:
            if n_larger == (self.limits.per_kind or MAX_SHAPES):
                break
            n_larger += any(
                self._prove_nodes(edits.ADD_LARGER_NODE, [item])
                for item in cluster_edits.larger(node, self._new_name(node.name))
            )
        for key in cluster_edits.topology_keys(self.pod):
            elsewhere = [cluster_edits.in_new_domain(node, self._new_name(node.name), key) for node in firsts]
            self._prove_nodes(edits.ADD_ZONE, elsewhere)

    def _new_name(self, like: str) -> str:
        number = 2
        while self.sandbox.scheduler.cache.node(f"{like}-{number}") is not None:
            number += 1
        return f"{like}-{number}"

    def _prove_nodes(self, kind: str, candidates: Iterable[tuple[Edit, Node]]) -> int:  # how many help
        n_proven = 0
        for edit, node in sorted(candidates, key=lambda item: item[0].rank):
            self.advice.n_tried += 1
            if self.limits.per_kind is not None and n_proven >= self.limits.per_kind:
                self.advice.n_more[kind] = self.advice.n_more.get(kind, 0) + 1
                continue
            with self.sandbox.with_node(node):
                decision = self.sandbox.decide(self.pod)
                n_proven += self._told(edit, decision)
        return n_proven

    # ---- other pods

    def _departures(self) -> None:
        sandbox = self.sandbox
        try:
            attempt = sandbox.attempt(self.pod)
        except PluginFailure:
            return
        pods = sandbox.snapshot.pods
        self.advice.n_tried += len(pods)
        exhaustive = len(pods) <= self.limits.exhaustive_pods
        single: list[int] = []
        sets: list[tuple[int, list[int]]] = []
        if attempt.pre_filter_status.is_success:
            found = cluster_edits.departures(attempt)
            single = [pod_id for _, pod_id in found.single()]
            sets = list(found.sets())
        may_go = (pods.row >= 0) & (pods.priority < cluster_edits.may_go_below(self.pod))
        wider = np.flatnonzero(may_go).tolist() if exhaustive else []
        if not exhaustive:
            wider = cluster_edits.matters_elsewhere(attempt)[: self.limits.elsewhere]
        # A pod that left and came back may have another place in the table: from here on pods go by uid.
        leaving = {pods[pod_id].uid for pod_id in single}
        gone_sets = [(row, [pods[pod_id] for pod_id in pod_ids]) for row, pod_ids in sets]
        for uid in [pods[pod_id].uid for pod_id in wider]:
            if uid not in leaving:
                with sandbox.without_pods([uid]):
                    helps = sandbox.fits(self.pod)
                if helps:
                    leaving.add(uid)
        # Where one pod's going helps, a set of them is no smaller edit.
        cache = sandbox.scheduler.cache
        served = {cache.node_name_of(uid) for uid in leaving}
        gone_sets = [item for item in gone_sets if sandbox.snapshot.nodes.name(item[0]) not in served]
        self._prove_singles(sorted(leaving))
        self._prove_sets(gone_sets)

    def _prove_singles(self, uids: list[str]) -> None:
        sandbox, cache = self.sandbox, self.sandbox.scheduler.cache
        chosen = []
        for uid in self._cheapest(uids):
            pod, node_name = cache.pod(uid), cache.node_name_of(uid)
            if pod is not None and node_name is not None:
                chosen.append(pods_to_go(sandbox, edits.DELETE_POD, node_name, [pod], self.pod.requests))
        if len(uids) > len(chosen):
            self.advice.n_more[edits.DELETE_POD] = len(uids) - len(chosen)
        for item in sorted(chosen, key=lambda item: item.edit.rank):
            with sandbox.without_pods([item.pods[0].uid]):
                decision = sandbox.decide(self.pod)
                if not self._told(item.edit, decision):
                    continue
                self._move(item, decision)
            self._follow(item, decision)

    def _cheapest(self, uids: list[str]) -> list[str]:
        """The pods whose going costs least."""
        limit, cache = self.limits.per_kind, self.sandbox.scheduler.cache
        if limit is None or len(uids) <= limit:
            return uids
        waiting = {item.pod.uid: item for item in self.sandbox.scheduler.waiting_pods.all()}
        costs: dict[str, tuple[int, int, int]] = {}
        for uid in uids:
            pod = cache.pod(uid)
            if pod is not None:
                cost, _ = cost_of_losing([pod], waiting, partial(owner_is_there, self.sandbox))
                costs[uid] = (cost, pod.requests.get(CPU, 0), pod.priority)
        return sorted(costs, key=lambda uid: (costs[uid], uid))[:limit]

    def _move(self, item: PodsToGo, decision: Decision) -> None:
        """Whether the pod that goes fits elsewhere, once the pending one has its place."""
        pod = item.pods[0]
        sandbox, waiting = self.sandbox, self.sandbox.scheduler.waiting_pods
        at = decision.node_name
        if at is None or pod.is_terminating or waiting.get(pod.uid) or pod.meta.controller is not None:
            return
        if pod.scheduler_name not in sandbox.scheduler.profiles:
            return
        self.advice.n_tried += 1
        spec = {key: value for key, value in pod.manifest["spec"].items() if key != "nodeName"}
        homeless = pod_from({**pod.manifest, "spec": spec, "status": {}})
        with sandbox.with_pod_on(self.pod, at):
            second = sandbox.decide(homeless)
        if second.node_name is None or second.error is not None:
            return
        origin = item.edit.title.rsplit(" on ", 1)[1]
        if second.node_name == origin:
            return
        with sandbox.with_pod_on(homeless, second.node_name):
            # Where it now runs may matter to the pending pod (spread, affinity): its cycle is run once more.
            last = sandbox.decide(self.pod)
        if last.node_name is None or last.error is not None:
            return
        edit = replace(
            item.edit,
            kind=edits.MOVE_POD,
            title=f"Move {pod.name} from {origin} to {second.node_name}",
            note=f"It fits there, and makes room on {origin}",
            removed=(f"{pod.name} nodeName: {origin}",),
            added=(f"{pod.name} nodeName: {second.node_name}",),
            cost=edits.COST_RESTART,
            disruption=disruption_of(edits.COST_RESTART),
            price="1 pod made again by hand",
            change={"move": [pod.key, second.node_name]},
        )
        self.advice.edits.append(_proven(edit, last))

    def _prove_sets(self, sets: list[tuple[int, list[Pod]]]) -> None:
        nodes, limit = self.sandbox.snapshot.nodes, self.limits.per_kind
        n_sets = len(sets)
        if limit is not None and n_sets > limit:
            sets = self._smallest(sets, limit)
        items = [
            pods_to_go(self.sandbox, edits.FREE_ROOM, nodes.name(row), pods, self.pod.requests)
            for row, pods in sets
        ]
        items.sort(key=lambda item: item.edit.rank)
        if limit is not None and n_sets > limit:
            self.advice.n_more[edits.FREE_ROOM] = n_sets - limit
        self.advice.n_tried += len(items)
        for item in items:
            with self.sandbox.without_pods([pod.uid for pod in item.pods]):
                decision = self.sandbox.decide(self.pod)
                helps = self._told(item.edit, decision)
            if helps:
                self._follow(item, decision)

    def _smallest(self, sets: list[tuple[int, list[Pod]]], limit: int) -> list[tuple[int, list[Pod]]]:
        """The first `limit` by the rank of their edits, of which thousands need not be made for that."""
        nodes = self.sandbox.snapshot.nodes
        waiting = {item.pod.uid: item for item in self.sandbox.scheduler.waiting_pods.all()}

        def rank(item: tuple[int, list[Pod]]) -> tuple[int, int, float, str]:
            row, pods = item
            cost, _ = cost_of_losing(pods, waiting, partial(owner_is_there, self.sandbox))
            title = free_room_title(nodes.name(row), pods)
            return disruption_of(cost), cost, size_of_losing(pods), title

        return nsmallest(limit, sets, key=rank)

    def _follow(self, item: PodsToGo, decision: Decision) -> None:
        """Add to the edit what becomes of its pods."""
        place = next(place for place, told in enumerate(self.advice.edits) if told.edit is item.edit)
        told = self.advice.edits[place]
        ends = landings(self.sandbox, self.pod, told.node, item.pods)
        self.advice.edits[place] = replace(told, displaced=ends)

    # ---- proofs

    def _prove_variant(self, variant: Variant, *, counted: bool = False) -> bool:
        self.advice.n_tried += not counted
        return self._told(variant.edit, self.sandbox.decide(variant.pod))

    def _told(self, edit: Edit, decision: Decision) -> bool:
        """Keep a proof, or the failure."""
        if decision.node_name is None or decision.error is not None:
            self._fail(edit, decision)
            return False
        self.advice.edits.append(_proven(edit, decision))
        return True

    def _fail(self, edit: Edit, decision: Decision) -> None:
        if sum(item.kind == edit.kind for item in self.failed) < self.limits.failed_per_kind:
            self.failed.append(FailedEdit(edit.kind, edit.title, decision.fit_error or decision.error or ""))


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
