"""Owners a dump does not have, rebuilt from the pods that name them.

What is rebuilt is a guess, and the dump refutes it: an owner whose controller would adopt, make or end any pod at once
was another one in the cluster that the dump is of. Such an owner stays missing.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from playground.engine.columns import FINISHED
from scheduler_core.errors import InvalidObject
from scheduler_core.objects.defaults import prepare
from scheduler_core.objects.kinds import parse
from scheduler_core.objects.node import Node
from scheduler_core.schema.tables import table_beside
from scheduler_core.sim.controllers.base import workload_from
from scheduler_core.sim.controllers.daemon_set import NAME_FIELD, PlacementRule, pinned_node
from scheduler_core.sim.controllers.deployment import HASH_LABEL
from scheduler_core.sim.controllers.job import DEFAULT_BACKOFF_LIMIT
from scheduler_core.validation.kinds import validate

Manifest = dict[str, Any]

_TABLES: Final = table_beside(__package__, "tables.yaml")
API_VERSIONS: Final[Mapping[str, str]] = _TABLES["rebuilt"]
_OF_ONE_POD: Final = frozenset(_TABLES["labels"]["of_one_pod"])
_ADDED: Final = _OF_ONE_POD | frozenset(_TABLES["labels"]["of_a_job"])
_RESOLVED: Final = frozenset({"nodeName", "priority", "preemptionPolicy", "hostname", "ephemeralContainers"})
"""What a pod's spec has once it is there."""


def rebuilt_owners(
    pods: Iterable[Mapping[str, Any]],
    missing: frozenset[str],
    claims: Iterable[Mapping[str, Any]] = (),
    *,
    nodes: Iterable[Mapping[str, Any]] = (),
    deployments: Iterable[Mapping[str, Any]] = (),
    strangers: Iterable[Mapping[str, Any]] = (),
) -> list[Manifest]:
    """The controlling owners of these pods that are missing, as far as their pods say what they are.

    As many replicas as there are pods that have not finished, and the first pod's spec as the template. They change
    nothing by themselves: what is there stays, and a pod that is deleted or evicted is made anew.

    Parameters
    ----------
    pods
        Manifests as they were posted.
    missing
        Uids of owners that are not there.
    claims
        PersistentVolumeClaims, for what StatefulSets claim.
    nodes
        All nodes there will be, for where DaemonSets run.
    deployments
        Those without a ReplicaSet: one that is rebuilt becomes theirs.
    strangers
        Pods that are beside these.

    Returns
    -------
    list of dict
        ReplicaSets, StatefulSets, DaemonSets and Jobs with the uids their pods name, in the order of their first pods.
        An owner of another kind, or one that the pods refute, is not among them.
    """
    pods = list(pods)
    of: dict[tuple[str, str, str, str], list[Mapping[str, Any]]] = {}
    for pod in pods:
        meta = pod["metadata"]
        for reference in meta.get("ownerReferences") or ():
            kind, uid = str(reference.get("kind")), str(reference.get("uid"))
            known = API_VERSIONS.get(kind) == reference.get("apiVersion")
            if reference.get("controller") and uid in missing and known:
                place = (kind, _namespace(pod), str(reference.get("name")), uid)
                of.setdefault(place, []).append(pod)
    beside = _Beside([*pods, *strangers])
    stored = {(_namespace(c), c["metadata"]["name"]): c for c in claims}
    typed = (
        [parse(prepare(node)).typed for node in nodes] if any(kind == "DaemonSet" for kind, *_ in of) else []
    )
    made: list[Manifest] = []
    for (kind, namespace, name, uid), members in of.items():
        selector = beside.selector_of(members, namespace, uid)
        if selector is None:
            continue
        meta = {"name": name, "namespace": namespace, "uid": uid, "labels": selector["matchLabels"]}
        template = {
            "metadata": {"labels": selector["matchLabels"]},
            "spec": _template_spec(members[0]["spec"]),
        }
        owner: Manifest = {"apiVersion": API_VERSIONS[kind], "kind": kind, "metadata": meta}
        spec: Manifest = {"selector": selector, "template": template}
        owner["spec"] = spec
        if kind == "ReplicaSet":
            spec["replicas"] = len(_active(members))
        elif kind == "Job":
            spec |= _of_job(members)
        elif (
            not _fill_stateful_set(owner, members, stored)
            if kind == "StatefulSet"
            else not _fill_daemon_set(owner, members, typed)
        ):
            continue
        if _is_valid(owner):
            made.append(owner)
    for deployment in deployments:
        _hand_over(deployment, made)
    return made


