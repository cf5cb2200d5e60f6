"""Kubernetes 1.36, by what it changes of 1.35.

Source: pkg/features/kube_features.go, pkg/scheduler, v1.36.2
"""

from __future__ import annotations

from scheduler_core.releases.release import ALPHA, BETA, GA, Gate
from scheduler_core.releases.v1_35 import ALLOCATED_CLAIMS_SCORED
from scheduler_core.releases.v1_35 import RELEASE as V1_35

RELEASE = V1_35.followed_by(
    "1.36",
    "v1.36.2",
    n_agreed=3512,
    gone=("CSIMigrationPortworx",),
    gates={
        "DRAAdminAccess": Gate(GA, True, locked=True),
        "DRAConsumableCapacity": Gate(BETA, True),
        "DRADeviceBindingConditions": Gate(BETA, True),
        "DRADeviceTaintRules": Gate(BETA, False),
        "DRADeviceTaints": Gate(BETA, True),
        "DRAExtendedResource": Gate(BETA, True),
        "DRAListTypeAttributes": Gate(ALPHA, False),
        "DRANodeAllocatableResources": Gate(ALPHA, False),
        "DRAPartitionableDevices": Gate(BETA, True),
        "DRAPrioritizedList": Gate(GA, True),
        "DRAWorkloadResourceClaims": Gate(ALPHA, False),
        "ImageVolume": Gate(GA, True),
        "InPlacePodLevelResourcesVerticalScaling": Gate(BETA, True),
        "NodeDeclaredFeatures": Gate(BETA, True),
        "RestartAllContainersOnContainerExits": Gate(BETA, True),
        "TopologyAwareWorkloadScheduling": Gate(ALPHA, False),
        "VolumeAttributesClass": Gate(GA, True, locked=True),
        "WorkloadAwarePreemption": Gate(ALPHA, False),
    },
    changes={
        **ALLOCATED_CLAIMS_SCORED,
        "PodsNameTheirGroup": "A pod names its PodGroup (spec.schedulingGroup); a Workload is a template of groups.",
        "PodWrittenLarge": "A claim that belongs to another pod is told with a capital P.",
        "BalancedAllocationByChange": "The balanced score tells how much a pod changes a node's balance.",
        "PreemptedInMemory": "A victim that waits in Permit or PreBind is given back in memory, and told so.",
        "ImageVolumesScored": "ImageLocality counts the images of volumes.",
        "AffinityHintsBothWays": "A pod kept off by pod affinity wakes by its own labels and by rivals that avoid it.",
        "NominatedPodsCountInHints": "Queueing hints count nominated pods as placed.",
        "OverflowNamesPoint": "The error about an overflow of scores names the extension point.",
        "CapacityRatioChecked": "requestedToCapacityRatio is required with its own type and refused with others.",
    },
)
