"""Why a pod waits: groups of equal nodes with the amount that is missing, and what the scheduler's message implies."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.node_table import Rows
from scheduler_core.fork import Fork, group_of
from scheduler_core.framework.attempt import Attempt
from scheduler_core.framework.failure import PluginFailure
from scheduler_core.framework.preemption.evaluator import preempt
from scheduler_core.framework.preemption.reprieve import KeptTries
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.objects.resources import CPU, amount_text, named
from scheduler_core.schema.tables import table_beside
from scheduler_core.sim.kubelet import claims_of
from scheduler_core.whatif import pod_edits
from scheduler_core.whatif.cluster_edits import (
    claims_recreated,
    missing_claims,
    storage_extended,
    unbound_claims,
    volume_places,
    volumes_created,
)
from scheduler_core.whatif.fixes import NodeGroup, apart, counted, first_of

FITS, FULL, RULES, PORT, VOLUME, TAINTED, SELECTOR, SMALL, CORDONED, DEAD, OTHER = REASONS = (
    "fits", "full", "rules", "port", "volume", "tainted", "selector", "small", "cordoned", "dead", "other",
)  # fmt: skip
"""Of a group, the nearest to taking the pod first."""
_OF_COMPARED: Final[Mapping[str, str]] = {
    "cordon": CORDONED,
    "taints": TAINTED,
    "node affinity": SELECTOR,
    "node name": SELECTOR,
    "host ports": PORT,
    "requests": FULL,
    "spread": RULES,
    "pod affinity": RULES,
}
"""By `Plugin.compares`."""
_NAMES: Final = 50
_DEAD: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


@dataclass(frozen=True, slots=True)
class PendingCause:
    """Why a pod waits."""

    headline: str
    causes: tuple[str, ...]
    groups: tuple[NodeGroup, ...]
    held: tuple[Resize, ...] = ()
    """Resizes that are Deferred and hold room, where nodes are full."""


def cause_of(fork: Fork, pod: Pod, message: str) -> PendingCause:
    """Why a pod finds no node, for a person.

    Parameters
    ----------
    message : str
        What the scheduler says.
    """
    try:
        attempt = fork.attempt(pod)
    except PluginFailure as failure:
        return PendingCause(f"The cycle of {pod.name} ends in an error: {failure}", (), ())
    groups = _groups(fork, attempt) if attempt.pre_filter_status.is_success else ()
    implied = (
        *_missing(fork, pod),
        *_one_node(fork, pod),
        *_closed_domains(fork, pod),
        *_far_volumes(fork, pod),
    )
    held = resizes(fork) if any(one.reason == FULL for one in groups) else ()
    headline = implied[0] if implied else _headline(pod, groups, message, fork)
    near = next((one.resource for one in groups if one.reason in (FULL, SMALL)), "")
    parts = filter(None, (_parts(pod, near) if near else "",))
    return PendingCause(headline, (*implied, *parts, *map(_held_words, held)), groups, held)


# ---- equal nodes


def _groups(fork: Fork, attempt: Attempt) -> tuple[NodeGroup, ...]:
    snapshot, pod = fork.snapshot, attempt.pod
    nodes, order = snapshot.nodes, snapshot.order
    shares, resources = _missing_shares(fork, pod, order)
    place_of = {row: place for place, row in enumerate(attempt.rows.tolist())}
    found: dict[tuple[Any, ...], list[int]] = {}
    for index, (row, refusal) in enumerate(zip(order.tolist(), _refusals(fork, attempt), strict=True)):
        group = group_of(nodes.node(row).meta.labels)
        kind = (REASONS.index(refusal.reason), group.name, group.shape, refusal.taints, refusal.plugin)
        found.setdefault(kind, []).append(index)
    made = []
    for (reason_place, pool, shape, taints, plugin), members in found.items():
        best = min(members, key=lambda index: shares[index])
        row, resource = int(order[best]), resources[best]
        names = [nodes.name(int(order[index])) for index in members[:_NAMES]]
        reason = REASONS[reason_place]
        idle = (
            sum(_is_idle(fork, int(order[index])) for index in members)
            if reason in (TAINTED, CORDONED)
            else 0
        )
        words = _sentence(fork, attempt, reason, row, place_of.get(row), resource, taints, len(members), idle)
        amounts = (pod.requests.get(resource, 1), fork.free(resource, row), fork.allocatable(resource, row))
        if not resource:
            amounts = (0, 0, 0)
        key = (reason_place, float(shares[best]), pool, shape, plugin, taints)
        nearest_node = nodes.name(row)
        which = (len(members), pool, shape, taints, reason, plugin, words, nearest_node)
        group_made = NodeGroup(*which, resource, *amounts, idle, tuple(names))
        made.append((key, group_made))
    return tuple(group for _, group in sorted(made, key=lambda item: item[0]))


class Refusal(NamedTuple):
    """Why a node does not take a pod: one of `REASONS`, the filter that said so, and the taints that keep it off."""

    reason: str
    plugin: str
    taints: tuple[str, ...]


def _refusals(fork: Fork, attempt: Attempt) -> Iterator[Refusal]:
    """What each node says, in evaluation order."""
    pod, filters = attempt.pod, attempt.framework.filter
    place_of = {row: place for place, row in enumerate(attempt.rows.tolist())}
    for row in fork.snapshot.order.tolist():
        node, place = fork.snapshot.nodes.node(row), place_of.get(row)
        stop = -1 if place is None else int(attempt.stop[place])
        plugin = filters[stop].name if 0 <= stop < len(filters) else ""
        reason = SELECTOR if place is None else FITS
        if plugin:
            reason = _OF_COMPARED.get(filters[stop].compares, VOLUME if pod.volumes else OTHER)
        if reason == TAINTED and any(
            taint.key in _DEAD and not pod.tolerates(taint) for taint in node.taints
        ):
            reason = DEAD
        if reason == FULL and _never_fits(fork, pod, row):
            reason = SMALL
        taints = tuple(
            str(one) for one in node.taints if one.effect in pod_edits.KEEPS_OFF and not pod.tolerates(one)
        )
        yield Refusal(reason, plugin, taints)


def every_node(fork: Fork, pod: Pod) -> dict[str, Any]:
    """Which nodes take a pod now, which do once others are evicted, and why the others do not.

    Returns
    -------
    dict
        ``letters``: ``f`` fits, ``p`` only by preemption, ``n`` not, one a node in the order of their names; ``why``:
        of each the place of its reason in ``reasons`` (``reason``, one of `REASONS`, with its ``plugin``, ``taints``,
        and of an amount that is missing the ``resource`` and what is ``asked``); ``never``: its policy is Never;
        ``names``: a digest of the names.

    Raises
    ------
    PluginFailure
    """
    attempt = fork.attempt(pod)
    nodes, order = fork.snapshot.nodes, fork.snapshot.order
    _, resources = _missing_shares(fork, pod, order)
    helped: set[str] = set()
    if attempt.pre_filter_status.is_success:
        told = list(_refusals(fork, attempt))
        plugin = next(iter(attempt.framework.post_filter), None)
        if plugin is not None:
            rest = {"percentage": 100, "absolute": len(order)}
            found = preempt(attempt, plugin.handle, KeptTries(), **rest).trace
            helped = {nodes.name(int(row)) for row in found.run.rows[found.places]} if found.run else set()
            fork.rewind()
    else:
        told = [Refusal(OTHER, attempt.pre_filter_status.plugin, ())] * len(order)
    reasons: dict[tuple[Any, ...], int] = {}
    lines = []
    for row, refusal, resource in zip(order.tolist(), told, resources, strict=True):
        amount = resource if refusal.reason in (FULL, SMALL) else ""
        why = reasons.setdefault((*refusal, amount), len(reasons))
        letter = "f" if refusal.reason == FITS else "p" if nodes.name(row) in helped else "n"
        lines.append((nodes.name(row), letter, why))
    lines.sort()
    return {
        "pod": pod.key,
        "never": pod.preemption_policy == "Never",
        "names": names_digest(name for name, _, _ in lines),
        "letters": "".join(letter for _, letter, _ in lines),
        "why": [why for _, _, why in lines],
        "reasons": [
            {
                "reason": reason,
                "plugin": plugin,
                "taints": list(taints),
                "resource": resource,
                "asked": pod.requests.get(resource, 1) if resource else 0,
            }
            for reason, plugin, taints, resource in reasons
        ],
    }


def names_digest(names: Iterable[str]) -> str:
    """Whether nodes are the same as then, given their names in order."""
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]


def _is_idle(fork: Fork, row: int) -> bool:
    nodes = fork.snapshot.nodes
    pods = (nodes.pods[pod_id] for pod_id in nodes.pods_on(row))
    return all(
        pod.meta.controller is not None and pod.meta.controller.kind in ("DaemonSet", "Node") for pod in pods
    )


def _never_fits(fork: Fork, pod: Pod, row: int) -> bool:
    return any(amount > fork.allocatable(name, row) for name, amount in pod.requests.items() if amount > 0)


def _missing_shares(fork: Fork, pod: Pod, rows: Rows) -> tuple[NDArray[np.float64], list[str]]:
    """The largest missing share of a request on each row, and of which resource (empty: none)."""
    nodes = fork.snapshot.nodes
    worst = (nodes.n_pods[rows] >= nodes.allowed_pods[rows]).astype(np.float64)
    which = np.where(worst > 0, 0, -1)
    names = ["pods"]
    for name, amount in pod.requests.items():
        if amount <= 0 or name == "pods":
            continue
        names.append(name)
        resource_id = nodes.vocabulary.resources.id(name)
        if resource_id < len(nodes.allocatable):
            free = nodes.allocatable[resource_id, rows] - nodes.requested[resource_id, rows]
            share = np.clip((amount - free) / amount, 0, 1)
        else:
            share = np.ones(len(rows))
        which = np.where(share > worst, len(names) - 1, which)
        worst = np.maximum(worst, share)
    return worst, [names[place] if place >= 0 else "" for place in which.tolist()]


def _sentence(
    fork: Fork,
    attempt: Attempt,
    reason: str,
    row: int,
    place: int | None,
    resource: str,
    taints: Sequence[str],
    number: int,
    idle: int,
) -> str:
    pod, node = attempt.pod, fork.snapshot.nodes.node(row)
    they = "It takes" if number == 1 else "They take"
    if reason == FITS:
        return f"{they} the pod."
    if reason == CORDONED:
        return f"Cordoned{_idle_words(idle, number)}: closed to new pods."
    if reason == DEAD:
        state = next(one.key for one in node.taints if one.key in _DEAD).rpartition("/")[2]
        return f"Dead: {state.replace('-', ' ')}."
    if reason == TAINTED:
        by = "taint" if len(taints) == 1 else "taints"
        return f"Reserved by the {by} {', '.join(taints)}{_idle_words(idle, number)}."
    if reason in (FULL, SMALL) and resource:
        asked, free, has = (
            pod.requests.get(resource, 1),
            fork.free(resource, row),
            fork.allocatable(resource, row),
        )
        word = named(resource)
        if resource == "pods":
            return f"No room for another pod: {has:,} are the most, and {has - max(free, 0):,} are there."
        if not has:
            return f"Without {word}."
        if has < asked:
            there, needed = apart(resource, has, asked)
            return f"Too small: {there} {word} in all, and {needed} is asked for."
        there, needed = apart(resource, max(free, 0), asked)
        most = f"{there} of {needed} {word}, on {node.name}"
        return f"{amount_text(resource, asked - free)} {word} short: the most free is {most}."
    if reason == SELECTOR and place is not None:
        return f"{_selector_words(pod, node)}."
    if place is None:
        return f"Left out: {attempt.narrowed_reason}."
    verdict = attempt.verdict(place)
    said = _refused_words(pod, verdict[2]) if verdict else None
    return f"{said[0] if said else ', '.join(verdict[2]) if verdict else 'refused'}."


def _refused_words(pod: Pod, reasons: Sequence[str]) -> tuple[str, str] | None:
    """What a rule about other pods finds on a node, and what it asks of the pod; None where upstream's words do."""
    said = next((_REFUSALS[one] for one in reasons if one in _REFUSALS), None)
    if said is None:
        return None
    spec = pod.manifest.get("spec") or {}
    terms = {
        kind: " and ".join(
            f"{pod_edits.selector_words(term.get('labelSelector'))} (same {term['topologyKey']})"
            for term in pod_edits.at(spec, "affinity", kind, pod_edits.REQUIRED) or ()
        )
        for kind in ("podAffinity", "podAntiAffinity")
    }
    spread = [
        f"{item['topologyKey']} (at most {item['maxSkew']} more than in the emptiest)"
        for item in spec.get("topologySpreadConstraints") or ()
        if item.get("whenUnsatisfiable") == "DoNotSchedule"
    ]
    ports = [
        f"{port['hostPort']}/{port.get('protocol') or 'TCP'}"
        for one in spec.get("containers") or ()
        for port in one.get("ports") or ()
        if port.get("hostPort")
    ]
    about = {**terms, "spread": " and ".join(spread), "ports": " and ".join(ports)}
    return said["node"].format_map(about), said["pod"].format_map(about)


