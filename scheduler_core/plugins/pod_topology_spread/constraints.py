"""The constraints that hold for a pod: its own, or the profile's defaults with a deduced selector.

Source: pkg/scheduler/framework/plugins/podtopologyspread/common.go, v1.34
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scheduler_core.cluster.matching import Matching
from scheduler_core.cluster.selection import PodSelector, Selection
from scheduler_core.cluster.topology import Among
from scheduler_core.objects.labels import NOTHING, LabelSelector
from scheduler_core.objects.node import LABEL_HOSTNAME, LABEL_ZONE
from scheduler_core.objects.pod import Pod, TopologySpreadConstraint

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
    """What holds for pods without constraints of their own.

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
        """Read a PodTopologySpreadArgs; None stands for the default one."""
        if args is None or args.defaulting_type == "System":
            return cls()
        return cls(tuple(_from_document(item) for item in args.default_constraints or ()), False)

    def of(self, pod: Pod, action: str, matching: Matching) -> tuple[TopologySpreadConstraint, ...]:
        """The constraints of one kind (`whenUnsatisfiable`) that hold for a pod."""
        if pod.topology_spread:
            return tuple([item for item in pod.topology_spread if item.when_unsatisfiable == action])
        defaults = [item for item in self.constraints if item.when_unsatisfiable == action]
        if not defaults:
            return ()
        selector = matching.default_selectors.of(pod)
        if selector.is_everything:
            return ()
        return tuple([_with_selector(item, selector) for item in defaults])


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


def _with_selector(constraint: TopologySpreadConstraint, selector: LabelSelector) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(
        constraint.max_skew,
        constraint.topology_key,
        constraint.when_unsatisfiable,
        selector,
        constraint.min_domains,
        constraint.node_affinity_policy,
        constraint.node_taints_policy,
    )


def _from_document(document: Mapping[str, Any]) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(
        max_skew=int(document.get("maxSkew") or 0),
        topology_key=str(document.get("topologyKey") or ""),
        when_unsatisfiable=str(document.get("whenUnsatisfiable") or ""),
        selector=NOTHING,
        min_domains=document.get("minDomains"),
        node_affinity_policy=str(document.get("nodeAffinityPolicy") or HONOR),
        node_taints_policy=str(document.get("nodeTaintsPolicy") or IGNORE),
    )
