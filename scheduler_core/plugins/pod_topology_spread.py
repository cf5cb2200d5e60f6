"""The PodTopologySpread plugin: which constraints hold, and what they say at each extension point."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.listers import DefaultSelectors
from scheduler_core.cluster.matching import Matching
from scheduler_core.cluster.node_table import Bool, Int32, NodeColumns, Rows
from scheduler_core.cluster.selection import PodSelector, Selection
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.cluster.topology import Among, Domains
from scheduler_core.cluster.what_if import WhatIf
from scheduler_core.config import wire
from scheduler_core.config.args import Errors, PluginArgs
from scheduler_core.config.types import LIST_DEFAULTING, label_name_errors
from scheduler_core.errors import FieldError, invalid, not_supported, required
from scheduler_core.framework import interface as fw
from scheduler_core.framework.amounts import Amount, Comparison
from scheduler_core.framework.cluster_event import (
    QUEUE,
    SKIP,
    ClusterEventWithHint,
    QueueingHint,
    node_taints,
    on,
)
from scheduler_core.framework.domain_lanes import DomainRule
from scheduler_core.framework.status import Code, Verdicts
from scheduler_core.objects.labels import NOTHING
from scheduler_core.objects.node import LABEL_HOSTNAME, LABEL_ZONE, Node
from scheduler_core.objects.pod import Pod, TopologySpreadConstraint, spread_constraints

# --- What PodTopologySpread is configured with.


SYSTEM_DEFAULTING = "System"

_CONSTRAINTS = wire.ListOf(wire.ApiObject("core.v1.TopologySpreadConstraint"))


@dataclass(frozen=True, slots=True)
class PodTopologySpreadArgs(PluginArgs):
    """`default_constraints` are core/v1 TopologySpreadConstraint documents (no labelSelector)."""

    default_constraints: Annotated[tuple[wire.Document, ...], _CONSTRAINTS] = wire.omit(())
    defaulting_type: str = wire.omit(SYSTEM_DEFAULTING)

    def problems(self, path: str) -> Errors:
        errors: Errors = []
        kind, here = self.defaulting_type, f"{path}.defaultingType"
        if kind not in (SYSTEM_DEFAULTING, LIST_DEFAULTING):
            errors.append(not_supported(here, kind, (SYSTEM_DEFAULTING, LIST_DEFAULTING)))
        elif kind == SYSTEM_DEFAULTING and self.default_constraints:
            errors.append(invalid(here, kind, "when .defaultConstraints are not empty"))
        seen: set[tuple[str, str]] = set()
        for index, constraint in enumerate(self.default_constraints):
            here = f"{path}.defaultConstraints[{index}]"
            key, action = constraint["topologyKey"], constraint["whenUnsatisfiable"]
            if constraint["maxSkew"] <= 0:
                errors.append(
                    invalid(f"{here}.maxSkew", constraint["maxSkew"], "not in valid range (0, inf)")
                )
            if key:
                errors += label_name_errors(key, f"{here}.topologyKey")
            else:
                errors.append(required(f"{here}.topologyKey", "can not be empty"))
            if not action:
                errors.append(required(f"{here}.whenUnsatisfiable", "can not be empty"))
            elif action not in ("DoNotSchedule", "ScheduleAnyway"):
                supported = ("DoNotSchedule", "ScheduleAnyway")
                errors.append(not_supported(f"{here}.whenUnsatisfiable", action, supported))
            if constraint.get("labelSelector") is not None:
                detail = "constraint must not define a selector, as they deduced for each pod"
                errors.append(FieldError("FieldValueForbidden", f"{here}.labelSelector", "", detail))
            if (key, action) in seen:
                errors.append(FieldError("FieldValueDuplicate", here, f"{{{key}, {action}}}", ""))
            seen.add((key, action))
        return errors


# --- The constraints that hold for a pod: its own, or the profile's defaults with a deduced selector.


SPREAD = "spread"
DO_NOT_SCHEDULE = "DoNotSchedule"
SCHEDULE_ANYWAY = "ScheduleAnyway"
HONOR = "Honor"
IGNORE = "Ignore"


def _default(max_skew: int, key: str, when_unsatisfiable: str) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(max_skew, key, when_unsatisfiable, NOTHING, None, HONOR, IGNORE)


SYSTEM_DEFAULTS = (
    _default(3, LABEL_HOSTNAME, SCHEDULE_ANYWAY),
    _default(5, LABEL_ZONE, SCHEDULE_ANYWAY),
)


@dataclass(frozen=True, slots=True)
class Defaults:
    """Constraints for pods without any.

    Attributes
    ----------
    constraints : tuple of TopologySpreadConstraint
        Their selectors are not read: a pod's is deduced.
    by_system : bool
        They are Kubernetes' own, which score nodes that lack a topology label too.
    """

    constraints: tuple[TopologySpreadConstraint, ...] = SYSTEM_DEFAULTS
    by_system: bool = True

    @classmethod
    def from_args(cls, args: Any) -> Defaults:
        """Read a PodTopologySpreadArgs; None = the default one."""
        if args is None or args.defaulting_type == "System":
            return cls()
        return cls(spread_constraints({"topologySpreadConstraints": args.default_constraints}), False)

    def of(self, pod: Pod, action: str, selectors: DefaultSelectors) -> tuple[TopologySpreadConstraint, ...]:
        """The constraints of one kind (`whenUnsatisfiable`) that hold for a pod.

        Source: podtopologyspread/common.go buildDefaultConstraints, v1.34
        """
        if pod.topology_spread:
            return tuple([item for item in pod.topology_spread if item.when_unsatisfiable == action])
        defaults = [item for item in self.constraints if item.when_unsatisfiable == action]
        if not defaults:
            return ()
        selector = selectors.of(pod)
        if selector.is_everything:
            return ()
        return tuple([replace(item, selector=selector) for item in defaults])


def selection_of(constraint: TopologySpreadConstraint, pod: Pod, matching: Matching) -> Selection:
    """The pods a constraint counts: those of the pod's namespace that are not about to go."""
    return matching.selection((PodSelector(constraint.selector, (pod.namespace,)),), live_only=True)


