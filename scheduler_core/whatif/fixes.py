"""The answer to `fix`: why pods wait, and the fixes, each proved by a run; every surface shows the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from scheduler_core.objects.pod import Pod
from scheduler_core.objects.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, amount_text
from scheduler_core.records import Documented
from scheduler_core.schema.tables import table_beside
from scheduler_core.sim.controllers.deployment import deployment_behind

KEEPS, CHANGES, HARMS = "keeps", "changes", "harms"
KINDS: Final = (KEEPS, CHANGES, HARMS)
"""What a fix does to the owner's intent: keeps what was asked for, changes it, or harms other pods. In this order."""

OWNER, NODES, OTHERS = "owner", "nodes", "others"
DECIDERS: Final = (OWNER, NODES, OTHERS)
"""Who has to agree: the owner of the pod, who runs the nodes, the owners of other pods. In this order."""

MILD: Final = 2
"""Restarts for each pod that is placed, of pods that may move and all land: what a drain does every day."""

_NAMED: Final = 3

POD, WORKLOAD, PENDING = SUBJECTS = ("pod", "workload", "pending")

_TABLE: Final = table_beside(__package__, "fixes.yaml")
WHATS: Final[Mapping[str, tuple[str, str, float]]] = _TABLE["usual"]
"""What is changed -> kind, who decides, size, where a fix does not say otherwise."""


