"""NodeResourcesFit: a node must have what the pod requests, and how full it would be is its score."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.node_table import NodeColumns, Rows
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.config import types
from scheduler_core.config.args import Errors, PluginArgs
from scheduler_core.config.wire import omit
from scheduler_core.dynamic_resources.extended import ClassesByResource, is_possible
from scheduler_core.errors import FieldError, invalid, not_supported, required
from scheduler_core.framework import interface as fw
from scheduler_core.framework.amounts import FREE_OF, SHORT, Amount, Comparison
from scheduler_core.framework.cluster_event import QUEUE, SKIP, ClusterEventWithHint, QueueingHint, on
from scheduler_core.framework.status import Code, Verdicts
from scheduler_core.objects.fields import mapping, optional_string
from scheduler_core.objects.meta import PlainObject
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import BySpec, Pod
from scheduler_core.objects.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    PODS,
    amount_text,
    is_extended_resource,
    is_scalar_resource,
)
from scheduler_core.plugins.resource_allocation import (
    allocations,
    broken_linear,
    default_resources,
    least_allocated,
    least_allocated_of_few,
    most_allocated,
    pod_requests_for,
    requested_to_capacity_ratio,
    weighted_mean,
)
from scheduler_core.releases import Release
from scheduler_core.thresholds import thresholds


@dataclass(frozen=True, slots=True)
class RequestedToCapacityRatioParam:
    """The scoring function of the strategy RequestedToCapacityRatio."""

    shape: tuple[types.UtilizationShapePoint, ...] = omit(())


@dataclass(frozen=True, slots=True)
class ScoringStrategy:
    """How NodeResourcesFit scores."""

    type: str = omit("")
    resources: tuple[types.ResourceSpec, ...] = omit(())
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None


@dataclass(frozen=True, slots=True)
class NodeResourcesFitArgs(PluginArgs):
    """What Filter ignores and how Score counts."""

    shape_path: ClassVar[str] = "scoringStrategy"

    ignored_resources: tuple[str, ...] = omit(())
    ignored_resource_groups: tuple[str, ...] = omit(())
    scoring_strategy: ScoringStrategy | None = None

    @classmethod
    def set_defaults(cls, document: dict[str, Any]) -> None:
        # Only an absent strategy gets a type: one without `type` is refused later.
        default_resources(document.setdefault("scoringStrategy", {"type": types.LEAST_ALLOCATED}))

    def problems_when_made(self) -> Errors:
        """Upstream misnames its entry in the table of validators, so these are found only when the plugin is made.

        Source: validation_pluginargs.go ValidateNodeResourcesFitArgs, v1.34
        """
        errors: Errors = []
        for index, name in enumerate(self.ignored_resources):
            errors += types.label_name_errors(name, f"ignoredResources[{index}]")
        for index, group in enumerate(self.ignored_resource_groups):
            here = f"ignoredResourceGroups[{index}]"
            if "/" in group:
                errors.append(invalid(here, group, "resource group name can't contain '/'"))
            errors += types.label_name_errors(group, here)
        strategy = self.scoring_strategy
        if strategy is None:
            return [*errors, required("scoringStrategy", "ScoringStrategy field is required")]
        supported = (types.LEAST_ALLOCATED, types.MOST_ALLOCATED, types.REQUESTED_TO_CAPACITY_RATIO)
        if strategy.type not in supported:
            errors.append(not_supported("scoringStrategy.type", strategy.type, supported))
        for index, resource in enumerate(strategy.resources):
            if not 0 < resource.weight <= 100:
                detail = f"resource weight of {resource.name} not in valid range (0, 100]"
                errors.append(invalid(f"scoringStrategy.resources[{index}].weight", resource.weight, detail))
        if strategy.requested_to_capacity_ratio is not None:
            shape = strategy.requested_to_capacity_ratio.shape
            errors += types.shape_errors(shape, f"{self.shape_path}.shape")
        return errors

    def crash_when_made(self) -> FieldError | None:
        strategy = self.scoring_strategy
        if (
            strategy is None
            or strategy.type != types.REQUESTED_TO_CAPACITY_RATIO
            or strategy.requested_to_capacity_ratio is not None
        ):
            return None
        # Upstream dereferences a nil pointer here.
        return required(
            "scoringStrategy.requestedToCapacityRatio",
            "must be specified when type is RequestedToCapacityRatio",
        )

    def ignoring(self, resources: tuple[str, ...]) -> Self:
        return replace(self, ignored_resources=resources)


@dataclass(frozen=True, slots=True)
class NodeResourcesFitArgsChecked(NodeResourcesFitArgs):
    """As 1.36 checks them: the scoring function is there with its own strategy and with no other."""

    shape_path: ClassVar[str] = "scoringStrategy.requestedToCapacityRatio"

    def problems_when_made(self) -> Errors:
        """Source: validation_pluginargs.go ValidateNodeResourcesFitArgs, v1.36"""
        strategy = self.scoring_strategy
        if strategy is None:
            return NodeResourcesFitArgs.problems_when_made(self)
        ratio, path = strategy.requested_to_capacity_ratio, self.shape_path
        if strategy.type == types.REQUESTED_TO_CAPACITY_RATIO:
            if ratio is None:
                words = "must be specified when type is RequestedToCapacityRatio"
                return [*NodeResourcesFitArgs.problems_when_made(self), required(path, words)]
            return NodeResourcesFitArgs.problems_when_made(self)
        if ratio is None:
            return NodeResourcesFitArgs.problems_when_made(self)
        without = replace(self, scoring_strategy=replace(strategy, requested_to_capacity_ratio=None))
        words = "must be nil when type is not RequestedToCapacityRatio"
        forbidden = FieldError("FieldValueForbidden", path, None, words)
        return [*NodeResourcesFitArgs.problems_when_made(without), forbidden]

    def crash_when_made(self) -> FieldError | None:
        return None


@dataclass(frozen=True, slots=True)
class FitRequest:
    """What Filter checks of a pod, zeros left out.

    Attributes
    ----------
    resource_ids, amounts, names : tuple
        Amounts in whole units.
    columns : tuple of three ndarrays of shape (n, 1), int64
        Ids, amounts, and the bits of a verdict's detail that stand for them; not to be written to.
    delegated : frozenset of int
        Ids of resources that a DeviceClass stands behind: rows that have none of their own are DynamicResources'.
    """

    resource_ids: tuple[int, ...]
    amounts: tuple[int, ...]
    names: tuple[str, ...]
    columns: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
    delegated: frozenset[int] = frozenset()


@lru_cache(maxsize=4096)
def _request(checked: tuple[tuple[int, int, str], ...]) -> FitRequest:
    """A pod's request from (resource id, amount, name) of each resource; replicas ask for the same."""
    ids, amounts = tuple([item[0] for item in checked]), tuple([item[1] for item in checked])
    bits = [2 << place for place in range(len(checked))]
    columns = np.array((ids, amounts, bits), np.int64)[:, :, None]
    return FitRequest(
        ids, amounts, tuple([item[2] for item in checked]), (columns[0], columns[1], columns[2])
    )


