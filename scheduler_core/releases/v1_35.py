"""Kubernetes 1.35, by what it changes of 1.34.

Source: pkg/features/kube_features.go, pkg/scheduler, v1.35.4
"""

from __future__ import annotations

from scheduler_core.releases.release import ALPHA, BETA, GA, Gate
from scheduler_core.releases.v1_34 import RELEASE as V1_34

ALLOCATED_CLAIMS_SCORED = {
    "AllocatedClaimsScored": "A pod with a claim that is allocated and one that is not yet no longer fails in Score."
}
"""Mended in v1.35.6 and v1.36.2 (kubernetes 139016)."""

RELEASE = V1_34.followed_by(
    "1.35",
    "v1.35.4",
    gates={
        "ClearingNominatedNodeNameAfterBinding": Gate(BETA, True),
        "DRADeviceTaintRules": Gate(ALPHA, False),
        "DynamicResourceAllocation": Gate(GA, True, locked=True),
        "GangScheduling": Gate(ALPHA, False),
        "GenericWorkload": Gate(ALPHA, False),
        "ImageVolume": Gate(BETA, True),
        "InPlacePodLevelResourcesVerticalScaling": Gate(ALPHA, False),
        "InPlacePodVerticalScaling": Gate(GA, True, locked=True),
        "NodeDeclaredFeatures": Gate(ALPHA, False),
        "NominatedNodeNameForExpectation": Gate(BETA, True),
        "OpportunisticBatching": Gate(BETA, True),
        "PodObservedGenerationTracking": Gate(GA, True, locked=True),
        "RestartAllContainersOnContainerExits": Gate(ALPHA, False),
        "SchedulerAsyncAPICalls": Gate(BETA, False),
        "TaintTolerationComparisonOperators": Gate(ALPHA, False),
        "VolumeLimitScaling": Gate(ALPHA, False),
    },
    changes={
        "DynamicResourcesScores": "DynamicResources prefers nodes that serve the first alternatives of a request.",
        "UntoleratedTaintsUnnamed": "A message no longer names the taint that keeps a pod off a node.",
        "IncompletePoolsIgnored": "A pool with missing ResourceSlices gives no devices.",
        "ClassConfigNamesRequests": "The configuration of a DeviceClass names the requests that it is for.",
        "LabelLengthInBytes": "A label that is too long is told so in bytes, a bad key as a label key.",
    },
    weights={"DynamicResources": 2},
    gained={"DynamicResourcesScores": "DynamicResources"},
    n_agreed=3131,
)
