"""When a pod rejected by DynamicResources is worth another try.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go,
staging/src/k8s.io/dynamic-resource-allocation/resourceclaim/claim.go, v1.34
"""

from __future__ import annotations

from scheduler_core.framework.cluster_event import (
    DEVICE_CLASS,
    NODE,
    POD,
    QUEUE,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    SKIP,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    HintFunction,
    QueueingHint,
    without_empties,
)
from scheduler_core.objects.fields import Document, mapping, mappings, optional_string, string
from scheduler_core.objects.pod import Pod
from scheduler_core.plugins.stored_objects import HasManifest, Lookup, name_of, namespace_of

_CHANGED = ActionType.ADD | ActionType.UPDATE

_CLAIM_MISSING = SKIP.because("a claim the pod uses cannot be used yet")
_DEALLOCATED = QUEUE.because("a claim gave its devices back")
_OTHER_CLAIM = SKIP.because("the pod does not use this claim")
_CLAIM_CREATED = QUEUE.because("a claim the pod uses was created")
_SAME_STATUS = SKIP.because("the status of the pod's claim is as before")
_NEW_STATUS = QUEUE.because("the status of a claim the pod uses changed")
_OTHER_POD = SKIP.because("another pod's claims were generated")
_CLAIMS_READY = QUEUE.because("all claims of the pod exist")


def events_to_register(lookup: Lookup) -> list[ClusterEventWithHint]:
    """`lookup` finds ResourceClaims as they are when the hint is asked."""
    return [
        ClusterEventWithHint(
            ClusterEvent(
                NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE
            )
        ),
        ClusterEventWithHint(ClusterEvent(RESOURCE_CLAIM, _CHANGED), after_claim_change(lookup)),
        ClusterEventWithHint(
            ClusterEvent(POD, ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM), after_pod_change(lookup)
        ),
        ClusterEventWithHint(ClusterEvent(DEVICE_CLASS, _CHANGED)),
        ClusterEventWithHint(ClusterEvent(RESOURCE_SLICE, _CHANGED)),
    ]


def after_claim_change(lookup: Lookup) -> HintFunction:
    def hint(pod: Pod, old: HasManifest | None, new: HasManifest) -> QueueingHint:
        try:
            claims = claims_of(pod, lookup)
        except ClaimProblem:
            return _CLAIM_MISSING
        if old is not None and _allocation(old) is not None and _allocation(new) is None:
            return _DEALLOCATED
        if not any(_uid(claim) == _uid(new) for claim in claims):
            return _OTHER_CLAIM
        if old is None:
            return _CLAIM_CREATED
        was_allocated, is_allocated = _allocation(old) is not None, _allocation(new) is not None
        unchanged = without_empties(_status(old)) == without_empties(_status(new))
        return _SAME_STATUS if unchanged and was_allocated == is_allocated else _NEW_STATUS

    return hint


def after_pod_change(lookup: Lookup) -> HintFunction:
    def hint(pod: Pod, old: Pod, new: Pod) -> QueueingHint:
        if pod.uid != new.uid:
            return _OTHER_POD
        return _CLAIM_MISSING if claims_problem(new, lookup) is not None else _CLAIMS_READY

    return hint


class ClaimProblem(Exception):
    """A claim of a pod that keeps the pod from being scheduled, in Kubernetes' words."""


def claims_problem(pod: Pod, lookup: Lookup) -> str | None:
    """Why the pod's claims keep it from entering the queue; None when all of them exist."""
    if not pod.resource_claims:
        return None
    try:
        claims_of(pod, lookup)
    except ClaimProblem as problem:
        return str(problem)
    return None


def claims_of(pod: Pod, lookup: Lookup) -> list[HasManifest]:
    """The ResourceClaims of a pod, those left out for which none was generated.

    Raises
    ------
    ClaimProblem
        A claim is missing, goes away or belongs to another pod.
    """
    found = []
    for reference in pod.resource_claims:
        name, must_own = _claim_name(pod, reference)
        if name is None:
            continue
        claim: HasManifest | None = lookup.get("ResourceClaim", pod.namespace, name)
        if claim is None:
            raise ClaimProblem(f'resourceclaim.resource.k8s.io "{name}" not found')
        meta = mapping(claim.manifest, "metadata", "")
        if meta.get("deletionTimestamp") is not None:
            raise ClaimProblem(f'resourceclaim "{name}" is being deleted')
        if must_own and not _is_controlled_by(claim, pod):
            raise ClaimProblem(
                f"ResourceClaim {namespace_of(claim)}/{name_of(claim)} was not created for pod "
                f"{pod.namespace}/{pod.name} (pod is not owner)"
            )
        found.append(claim)
    return found


def _claim_name(pod: Pod, reference: Document) -> tuple[str | None, bool]:
    """The claim's name, and whether the claim must belong to the pod."""
    direct = optional_string(reference, "resourceClaimName", "spec.resourceClaims")
    if direct is not None:
        return direct, False
    name = string(reference, "name", "spec.resourceClaims")
    if reference.get("resourceClaimTemplateName") is None:
        raise ClaimProblem(
            f"pod {pod.namespace}/{pod.name}, spec.resourceClaim {name}: none of the supported fields are set"
        )
    status = mapping(pod.manifest, "status", "")
    for path, item in mappings(status, "resourceClaimStatuses", "status"):
        if string(item, "name", path) == name:
            return optional_string(item, "resourceClaimName", path), True
    raise ClaimProblem(f'pod "{pod.namespace}/{pod.name}": ResourceClaim not created yet')


def _is_controlled_by(claim: HasManifest, pod: Pod) -> bool:
    meta = mapping(claim.manifest, "metadata", "")
    owners = [owner for _, owner in mappings(meta, "ownerReferences", "metadata") if owner.get("controller")]
    return namespace_of(claim) == pod.namespace and bool(owners) and owners[0].get("uid") == pod.uid


def _uid(claim: HasManifest) -> str:
    return string(mapping(claim.manifest, "metadata", ""), "uid", "metadata")


def _status(claim: HasManifest) -> Document:
    return mapping(claim.manifest, "status", "")


def _allocation(claim: HasManifest) -> object | None:
    return _status(claim).get("allocation")
