"""The plugin DynamicResources, over `scheduler_core.dynamic_resources`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from scheduler_core.cluster.node_table import NodeColumns, Rows
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.cluster.vocabulary import Interner
from scheduler_core.config.args import Errors, PluginArgs
from scheduler_core.config.wire import OptionalDurationNs, pointer
from scheduler_core.dynamic_resources.allocation import AllocationError, release_has_binding
from scheduler_core.dynamic_resources.allocator import Allocated, Allocator, NotOnNode
from scheduler_core.dynamic_resources.extended import (
    ANNOTATION,
    ClassesByResource,
    is_possible,
    requests_and_mappings,
)
from scheduler_core.dynamic_resources.model import MAX_ALTERNATIVES, Claim, claim_from, reads_taint_rules
from scheduler_core.dynamic_resources.pools import SliceIndex
from scheduler_core.dynamic_resources.story import story
from scheduler_core.errors import invalid
from scheduler_core.framework import interface as fw
from scheduler_core.framework.cluster_event import ClusterEventWithHint, on
from scheduler_core.framework.failure import PluginFailure
from scheduler_core.framework.status import SUCCESS, Code, Status, Verdicts
from scheduler_core.objects.duration import format_duration
from scheduler_core.objects.meta import object_of
from scheduler_core.objects.node import Node
from scheduler_core.objects.node_selector import node_selector_from
from scheduler_core.objects.pod import Pod
from scheduler_core.plugins.dynamic_resources.claims import (
    CLAIM,
    IN_MEMORY,
    MAX_RESERVATIONS,
    BindingFailure,
    BindsClaims,
    ClaimProblem,
    Reservation,
    claims_of,
    is_out_of_time,
    is_ready,
)
from scheduler_core.releases import Release

# --- What DynamicResources is configured with.


@dataclass(frozen=True, slots=True)
class DynamicResourcesArgs(PluginArgs):
    """Time limit of Filter for one node, nanoseconds; 0 = none."""

    filter_timeout_ns: OptionalDurationNs = pointer(10_000_000_000, "filterTimeout")

    def problems(self, path: str) -> Errors:
        if self.filter_timeout_ns < 0:
            value = format_duration(self.filter_timeout_ns)
            return [invalid(f"{path}.filterTimeout", value, "must be zero or positive")]
        return []


@dataclass(frozen=True, slots=True)
class DynamicResourcesArgsWithBinding(DynamicResourcesArgs):
    """Time limit of waiting for devices to be bound, too; nanoseconds."""

    binding_timeout_ns: OptionalDurationNs | None = pointer(600_000_000_000, "bindingTimeout")

    def problems(self, path: str) -> Errors:
        # Without arguments: a dataclass with slots is another class than the one super() is in.
        errors = DynamicResourcesArgs.problems(self, path)
        if self.binding_timeout_ns is not None and self.binding_timeout_ns < 1_000_000_000:
            value = format_duration(self.binding_timeout_ns)
            errors.append(invalid(f"{path}.bindingTimeout", value, "must be at least 1 second"))
        return errors


_STATE = "DynamicResources"
_NOT_ALL = "cannot allocate all claims"
_REJECTED = Code.UnschedulableAndUnresolvable


@dataclass(slots=True)
class OnNode:
    """What trying one node gave.

    Attributes
    ----------
    code, reason
        The verdict.
    allocations : list of dict
        `status.allocation` of the claims that have none, in order.
    extended : Claim or None
        The claim for extended resources as this node needs it.
    mappings : list of dict
        Which container's request each of its requests serves.
    unavailable : tuple of int
        Claims that cannot be used on the node.
    """

    code: Code = Code.Success
    reason: str = ""
    allocations: list[dict[str, Any]] = field(default_factory=list)
    extended: Claim | None = None
    mappings: list[dict[str, Any]] = field(default_factory=list)
    unavailable: tuple[int, ...] = ()


@dataclass(slots=True)
class State:
    """A pod's claims in one cycle; the one for extended resources, if any, comes last."""

    claims: list[Claim]
    n_own: int
    allocator: Allocator | None
    classes: Mapping[str, str]
    nodes: dict[str, OnNode] = field(default_factory=dict)
    """What was tried on each node itself."""
    alike: dict[Hashable, OnNode] = field(default_factory=dict)
    """What was tried on one node of several whose devices are alike, by their likeness."""
    served: dict[str, tuple[Node, OnNode]] = field(default_factory=dict)
    """Nodes that another one was tried for."""
    reasons: Interner[str] = field(default_factory=Interner)

    @property
    def has_allocated(self) -> bool:
        """Whether some claim is allocated already."""
        return any(claim.allocation is not None for claim in self.claims)

    def tried(self, node_name: str) -> OnNode | None:
        """What was found on the node, or on one alike: as good for all but the names of its devices."""
        served = self.served.get(node_name)
        return self.nodes.get(node_name) if served is None else served[1]

    @property
    def extended(self) -> Claim | None:
        return self.claims[self.n_own] if len(self.claims) > self.n_own else None


