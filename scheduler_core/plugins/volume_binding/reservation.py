"""What was reserved for a pod that has its node, and what the API server is to be told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scheduler_core.objects.fields import Document
from scheduler_core.objects.storage import (
    BOUND_BY_CONTROLLER_ANNOTATION,
    SELECTED_NODE_ANNOTATION,
    PersistentVolume,
    PersistentVolumeClaim,
    persistent_volume_claim_from,
    persistent_volume_from,
)


@dataclass(frozen=True, slots=True)
class BindingInfo:
    """A volume kept for a claim; `is_new` when the API server does not know yet."""

    volume: PersistentVolume
    claim_namespace: str
    claim_name: str
    is_new: bool


@dataclass(slots=True)
class Reservation:
    """Volumes of one pod on its node.

    Attributes
    ----------
    bindings : tuple of BindingInfo
    provisions : tuple of PersistentVolumeClaim
        Claims that name the node a volume is to be provisioned for.
    all_bound : bool
        There was nothing to do.
    started_ns : int or None
        When binding began, None before it did.
    written : bool
        The writes were given out.
    """

    node_name: str
    bindings: tuple[BindingInfo, ...] = ()
    provisions: tuple[PersistentVolumeClaim, ...] = ()
    all_bound: bool = False
    started_ns: int | None = None
    written: bool = False

    def writes(self) -> tuple[Document, ...]:
        """Objects to write, volumes first.

        Source: volumebinding/binder.go bindAPIUpdate, v1.34
        Differs: a volume that already is as it should be is not written once more.
        """
        return (
            *(binding.volume.manifest for binding in self.bindings if binding.is_new),
            *(claim.manifest for claim in self.provisions),
        )

    def to_document(self) -> dict[str, Any]:
        """All of it as JSON-able data."""
        return {
            "nodeName": self.node_name,
            "bindings": [
                {
                    "volume": binding.volume.manifest,
                    "claimNamespace": binding.claim_namespace,
                    "claimName": binding.claim_name,
                    "isNew": binding.is_new,
                }
                for binding in self.bindings
            ],
            "provisions": [claim.manifest for claim in self.provisions],
            "allBound": self.all_bound,
            "startedNs": self.started_ns,
            "written": self.written,
        }


def reservation_from(document: Mapping[str, Any]) -> Reservation:
    """Read what `Reservation.to_document` wrote."""
    return Reservation(
        document["nodeName"],
        tuple(
            BindingInfo(
                persistent_volume_from(item["volume"]),
                item["claimNamespace"],
                item["claimName"],
                item["isNew"],
            )
            for item in document["bindings"]
        ),
        tuple(persistent_volume_claim_from(manifest) for manifest in document["provisions"]),
        document["allBound"],
        document["startedNs"],
        document["written"],
    )


def bound_to_claim(volume: PersistentVolume, claim: PersistentVolumeClaim) -> tuple[PersistentVolume, bool]:
    """The volume, kept for the claim, and whether that is new.

    Source: component-helpers/storage/volume/pv_helpers.go GetBindVolumeToClaim, v1.34
    """
    manifest = dict(volume.manifest)
    is_new = False
    reference = volume.claim_ref
    was_bound = volume.is_bound_to(claim)
    if not was_bound or reference is None or reference.uid != claim.meta.uid:
        claim_ref = {
            "kind": "PersistentVolumeClaim",
            "namespace": claim.namespace,
            "name": claim.name,
            "uid": claim.meta.uid,
            "apiVersion": "v1",
            "resourceVersion": claim.meta.resource_version,
        }
        manifest["spec"] = {
            **manifest["spec"],
            "claimRef": {key: value for key, value in claim_ref.items() if value},
        }
        is_new = True
    annotations = manifest["metadata"].get("annotations") or {}
    if not was_bound and BOUND_BY_CONTROLLER_ANNOTATION not in annotations:
        manifest["metadata"] = {
            **manifest["metadata"],
            "annotations": {**annotations, BOUND_BY_CONTROLLER_ANNOTATION: "yes"},
        }
        is_new = True
    return (persistent_volume_from(manifest), True) if is_new else (volume, False)


def provisioned_on(claim: PersistentVolumeClaim, node_name: str) -> PersistentVolumeClaim:
    """The claim, asking for a volume for a node."""
    manifest = dict(claim.manifest)
    annotations = manifest["metadata"].get("annotations") or {}
    manifest["metadata"] = {
        **manifest["metadata"],
        "annotations": {**annotations, SELECTED_NODE_ANNOTATION: node_name},
    }
    return persistent_volume_claim_from(manifest)