_REFUSALS: Final[Mapping[str, Mapping[str, str]]] = table_beside(__package__, "refusals.yaml")


def _idle_words(idle: int, number: int) -> str:
    if not idle:
        return ""
    return ", and idle" if idle == number else f"; {idle:,} of them {'is' if idle == 1 else 'are'} idle"


def _selector_words(pod: Pod, node: Node) -> str:
    """Which label the pod asks for that a node has not."""
    labels, spec = node.meta.labels, pod.manifest.get("spec") or {}
    for key, value in (spec.get("nodeSelector") or {}).items():
        if labels.get(key) != value:
            return f"Without the label {key}={value}" + (
                f": it is {key}={labels[key]}" if key in labels else ""
            )
    terms = (pod_edits.at(spec, "affinity", "nodeAffinity", pod_edits.REQUIRED) or {}).get(
        "nodeSelectorTerms"
    ) or ()
    wanted = " or ".join(
        " and ".join(
            pod_edits.requirement_words(item)
            for kind in ("matchExpressions", "matchFields")
            for item in term.get(kind) or ()
        )
        for term in terms
    )
    return f"Not what the required node affinity asks for: {wanted}"


# ---- the sentence


def _headline(pod: Pod, groups: Sequence[NodeGroup], message: str, fork: Fork) -> str:
    """The cause in one sentence, with the amount that is missing on nodes that the pod may use."""
    # What is free on nodes that the pod may use comes before nodes that it may not.
    near = next((one for one in groups if one.reason in (FULL, SMALL)), next(iter(groups), None))
    if near is None or near.reason in (FITS, OTHER, RULES, VOLUME, PORT):
        if near is not None and near.reason in (RULES, PORT):
            attempt = fork.attempt(pod)
            place = attempt.rows.tolist().index(fork.cache.nodes.row_of[near.nearest])
            if said := _refused_words(pod, (attempt.verdict(place) or ("", "", ()))[2]):
                return f"{pod.name} {said[1]}."
        words = near.sentence if near is not None and near.reason in (RULES, VOLUME, PORT) else message
        return (
            f"{pod.name} finds no node: {words[:1].lower()}{words[1:]}"
            if words
            else f"{pod.name} finds no node."
        )
    if near.reason in (FULL, SMALL):
        return f"{pod.name} {_short_words(near, groups)}"
    if any(one.reason == SELECTOR for one in groups):
        row = fork.cache.nodes.row_of[next(one.nearest for one in groups if one.reason == SELECTOR)]
        wanted = _selector_words(pod, fork.snapshot.nodes.node(row))
        if wanted.startswith("Without the label "):
            label = wanted.removeprefix("Without the label ").split(":")[0]
            return f"{pod.name} asks for nodes with {label}, and no node that it may use has this label."
        return f"{pod.name} asks for nodes that are not there: {wanted.split(': ', 1)[-1]}."
    if near.reason == TAINTED:
        which = (
            "the only node is" if sum(one.nodes for one in groups) == 1 else "every node that is in use is"
        )
        return f"{pod.name} may use no node: {which} reserved by the taint {near.taints[0]}."
    return f"{pod.name} may use no node: {near.sentence[:1].lower()}{near.sentence[1:]}"


