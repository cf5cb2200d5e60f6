"""Edits of the cluster: nodes back in use, labelled or added, claims created, and pods that go.

Which pods may go is asked of all nodes in lock-step, each in its world (`framework.runtime.World`): the
k-th pod of every node leaves in one step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise, product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.listers import Listers
from scheduler_core.framework.attempt import Attempt
from scheduler_core.framework.preemption.candidates import PodsOfPlaces, potential_victims
from scheduler_core.objects.defaults import SYSTEM_CRITICAL_PRIORITY
from scheduler_core.objects.node import (
    LABEL_HOSTNAME,
    LABEL_REGION,
    LABEL_REGION_BETA,
    LABEL_ZONE,
    LABEL_ZONE_BETA,
    TAINT_UNSCHEDULABLE,
    Node,
    node_from,
)
from scheduler_core.objects.pod import AffinityTerm, Pod, pod_from
from scheduler_core.objects.resources import CPU
from scheduler_core.objects.storage import (
    BIND_COMPLETED_ANNOTATION,
    NO_PROVISIONER,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    persistent_volume_claim_from,
    persistent_volume_from,
)
from scheduler_core.sim.controllers.volume_binder import DEFAULT_CLASS
from scheduler_core.whatif.fixes import Fix, amount_words, draft
from scheduler_core.whatif.fork import Fork
from scheduler_core.whatif.pod_edits import LIFECYCLE, REQUIRED, nearest

_ABOVE_ALL = 2**62
CLAIM_SIZE = "1Gi"
_ROLE = "node-role.kubernetes.io/"
_CONTROL_PLANE = ("control-plane", "master")
_FACTS: Final = ("kubernetes.io/", "topology.kubernetes.io/", "node.kubernetes.io/")
"""Labels of these say what a node is: put on another one they would be a lie."""
MAX_PLACES: Final = 20
_ZONES: Final = (LABEL_ZONE, LABEL_REGION, LABEL_ZONE_BETA, LABEL_REGION_BETA)

Labels = Mapping[str, str]
NodeEdit = tuple[Fix, Node]


# ---- nodes that are there


def uncordoned(node: Node) -> NodeEdit:
    """The node in use again."""
    spec = dict(node.manifest.get("spec") or {})
    spec.pop("unschedulable", None)
    kept = [taint for taint in spec.pop("taints", None) or () if taint.get("key") != TAINT_UNSCHEDULABLE]
    if kept:
        spec["taints"] = kept
    manifest = {**node.manifest, "spec": spec}
    note, removed = "Other pods may come there too", ("unschedulable: true",)
    return draft("uncordon", f"Uncordon {node.name}", note=note, removed=removed), node_from(manifest)


def repaired(node: Node) -> NodeEdit | None:
    """The node well and set up again; None where no taint says that it is not."""
    ill = [taint.key for taint in node.taints if taint.key in REPAIRS]
    if not ill:
        return None
    spec = dict(node.manifest.get("spec") or {})
    spec["taints"] = [item for item in spec.get("taints") or () if item.get("key") not in REPAIRS]
    status = dict(node.manifest.get("status") or {})
    status["conditions"] = [
        {**one, "status": "True" if one.get("type") == "Ready" else "False"}
        for one in status.get("conditions") or ()
    ]
    manifest = {**node.manifest, "spec": spec, "status": status}
    words, way = REPAIRS[ill[0]]
    made = draft(
        "repair-node",
        f"Repair {node.name}: it is {words}",
        note=way,
        removed=tuple(f"taint: {key}" for key in ill),
        patch=f"kubectl describe node {node.name}  # {way[:1].lower()}{way[1:]}",
    )
    return made, node_from(manifest)


REPAIRS: Final[Mapping[str, tuple[str, str]]] = {
    "node.kubernetes.io/not-ready": ("not ready", "Look at its kubelet and its network plugin"),
    "node.kubernetes.io/unreachable": ("unreachable", "Its kubelet does not answer: bring the machine back"),
    "node.kubernetes.io/network-unavailable": ("without a network", "Look at its network plugin"),
    "node.kubernetes.io/disk-pressure": (
        "short of disk space",
        "Free disk space: images, logs, emptyDir volumes",
    ),
    "node.kubernetes.io/memory-pressure": (
        "short of memory",
        "Look at what uses its memory beyond its requests",
    ),
    "node.kubernetes.io/pid-pressure": ("short of process ids", "Look at what starts so many processes"),
    "node.cloudprovider.kubernetes.io/uninitialized": (
        "uninitialized",
        "Look at the cloud controller manager",
    ),
}
"""Taints that go when a node is well: what the node is, and what to look at."""


def _with_labels(manifest: Mapping[str, Any], labels: Labels) -> dict[str, Any]:
    meta = manifest.get("metadata") or {}
    return {**manifest, "metadata": {**meta, "labels": {**(meta.get("labels") or {}), **labels}}}


def _label_lines(labels: Labels) -> tuple[str, ...]:
    return tuple(f"labels: {{{key}: {value}}}" for key, value in labels.items())


def labelled(nodes: Sequence[Node], labels: Labels, number: int = 1) -> tuple[Fix, tuple[Node, ...]] | None:
    """The first of nodes that are alike, with these labels; None where it has them, or where they say what it is."""
    node = nodes[0]
    put = {key: value for key, value in labels.items() if node.meta.labels.get(key) != value}
    if not put or any(key.startswith(_FACTS) for key in put):
        return None
    was = {key: node.meta.labels[key] for key in put if key in node.meta.labels}
    n_others = len(nodes) - number
    others = f"{n_others:,} other node{'s' if n_others > 1 else ''} like it would do, too" if n_others else ""
    relied = "Pods that look for what it was no longer find it" if was else ""
    names = node.name if number == 1 else f"{number} nodes like {node.name}"
    made = draft(
        "label-node",
        f"Label {names} {', '.join(f'{key}={value}' for key, value in put.items())}",
        note="; ".join(filter(None, (others, relied))),
        removed=_label_lines(was),
        added=_label_lines(put),
        size=0.2 + number * len(put) / 100 + len(was) / 10,
        headline=not was,
    )
    return made, tuple(node_from(_with_labels(one.manifest, put)) for one in nodes[:number])


# ---- claims


def missing_claims(pod: Pod, listers: Listers) -> list[str]:
    """Names of the claims the pod's volumes name and that are not there."""
    named = [(volume.get("persistentVolumeClaim") or {}).get("claimName") for volume in pod.volumes]
    claims = dict.fromkeys(str(name) for name in named if name)
    return [name for name in claims if listers.get("PersistentVolumeClaim", pod.namespace, name) is None]