@dataclass(frozen=True, slots=True)
class NodeGroup(Documented):
    """Equal nodes that refuse a pod for one reason: one line of the cause.

    Attributes
    ----------
    nodes : int
        How many.
    pool, shape : str
        Pool (else instance type, else ``nodes``) and instance type; the latter may be empty.
    taints : tuple of str
        Those of all of them, as ``key=value:Effect``.
    reason : str
        ``full``, ``small`` (never fits, also when empty), ``tainted``, ``cordoned``, ``dead``, ``selector``, ``rules``
        (spread, affinity), ``volume``, ``port``, ``fits`` or ``other``.
    plugin : str
        The filter that refuses them.
    sentence : str
        ``4 CPU short: the most free is 7.54 of 11 cpu, on n7.``
    nearest : str
        Name of the node that is nearest to taking the pod.
    resource : str
        What is missing most on the nearest node; empty where no amount is missing.
    asked, free, has : int
        Of that resource in whole units (millicores, bytes): of the pod, and of the nearest node.
    idle : int
        Of these nodes, on how many no pod runs but DaemonSets'.
    names : tuple of str
        The first 50.
    """

    nodes: int
    pool: str
    shape: str
    taints: tuple[str, ...]
    reason: str
    plugin: str
    sentence: str
    nearest: str
    resource: str = ""
    asked: int = 0
    free: int = 0
    has: int = 0
    idle: int = 0
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Displaced(Documented):
    """One pod that has to leave its node for a fix.

    Attributes
    ----------
    pod : str
        ``namespace/name``.
    owner : str
        ``ReplicaSet web``, by its reference; empty where nothing recreates the pod.
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
class Fix(Documented):
    """One change after which pending pods find a node.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    what : str
        What is changed, a key of `WHATS`: ``correct-selector``, ``add-node``, ``lower-request``.
    title, note : str
        The change as a command; why it is right, or what it risks.
    decides, who : str
        One of `DECIDERS`, and that in words: ``the owner of Deployment search/indexer``.
    harm : str
        ``nothing moves``, ``17 restarts``, ``2 pods lost``.
    restarts, lost : int
        Pods that start again elsewhere, and pods that are gone or find no node.
    cost : float or None
        Dollars an hour; None where the price of a node is not known.
    price : str
        ``$5.58 an hour``, ``no cost``, ``price not known``.
    size : float
        Of two fixes that are otherwise equal the smaller one comes first.
    removed, added : tuple of str
        Lines of manifests that go and that come, the first of them (`patches.lines_of`).
    change : mapping
        What a branch does: ``write`` (manifests), ``delete`` or ``reject`` (``namespace/name``), ``move``
        (``namespace/name``, node).
    patch : str
        The same as commands: ``kubectl patch ...``, of the owner's template where a controller owns the pod.
    placed, of : int
        Of the pods that are asked about, how many find a node with it.
    lands : mapping of str to str
        Pod -> node, of those that are placed in the run that proves it.
    displaced : tuple of Displaced
    seeds, holds : int
        In how many of how many seeds as many pods are placed; 0 where it was not run again.
    headline : bool
        Whether it may be the best fix: it keeps what was asked for, or it changes little enough.
    """

    kind: str
    what: str
    title: str
    note: str = ""
    decides: str = OWNER
    who: str = ""
    harm: str = "nothing moves"
    restarts: int = 0
    lost: int = 0
    cost: float | None = 0.0
    price: str = "no cost"
    size: float = 0.0
    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    change: Mapping[str, Any] = field(default_factory=dict)
    patch: str = ""
    placed: int = 0
    of: int = 1
    lands: Mapping[str, str] = field(default_factory=dict)
    displaced: tuple[Displaced, ...] = ()
    seeds: int = 0
    holds: int = 0
    headline: bool = True

    @property
    def rank(self) -> tuple[Any, ...]:
        """Sorts fixes: by kind, harm, who decides, how many pods it places, cost, size.

        Up to two restarts for each pod that is placed are no harm, where every pod that moves lands.
        """
        return (
            KINDS.index(self.kind),
            not self.headline,
            2 if self.lost else 1 if self.restarts > MILD * max(self.placed, 1) else 0,
            DECIDERS.index(self.decides),
            self.placed < self.of,
            1e9 if self.cost is None else round(self.cost, 6),
            self.restarts + self.lost,
            -self.placed,
            self.size,
            list(WHATS).index(self.what),
            self.title,
        )


def draft(form: str, words: Mapping[str, Any] = {}, **more: Any) -> Fix:
    """A fix that is not proved yet; what is not given is usual for what it changes.

    Parameters
    ----------
    form : str
        A key of `WHATS`, with ``/`` and a name where it is said in several ways.
    words : mapping of str to object
        What the form's texts name.
    """
    what = form.partition("/")[0]
    usual = dict(zip(("kind", "decides", "size"), WHATS[what], strict=True))
    texts = {key: text.format_map(words) for key, text in _TABLE["texts"].get(form, {}).items()}
    return Fix(what=what, **({"title": "", **usual} | texts | more))


def harmed(fix: Fix, displaced: tuple[Displaced, ...]) -> Fix:
    """The fix with what becomes of the pods that have to go."""
    lost = sum(item.node is None for item in displaced)
    restarts = len(displaced) - lost
    words = [counted(restarts, "restart") if restarts else "", f"{counted(lost, 'pod')} lost" if lost else ""]
    harm = ", ".join(word for word in words if word) or fix.harm
    return replace(fix, displaced=displaced, restarts=restarts, lost=lost, harm=harm)


def money(amount: float) -> str:
    """`$31.64`."""
    return f"${amount:,.2f}"


def price_words(cost: float | None) -> str:
    """`$5.58 an hour`, `no cost`, `price not known`."""
    return "price not known" if cost is None else f"{money(cost)} an hour" if cost else "no cost"


def owner_words(pod: Pod) -> str:
    """`Kind name` of its controller, or of the Deployment behind a ReplicaSet; empty without one."""
    controller = pod.meta.controller
    if controller is None:
        return ""
    return " ".join(deployment_behind(controller.kind, controller.name, pod.labels))


def counted(number: int, noun: str) -> str:
    """`1 pod`, `3 pods`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def first_of(every: Sequence[str]) -> str:
    """The first few names, and how many more."""
    names = list(every[:_NAMED])
    more = len(every) - len(names)
    if more:
        return f"{', '.join(names)} and {more:,} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def written(resource: str, amount: int) -> str:
    """An amount in whole units as a manifest writes it: `2400m`, `512Mi`, `512M`, `2`."""
    if resource == CPU:
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith("hugepages-"):
        for suffix, unit in (("Gi", 2**30), ("Mi", 2**20), ("G", 10**9), ("M", 10**6), ("Ki", 2**10)):
            if amount and amount % unit == 0:
                return f"{amount // unit}{suffix}"
    return str(amount)


