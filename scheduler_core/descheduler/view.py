"""What the descheduler sees of a cluster: its caches of nodes and pods, and whether a pod fits on a node.

Source: pkg/descheduler/{node,pod}, pkg/utils/{pod,predicates,qos}.go, 7d2b28bf2b6a (v0.36)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Literal, TypeVar

from scheduler_core.descheduler.go_sort import sort_slice
from scheduler_core.objects.fields import SelectorError
from scheduler_core.objects.labels import LabelSelector, label_selector_from
from scheduler_core.objects.node import Node, Taint, node_from
from scheduler_core.objects.pod import BySpec, Pod, pod_from
from scheduler_core.objects.policy import EvictionBudget
from scheduler_core.objects.quantity import quantity_from
from scheduler_core.objects.resources import PODS

Document = Mapping[str, Any]
AfterEviction = Literal["deleted", "terminating", "kept"]
REFUSES_PODS = ("NoSchedule", "NoExecute")
PREFER_NO_EVICTION = "descheduler.alpha.kubernetes.io/prefer-no-eviction"


T = TypeVar("T")
AntiAffinityTerm = tuple[str, tuple[str, ...], LabelSelector]
"""Topology key, namespaces and selector."""


class Parsed:
    """Objects by their manifests, which never change; those of the last two cycles."""

    def __init__(self) -> None:
        self._now: dict[int, tuple[Document, Any]] = {}
        self._before: dict[int, tuple[Document, Any]] = {}
        self.lasting: dict[str, dict[Pod, Any]] = {}
        """Key -> what was said of pods, which follows from each of them alone."""

    def begin(self) -> None:
        """Forget what the last cycle did not have."""
        self._before, self._now = self._now, {}

    def read(self, document: Document, parse: Callable[[Document], T]) -> T:
        found = self._before.get(id(document))
        if found is None or found[0] is not document:
            found = (document, parse(document))
        self._now[id(document)] = found
        made: T = found[1]
        return made


class View:
    """Nodes and pods as the informers have them, in the order in which they are given.

    Parameters
    ----------
    objects : iterable of mapping
        Manifests, taken literally: nothing is defaulted.
    now_ns : int
        The time.
    after_eviction : str
        What the caches show of a pod that was evicted: it is gone (`deleted`), it has a deletion time
        (`terminating`), or they are slow (`kept`).
    parsed : Parsed, optional
        What was read before, of which unchanged objects are not read again.
    """

    def __init__(
        self,
        objects: Iterable[Document],
        now_ns: int,
        after_eviction: AfterEviction,
        parsed: Parsed | None = None,
    ) -> None:
        self._now_ns = now_ns
        self.goes_by_time = False
        self.n_changes = 0
        self.after_eviction = after_eviction
        self.nodes: dict[str, Node] = {}
        self.namespaces: dict[str, Mapping[str, str]] = {}
        self.claims: dict[tuple[str, str], Document] = {}
        self.priority_of: dict[str, int] = {}
        self.budgets: list[EvictionBudget] = []
        self.pods: dict[str, Pod] = {}
        self._on_node: dict[str, dict[str, Pod]] = {}
        self._used: dict[str, Counter[str]] = {}
        self._of_owner: Counter[str] = Counter()
        self._accepts: dict[tuple[object, object, str], str] = {}
        self._parsed = Parsed() if parsed is None else parsed
        self._parsed.begin()
        for document in objects:
            self._add(document)

    @property
    def now_ns(self) -> int:
        """The time; once it was asked for, the same objects may give another cycle later."""
        self.goes_by_time = True
        return self._now_ns

    def lasting(self, key: str) -> dict[Pod, Any]:
        """What was said under a key of pods, by them alone, in this cycle and those before."""
        found = self._parsed.lasting.setdefault(key, {})
        if len(found) > 2 * len(self.pods):
            found.clear()
        return found

    def _add(self, document: Document) -> None:
        kind, metadata = document.get("kind"), document.get("metadata") or {}
        name, namespace = metadata.get("name", ""), metadata.get("namespace", "")
        if kind == "Node":
            self.nodes[name] = self._parsed.read(document, node_from)
        elif kind == "Pod":
            self._put(self._parsed.read(document, pod_from))
        elif kind == "Namespace":
            self.namespaces[name] = metadata.get("labels") or {}
        elif kind == "PersistentVolumeClaim":
            self.claims[namespace, name] = document
        elif kind == "PriorityClass":
            self.priority_of[name] = document.get("value", 0)
        elif kind == "PodDisruptionBudget":
            self.budgets.append(EvictionBudget(document))

    def _put(self, pod: Pod) -> None:
        self.pods[pod.key] = pod
        self._on_node.setdefault(pod.node_name, {})[pod.key] = pod
        for uid in {owner.uid for owner in pod.meta.owners}:
            self._of_owner[uid] += 1
        if not pod.is_terminal:
            used = self._used.get(pod.node_name)
            if used is None:
                used = self._used[pod.node_name] = Counter()
            for name, amount in pod.requests.items():
                used[name] += amount
            used[PODS] += 1

    def _remove(self, pod: Pod) -> None:
        del self.pods[pod.key]
        del self._on_node[pod.node_name][pod.key]
        self._of_owner.subtract({owner.uid for owner in pod.meta.owners})
        if not pod.is_terminal:
            used = self._used[pod.node_name]
            used.subtract(pod.requests)
            used[PODS] -= 1

    def evicted(self, pod: Pod) -> None:
        """Show what an accepted eviction leads to."""
        current = self.pods.get(pod.key)
        if current is None or self.after_eviction == "kept":
            return
        self.n_changes += 1
        if self.after_eviction == "deleted":
            self._remove(current)
        elif not current.is_terminating:
            metadata = {**current.manifest["metadata"], "deletionTimestamp": "1970-01-01T00:00:00Z"}
            changed = pod_from({**current.manifest, "metadata": metadata})
            self.pods[pod.key] = self._on_node[pod.node_name][pod.key] = changed

    def ready_nodes(self, selector: LabelSelector) -> list[Node]:
        return [node for node in self.nodes.values() if is_ready(node) and selector.matches(node.labels)]

    def all_pods_on(self, node: str) -> list[Pod]:
        """The pods whose `spec.nodeName` it is."""
        return list(self._on_node.get(node, {}).values())

    def pods_on(self, node: str) -> list[Pod]:
        """Those of them that have not ended."""
        return [pod for pod in self.all_pods_on(node) if not pod.is_terminal]

    def used_on(self, node: str) -> Mapping[str, int]:
        """What the pods of a node that have not ended request, in whole units; `pods` is their number."""
        return self._used.get(node, {})

    def pods_of_owner(self, uid: str) -> int:
        """How many pods name an owner: of all phases, bound or not."""
        return self._of_owner[uid]

    # --- Whether a pod fits.

    def fits_any(self, pod: Pod, nodes: Iterable[Node], *, other: bool = True) -> bool:
        """Whether it fits on any of the nodes; with `other`, on one that is not its own."""
        return any(
            next(self.refusals(pod, node), None) is None
            for node in nodes
            if not (other and node.name == pod.node_name)
        )

    def refusals(self, pod: Pod, node: Node) -> Iterator[str]:
        """Why a pod does not fit on a node: the first reason, or any of several requests that are too large."""
        key = (pod.required_node_affinity, pod.tolerations, node.name)
        reason = self._accepts.get(key)
        if reason is None:
            reason = self._accepts[key] = _static_refusal(pod, node)
        if reason:
            yield reason
        elif self._has_rival_on(pod, node):
            yield "pod matches inter-pod anti-affinity rule of other pod on node"
        elif pod.node_name != node.name:
            yield from self._insufficient(pod, node)

    def _has_rival_on(self, pod: Pod, node: Node) -> bool:
        return any(
            topology_key in node.labels
            and any(
                other.name != pod.name and matches_term(other, namespaces, selector)
                for other in self.pods_on(node.name)
            )
            for topology_key, namespaces, selector in anti_affinity_terms(pod)
        )

    def _insufficient(self, pod: Pod, node: Node) -> Iterator[str]:
        used = self.used_on(node.name)
        free = {name: node.allocatable.get(name, 0) - used.get(name, 0) for name in (*pod.requests, PODS)}
        if free[PODS] < 0:
            yield "insufficient pods"
            return
        short = [name for name, amount in pod.requests.items() if amount > free[name]]
        if not short and free[PODS] == 0:
            short = [PODS]
        yield from (f"insufficient {name}" for name in short)


def is_ready(node: Node) -> bool:
    """No condition Ready has another status than True; without one it is ready, too."""
    return all(status == "True" for type_, status in node.conditions if type_ == "Ready")


def _static_refusal(pod: Pod, node: Node) -> str:
    if node.unschedulable:
        return "node is not schedulable"
    if not matches_node(pod, node):
        return "pod node selector does not match the node label"
    if not tolerates(pod, node.taints, REFUSES_PODS):
        return "pod does not tolerate taints on the node"
    return ""


def matches_node(pod: Pod, node: Node) -> bool:
    """Whether `nodeSelector` and required node affinity match; a term that cannot be read does not."""
    try:
        return pod.required_node_affinity.match(node.labels, node.name)
    except SelectorError:
        return False


def tolerates(pod: Pod, taints: Iterable[Taint], effects: tuple[str, ...] = ()) -> bool:
    """Whether it tolerates all of the taints, or those of some effects."""
    return all(pod.tolerates(taint) for taint in taints if not effects or taint.effect in effects)


def anti_affinity_terms(pod: Pod) -> tuple[AntiAffinityTerm, ...]:
    """Topology key, namespaces and selector of its required terms, as the descheduler reads them.

    It knows neither `namespaceSelector` nor `matchLabelKeys`. After a selector that cannot be read come no more.
    """
    return _terms_by_spec.of(pod) if pod.has_affinity else ()


def _terms_of(pod: Pod) -> Iterator[AntiAffinityTerm]:
    rules = ((pod.manifest["spec"].get("affinity") or {}).get("podAntiAffinity")) or {}
    for term in rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ():
        try:
            selector = label_selector_from(term.get("labelSelector"))
        except SelectorError:
            return
        namespaces = tuple(term.get("namespaces") or ()) or (pod.namespace,)
        yield term.get("topologyKey", ""), namespaces, selector


_terms_by_spec: Final = BySpec(lambda pod: tuple(_terms_of(pod)))


def matches_term(pod: Pod, namespaces: tuple[str, ...], selector: LabelSelector) -> bool:
    return pod.namespace in namespaces and selector.matches(pod.labels)


def priority(pod: Pod) -> int | None:
    """As it is written, None without one."""
    value = (pod.manifest.get("spec") or {}).get("priority")
    return None if value is None else int(value)


def status(pod: Pod) -> Document:
    return pod.manifest.get("status") or {}


_CLASSES = ("BestEffort", "Burstable", "Guaranteed")


def quality_of_service(pod: Pod) -> int:
    """0, 1 or 2 for BestEffort, Burstable and Guaranteed; of CPU and memory of all containers if no status says it."""
    written = status(pod).get("qosClass")
    if written:
        return _CLASSES.index(written)
    spec = pod.manifest["spec"]
    sums: dict[str, Counter[str]] = {"requests": Counter(), "limits": Counter()}
    limited = True
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        found = set()
        for key, total in sums.items():
            for name, value in ((container.get("resources") or {}).get(key) or {}).items():
                amount = quantity_from(value).nano_value()
                if name in ("cpu", "memory") and amount > 0:
                    total[name] += amount
                    if key == "limits":
                        found.add(name)
        limited = limited and len(found) == 2
    requests, limits = sums["requests"], sums["limits"]
    if not requests and not limits:
        return 0
    same = limited and all(limits[name] == amount for name, amount in requests.items())
    return 2 if same and len(requests) == len(limits) else 1


def sort_by_priority(pods: list[Pod]) -> None:
    """Sort from low to high priority as upstream does; of equal pods each goes before the other."""
    rows = [
        (priority(pod), quality_of_service(pod), PREFER_NO_EVICTION in pod.annotations, pod) for pod in pods
    ]
    sort_slice(rows, _goes_before)
    pods[:] = [row[3] for row in rows]


_Ranked = tuple[int | None, int, bool, Pod]


def _goes_before(one: _Ranked, other: _Ranked) -> bool:
    mine, others = one[0], other[0]
    if (mine is None) != (others is None):
        return mine is None
    if mine != others and mine is not None and others is not None:
        return mine < others
    if one[1] != other[1]:
        return one[1] < other[1]
    return not one[2] or other[2]