def _short_words(near: NodeGroup, groups: Sequence[NodeGroup]) -> str:
    resource = near.resource
    may_use = [one for one in groups if one.reason in (FULL, SMALL)]
    if resource == "pods":
        return "needs room for one pod. The nodes it may use hold as many pods as they may."
    there, needed = apart(resource, near.has if near.reason == SMALL else max(near.free, 0), near.asked)
    needs = f"needs {needed} {named(resource)} on one node."
    which = (
        "The nodes it may use have" if sum(one.nodes for one in may_use) > 1 else "The node it may use has"
    )
    if not near.has:
        return f"{needs} {which} none."
    if near.reason == SMALL:
        return f"{needs} {which} {there} in all at most."
    return f"{needs} {which} {there} free at most, {amount_text(resource, near.asked - near.free)} short."


# ---- what the message implies


def _missing(fork: Fork, pod: Pod) -> Iterator[str]:
    """What the pod names and what is not there, with the nearest name."""
    listers = fork.cache.listers
    claims = list(unbound_claims(pod, listers))
    items = (pod.manifest.get("spec") or {}).get("resourceClaims") or ()
    named: list[tuple[str, str, str, str]] = [
        *((pod.name, "PersistentVolumeClaim", pod.namespace, name) for name in missing_claims(pod, listers)),
        *((f"The claim {one.meta.name}", "StorageClass", "", one.storage_class) for one in claims),
        *((pod.name, "ResourceClaim", pod.namespace, item.get("resourceClaimName") or "") for item in items),
        *(
            (f"The claim {claim}", "DeviceClass", "", request["deviceClassName"])
            for claim, request in device_requests(fork, pod)
        ),
    ]
    for who, kind, namespace, name in named:
        if name and listers.get(kind, namespace, name) is None:
            known = [one.manifest["metadata"] for one in listers.all(kind) if hasattr(one, "manifest")]
            there = [one["name"] for one in known if (one.get("namespace") or "") == namespace]
            close = f"; the nearest name is {near}" if (near := pod_edits.nearest(name, there)) else ""
            what = "claim" if kind == "PersistentVolumeClaim" else kind
            key = f"{namespace}/{name}" if namespace else name
            yield f"{who} names the {what} {key}, which is not there{close}."
    devices: Counter[str] = Counter()
    for one in listers.all("ResourceSlice"):
        spec = one.manifest["spec"]
        devices[spec.get("nodeName") or ""] += len(spec.get("devices") or ())
    most, total = max(devices.values(), default=0), devices.total()
    allocations = (
        pod_edits.at(one.manifest, "status", "allocation", "devices") for one in listers.all("ResourceClaim")
    )
    in_use = sum(len((found or {}).get("results") or ()) for found in allocations)
    for claim, request in device_requests(fork, pod) if total else ():
        count = int(request.get("count") or 1)
        if count > most and "" not in devices:
            yield f"The claim {claim} asks for {count} devices on one node, and no node has more than {most}."
        elif total - in_use < count:
            yield f"The claim {claim} asks for {counted(count, 'device')}, and {in_use:,} of all {total:,} are in use."
    for one in claims:
        if not one.storage_class and listers.get("StorageClass", "", "") is None:
            which = f"The claim {one.meta.name} names no StorageClass, and none is the default"
            yield f"{which}: nothing makes a volume for it."
    lacking = (*volumes_created(pod, listers), *storage_extended(pod, listers))
    for note in dict.fromkeys(fix.note for fix, _, _ in lacking):
        yield f"{pod.name} waits for a volume: {note[:1].lower()}{note[1:]}."
    if any(True for _ in claims_recreated(fork, pod)):
        where = (f"{words} at {_any_of(options)}" for _, words, options in volume_places(fork, pod))
        yield f"No node reaches all volumes of {pod.name}: {', '.join(where)}."


