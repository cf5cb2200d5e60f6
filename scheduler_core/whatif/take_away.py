"""What becomes of the pods when nodes go: a drain, a removal, a loss, and the loss of any one node.

Pods are followed through their owners: a controller makes a pod anew, and the scheduler finds it a node or says why
not, by preemption too, whose victims are followed in turn. A drain cordons first and evicts what the budgets allow; a
pod that found its new node gives its budget back. A loss asks no budget.

A drained node is still a domain of spread and anti-affinity, until it is deleted: pods that only this keeps off are
decided once more without it. A removal is a drain with that deletion done.

What is left out: time (grace periods, how long a pod takes to be ready), Permit and PreBind, cluster autoscalers, and
pods that were pending before, which may take the room first. `drain_in_time` runs a drain on a restored cluster as
time goes by: evictions are tried again until budgets allow them, pods end in their grace, owners make others.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from scheduler_core.clock import SECOND_NS
from scheduler_core.errors import InvalidObject
from scheduler_core.extender.transport import Transport, no_transport
from scheduler_core.fork import Fork, PlacedPod, Report, silent
from scheduler_core.objects.node import Node, node_from
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.policy import PodDisruptionBudget
from scheduler_core.records import Documented
from scheduler_core.sim.changes import DeleteObject, WriteObject
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif.fixes import counted, first_of, owner_words
from scheduler_core.whatif.workloads import alive_pods, in_listed_order, owner_kind

OUTCOMES = ("lands", "pending", "blocked", "lost", "with-node", "ending")
LANDS, PENDING, BLOCKED, LOST, WITH_NODE, ENDING = OUTCOMES
"""It finds another node; it finds none; a budget holds it back; it has no owner that would recreate it; it belongs
to its node (DaemonSet, static pod); it was being deleted before."""

DRAIN, REMOVAL, LOSS, EVICTION = "drain", "removal", "loss", "eviction"

OF_THE_NODE = ("DaemonSet", "Node")
"""Owners whose pods go with their node."""


def lost_words(number: int) -> str:
    """Why so many pods are lost, as the end of a sentence."""
    return "has no owner that recreates it" if number == 1 else "have no owner that recreates them"


class UnknownNodes(ValueError):
    """Nodes were named that are not there."""


@dataclass(frozen=True, slots=True)
class Followed(Documented):
    """One pod that had to leave its node.

    Attributes
    ----------
    pod : str
        `namespace/name`.
    owner : str
        `Kind name` of its controller, empty without one.
    origin : str
        The node it was on.
    outcome : str
        One of `OUTCOMES`.
    node : str or None
        Where it landed.
    reason : str
        The scheduler's message for `pending`, the budget for `blocked`.
    because : str
        The pod that preempted it; empty when its node went.
    once_deleted : str
        Where it lands once the drained nodes are deleted, of a pod that is `pending` or `blocked` until then.
    """

    pod: str
    owner: str
    origin: str
    outcome: str
    node: str | None = None
    reason: str = ""
    because: str = ""
    once_deleted: str = ""

    @property
    def goes_to(self) -> str | None:
        """Where it lands in the end."""
        return self.node or self.once_deleted or None

    def document(self) -> dict[str, Any]:
        """JSON-able."""
        found = Documented.document(self)
        found["from"] = found.pop("origin")
        found["onceDeleted"] = self.once_deleted or None
        found["to"] = f"{self.once_deleted} once deleted" if self.once_deleted else self.node or self.outcome
        return found


@dataclass(slots=True)
class TakenAway:
    """The answer for a set of nodes.

    Attributes
    ----------
    how : str
        `DRAIN`, `REMOVAL`, `LOSS` or `EVICTION`, whose nodes stay.
    nodes : tuple of str
    pods : list of Followed
        In the order in which they left.
    n_decisions : int
        Scheduling cycles that were run.
    cpu_after : dict of str to int
        Requested cpu in percent of each node that took a pod, afterwards.
    """

    how: str
    nodes: tuple[str, ...]
    pods: list[Followed] = field(default_factory=list)
    n_decisions: int = 0
    cpu_after: dict[str, int] = field(default_factory=dict)

    def count(self, outcome: str) -> int:
        return sum(item.outcome == outcome for item in self.pods)

    def of(self, outcome: str) -> list[Followed]:
        return [item for item in self.pods if item.outcome == outcome]

    @property
    def preempted(self) -> list[Followed]:
        """Pods that had to make room."""
        return [item for item in self.pods if item.because]

    @property
    def own(self) -> list[Followed]:
        """The pods of the nodes, each once, with what became of it last."""
        return self._fates()[0]

    @property
    def elsewhere(self) -> list[Followed]:
        """Pods of other nodes that were evicted for them, each once, with what became of it last."""
        return self._fates()[1]

    def _fates(self) -> tuple[list[Followed], list[Followed]]:
        gone = set(self.nodes)
        own: dict[str, Followed] = {}
        elsewhere: dict[str, Followed] = {}
        for item in self.pods:
            is_own = not item.because or item.origin in gone or item.pod in own
            (own if is_own else elsewhere)[item.pod] = item
        return list(own.values()), list(elsewhere.values())

    @property
    def is_harmless(self) -> bool:
        """Whether every pod that is made again finds a node, nothing is held back, lost or preempted.

        Of a removal a pod may wait for its node until the drained ones are deleted.
        """
        waits = self.how == REMOVAL
        return not self.preempted and all(
            item.outcome in (LANDS, WITH_NODE, ENDING) or (waits and item.once_deleted) for item in self.pods
        )


def lose_any(fork: Fork, *, report: Report = silent) -> Iterator[TakenAway]:
    """The loss of each node alone, in evaluation order."""
    names = fork.nodes_in_order()
    for done, name in enumerate(names):
        report(done, len(names), f"without {name}")
        yield taken_away(fork, LOSS, (name,))


def lose_each(fork: Fork, label: str, *, report: Report = silent) -> Iterator[tuple[str, TakenAway]]:
    """The loss of all nodes of one value of a label, for each of its values in order: zones, racks, pools."""
    values = sorted({node.meta.labels[label] for node in fork.nodes() if label in node.meta.labels})
    for done, value in enumerate(values):
        report(done, len(values), f"without {value}")
        yield value, taken_away(fork, LOSS, nodes_with(fork, label, value))


def taken_away(fork: Fork, how: str, nodes: Sequence[str]) -> TakenAway:
    """Have the nodes' pods leave and follow them, on a copy that is the same afterwards.

    Raises
    ------
    UnknownNodes
    """
    unknown = [name for name in dict.fromkeys(nodes) if fork.cache.node(name) is None]
    if unknown:
        raise UnknownNodes(f"there is no node {', '.join(unknown)}")
    with fork.changes():
        result = take_away(fork, how, nodes)
        takers = dict.fromkeys(item.node for item in result.pods if item.node is not None)
        rows = fork.cache.nodes.row_of
        result.cpu_after = {name: fork.cpu_share(name) for name in takers if name in rows}
    return result


def take_away(fork: Fork, how: str, nodes: Sequence[str], *, until_harm: bool = False) -> TakenAway:
    """The same, left done on the fork until the caller takes it back.

    With `until_harm` it ends at the first pod that is blocked, lost, left without a node, or preempts: the answer is
    then that pod, and not all of them.
    """
    result = TakenAway(how, tuple(dict.fromkeys(nodes)))
    following = _Following(fork, result, until_harm=until_harm)
    if how == LOSS:
        following.lose(result.nodes)
    else:
        following.drain(result.nodes)
    return result


def evicted(fork: Fork, pods: Sequence[Pod]) -> TakenAway:
    """Have pods leave nodes that stay, and follow them; left done on the fork until the caller takes it back."""
    result = TakenAway(EVICTION, ())
    _Following(fork, result).evict(pods)
    return result


def nodes_with(fork: Fork, key: str, value: str) -> tuple[str, ...]:
    """Nodes that carry a label, in evaluation order: a zone, a rack, a pool."""
    return tuple(node.name for node in fork.nodes() if node.meta.labels.get(key) == value)


def named_nodes(fork: Fork, names: Sequence[str], label: str) -> list[str]:
    """Nodes by name, and those that carry a label, ``KEY=VALUE``.

    Raises
    ------
    InvalidObject
        No node carries the label.
    """
    nodes = list(names)
    if label:
        key, _, value = label.partition("=")
        found = nodes_with(fork, key, value)
        if not found:
            raise InvalidObject("label", label, "is on no node")
        nodes += [name for name in found if name not in nodes]
    return nodes


def nodes_without(fork: Fork, key: str) -> tuple[str, ...]:
    """Nodes that do not carry a label, in evaluation order: they are in no zone, no rack, no pool."""
    return tuple(node.name for node in fork.nodes() if key not in node.meta.labels)


class _Following:
    """Follows the pods of one question."""

    def __init__(self, fork: Fork, result: TakenAway, *, until_harm: bool = False) -> None:
        self.fork = fork
        self.result = result
        self.until_harm = until_harm
        self._to_place: list[tuple[int, int, Pod]] = []
        """(minus priority, place in `result.pods`, pod)"""
        self._pending: dict[int, Pod] = {}
        """By place in `result.pods` those that found no node, or whose budget is held by such a pod."""
        self.is_harmed = False

    # ---- leaving

    def lose(self, nodes: Sequence[str]) -> None:
        pods = [(pod, name) for name in nodes for pod in in_listed_order(self.fork.pods_on(name))]
        self.fork.remove_nodes(nodes)
        for pod, name in pods:
            self._left(pod, name)
        self._place_all()

    def evict(self, pods: Sequence[Pod]) -> None:
        for pod in pods:
            self.fork.remove_pod(pod)
            self._left(pod, pod.node_name)
        self._place_all()

    def drain(self, nodes: Sequence[str]) -> None:
        fork = self.fork
        named = (fork.cache.node(name) for name in nodes)
        fork.set_nodes([cordoned(node) for node in named if node is not None])
        waiting: list[tuple[Pod, str]] = []
        for name in nodes:
            for pod in in_listed_order(fork.pods_on(name)):
                if pod.is_terminating or owner_kind(pod) in OF_THE_NODE:
                    self._tell(pod, name, ENDING if pod.is_terminating else WITH_NODE)
                else:
                    waiting.append((pod, name))
        budgets = EvictionBudgets(fork.cache.listers.all("PodDisruptionBudget"))
        if self.until_harm and self._is_refused(waiting, budgets):
            return
        while waiting:
            held: list[tuple[Pod, str]] = []
            for pod, name in waiting:
                if fork.cache.pod(pod.uid) is None:
                    continue  # A preemption took it meanwhile.
                if budgets.refusal(pod):
                    held.append((pod, name))
                    continue
                budgets.take(pod)
                fork.remove_pod(pod)
                self._left(pod, name)
            landed = self._place_all()
            if self.is_harmed:
                return
            for pod in landed:
                budgets.give_back(pod)
            if len(held) == len(waiting):
                break
            waiting = held
        for pod, name in waiting:
            if fork.cache.pod(pod.uid) is not None:
                if budgets.allowed_first(pod):
                    self._pending[len(self.result.pods)] = self.fork.anew(pod)
                self._tell(pod, name, BLOCKED, reason=budgets.refusal(pod))
        self._delete(nodes)

    def _delete(self, nodes: Sequence[str]) -> None:
        """Decide once more, with the nodes deleted, about the pods that wait; only a removal leaves it so.

        A pod that its budget holds is decided too where the budget allowed it before others that wait took it.
        """
        fork, mark = self.fork, self.fork.mark()
        is_removal = self.result.how == REMOVAL
        if not self._pending and not is_removal:
            return
        fork.remove_nodes(nodes)
        for place, pod in sorted(self._pending.items(), key=lambda item: (-item[1].priority, item[0])):
            self.result.n_decisions += 1
            node = fork.place(pod, preempt=False).node
            if node is not None:
                self.result.pods[place] = replace(self.result.pods[place], once_deleted=node)
            elif self.until_harm:
                break
        if not is_removal:
            fork.back_to(mark)

    def _is_refused(self, pods: Sequence[tuple[Pod, str]], budgets: EvictionBudgets) -> bool:
        """Tell the first pod that no landing of others could help: a budget gets back no more than it gave."""
        for pod, name in pods:
            if why := budgets.refusal(pod):
                self._tell(pod, name, BLOCKED, reason=why)
                return True
            if not owner_kind(pod):
                self._tell(pod, name, LOST)
                return True
        return False

    def _lands_without(self, pod: Pod, placed: PlacedPod) -> bool:
        """Whether a pod that found no node would find one if the drained nodes were deleted."""
        if not placed.by_others:
            return False
        mark = self.fork.mark()
        self.fork.remove_nodes(self.result.nodes)
        self.result.n_decisions += 1
        found = self.fork.place(pod, preempt=False).node
        self.fork.back_to(mark)
        return found is not None

    def _forget_undecided(self) -> None:
        """Drop pods that were on their way; victims stay, for their preemption is the harm."""
        undecided = {place for _, place, _ in self._to_place}
        self._to_place.clear()
        self.result.pods = [
            item for place, item in enumerate(self.result.pods) if place not in undecided or item.because
        ]

    def _left(self, pod: Pod, origin: str, because: str = "") -> None:
        """A pod is off its node: say what comes of it, or have it placed."""
        kind = owner_kind(pod)
        if pod.is_terminating:
            self._tell(pod, origin, ENDING, because=because)
        elif kind in OF_THE_NODE and self.result.nodes and not because:
            self._tell(pod, origin, WITH_NODE)
        elif not kind:
            self._tell(pod, origin, LOST, because=because)
        else:
            self._tell(pod, origin, PENDING, because=because)
            made = self.fork.anew(pod)
            heapq.heappush(self._to_place, (-pod.priority, len(self.result.pods) - 1, made))

    def _tell(self, pod: Pod, origin: str, outcome: str, *, reason: str = "", because: str = "") -> None:
        self.result.pods.append(Followed(pod.key, owner_words(pod), origin, outcome, None, reason, because))

    # ---- landing

    def _place_all(self) -> list[Pod]:
        """Find places in the order of priority, then of leaving; pods that landed."""
        landed: list[Pod] = []
        fork = self.fork
        while self._to_place:
            _, place, pod = heapq.heappop(self._to_place)
            told = self.result.pods[place]
            if pod.scheduler_name not in fork.scheduler.profiles:
                said = f"it waits for the scheduler {pod.scheduler_name}, which is not here"
                self.result.pods[place] = replace(told, reason=said)
                continue
            placed = fork.place(pod)
            self.result.n_decisions += 1 + bool(placed.victims)
            outcome = PENDING if placed.node is None else LANDS
            self.result.pods[place] = replace(told, outcome=outcome, node=placed.node, reason=placed.message)
            if placed.node is not None:
                landed.append(pod)
            elif placed.by_others:
                self._pending[place] = pod
            for victim, origin in placed.victims:
                self._left(victim, origin, because=pod.key)
            if self.until_harm and (placed.victims or not (placed.node or self._lands_without(pod, placed))):
                self.is_harmed = True
                self._forget_undecided()
        return landed


class EvictionBudgets:
    """What each PodDisruptionBudget still allows, as the eviction API counts it."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self._budgets = list(budgets)
        self._first = [budget.disruptions_allowed for budget in self._budgets]
        self._allowed = list(self._first)

    def _of(self, pod: Pod) -> list[int]:
        return [
            index
            for index, budget in enumerate(self._budgets)
            if budget.meta.namespace == pod.namespace and budget.selector.matches(pod.labels)
        ]

    def covering(self, pod: Pod) -> int:
        """How many budgets the pod has."""
        return len(self._of(pod))

    def refusal(self, pod: Pod) -> str:
        """Why the pod may not be evicted now; empty when it may."""
        found = self._of(pod)
        if len(found) > 1:
            return "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        for index in found:
            if self._allowed[index] <= 0:
                name = self._budgets[index].meta.name
                return (
                    "Cannot evict pod as it would violate the pod's disruption budget."
                    f" The disruption budget {name} allows no disruption now."
                )
        return ""

    def allowed_first(self, pod: Pod) -> bool:
        """Whether it might have been evicted before any other was."""
        found = self._of(pod)
        return len(found) < 2 and all(self._first[index] > 0 for index in found)

    def holding(self, pod: Pod) -> tuple[str, ...]:
        """Budgets by which the pod may not be evicted now, `namespace/name`."""
        found = self._of(pod)
        return tuple(
            f"{pod.namespace}/{self._budgets[index].meta.name}"
            for index in found
            if len(found) > 1 or self._allowed[index] <= 0
        )

    def take(self, pod: Pod) -> None:
        for index in self._of(pod):
            self._allowed[index] -= 1

    def give_back(self, pod: Pod) -> None:
        for index in self._of(pod):
            self._allowed[index] += 1


