"""What an edit is, what it costs, what was found of edits, and what becomes of pods that an edit takes off nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from scheduler_core.objects.kinds import KINDS
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, amount_text
from scheduler_core.records import Documented
from scheduler_core.whatif.fork import Fork, homeless

TRUE, CHANGES, LAST_RESORT = 0, 1, 2
"""Whether an edit keeps what the pod's owner meant, changes it, or goes against what a cluster says of its nodes: the
last is never the first that is recommended."""

POD, NODES, OTHERS = "pod", "nodes", "others"
"""Whom an edit is about: the pod itself, nodes, or other pods and objects."""

COST_POD, COST_QUEUE, COST_RESTART, COST_LOSS, COST_NODE = 1, 2, 3, 4, 5
"""Less of the pod itself; a pod back to the queue, or a node back in use; a restart; a pod lost; a new node."""


@dataclass(frozen=True, slots=True)
class EditKind:
    """What edits of a kind have in common, where an edit does not say otherwise: see `Edit`."""

    about: str
    cost: int
    price: str = ""
    size: float = 0.0
    standing: int = CHANGES


EDIT_KINDS: Mapping[str, EditKind] = {
    "create-claim": EditKind(OTHERS, COST_POD),
    "honor-policy": EditKind(POD, COST_POD, "nothing", 0.05, TRUE),
    "lower-request": EditKind(POD, COST_POD),
    "tolerate": EditKind(POD, COST_POD, "allowed on tainted nodes", 0.5),
    "relax-spread": EditKind(POD, COST_POD),
    "drop-spread": EditKind(POD, COST_POD, "1 constraint", 0.7),
    "drop-selector": EditKind(POD, COST_POD, "1 selector", 0.6),
    "drop-requirement": EditKind(POD, COST_POD, "1 requirement", 0.6),
    "drop-anti-affinity-term": EditKind(POD, COST_POD, "1 rule", 0.7),
    "drop-affinity-term": EditKind(POD, COST_POD, "1 rule", 0.7),
    "drop-node-affinity": EditKind(POD, COST_POD, "all its node affinity", 0.8),
    "drop-host-port": EditKind(POD, COST_POD, "1 host port", 0.65),
    "raise-priority": EditKind(POD, COST_QUEUE, "others give way", 0.5),
    "pair": EditKind(POD, COST_POD),
    "uncordon": EditKind(NODES, COST_QUEUE, "1 node back in use", 0.1),
    "label-node": EditKind(NODES, COST_QUEUE),
    "move-pod": EditKind(OTHERS, COST_RESTART, "1 pod made again by hand"),
    "delete-pod": EditKind(OTHERS, COST_POD),
    "free-room": EditKind(OTHERS, COST_POD),
    "add-node": EditKind(NODES, COST_NODE, "1 node more"),
    "add-labelled-node": EditKind(NODES, COST_NODE, "1 node more"),
    "add-larger-node": EditKind(NODES, COST_NODE, "1 larger node more"),
    "add-zone": EditKind(NODES, COST_NODE, "1 node in a new place"),
}
"""In the order in which edits of equal cost and size are listed."""


@dataclass(frozen=True, slots=True)
class Edit(Documented):
    """One change to the pod or to the cluster; made by `edit`.

    Attributes
    ----------
    kind : str
        A key of `EDIT_KINDS`.
    title, note : str
        For a person.
    removed, added : tuple of str
        Lines of a manifest that go and that come.
    cost : int
        From 1 (less of the pod itself) to 5 (a new node).
    price : str
        What the cost is, in words.
    size : float
        Of two edits of equal cost the smaller one comes first.
    change : mapping
        What to do, JSON-able: `{"write": manifest}` or a list of them, `{"delete": ["ns/name", ...]}`,
        `{"reject": [...]}` (at Permit), or `{"move": ["ns/name", node]}`.
    disruption : int
        What it does to pods that run: 0 nothing, 1 a nomination is lost, 2 restarts, 3 pods are lost.
    standing : int
        `TRUE`, `CHANGES` or `LAST_RESORT`.
    """

    kind: str
    title: str
    note: str
    removed: tuple[str, ...]
    added: tuple[str, ...]
    cost: int
    price: str
    size: float
    change: Mapping[str, Any]
    disruption: int
    standing: int

    SHOWN = ("about", "last_resort")

    @property
    def about(self) -> str:
        """`POD`, `NODES` or `OTHERS`."""
        return EDIT_KINDS[self.kind].about

    @property
    def last_resort(self) -> bool:
        return self.standing == LAST_RESORT

    @property
    def rank(self) -> tuple[Any, ...]:
        """Sorts edits: true ones first, then those that leave others in peace, then the cheapest, then the smallest."""
        place = list(EDIT_KINDS).index(self.kind)
        return self.standing, self.disruption, self.cost, self.size, place, self.title


def edit(
    kind: str,
    title: str,
    change: Mapping[str, Any],
    *,
    note: str = "",
    removed: Sequence[str] = (),
    added: Sequence[str] = (),
    cost: int | None = None,
    price: str | None = None,
    size: float | None = None,
    disruption: int = 0,
    standing: int | None = None,
) -> Edit:
    """An edit; what is not given is its kind's."""
    usual = EDIT_KINDS[kind]
    return Edit(
        kind,
        title,
        note,
        tuple(removed),
        tuple(added),
        usual.cost if cost is None else cost,
        usual.price if price is None else price,
        usual.size if size is None else size,
        change,
        disruption,
        usual.standing if standing is None else standing,
    )


