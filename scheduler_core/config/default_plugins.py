"""Which plugins exist, which extension points each implements, and which are on by default.

The one place for these facts: construction, defaulting and the plugin table read them from here.

Source: pkg/scheduler/framework/plugins/registry.go, pkg/scheduler/apis/config/v1/default_plugins.go, v1.34
"""

from __future__ import annotations

from collections.abc import Mapping

PRE_ENQUEUE = "preEnqueue"
QUEUE_SORT = "queueSort"
PRE_FILTER = "preFilter"
FILTER = "filter"
POST_FILTER = "postFilter"
PRE_SCORE = "preScore"
SCORE = "score"
RESERVE = "reserve"
PERMIT = "permit"
PRE_BIND = "preBind"
BIND = "bind"
POST_BIND = "postBind"
MULTI_POINT = "multiPoint"

EXTENSION_POINTS: tuple[str, ...] = (
    PRE_ENQUEUE,
    QUEUE_SORT,
    PRE_FILTER,
    FILTER,
    POST_FILTER,
    PRE_SCORE,
    SCORE,
    RESERVE,
    PERMIT,
    PRE_BIND,
    BIND,
    POST_BIND,
)
"""The points of the framework in pipeline order, under their names in the configuration."""

CONSTRUCTION_ORDER: tuple[str, ...] = (
    PRE_FILTER,
    FILTER,
    POST_FILTER,
    RESERVE,
    PRE_SCORE,
    SCORE,
    PRE_BIND,
    BIND,
    POST_BIND,
    PERMIT,
    PRE_ENQUEUE,
    QUEUE_SORT,
)
"""The order in which upstream fills them, which decides the error that is reported first.

Source: pkg/scheduler/framework/runtime/framework.go getExtensionPoints, v1.34
"""


def interface_name(point: str) -> str:
    """Upstream's interface of an extension point, as error messages name it (`PreFilterPlugin`)."""
    return f"{point[0].upper()}{point[1:]}Plugin"


PluginRegistry = Mapping[str, tuple[str, ...]]
"""Plugin name -> the extension points it implements."""

IN_TREE_PLUGINS: PluginRegistry = {
    "SchedulingGates": (PRE_ENQUEUE,),
    "PrioritySort": (QUEUE_SORT,),
    "NodeUnschedulable": (FILTER,),
    "NodeName": (FILTER,),
    "TaintToleration": (FILTER, PRE_SCORE, SCORE),
    "NodeAffinity": (PRE_FILTER, FILTER, PRE_SCORE, SCORE),
    "NodePorts": (PRE_FILTER, FILTER),
    "NodeResourcesFit": (PRE_FILTER, FILTER, PRE_SCORE, SCORE),
    "VolumeRestrictions": (PRE_FILTER, FILTER),
    "NodeVolumeLimits": (PRE_FILTER, FILTER),
    "VolumeBinding": (PRE_FILTER, FILTER, PRE_SCORE, SCORE, RESERVE, PRE_BIND),
    "VolumeZone": (PRE_FILTER, FILTER),
    "PodTopologySpread": (PRE_FILTER, FILTER, PRE_SCORE, SCORE),
    "InterPodAffinity": (PRE_FILTER, FILTER, PRE_SCORE, SCORE),
    "DynamicResources": (PRE_ENQUEUE, PRE_FILTER, FILTER, POST_FILTER, RESERVE, PRE_BIND),
    "DefaultPreemption": (PRE_ENQUEUE, POST_FILTER),
    "NodeResourcesBalancedAllocation": (PRE_SCORE, SCORE),
    "ImageLocality": (SCORE,),
    "DefaultBinder": (BIND,),
}
"""What v1.34 has in its tree."""

LEGACY_PLUGINS: PluginRegistry = {
    "SelectorSpread": (PRE_SCORE, SCORE),
    "NodeLabel": (FILTER, SCORE),
    "ServiceAffinity": (PRE_FILTER, FILTER, SCORE),
    "NodePreferAvoidPods": (SCORE,),
    "EBSLimits": (FILTER,),
    "GCEPDLimits": (FILTER,),
    "AzureDiskLimits": (FILTER,),
    "CinderLimits": (FILTER,),
}
"""Retired plugins, registered for a Policy file or when a caller adds them to the registry."""

REMOVED_PLUGINS: tuple[str, ...] = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")
"""Names a v1 configuration may not use.

Source: pkg/scheduler/apis/config/validation/validation.go invalidPluginsByVersion, v1.34
"""

DEFAULT_MULTI_POINT: tuple[tuple[str, int], ...] = (
    ("SchedulingGates", 0),
    ("PrioritySort", 0),
    ("NodeUnschedulable", 0),
    ("NodeName", 0),
    ("TaintToleration", 3),
    ("NodeAffinity", 2),
    ("NodePorts", 0),
    ("NodeResourcesFit", 1),
    ("VolumeRestrictions", 0),
    ("NodeVolumeLimits", 0),
    ("VolumeBinding", 0),
    ("VolumeZone", 0),
    ("PodTopologySpread", 2),
    ("InterPodAffinity", 2),
    ("DynamicResources", 0),
    ("DefaultPreemption", 0),
    ("NodeResourcesBalancedAllocation", 1),
    ("ImageLocality", 1),
    ("DefaultBinder", 0),
)
"""Name and weight (0 = none given) of the plugins on by default, in order."""
