"""The ResourceClaims of a pod, and what they say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from scheduler_core.cluster.listers import Listers
from scheduler_core.dynamic_resources.allocation import release_has_binding
from scheduler_core.dynamic_resources.model import Claim, claim_from
from scheduler_core.framework.cluster_event import QUEUE, SKIP, QueueingHint, without_empties
from scheduler_core.framework.interface import Handle, PreBindPlugin, ReservePlugin
from scheduler_core.framework.status import SUCCESS, Code, Status
from scheduler_core.objects.fields import (
    Document,
    format_time_ns,
    mapping,
    mappings,
    optional_string,
    parse_time_ns,
    string,
)
from scheduler_core.objects.meta import PlainObject
from scheduler_core.objects.pod import Pod
from scheduler_core.releases import Release

# --- When a pod rejected by DynamicResources is worth another try.


_CLAIM_MISSING = SKIP.because("a claim the pod uses cannot be used yet")
_DEALLOCATED = QUEUE.because("a claim gave its devices back")
_OTHER_CLAIM = SKIP.because("the pod does not use this claim")
_CLAIM_CREATED = QUEUE.because("a claim the pod uses was created")
_SAME_STATUS = SKIP.because("the status of the pod's claim is as before")
_NEW_STATUS = QUEUE.because("the status of a claim the pod uses changed")
_OTHER_POD = SKIP.because("another pod's claims were generated")
_CLAIMS_READY = QUEUE.because("all claims of the pod exist")


def _status(claim: PlainObject) -> Document:
    return mapping(claim.manifest, "status", "")


def _allocation(claim: PlainObject) -> object | None:
    return _status(claim).get("allocation")


class ClaimProblem(Exception):
    """A claim of a pod that keeps the pod from being scheduled, in Kubernetes' words."""


CLAIM = "ResourceClaim"
MAX_RESERVATIONS = 256
"""Pods that one claim may be reserved for (ResourceClaimReservedForMaxSize)."""


class BindingFailure(Exception):
    """A device that its driver says it cannot bind."""


def claims_of(pod: Pod, listers: Listers, release: Release) -> list[Claim]:
    """The pod's claims (`claim_objects`) as the allocator reads them."""
    return [claim_from(found.manifest) for found in claim_objects(pod, listers, release)]


def claim_objects(pod: Pod, listers: Listers, release: Release) -> list[PlainObject]:
    """The pod's claims in its order, those left out for which none was needed.

    Source: dynamicresources.go foreachPodResourceClaim,
    staging/src/k8s.io/dynamic-resource-allocation/resourceclaim/claim.go Name and IsForPod, v1.34

    Raises
    ------
    ClaimProblem
    """
    statuses = {
        string(status, "name", path): optional_string(status, "resourceClaimName", path)
        for path, status in mappings(pod.manifest.get("status") or {}, "resourceClaimStatuses", "status")
    }
    claims = []
    for reference in pod.resource_claims:
        own_name = string(reference, "name", "spec.resourceClaims")
        name = optional_string(reference, "resourceClaimName", "spec.resourceClaims")
        is_generated = name is None
        if name is None:
            if reference.get("resourceClaimTemplateName") is None:
                raise ClaimProblem(
                    f'pod "{pod.key}", spec.resourceClaim "{own_name}": none of the supported fields are set'
                )
            if own_name not in statuses:
                raise ClaimProblem(f'pod "{pod.key}": ResourceClaim not created yet')
            name = statuses[own_name]
            if name is None:
                continue
        found: PlainObject | None = listers.get(CLAIM, pod.namespace, name)
        if found is None:
            raise ClaimProblem(f'could not find ResourceClaim "{pod.namespace}/{name}"')
        if found.meta.deletion_ns is not None:
            raise ClaimProblem(f'resourceclaim "{name}" is being deleted')
        controller = found.meta.controller
        if is_generated and (controller is None or controller.uid != pod.uid):
            kind, owner = ("Pod", "Pod") if release.has("PodWrittenLarge") else ("pod", "pod")
            raise ClaimProblem(
                f"ResourceClaim {pod.namespace}/{name} was not created for {kind} {pod.key} "
                f"({owner} is not owner)"
            )
        claims.append(found)
    return claims