def without_their_sets(
    deployments: Iterable[Mapping[str, Any]],
    pods: Iterable[Mapping[str, Any]],
    missing: frozenset[str],
    made: Iterable[Mapping[str, Any]],
) -> list[Mapping[str, Any]]:
    """Deployments with pods here whose ReplicaSet is missing and was not made theirs: each would make its pods anew."""
    named = {
        (_namespace(pod), str(reference.get("name")).rpartition("-")[0])
        for pod in pods
        for reference in pod["metadata"].get("ownerReferences") or ()
        if reference.get("kind") == "ReplicaSet" and reference.get("uid") in missing
    }
    taken = {
        (_namespace(owner), reference["name"])
        for owner in made
        for reference in owner["metadata"].get("ownerReferences") or ()
    }
    places = [(one, (_namespace(one), one["metadata"]["name"])) for one in deployments]
    return [one for one, place in places if place in named and place not in taken]


def _namespace(manifest: Mapping[str, Any]) -> str:
    return str(manifest["metadata"].get("namespace") or "default")


def _is_valid(owner: Manifest) -> bool:
    """An owner that an API server refuses was another one: a Job's pods do not restart always."""
    try:
        validate(owner)
    except InvalidObject:
        return False
    return True


def _active(pods: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [pod for pod in pods if (pod.get("status") or {}).get("phase") not in FINISHED]


class _Beside:
    """All pods by their labels, to find those that a selector takes too many."""

    def __init__(self, pods: Iterable[Mapping[str, Any]]) -> None:
        self._by_label: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
        for pod in pods:
            for key, value in (pod["metadata"].get("labels") or {}).items():
                self._by_label.setdefault((_namespace(pod), key, value), []).append(pod)

    def selector_of(self, members: Sequence[Mapping[str, Any]], namespace: str, uid: str) -> Manifest | None:
        """What all members have in common and no other pod has; None if there is no such thing.

        The owner would have adopted a pod that its selector takes: what takes more than its pods was not its selector.
        """
        labels = _common_labels(members)
        if not labels:
            return None
        near = min((self._by_label[namespace, key, value] for key, value in labels.items()), key=len)
        theirs = {key for pod in members for key in pod["metadata"].get("labels") or ()}
        absent: dict[str, None] = {}
        for pod in near:
            others = pod["metadata"].get("labels") or {}
            if _is_controlled_by(pod, uid) or any(others.get(key) != value for key, value in labels.items()):
                continue
            if absent.keys() & others.keys():
                continue
            found = sorted(others.keys() - theirs - _ADDED)
            if not found:
                return None
            absent[found[0]] = None
        selector: Manifest = {"matchLabels": labels}
        if absent:
            selector["matchExpressions"] = [{"key": key, "operator": "DoesNotExist"} for key in absent]
        return selector


def _is_controlled_by(pod: Mapping[str, Any], uid: str) -> bool:
    references = pod["metadata"].get("ownerReferences") or ()
    return any(one.get("controller") and one.get("uid") == uid for one in references)


def _of_job(members: Sequence[Mapping[str, Any]]) -> Manifest:
    """It wants the pods that run or have succeeded, and has failed no more often than it may."""
    phases = [(pod.get("status") or {}).get("phase") for pod in members]
    active, failed = len(_active(members)), phases.count("Failed")
    return {
        "parallelism": active,
        "completions": active + phases.count("Succeeded"),
        "backoffLimit": max(failed, DEFAULT_BACKOFF_LIMIT),
        # A Job is given its selector; its pods carry the labels it is made of.
        "manualSelector": True,
    }


def _fill_stateful_set(
    owner: Manifest,
    members: Sequence[Mapping[str, Any]],
    claims: Mapping[tuple[str, str], Mapping[str, Any]],
) -> bool:
    """Refuted by a pod of another name, a number that is missing, and one that has finished: it would replace it."""
    name, spec = owner["metadata"]["name"], owner["spec"]
    names = [pod["metadata"]["name"].rpartition("-") for pod in members]
    numbers = sorted(int(number) for prefix, _, number in names if prefix == name and number.isdecimal())
    start = numbers[0] if numbers else 0
    named = [f"{name}-{number}" for number in range(start, start + len(members))]
    if sorted(named) != sorted(pod["metadata"]["name"] for pod in members) or len(_active(members)) < len(
        members
    ):
        return False
    spec |= {
        "replicas": len(members),
        "serviceName": name,
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "OnDelete"},
    }
    if start:
        spec["ordinals"] = {"start": start}
    templates = _claim_templates(
        spec["template"]["spec"], members[0]["metadata"]["name"], _namespace(owner), claims
    )
    if templates:
        spec["volumeClaimTemplates"] = templates
    return True