def counted_nodes(
    constraint: TopologySpreadConstraint, pod: Pod, keys: Sequence[str], missing_is_empty: bool = False
) -> Among:
    """The nodes whose pods a constraint counts: those with all `keys` that its inclusion policies let in."""
    affinity = None
    if constraint.node_affinity_policy == HONOR and not pod.required_node_affinity.is_everything:
        affinity = pod.required_node_affinity
    tolerations = pod.tolerations if constraint.node_taints_policy == HONOR else None
    return Among(tuple(keys), affinity, tolerations, missing_is_empty)


# --- Hard constraints: how many matching pods a domain may have over the emptiest one.


NO_DOMAIN_MINIMUM = 2**31 - 1
"""The global minimum over no domain at all (`math.MaxInt32` upstream)."""


@dataclass(slots=True)
class HardConstraint:
    """One DoNotSchedule constraint and how its pods are spread.

    Attributes
    ----------
    counts : ndarray of shape (domains.n_values,), int64
        Counted pods of each domain.
    max_skew : int
        As written.
    limit : int
        Most pods a domain may have, the incoming one left out, over the global minimum.
    few_domains : bool
        There are fewer domains than `minDomains`: the global minimum is 0.
    """

    key: str
    domains: Domains
    selection: Selection
    counts: NDArray[np.int64]
    max_skew: int
    limit: int
    few_domains: bool

    @classmethod
    def of(
        cls, constraint: TopologySpreadConstraint, pod: Pod, keys: tuple[str, ...], matching: Matching
    ) -> HardConstraint:
        """Count for an incoming pod whose hard constraints have these topology keys."""
        domains = matching.topology.domains(constraint.topology_key, counted_nodes(constraint, pod, keys))
        selection = selection_of(constraint, pod, matching)
        if constraint.selector.is_everything:
            # Upstream counts no pod for an empty selector, though it lets it match in every other place.
            counts = np.zeros(domains.n_values, np.int64)
        else:
            counts = selection.counts(domains).by_domain
        min_domains = 1 if constraint.min_domains is None else constraint.min_domains
        matches_itself = selection.selects_class(matching.pods.class_of(pod))
        return cls(
            key=constraint.topology_key,
            domains=domains,
            selection=selection,
            counts=counts,
            max_skew=constraint.max_skew,
            limit=constraint.max_skew - int(matches_itself),
            few_domains=len(domains.present) < min_domains,
        )

    @property
    def minimum(self) -> int:
        """Pods of the emptiest domain."""
        if self.few_domains:
            return 0
        present = self.counts[self.domains.present]
        return int(present.min()) if len(present) else NO_DOMAIN_MINIMUM

    def codes(self, nodes: NodeColumns, rows: Rows) -> NDArray[np.int8]:
        """The constraint's verdict on each row as the cluster is."""
        by_domain = np.empty(len(self.counts) + 1, np.int8)
        np.multiply(self.counts > self.limit + self.minimum, np.int8(Code.Unschedulable), out=by_domain[:-1])
        # A row without the label has domain -1, the last place.
        by_domain[-1] = Code.UnschedulableAndUnresolvable
        codes: NDArray[np.int8] = by_domain.take(nodes.label_column(self.key).take(rows))
        return codes

    def compare(self, nodes: NodeColumns, rows: Rows) -> Iterator[Comparison]:
        """The skew there would be on each row as the cluster is."""
        own = nodes.label_column(self.key)[rows]
        yield Comparison(own < 0, (f"no label {self.key}",))
        counts, minimum = np.append(self.counts, 0)[own], self.minimum
        fails = (own >= 0) & (counts > self.limit + minimum)
        values = nodes.vocabulary.label_values[self.key].values
        skew = counts + (self.max_skew - self.limit) - minimum
        emptiest = "fewer domains than minDomains, so 0" if self.few_domains else f"the emptiest {minimum}"
        words = (
            f"{self.key}=", Amount(own, values), " holds ", Amount(counts),
            f", {emptiest}: with this pod a skew of ", Amount(skew), f", maxSkew {self.max_skew}",
        )  # fmt: skip
        yield Comparison(fails, words)


