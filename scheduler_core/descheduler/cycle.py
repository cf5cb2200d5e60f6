"""One cycle of the descheduler: every deschedule plugin of every profile, then every balance plugin.

Source: pkg/descheduler/descheduler.go, pkg/framework/profile/profile.go, 7d2b28bf2b6a (v0.36)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from scheduler_core.descheduler import balance, plugins
from scheduler_core.descheduler.evictor import DefaultEvictor, Evictions
from scheduler_core.descheduler.plugins import PluginRun
from scheduler_core.descheduler.policy import Document, Policy, policy_from
from scheduler_core.descheduler.view import AfterEviction, Parsed, View
from scheduler_core.objects.labels import parse_label_selector_text

_PLUGINS: Final[Mapping[str, Callable[[PluginRun], None]]] = {
    "PodLifeTime": plugins.pod_life_time,
    "RemoveFailedPods": plugins.remove_failed_pods,
    "RemovePodsHavingTooManyRestarts": plugins.too_many_restarts,
    "RemovePodsViolatingInterPodAntiAffinity": plugins.violating_anti_affinity,
    "RemovePodsViolatingNodeAffinity": plugins.violating_node_affinity,
    "RemovePodsViolatingNodeTaints": plugins.violating_node_taints,
    "RemoveDuplicates": balance.remove_duplicates,
    "LowNodeUtilization": balance.low_node_utilization,
    "HighNodeUtilization": balance.high_node_utilization,
    "RemovePodsViolatingTopologySpreadConstraint": balance.violating_spread,
}


@dataclass
class DeschedulerCycle:
    """What a cycle did. Without two nodes to work on it does nothing."""

    nodes: list[str]
    evictability: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Profile -> what its DefaultEvictor says of every pod that it would not simply evict, at the beginning."""
    runs: list[tuple[str, PluginRun]] = field(default_factory=list)
    """Extension point and run of every plugin."""
    evictions: Evictions | None = None
    goes_by_time: bool = False
    """Whether the same objects may give another cycle later."""


def deschedule(
    policy: Document | Policy,
    objects: Iterable[Document],
    now_ns: int,
    *,
    after_eviction: AfterEviction = "deleted",
    enforces_budgets: bool = True,
    parsed: Parsed | None = None,
) -> DeschedulerCycle:
    """Run one cycle.

    Parameters
    ----------
    policy : mapping or Policy
        A DeschedulerPolicy.
    objects : iterable of mapping
        Manifests of the cluster, taken literally. The order of nodes and pods is theirs.
    now_ns : int
        The time.
    after_eviction, enforces_budgets, parsed
        As `View` and `Evictions` say.

    Raises
    ------
    PolicyError, StartError
        The policy cannot be used.
    """
    view = View(objects, now_ns, after_eviction, parsed)
    checked = policy if isinstance(policy, Policy) else policy_from(policy, view.priority_of)
    nodes = view.ready_nodes(parse_label_selector_text(checked.node_selector))
    cycle = DeschedulerCycle([node.name for node in nodes])
    evictors = [DefaultEvictor(profile.arguments["DefaultEvictor"], view) for profile in checked.profiles]
    for profile, evictor in zip(checked.profiles, evictors, strict=True):
        cycle.evictability[profile.name] = list(evictor.verdicts())
    if len(nodes) < 2:
        cycle.goes_by_time = view.goes_by_time
        return cycle
    cycle.evictions = Evictions(checked, view, enforces_budgets=enforces_budgets)
    for point in ("deschedule", "balance"):
        for profile, evictor in zip(checked.profiles, evictors, strict=True):
            for name in getattr(profile, point):
                run = PluginRun(
                    profile.name, name, profile.arguments[name], nodes, view, evictor, cycle.evictions
                )
                _PLUGINS[name](run)
                cycle.runs.append((point.capitalize(), run))
    cycle.goes_by_time = view.goes_by_time
    return cycle