def _parts(pod: Pod, resource: str) -> str:
    """What of a pod asks for most of a resource, where it is not its containers."""
    spec = pod.manifest.get("spec") or {}
    of_containers = pod_from({**pod.manifest, "spec": {**spec, "initContainers": [], "overhead": {}}})
    asked, theirs = pod.requests.get(resource, 0), of_containers.requests.get(resource, 0)
    if asked <= theirs or pod_edits.at(spec, "resources", "requests"):
        return ""
    words = []
    for one in spec.get("initContainers") or ():
        alone = pod_from(
            {**pod.manifest, "spec": {**spec, "initContainers": [], "containers": [one], "overhead": {}}}
        )
        amount = alone.requests.get(resource, 0)
        is_sidecar = one.get("restartPolicy") == "Always"
        if amount and (is_sidecar or amount > theirs):
            kind = "sidecar" if is_sidecar else "init container"
            words.append(f"{amount_text(resource, amount)} for its {kind} {one['name']}")
    if overhead := (spec.get("overhead") or {}).get(resource):
        words.append(
            f"{overhead} as overhead of its runtime class {spec.get('runtimeClassName', '')}".rstrip()
        )
    if not words:
        return ""
    rest = f"{amount_text(resource, theirs)} {named(resource)} in its containers"
    return f"{pod.name} asks for {', '.join(words)}, and for {rest}."