def claims_created(
    pod: Pod, names: Sequence[str], listers: Listers
) -> Iterator[tuple[Fix, list[dict[str, Any]], list[PersistentVolume | PersistentVolumeClaim]]]:
    """The claims, of each class of storage that makes volumes, the default one first; else of a volume created too.

    With each edit the objects as they are once volumes are bound. A class that waits for a consumer is left to bind.
    """
    for storage_class in [*_classes(listers), None]:
        made: list[dict[str, Any]] = []
        bound: list[PersistentVolume | PersistentVolumeClaim] = []
        for name in names:
            claim = _claim(pod.namespace, name, storage_class.name if storage_class else "")
            volume = _volume(pod.namespace, name, claim["spec"]["storageClassName"])
            made += [claim] if storage_class else [volume, claim]
            if storage_class and storage_class.waits_for_first_consumer:
                bound.append(persistent_volume_claim_from(claim))
                continue
            bound += [persistent_volume_from(volume), _bound(claim, volume["metadata"]["name"])]
        kind = "PersistentVolumeClaim" if len(names) == 1 else "PersistentVolumeClaims"
        keys = " and ".join(f"{pod.namespace}/{name}" for name in names)
        beside = f"of class {storage_class.name}" if storage_class else "and a volume for each"
        note = f"The pod names what is not there; {CLAIM_SIZE} {beside}: choose size and class as the pod needs them"
        created = draft(
            "create-claim",
            f"Create {kind} {keys}" + ("" if storage_class else ", with a volume"),
            note=note,
            added=tuple(f"kind: {item['kind']}, name: {item['metadata']['name']}" for item in made),
            size=float(len(made)),
        )
        yield created, made, bound


