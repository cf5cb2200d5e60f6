"""Plugins of older releases, for Policy files and for those who ask for them.

A v1 configuration that names one fails as v1.34 does: they are registered for a `kind: Policy` file, or when a
caller says so (`Registry.with_retired`). They behave as in v1.19 to v1.22.
"""

from __future__ import annotations

from scheduler_core.framework.interface import Plugin
from scheduler_core.plugins.retired import (
    AzureDiskLimits,
    CinderLimits,
    EBSLimits,
    GCEPDLimits,
    NodeLabel,
    NodePreferAvoidPods,
    SelectorSpread,
    ServiceAffinity,
)

RETIRED: tuple[type[Plugin], ...] = (
    SelectorSpread,
    NodeLabel,
    ServiceAffinity,
    NodePreferAvoidPods,
    EBSLimits,
    GCEPDLimits,
    AzureDiskLimits,
    CinderLimits,
)
"""Every retired plugin."""