class NodeResourcesFit(
    fw.PreFilterPlugin[FitRequest],
    fw.FilterPlugin[FitRequest],
    fw.PreScorePlugin[tuple[int, ...]],
    fw.ScorePlugin[tuple[int, ...] | None],
):
    """Rejects rows where a request exceeds what is free; scores rows by the scoring strategy.

    A verdict's detail is a bit set: bit 0 too many pods, bit i + 1 the i-th requested resource is insufficient.
    The code is UnschedulableAndUnresolvable where a request exceeds the whole allocatable amount.

    Source: pkg/scheduler/framework/plugins/noderesources/fit.go, v1.34

    Examples
    --------
    >>> from scheduler_core.framework.example import scores, verdicts
    >>> pod = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]}
    >>> def node(cpu, *pods):
    ...     return {"status": {"allocatable": {"cpu": cpu, "memory": "4Gi", "pods": "2"}}, "pods": pods}
    >>> verdicts(NodeResourcesFit, pod, n1=node("4"), n2=node("1", pod), n3=node("4", pod, pod))
    {'n1': 'passes', 'n2': 'Insufficient cpu', 'n3': 'Too many pods'}
    >>> scores(NodeResourcesFit, pod, n1=node("4"), n2=node("8"), n3=node("4", pod))
    {'n1': 75, 'n2': 81, 'n3': 50}
    """

    name: ClassVar[str] = "NodeResourcesFit"
    compares: ClassVar[str] = "requests"
    draw: ClassVar[tuple[str, int] | None] = ("F", 5)
    Args = NodeResourcesFitArgs
    default_weight: ClassVar[int | None] = 1
    filter_reads: ClassVar[fw.Reads] = fw.Reads.USAGE
    score_reads: ClassVar[fw.Reads] = fw.Reads.USAGE
    score_without_state: ClassVar[bool] = True
    sign_reads: ClassVar[tuple[str, ...]] = ("DeviceClass",)

    @classmethod
    def args_in(cls, release: Release) -> type[PluginArgs]:
        return NodeResourcesFitArgsChecked if release.has("CapacityRatioChecked") else NodeResourcesFitArgs

    def __init__(self, args: Any, handle: fw.Handle) -> None:
        super().__init__(args, handle)
        self._ignored = frozenset(args.ignored_resources or ())
        self._ignored_groups = frozenset(args.ignored_resource_groups or ())
        strategy = args.scoring_strategy
        self._asked = BySpec(self._request_of)
        self._strategy: str = strategy.type
        self._classes = ClassesByResource()
        self._delegates = handle.release.gate("DRAExtendedResource")
        self._resources = tuple(strategy.resources or ())
        self._scored = BySpec(partial(pod_requests_for, resources=self._resources, real=False))
        self._curve = np.zeros(0, np.int64)
        if self._strategy == "RequestedToCapacityRatio":
            # Shape scores run to 10, node scores to 100.
            self._curve = broken_linear(
                [
                    (point.utilization, point.score * 10)
                    for point in strategy.requested_to_capacity_ratio.shape
                ]
            )

    def events(self) -> list[ClusterEventWithHint]:
        registered = [
            on("Pod", "Delete|UpdatePodScaleDown", after_pod_event),
            on("Node", "Add|UpdateNodeAllocatable", after_node_change),
        ]
        if self.handle.release.gate("DRAExtendedResource"):
            registered.append(on("DeviceClass", "Add|Update", after_device_class_change))
        return registered

    def sign(self, pod: Pod) -> Hashable | None:
        return tuple(pod.requests.items()), pod.scoring, *self._delegated(pod)

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> fw.PreFilterResult[FitRequest]:
        delegated = self._delegated(pod)
        if not delegated:
            return self._asked.of(pod)
        found = self._request_of(pod)
        assert found.state is not None
        ids = frozenset(self.handle.snapshot.vocabulary.resources.id(name) for name in delegated)
        return fw.PreFilterResult(state=replace(found.state, delegated=ids))

    def _delegated(self, pod: Pod) -> list[str]:
        """Requested extended resources of DeviceClasses."""
        known = self._classes.of(self.handle.listers) if self._delegates else None
        if not known:
            return []
        return [name for name, n in pod.requests.items() if n and name in known and is_possible(name)]

    def _request_of(self, pod: Pod) -> fw.PreFilterResult[FitRequest]:
        resources = self.handle.snapshot.vocabulary.resources
        checked = [
            (resources.id(name), amount, name)
            for name, amount in pod.requests.items()
            if amount and name != "pods" and not self._ignores(name)
        ]
        return fw.PreFilterResult(state=_request(tuple(checked)))

    def filter(self, state: FitRequest, pod: Pod, nodes: NodeColumns, rows: Rows) -> Verdicts:
        if len(rows) <= thresholds().allocated_rows and not state.delegated:
            verdicts = [_verdict_of_row(state, nodes, row) for row in rows.tolist()]
            codes = np.array([code for code, _ in verdicts], np.int8)
            return Verdicts(codes, np.array([detail for _, detail in verdicts], np.int64))
        details = (nodes.n_pods[rows] >= nodes.allowed_pods[rows]).astype(np.int64)
        n_known = nodes.allocatable.shape[0]
        lines, amounts, bits = state.columns
        if lines.size and max(state.resource_ids) >= n_known:
            # A resource no node has heard of yet.
            unheard_of = lines[:, 0] >= n_known
            missed = unheard_of & ~np.isin(lines[:, 0], list(state.delegated))
            details |= int(bits[missed].sum())
            lines, amounts, bits = lines[~unheard_of], amounts[~unheard_of], bits[~unheard_of]
            beyond = np.full(len(rows), missed.any())
        else:
            beyond = np.zeros(len(rows), np.bool_)
        allocatable = nodes.allocatable[lines, rows]
        short = amounts > allocatable - nodes.requested[lines, rows]
        if state.delegated:
            short &= ~(np.isin(lines, list(state.delegated)) & (allocatable <= 0))
        if np.count_nonzero(short):
            details |= bits[:, 0] @ short.astype(np.int64)
            beyond |= (short & (amounts > allocatable)).any(axis=0)
        codes = (details != 0).astype(np.int8) * np.int8(Code.Unschedulable)
        codes[beyond] = Code.UnschedulableAndUnresolvable
        return Verdicts(codes, details)

    def reasons(
        self, state: FitRequest, pod: Pod, nodes: NodeColumns, row: int, code: Code, detail: int
    ) -> tuple[str, ...]:
        reasons = ["Too many pods"] if detail & 1 else []
        reasons.extend(
            f"Insufficient {name}" for position, name in enumerate(state.names) if detail & (2 << position)
        )
        return tuple(reasons)

    def compare(self, state: FitRequest, pod: Pod, snapshot: Snapshot) -> Iterator[Comparison]:
        nodes, rows = snapshot.nodes, snapshot.rows
        nothing = np.zeros(len(rows), np.int64)
        for resource_id, asked, name in zip(state.resource_ids, state.amounts, state.names, strict=True):
            known = resource_id < len(nodes.allocatable)
            total = nodes.allocatable[resource_id, rows] if known else nothing
            free = total - nodes.requested[resource_id, rows] if known else nothing
            yield Comparison(
                asked > free,
                (
                    f"{name}: wants {amount_text(name, asked)}, ", Amount(free, name), FREE_OF,
                    Amount(total, name), ", ", Amount(asked - free, name), SHORT,
                ),
            )  # fmt: skip
        allowed = nodes.allowed_pods[rows]
        yield Comparison(
            nodes.n_pods[rows] >= allowed,
            ("pods: ", Amount(nodes.n_pods[rows]), " there, ", Amount(allowed), " allowed"),
        )

    def pre_score(self, pod: Pod, snapshot: Snapshot, rows: Rows) -> fw.PreScoreResult[tuple[int, ...]]:
        return fw.PreScoreResult(state=self._scored.of(pod))

    def score(self, state: tuple[int, ...] | None, pod: Pod, nodes: NodeColumns, rows: Rows) -> fw.Scores:
        if state is None:
            state = self._scored.of(pod)
        if len(rows) <= thresholds().allocated_rows and self._strategy == "LeastAllocated":
            return least_allocated_of_few(nodes, rows, self._resources, state)
        parts = allocations(nodes, rows, self._resources, state, real=False)
        match self._strategy:
            case "MostAllocated":
                return weighted_mean(parts, most_allocated)
            case "RequestedToCapacityRatio":
                return requested_to_capacity_ratio(parts, self._curve)
            case _:
                return weighted_mean(parts, least_allocated)

    def _ignores(self, name: str) -> bool:
        if not is_extended_resource(name):
            return False
        return name in self._ignored or name.split("/", 1)[0] in self._ignored_groups


