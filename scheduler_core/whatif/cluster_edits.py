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
from scheduler_core.fork import INSTANCE_TYPE, Fork
from scheduler_core.framework.attempt import Attempt
from scheduler_core.framework.preemption.candidates import PodsOfPlaces, potential_victims
from scheduler_core.objects.defaults import SYSTEM_CRITICAL_PRIORITY
from scheduler_core.objects.meta import object_of
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
from scheduler_core.objects.resources import CPU, MEMORY
from scheduler_core.objects.storage import (
    BIND_COMPLETED_ANNOTATION,
    NO_PROVISIONER,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    csi_storage_capacity_from,
    persistent_volume_claim_from,
    persistent_volume_from,
)
from scheduler_core.sim.controllers.volume_binder import DEFAULT_CLASS
from scheduler_core.whatif.fixes import Fix, amount_words, counted, draft, written
from scheduler_core.whatif.pod_edits import RENAMED, REQUIRED, STARTING, TAINTS, is_passing, nearest

_ABOVE_ALL = 2**62
CLAIM_SIZE = "1Gi"
HUGE_PAGES: Final = "hugepages-"
_ROLE = "node-role.kubernetes.io/"
_FACTS: Final = ("kubernetes.io/", "beta.kubernetes.io/", "topology.kubernetes.io/", "node.kubernetes.io/")
"""Labels of these say what a node is: put on another one they would be a lie."""
MAX_PLACES: Final = 20
_ZONES: Final = (LABEL_ZONE, LABEL_REGION, LABEL_ZONE_BETA, LABEL_REGION_BETA)

MAX_POOLS: Final = 3
ONE_POD: Final = "ReadWriteOncePod"
SHARED_ON_NODE: Final = "ReadWriteOnce"

Labels = Mapping[str, str]
NodeEdit = tuple[Fix, Node]
ClaimEdit = tuple[Fix, list[dict[str, Any]], list[Any]]
"""A fix, the manifests that it writes, and the objects as they are once volumes are bound."""


# ---- nodes that are there


def uncordoned(node: Node) -> NodeEdit:
    """The node in use again."""
    spec = dict(node.manifest.get("spec") or {})
    spec.pop("unschedulable", None)
    kept = [taint for taint in spec.pop("taints", None) or () if taint.get("key") != TAINT_UNSCHEDULABLE]
    if kept:
        spec["taints"] = kept
    return draft("uncordon", {"node": node.name}), node_from({**node.manifest, "spec": spec})


def repaired(node: Node) -> NodeEdit | None:
    """The node well and set up again; None where no taint says that it is not."""
    found = {taint.key: ailment for taint in node.taints if (ailment := _ailment(taint.key)) is not None}
    if not found:
        return None
    spec = dict(node.manifest.get("spec") or {})
    spec["taints"] = [item for item in spec.get("taints") or () if item.get("key") not in found]
    status = dict(node.manifest.get("status") or {})
    status["conditions"] = [
        {**one, "status": "True" if one.get("type") == "Ready" else "False"}
        for one in status.get("conditions") or ()
    ]
    words, way = next(iter(found.values()))
    look = f"{way[:1].lower()}{way[1:]}"
    made = draft("repair-node", {"node": node.name, "ailment": words, "way": way, "look": look})
    return made, node_from({**node.manifest, "spec": spec, "status": status})


def _ailment(key: str) -> tuple[str, str] | None:
    """What a node with a taint of this key is, and what to look at; None where the taint says something else."""
    if key.endswith(STARTING):
        agent = key.removesuffix(STARTING)
        return (
            f"without the agent of {agent}",
            f"Look at the DaemonSet of {agent}: its pod takes the taint away",
        )
    row = TAINTS.get(key, {})
    return (row["ailment"], row["look"]) if "ailment" in row else None


