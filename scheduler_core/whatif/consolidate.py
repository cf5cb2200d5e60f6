"""Doing with fewer nodes: which can go, one after the other, where their pods land, and what keeps the rest.

A node goes when it can be drained and deleted with every pod finding another node, no budget in the way, nothing
preempted and nothing lost. Each step is run on the copy with the steps before it done, so the order is part of the
answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from scheduler_core.fork import Fork, Report, is_control_plane, silent
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.objects.prices import PriceList
from scheduler_core.objects.resources import PODS
from scheduler_core.whatif import take_away
from scheduler_core.whatif.bound import Bin, Demand, least_cost
from scheduler_core.whatif.workloads import classes_of, owner_kind, without_rules

MOST_DECISIONS = 40_000
"""Decisions that all orders together may cost: a count, so that the answer is the same everywhere. The search ends in
the middle of an order, with what it has found."""
MOST_COLUMNS = 40_000
"""Of the bound's problem with each node by itself; a larger one counts nodes that take the same pods together."""
REPORT_EVERY = 500


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
    untried : int
        Nodes that the search did not come to before it met `MOST_DECISIONS`; of those, `kept` says nothing.
    n_orders, of_orders : int
        Orders that were gone through to their end or their limit, and those there are. Fewer, where the bound was met
        or the decisions were spent.
    """

    nodes: int
    steps: list[take_away.TakenAway] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    cost_of: dict[str, float] = field(default_factory=dict)
    has_prices: bool = False
    bound: float = 0.0
    n_decisions: int = 0
    untried: int = 0
    n_orders: int = 0
    of_orders: int = 0

    @property
    def limit(self) -> int | None:
        """Decisions at which the search ended, where more of them might have found more."""
        is_cut = self.untried or self.n_orders < self.of_orders
        return MOST_DECISIONS if is_cut and self.saved < self.bound - 1e-9 else None

    @property
    def saved(self) -> float:
        return sum(self.cost_of[step.nodes[0]] for step in self.steps)


def fewer_nodes(fork: Fork, prices: PriceList, *, report: Report = silent) -> Fewer:
    """Find nodes that can go; several orders are tried, and the one that saves most is the answer."""
    nodes = fork.nodes()
    listed = {node.name: prices.price_of(node.meta.labels) for node in nodes}
    has_prices = bool(nodes) and all(price is not None for price in listed.values())
    cost_of = {
        name: float(price) if has_prices and price is not None else 1.0 for name, price in listed.items()
    }
    best: Fewer | None = None
    spent = 0
    shares = {node.name: fork.cpu_share(node.name) for node in nodes}
    n_pods = {node.name: len(_movable(fork, node.name)) for node in nodes}
    place_of = {node.name: place for place, node in enumerate(nodes)}
    orders = (
        sorted(shares, key=lambda name: (shares[name], n_pods[name], place_of[name])),
        sorted(shares, key=lambda name: (-cost_of[name], shares[name], place_of[name])),
        sorted(shares, key=lambda name: (n_pods[name], -cost_of[name], place_of[name])),
    )
    bound = _most_saved(fork, nodes, cost_of, report)
    n_orders = 0
    for number, order in enumerate(orders):
        what = f"order {number + 1} of {len(orders)}"
        found = _go_through(fork, order, cost_of, MOST_DECISIONS - spent, report, what)
        spent += found.n_decisions
        n_orders += 1
        if best is None or found.saved > best.saved + 1e-9:
            best = found
        if best.saved >= bound - 1e-9 or spent >= MOST_DECISIONS:
            break
    assert best is not None
    best.has_prices, best.bound, best.n_decisions = has_prices, max(bound, best.saved), spent
    best.n_orders, best.of_orders = n_orders, len(orders)
    return best


def _go_through(
    fork: Fork,
    order: Sequence[str],
    cost_of: Mapping[str, float],
    most_decisions: int,
    report: Report,
    what: str,
) -> Fewer:
    found = Fewer(len(order), cost_of=dict(cost_of))
    with fork.changes():
        for done, name in enumerate(order):
            report(done, len(order), f"{what}: {len(found.steps):,} nodes can go so far")
            if found.n_decisions >= most_decisions:
                found.untried = len(order) - done
                break
            node = fork.cache.node(name)
            if node is not None and is_control_plane(node):
                found.kept[name] = "It is of the control plane."
                continue
            mark = fork.mark()
            step = take_away.take_away(fork, take_away.REMOVAL, (name,), until_harm=True)
            found.n_decisions += step.n_decisions
            if step.is_harmless:
                found.steps.append(step)
                continue
            fork.back_to(mark)
            found.kept[name] = blocker(step)
    return found


def blocker(step: take_away.TakenAway) -> str:
    """Why a node stays, in one sentence: the first pod that hinders, and what hinders it."""
    for outcome in (take_away.BLOCKED, take_away.LOST, take_away.PENDING):
        first = next((item for item in step.of(outcome) if not item.because and not item.once_deleted), None)
        if first is not None and outcome == take_away.LOST:
            return f"{first.pod} {take_away.lost_words(1)}."
        if first is not None:
            verb = "cannot be evicted" if outcome == take_away.BLOCKED else "finds no other node"
            return f"{first.pod} {verb}: {first.reason}"
    first = step.preempted[0]
    return f"{first.because} would preempt {first.pod}."


def _movable(fork: Fork, name: str) -> list[Pod]:
    """Pods of a node that would have to find another one."""
    cache = fork.cache
    pods = (cache.pods[pod_id] for pod_id in cache.nodes.pods_on(cache.nodes.row_of[name]))
    return [pod for pod in pods if owner_kind(pod) not in take_away.OF_THE_NODE and not pod.is_terminating]


def _most_saved(fork: Fork, nodes: Sequence[Node], cost_of: Mapping[str, float], report: Report) -> float:
    """No choice of nodes that go saves more: the rest must hold all pods, whatever the order.

    Nodes whose pods can never leave stay: those of pods without an owner, and of pods that two budgets cover.
    """
    budgets = list(fork.cache.listers.all("PodDisruptionBudget"))
    movable = {node.name: _movable(fork, node.name) for node in nodes}
    never = take_away.EvictionBudgets(budgets)
    stays = {
        node.name: is_control_plane(node)
        or any(not owner_kind(pod) or never.covering(pod) > 1 for pod in movable[node.name])
        for node in nodes
    }
    with fork.changes():
        classes = classes_of([fork.anew(pod) for pods in movable.values() for pod in pods])
        for done, pods in enumerate(movable.values()):
            if done % REPORT_EVERY == 0:
                report(0, 0, "bounding what can be saved: emptying nodes")
            for pod in pods:
                fork.remove_pod(pod)
        row_of = fork.cache.nodes.row_of
        rows = np.array([row_of[node.name] for node in nodes], np.intp)
        takes = np.zeros((len(nodes), len(classes)), np.bool_)
        for index, alike in enumerate(classes):
            if index % REPORT_EVERY == 0:
                report(0, 0, f"bounding what can be saved: {index:,} of {len(classes):,} kinds of pods")
            relaxed = pod_from(without_rules(alike[0].manifest))
            takes[:, index] = np.isin(rows, fork.attempt(relaxed).feasible)
        # A cordoned node keeps what it has: its own pods count as fitting there.
        class_of = {pod.uid: index for index, alike in enumerate(classes) for pod in alike}
        for place, node in enumerate(nodes):
            takes[place, [class_of[pod.uid] for pod in movable[node.name]]] = True
        resources = sorted({name for alike in classes for name in (*alike[0].requests, PODS)})
        free = [{name: fork.free(name, row) for name in resources} for row in rows.tolist()]
    report(0, 0, "bounding what can be saved: solving")
    numbers = [len(alike) for alike in classes]
    requests = [{**alike[0].requests, PODS: 1} for alike in classes]
    together = int(takes.sum()) > MOST_COLUMNS
    if together:
        takes, numbers, requests = _merged(takes, numbers, requests)
    groups: dict[tuple[float, bytes, tuple[int, ...]], list[int]] = {}
    for place, node in enumerate(nodes):
        key = (cost_of[node.name], takes[place].tobytes(), tuple(free[place].values()))
        groups.setdefault(key, []).append(place)
    bins = [
        Bin(
            cost,
            sum(stays[nodes[place].name] for place in places),
            len(places),
            free[places[0]],
            {index: numbers[index] for index in np.flatnonzero(takes[places[0]]).tolist()},
        )
        for (cost, _, _), places in groups.items()
    ]
    demands = [Demand(number, asked) for number, asked in zip(numbers, requests, strict=True)]
    solved = least_cost(bins, demands, together=together)
    return max(sum(cost_of.values()) - solved.cost, 0.0)


def _merged(
    takes: NDArray[np.bool_], numbers: Sequence[int], requests: Sequence[Mapping[str, int]]
) -> tuple[NDArray[np.bool_], list[int], list[dict[str, int]]]:
    """Classes that ask for the same amounts on the same nodes as one: nothing else of them counts in the bound."""
    alike: dict[tuple[bytes, tuple[tuple[str, int], ...]], list[int]] = {}
    for index, asked in enumerate(requests):
        alike.setdefault((takes[:, index].tobytes(), tuple(sorted(asked.items()))), []).append(index)
    firsts = [members[0] for members in alike.values()]
    return (
        np.ascontiguousarray(takes[:, firsts]),
        [sum(numbers[index] for index in members) for members in alike.values()],
        [dict(requests[index]) for index in firsts],
    )


def replay_steps(fork: Fork, found: Fewer, report: Report = silent) -> bool:
    """Whether the same drains in the same order are harmless again, each pod wherever it lands this time."""
    with fork.changes():
        for done, step in enumerate(found.steps):
            report(done, len(found.steps), "the same drains with another seed")
            if not take_away.take_away(fork, take_away.REMOVAL, step.nodes, until_harm=True).is_harmless:
                return False
    return True