def is_ready(claim: Claim) -> bool:
    """Whether all binding conditions of the claim's devices are true.

    Raises
    ------
    BindingFailure
    """
    allocation = claim.allocation
    if allocation is None:
        return False
    for result in (allocation.get("devices") or {}).get("results") or ():
        wanted = result.get("bindingConditions") or ()
        if not wanted:
            continue
        conditions = _conditions(claim, result)
        if conditions is None:
            return False
        for name in result.get("bindingFailureConditions") or ():
            failed = conditions.get(name)
            if failed is not None and failed.get("status") == "True":
                raise BindingFailure(
                    f"device binding failed: claim={claim.name}, reason={failed.get('reason', '')}, "
                    f'message="{failed.get("message", "")}"'
                )
        if any((conditions.get(name) or {}).get("status") != "True" for name in wanted):
            return False
    return True


def has_binding_conditions(claim: Claim) -> bool:
    allocation = claim.allocation or {}
    results = (allocation.get("devices") or {}).get("results") or ()
    return any(result.get("bindingConditions") for result in results)


def is_out_of_time(claim: Claim, timeout_ns: int, now_ns: int, release: Release) -> bool:
    """Whether the driver had its time to bind the claim's devices."""
    written = (claim.allocation or {}).get("allocationTimestamp")
    if written is None or not release_has_binding(release) or not has_binding_conditions(claim):
        return False
    return parse_time_ns(str(written)) + timeout_ns < now_ns


def _conditions(claim: Claim, result: Mapping[str, Any]) -> dict[str, Mapping[str, Any]] | None:
    for device in claim.status.get("devices") or ():
        if all(device.get(key) == result.get(key) for key in ("driver", "pool", "device")):
            return {condition["type"]: condition for condition in device.get("conditions") or ()}
    return None


# --- What a pod that is being bound takes with it: claims reserved, written before the binding, and given back.


FINALIZER = "resource.kubernetes.io/delete-protection"
IN_MEMORY = "<extended-resources>"
"""Name of a claim for extended resources until PreBind has it made."""


@dataclass(slots=True)
class Reservation:
    """What a pod that is being bound takes with it: JSON-able but for the claims' manifests, which are JSON."""

    node_name: str
    claims: list[dict[str, Any]]
    """Manifests, the one for extended resources last."""
    allocations: dict[str, dict[str, Any]]
    """By claim uid, of claims that had none."""
    extended_uid: str = ""
    mappings: list[dict[str, Any]] = field(default_factory=list)
    is_written: bool = False
    failure: str = ""
    """Why the claims cannot be bound, told when what was written before has come back."""
    started_ns: int | None = None
    is_made: bool = False
    """Whether the claim for extended resources, which is made at PreBind, has come back."""