class ConstraintWorlds:
    """One hard constraint seen from rows that are separate worlds.

    Only the row's own domain can change in its world, and with it its part in the global minimum.
    """

    __slots__ = ("constraint", "counted", "counts", "has_label", "in_minimum", "others_minimum")

    def __init__(self, constraint: HardConstraint, nodes: WhatIf) -> None:
        self.constraint = constraint
        domains = constraint.domains
        own = nodes.label_column(constraint.key)
        self.has_label: Bool = own >= 0
        self.counted: Bool = domains.of_row[nodes.base_rows] >= 0
        self.counts: NDArray[np.int64] = np.append(constraint.counts, 0)[own]
        self.in_minimum: Bool = np.append(domains.is_present, False)[own]
        present = constraint.counts[domains.present]
        padded = np.append(present, (NO_DOMAIN_MINIMUM, NO_DOMAIN_MINIMUM))
        smallest, second = np.partition(padded, 1)[:2]
        emptiest = int(domains.present[present.argmin()]) if len(present) else -1
        self.others_minimum: NDArray[np.int64] = np.where(own == emptiest, second, smallest)

    def change(self, rows: Rows, class_ids: NDArray[np.integer], sign: int) -> None:
        """Pods of these classes came to (1) or left (-1) these rows."""
        matched = self.constraint.selection.selects_classes(class_ids)
        # As upstream, terminating pods are moved although they were never counted.
        moved = rows[matched & self.counted[rows]]
        self.counts[moved] += sign

    def codes(self, rows: Rows) -> NDArray[np.int8]:
        """The constraint's verdict on each row in its world."""
        counts = self.counts[rows]
        if self.constraint.few_domains:
            rejected = counts > self.constraint.limit
        else:
            others = self.others_minimum[rows]
            minimum = np.where(self.in_minimum[rows], np.minimum(others, counts), others)
            rejected = counts - minimum > self.constraint.limit
        codes = rejected * np.int8(Code.Unschedulable)
        codes[~self.has_label[rows]] = Code.UnschedulableAndUnresolvable
        return codes