def held_up(fork: Fork) -> dict[str, list[str]]:
    """Budget -> nodes with a pod whose eviction it refuses now, in evaluation order: a drain waits there."""
    cache = fork.cache
    budgets = EvictionBudgets(cache.listers.all("PodDisruptionBudget"))
    found: dict[str, set[str]] = {}
    for pod in cache.pods_in_order():
        if pod.is_terminating or owner_kind(pod) in OF_THE_NODE:
            continue
        for budget in budgets.holding(pod):
            found.setdefault(budget, set()).add(cache.node_name_of(pod.uid) or "")
    order = fork.nodes_in_order()
    return {budget: [name for name in order if name in found[budget]] for budget in sorted(found)}


def cordoned(node: Node) -> Node:
    """The node as `kubectl cordon` leaves it."""
    spec: Mapping[str, Any] = {**(node.manifest.get("spec") or {}), "unschedulable": True}
    return node_from({**node.manifest, "spec": spec})


# ---- as time goes by

RETRY_NS = 5 * SECOND_NS
"""How long `kubectl drain` waits before it asks for a refused eviction again (pkg/drain/drain.go)."""


@dataclass(slots=True)
class DrainedInTime:
    """What came of it.

    Attributes
    ----------
    took_ns : int
        Virtual time until the nodes were empty and every pod that was made anew had its node; the limit if not.
    left : list of str
        Pods still on the nodes then, `namespace/name`.
    refused : dict of str to str
        Of these, why the last eviction was refused.
    waiting : list of str
        Pods that were made meanwhile and have no node.
    """

    took_ns: int
    left: list[str]
    refused: dict[str, str]
    waiting: list[str]