def provided(node: Node, resource: str, amount: int, why: str) -> NodeEdit:
    """The node with a resource that it does not report.

    Parameters
    ----------
    why : str
        What says that it has it; empty where nothing does.
    """
    status = dict(node.manifest.get("status") or {})
    for name in ("capacity", "allocatable"):
        status[name] = {**(status.get(name) or {}), resource: str(amount)}
    form = "/pages" if resource.startswith(HUGE_PAGES) else "/plugin" if why else ""
    words = {"amount": written(resource, amount), "resource": resource, "node": node.name, "why": why}
    return draft(f"provide-resource{form}", words), node_from({**node.manifest, "status": status})


def slice_of(node_name: str, driver: str, count: int) -> dict[str, Any]:
    """The devices that a driver publishes of a node."""
    spec = {
        "driver": driver,
        "nodeName": node_name,
        "pool": {"name": node_name, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"device-{number}"} for number in range(count)],
    }
    return object_of("resource.k8s.io/v1", "ResourceSlice", {"name": f"{node_name}-{driver}"}, spec=spec)


def slice_like(manifest: Mapping[str, Any], node_name: str, factor: int) -> dict[str, Any]:
    """The devices of a node as those of another one, so many times as many."""
    spec = manifest["spec"]
    devices = [
        {**one, "name": f"{one['name']}{f'-{turn}' if turn else ''}"}
        for turn in range(factor)
        for one in spec.get("devices") or ()
    ]
    pool = {**spec["pool"], "name": node_name}
    meta = {"name": f"{node_name}-{spec['driver']}-{manifest['metadata']['name']}"[:253]}
    spec = {**spec, "nodeName": node_name, "pool": pool, "devices": devices}
    return {**manifest, "metadata": meta, "spec": spec}


def said_to_have(node: Node, resource: str, types: Collection[str] = ()) -> str:
    """What says that a node has devices of which it reports none; empty where nothing does.

    Parameters
    ----------
    types : collection of str
        Instance types that have the resource.
    """
    name = resource.rsplit("/", 1)[-1]
    if resource in (node.manifest.get("status") or {}).get("capacity", {}) or resource in node.allocatable:
        return f"its status lists {resource}"
    for key, value in node.meta.labels.items():
        if value != "false" and (key.startswith(resource) or (name == "gpu" and "accelerator" in key)):
            return f"its label is {key}={value}"
        if key == INSTANCE_TYPE and value in types:
            return f"{value} has {name}"
    taint = next((one for one in node.taints if one.key == resource), None)
    return "" if taint is None else f"its taint is {taint}"


def _with_labels(manifest: Mapping[str, Any], labels: Labels) -> dict[str, Any]:
    meta = manifest.get("metadata") or {}
    return {**manifest, "metadata": {**meta, "labels": {**(meta.get("labels") or {}), **labels}}}


def labelled(nodes: Sequence[Node], labels: Labels, number: int = 1) -> tuple[Fix, tuple[Node, ...]] | None:
    """The first of nodes that are alike, with these labels; None where it has them, or where they say what it is."""
    node = nodes[0]
    put = {key: value for key, value in labels.items() if node.meta.labels.get(key) != value}
    if not put or any(key.startswith(_FACTS) or key in RENAMED for key in put):
        return None
    was = {key: node.meta.labels[key] for key in put if key in node.meta.labels}
    n_others = len(nodes) - number
    others = f"{n_others:,} other node{'s' if n_others > 1 else ''} like it would do, too" if n_others else ""
    relied = "Pods that look for what it was no longer find it" if was else ""
    names = node.name if number == 1 else f"{number} nodes like {node.name}"
    made = draft(
        "label-node",
        {"nodes": names, "labels": ", ".join(f"{key}={value}" for key, value in put.items())},
        note="; ".join(filter(None, (others, relied))),
        size=0.2 + number * len(put) / 100 + len(was) / 10,
        headline=not was,
    )
    return made, tuple(node_from(_with_labels(one.manifest, put)) for one in nodes[:number])