def _fill_daemon_set(owner: Manifest, members: Sequence[Mapping[str, Any]], nodes: Sequence[Node]) -> bool:
    """Refuted by two pods of one node, one that has finished, and one where none may be.

    Where it could run and does not, its template said more than its pods do: it is kept to the nodes it is on.
    """
    spec: Manifest = owner["spec"]
    spec["updateStrategy"] = {"type": "OnDelete"}
    _forget_the_node(spec["template"]["spec"])
    places = [pod["spec"].get("nodeName") or pinned_node(pod["spec"]) for pod in members]
    here = {node.name for node in nodes}
    if len(set(places)) < len(places) or len(_active(members)) < len(members):
        return False
    if any(
        not pod["spec"].get("nodeName") and place not in here
        for pod, place in zip(members, places, strict=True)
    ):
        return False
    rule = PlacementRule(workload_from(owner))
    allowed = {node.name: rule.should_run(node) for node in nodes}
    if any(place in here and not allowed[place][1] for place in places):
        return False
    if any(should_run and name not in places for name, (should_run, _) in allowed.items()):
        affinity = spec["template"]["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
        fields = [{"key": NAME_FIELD, "operator": "In", "values": [place]} for place in places]
        terms = [{"matchFields": [field]} for field in fields]
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    return True


def _hand_over(deployment: Mapping[str, Any], made: Sequence[Manifest]) -> None:
    """Make the largest rebuilt ReplicaSet of a Deployment the present one of it, unless that ended pods."""
    meta, spec = deployment["metadata"], deployment["spec"]
    template = copy.deepcopy(spec["template"])
    labels = (template.get("metadata") or {}).get("labels") or {}
    found = []
    for owner in made:
        wanted, named = owner["spec"]["selector"]["matchLabels"], owner["metadata"]
        hashed = {HASH_LABEL: wanted[HASH_LABEL]} if HASH_LABEL in wanted else {}
        of_it = (_namespace(owner), named["name"].rpartition("-")[0]) == (
            _namespace(deployment),
            meta["name"],
        )
        if owner["kind"] == "ReplicaSet" and of_it and wanted == labels | hashed:
            found.append(owner)
    largest = max(found, key=lambda owner: owner["spec"]["replicas"], default=None)
    replicas = spec.get("replicas")
    if (
        largest is None
        or not meta.get("uid")
        or largest["spec"]["replicas"] > (1 if replicas is None else replicas)
    ):
        return
    template["metadata"] = {**(template.get("metadata") or {}), "labels": largest["metadata"]["labels"]}
    largest["spec"]["template"] = template
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": meta["name"], "uid": meta["uid"]}
    largest["metadata"]["ownerReferences"] = [{**reference, "controller": True, "blockOwnerDeletion": True}]


def _common_labels(pods: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    every = [pod["metadata"].get("labels") or {} for pod in pods]
    return {
        key: value
        for key, value in every[0].items()
        if key not in _OF_ONE_POD and all(labels.get(key) == value for labels in every)
    }


def _template_spec(spec: Mapping[str, Any]) -> Manifest:
    made = {key: copy.deepcopy(value) for key, value in spec.items() if key not in _RESOLVED}
    # A service account's token is given to each pod anew.
    tokens = {
        v.get("name") for v in made.get("volumes") or () if str(v.get("name")).startswith("kube-api-access-")
    }
    if tokens:
        made["volumes"] = [volume for volume in made["volumes"] if volume.get("name") not in tokens]
        for container in (*made.get("containers", ()), *(made.get("initContainers") or ())):
            mounts = container.get("volumeMounts") or ()
            container["volumeMounts"] = [one for one in mounts if one.get("name") not in tokens]
    return made


def _forget_the_node(spec: Manifest) -> None:
    """Take off what the DaemonSet controller adds for the one node of a pod."""
    affinity = spec.get("affinity") or {}
    on_nodes = affinity.get("nodeAffinity") or {}
    wanted = on_nodes.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = [
        {key: value for key, value in term.items() if key != "matchFields"}
        for term in wanted.get("nodeSelectorTerms") or ()
    ]
    terms = [term for term in terms if term]
    if terms:
        wanted["nodeSelectorTerms"] = terms
        return
    on_nodes.pop("requiredDuringSchedulingIgnoredDuringExecution", None)
    if not on_nodes:
        affinity.pop("nodeAffinity", None)
    if not affinity:
        spec.pop("affinity", None)


def _claim_templates(
    spec: Manifest, pod: str, namespace: str, claims: Mapping[tuple[str, str], Mapping[str, Any]]
) -> list[Manifest]:
    """Claims that are each pod's own, taken out of the template."""
    made: list[Manifest] = []
    kept = []
    for volume in spec.get("volumes") or ():
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim != f"{volume.get('name')}-{pod}":
            kept.append(volume)
            continue
        asked = (claims.get((namespace, claim)) or {}).get("spec") or {}
        wanted = {key: asked[key] for key in ("accessModes", "resources", "storageClassName") if key in asked}
        default = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        made.append({"metadata": {"name": volume["name"]}, "spec": {**default, **wanted}})
    if made:
        spec["volumes"] = kept
    return made
