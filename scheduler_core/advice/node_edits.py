"""Edits of nodes that ask for more than one that is there already: labels put on, larger nodes, nodes of a new zone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from typing import Any, Final

from scheduler_core.advice import cluster_edits, edits
from scheduler_core.advice.edits import COST_NODE, COST_QUEUE, Edit, amount_words, written
from scheduler_core.advice.sandbox import Sandbox
from scheduler_core.objects.node import (
    LABEL_HOSTNAME,
    LABEL_REGION,
    LABEL_REGION_BETA,
    LABEL_ZONE,
    LABEL_ZONE_BETA,
    Node,
    node_from,
)
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.objects.resources import PODS
from scheduler_core.objects.storage import PersistentVolume, StorageClass

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
FACTORS: Final = (2, 4, 8, 16)
_FACTS: Final = ("kubernetes.io/", "topology.kubernetes.io/", "node.kubernetes.io/")
"""Labels of these say what a node is: put on another one they would be a lie."""

MAX_PLACES: Final = 20
_ZONES: Final = (LABEL_ZONE, LABEL_REGION, LABEL_ZONE_BETA, LABEL_REGION_BETA)

Labels = Mapping[str, str]


def without_node_rules(pod: Pod) -> Pod:
    """The pod as if it took every node's labels."""
    spec = {key: value for key, value in pod.manifest["spec"].items() if key != "nodeSelector"}
    affinity = {key: value for key, value in (spec.get("affinity") or {}).items() if key != "nodeAffinity"}
    return pod_from({**pod.manifest, "spec": {**spec, "affinity": affinity}})


def wanted_labels(pod: Pod) -> list[Labels]:
    """Labels a node may lack for the pod: those of its selector with each of its required terms.

    A term that asks for fields, for a label's absence or for a comparison is left out: no label put on makes it true.
    """
    spec = pod.manifest.get("spec") or {}
    selector: dict[str, str] = dict(spec.get("nodeSelector") or {})
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    found: list[Labels] = []
    for term in required.get("nodeSelectorTerms") or [{}]:
        expressions: Sequence[Mapping[str, Any]] = term.get("matchExpressions") or ()
        if term.get("matchFields") or any(
            item["operator"] not in ("In", "Exists", "NotIn", "DoesNotExist") for item in expressions
        ):
            continue
        labels = dict(selector)
        for item in expressions:
            if item["operator"] == "In":
                labels.setdefault(item["key"], item["values"][0])
            elif item["operator"] == "Exists":
                labels.setdefault(item["key"], "true")
        found.append(labels)
    return [labels for labels in found if labels]


def places_for(sandbox: Sandbox, pod: Pod) -> list[tuple[Labels, str]]:
    """Labels of a new node that the pod could go to, and the volume that asks for them (empty: none does).

    They are those of its own rules with those of each place where all its volumes are, or may be.
    """
    own: list[Labels] = wanted_labels(pod) or [{}]
    found: list[tuple[Labels, str]] = [(labels, "") for labels in own]
    for where, options in volume_places(sandbox, pod):
        both: list[tuple[Labels, str]] = [
            ({**labels, **option}, "; ".join(filter(None, (why, where))))
            for labels, why in found
            for option in options
            if all(labels.get(key, value) == value for key, value in option.items())
        ]
        found = both[:MAX_PLACES]
    return [item for item in found if item[0]]


def volume_places(sandbox: Sandbox, pod: Pod) -> list[tuple[str, list[Labels]]]:
    """For each claim of the pod that is tied to places: what ties it, and the labels that a node needs, any of them.

    A bound volume is where its node affinity or its zone labels say; one that is still to be bound where its class
    may make it (`allowedTopologies`), or where unclaimed volumes of the class are.
    """
    get, found = sandbox.scheduler.cache.listers.get, []
    for volume in (pod.manifest.get("spec") or {}).get("volumes") or ():
        source = volume.get("persistentVolumeClaim") or {}
        name = f"{pod.name}-{volume.get('name')}" if volume.get("ephemeral") else source.get("claimName", "")
        claim = get("PersistentVolumeClaim", pod.namespace, name) if name else None
        if claim is None:
            continue
        if claim.volume_name:
            bound = get("PersistentVolume", "", claim.volume_name)
            options = [] if bound is None else _labels_of_volume(bound)
            words = f"PersistentVolume {claim.volume_name} of claim {name}"
        else:
            kind = get("StorageClass", "", claim.storage_class)
            options = _labels_of_class(kind) if kind is not None else []
            for free in sandbox.scheduler.cache.listers.all("PersistentVolume"):
                if free.claim_ref is None and free.storage_class == claim.storage_class:
                    options += _labels_of_volume(free)
            words = f"claim {name} of StorageClass {claim.storage_class}"
        if options:
            found.append((words, options))
    return found


def _labels_of_volume(volume: PersistentVolume) -> list[Labels]:
    required = (volume.manifest["spec"].get("nodeAffinity") or {}).get("required") or {}
    terms = [
        [
            (item["key"], list(item.get("values") or ()))
            for item in term.get("matchExpressions") or ()
            if item["operator"] == "In"
        ]
        for term in required.get("nodeSelectorTerms") or ()
    ]
    zones = [(key, value.split("__")) for key, value in volume.meta.labels.items() if key in _ZONES]
    return _each_of([[*term, *zones] for term in terms or [[]]])


def _labels_of_class(kind: StorageClass) -> list[Labels]:
    return _each_of([[(key, list(values)) for key, values in term] for term in kind.allowed_topologies])