@dataclass(slots=True)
class HardState:
    """All hard constraints of an incoming pod.

    Attributes
    ----------
    worlds : list of ConstraintWorlds or None
        Aligned with `constraints`; None for the cluster as it is.
    """

    constraints: list[HardConstraint]
    worlds: list[ConstraintWorlds] | None = None

    def codes(self, nodes: NodeColumns, rows: Rows) -> NDArray[np.int8]:
        """For each row the verdict of the first constraint that rejects it."""
        codes: NDArray[np.int8] | None = None
        for index, constraint in enumerate(self.constraints):
            verdict = constraint.codes(nodes, rows) if self.worlds is None else self.worlds[index].codes(rows)
            codes = verdict if codes is None else np.where(codes == 0, verdict, codes)
        return np.zeros(len(rows), np.int8) if codes is None else codes


# --- Soft constraints: the fewer matching pods the domains of a node have, the better.


MAX_SCORE = 100


@dataclass(slots=True)
class SoftConstraint:
    """One ScheduleAnyway constraint.

    Attributes
    ----------
    by_domain : ndarray of shape (n_values + 1,), float64, or None
        What a row of each domain gets; the last place is for rows without the label. None counts the pods of
        each row by itself (hostname).
    selection : Selection or None
        The pods to count row by row; None when no pod is counted.
    weight : float
    tolerance : float
        maxSkew - 1, which waters small differences down.
    domains : Domains or None
        Those of `by_domain`.
    """

    key: str
    by_domain: NDArray[np.float64] | None
    selection: Selection | None
    weight: float
    tolerance: float
    domains: Domains | None = None

    def points(self, domain: Int32, rows: Rows) -> NDArray[np.float64]:
        """What the constraint gives each row, unrounded."""
        if self.by_domain is not None:
            points: NDArray[np.float64] = self.by_domain.take(domain)
            return points
        if self.selection is None:
            points = np.full(len(rows), self.tolerance)
        else:
            points = self.selection.column.take(rows).astype(np.float64) * self.weight + self.tolerance
        points[domain < 0] = 0.0
        return points


