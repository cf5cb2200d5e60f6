"""Kubernetes 1.34, the oldest release there is here; the others say what they change of it.

Source: pkg/features/kube_features.go, v1.34.1
"""

from __future__ import annotations

from scheduler_core.releases.release import ALPHA, BETA, GA, Gate, Release

RELEASE = Release(
    "1.34",
    "v1.34.1",
    gates={
        "CSIMigrationPortworx": Gate(GA, True, locked=True),
        "ClearingNominatedNodeNameAfterBinding": Gate(ALPHA, False),
        "DRAAdminAccess": Gate(BETA, True),
        "DRAConsumableCapacity": Gate(ALPHA, False),
        "DRADeviceBindingConditions": Gate(ALPHA, False),
        "DRADeviceTaints": Gate(ALPHA, False),
        "DRAExtendedResource": Gate(ALPHA, False),
        "DRAPartitionableDevices": Gate(ALPHA, False),
        "DRAPrioritizedList": Gate(BETA, True),
        "DRAResourceClaimDeviceStatus": Gate(BETA, True),
        "DRASchedulerFilterTimeout": Gate(BETA, True),
        "DynamicResourceAllocation": Gate(GA, True),
        "ImageVolume": Gate(BETA, False),
        "InPlacePodVerticalScaling": Gate(BETA, True),
        "MatchLabelKeysInPodTopologySpread": Gate(BETA, True),
        "NodeInclusionPolicyInPodTopologySpread": Gate(GA, True, locked=True),
        "NominatedNodeNameForExpectation": Gate(ALPHA, False),
        "PodLevelResources": Gate(BETA, True),
        "PodObservedGenerationTracking": Gate(BETA, True),
        "SchedulerAsyncAPICalls": Gate(BETA, True),
        "SchedulerAsyncPreemption": Gate(BETA, True),
        "SchedulerPopFromBackoffQ": Gate(BETA, True),
        "SchedulerQueueingHints": Gate(GA, True, locked=True),
        "SidecarContainers": Gate(GA, True, locked=True),
        "StorageCapacityScoring": Gate(ALPHA, False),
        "VolumeAttributesClass": Gate(GA, True),
    },
    n_agreed=3367,
    lacking={"DynamicResources": ("score",)},
)