def _each_of(terms: Iterable[Sequence[tuple[str, Sequence[str]]]]) -> list[Labels]:
    """Every choice of one value for each key, term by term."""
    return [
        dict(choice)
        for term in terms
        if term
        for choice in islice(
            product(*([(key, value) for value in values] for key, values in term)), MAX_PLACES
        )
    ]


def labelled(nodes: Sequence[Node], labels: Labels) -> tuple[Edit, Node] | None:
    """The first of nodes that are alike, with these labels; None where it has them, or where they say what it is."""
    node = nodes[0]
    put = {key: value for key, value in labels.items() if node.meta.labels.get(key) != value}
    if not put or any(key.startswith(_FACTS) for key in put):
        return None
    meta = dict(node.manifest.get("metadata") or {})
    manifest = {**node.manifest, "metadata": {**meta, "labels": {**(meta.get("labels") or {}), **put}}}
    was = [f"labels: {{{key}: {node.meta.labels[key]}}}" for key in put if key in node.meta.labels]
    n_others = len(nodes) - 1
    others = f"{n_others:,} other node{'s' if n_others > 1 else ''} like it would do, too" if n_others else ""
    relied = "Pods that look for what it was no longer find it" if was else ""
    edit = Edit(
        edits.LABEL_NODE,
        edits.NODES,
        f"Label {node.name} {', '.join(f'{key}={value}' for key, value in put.items())}",
        "; ".join(filter(None, (others, relied))),
        tuple(was),
        tuple(f"labels: {{{key}: {value}}}" for key, value in put.items()),
        COST_QUEUE,
        "1 label" if len(put) == 1 else f"{len(put)} labels",
        0.2 + len(put) / 100 + len(was) / 10,
        {"write": manifest},
    )
    return edit, node_from(manifest)


def like_with(node: Node, name: str, labels: Labels, why: str = "") -> tuple[Edit, Node]:
    """A new node like one, with other labels: they say where it is and what it is."""
    base, like = cluster_edits.node_like(node, name)
    zone = next((value for key, value in labels.items() if key.endswith("/zone")), None)
    # A node is in one zone, whatever keys say so.
    same = {} if zone is None else {key: zone for key in like.meta.labels if key.endswith("/zone")}
    put = {key: value for key, value in {**same, **labels}.items() if like.meta.labels.get(key) != value}
    meta = like.manifest["metadata"]
    manifest = {**like.manifest, "metadata": {**meta, "labels": {**meta["labels"], **put}}}
    made = node_from(manifest)
    words = ", ".join(f"{key}={value}" for key, value in put.items() if key not in same or key == LABEL_ZONE)
    title = f"Add a node like {node.name} with {words}"
    if set(put) <= {*same, *(key for key in labels if key.endswith("/zone"))} and zone is not None:
        title = f"Add a node like {node.name} in zone {zone}"
    if LABEL_HOSTNAME in labels:
        title = f"Bring back the node {name}, like {node.name}"
    edit = replace(
        base,
        kind=edits.ADD_LABELLED_NODE,
        title=title,
        note="; ".join(filter(None, (f"There is {why}" if why else "", cluster_edits.described(made)))),
        added=(*base.added, *(f"labels: {{{key}: {value}}}" for key, value in put.items())),
        size=base.size + len(put) / 100,
        change={"write": manifest},
    )
    return edit, made


def larger(node: Node, name: str) -> Iterator[tuple[Edit, Node]]:
    """New nodes like one, each twice the size of the one before."""
    base, like = cluster_edits.node_like(node, name)
    for factor in FACTORS:
        allocatable = {
            resource: written(resource, amount if resource == PODS else amount * factor)
            for resource, amount in like.allocatable.items()
        }
        manifest = {**like.manifest, "status": {**like.manifest["status"], "allocatable": allocatable}}
        made = node_from(manifest)
        size = ", ".join(
            amount_words(resource, amount)
            for resource, amount in made.allocatable.items()
            if amount and resource != PODS
        )
        edit = replace(
            base,
            kind=edits.ADD_LARGER_NODE,
            title=f"Add a node like {node.name}, {factor} times as large",
            note=size,
            price="1 larger node more",
            size=base.size * factor,
            change={"write": manifest},
        )
        yield edit, made


def topology_keys(pod: Pod) -> list[str]:
    """Labels by which the pod has to stand apart from others or near them, hosts left out."""
    spec = pod.manifest.get("spec") or {}
    keys = [
        item["topologyKey"]
        for item in spec.get("topologySpreadConstraints") or ()
        if item.get("whenUnsatisfiable") == "DoNotSchedule"
    ]
    terms = ((spec.get("affinity") or {}).get("podAntiAffinity") or {}).get(_REQUIRED) or ()
    keys += [term["topologyKey"] for term in terms]
    return [key for key in dict.fromkeys(keys) if key != LABEL_HOSTNAME]


def in_new_domain(node: Node, name: str, key: str) -> tuple[Edit, Node]:
    """A new node like one, in a zone (or what `key` tells) of its own."""
    base, like = cluster_edits.node_like(node, name)
    meta = like.manifest["metadata"]
    value = f"{node.meta.labels.get(key, 'zone')}-new"
    manifest = {**like.manifest, "metadata": {**meta, "labels": {**meta["labels"], key: value}}}
    made = node_from(manifest)
    edit = replace(
        base,
        kind=edits.ADD_ZONE,
        title=f"Add a node like {node.name} in a new {key.rsplit('/', 1)[-1]}",
        note=cluster_edits.described(made),
        added=(*base.added, f"labels: {{{key}: {value}}}"),
        cost=COST_NODE,
        price="1 node in a new place",
        size=base.size + 1,
        change={"write": manifest},
    )
    return edit, made