def drain_in_time(
    original: Simulation, nodes: Sequence[str], limit_ns: int, *, transport: Transport = no_transport
) -> DrainedInTime:
    """Drain nodes as `kubectl drain --ignore-daemonsets --force` does, for at most so long.

    Parameters
    ----------
    original : Simulation
        Read, never changed.
    limit_ns : int
        Virtual time there is.

    Raises
    ------
    KeyError
        A node is not there.
    """
    simulation = original.acting(transport=transport)
    world = simulation.world
    waited_before = {pod.uid for pod in alive_pods(simulation) if not pod.node_name}
    for name in nodes:
        node: Node | None = world.node(name)
        if node is None:
            raise KeyError(f"there is no node {name}")
        simulation.submit(WriteObject(dict(cordoned(node).manifest)))
    began_ns = simulation.now_ns
    while True:
        refused: dict[str, str] = {}
        left = _to_leave(simulation, nodes)
        for pod in left:
            if pod.is_terminating:
                continue
            # Read for each: an eviction takes from the budget that the next one asks.
            why = EvictionBudgets(stored.typed for stored in world.all("PodDisruptionBudget")).refusal(pod)
            if why:
                refused[pod.key] = why
                continue
            simulation.submit(DeleteObject("Pod", pod.namespace, pod.name, None))
            simulation.advance(0)
        took_ns = simulation.now_ns - began_ns
        left = _to_leave(simulation, nodes)
        waiting = [
            pod.key for pod in alive_pods(simulation) if not pod.node_name and pod.uid not in waited_before
        ]
        if (not left and not waiting) or took_ns >= limit_ns:
            return DrainedInTime(took_ns, [pod.key for pod in left], refused, waiting)
        deadline = simulation.next_deadline()
        if deadline is None or deadline.at_ns - began_ns > limit_ns:
            return DrainedInTime(limit_ns, [pod.key for pod in left], refused, waiting)
        until_ns = max(simulation.now_ns + RETRY_NS, deadline.at_ns)
        simulation.advance(min(until_ns - simulation.now_ns, limit_ns - took_ns))


