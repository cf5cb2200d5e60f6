"""What every in-tree plugin waits for, and when it thinks an event worth another try.

One module a plugin: `events_to_register()` and its hint functions, pure functions of the pod and the changed
object. The plugins' own classes delegate here. Plugins without a module wait for nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from scheduler_core.cluster.listers import Listers
from scheduler_core.framework.cluster_event import ClusterEventWithHint
from scheduler_core.objects.node_selector import NodeSelector
from scheduler_core.plugins.hints import (
    default_preemption,
    dynamic_resources,
    inter_pod_affinity,
    node_affinity,
    node_name,
    node_ports,
    node_resources_fit,
    node_unschedulable,
    node_volume_limits,
    opt_in,
    pod_topology_spread,
    scheduling_gates,
    taint_toleration,
    volume_binding,
    volume_restrictions,
    volume_zone,
)
from scheduler_core.plugins.hints.volumes import Lookup


@dataclass(frozen=True, slots=True)
class HintContext:
    """What hints depend on besides the pod and the event.

    Attributes
    ----------
    lookup : Lookup
        The objects the plugin's listers see.
    added_node_selector : NodeSelector or None
        The required part of NodeAffinity's `addedAffinity`.
    spread_constraints_of : callable
        PodTopologySpread's hard constraints of a pod, its defaults included.
    """

    lookup: Lookup = field(default_factory=Listers)
    added_node_selector: NodeSelector | None = None
    spread_constraints_of: pod_topology_spread.ConstraintsOf = pod_topology_spread.own_constraints


HINTS: dict[str, Callable[[HintContext], list[ClusterEventWithHint]]] = {
    "SchedulingGates": lambda context: scheduling_gates.events_to_register(),
    "NodeUnschedulable": lambda context: node_unschedulable.events_to_register(),
    "NodeName": lambda context: node_name.events_to_register(),
    "TaintToleration": lambda context: taint_toleration.events_to_register(),
    "NodeAffinity": lambda context: node_affinity.events_to_register(context.added_node_selector),
    "NodePorts": lambda context: node_ports.events_to_register(),
    "NodeResourcesFit": lambda context: node_resources_fit.events_to_register(),
    "VolumeRestrictions": lambda context: volume_restrictions.events_to_register(),
    "NodeVolumeLimits": lambda context: node_volume_limits.events_to_register(),
    "VolumeBinding": lambda context: volume_binding.events_to_register(),
    "VolumeZone": lambda context: volume_zone.events_to_register(),
    "PodTopologySpread": lambda context: pod_topology_spread.events_to_register(
        context.spread_constraints_of
    ),
    "InterPodAffinity": lambda context: inter_pod_affinity.events_to_register(),
    "DynamicResources": lambda context: dynamic_resources.events_to_register(context.lookup),
    "DefaultPreemption": lambda context: default_preemption.events_to_register(),
}
"""Registrations by plugin, in the default profile's order."""


OPT_IN_HINTS: dict[str, Callable[[], list[ClusterEventWithHint]]] = {
    "ManualApproval": opt_in.manual_approval,
    "Coscheduling": opt_in.coscheduling,
}
"""The same for plugins that no default profile has."""


def registrations(plugin: str, context: HintContext) -> list[ClusterEventWithHint]:
    """What a plugin registers; nothing for one that waits for nothing."""
    if plugin in OPT_IN_HINTS:
        return OPT_IN_HINTS[plugin]()
    register = HINTS.get(plugin)
    return register(context) if register is not None else []


__all__ = ["HINTS", "HintContext", "Lookup", "registrations"]
