"""The ResourceClaims of a pod, and what they say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler_core.cluster.listers import Listers
from scheduler_core.dynamic_resources.allocation import release_has_binding
from scheduler_core.dynamic_resources.model import Claim, claim_from
from scheduler_core.objects.fields import mappings, optional_string, parse_time_ns, string
from scheduler_core.objects.pod import Pod
from scheduler_core.plugins.dynamic_resources.hints import ClaimProblem
from scheduler_core.releases import Release

CLAIM = "ResourceClaim"
MAX_RESERVATIONS = 256
"""Pods that one claim may be reserved for (ResourceClaimReservedForMaxSize)."""


class BindingFailure(Exception):
    """A device that its driver says it cannot bind."""


def claims_of(pod: Pod, listers: Listers, release: Release) -> list[Claim]:
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
        found: Any = listers.get(CLAIM, pod.namespace, name)
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
        claims.append(claim_from(found.manifest))
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


def binding_status(claim: Claim) -> str:
    """Devices with what is pending and what failed, as upstream tells them."""
    parts = []
    for result in ((claim.allocation or {}).get("devices") or {}).get("results") or ():
        wanted = result.get("bindingConditions") or ()
        if not wanted:
            continue
        conditions = _conditions(claim, result) or {}

        def is_true(name: str, known: Mapping[str, Any] = conditions) -> bool:
            return (known.get(name) or {}).get("status") == "True"

        failed = [name for name in result.get("bindingFailureConditions") or () if is_true(name)]
        pending = [name for name in wanted if not is_true(name)]
        text = f"<driver={result['driver']}, pool={result['pool']}> {result['device']}"
        if failed:
            text += f" failed=[{','.join(failed)}]"
        elif pending:
            text += f" pending=[{','.join(pending)}]"
        parts.append(text)
    return "; ".join(parts)


def _conditions(claim: Claim, result: Mapping[str, Any]) -> dict[str, Mapping[str, Any]] | None:
    for device in claim.status.get("devices") or ():
        if all(device.get(key) == result.get(key) for key in ("driver", "pool", "device")):
            return {condition["type"]: condition for condition in device.get("conditions") or ()}
    return None