@dataclass(frozen=True, slots=True)
class Displaced(Documented):
    """One pod that has to go.

    Attributes
    ----------
    pod : str
        `namespace/name`.
    owner : str
        `ReplicaSet web`, by its reference; empty where nothing brings the pod back.
    owner_is_there : bool or None
        Whether the owner is among the objects; None for kinds a scheduler does not read.
    node : str or None
        Where the pod that comes in its place lands, once the pending one has its own.
    message : str
        Why it lands nowhere.
    """

    pod: str
    owner: str
    owner_is_there: bool | None
    node: str | None
    message: str


@dataclass(frozen=True, slots=True)
class ProvenEdit(Documented):
    """An edit after which a cycle, run again, placed the pod.

    Attributes
    ----------
    node : str
        Where the pod goes.
    outcome : str
        `bound`, or `preempting`: it is nominated there and waits for its victims to go.
    n_feasible : int
        Nodes that pass; 0 when preempting.
    feasible : tuple of str
        The first of them in evaluation order.
    victims : tuple of str
        `namespace/name`, when preempting.
    displaced : tuple of Displaced
        What becomes of the pods that have to go.
    placed, of : int
        Of the pending pods of its workload, how many find a node once the edit is made of all; 0 where that was not
        tried, and how many there are.
    """

    edit: Edit
    node: str
    outcome: str
    n_feasible: int
    feasible: tuple[str, ...]
    victims: tuple[str, ...] = ()
    displaced: tuple[Displaced, ...] = ()
    placed: int = 0
    of: int = 1

    @property
    def rank(self) -> tuple[Any, ...]:
        """Sorts what was found: the edit's own rank, but of those that harm none the ones that place most first."""
        edit = self.edit
        return edit.standing, edit.disruption, edit.cost >= COST_NODE, -self.placed, *edit.rank

    @property
    def is_harmless(self) -> bool:
        """Whether it leaves the pods that run in peace, buys nothing and is no last resort."""
        edit = self.edit
        if edit.last_resort:
            return False
        return not edit.disruption and edit.cost < COST_NODE and edit.about in (POD, NODES)

    def document(self) -> dict[str, Any]:
        """JSON-able, the edit's own fields beside the proof's."""
        own = Documented.document(self)
        found = {**own.pop("edit"), **own}
        del found["standing"]
        return found


@dataclass(frozen=True, slots=True)
class FailedEdit(Documented):
    """An edit that was tried and does not place the pod; `message` is what the cycle says then."""

    kind: str
    title: str
    message: str


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """How far the search goes.

    Attributes
    ----------
    per_kind : int or None
        So many edits of each kind that are about one node or one pod (uncordon, delete, move, free room, add) are
        proven, the cheapest first; None proves all.
    exhaustive_pods : int
        Up to so many pods every single one's going is tried by a whole cycle. Above, all are tried in lock-step for
        their own node, and those that matter elsewhere by whole cycles.
    elsewhere : int
        How many of the latter.
    failed_per_kind : int
        How many edits of a kind that do not help are listed.
    others : bool
        Whether pods that run are asked to go; without, what is left are edits of the pod and of nodes.
    alike : int
        Decisions that proving the edits for all pods of the workload may cost.
    """

    per_kind: int | None = 6
    exhaustive_pods: int = 150
    elsewhere: int = 60
    failed_per_kind: int = 3
    others: bool = True
    alike: int = 400


@dataclass(slots=True)
class Advice(Documented):
    """The edits after which a pod would fit.

    Attributes
    ----------
    pod : str
        `namespace/name`.
    outcome : str
        What the cycle decides as things are: `bound` (the pod fits, there is nothing to edit), `preempting`,
        `unschedulable` or `error`.
    node : str or None
        Where it would go as things are.
    message : str or None
        What the cycle says as things are.
    edits : list of ProvenEdit
        The cheapest first.
    failed : list of FailedEdit
        Some that do not help.
    n_tried : int
        Edits judged in all.
    n_decisions : int
        Cycles that were run for it.
    n_unlooked : int
        Edits that place the pod and were not tried for the others of its workload: `SearchLimits.alike` decisions
        had been run.
    n_more : dict of str to int
        Kind -> how many further edits of that kind are known to help, not proven for being more of the same.
    """

    pod: str
    n_nodes: int
    outcome: str
    node: str | None
    message: str | None
    edits: list[ProvenEdit] = field(default_factory=list)
    failed: list[FailedEdit] = field(default_factory=list)
    n_tried: int = 0
    n_decisions: int = 0
    n_unlooked: int = 0
    n_more: dict[str, int] = field(default_factory=dict)


