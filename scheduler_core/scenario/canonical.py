"""The one form of a scenario: two documents that mean the same have the same bytes, and so the same digest.

Keys are sorted, quantities written one way, fields only a server sets dropped, defaults of the format written out,
and objects put in the order a run takes them in. The order of nodes, of workloads and of pods is kept: it decides
who is evaluated, and who is queued, first. Words for people (title, lesson, group, path), expectations and the recorded
decisions are no part of what is run, and no part of the digest.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from scheduler_core.objects.defaults import NAMESPACED_KINDS
from scheduler_core.objects.meta import generations, uid_of
from scheduler_core.objects.quantity import QuantityError, read_quantity
from scheduler_core.releases import OLDEST
from scheduler_core.scenario.load import TEMPLATED, scenario_document
from scheduler_core.scenario.types import Manifest, Run, Scenario, Step, object_key

_FIRST = (
    "Namespace", "PriorityClass", "StorageClass", "CSIDriver", "PersistentVolume", "PersistentVolumeClaim",
    "CSIStorageCapacity", "Service", "PodDisruptionBudget", "DeviceClass", "ResourceSlice", "DeviceTaintRule",
    "ResourceClaim",
    "ResourceClaimTemplate", "Workload", "PodGroup",
)  # fmt: skip
"""Kinds that are there before nodes are, each sorted by name: no order of theirs decides anything."""
_THEN = ("Node", "CSINode", "VolumeAttachment")
_RANKS = {kind: rank for rank, kind in enumerate((*_FIRST, *_THEN))}
NODES_RANK = len(_FIRST)
WORKLOADS_RANK = len(_RANKS)
_PODS_RANK = WORKLOADS_RANK + 1

_SERVER_META = frozenset(("resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink"))
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_NODE_STATUS = frozenset(
    ("allocatable", "capacity", "images", "volumesAttached", "volumesInUse", "conditions")
)
_POD_STATUS = frozenset(("phase", "startTime", "nominatedNodeName", "conditions", "resourceClaimStatuses"))
_BUDGET_STATUS = frozenset(("disruptionsAllowed", "disruptedPods"))
_NO_STATUS = frozenset(
    ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "Namespace", "Service")
)


def run_rank(kind: str) -> int:
    """When a run takes in objects of a kind: those of lower rank first."""
    return _PODS_RANK if kind == "Pod" else _RANKS.get(kind, WORKLOADS_RANK)


def in_run_order(manifests: Sequence[Manifest]) -> list[Manifest]:
    """Objects in the order a run takes them in; stable for nodes, workloads and pods.

    What owns others of the objects comes after them, so that it does not make them once more.
    """
    heights = generations(manifests)

    def place(manifest: Manifest) -> tuple[int, int, str, str]:
        kind, namespace, name = object_key(manifest)
        rank = run_rank(kind)
        if rank < NODES_RANK:
            return 0, rank, namespace, name
        # Nodes and pods own some, too, and make none of them anew.
        height = heights.get(uid_of(manifest), 0) if rank == WORKLOADS_RANK else 0
        return height, rank, "", ""

    return sorted(manifests, key=place)


def canonical_document(scenario: Scenario) -> dict[str, Any]:
    """What the digest is made of: JSON-able."""
    owners = owner_uids(_all_manifests(scenario))
    document = scenario_document(
        dataclasses.replace(
            scenario,
            name="",
            title="",
            lesson="",
            group="",
            path=(),
            expect=(),
            decisions=None,
            objects=(),
            steps=tuple(step for step in effective_steps(scenario) if step.expect is None),
        )
    )
    document["objects"] = [
        canonical_manifest(manifest, owners) for manifest in in_run_order(scenario.objects)
    ]
    for step in document["steps"]:
        if "apply" in step:
            step["apply"] = [canonical_manifest(manifest, owners) for manifest in step["apply"]]
        elif "patch" in step and step["patch"]["kind"] not in TEMPLATED:
            step["patch"] = {**step["patch"], "patch": _quantities(step["patch"]["patch"])}
        for verb in ("patch", "delete"):
            if verb in step and step[verb]["kind"] in NAMESPACED_KINDS:
                step[verb] = {"namespace": "default", **step[verb]}
    # The name the release had in the first form of the format, so that old digests stay.
    document["emulates"] = document.pop("kubernetesRelease", OLDEST.name)
    return document


def effective_steps(scenario: Scenario) -> tuple[Step, ...]:
    """The steps; a scenario without any runs until idle."""
    return scenario.steps or (Step(run=Run()),)


def scenario_digest(scenario: Scenario) -> str:
    """Hex SHA-256 of the canonical form."""
    return hashlib.sha256(canonical_bytes(scenario)).hexdigest()


def canonical_bytes(scenario: Scenario) -> bytes:
    """The canonical form: one line of JSON in UTF-8, itself a scenario with the same digest."""
    text = json.dumps(
        canonical_document(scenario),
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    )
    return text.encode()


def canonical_manifest(manifest: Manifest, owner_uids: frozenset[str] = frozenset()) -> dict[str, Any]:
    """A manifest without what only a server sets (`without_server_fields`), quantities written one way."""
    bare = without_server_fields(manifest, owner_uids)
    cleaned: dict[str, Any] = bare if bare.get("kind") in TEMPLATED else _quantities(bare)
    return cleaned


def without_server_fields(manifest: Manifest, owner_uids: frozenset[str] = frozenset()) -> dict[str, Any]:
    """A manifest without what only a server sets.

    Parameters
    ----------
    owner_uids : frozenset of str
        Uids that ownerReferences name: those are kept.
    """
    kind = str(manifest.get("kind", ""))
    result = {key: value for key, value in manifest.items() if value is not None}
    meta = {
        key: value
        for key, value in (manifest.get("metadata") or {}).items()
        if key not in _SERVER_META and value not in (None, {}, [])
    }
    if _LAST_APPLIED in (meta.get("annotations") or {}):
        meta["annotations"] = {key: text for key, text in meta["annotations"].items() if key != _LAST_APPLIED}
        if not meta["annotations"]:
            del meta["annotations"]
    if meta.get("uid") not in owner_uids:
        meta.pop("uid", None)
    if kind in NAMESPACED_KINDS:
        meta.setdefault("namespace", "default")
    result["metadata"] = meta
    status = manifest.get("status")
    if status:
        kept = _kept_status(kind, status)
        if kept:
            result["status"] = kept
        else:
            result.pop("status", None)
    else:
        result.pop("status", None)
    return result


def _kept_status(kind: str, status: Mapping[str, Any]) -> dict[str, Any]:
    if kind in _NO_STATUS:
        return {}
    names = {"Node": _NODE_STATUS, "Pod": _POD_STATUS, "PodDisruptionBudget": _BUDGET_STATUS}.get(kind)
    kept = {
        key: value
        for key, value in status.items()
        if (names is None or key in names) and value not in (None, {}, [])
    }
    if kind == "Node" and "allocatable" in kept:
        kept.pop("capacity", None)
    if "conditions" in kept:
        kept["conditions"] = [
            {key: value for key, value in item.items() if key in ("type", "status", "reason")}
            for item in kept["conditions"]
            if not (
                kind == "Pod"
                and item.get("type") in ("PodScheduled", "Initialized", "Ready", "ContainersReady")
            )
        ]
        if not kept["conditions"]:
            del kept["conditions"]
    if kind == "Pod" and kept.get("phase") == "Pending":
        del kept["phase"]
    return kept


_QUANTITY_MAPS = frozenset(("requests", "limits", "allocatable", "capacity", "overhead"))


def _quantities(value: Any) -> Any:
    """The same data with quantities in their canonical spelling."""
    if isinstance(value, Mapping):
        return {
            key: {name: _quantity(amount) for name, amount in item.items()}
            if key in _QUANTITY_MAPS and isinstance(item, Mapping)
            else _quantities(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_quantities(item) for item in value]
    return value


def _quantity(amount: Any) -> Any:
    if isinstance(amount, bool) or not isinstance(amount, str | int | float):
        return amount
    try:
        return _canonical_quantity(str(amount))
    except QuantityError:
        return amount


@lru_cache(maxsize=65536)
def _canonical_quantity(text: str) -> str:
    """The number itself: `1Gi` and `1024Mi` and `1073741824` are one."""
    nano = read_quantity(text).nano_value()
    if nano % 10**9 == 0:
        return str(nano // 10**9)
    return f"{nano // 10**6}m" if nano % 10**6 == 0 else f"{nano}n"


def owner_uids(manifests: Iterable[Manifest]) -> frozenset[str]:
    """Uids that ownerReferences name."""
    uids: set[str] = set()
    for manifest in manifests:
        for owner in (manifest.get("metadata") or {}).get("ownerReferences") or ():
            uids.add(str(owner.get("uid", "")))
    return frozenset(uids)


def _all_manifests(scenario: Scenario) -> Iterable[Manifest]:
    yield from scenario.objects
    for step in scenario.steps:
        yield from step.apply or ()