@dataclass(slots=True)
class SoftState:
    """All soft constraints of an incoming pod, for some candidate rows.

    Attributes
    ----------
    require_all : bool
        Rows that lack a topology label are left out: they end with 0.
    rows : ndarray of shape (n,), intp
        The candidates.
    domains : list of ndarray of shape (n,), int32
        The candidates' domains for each constraint, -1 without the label.
    """

    constraints: list[SoftConstraint]
    require_all: bool
    rows: Rows
    domains: list[Int32]

    @classmethod
    def of(
        cls,
        constraints: tuple[TopologySpreadConstraint, ...],
        pod: Pod,
        matching: Matching,
        rows: Rows,
        *,
        require_all: bool,
    ) -> SoftState:
        """Count for an incoming pod and its candidate rows."""
        nodes = matching.nodes
        keys = tuple([item.topology_key for item in constraints])
        state = cls([], require_all, rows, [nodes.label_column(key).take(rows) for key in keys])
        ignored = state.ignored(nodes, rows)
        n_scored = len(rows) if ignored is None else len(rows) - int(np.count_nonzero(ignored))
        for constraint, domain in zip(constraints, state.domains, strict=True):
            selection: Selection | None = None
            if not constraint.selector.is_everything:
                selection = selection_of(constraint, pod, matching)
            tolerance = float(constraint.max_skew - 1)
            key = constraint.topology_key
            if key == LABEL_HOSTNAME:
                weight = normalizing_weight(n_scored)
                state.constraints.append(SoftConstraint(key, None, selection, weight, tolerance))
                continue
            among = counted_nodes(constraint, pod, keys if require_all else (), not require_all)
            domains = matching.topology.domains(key, among)
            scored = domain if ignored is None else domain[~ignored]
            weight = normalizing_weight(
                _n_domains(scored, domains.n_values, nodes.vocabulary.label_values[key].find(""))
            )
            by_domain = np.zeros(domains.n_values + 1)
            if selection is None:
                by_domain[:-1] = tolerance
            else:
                by_domain[:-1] = selection.counts(domains).by_domain * weight + tolerance
            state.constraints.append(SoftConstraint(key, by_domain, selection, weight, tolerance, domains))
        return state

    def ignored(self, nodes: NodeColumns, rows: Rows) -> Bool | None:
        """Rows left out; None for none."""
        if not self.require_all:
            return None
        ignored: Bool | None = None
        for domain in self._domains_of(nodes, rows):
            lacking = domain < 0
            ignored = lacking if ignored is None else ignored | lacking
        return ignored if ignored is not None and ignored.any() else None

    def scores(self, nodes: NodeColumns, rows: Rows) -> fw.Scores:
        """Raw scores: the higher, the more crowded."""
        domains = self._domains_of(nodes, rows)
        if len(self.constraints) == 1 and self.constraints[0].by_domain is not None:
            # Rounding a domain's points once is the same as rounding them at each of its rows.
            scores: fw.Scores = _rounded(self.constraints[0].by_domain).take(domains[0])
            return scores
        total = np.zeros(len(rows))
        for constraint, domain in zip(self.constraints, domains, strict=True):
            total += constraint.points(domain, rows)
        scores = _rounded(total)
        ignored = self.ignored(nodes, rows)
        if ignored is not None:
            scores[ignored] = 0
        return scores

    def normalized(self, nodes: NodeColumns, rows: Rows, scores: fw.Scores) -> fw.Scores:
        """Scores from 0 to 100: the higher, the emptier."""
        ignored = self.ignored(nodes, rows)
        scored = scores if ignored is None else scores[~ignored]
        if not len(scored):
            return np.zeros(len(rows), np.int64)
        least, most = int(scored.min()), max(0, int(scored.max()))
        if most == 0:
            result = np.full(len(rows), MAX_SCORE, np.int64)
        else:
            result = MAX_SCORE * (most + least - scores)
            if least < 0:
                result = np.sign(result) * (np.abs(result) // most)
            else:
                result //= most
        if ignored is not None:
            result[ignored] = 0
        # Upstream marks ignored nodes with -1 and takes a raw score of -1 for such a mark.
        if least < 0:
            result[scores == -1] = 0
        return result

    def _domains_of(self, nodes: NodeColumns, rows: Rows) -> list[Int32]:
        if rows is self.rows or not self.constraints:
            return self.domains
        return [nodes.label_column(constraint.key)[rows] for constraint in self.constraints]


def _n_domains(domain: Int32, n_values: int, empty: int) -> int:
    """How many domains these are; rows without the label make up the domain of the empty value."""
    n_rows = np.bincount(domain + 1, minlength=n_values + 1)
    n_domains = int(np.count_nonzero(n_rows))
    if empty >= 0 and n_rows[0] and n_rows[empty + 1]:
        n_domains -= 1
    return n_domains


def _rounded(values: NDArray[np.float64]) -> fw.Scores:
    """Nearest integers, halves away from zero (`math.Round`)."""
    whole = np.trunc(values)
    rest = values - whole
    return (whole + (rest >= 0.5) - (rest <= -0.5)).astype(np.int64)


_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_L1, _L2, _L3, _L4 = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
)
_L5, _L6, _L7 = 1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01


