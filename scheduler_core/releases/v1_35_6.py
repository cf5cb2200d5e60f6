"""Kubernetes 1.35.6, by what it changes of 1.35.4.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, v1.35.6 (kubernetes 139016)
"""

from __future__ import annotations

from scheduler_core.releases.v1_35 import ALLOCATED_CLAIMS_SCORED
from scheduler_core.releases.v1_35 import RELEASE as V1_35

RELEASE = V1_35.followed_by("1.35.6", "v1.35.6", gates={}, changes=ALLOCATED_CLAIMS_SCORED)
