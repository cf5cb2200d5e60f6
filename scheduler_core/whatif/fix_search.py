"""The search for fixes of pods that ask for the same: candidates, and the proof of each.

Candidates come from what the cluster is made of (its labels, taints, priority classes, nodes and pods), from the price
list and from the pod's own manifest; amounts are searched for by halving, which is exact because less of a request, or
more skew, never makes a pod fit worse. What is listed has been proved: the change is made in a `Fork` and whole cycles
are run there; the real cluster stays as it is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import nsmallest
from typing import Any, Final

import numpy as np

from scheduler_core.fork import ZONE, Fork, Report, homeless, silent, with_claims
from scheduler_core.framework.failure import PluginFailure
from scheduler_core.objects.defaults import PREEMPT_LOWER_PRIORITY, SYSTEM_PRIORITY_CLASSES, PriorityClass
from scheduler_core.objects.kinds import KINDS as KNOWN_KINDS
from scheduler_core.objects.meta import plain_object_from
from scheduler_core.objects.node import Node, Taint
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.prices import PriceList, shipped_prices
from scheduler_core.schedule_one import Decision
from scheduler_core.scheduler import Scheduler
from scheduler_core.sim.kubelet import claims_of
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif import backlog, cluster_edits, pod_edits
from scheduler_core.whatif.causes import Resize, cause_of, device_requests, held_amounts
from scheduler_core.whatif.fixes import (
    CHANGES,
    KEEPS,
    POD,
    Displaced,
    Fix,
    FixAnswer,
    amount_words,
    counted,
    draft,
    first_of,
    harmed,
    money,
    owner_words,
    price_words,
)
from scheduler_core.whatif.headroom import place_copies
from scheduler_core.whatif.patches import lines_of, patch_of, without_given
from scheduler_core.whatif.pod_edits import CORDON, HASH_LABEL, KEEPS_OFF, Variant, labels_of
from scheduler_core.whatif.take_away import EvictionBudgets
from scheduler_core.whatif.workloads import Alike, owner_of, used_by_like

_DRIVER: Final = re.compile(r"device\.driver\s*==\s*[\"']([^\"']+)[\"']")
NODE_CRITICAL: Final = "system-node-critical"
NEW_CLASS: Final = PriorityClass("high-priority", 1_000_000, False, PREEMPT_LOWER_PRIORITY)
"""The class that the documentation of Kubernetes gives as its example."""
NODES_WHO: Final = "who runs the nodes"
MAX_PAIRS: Final = 200
"""Second edits that are tried beside a first one that does not help alone."""
MAX_SHAPES: Final = 20
"""Kinds of nodes that are labelled, the commonest first."""
MAX_OPTIONS: Final = 3
"""Kinds of new nodes that are compared."""
MAX_MOVED: Final = 12
"""Pods for which room is made together."""
MOST_LUCK: Final = 1_000
"""Decisions that the other seeds of the best fix may cost: a count, so that each machine answers the same."""
OTHERS_LUCK: Final = 600
"""The same, of all fixes that are shown beside it."""
MOST_WRITTEN: Final = 100
"""Pods whose manifests a fix holds, where no owner's template is there."""


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """How far the search goes.

    Attributes
    ----------
    per_kind : int or None
        So many fixes that are about one node or one pod (uncordon, label, delete) are proved, the mildest first; None
        proves all.
    exhaustive_pods : int
        Up to so many pods every single one's going is tried by a whole cycle. Above, all are tried in lock-step for
        their own node, and those that matter elsewhere by whole cycles.
    elsewhere : int
        How many of the latter.
    alike : int
        Decisions that proving the fixes for all pods of the workload may cost.
    """

    per_kind: int | None = 6
    exhaustive_pods: int = 150
    elsewhere: int = 60
    alike: int = 400


@dataclass(frozen=True, slots=True)
class Trial:
    """A fix on its way: what is changed of the copy to prove it.

    Attributes
    ----------
    variant : Variant or None
        The edit of the pod, and of all like it.
    nodes, objects, gone
        As `Fork.changes` takes them.
    back : bool
        Whether the pods that go are recreated by their owners.
    preempt : bool
        Whether PostFilter may make room.
    edited : mapping of str to Pod
        uid -> the pod with the edit made, where that is more than an edit of its spec.
    """

    fix: Fix
    variant: Variant | None = None
    nodes: tuple[Node, ...] = ()
    objects: tuple[Any, ...] = ()
    gone: tuple[Pod, ...] = ()
    placed: tuple[tuple[Pod, str], ...] = ()
    preempt: bool = False
    edited: Mapping[str, Pod] = field(default_factory=dict)

    def of(self, pod: Pod) -> Pod:
        """A pod with the edit made."""
        if self.variant is None:
            return pod
        return self.edited.get(pod.uid) or pod_edits.edited(pod, self.variant.edit)


def limits_of(scheduler: Scheduler) -> SearchLimits:
    """How far to look: less far where every try is a call to an extender."""
    if scheduler.extenders:
        return SearchLimits(per_kind=3, exhaustive_pods=20, elsewhere=5, alike=40)
    return SearchLimits()


def make(fork: Fork, change: Trial) -> None:
    """Make a change on the copy; it goes with the block of `Fork.changes` around it."""
    for pod in change.gone:
        fork.remove_pod(pod)
    fork.set_nodes(change.nodes)
    fork.create(change.objects)
    for pod, node in change.placed:
        fork.put_pod(pod, node)


def cost_of(nodes: Sequence[backlog.NodeChoice]) -> float | None:
    """An hour; None where the price of one is not known."""
    return round(sum(one.price for one in nodes), 6) if all(one.priced for one in nodes) else None


def nodes_words(nodes: Sequence[backlog.NodeChoice]) -> str:
    """`8 × c6a.4xlarge to pool general and 1 × m6i.large`."""
    kinds: dict[str, list[backlog.NodeChoice]] = {}
    for one in nodes:
        kinds.setdefault(one.name, []).append(one)
    words = [alike[0].words(len(alike)) for alike in kinds.values()]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def bound_words(best: Fix | None, bound: float | None) -> str:
    if best is None or best.cost is None or bound is None:
        return ""
    gap = best.cost - bound
    if gap < 0.005:
        return "no cheaper combination exists"
    return f"at most {money(gap)} an hour above the best possible"


# ---- pods that ask for the same