def _to_leave(simulation: Simulation, nodes: Sequence[str]) -> list[Pod]:
    gone = set(nodes)
    return [
        pod for pod in alive_pods(simulation) if pod.node_name in gone and owner_kind(pod) not in OF_THE_NODE
    ]


# ---- sentences


def taken_away_verdict(answer: TakenAway) -> str:
    """One sentence: how many of the nodes' pods find another node, and what that costs pods of other nodes."""
    own, elsewhere = answer.own, answer.elsewhere
    lands, pending, blocked, lost = (
        [item for item in own if item.outcome == outcome] for outcome in (LANDS, PENDING, BLOCKED, LOST)
    )
    parts = []
    if lands or pending:
        n_leave = sum(map(len, (lands, pending, blocked, lost)))
        parts.append(_found_words(n_leave, len(lands), pending, len(answer.nodes)))
    if blocked:
        parts.append(f"{names_of(blocked)} {held_words(len(blocked))}")
    if lost:
        parts.append(f"{names_of(lost)} {lost_words(len(lost))}")
    if elsewhere:
        parts.append(
            f"{counted(len(elsewhere), 'pod')} elsewhere {'is' if len(elsewhere) == 1 else 'are'} evicted for them"
        )
        without = [item for item in elsewhere if item.outcome == PENDING]
        gone = [item for item in elsewhere if item.outcome == LOST]
        if without:
            parts[-1] += f", {len(without):,} of which {finds(len(without))} no other node"
        if gone:
            parts[-1] += f", {len(gone):,} of which {lost_words(len(gone))}"
    if not parts:
        parts.append("No pod has to move")
    return f"{'; '.join(parts)}."