def _verdict_of_row(state: FitRequest, nodes: NodeColumns, row: int) -> tuple[Code, int]:
    """(code, detail) of one row."""
    detail = int(nodes.n_pods.item(row) >= nodes.allowed_pods.item(row))
    code = Code.Unschedulable if detail else Code.Success
    n_known = len(nodes.allocatable)
    for place, (resource_id, amount) in enumerate(zip(state.resource_ids, state.amounts, strict=True)):
        # A resource no node has heard of yet is there nowhere.
        known = resource_id < n_known
        allocatable = nodes.allocatable.item(resource_id, row) if known else 0
        if known and amount <= allocatable - nodes.requested.item(resource_id, row):
            continue
        detail |= 2 << place
        if amount > allocatable:
            code = Code.UnschedulableAndUnresolvable
        elif code is Code.Success:
            code = Code.Unschedulable
    return code, detail


# ---- hints: when a pod that the plugin rejected is worth another try

_FREED = QUEUE.because("a pod left its node and freed what it held")
_UNASSIGNED = SKIP.because("the deleted pod was on no node")
_SCALED_DOWN = QUEUE.because("a pod on a node released something the pod requests")
_OWN_REQUESTS = QUEUE.because("the pod requests less")
_PENDING_POD = SKIP.because("the pod that requests less is on no node")
_OTHER_RESOURCES = SKIP.because("what was given back is nothing the pod requests")
_NEW_FITS = QUEUE.because("the new node is large enough for the pod")
_GREW = QUEUE.because("the node has more of what the pod requests, and enough")
_TOO_SMALL = SKIP.because("even empty the node is too small for the pod")
_OFFERED = QUEUE.because("a device class offers a resource that the pod requests")
_NOT_OFFERED = SKIP.because("the device class offers nothing new that the pod requests")
_NOT_GROWN = SKIP.because("the node has no more of what the pod requests")