def normalizing_weight(n_domains: int) -> float:
    """`log(n_domains + 2)` to the last bit as Go computes it.

    Examples
    --------
    >>> normalizing_weight(3)
    1.6094379124341003
    """
    fraction, exponent = math.frexp(n_domains + 2)
    if fraction < math.sqrt(2) / 2:
        fraction *= 2
        exponent -= 1
    f = fraction - 1
    s = f / (2 + f)
    s2 = s * s
    s4 = s2 * s2
    t1 = s2 * (_L1 + s4 * (_L3 + s4 * (_L5 + s4 * _L7)))
    t2 = s4 * (_L2 + s4 * (_L4 + s4 * _L6))
    half = 0.5 * f * f
    return exponent * _LN2_HIGH - ((half - (s * (half + (t1 + t2)) + exponent * _LN2_LOW)) - f)


# --- When a pod rejected by PodTopologySpread is worth another try.


_UNINVOLVED = SKIP.because("the other pod is on no node or in another namespace")
_TOLERATION = QUEUE.because("the pod got a toleration, and a constraint honors taints")
_SAME_LABELS = SKIP.because("the other pod's labels are as before")
_COUNTED_OTHERWISE = QUEUE.because("the changed labels are counted by a constraint of the pod")
_COUNTED_ALIKE = SKIP.because("the changed labels are counted by no constraint of the pod")
_COUNTED = QUEUE.because("a pod that a constraint counts came to a node")
_NOT_COUNTED = SKIP.because("the new pod is counted by no constraint of the pod")
_UNCOUNTED = QUEUE.because("a pod that a constraint counted is gone")
_NEVER_COUNTED = SKIP.because("the deleted pod was counted by no constraint of the pod")
_JOINED = QUEUE.because("the node joined or left the domains of the pod's constraints")
_MOVED = QUEUE.because("the node's domain or taints changed")
_STAYED = SKIP.because("nothing changed about the node's domain or taints")
_NEW_NODE = QUEUE.because("the new node has every topology key of the pod's constraints")
_NO_KEYS = SKIP.because("the node lacks a topology key of the pod's constraints")
_NODE_GONE = QUEUE.because("a node with every topology key of the pod's constraints is gone")


def _after_update(
    pod: Pod, old: Pod, new: Pod, constraints: Sequence[TopologySpreadConstraint]
) -> QueueingHint:
    if (
        pod.uid == new.uid
        and new.tolerations != old.tolerations
        and any(constraint.node_taints_policy == "Honor" for constraint in constraints)
    ):
        return _TOLERATION
    if new.labels == old.labels:
        return _SAME_LABELS
    for constraint in constraints:
        if constraint.selector.matches(old.labels) != constraint.selector.matches(new.labels):
            return _COUNTED_OTHERWISE
    return _COUNTED_ALIKE


def _is_involved(other: Pod, pod: Pod, nominated_counts: bool) -> bool:
    if other.uid == pod.uid:
        return True
    placed = other.node_name or (nominated_counts and other.nominated_node_name)
    return bool(placed) and other.namespace == pod.namespace


def _counts(constraints: Sequence[TopologySpreadConstraint], other: Pod) -> bool:
    return any(constraint.selector.matches(other.labels) for constraint in constraints)


def _has_keys(labels: Mapping[str, str], constraints: Sequence[TopologySpreadConstraint]) -> bool:
    return all(constraint.topology_key in labels for constraint in constraints)


REASON_SKEW = "node(s) didn't match pod topology spread constraints"
REASON_LABEL = REASON_SKEW + " (missing required label)"