def device_requests(fork: Fork, pod: Pod) -> list[tuple[str, Mapping[str, Any]]]:
    """(claim, what it asks exactly) of the pod's claims for devices."""
    found = []
    for kind, name in sorted(claims_of(pod)):
        claim = fork.cache.listers.get(kind, pod.namespace, name) if kind == "ResourceClaim" else None
        spec = {} if claim is None else claim.manifest.get("spec") or {}
        for request in (spec.get("devices") or {}).get("requests") or ():
            if "deviceClassName" in (request.get("exactly") or {}):
                found.append((name, request["exactly"]))
    return found


@dataclass(frozen=True, slots=True)
class Resize:
    """A resize that the kubelet put off: the pod counts for what it asked for already.

    Attributes
    ----------
    back : Pod
        The pod with the requests that it has.
    held : mapping of str to int
        What it holds beyond those.
    """

    pod: Pod
    node: str
    back: Pod
    held: Mapping[str, int]


def resizes(fork: Fork) -> tuple[Resize, ...]:
    """Resizes that are Deferred, those that hold most CPU first."""
    found = []
    for pod in fork.cache.pods_in_order():
        status = pod.manifest.get("status")
        if not status or not _is_deferred(status):
            continue
        has = {
            one["name"]: one.get("allocatedResources") or pod_edits.at(one, "resources", "requests") or {}
            for one in status.get("containerStatuses") or ()
        }
        containers = []
        for one in pod.manifest["spec"].get("containers") or ():
            requests = {**(pod_edits.at(one, "resources", "requests") or {}), **has.get(one["name"], {})}
            containers.append({**one, "resources": {**(one.get("resources") or {}), "requests": requests}})
        back = pod_from({**pod.manifest, "spec": {**pod.manifest["spec"], "containers": containers}})
        held = {
            name: more
            for name, amount in pod.requests.items()
            if (more := amount - back.requests.get(name, 0)) > 0
        }
        if held:
            found.append(Resize(pod, fork.cache.node_name_of(pod.uid) or "", back, held))
    return tuple(sorted(found, key=lambda one: (-one.held.get(CPU, 0), one.pod.key)))