def _found_words(n_leave: int, n_lands: int, pending: Sequence[Followed], n_nodes: int) -> str:
    whose = "its" if n_nodes == 1 else "their"
    later = sum(bool(item.once_deleted) for item in pending)
    until = f" {until_deleted(n_nodes)}" if later and later == len(pending) else ""
    if n_leave == 1:
        one = f"{whose.title()} one pod"
        return (
            f"{one}, {pending[0].pod}, finds no other node{until}" if pending else f"{one} finds another node"
        )
    if n_lands == n_leave:
        return f"All {n_leave:,} of {whose} pods find another node"
    found = f"{n_lands:,} of {whose} {n_leave:,} pods {finds(n_lands)} another node"
    some = f" ({later:,} only {until_deleted(n_nodes)})" if later and not until else ""
    return f"{found}, {len(pending):,} {finds(len(pending))} none{until}{some}" if pending else found


def until_deleted(n_nodes: int) -> str:
    """How long a pod waits that the drained nodes keep off, for being domains still."""
    return "until the node is deleted" if n_nodes == 1 else "until the nodes are deleted"


def held_words(number: int) -> str:
    return "is held up by a budget" if number == 1 else "are held up by a budget"


def finds(number: int) -> str:
    return "finds" if number == 1 else "find"


def without_label(label: str, nodes: Sequence[str], total: int) -> str:
    """One sentence for nodes that no loss of a label's value takes away; empty if there are none.

    Examples
    --------
    >>> without_label("rack", ["a"], 3)
    '1 of 3 nodes carries no rack, so no loss takes it away: a.'
    >>> without_label("rack", ["a", "b", "c", "d"], 9)
    '4 of 9 nodes carry no rack, so no loss takes them away: a, b, c and 1 more.'
    """
    if not nodes:
        return ""
    verb, them = ("carry", "them") if len(nodes) > 1 else ("carries", "it")
    named = first_of(nodes)
    return f"{len(nodes):,} of {total:,} nodes {verb} no {label}, so no loss takes {them} away: {named}."


def names_of(pods: Sequence[Followed]) -> str:
    """The first few, and how many more."""
    return first_of([item.pod for item in pods])
