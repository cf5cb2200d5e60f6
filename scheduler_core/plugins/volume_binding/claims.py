"""The claims of a pod, sorted by what is still to be done about them."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_core.cluster.listers import Listers
from scheduler_core.objects.fields import Document, mapping, string
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.storage import LOST, PersistentVolumeClaim, StorageClass
from scheduler_core.plugins.volume_binding.assume_cache import CLAIM, AssumeCache


class ClaimError(Exception):
    """Claims that upstream cannot sort: an error of the attempt, not a rejection."""


@dataclass(frozen=True, slots=True)
class PodClaims:
    """Claims of one pod in the order of its volumes.

    Attributes
    ----------
    bound : tuple of PersistentVolumeClaim
        Fully bound to a volume.
    delayed : tuple of PersistentVolumeClaim
        Waiting for their first consumer: the scheduler binds them, or has a volume provisioned.
    immediate : tuple of PersistentVolumeClaim
        The volume controller should have bound them already.
    """

    bound: tuple[PersistentVolumeClaim, ...] = ()
    delayed: tuple[PersistentVolumeClaim, ...] = ()
    immediate: tuple[PersistentVolumeClaim, ...] = ()


def claim_name(pod: Pod, volume: Document) -> tuple[str, bool] | None:
    """The claim behind a pod's volume, and whether it is an ephemeral one; None for other volumes."""
    if volume.get("persistentVolumeClaim") is not None:
        return string(mapping(volume, "persistentVolumeClaim", ""), "claimName", ""), False
    if volume.get("ephemeral") is not None:
        return f"{pod.name}-{string(volume, 'name', '')}", True
    return None


def wrong_claim(pod: Pod, listers: Listers) -> str | None:
    """Why the pod's claims cannot be used at all; None when they can.

    Source: volumebinding/volume_binding.go podHasPVCs, v1.34
    """
    for volume in pod.volumes:
        named = claim_name(pod, volume)
        if named is None:
            continue
        name, is_ephemeral = named
        claim: PersistentVolumeClaim | None = listers.get(CLAIM, pod.namespace, name)
        if claim is None:
            if is_ephemeral:
                return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
            return f'persistentvolumeclaim "{name}" not found'
        if claim.phase == LOST:
            return (
                f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.volume_name}"'
            )
        if claim.meta.deletion_ns is not None:
            return f'persistentvolumeclaim "{name}" is being deleted'
        if is_ephemeral and not _is_for(pod, claim):
            return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"
    return None


def claims_of(pod: Pod, cache: AssumeCache, listers: Listers) -> PodClaims:
    """Sort the claims of a pod that `wrong_claim` found nothing against.

    Raises
    ------
    ClaimError
        A storage class does not say when it binds.

    Source: volumebinding/binder.go GetPodVolumeClaims, v1.34
    """
    bound, delayed, immediate = [], [], []
    for volume in pod.volumes:
        named = claim_name(pod, volume)
        if named is None:
            continue
        name, is_ephemeral = named
        claim = cache.claim(listers, pod.namespace, name)
        if claim is None:
            raise ClaimError(
                f'error getting PVC "{pod.namespace}/{name}": could not find v1.PersistentVolumeClaim '
                f'"{pod.namespace}/{name}"'
            )
        if is_ephemeral and not _is_for(pod, claim):
            raise ClaimError(f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)")
        if claim.is_fully_bound:
            bound.append(claim)
        elif _is_delayed(claim, listers) and not claim.volume_name:
            delayed.append(claim)
        else:
            # A claim that names its volume is the controller's business too.
            immediate.append(claim)
    return PodClaims(tuple(bound), tuple(delayed), tuple(immediate))


def _is_for(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Source: component-helpers/storage/ephemeral/ephemeral.go VolumeIsForPod, v1.34."""
    controller = claim.meta.controller
    return claim.namespace == pod.namespace and controller is not None and controller.uid == pod.uid


def _is_delayed(claim: PersistentVolumeClaim, listers: Listers) -> bool:
    """Source: component-helpers/storage/volume/pv_helpers.go IsDelayBindingMode, v1.34."""
    if not claim.storage_class:
        return False
    storage_class: StorageClass | None = listers.get("StorageClass", "", claim.storage_class)
    if storage_class is None:
        return False
    if storage_class.volume_binding_mode is None:
        raise ClaimError(f'VolumeBindingMode not set for StorageClass "{claim.storage_class}"')
    return storage_class.waits_for_first_consumer