class PodTopologySpread(
    fw.PreFilterPlugin[HardState],
    fw.FilterPlugin[HardState],
    fw.PreScorePlugin[SoftState],
    fw.ScorePlugin[SoftState],
):
    """Rejects rows whose topology domain would get too many matching pods; likes the emptier domains better.

    Counts by domain are kept up to date in `cluster.matching`, so a cycle gathers them and compares.

    Source: pkg/scheduler/framework/plugins/podtopologyspread/plugin.go, v1.34

    Examples
    --------
    Two zones with one and no matching pod; a third node without a zone cannot be used at all.

    >>> from types import SimpleNamespace
    >>> from scheduler_core.cluster.cache import Cache
    >>> from scheduler_core.objects.node import node_from
    >>> from scheduler_core.objects.pod import pod_from
    >>> cache = Cache()
    >>> for name, labels in (("n1", {"zone": "a"}), ("n2", {"zone": "b"}), ("n3", {})):
    ...     cache.set_node(node_from({"metadata": {"name": name, "labels": labels}}))
    >>> web = {"namespace": "default", "labels": {"app": "web"}}
    >>> cache.add_pod(pod_from({"metadata": {"name": "p1", "uid": "p1", **web}, "spec": {"nodeName": "n1"}}))
    >>> constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
    ...     "labelSelector": {"matchLabels": {"app": "web"}}}
    >>> spec = {"topologySpreadConstraints": [constraint]}
    >>> pod = pod_from({"metadata": {"name": "p2", "uid": "p2", **web}, "spec": spec})
    >>> plugin, snapshot = PodTopologySpread(None, SimpleNamespace()), cache.snapshot()
    >>> state = plugin.pre_filter(pod, snapshot).state
    >>> [Code(code).name for code in plugin.filter(state, pod, snapshot.nodes, snapshot.rows).codes]
    ['Unschedulable', 'Success', 'UnschedulableAndUnresolvable']
    """

    name: ClassVar[str] = "PodTopologySpread"
    compares: ClassVar[str] = "spread"
    draw: ClassVar[tuple[str, int] | None] = ("S", 3)
    Args = PodTopologySpreadArgs
    default_weight: ClassVar[int | None] = 2
    normalizes: ClassVar[bool] = True

    def __init__(self, args: Any, handle: fw.Handle) -> None:
        super().__init__(args, handle)
        self.defaults = Defaults.from_args(args)

    def events(self) -> list[ClusterEventWithHint]:
        self._selectors = DefaultSelectors(self.handle.listers)
        return [
            on("Pod", "Add|UpdatePodLabel|UpdatePodToleration|Delete", self.after_pod_change),
            on("Node", "Add|Delete|UpdateNodeLabel|UpdateNodeTaint", self.after_node_change),
        ]

    def after_pod_change(self, pod: Pod, old: Pod | None, new: Pod | None) -> QueueingHint:
        nominated_counts = self.handle.release.has("NominatedPodsCountInHints")
        if any(other is not None and not _is_involved(other, pod, nominated_counts) for other in (old, new)):
            return _UNINVOLVED
        constraints = self.defaults.of(pod, DO_NOT_SCHEDULE, self._selectors)
        if old is not None and new is not None:
            return _after_update(pod, old, new, constraints)
        if new is not None:
            return _COUNTED if _counts(constraints, new) else _NOT_COUNTED
        assert old is not None
        return _UNCOUNTED if _counts(constraints, old) else _NEVER_COUNTED

    def after_node_change(self, pod: Pod, old: Node | None, new: Node | None) -> QueueingHint:
        constraints = self.defaults.of(pod, DO_NOT_SCHEDULE, self._selectors)
        if old is not None and new is not None:
            matched, matches = _has_keys(old.labels, constraints), _has_keys(new.labels, constraints)
            if matched != matches:
                return _JOINED
            keys = [item.topology_key for item in constraints]
            moved = any(old.labels.get(key) != new.labels.get(key) for key in keys)
            return _MOVED if matches and (moved or node_taints(old) != node_taints(new)) else _STAYED
        if new is not None:
            return _NEW_NODE if _has_keys(new.labels, constraints) else _NO_KEYS
        assert old is not None
        return _NODE_GONE if _has_keys(old.labels, constraints) else _NO_KEYS

    # ---- filter

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> fw.PreFilterResult[HardState]:
        matching = snapshot.matching
        constraints = self.defaults.of(pod, DO_NOT_SCHEDULE, matching.default_selectors)
        if not constraints:
            return fw.SKIP_FILTER
        keys = tuple([item.topology_key for item in constraints])
        return fw.PreFilterResult(
            state=HardState(
                [HardConstraint.of(constraint, pod, keys, matching) for constraint in constraints]
            )
        )

    def filter(self, state: HardState, pod: Pod, nodes: NodeColumns, rows: Rows) -> Verdicts:
        return Verdicts(state.codes(nodes, rows))

    def reasons(
        self, state: HardState, pod: Pod, nodes: NodeColumns, row: int, code: Code, detail: int
    ) -> tuple[str, ...]:
        return (REASON_LABEL if code is Code.UnschedulableAndUnresolvable else REASON_SKEW,)

    def compare(self, state: HardState, pod: Pod, snapshot: Snapshot) -> Iterator[Comparison]:
        for constraint in state.constraints:
            yield from constraint.compare(snapshot.nodes, snapshot.rows)

    def filter_domains(self, state: HardState, pod: Pod, snapshot: Snapshot) -> Iterator[DomainRule]:
        constraints = self.defaults.of(pod, DO_NOT_SCHEDULE, snapshot.matching.default_selectors)
        for declared, hard in zip(constraints, state.constraints, strict=True):
            minimum = hard.minimum
            yield DomainRule(
                SPREAD,
                hard.key,
                str(declared.selector),
                hard.counts,
                allowed=hard.counts <= hard.limit + minimum,
                skew=hard.counts + (hard.max_skew - hard.limit) - minimum,
                is_counted=hard.domains.is_present,
                facts={"maxSkew": hard.max_skew, "minimum": minimum},
            )

    def fork(self, state: HardState, nodes: WhatIf) -> HardState:
        return HardState(state.constraints, [ConstraintWorlds(item, nodes) for item in state.constraints])

    def add_pods(
        self, state: HardState, pod: Pod, nodes: WhatIf, rows: Rows, pod_ids: NDArray[np.intp]
    ) -> None:
        self._change(state, nodes, rows, pod_ids, 1)

    def remove_pods(
        self, state: HardState, pod: Pod, nodes: WhatIf, rows: Rows, pod_ids: NDArray[np.intp]
    ) -> None:
        self._change(state, nodes, rows, pod_ids, -1)

    def _change(
        self, state: HardState, nodes: WhatIf, rows: Rows, pod_ids: NDArray[np.intp], sign: int
    ) -> None:
        class_ids = nodes.pods.class_id[pod_ids]
        for worlds in state.worlds or ():
            worlds.change(rows, class_ids, sign)

    # ---- score

    def pre_score(self, pod: Pod, snapshot: Snapshot, rows: Rows) -> fw.PreScoreResult[SoftState]:
        matching = snapshot.matching
        constraints = self.defaults.of(pod, SCHEDULE_ANYWAY, matching.default_selectors)
        if not constraints or not len(snapshot.rows):
            return fw.SKIP_SCORE
        require_all = bool(pod.topology_spread) or not self.defaults.by_system
        return fw.PreScoreResult(
            state=SoftState.of(constraints, pod, matching, rows, require_all=require_all)
        )

    def score(self, state: SoftState, pod: Pod, nodes: NodeColumns, rows: Rows) -> fw.Scores:
        return state.scores(nodes, rows)

    def score_domains(self, state: SoftState, pod: Pod, snapshot: Snapshot) -> Iterator[DomainRule]:
        constraints = self.defaults.of(pod, SCHEDULE_ANYWAY, snapshot.matching.default_selectors)
        for declared, soft in zip(constraints, state.constraints, strict=True):
            domains = soft.domains or snapshot.matching.topology.domains(soft.key)
            counts = np.zeros(domains.n_values, np.int64)
            if soft.selection is not None:
                counts = soft.selection.counts(domains).by_domain
            points = _rounded((counts * soft.weight + soft.tolerance).astype(np.float64))
            facts = {"maxSkew": declared.max_skew}
            yield DomainRule(SPREAD, soft.key, str(declared.selector), counts, points=points, facts=facts)

    def normalize(
        self, state: SoftState, pod: Pod, nodes: NodeColumns, rows: Rows, scores: fw.Scores
    ) -> fw.Scores:
        return state.normalized(nodes, rows, scores)
