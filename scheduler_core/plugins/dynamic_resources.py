"""DynamicResources: its place in the pipeline, for pods without resource claims."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from scheduler_core.cluster.listers import Listers
from scheduler_core.cluster.node_table import NodeColumns, Rows
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.config.args import Errors, PluginArgs, invalid
from scheduler_core.config.duration import format_duration
from scheduler_core.config.wire import OPTIONAL_DURATION, POINTER, wire
from scheduler_core.framework.cluster_event import ClusterEventWithHint
from scheduler_core.framework.interface import (
    FilteredCycle,
    FilterPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    Reads,
    ReservePlugin,
    ScorePlugin,
    Scores,
)
from scheduler_core.framework.status import SKIP, SUCCESS, Code, Status, Verdicts
from scheduler_core.objects.fields import mappings, optional_string, string
from scheduler_core.objects.pod import Pod
from scheduler_core.plugins.hints import dynamic_resources as hints
from scheduler_core.releases import Release

REASON_NOTHING_TO_DEALLOCATE = "no new claims to deallocate"
REASON_NOT_FOUND = "not found"
"""What PostFilter says when its own PreFilter was never reached: the cycle state holds nothing of it."""

REASON_NOT_SIMULATED = "dynamic resource allocation is not simulated: resource claims cannot be allocated"


@dataclass(frozen=True, slots=True)
class DynamicResourcesArgs(PluginArgs):
    """Time limit of Filter for one node, nanoseconds; 0 = none."""

    filter_timeout_ns: int = wire("filterTimeout", OPTIONAL_DURATION, POINTER, 10_000_000_000)

    def problems(self, path: str) -> Errors:
        if self.filter_timeout_ns < 0:
            value = format_duration(self.filter_timeout_ns)
            return [invalid(f"{path}.filterTimeout", value, "must be zero or positive")]
        return []


@dataclass(frozen=True, slots=True)
class DynamicResourcesArgsWithBinding(DynamicResourcesArgs):
    """Time limit of waiting for devices to be bound, too; nanoseconds."""

    binding_timeout_ns: int | None = wire("bindingTimeout", OPTIONAL_DURATION, POINTER, 600_000_000_000)

    def problems(self, path: str) -> Errors:
        # Without arguments: a dataclass with slots is another class than the one super() is in.
        errors = DynamicResourcesArgs.problems(self, path)
        if self.binding_timeout_ns is not None and self.binding_timeout_ns < 1_000_000_000:
            value = format_duration(self.binding_timeout_ns)
            errors.append(invalid(f"{path}.bindingTimeout", value, "must be at least 1 second"))
        return errors


class DynamicResources(
    PreEnqueuePlugin,
    PreFilterPlugin[None],
    FilterPlugin[None],
    PostFilterPlugin,
    ScorePlugin[None],
    ReservePlugin,
    PreBindPlugin,
):
    """Skips pods without resource claims; a pod with claims waits.

    A claim that does not exist yet holds the pod back in upstream's words. Once all its claims exist the pod
    is rejected with words of our own, as nothing here allocates devices.

    Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, v1.34
    Differs: claims are looked up, never allocated.
    """

    name: ClassVar[str] = "DynamicResources"
    Args = DynamicResourcesArgs
    default_weight: ClassVar[int | None] = 0
    score_reads: ClassVar[Reads] = Reads.SPEC

    @classmethod
    def args_in(cls, release: Release) -> type[PluginArgs]:
        gates = ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus")
        return DynamicResourcesArgsWithBinding if all(map(release.gate, gates)) else DynamicResourcesArgs

    def events(self) -> list[ClusterEventWithHint]:
        return hints.events_to_register(self.handle.listers)

    def pre_enqueue(self, pod: Pod) -> Status:
        if not pod.resource_claims:
            return SUCCESS
        claims = _claim_names(pod, self.handle.snapshot.listers)
        return _rejection(claims) if isinstance(claims, str) else SUCCESS

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> PreFilterResult[None]:
        if not pod.resource_claims:
            return PreFilterResult(SKIP)
        claims = _claim_names(pod, snapshot.listers)
        if isinstance(claims, str):
            return PreFilterResult(_rejection(claims))
        return PreFilterResult(_rejection(REASON_NOT_SIMULATED) if claims else SKIP)

    def filter(self, state: None, pod: Pod, nodes: NodeColumns, rows: Rows) -> Verdicts:
        """Never asked: `pre_filter` skips or rejects every pod."""
        return Verdicts(np.zeros(len(rows), np.int8))

    def sign(self, pod: Pod) -> Hashable | None:
        return None if pod.resource_claims else ()

    def score(self, state: None, pod: Pod, nodes: NodeColumns, rows: Rows) -> Scores:
        return np.zeros(len(rows), np.int64)

    def post_filter(self, cycle: FilteredCycle) -> PostFilterResult:
        reached = cycle.pre_filter_ran(self.name)
        if not reached:
            return PostFilterResult(Status(Code.Error, (REASON_NOT_FOUND,)))
        return PostFilterResult(Status(Code.Unschedulable, (REASON_NOTHING_TO_DEALLOCATE,)))


def _rejection(reason: str) -> Status:
    return Status(Code.UnschedulableAndUnresolvable, (reason,))


def _claim_names(pod: Pod, listers: Listers) -> list[str] | str:
    """Names of the pod's ResourceClaims, all of which exist; or why the pod has to wait.

    Source: dynamicresources.go foreachPodResourceClaim,
    staging/src/k8s.io/dynamic-resource-allocation/resourceclaim/claim.go Name and IsForPod, v1.34
    """
    statuses = {
        string(status, "name", path): optional_string(status, "resourceClaimName", path)
        for path, status in mappings(pod.manifest.get("status") or {}, "resourceClaimStatuses", "status")
    }
    names = []
    for claim in pod.resource_claims:
        own_name = string(claim, "name", "spec.resourceClaims")
        name = optional_string(claim, "resourceClaimName", "spec.resourceClaims")
        is_generated = name is None
        if name is None:
            if claim.get("resourceClaimTemplateName") is None:
                return (
                    f'pod "{pod.key}", spec.resourceClaim "{own_name}": none of the supported fields are set'
                )
            if own_name not in statuses:
                return f'pod "{pod.key}": ResourceClaim not created yet'
            name = statuses[own_name]
            if name is None:
                # None was needed.
                continue
        found: Any = listers.get("ResourceClaim", pod.namespace, name)
        if found is None:
            return f'could not find ResourceClaim "{pod.namespace}/{name}"'
        if found.meta.deletion_ns is not None:
            return f'resourceclaim "{name}" is being deleted'
        controller = found.meta.controller
        if is_generated and (controller is None or controller.uid != pod.uid):
            return (
                f"ResourceClaim {pod.namespace}/{name} was not created for pod {pod.key} (pod is not owner)"
            )
        names.append(name)
    return names
