"""What a filter plugin compared on one node, in words: what the pod asks, and what the node has.

Only words are made here; whether a node passes is always the plugin's own verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scheduler_core.advice.edits import amount_words
from scheduler_core.advice.pod_edits import requirement_words
from scheduler_core.cluster.node_table import normal_port
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.framework.interface import Plugin
from scheduler_core.objects.node import TAINT_UNSCHEDULABLE, Node, Taint
from scheduler_core.objects.pod import AffinityTerm, Pod
from scheduler_core.objects.resources import amount_text

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_CORDON = Taint(TAINT_UNSCHEDULABLE, "", "NoSchedule")
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Value:
    """One comparison.

    Attributes
    ----------
    about : str
        What is compared where a plugin compares several things: a resource, a label key; else empty.
    asks, has : str
    ok : bool or None
        None where it does not decide by itself (one of several alternatives).
    short : str
        What is missing, in words; empty when nothing is or it is no amount.
    with_nominated : str
        `has` with nominated pods of equal or higher priority counted; empty when there are none.
    """

    about: str
    asks: str
    has: str
    ok: bool | None
    short: str = ""
    with_nominated: str = ""

    def document(self) -> dict[str, Any]:
        return {
            "about": self.about,
            "asks": self.asks,
            "has": self.has,
            "ok": self.ok,
            "short": self.short,
            "withNominated": self.with_nominated,
        }


@dataclass(frozen=True, slots=True)
class PodOnNode:
    """A pod, a node, and who else is nominated to the node.

    Attributes
    ----------
    nominated : tuple of Pod
        Of equal or higher priority, the pod itself left out.
    """

    pod: Pod
    snapshot: Snapshot
    row: int
    nominated: tuple[Pod, ...] = ()

    @property
    def node(self) -> Node:
        return self.snapshot.nodes.node(self.row)


def values_of(plugin: Plugin, place: PodOnNode, state: Any) -> list[Value]:
    """What `plugin` compared; empty where this module has no words for what it declares (`Plugin.compares`)."""
    words = _WORDS.get(plugin.compares)
    return [] if words is None else list(words(place, state))


def _unschedulable(place: PodOnNode, state: Any) -> Iterator[Value]:
    cordoned = place.node.unschedulable
    tolerates = place.pod.tolerates(_CORDON)
    asks = "tolerates cordoned nodes" if tolerates else "no toleration for cordoned nodes"
    yield Value("", asks, f"spec.unschedulable: {str(cordoned).lower()}", tolerates or not cordoned)


def _node_name(place: PodOnNode, state: Any) -> Iterator[Value]:
    wanted = place.pod.node_name
    yield Value(
        "",
        f"spec.nodeName: {wanted}" if wanted else "no spec.nodeName",
        place.node.name,
        wanted in ("", place.node.name),
    )


def _taints(place: PodOnNode, state: Any) -> Iterator[Value]:
    hard = [taint for taint in place.node.taints if taint.effect in ("NoSchedule", "NoExecute")]
    for taint in hard:
        matching = next((item for item in place.pod.tolerations if item.tolerates(taint)), None)
        if matching is None:
            asks = "no matching toleration"
        else:
            key = matching.key or "every taint"
            asks = f"tolerates {key}={matching.value}" if matching.value else f"tolerates {key}"
        yield Value(taint.key, asks, str(taint), matching is not None)
    if not hard:
        yield Value("", _tolerated(place.pod), "no taints that keep pods off", True)


def _tolerated(pod: Pod) -> str:
    names = [item.key or "every taint" for item in pod.tolerations]
    return f"tolerates {', '.join(dict.fromkeys(names))}" if names else "no tolerations"


def _affinity(place: PodOnNode, state: Any) -> Iterator[Value]:
    labels, spec = place.node.meta.labels, place.pod.manifest.get("spec") or {}
    for key, value in (spec.get("nodeSelector") or {}).items():
        yield Value(key, f"{key}={value}", _label(labels, key), labels.get(key) == value)
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    terms = required.get("nodeSelectorTerms") or []
    for index, term in enumerate(terms):
        number = f"term {index + 1} of {len(terms)}: " if len(terms) > 1 else ""
        for requirement in term.get("matchExpressions") or ():
            key = str(requirement.get("key"))
            yield Value(key, number + requirement_words(requirement), _label(labels, key), None)
        for requirement in term.get("matchFields") or ():
            yield Value(
                str(requirement.get("key")), number + requirement_words(requirement), place.node.name, None
            )


def _label(labels: Mapping[str, str], key: str) -> str:
    return f"{key}={labels[key]}" if key in labels else f"no label {key}"


def _ports(place: PodOnNode, state: Any) -> Iterator[Value]:
    nodes = place.snapshot.nodes
    holders: dict[tuple[str, int], list[str]] = {}
    for pod_id in nodes.pods_on(place.row):
        for port in nodes.pods[pod_id].host_ports:
            holders.setdefault((port.protocol, port.port), []).append(nodes.pods[pod_id].name)
    for wanted in place.pod.host_ports:
        used = holders.get((wanted.protocol, wanted.port), [])
        port = normal_port(wanted)
        asks = f"{port.port}/{port.protocol}" + ("" if port.ip == "0.0.0.0" else f" on {port.ip}")
        yield Value(
            asks, f"host port {asks}", f"used by {_some(used)}" if used else "free", None if used else True
        )


def _resources(place: PodOnNode, state: Any) -> Iterator[Value]:
    nodes = place.snapshot.nodes
    n_nominated = len(place.nominated)

    def has(resource: str, free: int, total: int, taken: int, asked: int, asks: str) -> Value:
        missing = asked - free
        shown = f"{amount_text(resource, free)} free of {amount_text(resource, total)}"
        with_nominated = f"{amount_text(resource, free - taken)} free" if n_nominated and taken else ""
        return Value(
            resource,
            asks,
            shown,
            missing <= 0,
            amount_words(resource, missing) if missing > 0 else "",
            with_nominated,
        )

    for resource_id, amount, name in zip(state.resource_ids, state.amounts, state.names, strict=True):
        known = resource_id < len(nodes.allocatable)
        total = int(nodes.allocatable[resource_id, place.row]) if known else 0
        free = total - int(nodes.requested[resource_id, place.row]) if known else 0
        taken = sum(other.requests.get(name, 0) for other in place.nominated)
        yield has(name, free, total, taken, amount, amount_words(name, amount))
    total = int(nodes.allowed_pods[place.row])
    yield has("pods", total - int(nodes.n_pods[place.row]), total, n_nominated, 1, "1 pod")


def _spread(place: PodOnNode, state: Any) -> Iterator[Value]:
    labels = place.node.meta.labels
    for constraint in state.constraints:
        key = constraint.key
        own = int(place.snapshot.nodes.label_column(key)[place.row])
        if own < 0:
            yield Value(key, f"a domain of {key}", _label(labels, key), False)
            continue
        count, least = int(constraint.counts[own]), constraint.minimum
        allowed = constraint.max_skew
        counts_itself = allowed - constraint.limit
        skew = count + counts_itself - least
        yield Value(
            key,
            f"maxSkew {allowed} over {key}",
            f"{labels.get(key)} holds {count}, the emptiest domain {least}: with this pod a skew of {skew}",
            count <= constraint.limit + least,
            f"{skew - allowed} too many" if skew > allowed else "",
        )


def _pod_affinity(place: PodOnNode, state: Any) -> Iterator[Value]:
    pod = place.pod
    for term in pod.required_affinity:
        found = _matching(place, term)
        has = f"{_some(found)} in the domain" if found else "none in the domain"
        yield Value(
            term.topology_key,
            f"beside {_selected(term)}, by {term.topology_key}",
            has,
            True if found else None,
        )
    for term in pod.required_anti_affinity:
        found = _matching(place, term)
        has = f"{_some(found)} in the domain" if found else "none in the domain"
        yield Value(term.topology_key, f"away from {_selected(term)}, by {term.topology_key}", has, not found)
    against = _against(place)
    if against:
        yield Value("", "to be where no pod keeps it away", f"{_some(against)} keep away pods like it", False)


def _selected(term: AffinityTerm) -> str:
    return str(term.selector) or ("no pod" if term.selector.is_nothing else "any pod")


def _matching(place: PodOnNode, term: AffinityTerm) -> list[str]:
    listers = place.snapshot.listers
    return [
        other.name
        for other in _in_domain(place, term.topology_key)
        if _covers(term, other, listers) and term.selector.matches(other.labels)
    ]


def _against(place: PodOnNode) -> list[str]:
    listers = place.snapshot.listers
    domains: dict[str, None] = {}
    pods = place.snapshot.pods
    carriers = [
        pods[pod_id]
        for pod_id in range(len(pods.row))
        if pods.row[pod_id] >= 0 and pods[pod_id].has_required_anti_affinity
    ]
    for other in carriers:
        for term in other.required_anti_affinity:
            if _covers(term, place.pod, listers) and term.selector.matches(place.pod.labels):
                domains[term.topology_key] = None
    found: dict[str, None] = {}
    for key in domains:
        for other in _in_domain(place, key):
            if any(
                term.topology_key == key
                and _covers(term, place.pod, listers)
                and term.selector.matches(place.pod.labels)
                for term in other.required_anti_affinity
            ):
                found[other.name] = None
    return list(found)


def _in_domain(place: PodOnNode, key: str) -> Iterator[Pod]:
    nodes = place.snapshot.nodes
    column = nodes.label_column(key)
    own = int(column[place.row])
    if own < 0:
        return
    for row in place.snapshot.rows[column[place.snapshot.rows] == own].tolist():
        for pod_id in nodes.pods_on(row):
            yield nodes.pods[pod_id]


def _covers(term: AffinityTerm, other: Pod, listers: Any) -> bool:
    if other.namespace in term.namespaces:
        return True
    selector = term.namespace_selector
    return not selector.is_nothing and selector.matches(listers.namespace_labels(other.namespace) or {})


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown


_WORDS: Mapping[str, Callable[[PodOnNode, Any], Iterator[Value]]] = {
    "cordon": _unschedulable,
    "node name": _node_name,
    "taints": _taints,
    "node affinity": _affinity,
    "host ports": _ports,
    "requests": _resources,
    "spread": _spread,
    "pod affinity": _pod_affinity,
}
"""By `Plugin.compares`."""

REQUESTS = "requests"

__all__ = ["REQUESTS", "PodOnNode", "Value", "values_of"]
