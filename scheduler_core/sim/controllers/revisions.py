"""ControllerRevisions: what templates a StatefulSet or DaemonSet had, for `kubectl rollout history` and `undo`.

Source: pkg/controller/history/controller_history.go, pkg/controller/daemon/update.go, v1.34
Differs: uids follow from the owner and the template.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler_core.objects.fields import integer, mapping
from scheduler_core.sim.controllers.workload import Workload
from scheduler_core.sim.identities import derived_uid
from scheduler_core.sim.pod_index import PodIndex
from scheduler_core.sim.world import Stored, World

KIND = "ControllerRevision"
DEFAULT_HISTORY = 10
HASH_LABEL = "controller-revision-hash"


def revisions_of(world: World, namespace: str, owner_uid: str) -> list[Stored]:
    """The revisions of a workload, oldest first."""
    found = [
        stored
        for stored in world.all(KIND)
        if (meta := stored.manifest["metadata"]).get("namespace") == namespace
        and any(item.get("uid") == owner_uid for item in meta.get("ownerReferences") or ())
    ]
    return sorted(found, key=_number)


def keep_revision(world: World, pods: PodIndex, workload: Workload, hash_: str) -> None:
    """Have the newest revision be that of the present template; forget those beyond revisionHistoryLimit.

    Parameters
    ----------
    hash_ : str
        Of the template; its pods carry it as `controller-revision-hash`.
    """
    name = f"{workload.name}-{hash_}"
    history = revisions_of(world, workload.namespace, workload.meta.uid)
    newest = _number(history[-1]) if history else 0
    own = next((item for item in history if item.manifest["metadata"]["name"] == name), None)
    if own is None:
        world.create(_revision(workload, name, hash_, newest + 1), "template recorded")
    elif _number(own) < newest:
        world.put({**own.manifest, "revision": newest + 1}, "template rolled back")
    live = {pod.labels.get(HASH_LABEL) for pod in pods.of_owner(workload.owner).pods.values()}
    limit = max(integer(workload.spec, "revisionHistoryLimit", "spec", DEFAULT_HISTORY), 0)
    past = [
        item
        for item in history
        if item is not own and (item.manifest["metadata"].get("labels") or {}).get(HASH_LABEL) not in live
    ]
    for item in past[: max(len(past) - limit, 0)]:
        world.remove(KIND, workload.namespace, item.manifest["metadata"]["name"], "revision history limit")


def _number(stored: Stored) -> int:
    return int(stored.manifest.get("revision") or 0)


def _revision(workload: Workload, name: str, hash_: str, number: int) -> dict[str, Any]:
    selector: Mapping[str, Any] = mapping(workload.spec, "selector", "spec").get("matchLabels") or {}
    annotations = workload.manifest["metadata"].get("annotations")
    meta: dict[str, Any] = {
        "name": name,
        "namespace": workload.namespace,
        "uid": derived_uid(f"{workload.meta.uid}/{name}"),
        "labels": {**selector, HASH_LABEL: hash_},
        "ownerReferences": [workload.reference()],
    }
    if annotations:
        meta["annotations"] = dict(annotations)
    return {
        "apiVersion": "apps/v1",
        "kind": KIND,
        "metadata": meta,
        "data": {"spec": {"template": {**workload.template, "$patch": "replace"}}},
        "revision": number,
    }