class DynamicResources(
    fw.PreEnqueuePlugin,
    fw.PreFilterPlugin[State],
    fw.FilterPlugin[State],
    fw.PostFilterPlugin,
    fw.ScorePlugin[None],
    BindsClaims,
):
    """Allocates devices to the claims of a pod, and rejects rows that do not have them.

    What a node may use is a search, not a comparison of columns; it is made once for all nodes whose devices are alike
    (`dynamic_resources.alike`), and for the chosen node itself. Nodes that were tried are kept for the cycle.

    Source: pkg/scheduler/framework/plugins/dynamicresources, v1.34 to v1.36
    Differs: slices of a pool are taken by name in every release; 1.34 and 1.35 take them in any order.
    """

    name: ClassVar[str] = "DynamicResources"
    Args = DynamicResourcesArgs
    default_weight: ClassVar[int | None] = 0
    score_reads: ClassVar[fw.Reads] = fw.Reads.CLUSTER
    normalizes: ClassVar[bool] = True
    gives_devices: ClassVar[bool] = True

    def __init__(self, args: Any, handle: fw.Handle) -> None:
        super().__init__(args, handle)
        self._slices = SliceIndex()
        self._classes = ClassesByResource()

    @classmethod
    def args_in(cls, release: Release) -> type[PluginArgs]:
        return DynamicResourcesArgsWithBinding if release_has_binding(release) else DynamicResourcesArgs

    def events(self) -> list[ClusterEventWithHint]:
        return [
            on("Node", "Add|UpdateNodeLabel|UpdateNodeAllocatable"),
            on("ResourceClaim", "Add|Update", self.after_claim_change),
            on("Pod", "UpdatePodGeneratedResourceClaim", self.after_pod_change),
            on("DeviceClass", "Add|Update"),
            on("ResourceSlice", "Add|Update"),
        ]

    def sign(self, pod: Pod) -> Hashable | None:
        """None where devices may be wanted: what is free changes with every claim."""
        if pod.resource_claims:
            return None
        if not self.release.gate("DRAExtendedResource"):
            return ()
        return None if any(is_possible(name) and amount for name, amount in pod.requests.items()) else ()

    # ---- before the cycle

    def pre_enqueue(self, pod: Pod) -> Status:
        if not pod.resource_claims:
            return SUCCESS
        try:
            claims_of(pod, self.handle.listers, self.release)
        except ClaimProblem as problem:
            return Status(_REJECTED, (str(problem),))
        return SUCCESS

    # ---- scheduling cycle

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> fw.PreFilterResult[State]:
        self.handle.cycle_state.delete(_STATE)
        listers = snapshot.listers
        try:
            claims = claims_of(pod, listers, self.release) if pod.resource_claims else []
        except ClaimProblem as problem:
            return fw.PreFilterResult(Status(_REJECTED, (str(problem),)))
        n_own = len(claims)
        by_resource: Mapping[str, str] = {}
        if self.release.gate("DRAExtendedResource"):
            by_resource = self._classes.of(listers)
            if by_resource and any(amount and name in by_resource for name, amount in pod.requests.items()):
                claims = [*claims, self._extended_claim(pod)]
        if not claims:
            return fw.SKIP_FILTER
        classes = {item.manifest["metadata"]["name"]: item.manifest for item in listers.all("DeviceClass")}
        pending = self.pending_allocations()
        n_to_allocate = 0
        for index, claim in enumerate(claims):
            if claim.allocation is not None:
                full = len(claim.reserved_for) >= MAX_RESERVATIONS
                if full and not claim.is_reserved_for(pod.uid):
                    return _refused("resourceclaim in use")
                continue
            n_to_allocate += 1
            if claim.uid in pending:
                return _refused(f"resource claim {claim.key} is in the process of being allocated")
            refusal = None if index >= n_own else self._problem_of(claim, classes)
            if refusal is not None:
                return fw.PreFilterResult(refusal)
        allocator = None
        if n_to_allocate:
            allocations = [
                claim["status"]["allocation"]
                for claim in (item.manifest for item in listers.all(CLAIM))
                if (claim.get("status") or {}).get("allocation") is not None
            ]
            allocated = Allocated.of([*allocations, *pending.values()], self.release)
            self._slices.update(listers, with_rules=reads_taint_rules(self.release))
            allocator = Allocator(self._slices, classes, allocated, self.release)
        state = State(claims, n_own, allocator, by_resource)
        self.handle.cycle_state.write(_STATE, state)
        return fw.PreFilterResult(state=state)

    def _problem_of(self, claim: Claim, classes: Mapping[str, Any]) -> Status | None:
        for place, alternatives in enumerate(claim.requests):
            if not alternatives:
                name = claim.spec["requests"][place].get("name", "")
                return Status(
                    _REJECTED, (f"resource claim {claim.key}, request {name}: unknown request type",)
                )
            if alternatives[0].parent and not self.release.gate("DRAPrioritizedList"):
                words = "has subrequests, but the DRAPrioritizedList feature is disabled"
                where = f"resource claim {claim.key}, request {alternatives[0].parent}"
                return Status(_REJECTED, (f"{where}: {words}",))
            for request in alternatives:
                if not request.class_name:
                    return Status(Code.Error, (f"request {request.full_name}: unsupported request type",))
                if request.class_name not in classes:
                    words = f"device class {request.class_name} does not exist"
                    return Status(_REJECTED, (f"request {request.full_name}: {words}",))
        return None

    def _extended_claim(self, pod: Pod) -> Claim:
        """The claim for the pod's extended resources: the one there is, or one in memory."""
        for item in self.handle.listers.all(CLAIM):
            manifest = item.manifest
            annotations = manifest["metadata"].get("annotations") or {}
            if annotations.get(ANNOTATION) == "true" and any(
                owner.get("controller") and owner.get("uid") == pod.uid and owner.get("name") == pod.name
                for owner in manifest["metadata"].get("ownerReferences") or ()
            ):
                return claim_from(manifest)
        owner = {
            "apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid,
            "controller": True, "blockOwnerDeletion": True,
        }  # fmt: skip
        meta = {
            "name": IN_MEMORY,
            "namespace": pod.namespace,
            "uid": f"{IN_MEMORY}/{pod.uid}",
            "generateName": f"{pod.name}-extended-resources-",
            "annotations": {ANNOTATION: "true"},
            "ownerReferences": [owner],
        }
        return claim_from(object_of("resource.k8s.io/v1", CLAIM, meta, spec={}))

    def filter(self, state: State, pod: Pod, nodes: NodeColumns, rows: Rows) -> Verdicts:
        codes = np.zeros(len(rows), np.int8)
        details = np.zeros(len(rows), np.int64)
        for place, row in enumerate(rows.tolist()):
            node = nodes.node(row)
            found = state.nodes.get(node.name) or self._on_one_alike(state, pod, node)
            if found.code is not Code.Success:
                codes[place] = found.code
                details[place] = state.reasons.id(found.reason)
        return Verdicts(codes, details)

    def reasons(
        self, state: State, pod: Pod, nodes: NodeColumns, row: int, code: Code, detail: int
    ) -> tuple[str, ...]:
        return (state.reasons[detail],)

    def _on_one_alike(self, state: State, pod: Pod, node: Node) -> OnNode:
        """What was found on a node whose devices are alike, else what is found here.

        Only plain answers are shared: errors name pools, and claims that are allocated already name nodes.
        """
        likeness = None
        if state.allocator is not None and state.extended is None and not state.has_allocated:
            likeness = state.allocator.likeness(node.name)
        found = None if likeness is None else state.alike.get(likeness)
        if found is not None:
            state.served[node.name] = (node, found)
            return found
        found = state.nodes[node.name] = self._try(state, pod, node)
        if likeness is not None and (found.code is Code.Success or found.reason == _NOT_ALL):
            state.alike[likeness] = found
        return found

    def devices(self, state: State, pod: Pod, node: Node) -> dict[str, Any] | None:
        found = self._try(state, pod, node)
        claims = [
            found.extended if claim is state.extended and found.extended is not None else claim
            for claim in state.claims
        ]
        open_claims = [claim for claim in claims if claim.allocation is None]
        if state.allocator is None:
            allocator = Allocator((), {}, Allocated(), self.release)
            told = story(allocator, node, [], {})
        else:
            told = story(state.allocator, node, open_claims, self._holders())
        if found.code is not Code.Success:
            told |= {"verdict": "rejected", "reason": found.reason}
        told["allocated"] = [
            {
                "claim": claim.key,
                "devices": [
                    "/".join(str(item[key]) for key in ("driver", "pool", "device"))
                    for item in (claim.allocation.get("devices") or {}).get("results") or ()
                ],
                "available": index not in found.unavailable,
            }
            for index, claim in enumerate(claims)
            if claim.allocation is not None
        ]
        return told

    def _holders(self) -> dict[tuple[str, str, str], str]:
        """Who holds each device that is given out."""
        found: dict[tuple[str, str, str], str] = {}
        for item in self.handle.listers.all(CLAIM):
            claim = claim_from(item.manifest)
            pods = ", ".join(str(user.get("name")) for user in claim.reserved_for)
            words = f"claim {claim.name}" + (f" ({pods})" if pods else "")
            for result in ((claim.allocation or {}).get("devices") or {}).get("results") or ():
                if not result.get("adminAccess"):
                    found[str(result["driver"]), str(result["pool"]), str(result["device"])] = words
        return found

    def _try(self, state: State, pod: Pod, node: Node) -> OnNode:
        """Source: dynamicresources.go Filter"""
        found = OnNode()
        if state.extended is not None:
            refused = self._try_extended(state, pod, node, found)
            if refused is not None:
                return refused
            if found.extended is None and not state.n_own:
                return found
        unavailable = [
            index for index, claim in enumerate(state.claims) if not self._is_available(claim, node)
        ]
        if state.allocator is not None:
            claims = [
                found.extended if claim is state.extended and found.extended is not None else claim
                for claim in state.claims
                if claim.allocation is None
            ]
            try:
                allocations = state.allocator.allocate(node, claims)
            except NotOnNode as error:
                return OnNode(_REJECTED, str(error))
            except AllocationError as error:
                return OnNode(Code.Error, str(error))
            if allocations is None:
                return OnNode(_REJECTED, _NOT_ALL)
            found.allocations = allocations
        if unavailable:
            return OnNode(
                _REJECTED, "resourceclaim not available on the node", unavailable=tuple(unavailable)
            )
        return found

    def _is_available(self, claim: Claim, node: Node) -> bool:
        allocation = claim.allocation
        if allocation is None:
            return True
        selector = allocation.get("nodeSelector")
        if selector is not None and not node_selector_from(selector).match(node.labels, node.name):
            return False
        return not release_has_binding(self.release) or self._may_bind(claim)

    def _may_bind(self, claim: Claim) -> bool:
        try:
            ready = is_ready(claim)
        except BindingFailure:
            return False
        return ready or not is_out_of_time(claim, self.binding_timeout_ns, self.handle.now_ns, self.release)

    def _try_extended(self, state: State, pod: Pod, node: Node, found: OnNode) -> OnNode | None:
        claim = state.extended
        assert claim is not None
        if claim.requests:
            return OnNode(_REJECTED, "cannot schedule extended resource claim")
        wanted = []
        for name, amount in pod.requests.items():
            if not amount or not is_possible(name):
                continue
            if name in state.classes and not node.allocatable.get(name):
                wanted.append(name)
            elif name not in node.allocatable:
                return OnNode(_REJECTED, "cannot fit resource")
        if (not state.n_own and not wanted) or claim.allocation is not None:
            return None
        requests, found.mappings = requests_and_mappings(pod.manifest["spec"], wanted, state.classes)
        found.extended = claim_from({**claim.manifest, "spec": {"devices": {"requests": requests}}})
        return None

    def post_filter(self, cycle: fw.FilteredCycle) -> fw.PostFilterResult:
        if not cycle.pre_filter_ran(self.name):
            return fw.PostFilterResult(Status(Code.Error, ("not found",)))
        state: State | None = self.handle.cycle_state.get(_STATE)
        says_so = not self.release.has("NoClaimsUnsaid")
        if state is None:
            return fw.PostFilterResult(
                Status(Code.Unschedulable, ("no new claims to deallocate",) if says_so else ())
            )
        unavailable = sorted({index for tried in state.nodes.values() for index in tried.unavailable})
        for index in unavailable:
            claim = state.claims[index]
            if claim is state.extended:
                continue
            if all(entry.get("uid") == cycle.pod.uid for entry in claim.reserved_for):
                status = {
                    key: value
                    for key, value in claim.status.items()
                    if key not in ("allocation", "reservedFor", "devices")
                }
                return fw.PostFilterResult(
                    Status(Code.Unschedulable, ("deallocation of ResourceClaim completed",)),
                    writes=({**claim.manifest, "status": status},),
                )
        return fw.PostFilterResult(Status(Code.Unschedulable, ("still not schedulable",) if says_so else ()))

    def score(self, state: None, pod: Pod, nodes: NodeColumns, rows: Rows) -> fw.Scores:
        """Prefers nodes that offer an earlier alternative of a request."""
        scores = np.zeros(len(rows), np.int64)
        found: State | None = self.handle.cycle_state.get(_STATE)
        sees_allocated = self.release.has("AllocatedClaimsScored")
        if found is None or (sees_allocated and not self.release.gate("DRAPrioritizedList")):
            return scores
        for place, row in enumerate(rows.tolist()):
            tried = found.tried(nodes.name(row))
            if tried is not None and found.allocator is not None:
                if not sees_allocated and len(tried.allocations) < len(found.claims):
                    said = f"number of allocations {len(tried.allocations)} is smaller than number of claims"
                    words = f'running Score plugins: plugin "{self.name}" failed with: {said}'
                    raise PluginFailure(self.name, "Score", words, said)
                scores[place] = _alternatives_score(found.claims, tried.allocations)
        return scores

    def normalize(
        self, state: None, pod: Pod, nodes: NodeColumns, rows: Rows, scores: fw.Scores
    ) -> fw.Scores:
        return fw.default_normalize(scores)

    # ---- reserving and binding

    def reserve(self, pod: Pod, node_name: str) -> Status:
        state: State | None = self.handle.cycle_state.get(_STATE)
        if state is None:
            return SUCCESS
        if node_name in state.served:
            state.nodes[node_name] = self._try(state, pod, state.served.pop(node_name)[0])
        tried = state.nodes.get(node_name)
        to_allocate = [claim for claim in state.claims if claim.allocation is None]
        reservation = Reservation(node_name, [dict(claim.manifest) for claim in state.claims], {})
        if state.extended is not None:
            reservation.extended_uid = state.extended.uid
        if state.allocator is not None:
            if tried is None or not tried.allocations:
                if all(claim is state.extended for claim in to_allocate):
                    reservation.claims = reservation.claims[: state.n_own]
                    reservation.extended_uid = ""
                    self.reservations[pod.uid] = reservation
                    return SUCCESS
                return Status(Code.Error, ("claim allocation not found for node",))
            for claim, allocation in zip(to_allocate, tried.allocations, strict=True):
                reservation.allocations[claim.uid] = allocation
        if tried is not None:
            reservation.mappings = tried.mappings
            if tried.extended is not None:
                reservation.claims[-1] = dict(tried.extended.manifest)
        self.reservations[pod.uid] = reservation
        return SUCCESS


def _refused(reason: str) -> fw.PreFilterResult[State]:
    return fw.PreFilterResult(Status(_REJECTED, (reason,)))


def _alternatives_score(claims: list[Claim], allocations: list[dict[str, Any]]) -> int:
    """Source: dynamicresources.go computeScore, v1.36"""
    score, left = 0, iter(allocations)
    for claim in claims:
        allocation = claim.allocation or next(left, None) or {}
        results = (allocation.get("devices") or {}).get("results") or ()
        chosen = {result["request"] for result in results}
        for alternatives in claim.requests:
            for place, request in enumerate(alternatives):
                if request.parent and request.full_name in chosen:
                    score += MAX_ALTERNATIVES - place
    return score