def given_domains(nodes: Sequence[Node], key: str, *, is_there: bool) -> tuple[Fix, tuple[Node, ...]] | None:
    """The nodes, each in a domain for itself; None where there is none, or where the label is for others to put on.

    Parameters
    ----------
    is_there : bool
        Whether another node has the label.
    """
    if not nodes or (is_there and key.startswith(_FACTS)):
        return None
    last = key.rpartition("/")[2]
    names = nodes[0].name if len(nodes) == 1 else f"{len(nodes):,} nodes like {nodes[0].name}"
    they = "It has" if len(nodes) == 1 else "They have"
    made = draft(
        "label-node/domains",
        {"nodes": names, "key": key, "they": they, "last": last},
        size=0.2 + len(nodes) / 100,
        patch="\n".join(
            f"kubectl label node {node.name} {key}={last}-{n}" for n, node in enumerate(nodes, 1)
        ),
    )
    return made, tuple(
        node_from(_with_labels(node.manifest, {key: f"{last}-{n}"})) for n, node in enumerate(nodes, 1)
    )


# ---- claims


def missing_claims(pod: Pod, listers: Listers) -> list[str]:
    """Names of the claims the pod's volumes name and that are not there."""
    named = [(volume.get("persistentVolumeClaim") or {}).get("claimName") for volume in pod.volumes]
    claims = dict.fromkeys(str(name) for name in named if name)
    return [name for name in claims if listers.get("PersistentVolumeClaim", pod.namespace, name) is None]


def unbound_claims(pod: Pod, listers: Listers) -> Iterator[PersistentVolumeClaim]:
    """Claims of the pod's volumes that are there and have no volume."""
    return (claim for claim in _claims(pod, listers) if not claim.volume_name)


def _claims(pod: Pod, listers: Listers) -> Iterator[PersistentVolumeClaim]:
    for volume in pod.volumes:
        name = (volume.get("persistentVolumeClaim") or {}).get("claimName") or ""
        if volume.get("ephemeral"):
            name = f"{pod.name}-{volume['name']}"
        claim = listers.get("PersistentVolumeClaim", pod.namespace, name) if name else None
        if claim is not None:
            yield claim


def claims_shared(pod: Pod, listers: Listers) -> Iterator[ClaimEdit]:
    """The pod's claims that are for one pod alone, each for all pods of a node."""
    for claim in _claims(pod, listers):
        if claim.volume_name and ONE_POD in claim.access_modes:
            spec = {**claim.manifest["spec"], "accessModes": [SHARED_ON_NODE]}
            manifest = {**claim.manifest, "spec": spec}
            fix = draft("recreate-claim/shared", {"name": claim.meta.name})
            yield fix, [manifest], [persistent_volume_claim_from(manifest)]


def claims_created(pod: Pod, names: Sequence[str], listers: Listers) -> Iterator[ClaimEdit]:
    """The claims, of each class of storage that makes volumes, the default one first; else of a volume created too.

    A class that waits for a consumer is left to bind.
    """
    for storage_class in [*_makers(listers), None]:
        made: list[dict[str, Any]] = []
        bound: list[PersistentVolume | PersistentVolumeClaim] = []
        for name in names:
            claim = _claim(pod.namespace, name, storage_class.name if storage_class else "")
            made += [claim] if storage_class else [_volume_for(claim), claim]
            bound += _once_bound(claim, storage_class)
        kind = "PersistentVolumeClaim" if len(names) == 1 else "PersistentVolumeClaims"
        keys = " and ".join(f"{pod.namespace}/{name}" for name in names)
        beside = f"of class {storage_class.name}" if storage_class else "and a volume for each"
        claims = f"{kind} {keys}" + ("" if storage_class else ", with a volume")
        words = {"claims": claims, "size": CLAIM_SIZE, "beside": beside}
        yield draft("create-claim", words, size=float(len(made))), made, bound


def _makers(listers: Listers) -> list[StorageClass]:
    """Classes that make volumes, the default one first."""
    makers = (one for one in listers.all("StorageClass") if one.provisioner not in ("", NO_PROVISIONER))

    def order(one: StorageClass) -> tuple[bool, str]:
        return one.annotations.get(DEFAULT_CLASS) != "true", one.name

    return sorted(makers, key=order)