class BindsClaims(ReservePlugin, PreBindPlugin):
    """The part of DynamicResources that holds reservations until their pods are bound; Reserve makes them.

    Source: pkg/scheduler/framework/plugins/dynamicresources, v1.34 to v1.36
    """

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self.release = handle.release
        self.binding_timeout_ns: int = getattr(args, "binding_timeout_ns", None) or 600_000_000_000
        self.reservations: dict[str, Reservation] = {}
        self._writes: dict[str, tuple[Document, ...]] = {}
        self._n_made = 0
        """Claims made for extended resources: no name is used twice, as upstream."""

    def after_claim_change(self, pod: Pod, old: PlainObject | None, new: PlainObject) -> QueueingHint:
        try:
            claims = claim_objects(pod, self.handle.listers, self.release)
        except ClaimProblem:
            return _CLAIM_MISSING
        if old is not None and _allocation(old) is not None and _allocation(new) is None:
            return _DEALLOCATED
        if not any(claim.uid == new.uid for claim in claims):
            return _OTHER_CLAIM
        if old is None:
            return _CLAIM_CREATED
        was_allocated, is_allocated = _allocation(old) is not None, _allocation(new) is not None
        unchanged = without_empties(_status(old)) == without_empties(_status(new))
        return _SAME_STATUS if unchanged and was_allocated == is_allocated else _NEW_STATUS

    def after_pod_change(self, pod: Pod, old: Pod, new: Pod) -> QueueingHint:
        if pod.uid != new.uid:
            return _OTHER_POD
        try:
            claim_objects(new, self.handle.listers, self.release)
        except ClaimProblem:
            return _CLAIM_MISSING
        return _CLAIMS_READY

    def pending_allocations(self) -> dict[str, dict[str, Any]]:
        """Allocations by claim uid that are not written yet."""
        return {
            uid: allocation
            for reservation in self.reservations.values()
            for uid, allocation in reservation.allocations.items()
        }

    def unreserve(self, pod: Pod, node_name: str) -> None:
        reservation = self.reservations.pop(pod.uid, None)
        if reservation is None:
            return
        writes = []
        for manifest in reservation.claims:
            claim = self._current(manifest)
            if claim is None or not claim.is_reserved_for(pod.uid):
                continue
            left = [entry for entry in claim.reserved_for if entry.get("uid") != pod.uid]
            status = {**claim.status, "reservedFor": left}
            if not left:
                del status["reservedFor"]
            writes.append({**claim.manifest, "status": status})
        if writes:
            self._writes[pod.uid] = tuple(writes)

    def will_pre_bind(self, pod: Pod, node_name: str) -> bool:
        return pod.uid in self.reservations

    def pre_bind(self, pod: Pod, node_name: str) -> Status:
        reservation = self.reservations.get(pod.uid)
        if reservation is None:
            return SUCCESS
        if not reservation.is_written:
            writes: list[Document] = []
            try:
                self._bind_claims(reservation, pod, writes)
            except ClaimProblem as problem:
                reservation.failure = str(problem)
            reservation.is_written = True
            reservation.started_ns = self.handle.now_ns
            if writes:
                self._writes[pod.uid] = tuple(writes)
                return Status(Code.Wait)
        if reservation.failure:
            return Status(Code.Error, (reservation.failure,))
        extended = reservation.claims[-1] if reservation.extended_uid else None
        for manifest in reservation.claims:
            claim = self._current(manifest)
            if manifest is extended:
                reservation.is_made |= claim is not None
                if not reservation.is_made:
                    return Status(Code.Wait)
            if claim is None:
                return Status(Code.Error, (f"resource claim {claim_from(manifest).key} is gone",))
            if not claim.is_reserved_for(pod.uid):
                # What was written has not come back yet.
                return Status(Code.Wait)
            status = self._wait_for_devices(claim)
            if not status.is_success:
                return status
        del self.reservations[pod.uid]
        return SUCCESS

    def _wait_for_devices(self, claim: Claim) -> Status:
        if not release_has_binding(self.release) or not has_binding_conditions(claim):
            return SUCCESS
        try:
            if is_ready(claim):
                return SUCCESS
        except BindingFailure as failure:
            return Status(Code.Error, (str(failure),))
        if is_out_of_time(claim, self.binding_timeout_ns, self.handle.now_ns, self.release):
            return Status(Code.Error, (f"device binding timeout: claim={claim.name}",))
        return Status(Code.Wait)

    def _bind_claims(self, reservation: Reservation, pod: Pod, writes: list[Document]) -> None:
        """Add the claims as they are to be written: allocated, and reserved for the pod.

        Those before a claim that cannot be bound are written all the same, as upstream has written them by then.

        Raises
        ------
        ClaimProblem
        """
        for place, manifest in enumerate(reservation.claims):
            uid = claim_from(manifest).uid
            is_extended = uid == reservation.extended_uid
            if is_extended and manifest["metadata"]["name"] == IN_MEMORY:
                manifest = self._named(manifest, pod)
                reservation.claims[place] = manifest
                current: Claim | None = claim_from(manifest)
            else:
                current = self._current(manifest)
            if current is None or current.manifest["metadata"].get("deletionTimestamp") is not None:
                raise ClaimProblem(f"claim {claim_from(manifest).key} got deleted in the meantime")
            if current.is_reserved_for(pod.uid):
                continue
            allocation = reservation.allocations.get(uid)
            meta = dict(current.manifest["metadata"])
            status = dict(current.status)
            if allocation is not None:
                if current.allocation is not None:
                    raise ClaimProblem(f"claim {current.key} got allocated elsewhere in the meantime")
                if FINALIZER not in (meta.get("finalizers") or ()):
                    meta["finalizers"] = [*(meta.get("finalizers") or ()), FINALIZER]
                status["allocation"] = dict(allocation)
            if release_has_binding(self.release):
                if "allocation" not in status:
                    raise ClaimProblem(f"claim {current.key} got deallocated elsewhere in the meantime")
                if "allocationTimestamp" not in status["allocation"]:
                    stamp = {"allocationTimestamp": format_time_ns(self.handle.now_ns)}
                    status["allocation"] = {**status["allocation"], **stamp}
            entry = {"resource": "pods", "name": pod.name, "uid": pod.uid}
            status["reservedFor"] = [*current.reserved_for, entry]
            if is_extended and not reservation.mappings:
                raise ClaimProblem(
                    f"nil or empty request mappings, no update of pod {pod.key} ExtendedResourceClaimStatus"
                )
            writes.append({**current.manifest, "metadata": meta, "status": status})
            if is_extended:
                told = {"requestMappings": reservation.mappings, "resourceClaimName": meta["name"]}
                pod_status = {**(pod.manifest.get("status") or {}), "extendedResourceClaimStatus": told}
                writes.append({**pod.manifest, "status": pod_status})

    def _named(self, manifest: Mapping[str, Any], pod: Pod) -> dict[str, Any]:
        """The claim for extended resources under its own name: a number that is free, for what is random upstream."""
        self._n_made += 1
        while self.handle.listers.get(CLAIM, pod.namespace, f"{pod.name}-extended-resources-{self._n_made}"):
            self._n_made += 1
        name = f"{pod.name}-extended-resources-{self._n_made}"
        meta = {**manifest["metadata"], "name": name, "uid": f"{pod.namespace}/{name}"}
        return {**manifest, "metadata": meta}

    def take_writes(self, pod: Pod) -> tuple[Document, ...]:
        return self._writes.pop(pod.uid, ())

    def pre_bind_deadline_ns(self, pod: Pod) -> int | None:
        reservation = self.reservations.get(pod.uid)
        if reservation is None or reservation.started_ns is None or not release_has_binding(self.release):
            return None
        return reservation.started_ns + self.binding_timeout_ns + 1

    def _current(self, manifest: Mapping[str, Any]) -> Claim | None:
        meta = manifest["metadata"]
        found = self.handle.listers.get(CLAIM, meta.get("namespace") or "default", meta["name"])
        return None if found is None else claim_from(found.manifest)

    # ---- keeping it

    def checkpoint(self) -> Any:
        if not self.reservations and not self._n_made:
            return None
        reservations = {
            uid: {known.name: getattr(item, known.name) for known in fields(item)}
            for uid, item in self.reservations.items()
        }
        return {"reservations": reservations, "made": self._n_made}

    def restore(self, state: Any) -> None:
        self.reservations = {uid: Reservation(**item) for uid, item in state["reservations"].items()}
        self._n_made = state["made"]
