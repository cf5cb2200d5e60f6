"""The plugins of the tree, one file each, in one list from which every table about them follows.

To add a plugin: one file here and its name in the list; `register` reads the rest off its class (points, arguments,
defaults, events, checkpoint, words). The conformance kit picks it up from the list. A plugin from outside comes by
`installed_plugins` (entry points), or as a class handed to `Simulation(plugins=...)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler_core.config.catalog import Catalog
from scheduler_core.config.construction import ReadFile, no_files
from scheduler_core.config.load import LoadedConfiguration
from scheduler_core.config.load import load_configuration as load_with
from scheduler_core.config.types import API_VERSION, KIND
from scheduler_core.framework.interface import Plugin
from scheduler_core.framework.registry import Registry
from scheduler_core.plugins.default_binder import DefaultBinder
from scheduler_core.plugins.default_preemption import DefaultPreemption
from scheduler_core.plugins.dynamic_resources import DynamicResources
from scheduler_core.plugins.gang_permit import GangPermit
from scheduler_core.plugins.gang_scheduling import GangScheduling
from scheduler_core.plugins.image_locality import ImageLocality
from scheduler_core.plugins.inter_pod_affinity import InterPodAffinity
from scheduler_core.plugins.manual_approval import ManualApproval
from scheduler_core.plugins.node_affinity import NodeAffinity
from scheduler_core.plugins.node_declared_features import NodeDeclaredFeatures
from scheduler_core.plugins.node_name import NodeName
from scheduler_core.plugins.node_ports import NodePorts
from scheduler_core.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from scheduler_core.plugins.node_resources_fit import NodeResourcesFit
from scheduler_core.plugins.node_unschedulable import NodeUnschedulable
from scheduler_core.plugins.node_volume_limits import NodeVolumeLimits
from scheduler_core.plugins.pod_topology_spread import PodTopologySpread
from scheduler_core.plugins.priority_sort import PrioritySort
from scheduler_core.plugins.retired import RETIRED
from scheduler_core.plugins.rule import Rule
from scheduler_core.plugins.scheduling_gates import SchedulingGates
from scheduler_core.plugins.taint_toleration import TaintToleration
from scheduler_core.plugins.volume_binding import VolumeBinding
from scheduler_core.plugins.volume_restrictions import VolumeRestrictions
from scheduler_core.plugins.volume_zone import VolumeZone
from scheduler_core.releases import OLDEST, Release

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
    DefaultPreemption,
    NodeResourcesBalancedAllocation,
    ImageLocality,
    DefaultBinder,
    NodeDeclaredFeatures,
    GangScheduling,
    # The playground's own, on by default nowhere.
    ManualApproval,
    GangPermit,
    Rule,
)
"""Every plugin a configuration may name, those of the default set in its order."""

REGISTRY = Registry(IN_TREE, retired=RETIRED)
"""The plugins of the tree."""


def default_configuration(release: Release = OLDEST) -> LoadedConfiguration:
    """What kube-scheduler runs without a configuration file."""
    return load_configuration({"apiVersion": API_VERSION, "kind": KIND}, release=release)


def load_configuration(
    source: str | bytes | Mapping[str, Any],
    *,
    registry: Registry | Catalog = REGISTRY,
    read_file: ReadFile = no_files,
    release: Release | None = None,
) -> LoadedConfiguration:
    """Load a KubeSchedulerConfiguration v1 or a legacy Policy; see `config.load.load_configuration`.

    Parameters
    ----------
    registry : Registry or Catalog
        The plugins it may name; those of the tree by default.
    release : Release, optional
        Whose defaults and checks apply; the registry's own, which is the oldest one, where none is given.
    """
    if isinstance(registry, Catalog):
        catalog = registry
    else:
        catalog = (registry if release is None else registry.in_release(release)).catalog
    return load_with(source, catalog, read_file=read_file)
