"""Doing with fewer nodes: which can go, one after the other, where their pods land, and what keeps the rest.

A node goes when it can be drained with every pod finding another node, no budget in the way, nothing preempted and
nothing lost. Each step is run on the copy with the steps before it done, so the order is part of the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scheduler_core.advice.sandbox import Sandbox
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.objects.resources import PODS
from scheduler_core.plan.bound import Bin, Demand, least_cost
from scheduler_core.plan.headroom import Report, silent
from scheduler_core.plan.node_groups import cpu_share, nodes_of
from scheduler_core.plan.pending import classes_of, without_rules
from scheduler_core.plan.prices import PriceList
from scheduler_core.plan.take_away import (
    OF_THE_NODE,
    Budgets,
    TakenAway,
    follow_drain,
    owner_kind,
)
from scheduler_core.plan.trial import Trial, homeless

MOST_DECISIONS = 40_000
"""Decisions that all orders together may cost: a count, so that the answer is the same everywhere."""


@dataclass(slots=True)
class Fewer:
    """What was found.

    Attributes
    ----------
    nodes : int
        That there are.
    steps : list of TakenAway
        Drains in their order.
    kept : dict of str to str
        Node that stays -> the one sentence that says why.
    cost_of : dict of str to float
        Node -> what it costs an hour; 1 each when some have no price.
    has_prices : bool
    saved : float
        By the steps, in the unit of `cost_of`.
    bound : float
        No set of nodes that holds all pods saves more.
    """

    nodes: int
    steps: list[TakenAway] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    cost_of: dict[str, float] = field(default_factory=dict)
    has_prices: bool = False
    bound: float = 0.0
    n_decisions: int = 0

    @property
    def saved(self) -> float:
        return sum(self.cost_of[step.nodes[0]] for step in self.steps)


def fewer_nodes(sandbox: Sandbox, prices: PriceList, *, report: Report = silent) -> Fewer:
    """Find nodes that can go; several orders are tried, and the one that saves most is told."""
    nodes = nodes_of(sandbox)
    listed = {node.name: prices.price_of(node.meta.labels) for node in nodes}
    has_prices = bool(nodes) and all(price is not None for price in listed.values())
    cost_of = {
        name: float(price) if has_prices and price is not None else 1.0 for name, price in listed.items()
    }
    best: Fewer | None = None
    spent = 0
    shares = {node.name: cpu_share(sandbox, node.name) for node in nodes}
    n_pods = {node.name: len(_movable(sandbox, node.name)) for node in nodes}
    place_of = {node.name: place for place, node in enumerate(nodes)}
    orders = (
        sorted(shares, key=lambda name: (shares[name], n_pods[name], place_of[name])),
        sorted(shares, key=lambda name: (-cost_of[name], shares[name], place_of[name])),
        sorted(shares, key=lambda name: (n_pods[name], -cost_of[name], place_of[name])),
    )
    bound = _most_saved(sandbox, nodes, cost_of)
    for number, order in enumerate(orders):
        found = _go_through(sandbox, order, cost_of, report, f"order {number + 1} of {len(orders)}")
        spent += found.n_decisions
        if best is None or found.saved > best.saved + 1e-9:
            best = found
        if best.saved >= bound - 1e-9 or spent > MOST_DECISIONS:
            break
    assert best is not None
    best.has_prices, best.bound, best.n_decisions = has_prices, max(bound, best.saved), spent
    return best


def _go_through(
    sandbox: Sandbox, order: Sequence[str], cost_of: Mapping[str, float], report: Report, what: str
) -> Fewer:
    found = Fewer(len(order), cost_of=dict(cost_of))
    with Trial(sandbox) as trial:
        for done, name in enumerate(order):
            report(done, len(order), what)
            node = sandbox.scheduler.cache.node(name)
            if node is not None and is_control_plane(node):
                found.kept[name] = "It is of the control plane."
                continue
            mark = trial.mark()
            step = follow_drain(trial, (name,))
            found.n_decisions += step.n_decisions
            if step.is_harmless:
                trial.remove_nodes((name,))
                found.steps.append(step)
                continue
            trial.back_to(mark)
            found.kept[name] = blocker(step)
    return found


def is_control_plane(node: Node) -> bool:
    """Whether kubeadm or a provider marked it so."""
    return any(f"node-role.kubernetes.io/{role}" in node.meta.labels for role in ("control-plane", "master"))


def blocker(step: TakenAway) -> str:
    """Why a node stays, in one sentence: the first pod that hinders, and what hinders it."""
    for outcome in ("blocked", "lost", "pending"):
        first = next(iter(step.of(outcome)), None)
        if first is not None and outcome == "lost":
            return f"{first.pod} has no owner that makes it again."
        if first is not None:
            verb = "cannot be evicted" if outcome == "blocked" else "finds no other node"
            return f"{first.pod} {verb}: {first.reason}"
    first = step.preempted[0]
    return f"{first.because} would preempt {first.pod}."


def _movable(sandbox: Sandbox, name: str) -> list[Pod]:
    """Pods of a node that would have to find another one."""
    cache = sandbox.scheduler.cache
    pods = (cache.pods[pod_id] for pod_id in cache.nodes.pods_on(cache.nodes.row_of[name]))
    return [pod for pod in pods if owner_kind(pod) not in OF_THE_NODE and not pod.is_terminating]


def _most_saved(sandbox: Sandbox, nodes: Sequence[Node], cost_of: Mapping[str, float]) -> float:
    """No choice of nodes that go saves more: the rest must hold all pods, whatever the order.

    Nodes whose pods can never leave stay: those of pods without an owner, and of pods that two budgets cover.
    """
    budgets = list(sandbox.scheduler.cache.listers.all("PodDisruptionBudget"))
    movable = {node.name: _movable(sandbox, node.name) for node in nodes}
    never = Budgets(budgets)
    stays = {
        node.name: is_control_plane(node)
        or any(not owner_kind(pod) or never.covering(pod) > 1 for pod in movable[node.name])
        for node in nodes
    }
    classes = classes_of([homeless(pod) for name, pods in movable.items() for pod in pods])
    demands = [Demand(len(alike.pods), {**alike.one.requests, PODS: 1}) for alike in classes]
    with Trial(sandbox) as trial:
        for pods in movable.values():
            for pod in pods:
                trial.remove_pod(pod)
        row_of = sandbox.scheduler.cache.nodes.row_of
        name_of = {row_of[node.name]: node.name for node in nodes}
        taken: dict[str, dict[int, int]] = {}
        for index, alike in enumerate(classes):
            relaxed = pod_from(without_rules(alike.one.manifest))
            for row in sandbox.attempt(relaxed).feasible.tolist():
                taken.setdefault(name_of[row], {})[index] = len(alike.pods)
        # A cordoned node keeps what it has: its own pods count as fitting there.
        place_of = {pod.uid: index for index, alike in enumerate(classes) for pod in alike.pods}
        for name, pods in movable.items():
            for pod in pods:
                index = place_of[pod.uid]
                taken.setdefault(name, {}).setdefault(index, len(classes[index].pods))
        resources = sorted({name for demand in demands for name in demand.requests})
        free = {
            node.name: {name: sandbox.free(name, row_of[node.name]) for name in resources} for node in nodes
        }
    groups: dict[str, list[str]] = {}
    for node in nodes:
        key = repr((cost_of[node.name], sorted(taken.get(node.name, {}).items()), free[node.name]))
        groups.setdefault(key, []).append(node.name)
    bins = []
    for names in groups.values():
        one = names[0]
        bins.append(
            Bin(cost_of[one], sum(stays[name] for name in names), len(names), free[one], taken.get(one, {}))
        )
    solved = least_cost(bins, demands)
    return max(sum(cost_of.values()) - solved.cost, 0.0)


def replay_steps(sandbox: Sandbox, found: Fewer) -> bool:
    """Whether the same drains in the same order are harmless again, each pod wherever it lands this time."""
    with Trial(sandbox) as trial:
        for step in found.steps:
            if not follow_drain(trial, step.nodes).is_harmless:
                return False
            trial.remove_nodes(step.nodes)
    return True