def _is_deferred(status: Mapping[str, Any]) -> bool:
    for one in status.get("conditions") or ():
        if one.get("type") == "PodResizePending" and one.get("reason") == "Deferred":
            return True
    return status.get("resize") == "Deferred"


def held_amounts(resize: Resize) -> str:
    """`8 CPU and 2 Gi memory`."""
    return " and ".join(f"{amount_text(name, amount)} {named(name)}" for name, amount in resize.held.items())


def _held_words(resize: Resize) -> str:
    which = f"The resize of {resize.pod.key} on {resize.node}"
    return f"{which} is Deferred and holds {held_amounts(resize)} that it does not use."


def _one_node(fork: Fork, pod: Pod) -> Iterator[str]:
    owner, cache = pod.meta.controller, fork.cache
    names = pod.required_node_affinity.pre_filter_node_names()
    if owner is None or owner.kind != "DaemonSet" or names is None or len(names) != 1:
        return
    name = next(iter(names))
    begin = f"{pod.key} is for node {name} alone: DaemonSet {owner.name} makes one pod for each node"
    if cache.node(name) is None:
        yield f"{begin}, and {name} is not there."
        return
    attempt, row = fork.attempt(pod), cache.nodes.row_of[name]
    places = np.flatnonzero(attempt.rows == row)
    said = attempt.verdict(int(places[0])) if len(places) else None
    stop = said[0] if said else ""
    near = ", ".join(_missing_words(fork, pod, row)) if stop == "NodeResourcesFit" else ""
    yield f"{begin}. {name} is refused by {stop}{f': {near}' if near else ''}." if stop else f"{begin}."