def _classes(listers: Listers) -> list[StorageClass]:
    """Classes that make volumes, the default one first."""
    makers = (one for one in listers.all("StorageClass") if one.provisioner not in ("", NO_PROVISIONER))
    return sorted(
        makers,
        key=lambda one: (
            (one.manifest["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) != "true",
            one.name,
        ),
    )


def corrected_classes(
    pod: Pod, listers: Listers
) -> Iterator[tuple[Fix, list[dict[str, Any]], list[PersistentVolume | PersistentVolumeClaim]]]:
    """The pod's unbound claims that name a class that is not there, or none, each with one that is."""
    classes = _classes(listers)
    for volume in pod.volumes:
        name = (volume.get("persistentVolumeClaim") or {}).get("claimName") or ""
        claim = listers.get("PersistentVolumeClaim", pod.namespace, name) if name else None
        if claim is None or claim.volume_name or listers.get("StorageClass", "", claim.storage_class):
            continue
        known = {one.name: one for one in classes}
        named = claim.storage_class
        to = nearest(named, known) if named else next(iter(known), "")
        if not to:
            continue
        manifest = {**claim.manifest, "spec": {**claim.manifest["spec"], "storageClassName": to}}
        made: list[PersistentVolume | PersistentVolumeClaim] = [persistent_volume_claim_from(manifest)]
        if not known[to].waits_for_first_consumer:
            volume_manifest = _volume(pod.namespace, name, to)
            made = [
                persistent_volume_from(volume_manifest),
                _bound(manifest, volume_manifest["metadata"]["name"]),
            ]
        title = f"Correct the storage class {named} of claim {name} to {to}"
        note = f"There is no StorageClass {named}; the nearest name is {to}"
        if not named:
            title, note = (
                f"Give claim {name} the storage class {to}",
                "It names no class, and none is the default",
            )
        lines = {"removed": (f"storageClassName: {named}",) if named else ()}
        lines["added"] = (f"storageClassName: {to}",)
        yield draft("correct-class", title, note=note, **lines), [manifest], made


def released_volumes(
    pod: Pod, listers: Listers
) -> Iterator[tuple[Fix, list[dict[str, Any]], list[PersistentVolume | PersistentVolumeClaim]]]:
    """Volumes that an unbound claim of the pod could have, and that a claim that is gone still holds."""
    for volume in pod.volumes:
        name = (volume.get("persistentVolumeClaim") or {}).get("claimName") or ""
        claim = listers.get("PersistentVolumeClaim", pod.namespace, name) if name else None
        for one in listers.all("PersistentVolume"):
            if claim is None or claim.volume_name:
                break
            held = one.claim_ref
            fits = one.storage_class == claim.storage_class and one.capacity_nano >= (
                claim.requested_nano or 0
            )
            there = None if held is None else listers.get("PersistentVolumeClaim", held.namespace, held.name)
            if held is None or not fits or (there is not None and there.meta.uid == held.uid):
                continue
            spec = {key: value for key, value in one.manifest["spec"].items() if key != "claimRef"}
            free = {**one.manifest, "spec": spec, "status": {"phase": "Available"}}
            reference = {"namespace": pod.namespace, "name": name, "uid": claim.meta.uid}
            taken = {**free, "spec": {**spec, "claimRef": reference}, "status": {"phase": "Bound"}}
            found = draft(
                "release-volume",
                f"Release the volume {one.name}: take its claimRef away",
                note=f"It is kept for the claim {held.namespace}/{held.name}, which is gone; its data stays",
                removed=(f"claimRef: {held.namespace}/{held.name}",),
            )
            yield found, [free], [persistent_volume_from(taken), _bound(claim.manifest, one.name)]


def _bound(claim: Mapping[str, Any], volume: str) -> PersistentVolumeClaim:
    """A claim as it is once its volume is bound."""
    meta = {**claim["metadata"], "annotations": {BIND_COMPLETED_ANNOTATION: "yes"}}
    spec = {**claim["spec"], "volumeName": volume}
    return persistent_volume_claim_from(
        {**claim, "metadata": meta, "spec": spec, "status": {"phase": "Bound"}}
    )


def _claim(namespace: str, name: str, storage_class: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": CLAIM_SIZE}},
            "storageClassName": storage_class,
        },
    }


def _volume(namespace: str, claim: str, storage_class: str) -> dict[str, Any]:
    name = f"{namespace}-{claim}"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": CLAIM_SIZE},
            "claimRef": {"namespace": namespace, "name": claim},
            "hostPath": {"path": f"/data/{name}"},
            "storageClassName": storage_class,
        },
    }


