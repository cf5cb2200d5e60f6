"""VolumeBinding one node at a time, as upstream's Go is written: a twin to compare the columns with.

Source: pkg/scheduler/framework/plugins/volumebinding, v1.34
"""

from __future__ import annotations

import copy
from typing import Any

from scheduler_core.cluster.listers import Listers
from scheduler_core.objects.fields import Document
from scheduler_core.objects.labels import label_selector_from
from scheduler_core.objects.node import Node
from scheduler_core.objects.node_selector import node_selector_from
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.quantity import Quantity, quantity_from
from tests.scheduler_core.plugins.oracle_volumes import (
    PLUGINS,
    SELECTED,
    UNRESOLVABLE,
    Rejection,
    TwinError,
    annotations_of,
    claim_of,
    handle_of,
    migrated_of,
    not_found,
    object_of,
    source_of,
)


def _affinity_holds(volume: Document, node: Node) -> bool:
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    if required is None:
        return True
    try:
        return node_selector_from(required).match(node.labels, "")
    except ValueError:
        return False


def _translated(volume: Document, csi_node: Document | None) -> Document:
    source = source_of(volume["spec"])
    if source is None or source == "vsphereVolume" or PLUGINS[source][0] not in migrated_of(csi_node):
        return volume
    labels = volume["metadata"].get("labels") or {}
    try:
        handle_of(source, volume["spec"][source], labels)
    except TwinError as error:
        raise TwinError(f"could not translate pv: {error}") from error
    key = PLUGINS[source][2]
    if not key:
        return volume
    volume = copy.deepcopy(dict(volume))
    affinity = volume["spec"].get("nodeAffinity")
    terms = affinity["required"]["nodeSelectorTerms"] if affinity else []
    expressions = [item for term in terms for item in term.get("matchExpressions", ())]
    keys = {item["key"] for item in expressions}
    beta = "failure-domain.beta.kubernetes.io/"
    current = "topology.kubernetes.io/"
    for known in (keys, labels):
        if current + "zone" in known:
            prefix = current
            break
        if beta + "zone" in known:
            prefix = beta
            break
    else:
        prefix = current
    if any(item["key"] == prefix + "zone" and item.get("values") for item in expressions):
        for item in expressions:
            if item["key"] == prefix + "zone":
                item["key"] = key
    elif prefix + "zone" in labels:
        zones = sorted({part for part in labels[prefix + "zone"].split("__") if part})
        if not affinity:
            terms = [{}]
            volume["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
        for term in terms:
            term.setdefault("matchExpressions", []).append({"key": key, "operator": "In", "values": zones})
    if prefix == beta:
        for item in expressions:
            if item["key"] == beta + "region" and item.get("values"):
                item["key"] = current + "region"
    return volume


def _quantity(document: Document, *path: str) -> Quantity:
    for key in path:
        document = document.get(key) or {}
    return quantity_from(document or "0")  # type: ignore[arg-type]


def _is_bound_to(volume: Document, claim: Document) -> bool:
    reference = volume["spec"].get("claimRef")
    meta = claim["metadata"]
    return (
        reference is not None
        and reference["name"] == meta["name"]
        and reference["namespace"] == meta["namespace"]
        and reference.get("uid", "") in ("", meta["uid"])
    )


def find_matching_volume(
    claim: Document, volumes: list[Document], node: Node, excluded: list[str]
) -> Document | None:
    smallest: Document | None = None
    spec = claim["spec"]
    requested = _quantity(spec, "resources", "requests", "storage")
    for volume in volumes:
        if volume["metadata"]["name"] in excluded:
            continue
        bound = _is_bound_to(volume, claim)
        if volume["spec"].get("claimRef") is not None and not bound:
            continue
        size = _quantity(volume["spec"], "capacity", "storage")
        if size.cmp(requested) < 0:
            continue
        if volume["spec"]["volumeMode"] != spec["volumeMode"]:
            continue
        if volume["spec"].get("volumeAttributesClassName", "") != spec.get("volumeAttributesClassName", ""):
            continue
        if volume["metadata"].get("deletionTimestamp"):
            continue
        valid = _affinity_holds(volume, node)
        if bound:
            return volume if valid else None
        if volume["status"]["phase"] != "Available":
            continue
        labels = volume["metadata"].get("labels") or {}
        if spec.get("selector") is not None and not label_selector_from(spec["selector"]).matches(labels):
            continue
        if volume["spec"]["storageClassName"] != spec["storageClassName"] or not valid:
            continue
        if not set(spec["accessModes"]) <= set(volume["spec"]["accessModes"]):
            continue
        if smallest is None or _quantity(smallest["spec"], "capacity", "storage").cmp(size) > 0:
            smallest = volume
    return smallest


class BindingTwin:
    """PreFilter's claims and Filter on them; `status` is what PreFilter says."""

    def __init__(self, pod: Pod, listers: Listers) -> None:
        self.listers = listers
        self.status: Rejection | str | None = None
        self.bound: list[Document] = []
        self.delayed: list[Document] = []
        has_claim = immediate = False
        claims = []
        for volume in pod.volumes:
            if volume.get("persistentVolumeClaim") is None:
                continue
            has_claim = True
            name = volume["persistentVolumeClaim"]["claimName"]
            claim = claim_of(listers, pod.namespace, name)
            if claim is None:
                self.status = (UNRESOLVABLE, (not_found(name),))
                return
            if claim["metadata"].get("deletionTimestamp"):
                self.status = (UNRESOLVABLE, (f'persistentvolumeclaim "{name}" is being deleted',))
                return
            claims.append(claim)
        if not has_claim:
            self.status = "Skip"
            return
        for claim in claims:
            spec = claim["spec"]
            if spec.get("volumeName") and "pv.kubernetes.io/bind-completed" in annotations_of(claim):
                self.bound.append(claim)
                continue
            storage_class = object_of(listers, "StorageClass", spec["storageClassName"])
            waits = storage_class is not None and storage_class["volumeBindingMode"] == "WaitForFirstConsumer"
            if waits and not spec.get("volumeName"):
                self.delayed.append(claim)
            else:
                immediate = True
        if immediate:
            self.status = (UNRESOLVABLE, ("pod has unbound immediate PersistentVolumeClaims",))

    def find(self, node: Node) -> tuple[list[str], list[tuple[str, str]], list[str]]:
        """Reasons, bindings (claim, volume) and claims to provision. Raises TwinError."""
        reasons: list[str] = []
        csi_node = object_of(self.listers, "CSINode", node.name)
        found = satisfied = True
        for claim in self.bound:
            volume = object_of(self.listers, "PersistentVolume", claim["spec"]["volumeName"])
            if volume is None:
                found = False
                break
            if not _affinity_holds(_translated(volume, csi_node), node):
                satisfied = False
                break
        unbound, sufficient, bindings, provisions = self._find_delayed(node)
        if not satisfied:
            reasons.append("node(s) didn't match PersistentVolume's node affinity")
        if not unbound:
            reasons.append("node(s) didn't find available persistent volumes to bind")
        if not sufficient:
            reasons.append("node(s) did not have enough free storage")
        if not found:
            reasons.append("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)")
        return reasons, bindings, provisions

    def _find_delayed(self, node: Node) -> tuple[bool, bool, list[tuple[str, str]], list[str]]:
        to_match, to_provision = [], []
        for claim in self.delayed:
            selected = annotations_of(claim).get(SELECTED)
            if selected is None:
                to_match.append(claim)
            elif selected != node.name:
                return False, True, [], []
            else:
                to_provision.append(claim)
        to_match.sort(
            key=lambda claim: _quantity(claim["spec"], "resources", "requests", "storage").nano_value()
        )
        bindings: list[tuple[str, str]] = []
        everything = sorted(self.listers.all("PersistentVolume"), key=lambda volume: volume.name)
        for claim in to_match:
            volumes = [
                volume.manifest
                for volume in everything
                if volume.manifest["spec"]["storageClassName"] == claim["spec"]["storageClassName"]
            ]
            picked = find_matching_volume(claim, volumes, node, [name for _, name in bindings])
            if picked is None:
                to_provision.append(claim)
            else:
                bindings.append((claim["metadata"]["name"], picked["metadata"]["name"]))
        provisions: list[str] = []
        for claim in to_provision:
            storage_class = object_of(self.listers, "StorageClass", claim["spec"]["storageClassName"])
            assert storage_class is not None
            if storage_class["provisioner"] in ("", "kubernetes.io/no-provisioner"):
                return False, True, bindings, []
            if not _topology_matches(storage_class, node):
                return False, True, bindings, []
            if not self._has_capacity(claim, storage_class, node):
                return True, False, bindings, []
            provisions.append(claim["metadata"]["name"])
        return True, True, bindings, provisions

    def _has_capacity(self, claim: Document, storage_class: Document, node: Node) -> bool:
        driver = object_of(self.listers, "CSIDriver", storage_class["provisioner"])
        if driver is None or not driver["spec"].get("storageCapacity"):
            return True
        size = _quantity(claim["spec"], "resources", "requests", "storage").value()
        for item in self.listers.all("CSIStorageCapacity"):
            manifest: Any = item.manifest
            limit = manifest.get("maximumVolumeSize", manifest.get("capacity"))
            if (
                manifest["storageClassName"] == storage_class["metadata"]["name"]
                and limit is not None
                and quantity_from(limit).value() >= size
                and manifest.get("nodeTopology") is not None
                and label_selector_from(manifest["nodeTopology"]).matches(node.labels)
            ):
                return True
        return False

    def filter(self, node: Node) -> Rejection | None:
        try:
            reasons, _, _ = self.find(node)
        except TwinError as error:
            return "Error", (str(error),)
        return (UNRESOLVABLE, tuple(reasons)) if reasons else None


def _topology_matches(storage_class: Document, node: Node) -> bool:
    terms = storage_class.get("allowedTopologies") or []
    if not terms:
        return True
    return any(
        term.get("matchLabelExpressions")
        and all(node.labels.get(item["key"]) in item["values"] for item in term["matchLabelExpressions"])
        for term in terms
    )
