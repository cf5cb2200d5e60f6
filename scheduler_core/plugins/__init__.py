"""The plugins of v1.34's tree, one file each, in one explicit table.

To add a plugin: one file here, one line in `IN_TREE`, its oracle twin and test. The conformance, parity and
benchmark tests pick it up from the table.
"""

from __future__ import annotations

from scheduler_core.config.default_plugins import PERMIT, RESERVE, PluginRegistry
from scheduler_core.framework.interface import Plugin
from scheduler_core.framework.registry import Registry
from scheduler_core.plugins.coscheduling import Coscheduling
from scheduler_core.plugins.default_binder import DefaultBinder
from scheduler_core.plugins.default_preemption import DefaultPreemption
from scheduler_core.plugins.dynamic_resources import DynamicResources
from scheduler_core.plugins.image_locality import ImageLocality
from scheduler_core.plugins.inter_pod_affinity import InterPodAffinity
from scheduler_core.plugins.manual_approval import ManualApproval
from scheduler_core.plugins.node_affinity import NodeAffinity
from scheduler_core.plugins.node_name import NodeName
from scheduler_core.plugins.node_ports import NodePorts
from scheduler_core.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from scheduler_core.plugins.node_resources_fit import NodeResourcesFit
from scheduler_core.plugins.node_unschedulable import NodeUnschedulable
from scheduler_core.plugins.node_volume_limits import NodeVolumeLimits
from scheduler_core.plugins.pod_topology_spread import PodTopologySpread
from scheduler_core.plugins.priority_sort import PrioritySort
from scheduler_core.plugins.retired import RETIRED
from scheduler_core.plugins.scheduling_gates import SchedulingGates
from scheduler_core.plugins.taint_toleration import TaintToleration
from scheduler_core.plugins.volume_binding import VolumeBinding
from scheduler_core.plugins.volume_restrictions import VolumeRestrictions
from scheduler_core.plugins.volume_zone import VolumeZone

IN_TREE: tuple[type[Plugin], ...] = (
    SchedulingGates,
    PrioritySort,
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    PodTopologySpread,
    InterPodAffinity,
    DynamicResources,
    NodeResourcesBalancedAllocation,
    ImageLocality,
    DefaultBinder,
    DefaultPreemption,
)
"""Every plugin a v1 configuration may name, in upstream's registration order."""


OPT_IN: tuple[type[Plugin], ...] = (ManualApproval, Coscheduling)
"""The playground's own plugins: a configuration may name them, no default profile does."""

OPT_IN_POINTS: PluginRegistry = {
    ManualApproval.name: (PERMIT,),
    Coscheduling.name: (RESERVE, PERMIT),
}
"""For the `registry` of `config.load_configuration`, beside the in-tree ones."""


def in_tree_registry(*, with_retired: bool = False) -> Registry:
    """A registry of all in-tree plugins, the caller's own to change.

    Parameters
    ----------
    with_retired : bool
        Plugins of older releases too, which a Policy file may name (`plugins.retired`).
    """
    return Registry({plugin.name: plugin for plugin in (*IN_TREE, *(RETIRED if with_retired else ()))})


def full_registry(*, with_retired: bool = False) -> Registry:
    """A registry of the in-tree and the opt-in plugins."""
    registry = in_tree_registry(with_retired=with_retired)
    registry.merge({plugin.name: plugin for plugin in OPT_IN})
    return registry