# ---- new nodes


def shape_of(node: Node, but: Collection[str] = ()) -> tuple[Any, ...]:
    """Key that is equal for interchangeable nodes: capacity, lasting taints, labels but the name and those of `but`."""
    labels = {
        key: value
        for key, value in node.meta.labels.items()
        if key != LABEL_HOSTNAME and value != node.name and key not in but
    }
    taints = tuple(taint for taint in node.taints if not taint.key.startswith(LIFECYCLE))
    return tuple(sorted(node.allocatable.items())), taints, tuple(sorted(labels.items()))


def is_control_plane(node: Node) -> bool:
    """Whether kubeadm or a provider marked it so."""
    return any(f"{_ROLE}{role}" in node.meta.labels for role in _CONTROL_PLANE)


def node_like(node: Node, name: str, *, plain: bool = False) -> Node:
    """A new, empty node of the same kind; a `plain` one is not of the control plane."""
    meta = node.manifest.get("metadata") or {}
    labels = {
        key: name if key == LABEL_HOSTNAME or value == node.name else value
        for key, value in (meta.get("labels") or {}).items()
        if not (plain and key.startswith(_ROLE))
    }
    spec = {key: value for key, value in (node.manifest.get("spec") or {}).items() if key != "unschedulable"}
    taints = [item for item in spec.pop("taints", None) or () if not item["key"].startswith(LIFECYCLE)]
    taints = [item for item in taints if not (plain and item["key"].startswith(_ROLE))]
    if taints:
        spec["taints"] = taints
    status = {key: value for key, value in (node.manifest.get("status") or {}).items() if key != "images"}
    return node_from(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "uid": f"uid-of-{name}", "labels": labels},
            "spec": spec,
            "status": status,
        }
    )


# ---- where a node for a pod has to be


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
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(REQUIRED) or {}
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


def volume_places(fork: Fork, pod: Pod) -> list[tuple[str, list[Labels]]]:
    """For each claim of the pod that is tied to places: what ties it, and the labels that a node needs, any of them.

    A bound volume is where its node affinity or its zone labels say; one that is still to be bound where its class
    may make it (`allowedTopologies`), or where unclaimed volumes of the class are.
    """
    get, found = fork.cache.listers.get, []
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
            for free in fork.cache.listers.all("PersistentVolume"):
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


def topology_keys(pod: Pod) -> list[str]:
    """Labels by which the pod has to stand apart from others or near them, hosts left out."""
    spec = pod.manifest.get("spec") or {}
    keys = [
        item["topologyKey"]
        for item in spec.get("topologySpreadConstraints") or ()
        if item.get("whenUnsatisfiable") == "DoNotSchedule"
    ]
    terms = ((spec.get("affinity") or {}).get("podAntiAffinity") or {}).get(REQUIRED) or ()
    keys += [term["topologyKey"] for term in terms]
    return [key for key in dict.fromkeys(keys) if key != LABEL_HOSTNAME]


# ---- pods


