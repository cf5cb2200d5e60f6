"""What an edit is, what it costs, what was found of edits, and what becomes of pods that an edit takes off nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from scheduler_core.objects.kinds import KINDS
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.objects.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, amount_text
from scheduler_core.whatif.fork import Sandbox


@dataclass(frozen=True, slots=True)
class Displaced:
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

    def document(self) -> dict[str, object]:
        """JSON-able."""
        return {
            "pod": self.pod,
            "owner": self.owner,
            "ownerIsThere": self.owner_is_there,
            "node": self.node,
            "message": self.message,
        }


def owner_is_there(sandbox: Sandbox, pod: Pod) -> bool | None:
    """Whether the pod's controller is among the objects; None without one, and for kinds a scheduler does not read."""
    owner = pod.meta.controller
    if owner is None or owner.kind not in KINDS:
        return None
    return sandbox.scheduler.cache.listers.get(owner.kind, pod.namespace, owner.name) is not None


def landings(sandbox: Sandbox, pending: Pod, node_name: str, going: Sequence[Pod]) -> tuple[Displaced, ...]:
    """What becomes of pods that make room for `pending` on a node: the most important is tried first.

    Pods that are ending anyway are left out.
    """
    found: list[Displaced] = []
    leaving = sorted(
        (pod for pod in going if not pod.is_terminating), key=lambda pod: (-pod.priority, pod.key)
    )
    with ExitStack() as made:
        made.enter_context(sandbox.without_pods([pod.uid for pod in leaving]))
        made.enter_context(sandbox.with_pod_on(pending, node_name))
        for pod in leaving:
            owner = pod.meta.controller
            waits = sandbox.scheduler.waiting_pods.get(pod.uid) is not None
            if owner is None and not waits:
                found.append(Displaced(pod.key, "", None, None, "it has no owner that recreates it"))
                continue
            words = "" if owner is None else f"{owner.kind} {owner.name}"
            is_there = owner_is_there(sandbox, pod)
            if pod.scheduler_name not in sandbox.scheduler.profiles:
                message = f"its scheduler {pod.scheduler_name} is not here"
                found.append(Displaced(pod.key, words, is_there, None, message))
                continue
            spec = {key: value for key, value in pod.manifest["spec"].items() if key != "nodeName"}
            again = pod_from({**pod.manifest, "spec": spec, "status": {}})
            decision = sandbox.decide(again)
            if decision.node_name is None or decision.error is not None:
                message = decision.fit_error or decision.error or ""
                found.append(Displaced(pod.key, words, is_there, None, message))
                continue
            made.enter_context(sandbox.with_pod_on(again, decision.node_name))
            found.append(Displaced(pod.key, words, is_there, decision.node_name, ""))
    return tuple(found)


# ---- edits

TOLERATE = "tolerate"
DROP_SELECTOR = "drop-selector"
DROP_REQUIREMENT = "drop-requirement"
DROP_NODE_AFFINITY = "drop-node-affinity"
DROP_AFFINITY_TERM = "drop-affinity-term"
DROP_ANTI_AFFINITY_TERM = "drop-anti-affinity-term"
RELAX_SPREAD = "relax-spread"
DROP_SPREAD = "drop-spread"
HONOR_POLICY = "honor-policy"
LOWER_REQUEST = "lower-request"
DROP_HOST_PORT = "drop-host-port"
RAISE_PRIORITY = "raise-priority"
UNCORDON = "uncordon"
DELETE_POD = "delete-pod"
MOVE_POD = "move-pod"
FREE_ROOM = "free-room"
ADD_NODE = "add-node"
LABEL_NODE = "label-node"
ADD_LARGER_NODE = "add-larger-node"
ADD_ZONE = "add-zone"
ADD_LABELLED_NODE = "add-labelled-node"
CREATE_CLAIM = "create-claim"
PAIR = "pair"

EDIT_KINDS = (
    CREATE_CLAIM,
    HONOR_POLICY,
    LOWER_REQUEST,
    TOLERATE,
    RELAX_SPREAD,
    DROP_SPREAD,
    DROP_SELECTOR,
    DROP_REQUIREMENT,
    DROP_ANTI_AFFINITY_TERM,
    DROP_AFFINITY_TERM,
    DROP_NODE_AFFINITY,
    DROP_HOST_PORT,
    RAISE_PRIORITY,
    PAIR,
    UNCORDON,
    LABEL_NODE,
    MOVE_POD,
    DELETE_POD,
    FREE_ROOM,
    ADD_NODE,
    ADD_LABELLED_NODE,
    ADD_LARGER_NODE,
    ADD_ZONE,
)
"""In the order in which edits of equal cost and size are told."""

TRUE, CHANGES, LAST_RESORT = 0, 1, 2
"""Whether an edit keeps what the pod's owner meant, changes it, or goes against what a cluster says of its nodes: the
last is never the first that is recommended."""

POD, NODES, OTHERS = "pod", "nodes", "others"
"""Whom an edit is about: the pod itself, nodes, or other pods and objects."""