def _closed_domains(fork: Fork, pod: Pod) -> Iterator[str]:
    """Domains of a hard spread that hold the fewest pods and that the pod cannot enter, with what their nodes are."""
    attempt = fork.attempt(pod)
    state = attempt.filter_states.get("PodTopologySpread")
    if not attempt.pre_filter_status.is_success or state is None:
        return
    snapshot = fork.snapshot
    for constraint in state.constraints:
        domains, refused = constraint.domains, constraint.codes(snapshot.nodes, snapshot.order) != 0
        if constraint.few_domains or not refused.any():
            continue
        emptiest = {
            int(domain)
            for domain in domains.present.tolist()
            if constraint.counts[domain] == constraint.minimum
        }
        values = snapshot.nodes.vocabulary.label_values[constraint.key].values
        closed: dict[str, list[str]] = {}
        for domain in sorted(emptiest):
            rows = np.flatnonzero(domains.of_row == domain).tolist()
            found = {_closed_words(pod, snapshot.nodes.node(row)) for row in rows}
            if "" in found:
                break  # The pod may go there for all that its nodes are: something else is in the way.
            closed.setdefault(" and ".join(sorted(found)), []).append(str(values[domain]))
        else:
            for words, names in closed.items():
                yield _closed_sentence(constraint, words, names)


def _closed_sentence(constraint: Any, words: str, names: list[str]) -> str:
    shown = first_of(names)
    adjective = "emptiest" if constraint.minimum else "empty"
    which, there = (
        (f"The {adjective} domain", "is a node that is")
        if len(names) == 1
        else (f"The {adjective} domains", "are nodes that are")
    )
    most = constraint.minimum + constraint.max_skew
    return (
        f"{which} of the spread over {constraint.key}, {shown}, {there} {words}: no pod can go there,"
        f" so every other domain may hold {most} at most."
    )


def _closed_words(pod: Pod, node: Node) -> str:
    """Why a pod cannot go to a node whatever room it has; empty where it can."""
    for taint in node.taints:
        if taint.effect in pod_edits.KEEPS_OFF and not pod.tolerates(taint):
            marks = pod_edits.marked_by(taint)
            known = {"cordoned nodes": "cordoned", "the control plane": "of the control plane"}
            return known.get(marks) or marks.removeprefix("nodes that are ") or f"tainted {taint}"
    if node.unschedulable and not pod.tolerates(pod_edits.CORDON):
        return "cordoned"
    return ""


def _far_volumes(fork: Fork, pod: Pod) -> Iterator[str]:
    nodes = fork.nodes()
    for _, words, options in volume_places(fork, pod):
        if any(option.items() <= node.meta.labels.items() for node in nodes for option in options):
            continue
        yield f"{words[0].upper()}{words[1:]} is tied to {_any_of(options)}, where there is no node."


def _any_of(options: Sequence[Mapping[str, str]]) -> str:
    return " or ".join(", ".join(f"{key}={value}" for key, value in option.items()) for option in options[:3])


def _missing_words(fork: Fork, pod: Pod, row: int) -> list[str]:
    words = []
    for name, amount in pod.requests.items():
        if amount <= 0 or name == "pods":
            continue
        short = amount - fork.free(name, row)
        if short > 0:
            none = fork.allocatable(name, row) == 0
            words.append(f"no {named(name)}" if none else f"{amount_text(name, short)} {named(name)} short")
    if fork.free("pods", row) <= 0:
        words.append("no room for a pod")
    return words