def amount_words(resource: str, amount: int) -> str:
    """An amount for a person: `2.4 CPU`, `7.5 Gi memory`, `1 nvidia.com/gpu`."""
    if resource == PODS:
        return counted(amount, "pod") if amount else "no pod"
    return f"{amount_text(resource, amount)} {'CPU' if resource == CPU else resource}"


def apart(resource: str, one: int, other: int) -> tuple[str, str]:
    """Two amounts for a person; exact where they differ and would read the same.

    >>> apart("memory", 2**32, 2**32 - 2**20), apart("cpu", 15_800, 12_990)
    (('4096Mi', '4095Mi'), ('15.8', '12.99'))
    """
    texts = amount_text(resource, one), amount_text(resource, other)
    if one == other or texts[0] != texts[1]:
        return texts
    suffix, unit = ("m", 1) if resource == CPU else ("", 1)
    if resource != CPU:
        units = (("Mi", 2**20), ("Ki", 2**10))
        suffix, unit = next((item for item in units if not one % item[1] and not other % item[1]), ("", 1))
    return f"{one // unit}{suffix}", f"{other // unit}{suffix}"


@dataclass(frozen=True, slots=True)
class Stage(Documented):
    """One step of the best fix of all pending pods: how many still wait after it."""

    title: str
    pending: int
    price: str
    harm: str


@dataclass(frozen=True, slots=True)
class FixAnswer(Documented):
    """Why pods wait, and what places them.

    Attributes
    ----------
    subject, name : str
        One of `SUBJECTS`; ``namespace/name`` of a pod, ``Kind namespace/name`` of a workload, empty for all.
    workload : str
        Whose template edits are made in: ``Deployment search/indexer``; empty for a pod alone, and for all.
    pods : tuple of str
        The pending pods the answer is about: for a pod those that ask for the same, itself among them.
    headline : str
        The cause in one sentence, with the amount that is missing.
    message : str
        What the scheduler says, whole.
    causes : tuple of str
        What the message only implies, a sentence each.
    groups : tuple of NodeGroup
        All nodes, nearest first.
    n_nodes : int
    node : str
        Where the pod goes as things are; empty where it waits.
    fixes : tuple of Fix
        In the order of `KINDS`, the best first.
    best : Fix or None
        The first that may be a headline; None where nothing that keeps what was asked for places a pod.
    bound : float or None
        No answer that keeps what was asked for costs less an hour; None where nothing is bought.
    bound_words : str
        ``no cheaper combination exists``, or ``at most $0.46 an hour above the best possible``.
    checked : str
        What was looked at and is right: ``no typing mistake was found``.
    workloads : tuple of FixAnswer
        Of all pending pods: the answer of each workload, in the order in which they are fixed, each equal to the
        one its pods' pages show.
    stages : tuple of Stage
        Of all pending pods: how the number that waits falls.
    tried, untried : int
        Changes that were tried, and those that were left out when the limit ended the search.
    limit : str
        Which limit ended it; empty where it was not reached.
    decisions : int
        Cycles that were run.
    """

    subject: str
    name: str
    workload: str
    pods: tuple[str, ...]
    headline: str
    message: str = ""
    causes: tuple[str, ...] = ()
    groups: tuple[NodeGroup, ...] = ()
    n_nodes: int = 0
    node: str = ""
    fixes: tuple[Fix, ...] = ()
    best: Fix | None = None
    bound: float | None = None
    bound_words: str = ""
    checked: str = ""
    workloads: tuple[FixAnswer, ...] = ()
    stages: tuple[Stage, ...] = ()
    tried: int = 0
    untried: int = 0
    limit: str = ""
    decisions: int = 0