COST_POD, COST_QUEUE, COST_RESTART, COST_LOSS, COST_NODE = 1, 2, 3, 4, 5
"""Less of the pod itself; a pod back to the queue, or a node back in use; a restart; a pod lost; a new node."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One change to the pod or to the cluster.

    Attributes
    ----------
    kind : str
        One of `EDIT_KINDS`.
    about : str
        `pod`, `nodes` or `others`.
    title, note : str
        For a person.
    removed, added : tuple of str
        Lines of a manifest that go and that come.
    cost : int
        From 1 (less of the pod itself) to 5 (a new node).
    price : str
        What the cost is, in words.
    size : float
        Of two edits of equal cost the smaller one is told first.
    change : mapping
        What to do, JSON-able: `{"write": manifest}` or a list of them, `{"delete": ["ns/name", ...]}`,
        `{"reject": [...]}` (at Permit), or `{"move": ["ns/name", node]}`.
    """

    kind: str
    about: str
    title: str
    note: str
    removed: tuple[str, ...]
    added: tuple[str, ...]
    cost: int
    price: str
    size: float
    change: Mapping[str, Any] = field(default_factory=dict)
    disruption: int = 0
    """What it does to pods that run: 0 nothing, 1 a nomination is lost, 2 restarts, 3 pods are lost."""
    standing: int = CHANGES
    """`TRUE`, `CHANGES` or `LAST_RESORT`."""

    @property
    def rank(self) -> tuple[Any, ...]:
        """Sorts edits: true ones first, then those that leave others in peace, then the cheapest, then the smallest."""
        return self.standing, self.disruption, self.cost, self.size, EDIT_KINDS.index(self.kind), self.title


@dataclass(frozen=True, slots=True)
class ProvenEdit:
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
        if self.edit.standing == LAST_RESORT:
            return False
        return not self.edit.disruption and self.edit.cost < COST_NODE and self.edit.about in (POD, NODES)

    def document(self) -> dict[str, Any]:
        """JSON-able."""
        edit = self.edit
        return {
            "kind": edit.kind,
            "about": edit.about,
            "title": edit.title,
            "note": edit.note,
            "removed": list(edit.removed),
            "added": list(edit.added),
            "cost": edit.cost,
            "price": edit.price,
            "size": edit.size,
            "change": dict(edit.change),
            "node": self.node,
            "outcome": self.outcome,
            "nFeasible": self.n_feasible,
            "feasible": list(self.feasible),
            "victims": list(self.victims),
            "disruption": edit.disruption,
            "lastResort": edit.standing == LAST_RESORT,
            "displaced": [one.document() for one in self.displaced],
            "placed": self.placed,
            "of": self.of,
        }


@dataclass(frozen=True, slots=True)
class FailedEdit:
    """An edit that was tried and does not place the pod; `message` is what the cycle says then."""

    kind: str
    title: str
    message: str

    def document(self) -> dict[str, str]:
        return {"kind": self.kind, "title": self.title, "message": self.message}


def cost_of_losing(
    pods: Sequence[Pod], waiting: Mapping[str, object], owner_is_there: Callable[[Pod], bool | None]
) -> tuple[int, str]:
    """What it costs to take these pods off their nodes, and that in words.

    Parameters
    ----------
    waiting : mapping
        By uid: pods that only wait at Permit.
    owner_is_there : callable
        False for a pod whose owner is not among the objects: here it is not made again, whatever a real cluster does.
    """
    going = [pod for pod in pods if pod.is_terminating]
    back = [pod for pod in pods if pod.uid in waiting and pod not in going]
    restarting = [pod for pod in pods if pod.meta.controller is not None and pod not in going + back]
    n_lost = len(pods) - len(going) - len(back) - len(restarting)
    n_orphaned = sum(owner_is_there(pod) is False for pod in restarting)
    words = [
        _count(n_lost, "pod lost", "pods lost"),
        _count(len(restarting) - n_orphaned, "pod restarts", "pods restart"),
        _count(n_orphaned, "pod goes whose owner is not here", "pods go whose owners are not here"),
        _count(len(back), "pod back to the queue", "pods back to the queue"),
    ]
    cost = COST_LOSS if n_lost else COST_RESTART if restarting else COST_QUEUE if back else COST_POD
    return cost, ", ".join(word for word in words if word) or "only time"


def both_of(first: Edit, second: Edit) -> Edit:
    """Two edits of the pod as one; the second was made of what the first left."""
    return replace(
        second,
        kind=PAIR,
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


# ---- the search


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
        How many edits of a kind that do not help are told.
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
class Advice:
    """The answer.

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

    def document(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "pod": self.pod,
            "nNodes": self.n_nodes,
            "outcome": self.outcome,
            "node": self.node,
            "message": self.message,
            "edits": [item.document() for item in self.edits],
            "failed": [item.document() for item in self.failed],
            "nTried": self.n_tried,
            "nDecisions": self.n_decisions,
            "nUnlooked": self.n_unlooked,
            "nMore": dict(self.n_more),
        }
