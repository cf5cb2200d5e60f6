"""Nodes that place all pending pods: the cheapest that were found, proved by placing every pod, beside a lower bound.

Nodes that could be added are of the cluster's own groups, of the types of a price list, and of these types in those
groups; a group's labels are those that all of its nodes share, zones are the cluster's own. The bound and a first
guess come from one problem over amounts (`bound`). The guess is run: all pods are decided in their order with the
nodes there, nodes are added for those that find none, and taken away or made cheaper as long as every pod still finds
one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import numpy as np

from scheduler_core.fork import (
    INSTANCE_TYPE,
    ZONE,
    EqualNodes,
    Fork,
    Report,
    group_of,
    is_control_plane,
    silent,
)
from scheduler_core.objects.meta import object_of
from scheduler_core.objects.node import LABEL_HOSTNAME, Node, node_from
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.objects.prices import NodeType, PriceList, estimated
from scheduler_core.objects.quantity import quantity_milli_value
from scheduler_core.objects.resources import PODS
from scheduler_core.whatif import cluster_edits
from scheduler_core.whatif.bound import Bin, Demand, least_cost
from scheduler_core.whatif.headroom import room_of
from scheduler_core.whatif.pod_edits import MACHINES, RENAMED, is_passing
from scheduler_core.whatif.workloads import Alike, classes_of, unpinned, without_rules

REGION = "topology.kubernetes.io/region"
MAX_GROUPS = 12
FACTORS = (2, 4, 8, 16)
MAX_SHAPES = 20
"""Kinds of nodes without a price, of one group."""
PLACE_LABELS = (
    ZONE,
    REGION,
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)
_OF_TYPE = frozenset((INSTANCE_TYPE, "beta.kubernetes.io/instance-type"))
_GENERIC = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}


@dataclass(frozen=True, slots=True)
class NodeChoice:
    """One kind of node that may be added, in one zone.

    Attributes
    ----------
    shape, pool : str
        The type of the price list, and the pool that it is of; empty where it is of none.
    price : float
        An hour; an estimate where it is not `priced`.
    like : str
        A node of the same kind, where the list has no price of it.
    host : str
        The only name it may have.
    own : bool
        Whether the cluster has such nodes.
    more : str
        What tells it from others of its name: ``with disk=nvme``.
    """

    shape: str
    pool: str
    price: float
    zone: str
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, str], ...]
    allocatable: Mapping[str, str]
    like: str = ""
    host: str = ""
    own: bool = False
    more: str = ""

    @property
    def priced(self) -> bool:
        return not self.like

    @property
    def name(self) -> str:
        """For people: the type, and its pool where it is of one."""
        more = f" {self.more}" if self.more else ""
        if self.like:
            return f"node like {self.like}{more}"
        return f"{self.shape} in {self.pool}{more}" if self.pool else f"{self.shape}{more}"

    def words(self, number: int) -> str:
        """So many of them, as something that is added."""
        more = f" {self.more}" if self.more else ""
        if self.host:
            return f"the node {self.host}, like {self.like or self.shape}{more}"
        if self.like:
            return f"a {self.name}" if number == 1 else f"{number:,} nodes like {self.like}{more}"
        return f"{number:,} × {self.shape}{more}{f' to pool {self.pool}' if self.pool else ''}"

    @property
    def devices(self) -> list[str]:
        return [name for name, amount in self.allocatable.items() if "/" in name and amount != "0"]

    def node(self, name: str) -> Node:
        """A node of it."""
        return node_from(self.manifest(name))

    def manifest(self, name: str) -> dict[str, Any]:
        spec: dict[str, Any] = {"taints": [dict(taint) for taint in self.taints]} if self.taints else {}
        meta = {"name": name, "uid": f"uid-of-{name}", "labels": {**self.labels, LABEL_HOSTNAME: name}}
        amounts = {"allocatable": dict(self.allocatable), "capacity": dict(self.allocatable)}
        status = {**amounts, "conditions": [{"type": "Ready", "status": "True"}]}
        return object_of("v1", "Node", meta, spec=spec, status=status)


def choices_of(
    fork: Fork, prices: PriceList, pods: Iterable[Pod] = (), *, unpriced: bool = False
) -> tuple[list[NodeChoice], list[str]]:
    """What may be added, the cheapest first; and names of groups whose type has no price.

    Places are the cluster's own and those that the volumes of `pods` are tied to.

    Parameters
    ----------
    unpriced : bool
        Whether nodes like those without a price are among them.
    """
    nodes = [
        cluster_edits.node_like(node, node.name, plain=True) if is_control_plane(node) else node
        for node in fork.nodes()
    ]
    places = _places(nodes)
    for pod in pods:
        for _, _, options in cluster_edits.volume_places(fork, pod):
            for option in options:
                zone = next((value for key, value in option.items() if key.endswith("/zone")), None)
                place = {**option, **({ZONE: zone} if zone else {})}
                if not any(place.items() <= one.items() for one in places):
                    places.append(place)
    groups: dict[EqualNodes, list[Node]] = {}
    for node in nodes:
        groups.setdefault(group_of(node.meta.labels), []).append(node)
    by_size = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0].name, item[0].shape))
    found: list[NodeChoice] = []
    without_price = []

    def add(
        kind: NodeType,
        labels: Mapping[str, str],
        taints: Sequence[Any] = (),
        pool: str = "",
        *,
        like: str = "",
        own: bool = False,
    ) -> None:
        labels, taints = {**labels, **kind.labels}, (*taints, *kind.taints)
        for place in places:
            host = place.get(LABEL_HOSTNAME, "")
            if own or not host:
                zone = labels.get(ZONE) or place.get(ZONE, "")
                all_labels = {**place, **labels, **({LABEL_HOSTNAME: host} if host else {})}
                found.append(
                    NodeChoice(
                        kind.name,
                        pool,
                        kind.price,
                        zone,
                        all_labels,
                        taints,
                        kind.allocatable,
                        like,
                        host,
                        own,
                    )
                )

    for group, members in by_size[:MAX_GROUPS]:
        labels, taints = _common(members), _lasting_taints(members[0])
        pool = "" if group.name in (group.shape, "nodes") else group.name
        price = prices.price_of(labels)
        if price is None:
            without_price.append(group.name)
        else:
            kind = NodeType(group.shape, price, _allocatable(members[0]), {}, ())
            add(kind, labels, taints, pool, own=True)
        if price is None and unpriced:
            shapes: dict[tuple[Any, ...], list[Node]] = {}
            for node in members:
                shapes.setdefault(cluster_edits.shape_of(node, PLACE_LABELS), []).append(node)
            for alike in sorted(shapes.values(), key=len, reverse=True)[:MAX_SHAPES]:
                cost = estimated(alike[0].allocatable)
                kind = NodeType(group.shape, cost, _allocatable(alike[0]), {}, ())
                add(
                    kind,
                    _common(alike),
                    _lasting_taints(alike[0]),
                    pool,
                    like=alike[0].name,
                    own=True,
                )
        bare = {
            key: value
            for key, value in labels.items()
            if key not in _OF_TYPE and not key.startswith("karpenter.k8s.")
        }
        for kind in prices.types:
            if kind.name != group.shape:
                add(kind, {**bare, INSTANCE_TYPE: kind.name}, taints, pool)
    for kind in prices.types:
        add(kind, {**_GENERIC, INSTANCE_TYPE: kind.name})
    unique: dict[tuple[Any, ...], NodeChoice] = {}
    for one in found:
        key = (one.price, one.zone, repr(sorted(one.labels.items())), repr(one.taints), repr(one.allocatable))
        unique.setdefault(key, one)
    # Of equal prices those that the cluster has, then those of its largest pools.
    return sorted(unique.values(), key=lambda one: (one.price, not one.own, not one.pool)), without_price


def _lasting_taints(node: Node) -> list[Mapping[str, str]]:
    taints = (node.manifest.get("spec") or {}).get("taints") or ()
    return [item for item in taints if not is_passing(str(item["key"]))]


def _allocatable(node: Node) -> dict[str, str]:
    amounts = (node.manifest.get("status") or {}).get("allocatable") or {}
    return {key: str(value) for key, value in amounts.items()}


def kinds_for(fork: Fork, pod: Pod, prices: PriceList, most: int) -> list[tuple[NodeChoice, int]]:
    """What may be added that takes a pod, and how many like it each takes, `most` at most: the cluster's own kinds.

    Else types of the list in no pool; else nodes with the labels that the pod asks for; larger ones; ones elsewhere.
    """
    every, _ = choices_of(fork, prices, [pod], unpriced=True)
    # Nodes with devices are for pods that ask for them.
    every = [one for one in every if all(pod.requests.get(name) for name in one.devices)]
    own = [one for one in every if one.own or one.pool]
    others = [one for one in every if not (one.own or one.pool)]
    found = with_room(fork, pod, own, most) or with_room(fork, pod, others, most)
    if found:
        return found
    wanted = [
        (
            labels,
            f"with {', '.join(f'{key}={value}' for key, value in labels.items() if key not in (ZONE, LABEL_HOSTNAME))}",
        )
        for labels in cluster_edits.wanted_labels(pod)
        if not labels.keys() & (_OF_TYPE | RENAMED.keys())
        and fork.cache.node(labels.get(LABEL_HOSTNAME, "")) is None
        and all(labels.get(key, known[0]) in known for key, known in MACHINES.items())
    ]
    labelled = [
        _labelled(one, labels, more)
        for labels, more in wanted
        for one in every
        if one.own or LABEL_HOSTNAME not in labels
    ]
    if found := with_room(fork, pod, labelled, most):
        return found
    larger = [_larger(one, factor) for one in own if one.like for factor in FACTORS]
    if found := with_room(fork, pod, larger, most) or with_room(
        fork, pod, [_labelled(one, labels, more) for labels, more in wanted for one in larger], most
    ):
        return found
    elsewhere = [
        _labelled(one, {key: f"{one.labels.get(key, 'zone')}-new"}, f"in a new {key.rsplit('/', 1)[-1]}")
        for key in cluster_edits.topology_keys(pod)
        for one in own
    ]
    return with_room(fork, pod, elsewhere, most)


def _labelled(choice: NodeChoice, labels: Mapping[str, str], more: str) -> NodeChoice:
    if any(choice.labels.get(key, labels[key]) != labels[key] for key in MACHINES.keys() & labels.keys()):
        # Another machine, of which no price is known.
        others = {key: value for key, value in choice.labels.items() if key not in _OF_TYPE}
        choice = replace(choice, labels=others, like=choice.like or choice.shape)
    zone = labels.get(ZONE, choice.zone)
    host, said = labels.get(LABEL_HOSTNAME, choice.host), "" if more == "with " else more
    return replace(choice, labels={**choice.labels, **labels}, zone=zone, host=host, more=said)


def _larger(choice: NodeChoice, factor: int) -> NodeChoice:
    allocatable = {
        name: amount if name == PODS else str(quantity_milli_value(amount) * factor // 1000)
        for name, amount in choice.allocatable.items()
    }
    more = f"{choice.more}{',' if choice.more else ''} {factor} times as large".strip()
    return replace(choice, allocatable=allocatable, price=choice.price * factor, more=more)


def with_room(fork: Fork, pod: Pod, choices: Sequence[NodeChoice], most: int) -> list[tuple[NodeChoice, int]]:
    """Those of the choices that take a pod, and how many like it each takes, `most` at most."""
    runs = _Runs(fork, [], silent)
    found = []
    if not choices:
        return []
    with fork.changes():
        names = [one.host or f"plan-probe-{place}" for place, one in enumerate(choices)]
        runs.add(list(zip(names, choices, strict=True)))
        attempt = fork.attempt(pod)
        passes = attempt.pre_filter_status.is_success and len(attempt.feasible) > 0
        room = room_of(fork, pod, attempt, 10**7) if passes else None
        if room is not None:
            held = dict(zip(attempt.feasible.tolist(), room.tolist(), strict=True))
            rows = [fork.cache.nodes.row_of[name] for name in names]
            found = [
                (one, min(held[row], most)) for one, row in zip(choices, rows, strict=True) if held.get(row)
            ]
    return found


def _places(nodes: Iterable[Node]) -> list[dict[str, str]]:
    """Labels of each zone; one without labels where there are none."""
    found: dict[str, dict[str, str]] = {}
    for node in nodes:
        zone = node.meta.labels.get(ZONE, "")
        if zone:
            found.setdefault(
                zone, {key: node.meta.labels[key] for key in PLACE_LABELS if key in node.meta.labels}
            )
    return [found[zone] for zone in sorted(found)] or [{}]


def _common(nodes: list[Node]) -> dict[str, str]:
    """Labels that all of them share but those of their place and name."""
    shared = dict(nodes[0].meta.labels)
    for node in nodes[1:]:
        labels = node.meta.labels
        shared = {key: value for key, value in shared.items() if labels.get(key) == value}
    own = nodes[0].name
    return {
        key: value
        for key, value in shared.items()
        if key not in PLACE_LABELS and key != LABEL_HOSTNAME and (value != own or len(nodes) > 1)
    }


# ---- the cheapest nodes

MOST_DECISIONS = 6_000
"""Decisions that looking for a cheaper plan may cost: a count, so that the answer is the same everywhere."""
ROUNDS = 4
A_PRICE = 1e-7
"""What a price counts for beside a node, where nodes are counted."""


@dataclass(slots=True)
class NodePlan:
    """What was found.

    Attributes
    ----------
    pods : int
        That are pending.
    fit_now : int
        Of these, find a node as things are.
    nodes : list of NodeChoice
        To add.
    placed : dict of str to str
        Pod -> node, in the run that proves it; added nodes are named by `names_of_nodes`.
    waiting : list of (Pod, str)
        Pods that no node of the list takes, and what the scheduler says of them.
    cost, bound : float
        Of the nodes an hour, and what no plan that places as many is below.
    """

    pods: int
    fit_now: int = 0
    nodes: list[NodeChoice] = field(default_factory=list)
    placed: dict[str, str] = field(default_factory=dict)
    waiting: list[tuple[Pod, str]] = field(default_factory=list)
    bound: float = 0.0
    n_decisions: int = 0

    @property
    def cost(self) -> float:
        return sum(choice.price for choice in self.nodes)


def names_of_nodes(fork: Fork, nodes: Sequence[NodeChoice]) -> list[str]:
    """What added nodes are called: names that no node of the cluster has."""
    free = (name for number in count(1) if fork.cache.node(name := f"plan-node-{number}") is None)
    return [choice.host or next(free) for choice in nodes]


def cheapest_nodes(
    fork: Fork,
    pods: Sequence[Pod],
    choices: Sequence[NodeChoice],
    *,
    most: int = MOST_DECISIONS,
    report: Report = silent,
) -> NodePlan:
    """Find nodes for pods.

    Parameters
    ----------
    pods : sequence of Pod
        On no node, in the order in which they are decided.
    most : int
        Decisions that looking for a cheaper plan may cost.
    """
    return _Search(fork, list(pods), choices, report, most).find()


def fewest_nodes(
    fork: Fork, pods: Sequence[Pod], choices: Sequence[NodeChoice], *, report: Report = silent
) -> NodePlan:
    """As few nodes for pods as are found; of equal numbers the cheaper ones.

    The plan's bound is a number of nodes.
    """
    # A node is one, and its price next to nothing.
    counted = [replace(choice, price=1 + choice.price * A_PRICE) for choice in choices]
    real = {id(one): choice for one, choice in zip(counted, choices, strict=True)}
    plan = _Search(fork, list(pods), counted, report, MOST_DECISIONS).find()
    most = max((choice.price for choice in choices), default=0.0) * A_PRICE * max(len(plan.nodes), 1)
    plan.bound = max(math.ceil(plan.bound - most - 1e-6), 0)
    plan.nodes = [real[id(choice)] for choice in plan.nodes]
    return plan


def run_plan(fork: Fork, pods: Sequence[Pod], nodes: Sequence[NodeChoice]) -> dict[str, str]:
    """Pod -> node, when these nodes are there and the pods are decided in their order: what proves a plan."""
    return _Runs(fork, list(pods), silent).run(nodes)[0]


class _Runs:
    """Runs of pods with nodes added."""

    def __init__(self, fork: Fork, pods: list[Pod], report: Report) -> None:
        self.fork = fork
        self.pods = pods
        self.report = report
        self.plan = NodePlan(len(pods))
        self.daemons = [unpinned(pod) for pod in fork.daemon_pods]

    def run(self, nodes: Sequence[NodeChoice]) -> tuple[dict[str, str], list[tuple[Pod, str]]]:
        """Decide all pods in their order with these nodes there: (pod -> node, pods without one and why)."""
        with self.fork.changes():
            self.add(list(zip(names_of_nodes(self.fork, nodes), nodes, strict=True)))
            return self._place(self.pods)

    def _place(self, pods: Iterable[Pod]) -> tuple[dict[str, str], list[tuple[Pod, str]]]:
        placed: dict[str, str] = {}
        waiting = []
        for pod in pods:
            found = self.fork.place(pod, preempt=False)
            self.plan.n_decisions += 1
            if self.plan.n_decisions % 50 == 0:
                self.report(0, 0, f"{self.plan.n_decisions:,} decisions run")
            if found.node is None:
                waiting.append((pod, found.message))
            else:
                placed[pod.key] = found.node
        return placed, waiting

    def add(self, nodes: Sequence[tuple[str, NodeChoice]]) -> None:
        """Add nodes, with the DaemonSet pods that would start there."""
        self.fork.set_nodes([choice.node(name) for name, choice in nodes])
        if not nodes:
            return
        row_of = self.fork.cache.nodes.row_of
        new = np.array(sorted(row_of[name] for name, _ in nodes), np.intp)
        for pod in self.daemons:
            rows = np.intersect1d(self.fork.attempt(pod).feasible, new)
            if len(rows):
                self.fork.put_copies(pod, rows)


class _Search(_Runs):
    """Looks for the cheapest nodes."""

    def __init__(
        self, fork: Fork, pods: list[Pod], choices: Sequence[NodeChoice], report: Report, most: int
    ) -> None:
        super().__init__(fork, pods, report)
        self.choices = choices
        self.most = most

    def find(self) -> NodePlan:
        plan = self.plan
        placed, waiting = self.run(())
        plan.fit_now, plan.placed, plan.waiting = len(placed), placed, waiting
        if not waiting:
            return plan
        classes = classes_of(self.pods)
        guess = self._bounded(classes)
        plan.nodes = self._completed(guess)
        plan.placed, plan.waiting = self.run(plan.nodes)
        for _ in range(ROUNDS):
            if not plan.waiting:
                break
            more = self._completed(plan.nodes)
            placed, waiting = self.run(more)
            if len(placed) <= len(plan.placed):
                break
            plan.nodes, plan.placed, plan.waiting = more, placed, waiting
        if plan.waiting:
            # The bound is of placing what this plan places; it held all that any node takes.
            left = {pod.uid for pod, _ in plan.waiting}
            self._bounded(classes_of([pod for pod in self.pods if pod.uid not in left]))
        self._improve()
        return plan

    # ---- the bound and the first guess

    def _bounded(self, classes: Sequence[Alike]) -> list[NodeChoice]:
        """Sets the plan's bound; nodes of the problem's solution."""
        self.report(0, 0, "a lower bound")
        fork = self.fork
        demands = [Demand(len(alike), {**alike[0].requests, PODS: 1}) for alike in classes]
        with fork.changes():
            probes = [(f"plan-probe-{place}", choice) for place, choice in enumerate(self.choices)]
            self.add(probes)
            row_of = fork.cache.nodes.row_of
            rows = {row_of[name]: place for place, (name, _) in enumerate(probes)}
            taken: dict[int, dict[int, int]] = {}
            for index, alike in enumerate(classes):
                relaxed = pod_from(without_rules(alike[0].manifest))
                attempt = fork.attempt(relaxed)
                if not len(attempt.feasible):
                    continue
                room = room_of(fork, relaxed, attempt, 1_000 * len(self.choices) + 10**7)
                assert room is not None
                for row, most in zip(attempt.feasible.tolist(), room.tolist(), strict=True):
                    taken.setdefault(row, {})[index] = most
            resources = sorted({name for demand in demands for name in demand.requests})
            free = {row: {name: fork.free(name, row) for name in resources} for row in taken}
        kinds: dict[tuple[object, ...], list[int]] = {}
        for row, place in rows.items():
            if taken.get(row):
                choice = self.choices[place]
                key = (choice.price, choice.name, repr(taken[row]), repr(free[row]))
                kinds.setdefault(key, []).append(place)
        places = list(kinds.values())
        probe_rows = list(rows)
        bins = [
            Bin(
                self.choices[one[0]].price,
                0,
                len(self.pods),
                free[probe_rows[one[0]]],
                taken[probe_rows[one[0]]],
            )
            for one in places
        ]
        kept = _undominated(bins)
        existing = _together([(taken[row], free[row]) for row in taken if row not in rows])
        solved = least_cost([*(bins[index] for index in kept), *existing], demands)
        self.plan.bound = solved.cost
        found: list[NodeChoice] = []
        for index, number in zip(kept, solved.counts, strict=False):
            zones = places[index]
            found += [self.choices[zones[turn % len(zones)]] for turn in range(number)]
        return found

    # ---- repairs

    def _completed(self, nodes: Sequence[NodeChoice]) -> list[NodeChoice]:
        """These nodes and more, one for each pod that finds none, the cheapest for it and those like it."""
        found = list(nodes)
        with self.fork.changes():
            self.add(list(zip(names_of_nodes(self.fork, found), found, strict=True)))
            _, waiting = self._place(self.pods)
            left = [pod for pod, _ in waiting]
            while left:
                choice = self._best_for(left)
                if choice is None:
                    left = left[1:]
                    continue
                self.add([(names_of_nodes(self.fork, [choice])[0], choice)])
                found.append(choice)
                _, waiting = self._place(left)
                before, left = left, [pod for pod, _ in waiting]
                if len(left) == len(before):
                    left = left[1:]
        return found

    def _best_for(self, left: Sequence[Pod]) -> NodeChoice | None:
        """The choice that takes the first pod at the least price for each of those like it that it holds."""
        first = left[0]
        alike = Counter(_likeness(pod) for pod in left)[_likeness(first)]
        with self.fork.changes():
            self.add([(f"plan-probe-{place}", choice) for place, choice in enumerate(self.choices)])
            attempt = self.fork.attempt(first)
            row_of = self.fork.cache.nodes.row_of
            feasible = set(attempt.feasible.tolist())
            best: tuple[float, int] | None = None
            for place in range(len(self.choices)):
                row = row_of[f"plan-probe-{place}"]
                if row not in feasible:
                    continue
                holds = min(
                    [alike]
                    + [
                        self.fork.free(name, row) // amount
                        for name, amount in first.requests.items()
                        if amount
                    ]
                )
                price = self.choices[place].price / max(holds, 1)
                best = min(best, (price, place)) if best is not None else (price, place)
        return None if best is None else self.choices[best[1]]

    def _improve(self) -> None:
        """Leave nodes out, or take cheaper ones, as long as no fewer pods find a node."""
        plan = self.plan
        spent = plan.n_decisions
        changed = True
        while changed and plan.cost > plan.bound + 1e-9:
            changed = False
            order = sorted(range(len(plan.nodes)), key=lambda place: (-plan.nodes[place].price, place))
            tried: set[str] = set()
            for place in order:
                choice = plan.nodes[place]
                key = repr((choice.name, choice.zone))
                if key in tried:
                    continue
                tried.add(key)
                cheaper = [
                    one for one in self.choices if one.price < choice.price and one.zone == choice.zone
                ]
                for other in (None, *cheaper):
                    if plan.n_decisions - spent + len(self.pods) > self.most:
                        return
                    nodes = [*plan.nodes[:place], *([other] if other else []), *plan.nodes[place + 1 :]]
                    placed, waiting = self.run(nodes)
                    if len(placed) >= len(plan.placed):
                        plan.nodes, plan.placed, plan.waiting = nodes, placed, waiting
                        changed = True
                        break
                if changed:
                    break


def _likeness(pod: Pod) -> str:
    return repr(
        (pod.namespace, sorted(pod.requests.items()), pod.meta.controller and pod.meta.controller.name)
    )


def _undominated(bins: Sequence[Bin]) -> list[int]:
    """Places of bins that no other is as cheap as, as large as, and takes as much as."""
    kept: list[int] = []
    for place, one in enumerate(bins):
        if not any(_covers(bins[other], one) for other in kept):
            kept = [other for other in kept if not _covers(one, bins[other])]
            kept.append(place)
    return kept


def _covers(one: Bin, other: Bin) -> bool:
    return (
        one.cost <= other.cost
        and all(one.room.get(name, 0) >= amount for name, amount in other.room.items())
        and all(one.takes.get(demand, 0) >= most for demand, most in other.takes.items())
    )


def _together(nodes: Sequence[tuple[dict[int, int], dict[str, int]]]) -> list[Bin]:
    """Nodes that take the same pods as one bin that is there: its room is theirs together, which is never less."""
    groups: dict[tuple[int, ...], tuple[Counter[int], Counter[str]]] = {}
    for takes, free in nodes:
        most, room = groups.setdefault(tuple(sorted(takes)), (Counter(), Counter()))
        most.update(takes)
        room.update({name: max(amount, 0) for name, amount in free.items()})
    return [Bin(0.0, 1, 1, dict(room), dict(most)) for most, room in groups.values()]