def corrected_classes(pod: Pod, listers: Listers) -> Iterator[ClaimEdit]:
    """The pod's unbound claims that name a class that is not there, or none, each with one that is."""
    makers = _makers(listers)
    known = {one.name: one for one in (*makers, *listers.all("StorageClass"))}
    for claim in unbound_claims(pod, listers):
        name, named = claim.meta.name, claim.storage_class
        to = nearest(named, known) if named else next((one.name for one in makers), "")
        if not to or named in known:
            continue
        manifest = {**claim.manifest, "spec": {**claim.manifest["spec"], "storageClassName": to}}
        free = (one for one in _free_volumes(listers) if one.storage_class == to)
        volume = next((one for one in free if not _mismatch(claim, one)), None)
        made = _once_bound(manifest, known[to], volume)
        form = "correct-class" if named else "correct-class/none"
        yield draft(form, {"name": name, "named": named, "to": to}), [manifest], made


def _free_volumes(listers: Listers) -> list[PersistentVolume]:
    return [one for one in listers.all("PersistentVolume") if one.claim_ref is None]


def _mismatch(claim: PersistentVolumeClaim, volume: PersistentVolume) -> str:
    """Why a claim cannot have a volume of its class; empty where it can."""
    wanted = claim.requested_nano or 0
    if volume.capacity_nano < wanted:
        sizes = (written(MEMORY, nano // 10**9) for nano in (volume.capacity_nano, wanted))
        return "it has {} and {} is asked for".format(*sizes)
    modes = [mode for mode in claim.access_modes if mode not in volume.access_modes]
    return f"it is {', '.join(volume.access_modes)} and {', '.join(modes)} is asked for" if modes else ""


def volumes_created(pod: Pod, listers: Listers) -> Iterator[ClaimEdit]:
    """Volumes for the pod's unbound claims for which none is made, and no free one will do."""
    for claim in unbound_claims(pod, listers):
        kind = listers.get("StorageClass", "", claim.storage_class)
        if kind is None or kind.provisioner not in ("", NO_PROVISIONER):
            continue
        near = [
            f"{one.name} will not do: {why}"
            for one in _free_volumes(listers)
            if one.storage_class == claim.storage_class and (why := _mismatch(claim, one))
        ]
        note = "; ".join((f"Nothing makes volumes of class {claim.storage_class}", *near[:2]))
        size = written(MEMORY, (claim.requested_nano or 0) // 10**9)
        modes = ", ".join(claim.access_modes)
        words = {"size": size, "modes": modes, "claim": claim.meta.name}
        volume = _volume_for(claim.manifest)
        made = [persistent_volume_from(volume), _bound(claim.manifest, volume["metadata"]["name"])]
        yield draft("create-volume", words, note=note), [volume], made


def released_volumes(pod: Pod, listers: Listers) -> Iterator[ClaimEdit]:
    """Volumes that an unbound claim of the pod could have, and that a claim that is gone still holds."""
    for claim in unbound_claims(pod, listers):
        for one in listers.all("PersistentVolume"):
            held = one.claim_ref
            there = None if held is None else listers.get("PersistentVolumeClaim", held.namespace, held.name)
            is_other = one.storage_class != claim.storage_class or _mismatch(claim, one)
            if held is None or is_other or (there is not None and there.meta.uid == held.uid):
                continue
            spec = {key: value for key, value in one.manifest["spec"].items() if key != "claimRef"}
            free = {**one.manifest, "spec": spec, "status": {"phase": "Available"}}
            reference = {"namespace": pod.namespace, "name": claim.meta.name, "uid": claim.meta.uid}
            taken = {**free, "spec": {**spec, "claimRef": reference}, "status": {"phase": "Bound"}}
            words = {"name": one.name, "held": f"{held.namespace}/{held.name}"}
            made = [persistent_volume_from(taken), _bound(claim.manifest, one.name)]
            yield draft("release-volume", words), [free], made


def storage_extended(pod: Pod, listers: Listers) -> Iterator[ClaimEdit]:
    """More room of the storage that the pod's unbound claims wait for, where there is most of it."""
    for claim in unbound_claims(pod, listers):
        wanted = -(-(claim.requested_nano or 0) // 10**9)
        pools = [
            (one.capacity_bytes or 0, one)
            for one in listers.all("CSIStorageCapacity")
            if one.storage_class == claim.storage_class and (one.largest_volume_bytes or 0) < wanted
        ]
        for has, one in sorted(pools, key=lambda item: -item[0])[:MAX_POOLS]:
            manifest = {key: value for key, value in one.manifest.items() if key != "maximumVolumeSize"}
            manifest["capacity"] = str(wanted)
            sizes = " to ".join(written(MEMORY, amount) for amount in (has, wanted))
            words = {"class": claim.storage_class, "sizes": sizes, "topology": one.node_topology}
            fix = draft("add-storage", {**words, "claim": claim.meta.name})
            yield fix, [manifest], [csi_storage_capacity_from(manifest)]


def claims_recreated(fork: Fork, pod: Pod) -> Iterator[ClaimEdit]:
    """Of bound claims whose volumes are in places that no node is in together, each where the other is."""
    tied = volume_places(fork, pod)
    for claim, _, options in tied:
        others = [other for one, _, other in tied if one is not claim]
        apart = [
            other
            for other in others
            if not any(one.get(key, value) == value for one in options for key, value in other[0].items())
        ]
        if claim.volume_name and apart:
            where = ", ".join(f"{key}={value}" for key, value in apart[0][0].items())
            volume = _volume_for(claim.manifest)
            fix = draft("recreate-claim", {"name": claim.meta.name, "where": where})
            made = [persistent_volume_from(volume), _bound(claim.manifest, volume["metadata"]["name"])]
            spec = {key: value for key, value in claim.manifest["spec"].items() if key != "volumeName"}
            yield fix, [{**claim.manifest, "spec": spec}], made


def _once_bound(
    claim: Mapping[str, Any], kind: StorageClass | None, volume: PersistentVolume | None = None
) -> list[PersistentVolume | PersistentVolumeClaim]:
    """A claim as it is once it has a volume; one of a class that waits for a consumer is left to bind."""
    if kind is not None and kind.waits_for_first_consumer:
        return [persistent_volume_claim_from(claim)]
    made = dict(_volume_for(claim) if volume is None else volume.manifest)
    meta = claim["metadata"]
    made["spec"] = {**made["spec"], "claimRef": {"namespace": meta["namespace"], "name": meta["name"]}}
    return [persistent_volume_from(made), _bound(claim, made["metadata"]["name"])]


def _bound(claim: Mapping[str, Any], volume: str) -> PersistentVolumeClaim:
    """A claim as it is once its volume is bound."""
    meta = {**claim["metadata"], "annotations": {BIND_COMPLETED_ANNOTATION: "yes"}}
    spec = {**claim["spec"], "volumeName": volume}
    return persistent_volume_claim_from(
        {**claim, "metadata": meta, "spec": spec, "status": {"phase": "Bound"}}
    )


def _claim(namespace: str, name: str, storage_class: str) -> dict[str, Any]:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": CLAIM_SIZE}}}
    spec = {**asked, "storageClassName": storage_class}
    return object_of("v1", "PersistentVolumeClaim", {"name": name, "namespace": namespace}, spec=spec)


def _volume_for(claim: Mapping[str, Any]) -> dict[str, Any]:
    """A volume for a claim."""
    meta, spec = claim["metadata"], claim["spec"]
    name = f"{meta['namespace']}-{meta['name']}"
    made = {
        "accessModes": spec["accessModes"],
        "capacity": {"storage": spec["resources"]["requests"]["storage"]},
        "claimRef": {"namespace": meta["namespace"], "name": meta["name"]},
        "hostPath": {"path": f"/data/{name}"},
        "storageClassName": spec.get("storageClassName") or "",
    }
    return object_of("v1", "PersistentVolume", {"name": name}, spec=made)


# ---- new nodes


def shape_of(node: Node, but: Collection[str] = ()) -> tuple[Any, ...]:
    """Key that is equal for interchangeable nodes: capacity, lasting taints, labels but the name and those of `but`."""
    labels = {
        key: value
        for key, value in node.meta.labels.items()
        if key != LABEL_HOSTNAME and value != node.name and key not in but
    }
    taints = tuple(taint for taint in node.taints if not is_passing(taint.key))
    return tuple(sorted(node.allocatable.items())), taints, tuple(sorted(labels.items()))


def node_like(node: Node, name: str, *, plain: bool = False) -> Node:
    """A new, empty node of the same kind; a `plain` one is not of the control plane."""
    meta = node.manifest.get("metadata") or {}
    labels = {
        key: name if key == LABEL_HOSTNAME or value == node.name else value
        for key, value in (meta.get("labels") or {}).items()
        if not (plain and key.startswith(_ROLE))
    }
    spec = {key: value for key, value in (node.manifest.get("spec") or {}).items() if key != "unschedulable"}
    taints = [item for item in spec.pop("taints", None) or () if not is_passing(item["key"])]
    taints = [item for item in taints if not (plain and item["key"].startswith(_ROLE))]
    if taints:
        spec["taints"] = taints
    status = {key: value for key, value in (node.manifest.get("status") or {}).items() if key != "images"}
    made = {"name": name, "uid": f"uid-of-{name}", "labels": labels}
    return node_from(object_of("v1", "Node", made, spec=spec, status=status))


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


def volume_places(fork: Fork, pod: Pod) -> list[tuple[PersistentVolumeClaim, str, list[Labels]]]:
    """Each claim of the pod that is tied to places, what ties it, and the labels that a node needs, any of them.

    A bound volume is where its node affinity or its zone labels say; one that is still to be bound where its class
    may make it (`allowedTopologies`), or where unclaimed volumes of the class are.
    """
    listers, found = fork.cache.listers, []
    for claim in _claims(pod, listers):
        name = claim.meta.name
        if claim.volume_name:
            bound = listers.get("PersistentVolume", "", claim.volume_name)
            options = [] if bound is None else _labels_of_volume(bound)
            words = f"PersistentVolume {claim.volume_name} of claim {name}"
        else:
            kind = listers.get("StorageClass", "", claim.storage_class)
            options = _labels_of_class(kind) if kind is not None else []
            for free in _free_volumes(listers):
                if free.storage_class == claim.storage_class:
                    options += _labels_of_volume(free)
            words = f"claim {name} of StorageClass {claim.storage_class}"
        if options:
            found.append((claim, words, options))
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
    size, keys = size_of_losing(pods), [one.key for one in pods]
    words = {"pods": first_names(pods), "node": node_name, "are": "is" if len(pods) == 1 else "are"}
    if all(one.is_terminating for one in pods):
        return draft("wait", words, size=size, change={"delete": keys})
    if all(waiting.get(one.uid) is not None for one in pods):
        words["counted"] = counted(len(pods), "pod")
        return draft("reject", words, size=size, headline=False, change={"reject": keys})
    form = "free-room" if len(pods) > 1 else "delete-pod"
    return draft(form, words, note=note, size=size, headline=False, change={"delete": keys})


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
    rows : ndarray of shape (n,), intp
    potential : PodsOfPlaces
        Every pod on each row that may go, the most important first.
    alone : ndarray of shape (m,), bool
        Aligned with `potential.pod_ids`: this pod's going lets the pending pod onto its node.
    needed : ndarray of shape (m,), bool
        Of a set of pods no one of which can stay if the pending pod is to fit; the least important go. Only on
        rows where no single pod's going is enough.
    """

    rows: NDArray[np.intp]
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
    occupied = np.flatnonzero(potential.sizes)
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
    counts, begins = potential.sizes, potential.starts[:-1]
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


def _try_each(attempt: Attempt, result: Departures, hopeful: NDArray[np.intp]) -> None:
    potential = result.potential
    counts, begins = potential.sizes[hopeful], potential.starts[:-1][hopeful]
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