def after_device_class_change(pod: Pod, old: PlainObject | None, new: PlainObject) -> QueueingHint:
    name = _extended_resource(new)
    if old is None and f"deviceclass.resource.kubernetes.io/{new.name}" in pod.requests:
        return _OFFERED
    if name is None or (old is not None and _extended_resource(old) == name):
        return _NOT_OFFERED
    return _OFFERED if name in pod.requests else _NOT_OFFERED


def _extended_resource(device_class: PlainObject) -> str | None:
    spec = mapping(device_class.manifest, "spec", "")
    return optional_string(spec, "extendedResourceName", "spec")


def after_pod_event(pod: Pod, old: Pod, new: Pod | None) -> QueueingHint:
    if new is None:
        return _FREED if old.node_name or old.nominated_node_name else _UNASSIGNED
    if new.uid == pod.uid:
        return _OWN_REQUESTS
    if not new.node_name:
        return _PENDING_POD
    for name, amount in pod.requests.items():
        if amount and _is_counted(name) and old.requests.get(name, 0) > new.requests.get(name, 0):
            return _SCALED_DOWN
    return _OTHER_RESOURCES


def after_node_change(pod: Pod, old: Node | None, new: Node) -> QueueingHint:
    if not _fits_empty(pod, new):
        return _TOO_SMALL
    if old is None:
        return _NEW_FITS
    return _GREW if _has_grown(pod, old, new) else _NOT_GROWN


def _fits_empty(pod: Pod, node: Node) -> bool:
    allocatable = node.allocatable
    if allocatable.get(PODS, 0) < 1:
        return False
    return all(
        amount <= allocatable.get(name, 0)
        for name, amount in pod.requests.items()
        if amount and _is_counted(name)
    )


def _has_grown(pod: Pod, old: Node, new: Node) -> bool:
    if new.allocatable.get(PODS, 0) > old.allocatable.get(PODS, 0):
        return True
    return any(
        new.allocatable.get(name, 0) > old.allocatable.get(name, 0)
        for name, amount in pod.requests.items()
        if amount and _is_counted(name)
    )


def _is_counted(name: str) -> bool:
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar_resource(name)