def removal_of(fork: Fork, node_name: str, pods: Sequence[Pod], wanted: Mapping[str, int]) -> Fix:
    """The fix that takes `pods` off a node: what becomes of them is not known yet.

    Parameters
    ----------
    wanted : mapping of str to int
        What the pending pod requests: the note says what is freed of these resources.
    """
    waiting = fork.scheduler.waiting_pods
    freed = [
        amount_words(resource, amount)
        for resource in wanted
        if resource != "pods" and (amount := sum(pod.requests.get(resource, 0) for pod in pods))
    ]
    note = f"Frees {', '.join(freed)}" if freed else ""
    removed = tuple(f"kind: Pod, name: {pod.name}, namespace: {pod.namespace}" for pod in pods[:6])
    pod, keys = pods[0], [one.key for one in pods]
    more: dict[str, Any] = {"removed": removed, "size": size_of_losing(pods), "headline": False}
    more["change"] = {"delete": keys}
    if all(one.is_terminating for one in pods):
        title = f"Wait until {first_names(pods)} on {node_name} {'is' if len(pods) == 1 else 'are'} gone"
        return draft("wait", title, **(more | {"note": "It is ending already", "headline": True}))
    if all(waiting.get(one.uid) is not None for one in pods):
        note = f"It holds its place on {node_name} until then"
        harm = f"{len(pods)} pod{'s' if len(pods) > 1 else ''} back to the queue"
        more |= {"note": note, "harm": harm, "change": {"reject": keys}}
        return draft("reject", f"Reject {first_names(pods)} at Permit", **more)
    if len(pods) > 1:
        return draft("free-room", f"Delete {len(pods)} pods on {node_name}", note=note, **more)
    return draft("delete-pod", f"Delete {pod.name} on {node_name}", note=note, **more)


def first_names(pods: Sequence[Pod]) -> str:
    """The name of one pod, or how many there are."""
    return pods[0].name if len(pods) == 1 else f"{len(pods):,} pods"


def size_of_losing(pods: Sequence[Pod]) -> float:
    """The size of the fix that takes `pods` off a node."""
    size = len(pods) + sum(pod.requests.get(CPU, 0) for pod in pods) / 1e9
    return size + max((pod.priority for pod in pods), default=0) / 1e12


@dataclass(slots=True)
class Departures:
    """All pods on the rows where some going might help, and what their going does to their own node.

    Attributes
    ----------
    rows : ndarray of shape (n,), int64
    potential : PodsOfPlaces
        Every pod on each row that may go, the most important first.
    alone : ndarray of shape (m,), bool
        Aligned with `potential.pod_ids`: this pod's going lets the pending pod onto its node.
    needed : ndarray of shape (m,), bool
        Of a set of pods no one of which can stay if the pending pod is to fit; the least important go. Only on
        rows where no single pod's going is enough.
    """

    rows: NDArray[np.int64]
    potential: PodsOfPlaces
    alone: NDArray[np.bool_]
    needed: NDArray[np.bool_]

    def single(self) -> Iterator[tuple[int, int]]:
        """(row, pod id) of each pod whose going is enough."""
        places = self.potential.places
        for index in np.flatnonzero(self.alone).tolist():
            yield int(self.rows[places[index]]), int(self.potential.pod_ids[index])

    def sets(self) -> Iterator[tuple[int, list[int]]]:
        """(row, pod ids) of each set of at least two."""
        needed = self.needed.nonzero()[0]
        places, begins = np.unique(self.potential.places[needed], return_index=True)
        pod_ids = self.potential.pod_ids[needed].tolist()
        for place, (begin, end) in zip(
            places.tolist(), pairwise([*begins.tolist(), len(pod_ids)]), strict=True
        ):
            yield int(self.rows[place]), pod_ids[begin:end]


def may_go_below(pod: Pod) -> int:
    """Pods of a lower priority than this may have to go for the pod; the system's only for one of the system's."""
    return SYSTEM_CRITICAL_PRIORITY if pod.priority < SYSTEM_CRITICAL_PRIORITY else _ABOVE_ALL


