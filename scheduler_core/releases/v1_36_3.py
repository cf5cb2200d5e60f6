"""Kubernetes 1.36.3, by what it changes of 1.36.2.

Source: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating, v1.36.3
"""

from __future__ import annotations

from scheduler_core.releases.v1_36 import RELEASE as V1_36

RELEASE = V1_36.followed_by(
    "1.36.3",
    "v1.36.3",
    gates={},
    changes={
        "RefusedDevicesGiveBack": "A device that a claim does not get after all gives back all it had taken."
    },
)