class Search:
    """One question about pods that ask for the same, on its way.

    Parameters
    ----------
    fork : Fork
        Changed while this runs, and back as it was afterwards.
    pods : Alike
        Pending.
    template : mapping, optional
        The spec of the owner's pod template: fields that are not of it were set by a controller and are not edited.
    owner : mapping, optional
        The manifest of the top owner that has the template.
    priority_classes : sequence of PriorityClass
        The cluster's; those above the pod's priority are tried.
    """

    def __init__(
        self,
        fork: Fork,
        pods: Alike,
        *,
        template: Mapping[str, Any] | None = None,
        owner: Mapping[str, Any] | None = None,
        priority_classes: Sequence[PriorityClass] = (),
        prices: PriceList | None = None,
        limits: SearchLimits | None = None,
        simulation: Simulation | None = None,
        report: Report = silent,
    ) -> None:
        self.fork = fork
        self.pods = pods
        self.pod = pods[0]
        self.template = None if template is None else dict(template)
        self.owner = owner
        self.priority_classes = priority_classes
        self.prices = prices or shipped_prices()
        self.limits = limits or SearchLimits()
        self.simulation = simulation
        self.report = report
        self.used = used_by_like(fork, pods[0])
        self.found: list[Trial] = []
        self.not_alone: list[Variant] = []
        self.tried = self.untried = 0
        self.bound: float | None = None
        self.best: Trial | None = None
        self._held: Sequence[Resize] = ()
        self._began = fork.n_decisions
        self._until = 0

    @property
    def fixes(self) -> list[Fix]:
        """What was found, the best first."""
        return [change.fix for change in self.found]

    def answer(self) -> FixAnswer:
        """The cause and the fixes."""
        fork, pod = self.fork, self.pod
        about = FixAnswer(POD, pod.key, "", tuple(one.key for one in self.pods), "")
        unasked = pod_edits.unasked(pod, list(fork.scheduler.profiles))
        if unasked is not None:
            headline, variant = unasked
            self._until = fork.n_decisions + self.limits.alike
            if variant is not None:
                self._try(Trial(variant.fix, variant, gone=self.pods if pod.node_name else ()))
                self._prove_best()
            best = None if self.best is None else self.best.fix
            return replace(about, headline=headline, fixes=tuple(self.fixes), best=best, tried=self.tried)
        now = fork.decide(pod, preempt=True)
        about = replace(about, message=now.message or "")
        if now.node_name is not None and now.error is None:
            headline = f"{pod.name} finds a node as things are: {now.node_name}."
            return replace(about, headline=headline, node=now.node_name, decisions=1)
        cause = cause_of(fork, pod, now.fit_error or about.message)
        self._held = cause.held
        self.run()
        self._leave_out_useless()
        self._prove_best()
        fixes = self._proved(_folded(self.fixes))
        best = next((fix for fix in fixes if fix.headline), None)
        bound = self.bound if best is not None and best.what == "add-node" else None
        return replace(
            about,
            headline=cause.headline,
            causes=(*_evicted_words(now), *cause.causes),
            groups=cause.groups,
            n_nodes=len(fork.snapshot.order),
            fixes=fixes,
            best=best,
            bound=bound,
            bound_words=bound_words(best, bound),
            checked=self._checked(),
            tried=self.tried,
            untried=self.untried,
            limit=f"{self.limits.alike} decisions" if self.untried else "",
            decisions=fork.n_decisions - self._began,
        )

    def run(self) -> list[Fix]:
        """Find fixes, the best first; none where the pod finds a node as things are."""
        self._until = self.fork.n_decisions + self.limits.alike
        steps: tuple[tuple[str, Callable[[], None]], ...] = (
            ("claims and classes", self._storage),
            ("typing mistakes", self._mistakes),
            ("rollouts and resizes", self._rollouts),
            ("selectors, affinity, tolerations and ports", self._pod_variants),
            ("spread", self._relax_spread),
            ("smaller requests", self._lower_requests),
            ("nodes that are not well", self._repair),
            ("resources that nodes do not report", self._provide),
            ("cordoned nodes", self._uncordon),
            ("labels of nodes", self._label_nodes),
            ("domains of nodes", self._label_domains),
            ("new nodes", self._add_nodes),
            ("new nodes with devices", self._add_device_nodes),
            ("higher priorities", self._raise_priority),
            ("other pods leaving", self._departures),
            ("room for all", self._make_room),
            ("pairs of edits", self._pairs),
        )
        for done, (what, step) in enumerate(steps):
            self.report(done, len(steps), what)
            step()
        self.found.sort(key=lambda change: change.fix.rank)
        return self.fixes

    def _prove_best(self) -> None:
        """Run the best fix for all pods in their order, and with other seeds."""
        self.found.sort(key=lambda change: change.fix.rank)
        place = next((place for place, change in enumerate(self.found) if change.fix.headline), None)
        if place is None:
            return
        change = self.found[place]
        if change.fix.what not in _OF_ONE and not change.preempt:
            lands = self._run(change)
            change = replace(change, fix=replace(change.fix, placed=len(lands), lands=lands))
        self.best = self.found[place] = replace(change, fix=self._with_luck(change, MOST_LUCK)[0])

    def _with_luck(self, change: Trial, most: int) -> tuple[Fix, int]:
        """The fix with how many seeds it holds in, and the decisions that this cost."""
        fix, n_pods = change.fix, len(self.pods)
        if not self.fork.draws(lambda: self._run(change)):
            return replace(fix, seeds=Fork.N_SEEDS, holds=Fork.N_SEEDS), n_pods
        seeds, holds = self.fork.luck(n_pods, lambda: len(self._run(change)) >= fix.placed, most)
        return replace(fix, seeds=seeds, holds=holds), seeds * n_pods

    def _proved(self, shown: Sequence[Fix]) -> tuple[Fix, ...]:
        """The fixes that are shown, with the seeds of each as far as they cost little beside the best's."""
        left, found = OTHERS_LUCK, []
        changes = {change.fix.title: change for change in self.found}
        for fix in shown:
            change = changes[fix.title]
            if not change.fix.seeds and left > 0:
                proved, cost = self._with_luck(change, min(left, max(OTHERS_LUCK // 3, len(self.pods))))
                fix, left = replace(fix, seeds=proved.seeds, holds=proved.holds), left - cost
            found.append(fix)
        return tuple(found)

    def _leave_out_useless(self) -> None:
        """Drop changes of what was asked for that place one pod in twenty, where another fix places all."""
        if any(fix.placed == fix.of for fix in self.fixes):
            self.found = [
                one for one in self.found if one.fix.kind != CHANGES or one.fix.placed * 20 > one.fix.of
            ]

    def _run(self, change: Trial) -> dict[str, str]:
        """Decide all pods in their order with a change made: where each lands."""
        fork, lands = self.fork, dict[str, str]()
        with fork.changes():
            make(fork, change)
            for pod in self.pods:
                node = fork.place(change.of(pod), preempt=change.preempt).node
                if node is not None:
                    lands[pod.key] = node
        return lands

    def _checked(self) -> str:
        mistakes = [fix for fix in self.fixes if fix.what.startswith("correct-")]
        return (
            ""
            if mistakes
            else "The labels, affinity, tolerations and claims name no near miss: no typing mistake was found."
        )

    # ---- proofs

    def _try(self, change: Trial) -> bool:
        """Prove a change on the first pod, then on all that ask for the same; keep it where it helps."""
        self.tried += 1
        fork, pods = self.fork, self.pods
        with fork.changes():
            make(fork, change)
            pod = self.pod if change.variant is None else change.variant.pod
            decision = fork.decide(pod, preempt=change.preempt)
            node = _node_of(decision)
            if node is None:
                return False
            lands, victims = {self.pod.key: node}, list[Pod]()
            if change.preempt:
                fork.rewind()
                lands.clear()
                victims = self._make_way(change, lands)
                if not lands:
                    return False
            elif change.gone:
                fork.put_pod(pod, node)
            elif len(pods) > 1 and fork.n_decisions >= self._until:
                self.untried += 1
            elif len(pods) > 1 and _has_device_claims(pod):  # each has claims of its own
                lands = self._run(change)
            elif len(pods) > 1:
                lands = self._lands(pod)
                victims = self._make_way(change, lands)
            fix = replace(change.fix, placed=len(lands), of=len(pods), lands=lands)
            if not fix.who:
                fix = replace(fix, who=self._who(fix))
            going = (*change.gone, *victims)
            if going and fix.what not in _NOT_DISPLACED:
                fix = harmed(fix, landings(fork, going))
            change = replace(change, preempt=change.preempt or bool(victims))
        if not fix.change:
            fix = replace(fix, change=self._changed(change))
        self.found.append(replace(change, fix=self._written(fix)))
        return True

    def _make_way(self, change: Trial, lands: dict[str, str]) -> list[Pod]:
        """Decide the pods that have no node yet by whole cycles, add where they land; who is evicted for them."""
        victims: list[Pod] = []
        for pod in self.pods[len(lands) :]:
            if lands and self.fork.n_decisions >= self._until:
                self.untried += 1
                break
            placed = self.fork.place(change.of(pod))
            victims += [victim for victim, _ in placed.victims]
            if placed.node is None:
                break
            lands[pod.key] = placed.node
        return victims

    def _written(self, fix: Fix, *, emptied: str = "") -> Fix:
        """The fix with its change as lines of manifests, and as commands."""
        removed, added = lines_of(fix.change, self._before)
        patch = fix.patch or patch_of(fix.change, self._before, node=emptied)
        return replace(fix, removed=removed, added=added, patch=patch)

    def _lands(self, pod: Pod) -> dict[str, str]:
        """Where the pods land, edited as `pod` is: counted node by node where that is the same."""
        most = max(self._until - self.fork.n_decisions, 1)
        counts, _ = place_copies(self.fork, pod, len(self.pods), most_decisions=most)
        nodes = [name for name, number in counts.items() for _ in range(number)]
        if nodes and not nodes[0]:  # more fit than there are
            return {one.key: _node_of(self.fork.decide(pod)) or "" for one in self.pods}
        return {one.key: node for one, node in zip(self.pods, nodes, strict=False)}

    def _who(self, fix: Fix) -> str:
        """Who has to agree, in words."""
        whose = "the owner of the pod"
        if self.owner is not None:
            meta = self.owner["metadata"]
            whose = f"the owner of {self.owner['kind']} {meta.get('namespace', 'default')}/{meta['name']}"
        elif self.pod.meta.controller is not None:
            whose = f"the owner of {owner_words(self.pod)}"
        return {"owner": whose, "nodes": NODES_WHO, "others": "the owners of the pods that move"}[fix.decides]

    def _before(self, kind: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        """An object as it is."""
        if kind == "Node":
            node = self.fork.cache.node(name)
            return None if node is None else node.manifest
        if kind == "Pod" and (own := [one for one in self.pods if one.key == f"{namespace}/{name}"]):
            return own[0].manifest
        stored = None if self.simulation is None else self.simulation.world.get(kind, namespace, name)
        return None if stored is None else stored.manifest

    def _changed(self, change: Trial) -> dict[str, Any]:
        """What a branch does for a change: of the owner's template where it is among the objects."""
        if change.variant is None:
            return {"write": [without_given(node.manifest) for node in change.nodes]}
        edit, owner = change.variant.edit, self.owner
        pods = [without_given(change.of(pod).manifest) for pod in self.pods[:MOST_WRITTEN]]
        if owner is None or owner["kind"] == "Job":
            return {"write": pods}
        template = owner["spec"]["template"]
        spec = pod_edits.copied(template.get("spec") or {})
        had_priority = "priority" in spec
        try:
            edit(spec)
        except (
            KeyError,
            IndexError,
            TypeError,
        ):  # the template is not as its pods are: they were made of another
            return {"write": pods}
        if not had_priority:
            spec.pop("priority", None)
            spec.pop("preemptionPolicy", None)
        written = {**without_given(owner), "spec": {**owner["spec"], "template": {**template, "spec": spec}}}
        found: dict[str, Any] = {"write": [written]}
        if owner["kind"] != "Deployment":
            found["delete"] = [pod.key for pod in self.pods]
        return found

    # ---- the pod

    def _mistakes(self) -> None:
        """Labels, tolerations and claims that are a slip away from what there is."""
        pod = self.pod
        self.taints = self._taints()
        nodes = self.fork.nodes()
        labels = labels_of(node.meta.labels for node in nodes)
        self.largest: dict[str, int] = {}
        for node in nodes:
            for name, amount in node.allocatable.items():
                self.largest[name] = max(amount, self.largest.get(name, 0))
        variants = [
            *pod_edits.corrected_selectors(pod, labels, self.template),
            *pod_edits.corrected_places(
                pod, [tied[1:] for tied in cluster_edits.volume_places(self.fork, pod)]
            ),
            *pod_edits.corrected_amounts(pod, self.largest),
            *pod_edits.corrected_resources(pod, [name for name, amount in self.largest.items() if amount]),
            *pod_edits.corrected_topology(pod, labels),
            *pod_edits.corrected_tolerations(pod, self.taints),
        ]
        if pod.required_affinity:
            variants += pod_edits.corrected_affinity(pod, list(self.fork.cache.pods_in_order()))
        self.mistakes = [one for one in variants if not self._prove(one)]

    def _prove(self, variant: Variant) -> bool:
        return self._try(Trial(variant.fix, variant))

    def _pod_variants(self) -> None:
        self.not_alone = [
            *self.mistakes,
            *(one for one in self._variants_of(self.pod) if not self._prove(one)),
        ]

    def _variants_of(self, pod: Pod) -> list[Variant]:
        return [
            *pod_edits.tolerations(pod, self.taints),
            *pod_edits.without_selectors(pod, self.template),
            *pod_edits.without_node_affinity(pod, self.template),
            *pod_edits.without_affinity_terms(pod, self.template),
            *pod_edits.without_host_ports(pod),
        ]

    def _pairs(self) -> None:
        """Two edits of the pod, where no single edit helps that leaves others in peace and wants no new node.

        A mistake beside another edit comes before a change of what was asked for.
        """
        harmless = [fix for fix in self.fixes if _is_harmless(fix)]
        if any(fix.kind == KEEPS for fix in harmless) or (harmless and not self.mistakes):
            return
        n_proven = 0
        done: set[frozenset[str]] = set()
        for first in self.mistakes if harmless else self.not_alone:
            smaller = (found for _, found in self._smaller(first.pod) if found is not None)
            corrected = pod_edits.corrected_tolerations(first.pod, self.taints)
            for second in (*corrected, *self._variants_of(first.pod), *smaller):
                titles = frozenset((first.fix.title, second.fix.title))
                if len(titles) < 2 or titles in done:
                    continue
                done.add(titles)
                if len(done) > MAX_PAIRS or n_proven == (self.limits.per_kind or MAX_PAIRS):
                    return
                n_proven += self._prove(pod_edits.pair_of(first, second))

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
            if variant is not None:
                if self._prove(variant) and self.found[-1].fix.placed < len(self.pods):
                    self._lower_for_all(variant)
            else:
                self.tried += none is not None

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
            if best < self.used.get(resource, 0):
                yield none, None
                continue
            yield none, pod_edits.with_request(pod, resource, best, self.used.get(resource, 0))

    def _lower_for_all(self, variant: Variant) -> None:
        """The request lowered so far that all pods of the workload fit, where that is possible."""
        lowered, fork = variant.pod.requests, self.fork
        resource = next(name for name, amount in self.pod.requests.items() if lowered.get(name, 0) != amount)

        def at_most(amount: int) -> Variant | None:
            rounded = pod_edits.round_amount(resource, amount)
            return pod_edits.with_request(self.pod, resource, rounded, self.used.get(resource, 0))

        def fits_all(amount: int) -> bool:
            tried = at_most(amount)
            if tried is None or fork.n_decisions >= self._until:
                return False
            with fork.changes():
                return len(self._lands(tried.pod)) == len(self.pods)

        most, least = lowered.get(resource, 0), self.used.get(resource, 0)
        best = _halved(fits_all, 0, most, within=max(1, most // 50))
        if best > max(least, 0) and (found := at_most(best)) is not None:
            self.found.pop()
            self._prove(found)

    def _relax_spread(self) -> None:
        pod, fits = self.pod, self.fork.fits
        hard = list(pod_edits.hard_spread(pod, self.template))
        every = pod_edits.honoring(pod, *(index for index, _ in hard)) if len(hard) > 1 else None
        if every is not None:
            self._prove(every)
        for index, before in hard:
            item = pod.manifest["spec"]["topologySpreadConstraints"][index]
            values = {node.meta.labels.get(item.get("topologyKey")) for node in self.fork.nodes()} - {None}
            revision = pod_edits.matching_label_keys(pod, index) if self._old_pods() else None
            for variant in (
                pod_edits.honoring(pod, index),
                revision,
                pod_edits.with_min_domains(pod, index, len(values)),
            ):
                if variant is not None:
                    self._prove(variant)
            # With more skew than there are pods a constraint asks for the topology label alone.
            top = before + len(self.fork.snapshot.pods) + 1
            if not fits(pod_edits.with_max_skew(pod, index, top).pod):
                self._prove(pod_edits.without_spread(pod, index))
                continue

            def fits_with(value: int, index: int = index) -> bool:
                return fits(pod_edits.with_max_skew(pod, index, value).pod)

            best = _halved(fits_with, top, before)
            self._prove(pod_edits.with_max_skew(pod, index, best))

    def _raise_priority(self) -> None:
        for item, is_new in self._higher_classes():
            variant = pod_edits.with_priority(self.pod, item, is_new=is_new)
            if self._try(Trial(variant.fix, variant, preempt=True)) and is_new:
                change = self.found[-1]
                write = [pod_edits.manifest_of_class(item), *change.fix.change["write"]]
                fix = replace(change.fix, change={**change.fix.change, "write": write}, patch="")
                self.found[-1] = replace(change, fix=self._written(fix))

    def _higher_classes(self) -> Iterator[tuple[PriorityClass, bool]]:
        """Classes above the pod's priority, and whether each is still to be made.

        The system's own are for the system's DaemonSets alone; for those of others a class is made where there is none.
        """
        is_daemon, is_system = self.pod.is_of_daemon_set, self.pod.namespace == "kube-system"
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

    # ---- what the pod names, and what its owner does

    def _storage(self) -> None:
        """Correct the claim or class that is named, else create the claims in the first way that places the pod."""
        listers = self.fork.cache.listers
        names = cluster_edits.missing_claims(self.pod, listers)
        known = {
            one.meta.name: None
            for one in (listers.all("PersistentVolumeClaim") if names else ())
            if one.meta.namespace == self.pod.namespace
        }
        for name in names:
            if near := pod_edits.nearest(name, known):
                self._prove(pod_edits.corrected_claim(self.pod, name, near))
        self._devices()
        for found, manifests, objects in (
            *cluster_edits.corrected_classes(self.pod, listers),
            *cluster_edits.released_volumes(self.pod, listers),
            *cluster_edits.volumes_created(self.pod, listers),
            *cluster_edits.storage_extended(self.pod, listers),
            *cluster_edits.claims_recreated(self.fork, self.pod),
            *cluster_edits.claims_shared(self.pod, listers),
        ):
            made = {"write": [without_given(one) for one in manifests]}
            variant = pod_edits.with_class_of_volume(self.pod, found, manifests)
            change = Trial(found, variant) if variant else Trial(replace(found, change=made))
            self._try(replace(change, objects=tuple(objects)))
        for found, manifests, objects in (
            cluster_edits.claims_created(self.pod, names, listers) if names else ()
        ):
            if self._try(Trial(replace(found, change={"write": manifests}), objects=tuple(objects))):
                return

    def _devices(self) -> None:
        """Claims for devices: the name or the class that is a slip away, or fewer devices."""
        listers, pod = self.fork.cache.listers, self.pod
        claims = [
            one.meta.name for one in listers.all("ResourceClaim") if one.meta.namespace == pod.namespace
        ]
        templates = self._names_of("ResourceClaimTemplate")
        for item in pod.manifest["spec"].get("resourceClaims") or ():
            for key, there in (("resourceClaimName", claims), ("resourceClaimTemplateName", templates)):
                name = item.get(key) or ""
                near = "" if not name or name in there else pod_edits.nearest(name, there)
                if near:
                    self._try(self._claiming(pod_edits.corrected_claim(pod, name, near, key), near, key))
        known = [one.meta.name for one in listers.all("DeviceClass")]
        for claim, asked in device_requests(self.fork, pod):
            name, count = asked["deviceClassName"], int(asked.get("count") or 1)
            near = "" if name in known else pod_edits.nearest(name, known)
            if near:
                fix = draft("correct-class/device", {"name": name, "to": near, "claim": claim})
                self._try(self._asking(fix, asked, {"deviceClassName": near}))
            self._try_slices(name, count)
            if asked.get("selectors"):
                wanted = "; ".join(
                    str((one.get("cel") or {}).get("expression")) for one in asked["selectors"]
                )
                fix = draft("drop-device-selector", {"wanted": wanted})
                self._try(self._asking(fix, asked, {"selectors": []}))
            for fewer in range(count - 1, 0, -1):
                size = 1 - fewer / count
                words = {"devices": counted(fewer, "device"), "count": count}
                fix = draft("lower-devices", words, size=size, headline=size <= pod_edits.MOST_LOWERED)
                if self._try(self._asking(fix, asked, {"count": fewer})):
                    break

    def _try_slices(self, device_class: str, count: int) -> None:
        """Have the driver that a class names publish devices, where it publishes none."""
        listers = self.fork.cache.listers
        found = listers.get("DeviceClass", "", device_class)
        selectors = ((found.manifest.get("spec") or {}) if found is not None else {}).get("selectors") or ()
        said = (_DRIVER.search(str((one.get("cel") or {}).get("expression"))) for one in selectors)
        driver = next((one[1] for one in said if one), "")
        published = {one.manifest["spec"].get("driver") for one in listers.all("ResourceSlice")}
        for alike in (
            self._shapes(self.fork.snapshot.order.tolist()) if driver not in (*published, "") else ()
        ):
            name = alike[0].name
            fix = draft("provide-resource/driver", {"driver": driver, "node": name})
            made = cluster_edits.slice_of(name, driver, count)
            if self._try(Trial(replace(fix, change={"write": [made]}), objects=(plain_object_from(made),))):
                return

    def _names_of(self, kind: str) -> list[str]:
        """Names of the objects of a kind in the pod's namespace, of one that a scheduler does not read."""
        world = None if self.simulation is None else self.simulation.world
        every = () if world is None else (one.manifest["metadata"] for one in world.all(kind))
        return [meta["name"] for meta in every if meta.get("namespace") == self.pod.namespace]

    def _claiming(self, variant: Variant, name: str, key: str) -> Trial:
        """A corrected name of a claim, or of a template: then each pod has the claim that is made of it."""
        if key == "resourceClaimName":
            return Trial(variant.fix, variant)
        edited, objects = dict[str, Pod](), list[Any]()
        for pod in self.pods[:MOST_WRITTEN]:
            changed = pod_edits.edited(pod, variant.edit)
            edited[pod.uid], claims = with_claims(
                changed, lambda name: self._before("ResourceClaimTemplate", self.pod.namespace, name)
            )
            objects += claims
        return Trial(
            variant.fix, replace(variant, pod=edited[self.pod.uid]), objects=tuple(objects), edited=edited
        )

    def _asking(self, fix: Fix, asked: Mapping[str, Any], fields: Mapping[str, Any]) -> Trial:
        """A change of what claims ask for exactly: in their template, or in themselves."""
        listers, pods = self.fork.cache.listers, self.pods
        objects, write = [], []

        def changed(manifest: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
            requests = [
                {**one, "exactly": {**one["exactly"], **fields}} if one.get("exactly") == asked else one
                for one in spec["devices"]["requests"]
            ]
            return {**spec, "devices": {**spec["devices"], "requests": requests}}

        for pod in pods[:MOST_WRITTEN]:
            for kind, name in sorted(claims_of(pod)):
                claim = listers.get(kind, pod.namespace, name) if kind == "ResourceClaim" else None
                if claim is not None:
                    manifest = {**claim.manifest, "spec": changed(claim.manifest, claim.manifest["spec"])}
                    objects.append(plain_object_from(manifest))
                    write.append(without_given(manifest))
        change: dict[str, Any] = {"write": write}
        for item in self.pod.manifest["spec"].get("resourceClaims") or ():
            named = item.get("resourceClaimTemplateName") or ""
            template = self._before("ResourceClaimTemplate", self.pod.namespace, named) if named else None
            if template is not None:
                spec = {**template["spec"], "spec": changed(template, template["spec"]["spec"])}
                change = {"write": [without_given({**template, "spec": spec})]}
                change["delete"] = [pod.key for pod in pods]
        return Trial(replace(fix, change=change), objects=tuple(objects))

    def _old_pods(self) -> list[Pod]:
        """Pods of the same Deployment that run in another revision."""
        pod, simulation = self.pod, self.simulation
        if simulation is None or HASH_LABEL not in pod.labels:
            return []
        mine = owner_of(simulation, pod)
        return [
            one
            for one in self.fork.cache.pods_in_order()
            if one.namespace == pod.namespace
            and one.labels.get(HASH_LABEL, pod.labels[HASH_LABEL]) != pod.labels[HASH_LABEL]
            and owner_of(simulation, one) == mine
        ]

    def _rollouts(self) -> None:
        """Let an old pod go before the new one comes; take back a resize that holds room."""
        owner = self.owner if self.owner is not None and self.owner["kind"] == "Deployment" else None
        rolling = (owner or {}).get("spec", {}).get("strategy", {}).get("rollingUpdate") or {}
        for old in (
            self._old_pods()[: self.limits.elsewhere] if rolling.get("maxSurge") not in (0, "0%") else ()
        ):
            with self.fork.changes(gone=[old]):
                if not self.fork.fits(self.pod):
                    continue
            kind, name = owner_of(self.simulation, self.pod) if self.simulation is not None else ("", "")
            words = {"kind": kind, "namespace": self.pod.namespace, "name": name}
            fix = draft("rollout", words, change={"delete": [old.key]})
            if owner is not None:
                strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
                written = {**without_given(owner), "spec": {**owner["spec"], "strategy": strategy}}
                fix = replace(fix, change={"write": [written]})
            self._try(Trial(fix, gone=(old,)))
            break
        for one in self._held[:MAX_MOVED]:
            manifest = without_given(one.back.manifest)
            fix = draft(
                "take-back-resize",
                {"pod": one.pod.key, "node": one.node, "held": held_amounts(one)},
                who=f"the owner of {owner_words(one.pod) or one.pod.key}",
                change={"write": [manifest]},
                size=sum(one.held.values()) / 1e15,
            )
            self._try(Trial(fix, gone=(one.pod,), placed=((one.back, one.node),)))

    # ---- nodes

    def _repair(self) -> None:
        """Bring back nodes that are not well or not set up, of each kind the one that is nearest."""
        snapshot = self.fork.snapshot
        ill = [
            cluster_edits.repaired(snapshot.nodes.node(row)) for row in snapshot.order.tolist() if self.taints
        ]
        self._prove_nodes([item for item in ill if item is not None])

    def _provide(self) -> None:
        """Have nodes report a resource: those that seem to have it, else, where no node type has it, any."""
        nodes = self.fork.nodes()
        for resource, amount in self.pod.requests.items():
            if amount <= 0 or ("/" not in resource and not resource.startswith(cluster_edits.HUGE_PAGES)):
                continue
            types = [one.name for one in self.prices.types if resource in one.allocatable]
            without = [one for one in nodes if not one.allocatable.get(resource)]
            why = {one.name: cluster_edits.said_to_have(one, resource, types) for one in without}
            is_known = any(why.values()) or types or self.largest.get(resource)
            said = {one.name: why[one.name] for one in without if why[one.name] or not is_known}
            alike: dict[Any, Node] = {}
            for one in without:
                if one.name in said:
                    alike.setdefault(cluster_edits.shape_of(one, backlog.PLACE_LABELS), one)
            self._prove_nodes(
                cluster_edits.provided(one, resource, amount, said[one.name])
                for one in list(alike.values())[:MAX_SHAPES]
            )

    def _uncordon(self) -> None:
        snapshot = self.fork.snapshot
        rows = [row for row in snapshot.order.tolist() if snapshot.nodes.unschedulable[row]]
        if len(rows) > self.limits.exhaustive_pods:
            # Those that would pass if the pod did not mind cordons.
            feasible = set(self._feasible(next(iter(pod_edits.tolerations(self.pod, [CORDON]))).pod))
            rows = [row for row in rows if row in feasible]
        self._prove_nodes([cluster_edits.uncordoned(snapshot.nodes.node(row)) for row in rows])

    def _label_nodes(self) -> None:
        """Label nodes as the pod asks: of one kind as many as all pods need."""
        wanted = cluster_edits.wanted_labels(self.pod)
        # Where nodes have the labels already, they were not forgotten.
        carried = [node.meta.labels.items() for node in self.fork.nodes()]
        there = [labels for labels in wanted if any(labels.items() <= one for one in carried)]
        shapes = self._shapes(self._feasible(cluster_edits.without_node_rules(self.pod))) if wanted else []
        n_proved = 0
        for alike in shapes:
            for labels in wanted:
                found = cluster_edits.labelled(alike, labels)
                if found is not None and labels in there:
                    found = (replace(found[0], headline=False), found[1])
                if (
                    found is None
                    or n_proved == self.limits.per_kind
                    or not self._try(Trial(found[0], nodes=found[1]))
                ):
                    continue
                n_proved += 1
                placed = self.found[-1].fix.placed
                number = min(math.ceil(len(self.pods) / placed), len(alike))
                more = cluster_edits.labelled(alike, labels, number) if number > 1 else None
                if more is not None and self._try(Trial(more[0], nodes=more[1])):
                    better, other = self.found[-1], self.found[-2]
                    self.found[-2:] = [better if better.fix.placed > other.fix.placed else other]

    def _label_domains(self) -> None:
        """Label nodes with the key that the pods are spread over: only nodes that have it are counted, and used."""
        nodes = self.fork.snapshot.nodes
        for index, _ in pod_edits.hard_spread(self.pod):
            key = self.pod.manifest["spec"]["topologySpreadConstraints"][index]["topologyKey"]
            is_there = any(key in node.meta.labels for node in self.fork.nodes())
            rows = self._feasible(pod_edits.without_spread(self.pod, index).pod)
            bare = [node for node in map(nodes.node, rows) if key not in node.meta.labels]
            found = cluster_edits.given_domains(bare[: len(self.pods)], key, is_there=is_there)
            if found is not None:
                self._try(Trial(found[0], nodes=found[1]))

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
            shapes.setdefault(cluster_edits.shape_of(node, backlog.PLACE_LABELS), []).append(node)
        kinds = sorted(shapes.values(), key=lambda alike: -len(alike))
        return kinds if self.limits.per_kind is None else kinds[:MAX_SHAPES]

    def _prove_nodes(self, candidates: Iterable[cluster_edits.NodeEdit]) -> None:
        n_proven = 0
        for found, node in sorted(candidates, key=lambda item: item[0].rank):
            if self.limits.per_kind is not None and n_proven >= self.limits.per_kind:
                return
            n_proven += self._try(Trial(found, nodes=(node,)))

    def _add_nodes(self) -> None:
        """Nodes of one kind for all pods, with what others would cost; a mixture where it is cheaper."""
        fork, pods = self.fork, self.pods
        try:
            options = backlog.kinds_for(fork, self.pod, self.prices, len(pods))
        except PluginFailure:
            return
        n_pods = len(pods)

        def expense(option: tuple[backlog.NodeChoice, int]) -> tuple[bool, float, int]:
            one, holds = option
            number = math.ceil(n_pods / holds)
            return not (one.own or one.pool), round(number * one.price, 6), number

        ranked = sorted(options, key=expense)
        proved: list[list[backlog.NodeChoice]] = []
        shapes: dict[tuple[str, str], None] = {}
        for first, holds in ranked:
            if len(proved) == MAX_OPTIONS or (first.shape, first.like) in shapes:
                continue
            shapes[(first.shape, first.like)] = None
            zones = [one for one, _ in ranked if one.name == first.name]
            if nodes := self._enough(zones, math.ceil(n_pods / holds)):
                proved.append(nodes)
        if not proved:
            return
        chosen = proved[0]
        priced = [one for one, _ in options if one.priced]
        if len(pods) > 1 and all(one.priced for one in chosen):
            plan = backlog.cheapest_nodes(fork, pods, priced, most=300)
            self.bound = plan.bound
            if len(plan.placed) >= self._n_placed(chosen) and plan.cost < (cost_of(chosen) or 0.0) - 1e-6:
                proved.insert(0, plan.nodes)
                chosen = plan.nodes
        elif all(one.priced for one in chosen):
            self.bound = min(one.price for one in priced)
        cost = cost_of(chosen)
        others = [
            nodes_words(nodes) + ("" if (price := cost_of(nodes)) is None else f" for {price_words(price)}")
            for nodes in proved[1:]
        ]
        each = _size_words(chosen[0]) if len({one.name for one in chosen}) == 1 else ""
        note = "; ".join(filter(None, (each, f"or {', or '.join(others)}" if others else "")))
        manifests = tuple(
            one.node(name) for name, one in zip(backlog.names_of_nodes(fork, chosen), chosen, strict=True)
        )
        verb = "Bring back" if chosen[0].host else "Add"
        fix = draft(
            "add-node",
            title=f"{verb} {nodes_words(chosen)}{self._zone_words(chosen, options)}",
            note=note,
            cost=cost,
            price=price_words(cost),
            size=float(len(chosen)),
        )
        self._try(Trial(fix, nodes=manifests))

    def _add_device_nodes(self) -> None:
        """Nodes like those whose drivers publish devices, for all pods; with more devices where one asks for more."""
        fork = self.fork
        slices: dict[str, list[Any]] = {}
        for one in fork.cache.listers.all("ResourceSlice") if _has_device_claims(self.pod) else ():
            slices.setdefault(one.manifest["spec"].get("nodeName") or "", []).append(one.manifest)
        rows = [fork.cache.nodes.row_of[name] for name in slices if fork.cache.node(name) is not None]
        for alike in self._shapes(rows):
            if self._device_nodes(alike[0], slices[alike[0].name]):
                return

    def _device_nodes(self, like: Node, slices: Sequence[Mapping[str, Any]]) -> bool:
        """Whether such nodes help: one, as many as all pods need, or one with more devices."""
        price = self.prices.price_of(like.meta.labels)

        def tries(number: int, factor: int) -> bool:
            names = [f"plan-node-{place + 1}" for place in range(number)]
            made = [cluster_edits.slice_like(one, to, factor) for to in names for one in slices]
            nodes = tuple(cluster_edits.node_like(like, to) for to in names)
            more = f", with {factor} times its devices" if factor > 1 else ""
            title = f"Add {'a node' if number == 1 else f'{number} nodes'} like {like.name}{more}"
            cost = None if price is None else price * number * factor
            change = {"write": [*(without_given(node.manifest) for node in nodes), *made]}
            fix = draft("add-node", title=title, cost=cost, price=price_words(cost), change=change)
            return self._try(Trial(fix, nodes=nodes, objects=tuple(map(plain_object_from, made))))

        if not tries(1, 1):
            return any(tries(1, factor) for factor in backlog.FACTORS[:3])
        placed = self.found[-1].fix.placed
        number = min(math.ceil(len(self.pods) / max(placed, 1)), MAX_SHAPES)
        if number > 1 and tries(number, 1):
            del self.found[-2]
        return True

    def _enough(self, zones: Sequence[backlog.NodeChoice], number: int) -> list[backlog.NodeChoice]:
        """So many nodes of one kind over its zones that all pods land, or as many as help."""
        best: list[backlog.NodeChoice] = []
        n_best = 0
        for more in range(3):
            nodes = [zones[turn % len(zones)] for turn in range(1 if zones[0].host else number + more)]
            n_placed = self._n_placed(nodes)
            if n_placed > n_best:
                best, n_best = nodes, n_placed
            if n_best == len(self.pods) or n_placed < n_best or zones[0].host:
                break
        return best

    def _n_placed(self, nodes: Sequence[backlog.NodeChoice]) -> int:
        fork = self.fork
        with fork.changes(
            nodes=[
                one.node(name) for name, one in zip(backlog.names_of_nodes(fork, nodes), nodes, strict=True)
            ]
        ):
            if len(self.pods) == 1:
                return int(fork.decide(self.pod).node_name is not None)
            return len(self._lands(self.pod))

    def _zone_words(
        self, nodes: Sequence[backlog.NodeChoice], options: Sequence[tuple[backlog.NodeChoice, int]]
    ) -> str:
        """` in zone b`, where only one zone will do."""
        zones = {one.zone for one, _ in options if one.name == nodes[0].name}
        there = {node.meta.labels.get(ZONE, "") for node in self.fork.nodes()}
        zone = next(iter(zones), "")
        return (
            f" in zone {zone}"
            if len(zones) == 1 and zone and there != {zone} and not nodes[0].more.startswith("in a")
            else ""
        )

    # ---- other pods

    def _departures(self) -> None:
        fork = self.fork
        try:
            attempt = fork.attempt(self.pod)
        except PluginFailure:
            return
        snapshot = fork.snapshot
        pods, name_of = snapshot.pods, snapshot.nodes.name
        self.tried += len(pods)
        single: list[int] = []
        sets: list[tuple[str, list[Pod]]] = []
        if attempt.pre_filter_status.is_success:
            found = cluster_edits.departures(attempt)
            single = [pod_id for _, pod_id in found.single()]
            sets = [(name_of(row), pods.all_of(pod_ids)) for row, pod_ids in found.sets()]
        if len(pods) <= self.limits.exhaustive_pods:
            may_go = (pods.row >= 0) & (pods.priority < cluster_edits.may_go_below(self.pod))
            wider = np.flatnonzero(may_go).tolist()
        else:
            wider = cluster_edits.matters_elsewhere(attempt)[: self.limits.elsewhere]
        # A pod that left and came back may have another place in the table: from here on pods go by themselves.
        leaving = {pod.uid: pod for pod in pods.all_of(single)}
        for pod in pods.all_of(wider):
            if pod.uid not in leaving:
                with fork.changes(gone=[pod]):
                    helps = fork.fits(self.pod)
                if helps:
                    leaving[pod.uid] = pod
        places = [(fork.cache.node_name_of(uid) or "", [leaving[uid]]) for uid in sorted(leaving)]
        self._prove_departures([item for item in places if item[0]])
        # Where one pod's going helps, a set of them is no smaller fix.
        served = {name for name, _ in places}
        self._prove_departures([item for item in sets if item[0] not in served])

    def _prove_departures(self, groups: Sequence[tuple[str, list[Pod]]]) -> None:
        """The going of pods of one node, those first that lose least: thousands are not proved."""
        limit = self.limits.per_kind
        groups = nsmallest(len(groups) if limit is None else limit, groups, key=self._loss)
        for name, pods in groups:
            found = cluster_edits.removal_of(self.fork, name, pods, self.pod.requests)
            if not self._try(Trial(found, gone=tuple(pods))):
                continue
            change = self.found[-1]
            if found.what not in ("delete-pod", "free-room"):
                continue
            if self._may_move(pods, change.fix.displaced):
                self.found[-1] = replace(change, fix=self._moved(change.fix, pods, name))
            elif any(pod.priority > self.pod.priority and self._is_recreated(pod) for pod in pods):
                self.found.pop()  # It comes back before the pod has its turn.

    def _loss(self, group: tuple[str, list[Pod]]) -> tuple[int, float, str]:
        name, pods = group
        waiting = self.fork.scheduler.waiting_pods
        staying = [pod for pod in pods if not pod.is_terminating and waiting.get(pod.uid) is None]
        is_lost = any(pod.meta.controller is None for pod in staying)
        return 2 if is_lost else 1 if staying else 0, cluster_edits.size_of_losing(pods), name

    def _is_recreated(self, pod: Pod) -> bool:
        return bool(owner_words(pod)) and _owner_is_there(self.fork, pod) is not False

    def _may_move(self, pods: Sequence[Pod], displaced: Sequence[Displaced]) -> bool:
        """Whether pods may move: each is recreated and lands elsewhere, and its budget allows it."""
        budgets = EvictionBudgets(self.fork.cache.listers.all("PodDisruptionBudget"))
        return (
            all(one.node is not None and one.owner and one.owner_is_there is not False for one in displaced)
            and len(displaced) == len(pods)
            and not any(budgets.refusal(pod) for pod in pods)
        )

    def _moved(self, fix: Fix, pods: Sequence[Pod], node: str) -> Fix:
        lands = [(one.pod, one.node) for one in fix.displaced]
        form = "move-pods/one" if len(pods) == 1 else "move-pods"
        words = {"pods": cluster_edits.first_names(pods), "node": node, "to": lands[0][1]}
        whole = draft(
            form, words, size=fix.size, who=fix.who,
            change={"move": [list(one) for one in lands]}, placed=fix.placed, of=fix.of, lands=fix.lands,
        )  # fmt: skip
        return self._written(harmed(whole, fix.displaced), emptied=node)

    def _make_room(self) -> None:
        """Room for more than one pod: pods that may move are moved off one node after the other."""
        if len(self.pods) == 1 or not any(change.fix.what == "move-pods" for change in self.found):
            return
        fork = self.fork
        gone: list[Pod] = []
        lands: dict[str, str] = {}
        displaced: list[Displaced] = []
        emptied: list[str] = []
        with fork.changes():
            for pod in self.pods[:MAX_MOVED]:
                if fork.n_decisions >= self._until + self.limits.alike:
                    break
                step = self._one_room(pod, {one.uid for one in gone})
                if step is None:
                    break
                node, pods, ends = step
                for one in pods:
                    fork.remove_pod(one)
                fork.put_pod(pod, node)
                for one, end in zip(
                    sorted(pods, key=lambda one: (-one.priority, one.key)), ends, strict=True
                ):
                    if end.node is not None:
                        fork.put_pod(homeless(one), end.node)
                gone += pods
                displaced += ends
                lands[pod.key] = node
                emptied.append(node)
        if len(lands) < 2:
            return
        words = {"count": len(gone), "nodes": len(set(emptied))}
        moves = [[one.pod, one.node] for one in displaced]
        fix = draft(
            "move-pods/many", words, size=float(len(gone)),
            change={"move": moves}, placed=len(lands), of=len(self.pods), lands=lands,
            who="the owners of the pods that move",
        )  # fmt: skip
        fix = self._written(harmed(fix, tuple(displaced)), emptied=" ".join(dict.fromkeys(emptied)))
        self.found.append(Trial(fix, gone=tuple(gone)))

    def _one_room(self, pod: Pod, moved: set[str]) -> tuple[str, list[Pod], tuple[Displaced, ...]] | None:
        """Where moving pods makes room for one more: the node, who leaves it, and where they land."""
        fork = self.fork
        if fork.fits(pod):
            node = fork.decide(pod).node_name
            return None if node is None else (node, [], ())
        attempt = fork.attempt(pod)
        if not attempt.pre_filter_status.is_success:
            return None
        found, table, name_of = (
            cluster_edits.departures(attempt),
            fork.snapshot.pods,
            fork.snapshot.nodes.name,
        )
        groups = [(name_of(row), [table[pod_id]]) for row, pod_id in found.single()]
        groups += [(name_of(row), [table[pod_id] for pod_id in pod_ids]) for row, pod_ids in found.sets()]
        able = [
            (name, pods)
            for name, pods in groups
            if all(one.meta.controller is not None and one.uid not in moved for one in pods)
        ]
        for name, pods in nsmallest(self.limits.per_kind or MAX_MOVED, able, key=self._loss):
            with fork.changes(gone=pods, placed=[(pod, name)]):
                ends = landings(fork, pods)
            if self._may_move(pods, ends):
                return name, pods, ends
        return None


def _size_words(choice: backlog.NodeChoice) -> str:
    """`16 cpu, 32 Gi memory each`."""
    node = choice.node("one")
    words = [
        amount_words(resource, amount)
        for resource, amount in node.allocatable.items()
        if amount and (resource in ("cpu", "memory") or "/" in resource)
    ]
    return f"{', '.join(words)} each" if words else ""


_OF_ONE: Final = ("move-pods", "wait", "rollout")
"""Fixes whose landings are known: a run of all pods would not show them."""
_NOT_DISPLACED: Final = ("wait", "rollout", "reject", "take-back-resize", "correct-node-name")
"""Fixes after which the pods that go are not followed: they end anyway, or are the same pods again."""
_ONCE: Final = frozenset(
    (
        "repair-node", "provide-resource", "uncordon", "label-node", "move-pods", "delete-pod", "free-room", "wait",
        "reject", "take-back-resize",
    )
)  # fmt: skip
"""What is told once: others differ by the name of a node or a pod alone."""


def _folded(fixes: Sequence[Fix]) -> tuple[Fix, ...]:
    """Of fixes that are the same but for a name the best, with how many more there are."""
    alike: dict[str, list[Fix]] = {}
    for place, fix in enumerate(fixes):
        alike.setdefault(fix.what if fix.what in _ONCE else str(place), []).append(fix)
    found = []
    for first, *others in alike.values():
        more = f"{len(others):,} more like it would do, too" if others else ""
        if others and first.what == "label-node":
            more = f"nodes of {counted(len(others), 'other kind')} would do, too"
        found.append(replace(first, note="; ".join(filter(None, (first.note, more)))))
    return tuple(found)


def _has_device_claims(pod: Pod) -> bool:
    return bool((pod.manifest.get("spec") or {}).get("resourceClaims"))


def _is_harmless(fix: Fix) -> bool:
    """Whether it leaves the pods that run in peace, buys nothing and goes against no mark of a node."""
    if fix.what in ("add-node", "wait") or fix.restarts or fix.lost or fix.kind == "harms":
        return False
    return fix.headline or fix.what == "lower-request" or (fix.what == "tolerate" and fix.size < 0.95)


def landings(fork: Fork, going: Sequence[Pod]) -> tuple[Displaced, ...]:
    """What becomes of pods that made room, now that others have it: the most important is tried first.

    Pods that are ending anyway are left out.
    """
    found: list[Displaced] = []
    leaving = [pod for pod in going if not pod.is_terminating]
    with fork.changes():
        for pod in sorted(leaving, key=lambda pod: (-pod.priority, pod.key)):
            node, message = None, f"its scheduler {pod.scheduler_name} is not here"
            if pod.meta.controller is None and fork.scheduler.waiting_pods.get(pod.uid) is None:
                message = "it has no owner that recreates it"
            elif pod.scheduler_name in fork.scheduler.profiles:
                placed = fork.place(fork.anew(pod), preempt=False)
                node, message = placed.node, placed.message
            found.append(Displaced(pod.key, owner_words(pod), _owner_is_there(fork, pod), node, message))
    return tuple(found)


def _owner_is_there(fork: Fork, pod: Pod) -> bool | None:
    """Whether the pod's controller is among the objects; None without one, and for kinds a scheduler does not read."""
    owner = pod.meta.controller
    if owner is None or owner.kind not in KNOWN_KINDS:
        return None
    return fork.cache.listers.get(owner.kind, pod.namespace, owner.name) is not None


def _halved(fits: Callable[[int], bool], fitting: int, failing: int, within: int = 1) -> int:
    """The last value that fits on the way from one that does to one that does not, to `within`."""
    while abs(failing - fitting) > within:
        middle = (fitting + failing) // 2
        if fits(middle):
            fitting = middle
        else:
            failing = middle
    return fitting


def _evicted_words(decision: Decision) -> tuple[str, ...]:
    """What the scheduler does by itself for a pod that finds no room."""
    found = decision.post_filter
    if found is None or not found.status.is_success or not found.nominated_node_name:
        return ()
    who = first_of([pod.key for pod in found.victims])
    return (f"The scheduler makes room on {found.nominated_node_name} by itself: it evicts {who}.",)


def _node_of(decision: Decision) -> str | None:
    """Where the pod goes, or is nominated to; None where nowhere."""
    if decision.error is not None:
        return None
    if decision.node_name is not None:
        return decision.node_name
    result = decision.post_filter
    return (result.nominated_node_name or None) if result is not None and result.status.is_success else None