def departures(attempt: Attempt) -> Departures:
    """Try the going of each pod of each node that may go, and of sets of them."""
    snapshot = attempt.snapshot
    rows = snapshot.rows
    potential = potential_victims(snapshot.nodes, rows, may_go_below(attempt.pod))
    occupied = np.flatnonzero(potential.counts)
    rows, potential = rows[occupied], potential.taken(occupied)
    result = Departures(
        rows,
        potential,
        np.zeros(len(potential.pod_ids), np.bool_),
        np.zeros(len(potential.pod_ids), np.bool_),
    )
    if not len(rows):
        return result
    # Who does not fit beside those that stay alone fits beside no more.
    world = attempt.what_if(rows)
    counts, begins = potential.counts, potential.starts[:-1]
    for turn in range(int(counts.max())):
        places = np.flatnonzero(counts > turn)
        world.remove_pods(places, potential.pod_ids[begins[places] + turn])
    hopeful = np.flatnonzero(world.feasible(np.arange(len(rows))))
    if not len(hopeful):
        return result
    _try_each(attempt, result, hopeful)
    solved = np.unique(potential.places[result.alone])
    left = np.setdiff1d(hopeful, solved)
    for turn in range(int(counts[left].max()) if len(left) else 0):
        places = left[counts[left] > turn]
        indices = begins[places] + turn
        pod_ids = potential.pod_ids[indices]
        world.add_pods(places, pod_ids)
        fits = world.feasible(places)
        result.needed[indices] = ~fits
        world.remove_pods(places[~fits], pod_ids[~fits])
    return result


def _try_each(attempt: Attempt, result: Departures, hopeful: NDArray[np.int64]) -> None:
    potential = result.potential
    counts, begins = potential.counts[hopeful], potential.starts[:-1][hopeful]
    world = attempt.what_if(result.rows[hopeful])
    for turn in range(int(counts.max())):
        places = np.flatnonzero(counts > turn)
        indices = begins[places] + turn
        pod_ids = potential.pod_ids[indices]
        world.remove_pods(places, pod_ids)
        result.alone[indices] = world.feasible(places)
        world.add_pods(places, pod_ids)


def matters_elsewhere(attempt: Attempt) -> list[int]:
    """Ids of pods whose going may help on other nodes than their own, the least important first.

    Those are pods that required terms or hard spread constraints of the pending pod are about, and pods that
    carry required anti-affinity themselves.
    """
    pod, snapshot = attempt.pod, attempt.snapshot
    pods, listers = snapshot.pods, snapshot.listers
    found: dict[int, None] = {}
    may_go = (pods.row >= 0) & (pods.priority < may_go_below(pod))
    is_about_others = pod.has_required_anti_affinity or any(
        item.when_unsatisfiable == "DoNotSchedule" for item in pod.topology_spread
    )
    asked = may_go.nonzero()[0].tolist() if is_about_others else snapshot.matching.carriers.pods()
    for pod_id in asked:
        if not may_go[pod_id]:
            continue
        other = pods[pod_id]
        if other.has_required_anti_affinity or _is_meant(pod, other, listers):
            found[pod_id] = None
    return sorted(found, key=lambda pod_id: (int(pods.priority[pod_id]), -int(pods.start_ns[pod_id]), pod_id))


def _is_meant(pod: Pod, other: Pod, listers: Listers) -> bool:
    return any(
        item.when_unsatisfiable == "DoNotSchedule"
        and other.namespace == pod.namespace
        and item.selector.matches(other.labels)
        for item in pod.topology_spread
    ) or any(is_about(term, other, listers) for term in pod.required_anti_affinity)


def is_about(term: AffinityTerm, other: Pod, listers: Listers) -> bool:
    """Whether a term of a pod is about another pod."""
    if other.namespace not in term.namespaces:
        selector = term.namespace_selector
        if selector.is_nothing or not selector.matches(listers.namespace_labels(other.namespace) or {}):
            return False
    return bool(term.selector.matches(other.labels))