# ---- what edits cost, and whom


def owner_words(pod: Pod) -> str:
    """`Kind name` of its controller, empty without one."""
    controller = pod.meta.controller
    return "" if controller is None else f"{controller.kind} {controller.name}"


def owner_is_there(fork: Fork, pod: Pod) -> bool | None:
    """Whether the pod's controller is among the objects; None without one, and for kinds a scheduler does not read."""
    owner = pod.meta.controller
    if owner is None or owner.kind not in KINDS:
        return None
    return fork.cache.listers.get(owner.kind, pod.namespace, owner.name) is not None


def cost_of_losing(fork: Fork, pods: Sequence[Pod]) -> tuple[int, str]:
    """What it costs to take these pods off their nodes, and that in words.

    A pod whose owner is not among the objects is not recreated here, whatever a real cluster does.
    """
    waiting = fork.scheduler.waiting_pods
    staying = [pod for pod in pods if not pod.is_terminating]
    back = [pod for pod in staying if waiting.get(pod.uid) is not None]
    restarting = [pod for pod in staying if pod.meta.controller is not None and pod not in back]
    n_lost = len(staying) - len(back) - len(restarting)
    n_orphaned = sum(owner_is_there(fork, pod) is False for pod in restarting)
    words = [
        _count(n_lost, "pod lost", "pods lost"),
        _count(len(restarting) - n_orphaned, "pod restarts", "pods restart"),
        _count(n_orphaned, "pod goes whose owner is not here", "pods go whose owners are not here"),
        _count(len(back), "pod back to the queue", "pods back to the queue"),
    ]
    cost = COST_LOSS if n_lost else COST_RESTART if restarting else COST_QUEUE if back else COST_POD
    return cost, ", ".join(word for word in words if word) or "only time"


def landings(fork: Fork, pending: Pod, node_name: str, going: Sequence[Pod]) -> tuple[Displaced, ...]:
    """What becomes of pods that make room for `pending` on a node: the most important is tried first.

    Pods that are ending anyway are left out.
    """
    found: list[Displaced] = []
    leaving = [pod for pod in going if not pod.is_terminating]
    with fork.changes(gone=leaving, placed=[(pending, node_name)]):
        for pod in sorted(leaving, key=lambda pod: (-pod.priority, pod.key)):
            node, message = None, f"its scheduler {pod.scheduler_name} is not here"
            if pod.meta.controller is None and fork.scheduler.waiting_pods.get(pod.uid) is None:
                message = "it has no owner that recreates it"
            elif pod.scheduler_name in fork.scheduler.profiles:
                placed = fork.place(homeless(pod), preempt=False)
                node, message = placed.node, placed.message
            found.append(Displaced(pod.key, owner_words(pod), owner_is_there(fork, pod), node, message))
    return tuple(found)


def both_of(first: Edit, second: Edit) -> Edit:
    """Two edits of the pod as one; the second was made of what the first left."""
    return replace(
        second,
        kind="pair",
        title=f"{first.title}, and {second.title[0].lower()}{second.title[1:]}",
        note="; ".join(filter(None, (first.note, second.note))),
        removed=(*first.removed, *second.removed),
        added=(*first.added, *second.added),
        cost=max(first.cost, second.cost),
        price=f"{first.price}; {second.price}",
        size=1 + first.size + second.size,
        standing=max(first.standing, second.standing),
    )


def disruption_of(cost: int) -> int:
    """Of pods whose loss costs so much."""
    return max(cost - COST_POD, 0)


def _count(number: int, one: str, many: str) -> str:
    return "" if not number else f"1 {one}" if number == 1 else f"{number} {many}"


def written(resource: str, amount: int) -> str:
    """An amount in whole units as a manifest writes it: `2400m`, `512Mi`, `2`."""
    if resource == CPU:
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith("hugepages-"):
        for suffix, unit in (("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
            if amount and amount % unit == 0:
                return f"{amount // unit}{suffix}"
    return str(amount)


def amount_words(resource: str, amount: int) -> str:
    """An amount for a person: `2.4 cpu`, `7.5 Gi memory`, `1 nvidia.com/gpu`."""
    if resource == PODS:
        return f"{amount} pod" if amount == 1 else f"{amount} pods"
    return f"{amount_text(resource, amount)} {resource}"
