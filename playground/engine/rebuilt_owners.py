"""Owners a dump does not have, made again from the pods that name them."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

Manifest = dict[str, Any]

API_VERSIONS: Final[Mapping[str, str]] = {
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "Job": "batch/v1",
}
"""Kinds that are made again."""
_OF_ONE_POD: Final = frozenset(
    {
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/job-completion-index",
        "controller-revision-hash",
        "pod-template-generation",
        "statefulset.kubernetes.io/pod-name",
    }
)
"""Labels that controllers give to pods, and no template has."""
_RESOLVED: Final = frozenset({"nodeName", "priority", "preemptionPolicy", "hostname", "ephemeralContainers"})
"""What a pod's spec has once it is there."""


def rebuilt_owners(
    pods: Iterable[Mapping[str, Any]], missing: frozenset[str], claims: Iterable[Mapping[str, Any]] = ()
) -> list[Manifest]:
    """The controlling owners of these pods that are missing, as far as their pods say what they are.

    As many replicas as there are pods, and the first pod's spec as the template. They roll nothing out by themselves:
    what is there stays as it is, and a pod that is deleted or evicted is made again.

    Parameters
    ----------
    pods
        Manifests as they were posted.
    missing
        Uids of owners that are not there.
    claims
        PersistentVolumeClaims, for what StatefulSets claim.

    Returns
    -------
    list of dict
        ReplicaSets, StatefulSets, DaemonSets and Jobs with the uids their pods name, in the order of their first pods.
        An owner of another kind, or of pods that have no label in common, is not among them.
    """
    of: dict[tuple[str, str, str, str], list[Mapping[str, Any]]] = {}
    for pod in pods:
        meta = pod["metadata"]
        for reference in meta.get("ownerReferences") or ():
            kind, uid = str(reference.get("kind")), str(reference.get("uid"))
            known = API_VERSIONS.get(kind) == reference.get("apiVersion")
            if reference.get("controller") and uid in missing and known:
                place = (kind, str(meta.get("namespace") or "default"), str(reference.get("name")), uid)
                of.setdefault(place, []).append(pod)
    stored = {(c["metadata"].get("namespace") or "default", c["metadata"]["name"]): c for c in claims}
    made = [_owner(*place, members, stored) for place, members in of.items()]
    return [owner for owner in made if owner is not None]


def _owner(
    kind: str,
    namespace: str,
    name: str,
    uid: str,
    pods: Sequence[Mapping[str, Any]],
    claims: Mapping[tuple[str, str], Mapping[str, Any]],
) -> Manifest | None:
    labels = _common_labels(pods)
    if not labels:
        return None
    first = pods[0]
    spec = _template_spec(first["spec"])
    body: Manifest = {"template": {"metadata": {"labels": labels}, "spec": spec}}
    if kind == "Job":
        # A Job is given its selector; its pods carry the labels it is made of.
        body |= {"parallelism": len(pods), "completions": len(pods), "manualSelector": True}
    if kind in ("ReplicaSet", "StatefulSet"):
        body["replicas"] = len(pods)
    body["selector"] = {"matchLabels": labels}
    if kind == "StatefulSet":
        numbers = [int(n) for pod in pods if (n := pod["metadata"]["name"].rpartition("-")[2]).isdecimal()]
        start = min(numbers, default=0)
        body |= {
            "serviceName": name,
            "podManagementPolicy": "Parallel",
            "replicas": max(numbers, default=len(pods) - 1) - start + 1,
        }
        if start:
            body["ordinals"] = {"start": start}
        templates = _claim_templates(spec, first["metadata"]["name"], namespace, claims)
        if templates:
            body["volumeClaimTemplates"] = templates
    if kind in ("StatefulSet", "DaemonSet"):
        body["updateStrategy"] = {"type": "OnDelete"}
    if kind == "DaemonSet":
        _forget_the_node(spec)
    return {
        "apiVersion": API_VERSIONS[kind],
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "uid": uid, "labels": labels},
        "spec": body,
    }


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
